"""The report's figures, drawn from its tables and the networks' histories."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median, stdev
from typing import TYPE_CHECKING

from nplm.configuration import further_seeds
from nplm.errors import InputError
from nplm.report.gains import BY
from nplm.report.history import Epochs, chosen_epoch, phases
from nplm.report.mixture_table import POOLED, frequency_range
from nplm.report.style import COLORS, HATCHES, LINES, MARKERS, SHADES, drawn, plain_logarithmic
from nplm.report.table import NOT_RUN, Row, row_label, whose

if TYPE_CHECKING:
    import numpy as np


def plot_learning_curves(
    path: str | Path, histories: dict[str, Epochs], replicas: dict[str, list[str]] | None = None
) -> None:
    """Train and validation perplexity by epoch, one panel per network with all its seeds, the chosen epochs marked.

    replicas: network -> names of its trainings, of the networks that have several. Raises InputError for one without a
    history.
    """
    from matplotlib.ticker import MaxNLocator

    further = further_seeds(replicas or {})
    networks = {name: (replicas or {}).get(name, [name]) for name in histories if name not in further}
    for training in (name for names in networks.values() for name in names):
        if training not in histories:
            raise InputError(f"{path}: no history of {training}; give those of all seeds")
    with drawn(path, 1.2 + 2.1 * len(networks), len(networks), sharex=True, sharey=True) as (figure, axes):
        for ax, (network, trainings) in zip(axes, networks.items(), strict=True):
            best = [chosen_epoch(histories[training]) for training in trainings]
            for epochs in (histories[training] for training in trainings):
                x = [epoch["epoch"] for epoch in epochs]
                curves = {
                    "validation": [epoch["valid_perplexity"] for epoch in epochs],
                    "train, while it learns": [epoch["train_perplexity"] for epoch in epochs],
                }
                for (label, y), color, line, marker in zip(curves.items(), COLORS, LINES, MARKERS, strict=False):
                    ax.plot(x, y, line, color=color, marker=marker, markersize=4, label=label)
            chosen = [[epoch[column] for epoch in best] for column in ("epoch", "valid_perplexity")]
            ax.plot(*chosen, "o", ms=12, mfc="none", mec="black", label="chosen epoch")
            perplexity = mean(chosen[1])
            ax.set_title(
                f"{network}: {perplexity:.1f} on validation after epoch {chosen[0][0]:.0f}"
                if len(trainings) == 1
                else f"{network}: {perplexity:.1f} ± {stdev(chosen[1]):.1f} on validation, {len(trainings)} seeds"
            )
            ax.set_ylabel("perplexity")
            plain_logarithmic(ax.yaxis)
        axes[-1].set_xlabel("epoch")
        axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes[-1].set_xlim(0.5, max(epochs[-1]["epoch"] for epochs in histories.values()) + 0.5)
        handles, labels = axes[0].get_legend_handles_labels()
        legend = dict(zip(labels, handles, strict=True))
        figure.legend(legend.values(), legend.keys(), loc="outside upper center", ncols=2)


def plot_perplexity(path: str | Path, tables: Sequence[Sequence[Row]]) -> None:
    """Test perplexity of every row that we or the paper have, one line each, ours and the paper's on one axis.

    Raises InputError when there is none.
    """
    rows = [row for table in tables for row in table]
    shown = [row for row in rows if row["test_ppl"] != NOT_RUN or row["paper_test_ppl"]]
    if not shown:
        raise InputError(f"{path}: no row of the tables has a test perplexity; run a model first")
    names = whose(rows)
    columns = {"test_ppl": (names[""], "o", "black", 6), "paper_test_ppl": (names["paper_"], "D", "none", 9)}
    points = {
        column: [(float(row[column]), y) for y, row in enumerate(shown) if row[column] not in ("", NOT_RUN)]
        for column in columns
    }
    points = {column: of_rows for column, of_rows in points.items() if of_rows}
    # One far worse model (a unigram) would press all others together: what is beyond the end is written there.
    end = 1.5 * median(perplexity for column in points.values() for perplexity, _ in column)
    with drawn(path, 1.6 + 0.28 * len(shown)) as (figure, (ax,)):
        for column in points:
            label, marker, face, size = columns[column]
            inside = [point for point in points[column] if point[0] <= end]
            x, y = zip(*inside, strict=True) if inside else ((), ())
            ax.plot(x, y, marker, mfc=face, mec="black", ms=size, label=label)
            short = label.partition(" ")[0]
            for perplexity, y in points[column]:
                if perplexity > end:
                    ax.annotate(
                        f"{short}: {perplexity:.0f} →",
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
    """Test perplexity against the number of classes: a curve for each order and variant of ours, each order of theirs.

    Mixtures are left out. Raises InputError when no row has classes.
    """
    rows = [row for row in rows if row["c"] and row["mix"] != "yes"]
    if not rows:
        raise InputError(f"{path}: no row of the tables has a number of classes (column c); add a class-based model")
    names = whose(rows)
    theirs = _by_classes(rows, "paper_test_ppl", lambda row: _legend(f"{names['paper_']}, n = {row['n']}"))
    ours = _by_classes(rows, "test_ppl", lambda row: _legend(f"{names['']}, n = {row['n']}, {row['variant']}"))
    with drawn(path, 4 + 0.25 * sum(1 + label.count("\n") for label in (*theirs, *ours))) as (figure, (ax,)):
        for curves, colors, lines, face in ((theirs, ("black",), (":",), "white"), (ours, COLORS, LINES, None)):
            for number, (label, points) in enumerate(curves.items()):
                ax.plot(
                    *zip(*points, strict=True),
                    lines[number % len(lines)],
                    color=colors[number % len(colors)],
                    marker=MARKERS[number % len(MARKERS)],
                    mfc=face,
                    # The first ones are larger and behind, so that equal ones all show.
                    markersize=6 + len(curves) - number - 1,
                    label=label,
                )
        plain_logarithmic(ax.xaxis)
        ax.set_xticks(sorted({int(row["c"]) for row in rows}))
        ax.set_xlabel("classes")
        ax.set_ylabel("test perplexity")
        figure.legend(loc="outside upper center", ncols=1)


def _legend(label: str) -> str:
    """A label in lines that fit the figure's width."""
    return "\n".join(textwrap.wrap(label, 46))


