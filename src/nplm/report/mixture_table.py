"""The weights of the mixtures, by context-frequency bin."""

from collections.abc import Iterable
from pathlib import Path

from nplm.files import read_csv
from nplm.mixture import Mixture
from nplm.report.markdown import bullets, markdown_table, write_csv_and_markdown

COLUMNS = ("mixture", "kind", "bin", "frequency_lowest", "frequency_highest", "tokens", "component", "weight")
POOLED = "pooled"
"""in column bin: the weights for bins that the fitted split does not have"""

Row = dict[str, object]


def tabulate_mixture_weights(mixtures: Iterable[Mixture]) -> list[Row]:
    """One row per mixture, bin and component; bins with rare contexts first, empty bins left to the pooled weights."""
    rows: list[Row] = []
    for mixture in mixtures:
        bins = [b for b in reversed(range(len(mixture.weights))) if mixture.tokens_per_bin[b]]
        for b in bins:
            lowest, highest = mixture.frequency_range_per_bin[b] if mixture.frequency_range_per_bin else ("", "")
            cells = {
                "bin": b if mixture.kind == "binned" else "",
                "frequency_lowest": lowest,
                "frequency_highest": highest,
                "tokens": mixture.tokens_per_bin[b],
            }
            rows += _rows(mixture, cells, mixture.weights[b])
        if mixture.kind == "binned":
            cells = {"bin": POOLED, "frequency_lowest": "", "frequency_highest": "", "tokens": 0}
            rows += _rows(mixture, cells, mixture.pooled_weights)
    return rows


def _rows(mixture: Mixture, cells: Row, weights: list[float]) -> list[Row]:
    return [
        {"mixture": mixture.name, "kind": mixture.kind, **cells, "component": component, "weight": f"{weight:.6f}"}
        for component, weight in zip(mixture.components, weights, strict=True)
    ]


def read_mixture_weights(path: str | Path) -> list[dict[str, str]]:
    """A table written by `write_mixture_weights`, every cell as text."""
    return read_csv(path, COLUMNS)


def write_mixture_weights(directory: str | Path, rows: list[Row]) -> None:
    """Write mixture_weights.csv and mixture_weights.md."""
    write_csv_and_markdown(
        Path(directory) / "mixture_weights", "Weights of the mixtures", rows, COLUMNS, mixture_weights_markdown
    )


def mixture_weights_markdown(rows: list[dict[str, str]]) -> str:
    """The weights for the reader: one line per bin, the components' weights side by side."""
    lines: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        lines.setdefault((row["mixture"], row["bin"]), []).append(row)
    cells = [
        [
            mixture,
            group[0]["kind"],
            " + ".join(row["component"] for row in group),
            " + ".join(f"{float(row['weight']):.3f}" for row in group),
            bin,
            frequency_range(group[0]),
            f"{int(group[0]['tokens']):,}",
        ]
        for (mixture, bin), group in lines.items()
    ]
    header = ["mixture", "kind", "components", "weights", "bin", "context frequency", "tokens"]
    notes = [
        "Fitted by EM on the validation split; fixed weights are equal.",
        "Context frequency: how often (w[t−2], w[t−1]) occurs in train, lowest to highest of the bin's contexts on the "
        "validation split; tokens: how many of that split are in the bin.",
        "Bin pooled: fitted on all tokens together, for bins that the validation split does not have.",
    ]
    return markdown_table(header, cells, left=3) + "\n" + bullets(notes)


def frequency_range(row: dict[str, str]) -> str:
    """The frequencies of a bin's contexts, such as "3" or "4–12"; empty where there is none."""
    lowest, highest = row["frequency_lowest"], row["frequency_highest"]
    return lowest if lowest == highest else f"{lowest}–{highest}"
