"""The report's figures, drawn from its tables and the networks' histories."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from nplm.errors import InputError
from nplm.report.history import Epochs, chosen_epoch
from nplm.report.mixture_table import POOLED, frequency_range
from nplm.report.style import COLORS, LINES, MARKERS, drawn, plain_logarithmic
from nplm.report.table import NOT_RUN, Row, row_label


def plot_learning_curves(path: str | Path, histories: dict[str, Epochs]) -> None:
    """Train and validation perplexity by epoch, one panel per network, the chosen epoch marked."""
    from matplotlib.ticker import MaxNLocator

    panels = len(histories)
    with drawn(path, 1.2 + 2.1 * panels, panels, sharex=True, sharey=True) as (figure, axes):
        for ax, (network, epochs) in zip(axes, histories.items(), strict=True):
            x = [epoch["epoch"] for epoch in epochs]
            curves = {
                "validation": [epoch["valid_perplexity"] for epoch in epochs],
                "train, while it learns": [epoch["train_perplexity"] for epoch in epochs],
            }
            for (label, y), color, line, marker in zip(curves.items(), COLORS, LINES, MARKERS, strict=False):
                ax.plot(x, y, line, color=color, marker=marker, markersize=4, label=label)
            best = chosen_epoch(epochs)
            ax.plot(best["epoch"], best["valid_perplexity"], "o", ms=12, mfc="none", mec="black", label="chosen epoch")
            ax.set_title(f"{network}: {best['valid_perplexity']:.1f} on validation after epoch {best['epoch']:.0f}")
            ax.set_ylabel("perplexity")
            plain_logarithmic(ax.yaxis)
        axes[-1].set_xlabel("epoch")
        axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)


def plot_perplexity(path: str | Path, tables: Sequence[Sequence[Row]]) -> None:
    """Test perplexity of every row that we or the paper have, one line each, ours and the paper's on one axis.

    Raises InputError when there is none.
    """
    rows = [row for table in tables for row in table]
    shown = [row for row in rows if row["test_ppl"] != NOT_RUN or row["paper_test_ppl"]]
    if not shown:
        raise InputError(f"{path}: no row of the tables has a test perplexity; run a model first")
    columns = {"test_ppl": ("ours", "o", "black", 6), "paper_test_ppl": ("paper", "D", "none", 9)}
    points = {
        column: [(float(row[column]), y) for y, row in enumerate(shown) if row[column] not in ("", NOT_RUN)]
        for column in columns
    }
    # One far worse model (a unigram) would press all others together: what is beyond the end is written there.
    end = 1.5 * median(perplexity for column in points.values() for perplexity, _ in column)
    with drawn(path, 1.6 + 0.28 * len(shown)) as (figure, (ax,)):
        for column, (label, marker, face, size) in columns.items():
            inside = [point for point in points[column] if point[0] <= end]
            x, y = zip(*inside, strict=True) if inside else ((), ())
            ax.plot(x, y, marker, mfc=face, mec="black", ms=size, label=label)
            for perplexity, y in points[column]:
                if perplexity > end:
                    ax.annotate(
                        f"{label}: {perplexity:.0f} →",
                        (1, y),
                        xycoords=("axes fraction", "data"),
                        ha="right",
                        va="center",
                        backgroundcolor="white",
                    )
        ax.set_yticks(range(len(shown)), [row_label(row, rows) for row in shown])
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.set_xlabel("test perplexity")
        figure.legend(loc="outside upper center", ncols=2)


def plot_mixture_weights(path: str | Path, weights: Sequence[dict[str, str]]) -> None:
    """Weights of the binned mixtures by context frequency, and how many validation tokens each bin has.

    Of a mixture's components the last is left out: its weight is what the others leave of 1. Raises InputError when
    there is no binned mixture.
    """
    binned = [row for row in weights if row["kind"] == "binned" and row["bin"] != POOLED]
    if not binned:
        raise InputError(f"{path}: none of the mixtures has a weight per bin; add one with weights: binned")
    bins = {row["bin"]: row for row in sorted(binned, key=lambda row: -int(row["bin"]))}
    place = {bin: x for x, bin in enumerate(bins)}
    mixtures = {mixture: [row for row in binned if row["mixture"] == mixture] for mixture in _names(binned, "mixture")}
    curves = [
        (f"{component} in {mixture}", [row for row in rows if row["component"] == component])
        for mixture, rows in mixtures.items()
        for component in _names(rows, "component")[:-1]
    ]
    with drawn(path, 6, 2, sharex=True, height_ratios=[3, 1]) as (figure, (top, bottom)):
        for number, (label, rows) in enumerate(curves):
            top.plot(
                [place[row["bin"]] for row in rows],
                [float(row["weight"]) for row in rows],
                LINES[number % len(LINES)],
                color=COLORS[number % len(COLORS)],
                marker=MARKERS[number % len(MARKERS)],
                label=label,
                clip_on=False,
            )
        top.set_ylim(0, 1)
        top.set_ylabel("weight")
        tokens = [int(row["tokens"]) for row in bins.values()]
        bottom.bar(list(place.values()), [count / sum(tokens) for count in tokens], color="#999999", edgecolor="black")
        bottom.yaxis.set_major_formatter("{x:.0%}")
        bottom.set_ylabel("tokens")
        bottom.set_xticks(list(place.values()), [frequency_range(row) for row in bins.values()], rotation=90)
        bottom.set_xlabel("how often train has the context (w[t−2], w[t−1])")
        figure.legend(loc="outside upper center", ncols=1)


def plot_classes(path: str | Path, rows: Sequence[Row]) -> None:
    """Test perplexity against the number of classes, ours and the paper's, one curve for each order n.

    Raises InputError when no row has classes.
    """
    rows = [row for row in rows if row["c"]]
    if not rows:
        raise InputError(f"{path}: no row of the tables has a number of classes (column c); add a class-based model")
    with drawn(path, 4.5) as (figure, (ax,)):
        for column, whose, line, filled in (("paper_test_ppl", "paper", "--", False), ("test_ppl", "ours", "-", True)):
            for number, n in enumerate(_names(rows, "n")):
                points = [row for row in rows if row["n"] == n and row[column] not in ("", NOT_RUN)]
                points.sort(key=lambda row: int(row["c"]))
                if points:
                    ax.plot(
                        [int(row["c"]) for row in points],
                        [float(row[column]) for row in points],
                        line,
                        color="black",
                        marker=MARKERS[number % len(MARKERS)],
                        mfc="black" if filled else "white",
                        markersize=6 + 3 * number,  # the larger ones behind, so that equal values all show
                        zorder=3 - number / 10,
                        label=f"{whose}, n = {n}",
                    )
        plain_logarithmic(ax.xaxis)
        ax.set_xticks(sorted({int(row["c"]) for row in rows}))
        ax.set_xlabel("classes")
        ax.set_ylabel("test perplexity")
        figure.legend(loc="outside upper center", ncols=2)


def _names(rows: Sequence[dict[str, str]], column: str) -> list[str]:
    """The different cells of a column, in order of appearance."""
    return list(dict.fromkeys(row[column] for row in rows))
