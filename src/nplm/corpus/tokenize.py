"""From a corpus to tokens.txt: one sentence a line, tokens separated by single spaces, marks as tokens of their own."""

import gc
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from multiprocessing.connection import Connection
from pathlib import Path
from traceback import format_exception

import regex

from nplm.corpus.characters import clean
from nplm.corpus.documents import End, Passage, plain_passages
from nplm.corpus.sgml import newswire_passages
from nplm.corpus.text import BLOCK, read_pieces
from nplm.corpus.vocabulary import PARAGRAPH, SPECIAL_SYMBOLS, TEXT
from nplm.errors import InputError
from nplm.files import complete_file
from nplm.processes import Other, how_ended, kill_others, signals_blocked, start_other

MARKS = {"none": (), "paragraph": (PARAGRAPH,), "text+paragraph": (TEXT, PARAGRAPH)}
"""Value of the option `marks` -> the marks that enter the stream, each before the first token of its text, paragraph"""


RESERVED = re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, SPECIAL_SYMBOLS))})(?!\S)")


@dataclass
class TokenCounts:
    """What a tokenised corpus holds, counted while it is written; `tokens` includes the marks."""

    texts: int = 0
    paragraphs: int = 0
    sentences: int = 0
    tokens: int = 0


class BadText(Exception):
    """What a tokeniser refuses: the number of the text in its list, and what is wrong with it."""


def split_brown(text: str) -> list[str]:
    """The words of `word/tag word/tag ...`; a word may hold a slash itself (`1/2/cd`, `//in`).

    Raises ValueError where something is not word/tag.
    """
    words = []
    for tagged in text.split():
        word, _, tag = tagged.rpartition("/")
        if not (word and tag):
            raise ValueError(f"{tagged[:60]!r} is not word/tag; correct it")
        words.append(word)
    return words


RAW_TOKEN = regex.compile(
    r"""
      (?: \p{L}\p{M}* \. ){2,}                             # an abbreviation of single letters: U.S. a.m.
    | [^\s\p{P}\p{S}]+                                     # a word or a number,
      (?: (?: [-‐'’.&/_·] | (?<=\p{N}) [,:] (?=\p{N}) )    # with single signs inside: over-all, don't, and/or, 1,000.5
          [^\s\p{P}\p{S}]+ )*
    | (\X) \1*                                             # punctuation or a symbol, repeated or not: . -- ... ''
    """,
    regex.VERBOSE,
)


def split_raw(text: str) -> list[str]:
    """The tokens of untokenised text: punctuation is split off words, as in Brown; no character is lost or changed.

    Hyphens, apostrophes and the like inside a word stay in it (over-all, don't), and so do the full stops of U.S.
    Unlike the Treebank tokenisers, it needs no sentence splitter before it: full stops are split off all along a line.
    """
    return [match.group() for part in text.split() for match in RAW_TOKEN.finditer(part)]


def _lines_as_sentences(split: Callable[[str], list[str]], texts: list[str]) -> list[list[str]]:
    sentences = []
    for number, text in enumerate(texts):
        try:
            words = split(text)
        except ValueError as malformed:
            raise BadText(number, str(malformed)) from None
        sentences.append([" ".join(words)] if words else [])
    return sentences


def _treebank(texts: list[str]) -> list[list[str]]:
    from nplm.corpus.treebank import split_sentences  # takes a second to import

    return split_sentences(texts)


Tokenizer = Callable[[list[str]], list[list[str]]]
"""Texts -> the sentences of each, as tokens with single spaces between; BadText for what it refuses"""
TOKENIZERS: dict[str, Tokenizer] = {
    "spaces": partial(_lines_as_sentences, str.split),
    "raw": partial(_lines_as_sentences, split_raw),
    "treebank": _treebank,
    "word/tag": partial(_lines_as_sentences, split_brown),
}
"""Value of the option `tokenizer`, and Brown's own format"""


def read_passages(
    file: Path, source: str, tokenizer: str, encoding: str, bad_bytes: str, documents: str, counts: Counter[str]
) -> Iterator[Passage]:
    """The passages of a file of any source; what is replaced or left out on the way is added to `counts`."""
    pieces = read_pieces(file, encoding, bad_bytes, counts)
    if source == "sgml":
        return newswire_passages(file, pieces, counts)
    return plain_passages(pieces, documents, join_lines=tokenizer == "treebank")


def tokenize(
    files: Sequence[Path],
    output: str | Path,
    source: str = "text",
    tokenizer: str = "spaces",
    marks: str = "none",
    encoding: str = "utf-8",
    bad_bytes: str = "error",
    documents: str = "file",
    characters: str = "keep",
    processes: int = 1,
) -> tuple[TokenCounts, Counter[str]]:
    """Write the tokens of the files, in order: a sentence a line, and a blank line after every document.

    The number of processes changes nothing in the output, which is written as a whole or not at all.
    Returns what the corpus holds, and how often something was replaced, cleaned or left out, by what it was.
    Raises InputError for bad input, naming file and line.
    """
    counts, changes = TokenCounts(), Counter()
    reading = (source, tokenizer, encoding, bad_bytes, documents, changes)
    passages = ((file, passage) for file in files for passage in _not_none(file, read_passages(file, *reading)))
    work = partial(_sentences, tokenizer, characters)
    with_tokens: set[Path] = set()
    with complete_file(output) as partial_file, open(partial_file, "w", encoding="utf-8", newline="\n") as out:
        ended, line_open = End.DOCUMENT, False  # what ended since the last token
        for file, passage, sentences in _in_order(_batches(passages), work, processes, changes):
            if sentences:
                if ended >= End.PARAGRAPH:
                    here = [mark for mark in MARKS[marks] if mark != TEXT or ended == End.DOCUMENT]
                    sentences[0] = " ".join([*here, sentences[0]])
                    counts.paragraphs += 1
                    counts.texts += ended == End.DOCUMENT
                text = "\n".join(sentences)
                out.write(" " + text if line_open else text)
                counts.tokens += text.count(" ") + len(sentences)
                counts.sentences += len(sentences) - line_open
                ended, line_open = End.NOTHING, True
                with_tokens.add(file)
            if line_open and passage.end >= End.SENTENCE:
                out.write("\n")
                line_open = False
            if passage.end == End.DOCUMENT and ended < End.DOCUMENT:
                out.write("\n")
            ended = max(ended, passage.end)
        for file in files:
            if file not in with_tokens:
                raise InputError(f"{file}: holds nothing that would remain after cleaning; leave it out")
    return counts, +changes


