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
        (["a.txt", "*.txt"], "a.txt: is named twice"),
    ],
)
def test_paths_that_name_nothing_or_a_file_twice(tmp_path, monkeypatch, paths, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").touch()
    with pytest.raises(InputError, match=message):
        expand_paths(paths)


def test_a_folder_stands_for_all_files_below_it_named_or_matched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b/2.txt", "b/1/x.txt", "a.txt", ".hidden", "b/.hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    os.symlink("b/2.txt", "link.txt")
    os.symlink("../a.txt", "b/3.txt")
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
        (["pip*"], "pipe: is not a file"),
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
