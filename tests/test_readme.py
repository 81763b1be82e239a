"""The README shows what the committed results say, and links to what is there."""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROSE = " ".join(README.split())
TABLE = ROOT / "reports" / "full" / "table1.csv"


def shown_rows() -> list[list[str]]:
    """The cells of the table between the markers, bold marks taken off, without its two head lines."""
    [table] = re.findall(r"<!-- table1 -->\n(.*?)<!-- end -->", README, flags=re.DOTALL)
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_table_is_that_of_the_committed_results():
    def perplexity(row: dict[str, str], split: str) -> str:
        value, deviation = row[f"{split}_ppl"], row[f"{split}_ppl_sd"]
        return f"{float(value):.1f}" + (f" ± {float(deviation):.1f}" if deviation else "")

    expected = [
        [
            *(row[name] for name in ("row", "n", "c", "h", "m", "direct", "mix")),
            *(perplexity(row, split) for split in ("train", "valid", "test")),
            *(row[f"paper_{split}_ppl"] for split in ("valid", "test")),
        ]
        for row in rows_of(TABLE)
    ]
    assert shown_rows() == expected


def test_every_link_leads_to_a_file():
    targets = re.findall(r"\]\(([^)#]+)", README) + re.findall(r'src="([^"]+)"', README)
    missing = [target for target in targets if "://" not in target and not (ROOT / target).exists()]
    assert targets and not missing


def test_the_stand_ins_numbers_are_those_of_its_report():
    """The paper's rows and all rows: how far the best n-gram is above the best network mixture, in per cent."""
    report = ROOT / "reports" / "gutenberg"
    paper_rows = rows_of(report / "table2.csv")
    all_rows = paper_rows + rows_of(report / "extra.csv")
    [ratio] = [float(row["ratio_to_baseline"]) for row in paper_rows if row["row"] == "MLP10"]
    assert f"MLP10 has {ratio:.3f} of the trigram's test perplexity" in PROSE
    assert f"the best n-gram is {above(paper_rows):.1f} % above MLP10" in PROSE
    assert f"is {above(all_rows):.1f} % above the best network mixture" in PROSE
    [minutes] = [float(row["seconds"]) / 60 for row in rows_of(report / "trainings.csv")]
    assert f"five epochs, {minutes:.0f} minutes on two cores" in PROSE


def test_the_speeds_are_those_of_the_benchmark():
    def tokens_per_second(file: str, column: str) -> dict[str, int]:
        rows = rows_of(ROOT / "benchmarks" / "results" / file)
        return {row["network"]: int(row[column]) for row in rows if row["precision"] == "bfloat16"}

    ours = tokens_per_second("train_2.csv", "update_tokens_per_second")
    plain = tokens_per_second("train.csv", "plain_tokens_per_second")
    times = {network: f"{ours[network] / plain[network]:.1f}" for network in ours}
    assert f"the AP News network learns {ours['AP News']} tokens a second and MLP9 {ours['MLP9']}" in PROSE
    assert f"{times['AP News']} and {times['MLP9']} times what plain PyTorch does on both cores" in PROSE


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def above(rows: list[dict[str, str]]) -> float:
    """Per cent by which the best n-gram is above the best network mixture on test; the last ones that are marked so."""
    best = {row["best_on_validation"]: float(row["test_ppl"]) for row in rows}
    return 100 * (best["n-gram"] / best["network mixture"] - 1)
