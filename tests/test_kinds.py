"""Kinds of model: a new one is a module and a registration; the documentation is made from the declarations."""

import csv
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nplm.errors import InputError
from nplm.kinds import REQUIRED, registry
from nplm.report.kinds import models_page
from nplm.rows import complete_row

ROOT = Path(__file__).parents[1]
TOY = ROOT / "tests/toy_kind"
PAGE = (ROOT / "docs/adding-a-model.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The page's blocks of code in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def with_toy(directory: Path, *command: object) -> subprocess.CompletedProcess:
    """Run a command where the toy kind is registered."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        list(map(str, command)),
        cwd=directory,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(TOY)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_page_shows_the_module_that_is_tested():
    assert blocks("python")[0] == (TOY / "add_one.py").read_text(encoding="utf-8")
    assert "add_one = add_one" in (TOY / "toy_kind-1.0.dist-info/entry_points.txt").read_text()


def test_the_pages_own_test_passes():
    module, test = blocks("python")
    exec(module + test, {"__name__": "add_one"})


def test_a_toy_kind_goes_from_a_configuration_to_a_line_of_the_table(tmp_path):
    """By its module and its registration alone: nothing in src or workflow knows it."""
    chance = random.Random(1)
    text = [chance.choices([f"word{i}" for i in range(30)], k=10) for _ in range(300)]
    (tmp_path / "text.txt").write_text("".join(" ".join(sentence) + "\n" for sentence in text))
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    [page] = map(yaml.safe_load, blocks("yaml"))
    mine = page["experiments"]["mine"]
    mine["corpus"] = {"source": "text", "path": ["text.txt"], "sha256": None}
    mine |= {"splits": {"train": 2000, "valid": 500}, "significance": {"block_length": 50, "resamples": 20}}
    mine["models"]["kn2"] = {"undefined_discounts": "fallback"}
    mine["words"] = None
    config["experiments"]["mine"], config["run"] = mine, page["run"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    snakemake = (sys.executable, "-m", "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", tmp_path, "-c2")
    run = with_toy(tmp_path, *snakemake)
    assert run.returncode == 0, run.stdout
    with open(tmp_path / "reports/mine/table1.csv", newline="") as file:
        rows = {row["row"]: row for row in csv.DictReader(file)}
    assert rows.keys() == {"kn2", "add_one", "add_tenth"}, "rows that are not run are in no table without a paper"
    assert rows["add_tenth"]["added"] == "0.1" and rows["add_tenth"]["model"] == "add_one"
    assert 1 < float(rows["add_one"]["test_ppl"]) < 60
    markdown = (tmp_path / "reports/mine/table1.md").read_text()
    assert "add_tenth" in markdown and "| added" in markdown

    mine["models"]["add_tenth"]["added"] = 0
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    run = with_toy(tmp_path, *snakemake, "--dry-run")
    assert "models.add_tenth.added: 0 is not allowed; allowed: number > 0" in run.stdout
    listed = with_toy(tmp_path, sys.executable, "-m", "nplm", "kinds")
    assert "add_one" in listed.stdout and "Lidstone" in listed.stdout


def test_without_its_registration_the_kind_is_unknown():
    assert "add_one" not in registry()


def test_the_reference_of_the_kinds_is_up_to_date():
    page = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    assert page == models_page(registry().values()), "run: nplm kinds --markdown docs/models.md"


def test_kinds_are_named_nowhere_but_in_their_declarations():
    """No test of a kind's name, no list of kinds: in the package's own modules and in the rules."""
    names = "|".join(registry())
    allowed = {"src/nplm/neural/kinds.py", "src/nplm/kinds.py"}
    files = [*ROOT.glob("src/nplm/**/*.py"), *ROOT.glob("workflow/rules/*.smk"), ROOT / "Snakefile"]
    assert len(files) > 50
    for path in files:
        where = str(path.relative_to(ROOT))
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not re.search(rf"kind\W*\s*(==|!=|in)\s*[\[({{\"']+({names})\b", line), f"{where}: {line}"
            if where not in allowed and len(found := set(re.findall(rf"[\"']({names})[\"']", line))) > 1:
                pytest.fail(f"{where} lists the kinds {found}: {line}")


@pytest.mark.parametrize("name", registry())
def test_defaults_are_what_the_keys_allow(name):
    """A row with its defaults written out is the same complete row."""
    kind = registry()[name]
    values = {"integer": 5, "number": 0.5, "boolean": True, "string": "text"}

    def example(schema: dict) -> object:
        return schema["enum"][0] if "enum" in schema else values[schema["type"]]

    references = {key.name for key in kind.keys if key.refers_to}
    row = {key.name: example(key.schema) for key in kind.keys if key.default is REQUIRED or key.name in references}
    complete = complete_row({"kind": name} | row, {}, "row")
    assert complete_row(complete, {}, "row") == complete


def test_a_number_with_a_point_is_no_whole_number():
    with pytest.raises(InputError, match=r"row\.n: 3\.0 is not allowed; allowed: whole number"):
        complete_row({"kind": "katz", "n": 3.0}, {}, "row")
