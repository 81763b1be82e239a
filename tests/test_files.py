import errno
import json
import os
import socket
import stat

import pytest

from nplm.errors import InputError
from nplm.files import (
    complete_file,
    read_csv,
    read_json,
    read_text,
    require_writable,
    write_csv,
    write_json,
    write_text,
)


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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "no such file"),
        ("file/inside", "no such file"),
        ("n" * 300, "no such file"),
        (".", "is a folder"),
        ("pipe", "is no regular file"),
    ],
)
def test_what_is_no_file_to_read_is_named(tmp_path, name, message):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=message):
        read_text(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".", "is a folder; give the file"),
        ("file/inside", "cannot be written (Not a directory)"),
        ("n" * 300, "cannot be written (File name too long)"),
        ("file/a/b/c", "cannot be written (Not a directory)"),
        ("pipe", "is no regular file"),
        ("link_to_pipe", "is no regular file"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(tmp_path, name, message):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    os.symlink("pipe", tmp_path / "link_to_pipe")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError) as error, complete_file(tmp_path / name):
        pytest.fail("the work began")
    assert str(error.value).startswith(f"{tmp_path / name}: {message}")
    assert sorted(tmp_path.iterdir()) == before and stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


def test_a_full_disk_is_an_error_of_the_output_and_keeps_the_old_file(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    with (
        pytest.raises(InputError, match=r"a.txt: cannot be written \(No space left"),
        complete_file(tmp_path / "a.txt"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.txt", "old")]


def test_an_error_of_another_file_is_not_blamed_on_the_output(tmp_path):
    with pytest.raises(FileNotFoundError), complete_file(tmp_path / "a.txt"):
        os.stat(tmp_path / "missing")


def test_what_a_link_leads_to_is_written(tmp_path):
    (tmp_path / "disk").mkdir()
    os.symlink("disk/a.txt", tmp_path / "a.txt")
    for text in ("first", "second"):
        write_text(tmp_path / "a.txt", text)
        assert (tmp_path / "a.txt").is_symlink() and (tmp_path / "disk/a.txt").read_text() == text


def test_partial_files_of_killed_processes_are_removed_and_no_others(tmp_path):
    ended = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(ended, 0)
    names = [f".a.txt.partial-{host}-{id}" for host in (socket.gethostname(), "other") for id in (ended, os.getppid())]
    for name in names:
        (tmp_path / name).touch()
    write_text(tmp_path / "a.txt", "a")
    assert {p.name for p in tmp_path.iterdir()} == {"a.txt", *names[1:]}


@pytest.mark.parametrize(
    ("outputs", "inputs", "message"),
    [
        (["a", "b", "folder/../a"], [], "folder/../a: is another output as well"),
        (["link"], ["a"], "link: is an input as well"),
    ],
)
def test_an_output_is_not_another_one_or_an_input(tmp_path, monkeypatch, outputs, inputs, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.symlink("a", "link")
    with pytest.raises(InputError, match=message):
        require_writable(outputs, inputs)
    require_writable([None, "a", None, "b"], ["c"])
    assert {p.name for p in tmp_path.iterdir()} == {"folder", "link"}


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
