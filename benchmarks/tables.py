"""Put the tables of the pages on speed in from the files that the benchmarks wrote.

    python benchmarks/tables.py

A table stands between `<!-- FILE, FILE: COLUMN, COLUMN -->`, which names its source and columns, and `<!-- end -->`.
"""

import re
from pathlib import Path

from nplm.files import read_csv, write_text
from nplm.report.markdown import markdown_table

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / name for name in ("performance.md", "scaling.md")]
BLOCK = re.compile(r"(<!-- (?P<files>[\w/., ]+\.csv): (?P<columns>[\w, /]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(text: str, root: Path = ROOT) -> str:
    """The page with every table made anew. Raises InputError where a file or a column is missing."""

    def table(block: re.Match) -> str:
        columns = block["columns"].split(", ")
        rows = [row for file in block["files"].split(", ") for row in read_csv(root / file, columns)]
        words = sum(not _is_number(rows[0][column]) for column in columns)
        header = [column.replace("_", " ") for column in columns]
        return block[1] + markdown_table(header, [[row[column] for column in columns] for row in rows], left=words)

    return BLOCK.sub(table, text)


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-+]?[\d.,]+( s, \d+)?%?", cell) is not None


if __name__ == "__main__":
    for page in PAGES:
        write_text(page, filled(page.read_text()))