def _by_classes(rows: Sequence[Row], column: str, label: Callable[[Row], str]) -> dict[str, list[tuple[int, float]]]:
    """Label -> (number of classes, perplexity of the column) of the rows that have one, fewest classes first."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for row in sorted(rows, key=lambda row: int(row["c"])):
        if row[column] not in ("", NOT_RUN):
            curves.setdefault(label(row), []).append((int(row["c"]), float(row[column])))
    return curves


def plot_gains(path: str | Path, gains: Sequence[dict[str, str]], models: dict[str, str], baseline: str) -> None:
    """Gain over the baseline by frequency of the context and of the word, with the share of the tokens below.

    models: label -> model of each curve. Raises InputError when there is none.
    """
    if not models:
        raise InputError(f"{path}: no model but the baseline {baseline} was run; run a network or another n-gram")
    with drawn(path, 11, 4, height_ratios=[3, 1, 3, 1]) as (figure, axes):
        for (by, title), top, bottom in zip(BY.items(), axes[::2], axes[1::2], strict=True):
            rows = [row for row in gains if row["by"] == by]
            groups = {row["frequency_lowest"]: row for row in rows}
            place = {lowest: x for x, lowest in enumerate(sorted(groups, key=int))}
            for number, (label, model) in enumerate(models.items()):
                points = [row for row in rows if row["model"] == model]
                top.errorbar(
                    [place[row["frequency_lowest"]] for row in points],
                    [float(row["gain"]) for row in points],
                    [1.96 * float(row["standard_error"]) for row in points],
                    linestyle=LINES[number],
                    color=COLORS[number],
                    marker=MARKERS[number],
                    capsize=3,
                    label=label,
                )
            top.axhline(0, color="black", linewidth=1)
            top.set_ylabel("gain, nats per token")
            top.set_title(f"by {by}")
            shares = [int(groups[lowest]["tokens"]) for lowest in place]
            bottom.bar(list(place.values()), [n / sum(shares) for n in shares], color="#999999", edgecolor="black")
            bottom.yaxis.set_major_formatter("{x:.0%}")
            bottom.set_ylabel("tokens")
            top.set_xticks(list(place.values()), [])
            bottom.set_xticks(list(place.values()), [frequency_range(groups[low]) for low in place], rotation=90)
            top.set_xlim(-0.6, len(place) - 0.4)
            bottom.set_xlim(top.get_xlim())
            bottom.set_xlabel(title)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=1)


def plot_training_time(path: str | Path, histories: dict[str, Epochs]) -> None:
    """Minutes of an epoch by phase, the mean over all epochs of each network, stacked."""
    found = phases(epoch for epochs in histories.values() for epoch in epochs)
    # validation is the last: the other phases are training, in the order of an update
    found = [phase for phase in found if phase not in ("seconds_training", "seconds_validation")]
    found.append("seconds_validation")
    with drawn(path, 2.6 + 0.45 * len(histories) + 0.15 * len(found)) as (figure, (ax,)):
        left = [0.0] * len(histories)
        for number, phase in enumerate(found):
            minutes = [mean(epoch.get(phase, 0.0) for epoch in epochs) / 60 for epochs in histories.values()]
            ax.barh(
                range(len(histories)),
                minutes,
                left=left,
                color=SHADES[number % len(SHADES)],
                hatch=HATCHES[number % len(HATCHES)],
                edgecolor="black",
                label=phase.removeprefix("seconds_").replace("_", " "),
            )
            left = [sum(pair) for pair in zip(left, minutes, strict=True)]
        ax.set_yticks(range(len(histories)), list(histories))
        ax.set_ylim(len(histories) - 0.5, -0.5)
        ax.set_xlabel("minutes per epoch")
        ax.grid(axis="y", visible=False)
        figure.legend(loc="outside upper center", ncols=2)


def plot_words(path: str | Path, points: "np.ndarray", words: Sequence[str], axis_labels: tuple[str, str]) -> None:
    """Words at their points [N, 2], the first words first: a word is labelled where its label covers no earlier one."""
    with drawn(path, 6.4) as (figure, (ax,)):
        ax.plot(*points.T, ".", color="#aaaaaa", markersize=3, zorder=1)
        ax.set_xlabel(axis_labels[0])
        ax.set_ylabel(axis_labels[1])
        ax.grid(visible=False)
        figure.canvas.draw()  # fixes the layout, so that the labels' places are known
        taken: list = []
        for (x, y), word in zip(points, words, strict=True):
            label = ax.annotate(word, (x, y), ha="center", va="center", fontsize=9, zorder=2)
            box = label.get_window_extent()
            if any(box.overlaps(other) for other in taken):
                label.remove()
            else:
                taken.append(box)


def _names(rows: Sequence[dict[str, str]], column: str) -> list[str]:
    """The different cells of a column, in order of appearance."""
    return list(dict.fromkeys(row[column] for row in rows))
