"""What the trainings of the networks took and reached, from their histories."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from nplm.files import read_csv
from nplm.report.history import chosen_epoch
from nplm.report.markdown import markdown_table, write_csv_and_markdown

COLUMNS = (
    "network",
    "strategy",
    "precision",
    "device",
    "ranks",
    "threads",
    "epochs",
    "chosen_epoch",
    "train_ppl",
    "valid_ppl",
    "seconds",
    "communication",
    "tokens_per_second",
    "peak_memory_mb",
)
HEADINGS = {
    "chosen_epoch": "chosen",
    "train_ppl": "train ppl",
    "valid_ppl": "valid ppl",
    "communication": "communication, %",
    "tokens_per_second": "tokens/s",
    "peak_memory_mb": "memory, MB",
}
NOTES = (
    "Perplexities are those of the chosen epoch, of train while learning. Seconds are of all epochs, without "
    "validation; communication is the waiting for other ranks, in per cent of them. Tokens/s is the median of the "
    "epochs; memory is the most that the first process held. An epoch shared with other work on the machine counts as "
    "it was.\n"
)

Row = dict[str, str]


def tabulate_trainings(histories: dict[str, Sequence[Row]]) -> list[Row]:
    """One row a network, from the lines of its history as read; cells that a history lacks are empty."""
    return [_row(network, epochs) for network, epochs in histories.items()]


def _row(network: str, epochs: Sequence[Row]) -> Row:
    best = chosen_epoch(epochs)
    seconds = sum(float(epoch["seconds_training"]) for epoch in epochs)
    communication = sum(float(epoch.get("seconds_communication") or 0) for epoch in epochs)
    rates = [float(epoch["tokens_per_second"]) for epoch in epochs if epoch.get("tokens_per_second")]
    memory = [float(epoch["peak_memory_mb"]) for epoch in epochs if epoch.get("peak_memory_mb")]
    return {
        "network": network,
        **{key: _one(epochs, key) for key in ("strategy", "precision", "device", "ranks", "threads")},
        "epochs": str(len(epochs)),
        "chosen_epoch": best["epoch"],
        "train_ppl": f"{float(best['train_perplexity']):.2f}",
        "valid_ppl": f"{float(best['valid_perplexity']):.2f}",
        "seconds": f"{seconds:.0f}",
        "communication": f"{100 * communication / seconds:.1f}" if _one(epochs, "ranks") not in ("", "1") else "",
        "tokens_per_second": f"{median(rates):.0f}" if rates else "",
        "peak_memory_mb": f"{max(memory):.0f}" if memory else "",
    }


def _one(epochs: Sequence[Row], key: str) -> str:
    """The epochs' value, or all their values where a training was moved between machines."""
    return ", ".join(dict.fromkeys(epoch[key] for epoch in epochs if epoch.get(key)))


def read_trainings(path: str | Path) -> list[Row]:
    """A table written by `write_trainings`."""
    return read_csv(path, COLUMNS)


def write_trainings(directory: str | Path, rows: Sequence[Row]) -> None:
    """Write trainings.csv and trainings.md."""
    write_csv_and_markdown(Path(directory) / "trainings", "Trainings", rows, COLUMNS, trainings_markdown)


def trainings_markdown(rows: Sequence[Row]) -> str:
    """The table for the reader."""
    header = [HEADINGS.get(column, column) for column in COLUMNS]
    return markdown_table(header, [[row[column] for column in COLUMNS] for row in rows], left=4) + "\n" + NOTES
