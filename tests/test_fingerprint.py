"""Fingerprints of code: what changes them, and what each stage's depends on."""

import re
import shutil
from pathlib import Path

import pytest

from nplm.fingerprint import PACKAGE, code_of
from nplm.kinds import registry
from nplm.scorers import reader_of

FILES = {
    "__init__.py": '"""A package."""\n\n__version__ = "1"\n',
    "command.py": '''
from toy import __version__
from toy.registry import app

LIMIT = 3


@app.command("fit", help=__version__)
def fit(limit=LIMIT):
    """Fit."""
    from .models import first as model

    return model.fit(limit)


def score(path):
    import toy.scores

    return toy.scores.score(path)
''',
    "registry.py": "app = None\n",
    "scores.py": "def score(path):\n    return path\n",
    "shared.py": "def shared():\n    return 1\n",
    "models/__init__.py": "",
    "models/first.py": '''"""A model."""

from ..shared import shared

KIND = "first"


def fit(limit):
    return shared() + limit
''',
    "models/second.py": "def read():\n    return 2\n",
}


@pytest.fixture
def toy(tmp_path):
    """Writes the toy package, one text in one file replaced, to a folder of its own; returns the folder."""
    written = iter(range(100))

    def write(file: str = "", old: str = "", new: str = "") -> Path:
        package = tmp_path / str(next(written)) / "toy"
        for name, text in FILES.items():
            path = package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(old, new) if name == file else text)
        assert not file or old in FILES[file]
        return package

    return write


def of_fit(package: Path) -> str:
    return code_of("toy.command", "fit", package=package)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("models/first.py", '"""A model."""', '"""The model.\n\nAt length."""'),
        (
            "models/first.py",
            "return shared() + limit",
            "# Why.\n    return (\n        shared() + limit  # and how\n    )",
        ),
        ("models/first.py", 'KIND = "first"', 'KIND = "the first"\nKINDS = (KIND, "another")'),
        ("command.py", '"""Fit."""', '"""Fit it."""'),
        ("command.py", "return toy.scores.score(path)", "return 0"),
        ("command.py", "help=__version__", "help='Fit.'"),
        ("scores.py", "return path", "return 0"),
        ("models/second.py", "return 2", "return 3"),
        ("registry.py", "None", "1"),
        ("__init__.py", '"1"', '"2"'),
    ],
)
def test_what_a_stage_does_not_use_does_not_count(toy, file, old, new):
    assert of_fit(toy(file, old, new)) == of_fit(toy())


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("command.py", "return model.fit(limit)", "return model.fit(limit + 1)"),
        ("command.py", "LIMIT = 3", "LIMIT = 4"),
        ("models/first.py", "shared() + limit", "shared() - limit"),
        ("shared.py", "return 1", "return 2"),
    ],
)
def test_what_a_stage_uses_counts_at_any_distance(toy, file, old, new):
    assert of_fit(toy(file, old, new)) != of_fit(toy())


def test_modules_found_at_run_time_count_when_they_are_named(toy):
    changed = toy("models/second.py", "return 2", "return 3")
    assert code_of("toy.command", "score", package=toy()) == code_of("toy.command", "score", package=changed)
    also = ("toy.models.second",)
    assert code_of("toy.command", "score", also, toy()) != code_of("toy.command", "score", also, changed)


