"""The pages on speed show what the benchmarks wrote."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLES = runpy.run_path(str(ROOT / "benchmarks/tables.py"))


@pytest.mark.parametrize("path", TABLES["PAGES"], ids=lambda path: path.name)
def test_the_tables_are_those_of_the_benchmarks(path):
    page = path.read_text(encoding="utf-8")
    assert page.count("<!-- end -->") == len(TABLES["BLOCK"].findall(page)) > 0
    assert TABLES["filled"](page) == page, "put them in with: python benchmarks/tables.py"


def test_a_table_is_put_in_where_its_files_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("network,rate,other\nMLP1,1.5,x\n")
    (tmp_path / "b.csv").write_text("network,rate,other\nMLP9,2,y\n")
    page = "before\n<!-- a.csv, b.csv: network, rate -->\nold\n<!-- end -->\nafter\n"
    filled = TABLES["filled"](page, tmp_path)
    assert "old" not in filled and "other" not in filled
    assert [line.split("|")[1].strip() for line in filled.splitlines() if line.startswith("|")][2:] == ["MLP1", "MLP9"]
    assert filled.startswith("before\n") and filled.endswith("<!-- end -->\nafter\n")
    assert TABLES["filled"](filled, tmp_path) == filled
