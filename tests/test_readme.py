"""The README shows what the committed results say, and links to what is there."""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = ROOT / "reports" / "full" / "table1.csv"


def shown_rows() -> list[list[str]]:
    """The cells of the table between the markers, bold marks taken off, without its two head lines."""
    [table] = re.findall(r"<!-- table1 -->\n(.*?)<!-- end -->", README, flags=re.DOTALL)
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_table_is_that_of_the_committed_results():
    with open(TABLE, encoding="utf-8", newline="") as file:
        committed = list(csv.DictReader(file))

    def perplexity(row: dict[str, str], split: str) -> str:
        value, deviation = row[f"{split}_ppl"], row[f"{split}_ppl_sd"]
        return f"{float(value):.1f}" + (f" ± {float(deviation):.1f}" if deviation else "")

    expected = [
        [
            *(row[name] for name in ("row", "n", "c", "h", "m", "direct", "mix")),
            *(perplexity(row, split) for split in ("train", "valid", "test")),
            *(row[f"paper_{split}_ppl"] for split in ("valid", "test")),
        ]
        for row in committed
    ]
    assert shown_rows() == expected


def test_every_link_leads_to_a_file():
    targets = re.findall(r"\]\(([^)#]+)", README) + re.findall(r'src="([^"]+)"', README)
    missing = [target for target in targets if "://" not in target and not (ROOT / target).exists()]
    assert targets and not missing
