"""The weights of the mixtures and of the interpolated trigram, by context-frequency bin."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from nplm.arrays import require_same_vocabulary
from nplm.errors import InputError
from nplm.files import read_csv
from nplm.mixture import ContextBins, Mixture, frequency_ranges
from nplm.ngram.deleted_interpolation import DeletedInterpolation
from nplm.report.markdown import bullets, markdown_table, write_csv_and_markdown

COLUMNS = ("mixture", "kind", "bin", "frequency_lowest", "frequency_highest", "tokens", "component", "weight")
POOLED = "pooled"
"""in column bin: the weights for bins that the fitted split does not have"""

Row = dict[str, object]


def trigram_mixture(name: str, model: DeletedInterpolation, bins: ContextBins) -> Mixture:
    """The interpolated trigram as what it is, a mixture with weights per bin; `bins` are those of the validation split.

    Raises InputError when the model's weights were fitted on other tokens than the bins are of.
    """
    require_same_vocabulary((name, model.vocabulary), (bins.path, bins.vocabulary))
    tokens_per_bin = np.bincount(bins.bin, minlength=len(model.weights))
    if not np.array_equal(tokens_per_bin, model.valid_tokens_per_bin):
        raise InputError(f"{name}: was not fitted on the split of {bins.path}; give the context bins of valid")
    from_all_tokens = model.weights[model.valid_tokens_per_bin == 0, ::-1]
    return Mixture(
        name=name,
        kind="binned",
        components=["trigram", "bigram", "unigram", "uniform"],
        weights=model.weights[:, ::-1].tolist(),
        pooled_weights=from_all_tokens[0].tolist() if len(from_all_tokens) else [],
        tokens_per_bin=tokens_per_bin.tolist(),
        frequency_range_per_bin=frequency_ranges(bins),
        mean_ln_prob_per_iteration=model.mean_ln_prob.tolist(),
        vocabulary=model.vocabulary,
        fitted_on=bins.split,
    )


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
        if mixture.kind == "binned" and mixture.pooled_weights:
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
        "Fitted by EM on the validation split; fixed weights are equal. The interpolated trigram is a mixture of "
        "relative frequencies; where the context was never seen, that of the trigram is the bigram's.",
        "Context frequency: how often (w[t−2], w[t−1]) occurs in train, lowest to highest of the bin's contexts on the "
        "validation split; tokens: how many of that split are in the bin.",
        "Bin pooled: fitted on all tokens together, for bins that the validation split does not have.",
    ]
    return markdown_table(header, cells, left=3) + "\n" + bullets(notes)


def frequency_range(row: dict[str, str]) -> str:
    """The frequencies of a bin's contexts, such as "3" or "4–12"; empty where there is none."""
    lowest, highest = row["frequency_lowest"], row["frequency_highest"]
    return lowest if lowest == highest else f"{lowest}–{highest}"
