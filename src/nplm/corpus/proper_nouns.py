"""Proper nouns without a tagger: words written with a capital away from the sentence start, and rarely without.

The paper maps proper nouns to one symbol (section 4.2) and does not say how they were found. Here the corpus itself
tells: every word is counted, whatever its case and without a possessive ending, with a capital away from the sentence
start and without a capital anywhere. The decision needs the case of the text as it was written; it is therefore made
before words are lower-cased, although the paper names lower-casing first.
"""

from collections import Counter
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

import numpy as np
import regex

from nplm.files import read_csv, write_text

COLUMNS = ("word", "capitalised_inside", "lower_case", "inside", "anywhere")


@dataclass(frozen=True)
class Thresholds:
    """When a word counts as a proper noun; the share is that of its capitals among all its uses that are counted."""

    inside_share: float = 0.85
    """least share for its uses away from the sentence start"""
    start_share: float = 0.8
    """least share for its uses at a sentence start or in a headline"""
    inside_count: int = 1
    """least number of capitals away from the sentence start"""
    headline_share: float = 0.9
    """a line is a headline when this share of its words or more have a capital"""


class Trait(IntFlag):
    """What a token's form tells, without its neighbours."""

    WORD = 1
    """it begins with a letter"""
    CAPITAL = 2
    """and that is a capital; the pronoun I (I'm, I'd) is none"""
    GOES_ON = 4
    """the token after it is away from the sentence start: a word, a number, or , ; - & /"""


_WORD = regex.compile(r"['’]?\p{L}")
_CAPITAL = regex.compile(r"['’]?[\p{Lu}\p{Lt}](?<!^I(?=['’]|$))")
_GOES_ON = regex.compile(r".*[\p{L}\p{N}].*|[,;&/\-‐‑–—]+", regex.DOTALL)
_POSSESSIVE = regex.compile(r"['’](?:s|S)?$")


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


def places(traits: np.ndarray, line: np.ndarray, before: int, thresholds: Thresholds) -> tuple[np.ndarray, np.ndarray]:
    """Which tokens stand inside a sentence, and which in a headline: bool [T], bool [T].

    `traits` [T] of the tokens; `line` [T], the number of each one's line, from 0; `before`, the traits of the token
    before the first one, 0 where it begins a line. A headline's tokens are not inside a sentence.
    """
    previous = np.concatenate(([before], traits[:-1]))
    new_line = np.concatenate(([False], line[1:] != line[:-1]))
    words = np.bincount(line, weights=traits & Trait.WORD != 0)
    capitals = np.bincount(line, weights=traits & Trait.CAPITAL != 0)
    headline = ((words > 1) & (capitals >= thresholds.headline_share * words))[line]
    return (previous & Trait.GOES_ON != 0) & ~new_line & ~headline, headline


@dataclass
class CaseCounts:
    """Uses of every word, by stem, that tell whether it is a proper noun."""

    capitalised_inside: Counter[str]
    """with a capital, inside a sentence"""
    lower_case: Counter[str]
    """without a capital, anywhere but in headlines"""


@dataclass(frozen=True)
class ProperNouns:
    """The decisions: stems that are proper nouns inside a sentence, and those that are anywhere."""

    inside: frozenset[str]
    anywhere: frozenset[str]


def decide(counts: CaseCounts, thresholds: Thresholds) -> ProperNouns:
    """The proper nouns among the words counted."""
    inside, anywhere = set(), set()
    for word, capitals in counts.capitalised_inside.items():
        if capitals < thresholds.inside_count:
            continue
        share = capitals / (capitals + counts.lower_case[word])
        if share >= thresholds.inside_share:
            inside.add(word)
        if share >= thresholds.start_share:
            anywhere.add(word)
    return ProperNouns(frozenset(inside), frozenset(anywhere))


def write_proper_nouns(path: str | Path, counts: CaseCounts, found: ProperNouns) -> None:
    """Write every word that has a capital inside a sentence, with its counts and the decisions (TSV)."""
    lines = ["\t".join(COLUMNS)]
    for word, capitals in sorted(counts.capitalised_inside.items(), key=lambda item: (-item[1], item[0])):
        decisions = ("yes" if word in words else "no" for words in (found.inside, found.anywhere))
        lines.append("\t".join((word, str(capitals), str(counts.lower_case[word]), *decisions)))
    write_text(path, "\n".join(lines) + "\n")


def read_proper_nouns(path: str | Path) -> ProperNouns:
    """Read the decisions in a table written by `write_proper_nouns`. Raises InputError for anything else."""
    found: dict[str, set[str]] = {"inside": set(), "anywhere": set()}
    for row in read_csv(path, COLUMNS, delimiter="\t"):
        for decision, words in found.items():
            if row[decision] == "yes":
                words.add(row["word"])
    return ProperNouns(frozenset(found["inside"]), frozenset(found["anywhere"]))
