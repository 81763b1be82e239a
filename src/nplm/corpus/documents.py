"""Documents as passages: their text in order, with what ends where a passage ends."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from nplm.corpus.text import BLOCK, Piece


class End(IntEnum):
    """What ends with a passage: a paragraph's end also ends a sentence, a document's end all three."""

    NOTHING = 0
    SENTENCE = 1
    PARAGRAPH = 2
    DOCUMENT = 3


class Passage(NamedTuple):
    """Text that is not blank: a paragraph, a line, or a part of one that goes on in the next passage."""

    line: int
    """number of the line in the file where it begins, from 1"""
    text: str
    end: End


def plain_passages(pieces: Iterable[Piece], documents: str, join_lines: bool) -> Iterator[Passage]:
    """The passages of plain text, the file's end being a document's.

    `documents` "file": a blank line ends a paragraph; lines are sentences, or joined to paragraphs with `join_lines`.
    `documents` "blank_line": a blank line ends a document; lines are paragraphs.
    """
    if documents == "blank_line":
        return _lines(pieces, End.PARAGRAPH, End.DOCUMENT)
    if join_lines:
        return _joined(_lines(pieces, End.NOTHING, End.PARAGRAPH))
    return _lines(pieces, End.SENTENCE, End.PARAGRAPH)


def _lines(pieces: Iterable[Piece], line_end: End, blank_end: End) -> Iterator[Passage]:
    """Every line that is not blank, with what its end and a blank line after it end."""
    held: Passage | None = None  # the last passage, until it is known what ends with it
    within_line = False
    for line, text, ends_line in pieces:
        if text and not text.isspace():
            if held:
                yield held
            held = Passage(line, text, line_end if ends_line else End.NOTHING)
            within_line = not ends_line
        elif ends_line:
            if held:
                held = held._replace(end=line_end if within_line else max(held.end, blank_end))
            within_line = False
    if held:
        yield held._replace(end=End.DOCUMENT)


def _joined(passages: Iterable[Passage]) -> Iterator[Passage]:
    """Passages that end nothing joined with those that follow, to no more than about two blocks."""
    parts: list[str] = []
    length = first_line = 0
    for line, text, end in passages:
        first_line = first_line if parts else line
        parts.append(text)
        length += len(text)
        if end > End.NOTHING or length > BLOCK:
            yield Passage(first_line, " ".join(parts), end)
            parts, length = [], 0
