"""What each step, from the characters to the word's id, makes of a text: a corpus's rules, tried on a sentence."""

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from nplm.corpus.characters import clean
from nplm.corpus.mapping import Mapping, change, read_mapping
from nplm.corpus.proper_nouns import CaseCounts, Trait, read_proper_nouns, stem, traits
from nplm.corpus.tokenize import TOKENIZERS
from nplm.corpus.vocabulary import Vocabulary, read_vocabulary
from nplm.errors import InputError
from nplm.files import read_json

FILES = {
    "tokens_record": "tokens.json",
    "mapping_record": "mapped.json",
    "proper_noun_table": "proper_nouns.tsv",
    "vocabulary": "vocabulary.tsv",
}
"""What an explanation can use -> its name among an experiment's results; the first and the last are always there"""


@dataclass(frozen=True)
class Rules:
    """How a corpus was made into ids; without a vocabulary no word is rare."""

    tokenizer: str
    characters: str
    mapping: Mapping
    cases: CaseCounts | None
    """what decided on proper nouns"""
    proper_nouns: frozenset[str]
    vocabulary: Vocabulary | None


@dataclass(frozen=True)
class ExplainedToken:
    """A token and what becomes of it."""

    token: str
    step: str
    """the step that changes it, "" for none"""
    mapped: str
    evidence: str
    """how often it has a capital inside sentences, of these uses and those without a capital; "" where unknown"""
    id: int | None
    """None without a vocabulary; 0, of <rare>, for a word that has none of its own"""


@dataclass(frozen=True)
class Explanation:
    """What the rules make of a text."""

    rules: Rules
    cleaned: str
    """the text after cleaning, if it is cleaned"""
    changes: Counter[str]
    """what cleaning changed, and how often"""
    sentences: list[list[ExplainedToken]]


def files_of_experiment(folder: str | Path) -> dict[str, Path]:
    """The files among an experiment's results that an explanation uses. Raises InputError where there are none."""
    files = {name: Path(folder) / file for name, file in FILES.items()}
    for name in ("tokens_record", "vocabulary"):
        if not os.path.exists(files[name]):
            raise InputError(
                f"{files[name]}: no such file; give the folder of an experiment that ran, as results/brown"
            )
    return {name: file for name, file in files.items() if os.path.exists(file)}


def read_rules(
    tokens_record: str | Path | None = None,
    mapping_record: str | Path | None = None,
    proper_noun_table: str | Path | None = None,
    vocabulary: str | Path | None = None,
) -> Rules:
    """The rules in the files that tokenize-corpus, map-tokens and build-vocabulary made.

    Without a record the text is tokenised as raw text. Raises InputError for a file that is none of these, and where
    proper nouns are mapped and their table is not given.
    """
    record = read_json(tokens_record) if tokens_record else {"tokenizer": "raw"}
    mapping = read_mapping(mapping_record) if mapping_record else Mapping()
    if mapping.proper_nouns != "keep" and not proper_noun_table:
        raise InputError(f"{mapping_record}: has proper nouns mapped; give their table, proper_nouns.tsv, too")
    cases, proper_nouns = read_proper_nouns(proper_noun_table) if proper_noun_table else (None, frozenset())
    tokenizer = record.get("tokenizer")
    if tokenizer not in [*TOKENIZERS]:
        raise InputError(f"{tokens_record}: is no record of tokenize-corpus; give its --record")
    return Rules(
        # Brown is tagged, and what is asked about is not: raw follows its conventions.
        tokenizer="raw" if tokenizer == "word/tag" else tokenizer,
        characters=record.get("characters", "keep"),
        mapping=mapping,
        cases=cases,
        proper_nouns=proper_nouns,
        vocabulary=read_vocabulary(vocabulary) if vocabulary else None,
    )


def explain_text(text: str, rules: Rules) -> Explanation:
    """What the rules make of a text. Raises InputError where it holds no token."""
    changes: Counter[str] = Counter()
    cleaned = clean(text, changes) if rules.characters == "clean" else text
    sentences = [line.split() for line in TOKENIZERS[rules.tokenizer]([cleaned])[0]]
    if not sentences:
        raise InputError("the text holds no token; give some words")
    return Explanation(rules, cleaned, changes, [[_explained(token, rules) for token in line] for line in sentences])


def _explained(token: str, rules: Rules) -> ExplainedToken:
    step, mapped = change(token, rules.mapping, rules.proper_nouns)
    evidence = ""
    if rules.cases and traits(token) & Trait.WORD and (capitals := rules.cases.capitalised_inside[stem(token)]):
        evidence = f"{capitals:,} of {capitals + rules.cases.lower_case[stem(token)]:,}"
    return ExplainedToken(token, step, mapped, evidence, rules.vocabulary and rules.vocabulary.index.get(mapped, 0))
