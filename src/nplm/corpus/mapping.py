"""The mapping of tokens to fewer: lower case, numbers and proper nouns to symbols (paper, section 4.2, AP News).

The paper names lower-casing first, then numeric forms, then proper nouns, then rare words (the vocabulary's part,
`nplm.corpus.vocabulary`). Whether a word is a proper noun, and some numbers (XIV), can only be told from the case, so
these are decided on the tokens as they were written and what is left is lower-cased: with the same result, but that no
decision is lost. Every decision is made once per distinct token; the corpus is read twice, a batch at a time.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nplm.corpus.numbers import number_symbol
from nplm.corpus.proper_nouns import CaseCounts, ProperNouns, Thresholds, Trait, decide, places, stem, traits
from nplm.corpus.vocabulary import PROPER_NOUN, SPECIAL_SYMBOLS, SYMBOLS_OF_MAPPING, read_tokens
from nplm.errors import InputError
from nplm.files import complete_file, read_json

BATCH = 1 << 18
"""tokens that are mapped at a time; a batch ends with a line, unless the line is longer than this"""
LINE_END = "\n"
STEPS = ("numbers", "proper_nouns", "lower_case")
"""in the order in which a token meets them; the first that changes it is the only one"""
EXAMPLES = 12
"""of each step, the most frequent of its changes"""


@dataclass(frozen=True)
class Mapping:
    """What is mapped."""

    lower_case: bool = False
    numbers: str = "keep"
    """keep, one (symbol for all) or forms (a symbol for each form)"""
    proper_nouns: str = "keep"
    """keep or one (symbol for all)"""
    thresholds: Thresholds = field(default_factory=Thresholds)


class TokenTable:
    """Every distinct token, numbered in the order of appearance; number 0 is the end of a line."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._numbers[LINE_END]
        self.traits = np.zeros(1, dtype=np.uint8)
        """`Trait`s of each token"""

    def __len__(self) -> int:
        return len(self._numbers)

    def tokens(self) -> list[str]:
        return list(self._numbers)

    def number(self, tokens: list[str]) -> np.ndarray:
        """The numbers [T] of tokens, new ones included."""
        numbers = np.fromiter(map(self._numbers.__getitem__, tokens), np.int64, len(tokens))
        new = self.tokens()[len(self.traits) :] if len(self) > len(self.traits) else []
        found = [0 if token in SPECIAL_SYMBOLS else traits(token) for token in new]
        self.traits = np.concatenate((self.traits, np.array(found, dtype=np.uint8)))
        return numbers


@dataclass(frozen=True)
class Batch:
    """A part of the corpus: `numbers` [T] of tokens and line ends; `inside` [T] and `headline` [T], see `places`."""

    numbers: np.ndarray
    inside: np.ndarray
    headline: np.ndarray


def read_batches(tokens: str | Path, table: TokenTable, thresholds: Thresholds) -> Iterator[Batch]:
    """The tokens of a file made by tokenize-corpus, with where each stands; new ones enter the table."""
    before = 0
    for words in _batches_of_words(tokens):
        batch = place_tokens(words, table, before, thresholds)
        before = int(table.traits[batch.numbers[-1]])
        yield batch


def place_tokens(words: list[str], table: TokenTable, before: int, thresholds: Thresholds) -> Batch:
    """Where each of some tokens and line ends stands; `before`, the traits of what was before them, 0 for nothing."""
    numbers = table.number(words)
    line = np.cumsum(np.concatenate(([0], numbers[:-1] == 0)))
    return Batch(numbers, *places(table.traits[numbers], line, before, thresholds))


def _batches_of_words(tokens: str | Path) -> Iterator[list[str]]:
    batch: list[str] = []
    for words, ends_line in read_tokens(tokens):
        batch += words
        if ends_line:
            batch.append(LINE_END)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def count_cases(batches: Iterable[Batch], table: TokenTable) -> CaseCounts:
    """Count the uses of every word that tell whether it is a proper noun."""
    inside = np.zeros(0, dtype=np.int64)
    lower = np.zeros(0, dtype=np.int64)
    for batch in batches:
        kind = table.traits[batch.numbers]
        capital, word = kind & Trait.CAPITAL != 0, kind & Trait.WORD != 0
        inside = _add(inside, batch.numbers[batch.inside & capital], len(table))
        lower = _add(lower, batch.numbers[word & ~capital & ~batch.headline], len(table))
    counts = CaseCounts(Counter(), Counter())
    for token, capitals, others in zip(table.tokens(), inside.tolist(), lower.tolist(), strict=True):
        if capitals:
            counts.capitalised_inside[stem(token)] += capitals
        if others:
            counts.lower_case[stem(token)] += others
    return counts


def _add(counts: np.ndarray, numbers: np.ndarray, size: int) -> np.ndarray:
    """Counts [<= size], and those of more numbers."""
    total = np.bincount(numbers, minlength=size)
    total[: len(counts)] += counts
    return total


