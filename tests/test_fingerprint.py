"""Fingerprints of code: what changes them, and what each stage's depends on."""

import re
import shutil
from pathlib import Path

import pytest

from nplm.fingerprint import PACKAGE, code_of

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


def test_an_unknown_function_is_an_error(toy):
    with pytest.raises(LookupError, match=r"no function 'fti' among .*fit"):
        code_of("toy.command", "fti", package=toy())


STAGES = {
    "kneser_ney": ("nplm.cli.ngram", "fit_kneser_ney", ()),
    "katz": ("nplm.cli.ngram", "fit_katz", ()),
    "trigram": ("nplm.cli.ngram", "fit_deleted_interpolation", ()),
    "train": ("nplm.cli.neural", "train_nplm", ()),
    "score kneser_ney": ("nplm.cli.scores", "score", ("nplm.ngram.kneser_ney",)),
    "score network": ("nplm.cli.scores", "score", ("nplm.neural.network",)),
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
        ("neural/train.py", {"train"}),
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
    assert {"corpus", "ngram", "neural", "scores", "report"} <= groups
    for name, source in sources.items():
        assert not groups & set(re.findall(r"^\s*(?:from|import) nplm\.cli\.(\w+)", source, re.M)), name