def test_a_module_of_another_package_counts_with_what_it_imports_of_its_own_and_of_this_package(
    toy, tmp_path, monkeypatch
):
    def fingerprint(addition: str = "", package: Path | None = None) -> str:
        (tmp_path / "outside/helper.py").write_text(f"def helper():\n    return 1{addition}\n")
        return code_of("toy.command", "score", ("outside.kind",), package or toy())

    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/__init__.py").write_text("")
    imports = {"enum": "Enum", "pathlib": "Path", "toy.shared": "shared", "outside.helper": "helper"}
    text = "".join(f"from {module} import {name}\n" for module, name in imports.items())
    (tmp_path / "outside/kind.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    before = fingerprint()
    assert fingerprint() == before
    assert fingerprint("  # why") == before
    assert fingerprint(" + 1") != before
    assert fingerprint(package=toy("shared.py", "return 1", "return 2")) != before
    assert fingerprint(package=toy("models/second.py", "return 2", "return 3")) == before


def test_an_unknown_function_is_an_error(toy):
    with pytest.raises(LookupError, match=r"no function 'fti' among .*fit"):
        code_of("toy.command", "fti", package=toy())


def of_kind(name: str) -> tuple[str]:
    """The module of a kind of model, which the rules name to `code_of`."""
    return (registry()[name].code,)


STAGES = {
    "kneser_ney": ("nplm.cli.models", "fit_model", of_kind("kneser_ney")),
    "katz": ("nplm.cli.models", "fit_model", of_kind("katz")),
    "trigram": ("nplm.cli.models", "fit_model", of_kind("deleted_interpolation")),
    "train": ("nplm.cli.models", "train_network", of_kind("nplm")),
    "score kneser_ney": ("nplm.cli.scores", "score", (reader_of(registry()["kneser_ney"]), *of_kind("kneser_ney"))),
    "score network": ("nplm.cli.scores", "score", (reader_of(registry()["nplm"]), *of_kind("nplm"))),
    "perplexity": ("nplm.cli.scores", "evaluate_perplexity", ()),
    "tabulate": ("nplm.cli.report", "tabulate", ()),
}


@pytest.mark.parametrize(
    ("module", "stages"),
    [
        ("ngram/kneser_ney.py", {"kneser_ney", "score kneser_ney"}),
        ("ngram/backoff.py", {"kneser_ney", "score kneser_ney", "katz"}),
        ("ngram/katz.py", {"katz"}),
        ("ngram/deleted_interpolation.py", {"trigram"}),
        ("neural/training.py", {"train"}),
        ("neural/encoders/feed_forward.py", {"train", "score network"}),
        ("neural/model.py", {"train", "score network"}),
        ("external.py", set()),
        ("neural/kinds.py", set()),
        ("neural/network.py", {"train", "score network"}),
        ("perplexity.py", {"score kneser_ney", "score network", "perplexity", "tabulate"}),
        ("report/table.py", {"tabulate"}),
    ],
)
def test_an_edit_reaches_the_stages_that_use_it_and_no_other(tmp_path, module, stages):
    def fingerprints(appended: str) -> dict[str, str]:
        package = tmp_path / str(len(appended)) / "nplm"
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        with open(package / module, "a", encoding="utf-8") as file:
            file.write(appended)
        return {name: code_of(*stage, package=package) for name, stage in STAGES.items()}

    before = {name: code_of(*stage) for name, stage in STAGES.items()}
    assert fingerprints("\n# A comment.\n") == before
    after = fingerprints("\nADDED = 1\n")
    assert {name for name in STAGES if after[name] != before[name]} == stages


def test_packages_keep_no_code_in_their_init_files():
    """`code_of` relies on it; the command line's own init file, which no stage uses, and the version are exempt."""
    inits = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("__init__.py")}
    assert inits.keys() > {"__init__.py", "cli/__init__.py", "ngram/__init__.py"}
    for name in inits.keys() - {"__init__.py", "cli/__init__.py"}:
        package = f"nplm.{Path(name).parent}"
        assert code_of(package) == code_of("nplm.corpus"), f"{name} holds more than a docstring"


def test_no_stage_group_of_the_command_line_imports_from_another():
    """Otherwise an edit to one group would rerun the stages of another."""
    sources = {path.stem: path.read_text() for path in (PACKAGE / "cli").glob("*.py")}
    groups = {name for name, source in sources.items() if "\n@app.command(" in source}
    assert {"corpus", "ngram", "models", "scores", "report"} <= groups
    for name, source in sources.items():
        assert not groups & set(re.findall(r"^\s*(?:from|import) nplm\.cli\.(\w+)", source, re.M)), name
