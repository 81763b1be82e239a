"""From a corpus to tokens.txt: one sentence a line, tokens separated by single spaces, marks as tokens of their own."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

import regex

from nplm.corpus.text import read_pieces
from nplm.corpus.vocabulary import PARAGRAPH, SPECIAL_SYMBOLS, TEXT
from nplm.errors import InputError
from nplm.files import complete_file

MARKS = {"none": (), "paragraph": (PARAGRAPH,), "text+paragraph": (TEXT, PARAGRAPH)}
"""Value of the option `marks` -> the marks that enter the stream, each before the first token of its text, paragraph"""


@dataclass
class TokenCounts:
    """What a tokenised corpus holds, counted while it is written; `tokens` includes the marks."""

    texts: int = 0
    paragraphs: int = 0
    sentences: int = 0
    tokens: int = 0


def split_brown(text: str) -> list[str]:
    """The words of `word/tag word/tag ...`; a word may hold a slash itself (`1/2/cd`, `//in`).

    Raises ValueError with the first thing that is not word/tag.
    """
    words = []
    for tagged in text.split():
        word, _, tag = tagged.rpartition("/")
        if not (word and tag):
            raise ValueError(tagged)
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


TOKENIZERS: dict[str, Callable[[str], list[str]]] = {"spaces": str.split, "raw": split_raw}


def expand_paths(paths: Iterable[str | Path]) -> list[Path]:
    """The files that paths and globs name: in the order given, a glob's own matches sorted by name.

    Raises InputError for a missing file, a glob that matches nothing and a file named twice.
    """
    files: dict[Path, None] = {}
    for path in map(str, paths):
        if Path(path).exists():
            matches = [path]
        elif has_magic(path):
            matches = [match for match in sorted(glob(path, recursive=True)) if Path(match).is_file()]
            if not matches:
                raise InputError(f"{path}: matches no file; correct the pattern")
        else:
            raise InputError(f"{path}: no such file; correct the path")
        for match in map(Path, matches):
            if match in files:
                raise InputError(f"{match}: is named twice; name every file once")
            files[match] = None
    return list(files)


def brown_files(folder: str | Path) -> list[Path]:
    """The texts of a folder in Brown's format, ca01 ... cr09, in name order. Raises InputError where there is none."""
    if not Path(folder).is_dir():
        raise InputError(f"{folder}: no such folder; give the folder that holds Brown's files ca01 ... cr09")
    files = sorted(Path(folder).glob("c[a-r][0-9][0-9]"))
    if not files:
        raise InputError(f"{folder}: holds none of Brown's files ca01 ... cr09; give the folder that does")
    return files


def tokenize(files: list[Path], split: Callable[[str], list[str]], marks: str, output: str | Path) -> TokenCounts:
    """Write the tokens of the files, in order, a line of tokens for every input line that is not blank.

    A file is a text; blank lines separate its paragraphs; a line is a sentence. `split` turns a piece of a line into
    tokens and raises ValueError for what is malformed. The output is written as a whole or not at all.
    Raises InputError for bad input, naming file and line.
    """
    counts = TokenCounts()
    with complete_file(output) as partial, open(partial, "w", encoding="utf-8", newline="\n") as out:
        for file in files:
            new_text = new_paragraph = new_line = True
            for words, ends_line in _lines_of_words(file, split):
                if words:
                    if new_paragraph:
                        words = [mark for mark in MARKS[marks] if mark != TEXT or new_text] + words
                        counts.texts += new_text
                        counts.paragraphs += 1
                        new_text = new_paragraph = False
                    out.write(" ".join(words) if new_line else " " + " ".join(words))
                    counts.tokens += len(words)
                    new_line = False
                if ends_line:
                    new_paragraph = new_line
                    if not new_line:
                        out.write("\n")
                        counts.sentences += 1
                    new_line = True
            if new_text:
                raise InputError(f"{file}: holds nothing but white space; give a file that holds text")
    return counts


def _lines_of_words(file: Path, split: Callable[[str], list[str]]) -> Iterator[tuple[list[str], bool]]:
    """(tokens, whether the line ends with them), checked for what is malformed or reserved."""
    for line, text, ends_line in read_pieces(file):
        try:
            words = split(text)
        except ValueError as malformed:
            raise InputError(f"{file}:{line}: {str(malformed)[:60]!r} is not word/tag; correct it") from None
        for symbol in SPECIAL_SYMBOLS:
            if symbol in words:
                raise InputError(f"{file}:{line}: '{symbol}' is a reserved symbol; replace it in the text")
        yield words, ends_line