def _not_none(file: Path, passages: Iterator[Passage]) -> Iterator[Passage]:
    passage = next(passages, None)
    if passage is None:
        raise InputError(f"{file}: holds nothing but white space; give a file that holds text")
    yield passage
    yield from passages


Placed = tuple[Path, Passage]
Work = Callable[[list[str]], tuple[list[list[str]], Counter[str]]]
Answer = tuple[list[list[str]], Counter[str]] | Exception


def _batches(passages: Iterable[Placed]) -> Iterator[list[Placed]]:
    """Passages together, as many as make a block, so that work on them is worth sending to another process."""
    batch: list[Placed] = []
    length = 0
    for placed in passages:
        batch.append(placed)
        length += len(placed[1].text)
        if length >= BLOCK:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


def _sentences(tokenizer: str, characters: str, texts: list[str]) -> tuple[list[list[str]], Counter[str]]:
    """The sentences of each text, and what cleaning changed. Raises BadText."""
    changes: Counter[str] = Counter()
    if characters == "clean":
        texts = [clean(text, changes) for text in texts]
    gc.disable()  # so many lists are made, and none in a cycle, that looking for cycles takes a third of the time
    try:
        sentences = TOKENIZERS[tokenizer](texts)
    finally:
        gc.enable()
    for number, lines in enumerate(sentences):
        for line in lines:
            if "<" in line and (symbol := RESERVED.search(line)):
                raise BadText(number, f"'{symbol[0]}' is a reserved symbol; replace it in the text")
    return sentences, changes


def _in_order(
    batches: Iterator[list[Placed]], work: Work, processes: int, changes: Counter[str]
) -> Iterator[tuple[Path, Passage, list[str]]]:
    """(file, passage, its sentences) in the order of the batches, worked on in several processes if there are several.

    Only a batch for each process is read ahead. What the work changed is added to `changes`.
    """
    start = list(islice(batches, processes))
    batches = chain(start, batches)
    if len(start) < 2:
        answers = ((batch, _answer(work, _texts(batch))) for batch in batches)
    else:
        answers = _answers_of_processes(work, batches, len(start))
    with closing(answers):  # also where an exception that somebody keeps holds this frame
        for batch, answer in answers:
            if isinstance(answer, BadText):
                number, what = answer.args
                file, passage = batch[number]
                raise InputError(f"{file}:{passage.line}: {what}")
            if isinstance(answer, Exception):
                raise answer
            sentences, changed = answer
            changes.update(changed)
            for (file, passage), lines in zip(batch, sentences, strict=True):
                yield file, passage, lines


def _texts(batch: list[Placed]) -> list[str]:
    return [passage.text for _, passage in batch]


def _answer(work: Work, texts: list[str]) -> Answer:
    try:
        return work(texts)
    except Exception as error:
        return error


def _answers_of_processes(
    work: Work, batches: Iterator[list[Placed]], processes: int
) -> Iterator[tuple[list[Placed], Answer]]:
    """(batch, answer) in order: the processes have one batch each, in turn."""
    waiting: deque[tuple[list[Placed], Other]] = deque()
    with _other_processes(work, processes) as others:
        for batch in batches:
            if len(waiting) < processes:
                other, answered = others[len(waiting)], []
            else:
                before, other = waiting.popleft()
                answered = [(before, _received(other))]
            with suppress(OSError):  # of a process that has ended, which `_received` finds
                other[1].send(_texts(batch))
            waiting.append((batch, other))
            yield from answered  # while the process works on the next batch
        for batch, other in waiting:
            yield batch, _received(other)


def _received(other: Other) -> Answer:
    process, connection = other
    try:
        return connection.recv()
    except (EOFError, OSError):
        process.join()
        raise InputError(
            f"a process that tokenises ended {how_ended(process)}; if it was for lack of memory, lower --processes"
        ) from None


@contextmanager
def _other_processes(work: Work, number: int) -> Iterator[list[Other]]:
    """Processes that work, each with a connection to it.

    They end with the context, or after their batch with this process, even a killed one. Signals that stop the work may
    reach the whole group of processes; this one heeds them for all. Raises InputError where they cannot be started.
    """
    others: list[Other] = []
    try:
        try:
            with signals_blocked():
                for _ in range(number):
                    others.append(start_other(_serve, work))
        except OSError as error:
            raise InputError(
                f"cannot start {number} processes to tokenise: {error.strerror}; lower --processes"
            ) from None
        yield others
    finally:
        kill_others(others)


def _serve(work: Work, connection: Connection) -> None:
    """In another process: answer every batch, until the first process closes the connection or ends."""
    with suppress(EOFError, OSError):
        while True:
            answer = _answer(work, connection.recv())
            if isinstance(answer, Exception):
                answer.add_note("".join(format_exception(answer)))  # its traceback is not sent with it
            connection.send(answer)
