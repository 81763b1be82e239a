import errno
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm.corpus import text as text_module
from nplm.corpus.documents import End, Passage
from nplm.corpus.tokenize import _in_order, split_brown, split_raw, tokenize
from nplm.corpus.vocabulary import read_tokens
from nplm.errors import InputError

# What a UTF-8 file can hold; NUL bytes and reserved symbols are refused. White space of every kind comes often.
TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0<"),
        st.sampled_from("\r\n\t\v\f\x1c\x1d\x1e\x85\xa0\u2003\u2028\u2029\u3000\ufeff.-'’aß"),
    )
)


def tokenized(tmp_path, *contents, source="text", **options):
    """The lines of tokens.txt for files with these contents (bytes), without blank ones, and what was counted."""
    written, counts = written_for(tmp_path, *contents, source=source, **options)
    return [line for line in written.split("\n") if line], counts


def written_for(tmp_path, *contents, source="text", **options):
    """tokens.txt for files with these contents (bytes), and what was counted."""
    files = []
    for number, content in enumerate(contents):
        files.append(tmp_path / f"text{number}.txt")
        files[-1].write_bytes(content)
    counts, _ = tokenize(files, tmp_path / "tokens.txt", source, **options)
    return (tmp_path / "tokens.txt").read_bytes().decode(), counts


def test_the_word_part_ends_at_the_last_slash():
    assert split_brown("\tThe/at 1/2/cd //in AAb//nn ./. and/or/cc") == ["The", "1/2", "/", "AAb/", ".", "and/or"]


@pytest.mark.parametrize("tagged", ["word", "/tag", "word/", "/"])
def test_what_is_not_word_and_tag_is_named_with_its_place(tmp_path, tagged):
    with pytest.raises(InputError, match=re.escape(f"text0.txt:3: '{tagged}' is not word/tag")):
        tokenized(tmp_path, f"The/at\n\njury/nn {tagged} said/vbd\n".encode(), source="brown", tokenizer="word/tag")
    assert not (tmp_path / "tokens.txt").exists()


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
    written, counts = tokenized(tmp_path, *TWO_TEXTS, source="brown", tokenizer="word/tag", marks=marks)
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


@pytest.mark.parametrize(("tokenizer", "split"), [("spaces", str.split), ("raw", split_raw)])
@settings(deadline=None)
@given(content=TEXT)
def test_what_is_written_is_read_back_as_the_same_tokens(tmp_path_factory, tokenizer, split, content):
    tmp_path = tmp_path_factory.mktemp("round_trip")
    content = "first " + content
    lines = re.split("\r\n|\r|\n", content.replace("\ufeff", " "))
    expected = [split(line) for line in lines if split(line)]
    tokenized(tmp_path, content.encode(), tokenizer=tokenizer)
    assert [words for words, _ in read_tokens(tmp_path / "tokens.txt") if words] == expected


@settings(deadline=None)
@given(content=TEXT, block=st.integers(1, 5))
def test_result_does_not_depend_on_where_the_reader_cuts(tmp_path_factory, content, block):
    tmp_path = tmp_path_factory.mktemp("blocks")
    content = ("erst " + content).encode()
    whole = tokenized(tmp_path, content, marks="paragraph")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "BLOCK", block)
        assert tokenized(tmp_path, content, marks="paragraph") == whole


def test_a_byte_order_mark_from_an_entity_is_counted_as_it_is_read_back(tmp_path):
    lines, counts = tokenized(tmp_path, b"<DOC><TEXT>a&#xFEFF;b</TEXT></DOC>", source="sgml")
    assert lines == ["a b"] and counts.tokens == 2


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
        (b"good\r\rb\xffd", r"text0.txt:3: byte 7 \(0xff\) is not UTF-8; state the right encoding"),
        ("über\nübe".encode() + b"\xc3", r"text0.txt:2: byte 10 \(0xc3\) is not UTF-8"),
        (b"a\r\nb\0c", r"text0.txt:2: byte 4 \(0x00\) is a NUL byte"),
        ("text".encode("utf-16"), r"text0.txt:1: byte 0 .* state that encoding \(encoding: utf-16"),
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


def test_a_blank_line_stands_after_every_document(tmp_path):
    assert written_for(tmp_path, b"a b\n\nc\n\n\n", b"d")[0] == "a b\nc\n\nd\n\n"


def test_a_blank_line_may_end_a_document_and_a_line_a_paragraph(tmp_path):
    content = b"\n \na b\nc\n\n\t\nd\n"
    written, counts = written_for(tmp_path, content, b"e", documents="blank_line", marks="text+paragraph")
    assert written == "<text> <paragraph> a b\n<paragraph> c\n\n<text> <paragraph> d\n\n<text> <paragraph> e\n\n"
    assert (counts.texts, counts.paragraphs, counts.sentences, counts.tokens) == (3, 4, 4, 12)


