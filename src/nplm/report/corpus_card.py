"""The corpus card as a table: what our corpus holds, with the paper's counts beside."""

import re
from pathlib import Path

from nplm.errors import InputError
from nplm.files import read_csv
from nplm.report.markdown import markdown_table, write_csv_and_markdown

COLUMNS = ("quantity", "ours", "paper")
NONE = "none"
BETWEEN = "; "
"""between the parts of a cell that holds several"""
TOKENS_CHANGED, TYPES_CHANGED, SYMBOLS, EXAMPLES = "_tokens_changed", "_types_changed", "_symbols", "_examples"
"""ends of the names of what a step of the mapping changed"""
DESCRIPTION = {
    "tokens": "tokens",
    "distinct": "distinct tokens before any are mapped",
    "distinct_mapped": "distinct tokens after that, before rare ones are mapped",
    "mapping_lower_case": "mapping: lower case",
    "mapping_numbers": "mapping: numbers",
    "mapping_proper_nouns": "mapping: proper nouns",
    "mapping_proper_noun_thresholds": "mapping: thresholds of proper nouns",
    "marks": "marks of texts and paragraphs among the tokens",
    "vocabulary_size": "size of the vocabulary, with the rare-word symbol",
    "vocabulary": "hash of the vocabulary",
    "vocabulary_scope": "words are counted over",
    "rare_threshold": "a word is rare when seen at most this often (none: the size of the vocabulary was given)",
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
    title = "Corpus, ours beside the paper's" if any(row["paper"] for row in rows) else "Corpus"
    write_csv_and_markdown(Path(directory) / "corpus", title, rows, COLUMNS, corpus_markdown)


def corpus_markdown(rows: list[dict[str, str]]) -> str:
    """The table for the reader, with thousands separated, shares in percent and long hashes cut short.

    What each step of the mapping changed stands in a table of its own below.
    """
    cells = {row["quantity"]: row["ours"] for row in rows}
    steps = [quantity.removesuffix(EXAMPLES) for quantity in cells if quantity.endswith(EXAMPLES)]
    apart = {f"{step}{what}" for step in steps for what in (TOKENS_CHANGED, TYPES_CHANGED, SYMBOLS, EXAMPLES)}
    columns = ["ours", "paper"] if any(row["paper"] for row in rows) else ["ours"]
    lines = [
        [_described(row["quantity"]), *(_readable(row["quantity"], row[column]) for column in columns)]
        for row in rows
        if row["quantity"] not in apart
    ]
    text = markdown_table(["quantity", *columns], lines)
    if steps:
        changes = [
            [
                step.replace("_", " "),
                _readable("", cells[step + TOKENS_CHANGED]),
                _readable("", cells[step + TYPES_CHANGED]),
                _listed(cells[step + EXAMPLES]),
            ]
            for step in steps
        ]
        header = ["mapped", "tokens changed", "distinct tokens changed", "most often"]
        text += (
            f"\nWhat the mapping changed, before rare words were mapped:\n\n{markdown_table(header, changes, left=4)}"
        )
    for step in steps:
        if symbols := cells.get(step + SYMBOLS):
            text += f"\nThe {step.replace('_', ' ')} by their form: {_listed(symbols)}.\n"
    return text


def _described(quantity: str) -> str:
    split, _, rest = quantity.partition("_")
    if split in ("train", "valid", "test"):
        return f"{split}: {DESCRIPTION.get(rest, rest.replace('_', ' '))}"
    return DESCRIPTION.get(quantity, quantity.replace("_", " "))


def _readable(quantity: str, cell: str) -> str:
    if quantity.endswith("_rate") and cell:
        return f"{100 * float(cell):.2f} %"
    if quantity == "sha256" and cell:
        return f"{cell[:16]}…"
    return f"{int(cell):,}" if cell.isdecimal() else cell


def _listed(cell: str) -> str:
    """Several changes or symbols with their counts, as code: to Markdown <year> is HTML."""
    if cell == NONE:
        return cell
    # No token holds a space, so this splits where it should.
    parts = (re.fullmatch(r"(.*) \((\d+)\)", part) for part in cell.split(BETWEEN))
    return ", ".join(f"{as_code(part[1])} {int(part[2]):,}" for part in parts)


def as_code(text: str) -> str:
    """Text as code in Markdown, whatever backticks it holds."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def _text(value: object) -> str:
    if isinstance(value, dict):
        return BETWEEN.join(f"{key} {part}" for key, part in value.items()) or NONE
    if isinstance(value, list):
        return BETWEEN.join(map(str, value)) or NONE
    return NONE if value is None else str(value)
