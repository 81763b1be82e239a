"""Some word classes to read: the most frequent words of a dozen of them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from nplm.errors import InputError
from nplm.files import read_csv
from nplm.ngram.classes import WordClasses, readable_classes
from nplm.report.configuration import kind_of
from nplm.report.markdown import bullets, escape, markdown_table, write_csv_and_markdown
from nplm.report.table import Row, lowest_on_validation

COLUMNS = ["classes", "class", "size", "tokens", "words"]


def best_number_of_classes(experiment: dict, rows: Iterable[Row]) -> int:
    """C of the unmixed class-based row of the tables that has the lowest validation perplexity.

    experiment: its resolved configuration. Raises InputError when no such row was run.
    """
    number = {
        name: model["classes"] for name, model in experiment["models"].items() if "classes" in kind_of(model).reads
    }
    best = lowest_on_validation(row for row in rows if row["scores"] in number)
    if best is None:
        raise InputError("the tables have no class-based row that was run; run one, or do not list word classes")
    return number[best["scores"]]


def class_rows(table: WordClasses, number: int) -> list[dict[str, object]]:
    """A row for each of `number` classes: its number, its size in words, its tokens in train, its frequent words."""
    return [
        {
            "classes": table.number,
            "class": shown.number,
            "size": shown.size,
            "tokens": shown.tokens,
            "words": " ".join(shown.words),
        }
        for shown in readable_classes(table, number)
    ]


def write_word_classes(directory: str | Path, rows: Sequence[dict[str, object]]) -> None:
    """Write word_classes.csv and word_classes.md."""
    write_csv_and_markdown(Path(directory) / "word_classes", "Word classes", rows, COLUMNS, word_classes_markdown)


def read_word_classes(path: str | Path) -> list[dict[str, str]]:
    """A table written by `write_word_classes`, every cell as text."""
    return read_csv(path, COLUMNS)


def word_classes_markdown(rows: Sequence[dict[str, str]]) -> str:
    """One line a class, its words in order of their counts."""
    if not rows:
        return ""
    cells = [[row["class"], f"{int(row['size']):,}", f"{int(row['tokens']):,}", escape(row["words"])] for row in rows]
    notes = [
        f"Some of the {rows[0]['classes']} classes of the best class-based model on validation, from the one of "
        "most tokens in train on, each by its most frequent words. Classes are numbered by their tokens.",
    ]
    return (
        markdown_table(["class", "words in it", "tokens", "most frequent words"], cells, left=4) + "\n" + bullets(notes)
    )