@pytest.mark.parametrize("tokenizer", ["raw", "treebank"])
@pytest.mark.parametrize("documents", ["file", "blank_line"])
def test_the_number_of_processes_changes_nothing(tmp_path, monkeypatch, tokenizer, documents):
    monkeypatch.setattr("nplm.corpus.tokenize.BLOCK", 500)  # many batches
    paragraphs = [f"It's “{number}”. So… what?\nA sóft\u00adhyphen, no. {number}\n\n" for number in range(200)]
    options = {"tokenizer": tokenizer, "documents": documents, "characters": "clean", "marks": "text+paragraph"}
    results = []
    for processes in (1, 3):
        counts, changes = tokenize(written_files(tmp_path, paragraphs), tmp_path / "t", **options, processes=processes)
        results.append(((tmp_path / "t").read_text(), counts, changes))
    assert results[0] == results[1]
    assert results[0][2]["soft_hyphens"] == 200


def written_files(tmp_path, paragraphs):
    files = [tmp_path / "first.txt", tmp_path / "second.txt"]
    for file, part in zip(files, (paragraphs[:50], paragraphs[50:]), strict=True):
        file.write_text("".join(part))
    return files


def test_an_error_in_another_process_names_file_and_line(tmp_path, monkeypatch):
    monkeypatch.setattr("nplm.corpus.tokenize.BLOCK", 500)
    (tmp_path / "a.txt").write_text("a b c\n" * 1000 + "a <rare> c\n" + "a b c\n" * 1000)
    with pytest.raises(InputError, match=r"a.txt:1001: '<rare>' is a reserved symbol"):
        tokenize([tmp_path / "a.txt"], tmp_path / "tokens.txt", processes=2)
    assert not (tmp_path / "tokens.txt").exists()


@pytest.fixture
def long_run(tmp_path):
    """The command at work in three processes, its first output written; what is left of it ends with the test."""
    (tmp_path / "a.txt").write_text("Don't stop, word.\n" * 2_000_000)
    arguments = ["--source", "text", "--input", "a.txt", "--output", "out/tokens.txt", "--processes", "2"]
    with subprocess.Popen(
        [sys.executable, "-m", "nplm", "tokenize-corpus", *arguments, "--tokenizer", "raw"],
        cwd=tmp_path,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Where the tests themselves run in the background, Ctrl-C is ignored, and would be there too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as run:
        try:
            wait_for(lambda: run.poll() is not None or something_written(tmp_path / "out"))
            assert run.poll() is None, run.stdout.read()
            yield run
        finally:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)


def wait_for(condition) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def something_written(folder: Path) -> bool:
    with suppress(FileNotFoundError):  # a file that is there and gone, by which the command tries to write
        return any(file.stat().st_size for file in folder.glob(".*"))
    return False


def children(run) -> list[str]:
    """The processes that a run has started, in their order."""
    return Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()


def get_stuck_in_writing(run) -> None:
    """While the first process stands still, the others have nobody who takes what they have done."""

    def all_sleep() -> bool:
        return all(
            Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "S" for child in children(run)
        )

    run.send_signal(signal.SIGSTOP)
    for _ in range(5):  # not only for a moment
        wait_for(all_sleep)
        time.sleep(0.1)


lists_children = pytest.mark.skipif(
    not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists(), reason="the system lists no children"
)


@pytest.mark.parametrize(
    ("number", "to_all", "writing", "status"),
    [
        (signal.SIGTERM, True, False, 143),
        pytest.param(signal.SIGTERM, True, True, 143, marks=lists_children),
        (signal.SIGINT, True, False, 130),
        (signal.SIGKILL, False, False, -signal.SIGKILL),
    ],
)
def test_a_signal_ends_all_processes_without_a_traceback_and_leaves_no_output(
    tmp_path, long_run, number, to_all, writing, status
):
    if writing:
        get_stuck_in_writing(long_run)
    (os.killpg if to_all else os.kill)(long_run.pid, number)
    if writing:
        long_run.send_signal(signal.SIGCONT)
    said, _ = long_run.communicate(timeout=60)  # every process of the run has the pipe open until it ends
    assert long_run.returncode == status
    assert "Traceback" not in said
    assert number == signal.SIGKILL or not list(tmp_path.glob("out/*")) + list(tmp_path.glob("out/.*"))


