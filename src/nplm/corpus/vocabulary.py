"""The vocabulary: the words that have an id of their own, and the one symbol that stands for all others."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
import regex

from nplm.corpus.text import read_pieces
from nplm.errors import InputError
from nplm.files import write_text

RARE = "<rare>"
"""stands for every word that has no id of its own; always id 0"""
TEXT = "<text>"
"""mark before the first token of a text"""
PARAGRAPH = "<paragraph>"
"""mark before the first token of a paragraph"""
PROPER_NOUN = "<proper_noun>"
"""stands for every proper noun, where the mapping has them as one"""
NUMBER = "<number>"
"""stands for every number, where the mapping has them as one"""
NUMBER_FORMS = tuple(
    f"<{form}>"
    for form in (
        *("integer", "decimal", "year", "ordinal", "money", "percent", "time", "date", "fraction", "roman"),
        *("alphanumeric", "other_number"),
    )
)
"""stand for the numbers of one form each (`nplm.corpus.numbers`), where the mapping has them by form"""
SYMBOLS_OF_MAPPING = (PROPER_NOUN, NUMBER, *NUMBER_FORMS)
SPECIAL_SYMBOLS = (RARE, TEXT, PARAGRAPH, *SYMBOLS_OF_MAPPING)
COLUMNS = "id\tword\tcount"
_SPECIAL = frozenset(SPECIAL_SYMBOLS)
_PUNCTUATION = regex.compile(r"[\p{P}\p{S}]+")


@dataclass(frozen=True)
class Vocabulary:
    """`words` in the order of their ids, special symbols first; `counts` int64 [|V|], each word's tokens in `scope`."""

    words: list[str]
    counts: np.ndarray
    scope: str | None = None
    """what was counted: "corpus" or "train"; None where it is not known"""
    rare_threshold: int | None = None
    """words seen this often or less in the scope are <rare>; None where |V| was given, or it is not known"""

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
    """How often each token of a file made by tokenize-corpus or map-tokens occurs, in all of it or in its first tokens.

    Special symbols that occur only after the first tokens are there, with the count 0: they are never rare.
    Raises InputError where the file holds fewer tokens than `first`, or is bad (see `read_tokens`).
    """
    counts: Counter[str] = Counter()
    left = first
    for words, _ in read_tokens(tokens):
        if left is not None:
            if left == 0:
                counts.update(dict.fromkeys(_SPECIAL.intersection(words), 0))
                continue
            words, later = words[:left], words[left:]
            left -= len(words)
            counts.update(dict.fromkeys(_SPECIAL.intersection(later), 0))
        counts.update(words)
    if left:
        raise InputError(f"{tokens}: holds {first - left} tokens, fewer than train's {first}; lower splits.train")
    return counts


def document_ends(tokens: str | Path) -> np.ndarray:
    """The number of tokens up to and with each document, int64 [D]: a blank line ends a document, as does the file."""
    ends: list[int] = []
    count, blank = 0, True
    for words, ends_line in read_tokens(tokens):
        count += len(words)
        blank &= not words
        if ends_line:
            if blank:
                ends.append(count)
            blank = True
    return np.unique(np.array([*(end for end in ends if end), count], dtype=np.int64))


def nearest_end(size: int, ends: np.ndarray) -> int:
    """The end of a document that is nearest to `size` tokens, the earlier one of two that are as near."""
    return int(ends[np.argmin(np.abs(ends - size))])


def build_vocabulary(
    counts: Counter[str],
    rare_threshold: int | None,
    scope: str,
    size: int | None = None,
    keep_punctuation: bool = False,
) -> Vocabulary:
    """The words seen more than `rare_threshold` times, or as many of the most frequent as make |V| = `size`.

    <rare> comes first, with the count of all tokens that it stands for; then the other special symbols in use,
    whatever their count; then words by falling count and, where equal, by code points. With `keep_punctuation` tokens
    of nothing but punctuation and symbols are words whatever their count. (Paper, section 4.2: words of frequency <= 3
    are merged into one symbol on Brown; the most frequent words and punctuation are kept on AP News.)

    Exactly one of `rare_threshold` and `size` is given. Raises InputError where there are too many or too few words
    for `size`.
    """
    symbols = [symbol for symbol in SPECIAL_SYMBOLS if symbol in counts]
    by_count = sorted(counts.keys() - set(symbols), key=lambda word: (-counts[word], word))
    always = {word for word in by_count if _PUNCTUATION.fullmatch(word)} if keep_punctuation else set()
    if size is not None:
        room = size - 1 - len(symbols) - len(always)
        if room < 0 or size > 1 + len(counts):
            raise InputError(
                f"size {size}: room for {size - 1} words beside {RARE}, but there are {len(counts)} distinct tokens, "
                f"{len(symbols) + len(always)} of which are always kept; "
                f"{'raise' if room < 0 else 'lower'} vocabulary.size"
            )
        chosen = always.union([word for word in by_count if word not in always][:room])
        kept = [word for word in by_count if word in chosen]
    else:
        kept = [word for word in by_count if counts[word] > rare_threshold or word in always]
    words = symbols + kept
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
    if vocabulary.scope is not None:
        rare = "" if vocabulary.rare_threshold is None else f" rare_threshold={vocabulary.rare_threshold}"
        lines.insert(0, f"# scope={vocabulary.scope}{rare}")
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
        if line == 1 and (counted := re.fullmatch(r"# scope=(corpus|train)(?: rare_threshold=([0-9]+))?", text)):
            scope, rare_threshold = counted[1], counted[2] and int(counted[2])
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
