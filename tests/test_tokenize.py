import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm.cli import main
from nplm.corpus import text as text_module
from nplm.corpus.tokenize import brown_files, expand_paths, split_brown, split_raw, tokenize
from nplm.corpus.vocabulary import read_tokens
from nplm.errors import InputError

# What a UTF-8 file can hold; NUL bytes and reserved symbols are refused. White space of every kind comes often.
TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0<"),
        st.sampled_from("\r\n\t\v\f\x1c\x1d\x1e\x85\xa0\u2003\u2028\u2029\u3000\ufeff.-'’aß"),
    )
)


def tokenized(tmp_path, *contents, split=str.split, marks="none"):
    """The lines of tokens.txt for files with these contents (bytes), and what was counted."""
    files = []
    for number, content in enumerate(contents):
        files.append(tmp_path / f"text{number}.txt")
        files[-1].write_bytes(content)
    counts = tokenize(files, split, marks, tmp_path / "tokens.txt")
    return (tmp_path / "tokens.txt").read_bytes().decode().split("\n")[:-1], counts


def test_the_word_part_ends_at_the_last_slash():
    assert split_brown("\tThe/at 1/2/cd //in AAb//nn ./. and/or/cc") == ["The", "1/2", "/", "AAb/", ".", "and/or"]


@pytest.mark.parametrize("tagged", ["word", "/tag", "word/", "/"])
def test_what_is_not_word_and_tag_is_named_with_its_place(tmp_path, tagged):
    with pytest.raises(InputError, match=re.escape(f"text0.txt:3: '{tagged}' is not word/tag")):
        tokenized(tmp_path, f"The/at\n\njury/nn {tagged} said/vbd\n".encode(), split=split_brown)
    assert not (tmp_path / "tokens.txt").exists()


def test_only_the_texts_of_a_brown_folder_are_read_in_name_order(tmp_path):
    for name in ("cb01", "ca10", "ca02", "README", "cats.txt", "cz01", "retrieved.json"):
        (tmp_path / name).touch()
    assert [file.name for file in brown_files(tmp_path)] == ["ca02", "ca10", "cb01"]


TWO_TEXTS = (b"\n\n\tA/at b/nn\n\tc/nn\n\n \t\n\td/nn\n\n", b"e/nn\n")


@pytest.mark.parametrize(
    ("marks", "lines"),
    [
        ("none", ["A b", "c", "d", "e"]),
        ("paragraph", ["<paragraph> A b", "c", "<paragraph> d", "<paragraph> e"]),
        ("text+paragraph", ["<text> <paragraph> A b", "c", "<paragraph> d", "<text> <paragraph> e"]),
    ],
)
def test_marks_stand_before_the_first_token_of_texts_and_paragraphs(tmp_path, marks, lines):
    written, counts = tokenized(tmp_path, *TWO_TEXTS, split=split_brown, marks=marks)
    assert written == lines
    assert (counts.texts, counts.paragraphs, counts.sentences) == (2, 3, 4)
    assert counts.tokens == sum(len(line.split()) for line in lines)


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", ["", "{end}", "{end}{end}"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_a_byte_order_mark_and_the_last_line(tmp_path, bom, last, end):
    content = bom + f"a b{{end}}c{{end}}{{end}}d{last}".format(end=end).encode()
    assert tokenized(tmp_path, content, marks="paragraph")[0] == ["<paragraph> a b", "c", "<paragraph> d"]


def test_all_white_space_separates_tokens_and_only_line_ends_separate_lines(tmp_path):
    content = "a\u00a0b\u2028c\u2029d\x85e\x1cf\vg\fh\u3000i\ufeffj\u200bk\u00adl".encode()
    assert tokenized(tmp_path, content)[0] == ["a b c d e f g h i j\u200bk\u00adl"]


@pytest.mark.parametrize("split", [str.split, split_raw])
@settings(deadline=None)
@given(content=TEXT)
def test_what_is_written_is_read_back_as_the_same_tokens(tmp_path_factory, split, content):
    tmp_path = tmp_path_factory.mktemp("round_trip")
    content = "first " + content
    lines = re.split("\r\n|\r|\n", content.replace("\ufeff", " "))
    expected = [split(line) for line in lines if split(line)]
    tokenized(tmp_path, content.encode(), split=split)
    assert [words for words, _ in read_tokens(tmp_path / "tokens.txt")] == expected


