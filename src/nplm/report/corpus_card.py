"""The corpus card as a table: what our corpus holds, with the paper's counts beside."""

import re
from pathlib import Path

from nplm.errors import InputError
from nplm.files import read_csv, write_csv, write_text
from nplm.report.markdown import markdown_table

COLUMNS = ("quantity", "ours", "paper")
NONE = "none"
BETWEEN = "; "
"""between the parts of a cell that holds several"""
DESCRIPTION = {
    "tokens": "tokens",
    "distinct": "distinct tokens before any are mapped",
    "distinct_mapped": "distinct tokens after that, before rare ones are mapped",
    "mapping_lower_case": "mapping: lower case",
    "mapping_numbers": "mapping: numbers",
    "mapping_proper_nouns": "mapping: proper nouns",
    "mapping_proper_noun_thresholds": "mapping: thresholds of proper nouns",
    "numbers_tokens_changed": "numbers: tokens changed",
    "numbers_types_changed": "numbers: distinct tokens changed",
    "numbers_symbols": "numbers: tokens of each form",
    "numbers_examples": "numbers: the most frequent changes",
    "proper_nouns_tokens_changed": "proper nouns: tokens changed",
    "proper_nouns_types_changed": "proper nouns: distinct tokens changed",
    "proper_nouns_examples": "proper nouns: the most frequent changes",
    "lower_case_tokens_changed": "lower case: tokens changed",
    "lower_case_types_changed": "lower case: distinct tokens changed",
    "lower_case_examples": "lower case: the most frequent changes",
    "marks": "marks of texts and paragraphs among the tokens",
    "vocabulary_size": "size of the vocabulary, with the rare-word symbol",
    "vocabulary": "hash of the vocabulary",
    "vocabulary_scope": "words are counted over",
    "rare_threshold": "a word is rare when seen at most this often (None: the most frequent words are kept)",
    "unused_tokens": "tokens behind test, in no split",
    "words_unseen_in_train": "words of the vocabulary that train does not have",
    "first": "place of its first token in the stream",
    "rare_tokens": "tokens that are the rare-word symbol",
    "rare_rate": "share of the rare-word symbol",
}
"""For the reader, of the stream or of one split; a quantity that is not here shows its name."""


def tabulate_corpus(card: dict[str, object], paper: dict[str, str]) -> list[dict[str, str]]:
    """One row per quantity of the card, as text. Raises InputError when the paper has one that the card lacks."""
    for quantity in paper:
        if quantity not in card:
            raise InputError(f"the paper's quantity '{quantity}' is not on the corpus card; correct its name")
    return [
        {"quantity": quantity, "ours": without_folders(_text(value)), "paper": paper.get(quantity, "")}
        for quantity, value in card.items()
    ]


def without_folders(text: str) -> str:
    """Text with the folders of absolute paths cut off: a report is published, and they tell of somebody's machine."""
    return re.sub(r"(?<!\S)/\S*/", "…/", text)


def read_paper_counts(path: str | Path) -> dict[str, str]:
    """quantity -> the paper's count, from a CSV file with the columns quantity and paper."""
    return {row["quantity"]: row["paper"] for row in read_csv(path, ("quantity", "paper"))}


def read_corpus_table(path: str | Path) -> list[dict[str, str]]:
    """A table written by `write_corpus_table`."""
    return read_csv(path, COLUMNS)


def write_corpus_table(directory: str | Path, rows: list[dict[str, str]]) -> None:
    """Write corpus.csv and corpus.md."""
    write_csv(Path(directory) / "corpus.csv", rows, COLUMNS)
    write_text(Path(directory) / "corpus.md", "# Corpus, ours beside the paper's\n\n" + corpus_markdown(rows))


def corpus_markdown(rows: list[dict[str, str]]) -> str:
    """The table for the reader, with thousands separated, shares in percent and long hashes cut short."""
    lines = [
        [_described(row["quantity"]), _readable(row["quantity"], row["ours"]), _readable(row["quantity"], row["paper"])]
        for row in rows
    ]
    return markdown_table(["quantity", "ours", "paper"], lines)


def _described(quantity: str) -> str:
    split, _, rest = quantity.partition("_")
    if split in ("train", "valid", "test"):
        return f"{split}: {DESCRIPTION.get(rest, rest.replace('_', ' '))}"
    return DESCRIPTION.get(quantity, quantity.replace("_", " "))


def _readable(quantity: str, cell: str) -> str:
    if quantity.endswith("_rate") and cell:
        return f"{100 * float(cell):.2f} %"
    if quantity.endswith(("_examples", "_symbols")) and cell not in ("", NONE):
        # As code: to Markdown <year> is HTML. No token holds a space, so this splits where it should.
        return ", ".join(as_code(re.sub(r"\((\d+)\)$", _separated, part)) for part in cell.split(BETWEEN))
    if quantity == "sha256" and cell:
        return f"{cell[:16]}…"
    return f"{int(cell):,}" if cell.isdecimal() else cell


def as_code(text: str) -> str:
    """Text as code in Markdown, whatever backticks it holds."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def _separated(count: re.Match) -> str:
    return f"({int(count[1]):,})"


def _text(value: object) -> str:
    if isinstance(value, dict):
        return BETWEEN.join(f"{key} {part}" for key, part in value.items()) or NONE
    return (BETWEEN.join(map(str, value)) or NONE) if isinstance(value, list) else str(value)
