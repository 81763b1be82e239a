"""Proper nouns without a tagger: words written with a capital away from the sentence start, and rarely without.

The paper maps proper nouns to one symbol (section 4.2) and does not say how they were found. Here the corpus itself
tells: every word is counted, in whatever case and without a possessive ending, with a capital inside a sentence, and
without a capital anywhere. Words in capitals alone count as capitalised, but a line of headlines does not count at all.
The decision is about a word, not about one use of it, so that it holds at sentence starts and in headlines too.
"""

import math
from collections import Counter
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

import numpy as np
import regex

from nplm.errors import InputError
from nplm.files import read_csv, write_text

COLUMNS = ("word", "capitalised_inside", "lower_case", "proper_noun")


@dataclass(frozen=True)
class Thresholds:
    """When a word is a proper noun; chosen on one half of Brown and measured on the other (docs/mapping.md).

    Raises InputError for a value that can be no share or no count.
    """

    share: float = 0.85
    """least share of its capitals inside sentences among these and its uses without a capital"""
    count: int = 1
    """least number of its capitals inside sentences"""
    headline_share: float = 0.9
    """a line of two words or more is a headline when at least this share of its words have a capital"""

    def __post_init__(self) -> None:
        if not (0 <= self.share <= 1 and self.count >= 1 and 0 <= self.headline_share < math.inf):
            raise InputError(
                f"proper nouns: share {self.share}, count {self.count}, headline share {self.headline_share}; give a "
                "share from 0 to 1, a count of at least 1, and a headline share of at least 0 that is finite"
            )


class Trait(IntFlag):
    """What a token's form tells, without its neighbours."""

    WORD = 1
    """it begins with a letter, perhaps after an apostrophe"""
    CAPITAL = 2
    """and that is a capital; the pronoun I (I'm, I'd) has none"""
    GOES_ON = 4
    """the token after it is inside the sentence: it is a word, a number, or one of , ; - & /"""


_WORD = regex.compile(r"['’]?\p{L}")
_CAPITAL = regex.compile(r"['’]?[\p{Lu}\p{Lt}](?<!^I(?=['’]|$))")
_GOES_ON = regex.compile(r".*[\p{L}\p{N}].*|[,;&/\-‐‑–—]+", regex.DOTALL)
_POSSESSIVE = regex.compile(r"['’][sS]?$")


def traits(token: str) -> int:
    """The `Trait`s of a token, as one number."""
    found = Trait(0)
    if _WORD.match(token):
        found |= Trait.WORD
        if _CAPITAL.match(token):
            found |= Trait.CAPITAL
    if _GOES_ON.fullmatch(token):
        found |= Trait.GOES_ON
    return int(found)


def stem(token: str) -> str:
    """What a word is counted under: lower case, without a possessive ending (Atlanta's: atlanta)."""
    return _POSSESSIVE.sub("", token).lower()


def places(
    traits: np.ndarray, line_end: np.ndarray, before: int, headline_share: float
) -> tuple[np.ndarray, np.ndarray]:
    """Which tokens stand inside a sentence, away from its start, and which in a headline: bool [T], bool [T].

    `traits` [T] of tokens and line ends, 0 for the latter; `line_end` [T], which they are; `before`, the traits of what
    was before the first token, 0 for nothing. What is in a headline is not inside a sentence.
    """
    previous = np.concatenate(([before], traits[:-1]))
    line = np.cumsum(np.concatenate(([0], line_end[:-1])))
    words = np.bincount(line, weights=traits & Trait.WORD != 0)
    capitals = np.bincount(line, weights=traits & Trait.CAPITAL != 0)
    headline = ((words > 1) & (capitals >= headline_share * words))[line]
    return (previous & Trait.GOES_ON != 0) & ~headline, headline


@dataclass(frozen=True)
class CaseCounts:
    """Uses of every word, by stem, that tell whether it is a proper noun."""

    capitalised_inside: Counter[str]
    """with a capital, inside a sentence"""
    lower_case: Counter[str]
    """without a capital, anywhere but in headlines"""


def decide(counts: CaseCounts, thresholds: Thresholds) -> frozenset[str]:
    """The stems of the words that are proper nouns."""
    return frozenset(
        word
        for word, capitals in counts.capitalised_inside.items()
        if capitals >= thresholds.count and capitals >= thresholds.share * (capitals + counts.lower_case[word])
    )


def write_proper_nouns(path: str | Path, counts: CaseCounts, proper_nouns: frozenset[str]) -> None:
    """Write every word that has a capital inside a sentence, by falling count, with what decides (TSV)."""
    lines = ["\t".join(COLUMNS)]
    for word, capitals in sorted(counts.capitalised_inside.items(), key=lambda item: (-item[1], item[0])):
        decision = "yes" if word in proper_nouns else "no"
        lines.append(f"{word}\t{capitals}\t{counts.lower_case[word]}\t{decision}")
    write_text(path, "\n".join(lines) + "\n")


def read_proper_nouns(path: str | Path) -> tuple[CaseCounts, frozenset[str]]:
    """Read a table written by `write_proper_nouns`. Raises InputError for anything else."""
    rows = read_csv(path, COLUMNS, delimiter="\t")
    try:
        counts = CaseCounts(
            Counter({row["word"]: int(row["capitalised_inside"]) for row in rows}),
            Counter({row["word"]: int(row["lower_case"]) for row in rows}),
        )
    except ValueError as error:
        raise InputError(f"{path}: holds a count that is no number ({error}); make it anew with map-tokens") from None
    return counts, frozenset(row["word"] for row in rows if row["proper_noun"] == "yes")