@settings(deadline=None)
@given(content=TEXT, block=st.integers(1, 5))
def test_result_does_not_depend_on_where_the_reader_cuts(tmp_path_factory, content, block):
    tmp_path = tmp_path_factory.mktemp("blocks")
    content = ("erst " + content).encode()
    whole = tokenized(tmp_path, content, marks="paragraph")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "BLOCK", block)
        assert tokenized(tmp_path, content, marks="paragraph") == whole


def test_a_line_longer_than_a_block_is_one_sentence(tmp_path):
    words = [f"word{number}" for number in range(300_000)]
    lines, counts = tokenized(tmp_path, " ".join(words).encode() + b" ")
    assert len(lines) == 1 and lines[0].split() == words
    assert (counts.sentences, counts.tokens) == (1, 300_000)


@settings(deadline=None)
@given(TEXT)
def test_raw_tokens_lose_and_change_no_character(content):
    tokens = split_raw(content)
    assert "".join(tokens) == "".join(content.split())
    assert all(token and not any(character.isspace() for character in token) for token in tokens)


@pytest.mark.parametrize(
    ("raw", "tokens"),
    [
        ('He said: "No." Then left.', 'He said : " No . " Then left .'),
        ("don't over-all O'Neill AT&T and/or", "don't over-all O'Neill AT&T and/or"),
        ("the dogs' 'quoted' words", "the dogs ' ' quoted ' words"),
        ("$1,234.56, 10:30; 3.5% (x)", "$ 1,234.56 , 10:30 ; 3.5 % ( x )"),
        ("one,two yes--no wait...what?!", "one , two yes -- no wait ... what ? !"),
        ("In the U.S. at 5 p.m. today.", "In the U.S. at 5 p.m. today ."),
        ("“Größe”—naïve, हिन्दी।", "“ Größe ” — naïve , हिन्दी ।"),
        ("👨‍👩‍👧👍🏽!", "👨‍👩‍👧 👍🏽 !"),
    ],
)
def test_raw_text_is_split_as_brown_is(raw, tokens):
    assert split_raw(raw) == tokens.split(" ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"text0.txt: is empty"),
        (b"\xef\xbb\xbf\n \r\n", r"text0.txt: holds nothing but white space"),
        (b"good\r\rb\xffd", r"text0.txt:3: byte 7 \(0xff\) is not UTF-8; give UTF-8 text \(iconv -f ITS_ENCODING"),
        ("über\nübe".encode() + b"\xc3", r"text0.txt:2: byte 10 \(0xc3\) is not UTF-8"),
        (b"a\r\nb\0c", r"text0.txt:2: byte 4 \(0x00\) is a NUL byte"),
        ("text".encode("utf-16"), r"text0.txt:1: byte \d .* \(iconv -f UTF-16 -t UTF-8 converts\)"),
        (b"a b\n<rare> c\n", r"text0.txt:2: '<rare>' is a reserved symbol; replace it"),
        (b"a\n\n<paragraph>\n", r"text0.txt:3: '<paragraph>' is a reserved symbol"),
        (b"<text>", r"text0.txt:1: '<text>' is a reserved symbol"),
    ],
)
def test_bad_text_ends_in_one_line_with_its_place(tmp_path, content, message):
    with pytest.raises(InputError, match=message) as error:
        tokenized(tmp_path, content)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "tokens.txt").exists()


def test_the_place_of_a_bad_byte_is_right_beyond_the_first_block(tmp_path):
    good = "ein Wörterbuch\n".encode() * 100_000
    with pytest.raises(InputError, match=rf"text0.txt:100001: byte {len(good) + 1} \(0xe4\) is not UTF-8"):
        tokenized(tmp_path, good + b"W\xe4rme\n" + good)


def test_globs_are_sorted_and_paths_keep_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "c.txt", "z[1].txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.txt").mkdir()
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


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["nplm", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def test_command_line_names_a_folder_given_as_text_in_one_line(tmp_path, monkeypatch, capsys):
    arguments = ["--source", "text", "--input", tmp_path, "--output", tmp_path / "tokens.txt"]
    assert run(monkeypatch, "tokenize-corpus", *arguments) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"nplm: error: {tmp_path}: cannot be read (Is a directory)")
    assert message.count("\n") == 1
