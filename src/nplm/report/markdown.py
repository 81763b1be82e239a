"""Tables in Markdown that read well as plain text too."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from nplm.files import write_csv, write_text


def write_csv_and_markdown(
    path: str | Path,
    title: str,
    rows: Sequence[dict[str, object]],
    columns: Iterable[str],
    markdown: Callable[[list[dict[str, str]]], str],
) -> None:
    """Write rows to `path`.csv, and under a title to `path`.md as `markdown` shows them, every cell being text."""
    write_csv(f"{path}.csv", rows, columns)
    text = markdown([{column: str(cell) for column, cell in row.items()} for row in rows])
    write_text(f"{path}.md", f"# {escape(title)}\n\n{text}")


def escape(text: str) -> str:
    """Text, on one line, in which Markdown sees nothing but text; the bar is left to `markdown_table`."""
    return re.sub(r"[\\`*<\[\]~]|&(?=#?\w+;)|(?<!\w)_|_(?!\w)", r"\\\g<0>", " ".join(text.split()))


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A pipe table with columns padded to one width; the first `left` columns are flush left, the others right."""
    cells = [[cell.replace("|", "\\|") for cell in line] for line in (header, *rows)]
    widths = [max(3, *(len(line[column]) for line in cells)) for column in range(len(header))]

    def padded(line: Sequence[str]) -> str:
        sides = (
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "| " + " | ".join(sides) + " |"

    rule = ("-" * width if column < left else "-" * (width - 1) + ":" for column, width in enumerate(widths))
    return "\n".join([padded(cells[0]), "| " + " | ".join(rule) + " |", *map(padded, cells[1:])]) + "\n"


def bullets(notes: Sequence[str]) -> str:
    """A bulleted list, one note a line."""
    return "".join(f"- {note}\n" for note in notes)
