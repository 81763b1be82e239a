import json

import pytest

from nplm.errors import InputError
from nplm.files import complete_file, read_csv, read_json, read_text, write_csv, write_json, write_text


def test_a_file_appears_only_when_it_is_complete(tmp_path):
    path = tmp_path / "new" / "a.txt"
    with complete_file(path) as partial:
        partial.write_text("half")
        assert not path.exists()
    assert path.read_text() == "half"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_an_exception_keeps_the_old_file_and_leaves_no_other(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    with pytest.raises(ZeroDivisionError), complete_file(tmp_path / "a.txt") as partial:
        partial.write_text("new")
        raise ZeroDivisionError
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.txt", "old")]


def test_text_is_utf8_with_lf(tmp_path):
    write_text(tmp_path / "a.txt", "é\nb\n")
    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xa9\nb\n"


def test_json_refuses_nan_and_writes_nothing(tmp_path):
    write_json(tmp_path / "a.json", {"é": [1, 2.5]})
    assert read_json(tmp_path / "a.json") == {"é": [1, 2.5]}
    with pytest.raises(ValueError):
        write_json(tmp_path / "b.json", {"a": float("nan")})
    assert not (tmp_path / "b.json").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{\n"a": }', "a.json, line 2: not JSON"),
        (b"[1]", "a.json: holds a JSON list where an object is expected"),
        (b'{"a": "\xff"}', "a.json: byte 7 is not UTF-8"),
    ],
)
def test_json_that_is_none_is_named(tmp_path, content, message):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["missing", ".", "file/inside"])
def test_missing_file_is_named(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="no such file"):
        read_text(tmp_path / name)


def test_csv_reads_back_every_text_and_number(tmp_path):
    rows = [{"name": 'a, "b"\nc', "value": 0.1 + 0.2}, {"name": "", "value": None}]
    write_csv(tmp_path / "a.csv", rows, ("name", "value"))
    first, second = read_csv(tmp_path / "a.csv", ("value",))
    assert first["name"] == 'a, "b"\nc' and float(first["value"]) == 0.1 + 0.2
    assert second == {"name": "", "value": ""}


def test_csv_row_with_other_columns_is_a_defect(tmp_path):
    with pytest.raises(ValueError, match="row with columns"):
        write_csv(tmp_path / "a.csv", [{"a": 1, "b": 2}], ("a",))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,c\n1,2\n", "has no column 'b' in its first line"),
        ("", "has no column 'a'"),
        ("a,b\n1,2\n3\n", "line 3: has not as many cells"),
        ("a,b\n1,2,3\n", "line 2: has not as many cells"),
    ],
)
def test_csv_that_is_malformed_is_named_with_its_line(tmp_path, content, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_csv(tmp_path / "a.csv", ("a", "b"))


def test_json_is_readable(tmp_path):
    write_json(tmp_path / "a.json", {"a": 1})
    text = (tmp_path / "a.json").read_text()
    assert text.endswith("}\n") and json.loads(text) == {"a": 1} and "\n  " in text
