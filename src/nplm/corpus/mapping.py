"""The mapping of tokens to fewer: numbers and proper nouns to symbols, the rest to lower case (paper, section 4.2).

The paper names lower-casing first, then numeric forms, then proper nouns, then rare words (the vocabulary's part,
`nplm.corpus.vocabulary`). But whether a word is a proper noun, or a Roman numeral, can only be told from its case, so
these two are decided on the tokens as they were written, and what is left is lower-cased.

Every decision is about a distinct token, wherever it stands. The corpus is read twice, a batch at a time: memory is
bounded by the distinct tokens.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nplm.corpus.numbers import number_symbol
from nplm.corpus.proper_nouns import CaseCounts, Thresholds, Trait, decide, places, stem, traits
from nplm.corpus.vocabulary import PROPER_NOUN, SPECIAL_SYMBOLS, SYMBOLS_OF_MAPPING, read_tokens
from nplm.errors import InputError
from nplm.files import complete_file, read_json

BATCH = 1 << 18
"""tokens that are read at a time; a batch ends with a line, unless the line is longer than this"""
LINE_END = "\n"
STEPS = ("numbers", "proper_nouns", "lower_case")
"""in the order in which a token meets them; the first that changes it is the only one"""
EXAMPLES = 12
"""of each step on its record, the most frequent of its changes"""


@dataclass(frozen=True)
class Mapping:
    """What is mapped."""

    lower_case: bool = False
    numbers: str = "keep"
    """keep, one (symbol for all) or forms (a symbol for each form)"""
    proper_nouns: str = "keep"
    """keep or one (symbol for all)"""
    thresholds: Thresholds = field(default_factory=Thresholds)

    def steps(self) -> list[str]:
        """The steps that are on."""
        return [step for step in STEPS if getattr(self, step) not in (False, "keep")]


class TokenTable:
    """Every distinct token, numbered in the order of appearance; number 0 is the end of a line."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._numbers[LINE_END]
        self.traits = np.zeros(1, dtype=np.uint8)
        """the `Trait`s of each token; none for special symbols"""

    def __len__(self) -> int:
        return len(self._numbers)

    def tokens(self) -> list[str]:
        """The tokens, in the order of their numbers."""
        return list(self._numbers)

    def number(self, tokens: list[str]) -> np.ndarray:
        """The numbers [T] of tokens, new ones included."""
        numbers = np.fromiter(map(self._numbers.__getitem__, tokens), np.int64, len(tokens))
        if len(self) > len(self.traits):
            new = self.tokens()[len(self.traits) :]
            found = [0 if token in SPECIAL_SYMBOLS else traits(token) for token in new]
            self.traits = np.concatenate((self.traits, np.array(found, dtype=np.uint8)))
        return numbers


@dataclass(frozen=True)
class CorpusCounts:
    """The distinct tokens of a corpus, how often each occurs, and the uses that tell of proper nouns."""

    tokens: Counter[str]
    cases: CaseCounts


def count_tokens(tokens: str | Path, thresholds: Thresholds) -> CorpusCounts:
    """Read a file made by tokenize-corpus once, and count.

    Raises InputError where the file is bad (see `read_tokens`) or holds a symbol of the mapping already.
    """
    counts = count_batches(read_batches(tokens), thresholds)
    already = counts.tokens.keys() & SYMBOLS_OF_MAPPING
    if already:
        raise InputError(f"{tokens}: holds '{min(already)}', a symbol of the mapping; give tokens not mapped before")
    return counts


def read_batches(tokens: str | Path) -> Iterator[list[str]]:
    """The tokens of a file, many at a time, with `LINE_END` after every line."""
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


def count_batches(batches: Iterable[list[str]], thresholds: Thresholds) -> CorpusCounts:
    """Count the tokens in batches, see `read_batches`."""
    table = TokenTable()
    uses = inside = lower = np.zeros(0, dtype=np.int64)
    before = 0
    for batch in batches:
        numbers = table.number(batch)
        kind = table.traits[numbers]
        capital, word = kind & Trait.CAPITAL != 0, kind & Trait.WORD != 0
        in_sentence, in_headline = places(kind, numbers == 0, before, thresholds.headline_share)
        uses = _add(uses, numbers, len(table))
        inside = _add(inside, numbers[in_sentence & capital], len(table))
        lower = _add(lower, numbers[word & ~capital & ~in_headline], len(table))
        before = int(kind[-1])
    cases = CaseCounts(Counter(), Counter())
    for token, capitals, others in zip(table.tokens(), inside.tolist(), lower.tolist(), strict=True):
        if capitals:
            cases.capitalised_inside[stem(token)] += capitals
        if others:
            cases.lower_case[stem(token)] += others
    by_token = Counter(dict(zip(table.tokens(), uses.tolist(), strict=True)))
    del by_token[LINE_END]
    return CorpusCounts(by_token, cases)


