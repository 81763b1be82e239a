"""The vocabulary: the words that have an id of their own, and the one symbol that stands for all others."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np

from nplm.corpus.text import read_pieces
from nplm.errors import InputError
from nplm.files import write_text

RARE = "<rare>"
"""stands for every word that has no id of its own; always id 0"""
TEXT = "<text>"
"""mark before the first token of a text"""
PARAGRAPH = "<paragraph>"
"""mark before the first token of a paragraph"""
SPECIAL_SYMBOLS = (RARE, TEXT, PARAGRAPH)
COLUMNS = "id\tword\tcount"


@dataclass(frozen=True)
class Vocabulary:
    """`words` in the order of their ids, special symbols first; `counts` int64 [|V|], each word's tokens in `scope`."""

    words: list[str]
    counts: np.ndarray
    scope: str | None = None
    """what was counted: "corpus" or "train"; None where it is not known"""
    rare_threshold: int | None = None
    """words seen this often or less in the scope are <rare>; None where it is not known"""

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits that name this list of words."""
        return sha256("\n".join(self.words).encode()).hexdigest()[:16]

    @cached_property
    def index(self) -> dict[str, int]:
        """word -> id"""
        return {word: id for id, word in enumerate(self.words)}


def read_tokens(path: str | Path) -> Iterator[tuple[list[str], bool]]:
    """The tokens of a file made by tokenize-corpus: (tokens, whether a line ends with them), in order.

    Raises InputError where the file holds <rare>, and where `read_pieces` does.
    """
    for line, text, ends_line in read_pieces(path):
        words = text.split()
        if RARE in words:
            raise InputError(f"{path}:{line}: '{RARE}' is a reserved symbol; replace it in the text")
        yield words, ends_line


def count_words(tokens: str | Path, first: int | None = None) -> Counter[str]:
    """How often each token of a file made by tokenize-corpus occurs, in all of it or among its first tokens.

    Raises InputError where the file holds fewer tokens than `first`, or is bad (see `read_tokens`).
    """
    counts: Counter[str] = Counter()
    left = first
    for words, _ in read_tokens(tokens):
        if left is not None:
            words = words[:left]
            left -= len(words)
        counts.update(words)
        if left == 0:
            break
    if left:
        raise InputError(f"{tokens}: holds {first - left} tokens, fewer than train's {first}; lower splits.train")
    return counts


def build_vocabulary(counts: Counter[str], rare_threshold: int, scope: str) -> Vocabulary:
    """The words seen more than `rare_threshold` times, by falling count and then by code points.

    <rare> comes first, with the count of all tokens that it stands for; the marks in use follow, whatever their count
    (paper, section 4.2: words of frequency <= 3 are merged into one symbol).
    """
    marks = [mark for mark in (TEXT, PARAGRAPH) if mark in counts]
    kept = [word for word, count in counts.items() if count > rare_threshold and word not in marks]
    kept.sort(key=lambda word: (-counts[word], word))
    words = marks + kept
    word_counts = [counts[word] for word in words]
    return Vocabulary(
        words=[RARE, *words],
        counts=np.array([counts.total() - sum(word_counts), *word_counts], dtype=np.int64),
        scope=scope,
        rare_threshold=rare_threshold,
    )


def write_vocabulary(path: str | Path, vocabulary: Vocabulary) -> None:
    """Write a vocabulary as tab-separated id, word and count, below one line that says what was counted."""
    lines = [COLUMNS]
    if vocabulary.scope is not None and vocabulary.rare_threshold is not None:
        lines.insert(0, f"# scope={vocabulary.scope} rare_threshold={vocabulary.rare_threshold}")
    rows = zip(vocabulary.words, vocabulary.counts.tolist(), strict=True)
    lines += [f"{id}\t{word}\t{count}" for id, (word, count) in enumerate(rows)]
    write_text(path, "\n".join(lines) + "\n")


def read_vocabulary(path: str | Path) -> Vocabulary:
    """Read a vocabulary written by `write_vocabulary`. Raises InputError, with the line, for anything else."""
    scope = rare_threshold = None
    header_lines = 1
    words: list[str] = []
    counts: list[int] = []
    for line, text, _ in read_pieces(path):
        if line == 1 and (counted := re.fullmatch(r"# scope=(corpus|train) rare_threshold=([0-9]+)", text)):
            scope, rare_threshold = counted[1], int(counted[2])
            header_lines = 2
        elif line == header_lines:
            if text != COLUMNS:
                raise _not_a_vocabulary(path, line, "expected the column names id, word and count")
        else:
            row = re.fullmatch(r"([0-9]+)\t(\S+)\t([0-9]{1,18})", text)
            if not row:
                raise _not_a_vocabulary(path, line, "expected id, word and count with tabs between")
            if int(row[1]) != len(words):
                raise _not_a_vocabulary(path, line, f"id {row[1]} stands where {len(words)} is expected")
            words.append(row[2])
            counts.append(int(row[3]))
    if words[:1] != [RARE]:
        raise _not_a_vocabulary(path, header_lines + 1, f"id 0 is not {RARE}")
    vocabulary = Vocabulary(words, np.array(counts, dtype=np.int64), scope, rare_threshold)
    if len(vocabulary.index) < len(words):
        ((twice, _),) = Counter(words).most_common(1)
        raise _not_a_vocabulary(path, header_lines + 1 + vocabulary.index[twice], f"'{twice}' occurs twice")
    return vocabulary


def _not_a_vocabulary(path: str | Path, line: int, what: str) -> InputError:
    return InputError(f"{path}:{line}: {what}; make the vocabulary anew with build-vocabulary")
