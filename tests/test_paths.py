import os

import pytest

from nplm.corpus.paths import brown_files, expand_paths
from nplm.errors import InputError


def test_only_the_texts_of_a_brown_folder_are_read_in_name_order(tmp_path):
    for name in ("cb01", "ca10", "ca02", "README", "cats.txt", "cz01", "retrieved.json"):
        (tmp_path / name).touch()
    assert [file.name for file in brown_files(tmp_path)] == ["ca02", "ca10", "cb01"]


def test_globs_are_sorted_and_paths_keep_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "c.txt", "z[1].txt"):
        (tmp_path / name).touch()
    names = [str(file) for file in expand_paths(["z[1].txt", "[a-b].txt", "c.txt"])]
    assert names == ["z[1].txt", "a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["missing.txt"], "missing.txt: no such file"),
        (["*.md"], r"\*.md: matches no file"),
        (["a.txt", "*.txt"], r"a.txt: is named twice, as a.txt \(by a.txt\) and by \*.txt"),
        (["a.txt", "a.txt"], "a.txt: is named twice"),
        (["a.txt", "./folder/../a.txt"], "folder/../a.txt: is named twice, as a.txt"),
        (["folder", "a.txt"], "a.txt: is named twice, as folder/link"),
        (["[af]*"], r"folder/link: is named twice, as a.txt \(by \[af\]\*\)"),
    ],
)
def test_paths_that_name_nothing_or_a_file_twice(tmp_path, monkeypatch, paths, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").touch()
    (tmp_path / "folder").mkdir()
    os.symlink("../a.txt", "folder/link")
    with pytest.raises(InputError, match=message):
        expand_paths(paths)


@pytest.mark.parametrize("name", [b"caf\xe9.txt", b"two\nlines", b"bell\a"])
def test_a_name_that_is_not_text_is_refused_in_one_line(tmp_path, name):
    (tmp_path / os.fsdecode(name)).touch()
    with pytest.raises(InputError, match="the name is not UTF-8 or holds a control character") as error:
        expand_paths([tmp_path])
    assert str(error.value).isascii() and "\n" not in str(error.value)


def test_a_folder_stands_for_all_files_below_it_named_or_matched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b/2.txt", "b/1/x.txt", "a.txt", ".hidden", "b/.hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for link in ("link.txt", "b/3.txt"):
        (tmp_path / ".elsewhere" / link).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".elsewhere" / link).touch()
        os.symlink(tmp_path / ".elsewhere" / link, link)
    below_b = ["b/1/x.txt", "b/2.txt", "b/3.txt"]
    assert [str(file) for file in expand_paths(["b"])] == below_b
    assert [str(file) for file in expand_paths(["[ab]*"])] == ["a.txt", *below_b]
    assert [str(file) for file in expand_paths([tmp_path / "**"])] == [
        str(tmp_path / name) for name in ["a.txt", *below_b, "link.txt"]
    ]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["*.txt"], "dangling.txt: is a link to nothing"),
        (["folder"], "folder/loop: is a link to a folder that it stands in"),
        (["empty"], "empty: holds no file"),
        (["em*"], r"em\*: matches no file"),
        (["pip*"], "pipe: is no regular file"),
        (["pipe"], "pipe: is no regular file"),
        ([""], ": no such file"),
        (["n" * 300], "n: no such file"),
    ],
)
def test_what_a_glob_or_folder_holds_is_not_left_out_silently(tmp_path, monkeypatch, paths, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").touch()
    os.symlink("nothing", "dangling.txt")
    os.symlink("../folder", "folder/loop")
    os.mkfifo("pipe")
    with pytest.raises(InputError, match=message):
        expand_paths(paths)