def change(token: str, inside: bool, mapping: Mapping, found: ProperNouns) -> tuple[str, str]:
    """The step that changes a token, "" if none does, and what becomes of the token.

    No token is changed by two: the symbol for a number or a proper noun has no case.
    """
    if token in SPECIAL_SYMBOLS or token == LINE_END:
        return "", token
    if mapping.numbers != "keep" and (symbol := number_symbol(token, mapping.numbers)):
        return "numbers", symbol
    if (
        mapping.proper_nouns != "keep"
        and traits(token) & Trait.CAPITAL
        and stem(token) in (found.inside if inside else found.anywhere)
    ):
        return "proper_nouns", PROPER_NOUN
    if mapping.lower_case and (lower := token.lower()) != token:
        return "lower_case", lower
    return "", token


def read_mapping(path: str | Path) -> Mapping:
    """What was mapped, from the record that map-tokens made. Raises InputError for any other file."""
    options = read_json(path).get("mapping")
    try:
        thresholds = Thresholds(**options.pop("proper_noun_thresholds", {}))
        return Mapping(**options, thresholds=thresholds)
    except (AttributeError, TypeError):
        raise InputError(f"{path}: is no record of map-tokens; give its --record") from None


class Explained(NamedTuple):
    """A token, where it stands and what becomes of it."""

    token: str
    place: str
    """inside (a sentence), start or headline"""
    step: str
    """the step that changes it, "" for none"""
    after: str


def explain_tokens(sentences: list[list[str]], mapping: Mapping, found: ProperNouns) -> list[list[Explained]]:
    """What becomes of every token of some sentences, each taken as a line of the corpus."""
    table = TokenTable()
    explained = []
    for sentence in sentences:
        batch = place_tokens(sentence, table, 0, mapping.thresholds)
        places = np.where(batch.headline, "headline", np.where(batch.inside, "inside", "start")).tolist()
        explained.append(
            [
                Explained(token, place, *change(token, place == "inside", mapping, found))
                for token, place in zip(sentence, places, strict=True)
            ]
        )
    return explained


def fit_proper_nouns(tokens: str | Path, mapping: Mapping) -> tuple[TokenTable, CaseCounts, ProperNouns]:
    """Read the corpus once: its distinct tokens, and which words are proper nouns.

    Raises InputError where the file is bad (see `read_tokens`) or holds a symbol of the mapping already.
    """
    table = TokenTable()
    counts = count_cases(read_batches(tokens, table, mapping.thresholds), table)
    already = set(SYMBOLS_OF_MAPPING).intersection(table.tokens())
    if already:
        raise InputError(f"{tokens}: holds '{min(already)}', a symbol of the mapping; give tokens not mapped before")
    return table, counts, decide(counts, mapping.thresholds)


def map_tokens(
    tokens: str | Path, output: str | Path, mapping: Mapping, table: TokenTable, found: ProperNouns
) -> dict[str, object]:
    """Write the mapped tokens, line by line as they stood, and return the record of what each step changed.

    `table` holds every token of the file. The output is written as a whole or not at all.
    """
    before = table.tokens()
    # A token has two numbers: its own where it is not inside a sentence, and that plus |table| where it is.
    made = [change(token, inside, mapping, found) for inside in (False, True) for token in before]
    steps, after = [step for step, _ in made], [token for _, token in made]
    uses = np.zeros(2 * len(before), dtype=np.int64)
    with complete_file(output) as partial_file, open(partial_file, "w", encoding="utf-8", newline="\n") as out:
        separator = ""
        for batch in read_batches(tokens, table, mapping.thresholds):
            numbers = batch.numbers + len(before) * batch.inside
            uses += np.bincount(numbers, minlength=len(uses))
            text = separator + " ".join(map(after.__getitem__, numbers.tolist()))
            separator = "" if batch.numbers[-1] == 0 else " "
            out.write(text.replace(" \n", "\n").replace("\n ", "\n"))
    return _record(mapping, before * 2, after, steps, uses)


def _record(
    mapping: Mapping, before: list[str], after: list[str], steps: list[str], uses: np.ndarray
) -> dict[str, object]:
    used = {number: count for number, count in enumerate(uses.tolist()) if count and before[number] != LINE_END}
    record: dict[str, object] = {
        "tokens": sum(used.values()),
        "distinct": len({before[number] for number in used}),
        "mapping": {name: getattr(mapping, name) for name in ("lower_case", "numbers", "proper_nouns")},
        "steps": {},
    }
    if mapping.proper_nouns != "keep":
        record["mapping"]["proper_noun_thresholds"] = vars(mapping.thresholds)
    for step in STEPS:
        changed: Counter[tuple[str, str]] = Counter()
        for number, count in used.items():
            if steps[number] == step:
                changed[before[number], after[number]] += count
        symbols: defaultdict[str, int] = defaultdict(int)
        for (_, symbol), count in changed.items():
            symbols[symbol] += count
        changes = sorted(changed.items(), key=lambda item: (-item[1], item[0]))
        record["steps"][step] = {
            "tokens_changed": changed.total(),
            "types_changed": len(changed),
            "symbols": dict(sorted(symbols.items(), key=lambda item: (-item[1], item[0]))) if step == "numbers" else {},
            "examples": [[*change, count] for change, count in changes[:EXAMPLES]],
        }
    return record
