"""Where one model is better than another: their gain over the baseline by how often train has the context, or the word.

Mixing helps where two models make their errors in different places (paper, section 4.2): these tables show the places.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nplm.files import read_csv, write_csv
from nplm.report.table import Row, best_on_validation, lowest_on_validation

COLUMNS = ("by", "frequency_lowest", "frequency_highest", "tokens", "model", "gain", "standard_error")
"""gain: mean of ln P(model) − ln P(baseline) over the tokens, in nats per token, with its standard error"""
BY = {"context": "how often train has the context (w[t−2], w[t−1])", "word": "how often train has the word w[t]"}


def frequency_groups(frequency: np.ndarray) -> np.ndarray:
    """Group of each frequency [T]: 0 for 0, then 1 for 1–3, 2 for 4–15, 3 for 16–63, ...: factors of four."""
    return (np.frexp(frequency.astype(np.float64))[1] + 1) // 2


def group_range(group: int) -> tuple[int, int]:
    """Lowest and highest frequency of a group of `frequency_groups`."""
    return (0, 0) if group == 0 else (4 ** (group - 1), 4**group - 1)


def tabulate_gains(
    ln_prob: Mapping[str, np.ndarray], baseline: str, frequencies: Mapping[str, np.ndarray]
) -> list[dict[str, object]]:
    """The gain of every model over the baseline, by groups of the tokens' frequencies.

    ln_prob: model -> nats [T]; frequencies: "context" and "word" (`BY`) -> occurrences in train [T].
    """
    rows = []
    for by, frequency in frequencies.items():
        groups = frequency_groups(frequency)
        tokens = np.bincount(groups)
        occupied = np.flatnonzero(tokens)
        for model, values in ln_prob.items():
            if model == baseline:
                continue
            gain = values - ln_prob[baseline]
            sums, squares = np.bincount(groups, gain), np.bincount(groups, gain**2)
            for group in occupied:
                lowest, highest = group_range(int(group))
                mean = sums[group] / tokens[group]
                error = np.sqrt(max(0.0, squares[group] / tokens[group] - mean**2) / tokens[group])
                rows.append(
                    {
                        "by": by,
                        "frequency_lowest": lowest,
                        "frequency_highest": highest,
                        "tokens": int(tokens[group]),
                        "model": model,
                        "gain": f"{mean:.5f}",
                        "standard_error": f"{error:.5f}",
                    }
                )
    return rows


def models_to_show(rows: Sequence[Row], baseline: str) -> dict[str, str]:
    """label -> model: the best network, the best network mixture and the best n-gram on validation, baseline aside."""
    rows = [row for row in rows if row["scores"] != baseline]
    best = {
        "best network": best_network(rows),
        "best network mixture": best_on_validation(rows, "network mixture"),
        "best other n-gram": best_on_validation(rows, "n-gram"),
    }
    return {f"{label}: {row['row']}": row["scores"] for label, row in best.items() if row}


def best_network(rows: Sequence[Row]) -> Row | None:
    """The unmixed network with the lowest validation perplexity; None if none was run."""
    return lowest_on_validation(row for row in rows if row["family"] == "network" and row["mix"] == "no")


def write_gains(path: str | Path, rows: list[dict[str, object]]) -> None:
    """Write gains.csv; see `COLUMNS`."""
    write_csv(path, rows, COLUMNS)


def read_gains(path: str | Path) -> list[Row]:
    """A table written by `write_gains`, every cell as text."""
    return read_csv(path, COLUMNS)
