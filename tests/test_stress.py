"""Small real files, each of which is dirty in its own way. Every one gives a right result or an error of one line."""

import json
import os
import re
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("NPLM_STRESS_DATA", Path(__file__).parents[1] / "../shared/data/stress"))
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"NPLM_STRESS_DATA: no folder {FOLDER}")


def tokenized(tmp_path, run, capsys, name, *options, source="text"):
    """(tokens.txt, record) or (None, error message) of a file of the folder."""
    output, record = tmp_path / "tokens.txt", tmp_path / "record.json"
    arguments = ["--source", source, "--input", FOLDER / name, "--output", output, "--record", record, *options]
    if run("tokenize-corpus", *arguments):
        message = capsys.readouterr().err
        assert message.count("\n") == 1 and message.startswith("nplm: error: ")
        assert not output.exists()
        return None, message
    return output.read_text(encoding="utf-8"), json.loads(record.read_text())


def visible(text):
    """Text without white space and the quotation marks that the Treebank writes in its own way."""
    return re.sub("[\\s\ufeff\"'`]", "", text)


@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.glob("*")))
@pytest.mark.parametrize("tokenizer", ["spaces", "raw", "treebank"])
@pytest.mark.parametrize("characters", ["keep", "clean"])
def test_every_file_gives_all_its_words_or_one_line(tmp_path, run, capsys, name, tokenizer, characters):
    options = ["--tokenizer", tokenizer, "--characters", characters, "--bad-bytes", "replace"]
    tokens, record = tokenized(tmp_path, run, capsys, name, *options)
    if tokens is None:
        assert name == "empty.txt"
        return
    assert record["tokens"] == len(tokens.split())
    text = (FOLDER / name).read_bytes().decode("utf-8-sig", "replace").replace("\0", "\ufffd")
    if characters == "keep":
        assert visible(tokens) == visible(text)
    else:  # what is left of letters and digits of ASCII is at least what there was
        for character in "aeiou0123456789":
            assert tokens.count(character) >= text.count(character)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("empty.txt", "empty.txt: is empty"),
        ("nul_bytes_pickle.dat", "nul_bytes_pickle.dat:1: byte 43 (0x00) is a NUL byte"),
        ("cp1252_mozilla.html", "cp1252_mozilla.html:5: byte 416 (0xa3) is not UTF-8"),
        ("utf16le_bom.srt", "utf16le_bom.srt:1: byte 0 (0xff) is not UTF-8; this looks like UTF-16"),
    ],
)
def test_what_is_not_utf8_text_is_refused(tmp_path, run, capsys, name, message):
    assert message in tokenized(tmp_path, run, capsys, name)[1]


def test_utf16_and_utf8_with_a_byte_order_mark_give_the_same(tmp_path, run, capsys):
    utf16, _ = tokenized(tmp_path, run, capsys, "utf16le_bom.srt", "--encoding", "utf-16")
    utf8, _ = tokenized(tmp_path, run, capsys, "utf8_bom.srt")
    assert utf16.startswith("1\n00:00:06,500 --> 00:00:09,000\nAbout 2 months ago")
    assert utf16.startswith(utf8.rstrip()[:500])


def test_cp1252(tmp_path, run, capsys):
    tokens, _ = tokenized(tmp_path, run, capsys, "cp1252_mozilla.html", "--encoding", "cp1252")
    assert "to lift £825. not bad for a £2 bet." in tokens


def test_cr_ends_a_line(tmp_path, run, capsys):
    _, record = tokenized(tmp_path, run, capsys, "cr_only_long_line.csv", "--tokenizer", "raw")
    assert record["sentences"] == (FOLDER / "cr_only_long_line.csv").read_bytes().count(b"\r") == 986


def test_clean_characters(tmp_path, run, capsys):
    options = ["--characters", "clean", "--tokenizer", "treebank"]
    _, record = tokenized(tmp_path, run, capsys, "soft_hyphen.md", *options)
    assert record["soft_hyphens"] == 1
    _, record = tokenized(tmp_path, run, capsys, "line_separator_u2028.md", *options)
    assert record["line_separators"] == 1
    tokens, record = tokenized(tmp_path, run, capsys, "udhr_arabic_indic_mly_arab.txt", *options)
    assert record["digits"] == 66 and "١" not in tokens
    tokens, _ = tokenized(tmp_path, run, capsys, "made_number_forms.txt", *options)
    assert "-- - ... ... 123 456 123 123 Ⅷ ① 01" in tokens


def test_newswire(tmp_path, run, capsys):
    options = ["--tokenizer", "treebank", "--marks", "text+paragraph"]
    tokens, record = tokenized(tmp_path, run, capsys, "sgml_entities_reuters.sgm", *options, source="sgml")
    assert (record["texts"], record["sign_offs_left_out"]) == (40, 35)
    assert "General Motors Corp < GM > in contract negotiations ." in tokens
    assert "<text> <paragraph> Huge oil platforms dot the Gulf like beacons -- usually" in tokens
    assert not any(word in tokens for word in ("&lt;", "TITLE", "REUTER", "\x03", "BAHRAIN", "DOT"))