def _add(counts: np.ndarray, numbers: np.ndarray, size: int) -> np.ndarray:
    """`counts`, with how often each number occurs added: int64 [size]."""
    total = np.bincount(numbers, minlength=size)
    total[: len(counts)] += counts
    return total


def change(token: str, mapping: Mapping, proper_nouns: frozenset[str]) -> tuple[str, str]:
    """The step that changes a token, "" if none does, and what becomes of the token.

    No token is changed by two: the symbol for a number or a proper noun has no case.
    """
    if token in SPECIAL_SYMBOLS:
        return "", token
    if mapping.numbers != "keep" and (symbol := number_symbol(token, mapping.numbers)):
        return "numbers", symbol
    if mapping.proper_nouns != "keep" and traits(token) & Trait.CAPITAL and stem(token) in proper_nouns:
        return "proper_nouns", PROPER_NOUN
    if mapping.lower_case and (lower := token.lower()) != token:
        return "lower_case", lower
    return "", token


def map_tokens(tokens: str | Path, output: str | Path, mapping: Mapping, counts: CorpusCounts) -> dict[str, object]:
    """Write the mapped tokens, line by line as they stood, and return the record of what each step changed.

    `counts` are those of this file. The output is written as a whole or not at all.
    Raises InputError where lower case would make a reserved symbol of a token.
    """
    proper_nouns = decide(counts.cases, mapping.thresholds)
    changes = {token: change(token, mapping, proper_nouns) for token in counts.tokens}
    for token, (step, new) in changes.items():
        if step == "lower_case" and new in SPECIAL_SYMBOLS:
            raise InputError(f"{tokens}: holds '{token}', in lower case a reserved symbol; replace it in the text")
    after = {LINE_END: LINE_END} | {token: new for token, (_, new) in changes.items()}
    with complete_file(output) as partial_file, open(partial_file, "w", encoding="utf-8", newline="\n") as out:
        separator = ""
        for batch in read_batches(tokens):
            text = separator + " ".join(map(after.__getitem__, batch))
            out.write(text.replace(" \n", "\n").replace("\n ", "\n"))
            separator = "" if batch[-1] == LINE_END else " "
    return _record(mapping, counts.tokens, changes)


def _record(mapping: Mapping, uses: Counter[str], changes: dict[str, tuple[str, str]]) -> dict[str, object]:
    options: dict[str, object] = {step: getattr(mapping, step) for step in ("lower_case", "numbers", "proper_nouns")}
    if mapping.proper_nouns != "keep":
        options["proper_noun_thresholds"] = vars(mapping.thresholds)
    record: dict[str, object] = {"tokens": uses.total(), "distinct": len(uses), "mapping": options, "steps": {}}
    for step in STEPS:
        changed = [(token, new, uses[token]) for token, (made_by, new) in changes.items() if made_by == step]
        changed.sort(key=lambda change: (-change[2], change[0]))
        symbols: Counter[str] = Counter()
        for _, symbol, count in changed if step == "numbers" else ():
            symbols[symbol] += count
        record["steps"][step] = {
            "tokens_changed": sum(count for *_, count in changed),
            "types_changed": len(changed),
            "symbols": dict(sorted(symbols.items(), key=lambda item: (-item[1], item[0]))),
            "examples": [list(change) for change in changed[:EXAMPLES]],
        }
    return record


def read_mapping(path: str | Path) -> Mapping:
    """What was mapped, from the record that map-tokens made. Raises InputError for any other file."""
    options = read_json(path).get("mapping")
    try:
        thresholds = Thresholds(**options.pop("proper_noun_thresholds", {}))
        mapping = Mapping(**options, thresholds=thresholds)
        if mapping.numbers in ("keep", "one", "forms") and mapping.proper_nouns in ("keep", "one"):
            return mapping
    except (AttributeError, TypeError):
        pass
    raise InputError(f"{path}: is no record of map-tokens; give its --record")