@lists_children
@pytest.mark.parametrize("writing", [False, True])
def test_a_killed_process_is_an_error_of_one_line(tmp_path, long_run, writing):
    if writing:
        get_stuck_in_writing(long_run)
    os.kill(int(children(long_run)[-1]), signal.SIGKILL)
    long_run.send_signal(signal.SIGCONT)
    said, _ = long_run.communicate(timeout=60)
    assert long_run.returncode == 1
    errors = re.findall("^(?!nplm tokenize-corpus).+", said, re.M)
    assert len(errors) == 1
    assert errors[0].startswith("nplm: error: a process that tokenises ended by SIGKILL")
    assert not list(tmp_path.glob("out/*")) + list(tmp_path.glob("out/.*"))


def fail_in_other_processes(texts):
    raise ZeroDivisionError("of the work")


def test_what_fails_in_another_process_is_raised_here_with_its_traceback():
    """By a script too, which does not end the interpreter, and keeps what was raised."""
    passages = [[(Path("a"), Passage(1, "words", End.DOCUMENT))] for _ in range(5)]
    with pytest.raises(ZeroDivisionError) as raised:
        list(_in_order(iter(passages), fail_in_other_processes, 2, Counter()))
    assert "in fail_in_other_processes" in raised.value.__notes__[0]
    assert not multiprocessing.active_children()


def test_processes_that_cannot_be_started_are_an_error_and_leave_none(tmp_path, monkeypatch):
    monkeypatch.setattr("nplm.corpus.tokenize.BLOCK", 500)
    (tmp_path / "a.txt").write_text("a b c\n" * 1000)
    started = []

    def start(process, start=multiprocessing.context.SpawnProcess.start):
        if started:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        start(process)
        started.append(process)

    monkeypatch.setattr(multiprocessing.context.SpawnProcess, "start", start)
    with pytest.raises(InputError, match="cannot start 3 processes to tokenise: Too many open files; lower --proc"):
        tokenize([tmp_path / "a.txt"], tmp_path / "tokens.txt", processes=3)
    assert started[0].exitcode == -signal.SIGKILL


def test_it_works_in_a_thread_and_with_more_processes_than_there_is_work(tmp_path, monkeypatch):
    monkeypatch.setattr("nplm.corpus.tokenize.BLOCK", 500)
    (tmp_path / "a.txt").write_text("a b c\n" * 300)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(tokenize, [tmp_path / "a.txt"], tmp_path / "tokens.txt", processes=9).result()
    assert (tmp_path / "tokens.txt").read_text() == "a b c\n" * 300 + "\n"


def test_a_file_of_which_cleaning_leaves_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"text1.txt: holds nothing that would remain after cleaning"):
        tokenized(tmp_path, b"a", "\u200b \xad".encode(), characters="clean")


def test_command_line_records_how_a_corpus_was_read_and_what_was_changed(tmp_path, run, capsys):
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 \x93x\x81")
    arguments = ["--source", "text", "--input", tmp_path, "--output", tmp_path / "tokens.txt", "--encoding", "cp1252"]
    arguments += ["--bad-bytes", "replace", "--characters", "clean", "--tokenizer", "raw"]
    assert run("tokenize-corpus", *arguments, "--record", tmp_path / "record.json") == 0
    record = json.loads((tmp_path / "record.json").read_text())
    assert (tmp_path / "tokens.txt").read_text() == 'café " x \ufffd\n\n'
    assert record["source"] == str(tmp_path / "a.txt")
    assert (record["encoding"], record["characters"], record["documents"]) == ("cp1252", "clean", "file")
    assert (record["bytes_replaced"], record["curly_quotes"], record["tokens"]) == (1, 1, 4)
    assert "bytes_replaced 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("input", "output", "message"),
    [
        ("", "tokens.txt", "nplm: error: an argument is empty"),
        ("missing\nfile", "tokens.txt", "nplm: error: missing\\nfile: no such file"),
        ("a.txt", "folder\n", "nplm: error: folder\\n: is a folder"),
    ],
)
def test_odd_names_end_in_one_line(tmp_path, monkeypatch, run, capsys, input, output, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "folder\n").mkdir()
    assert run("tokenize-corpus", "--source", "text", "--input", input, "--output", output) == 1
    error = capsys.readouterr().err
    assert error.startswith(message) and error.count("\n") == 1


def test_a_name_that_is_not_utf8_may_be_written(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a")
    assert run("tokenize-corpus", "--source", "text", "--input", "a.txt", "--output", "\udcff") == 0
    assert (tmp_path / "\udcff").read_text() == "a\n\n"


def test_command_line_refuses_an_encoding_that_is_none(tmp_path, run, capsys):
    (tmp_path / "a.txt").write_text("a")
    arguments = ["--source", "text", "--input", tmp_path, "--output", tmp_path / "tokens.txt", "--encoding", "zlib"]
    assert run("tokenize-corpus", *arguments) == 1
    message = capsys.readouterr().err
    assert message.startswith("nplm: error: encoding zlib: Python has no text encoding of this name")
    assert message.count("\n") == 1
