"""Whether one model is better than another, or only luckier on this text: a paired block bootstrap on score streams.

Two models that score the same tokens make much the same mistakes, and the tokens of one text go together. So the stream
is cut into blocks, blocks are drawn with replacement, and both models are measured on the same draw (Künsch 1989 for
blocks of dependent data; Koehn 2004 for paired tests of language technology). The spread of the ratio of the two
perplexities over many draws gives its interval. What another training would change is in it too where rows were trained
from several seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy import stats

from nplm.configuration import further_seeds
from nplm.errors import InputError
from nplm.files import read_csv, write_csv
from nplm.scores import ScoreStream

COLUMNS = ("model", "other", "split", "ratio", "low", "high", "tokens", "block_length", "resamples")
LEVEL = 0.95
"""what part of the draws the interval holds; as many are below it as above it"""


@dataclass(frozen=True)
class Interval:
    """A value (such as the perplexity of one model divided by another's) and its interval at `LEVEL`."""

    value: float
    low: float
    high: float

    @property
    def inverse(self) -> "Interval":
        """The same comparison the other way round."""
        return Interval(1 / self.value, 1 / self.high, 1 / self.low)


Comparisons = dict[tuple[str, str], Interval]
"""(model, other) -> perplexity of model / perplexity of other"""


def block_sums(ln_prob: np.ndarray, block_length: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of ln_prob [M, T] over consecutive blocks, [M, B], and the tokens of each, int [B]; the last may be shorter.

    Raises InputError when there are fewer than two blocks: from one, nothing can be drawn.
    """
    T = ln_prob.shape[1]
    starts = np.arange(0, T, block_length)
    if len(starts) < 2:
        raise InputError(
            f"{T} tokens are fewer than two blocks of {block_length}; lower block_length (config: significance)"
        )
    return np.add.reduceat(ln_prob, starts, axis=1), np.diff(starts, append=T)


def resampled_means(ln_prob: np.ndarray, block_length: int, resamples: int, seed: int) -> np.ndarray:
    """Mean ln P per token (nats) of M models on the same draws of blocks: [resamples, M], from ln_prob [M, T]."""
    sums, tokens = block_sums(ln_prob, block_length)
    blocks = len(tokens)
    counts = np.random.default_rng(seed).multinomial(blocks, np.full(blocks, 1 / blocks), size=resamples)
    return (counts @ sums.T) / (counts @ tokens)[:, None]


def compare(ln_prob: dict[str, np.ndarray], block_length: int, resamples: int, seed: int) -> Comparisons:
    """Every pair of rows, in their order. ln_prob: row -> nats [S, T] of its S seeds, on the same tokens in all.

    A row's perplexity is the mean over its seeds, as in the tables, in every draw too. All pairs share the draws. What
    other seeds might change is added to either side of the interval, as independent of what other text would change.
    Raises InputError when the tokens are fewer than two blocks.
    """
    stacked = np.concatenate(list(ln_prob.values()))
    ends = np.cumsum([len(seeds) for seeds in ln_prob.values()])[:-1]

    def perplexities(means: np.ndarray) -> list[np.ndarray]:
        return [of_row.mean(axis=-1) for of_row in np.split(np.exp(-means), ends, axis=-1)]

    means = stacked.mean(axis=1)
    observed, of_seed = perplexities(means), np.split(means, ends)
    resampled = perplexities(resampled_means(stacked, block_length, resamples, seed))
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    comparisons: Comparisons = {}
    for (i, row), (j, other) in combinations(enumerate(ln_prob), 2):
        ratio = observed[i] / observed[j]
        sides = np.log(np.quantile(resampled[i] / resampled[j], tails) / ratio)
        below, above = np.exp(np.hypot(sides, _half_width_of_seeds(of_seed[i], of_seed[j])))
        comparisons[row, other] = Interval(*map(float, (ratio, ratio / below, ratio * above)))
    return comparisons


def _half_width_of_seeds(one: np.ndarray, other: np.ndarray) -> float:
    """Half of Student's interval at `LEVEL` of the mean difference over seeds, from each seed's mean ln P [S], nats.

    Seeds go in pairs, since a network and the mixtures of it share theirs. 0 where neither row has several.
    """
    S = min((len(row) for row in (one, other) if len(row) > 1), default=1)
    if S == 1:
        return 0.0
    differences = one[:S] - other[:S]  # a row of one seed is the same beside each of the other's
    return stats.t.ppf((1 + LEVEL) / 2, S - 1) * differences.std(ddof=1) / np.sqrt(S)


def of_seeds(streams: Sequence[ScoreStream], replicas: dict[str, list[str]]) -> dict[str, np.ndarray]:
    """ln P of every row, nats [S, T]: a line for each of the S seeds that it was trained from.

    replicas: row -> names of its streams, of the rows that have several. Raises InputError for two streams of one name,
    and when a row has some of its streams but not all.
    """
    ln_prob: dict[str, np.ndarray] = {}
    for stream in streams:
        if stream.model in ln_prob:
            raise InputError(f"two score streams of {stream.model}; give each once")
        ln_prob[stream.model] = stream.ln_prob
    for names in replicas.values():
        lacking = [name for name in names if name not in ln_prob]
        if 0 < len(lacking) < len(names):
            raise InputError(f"no score stream of {lacking[0]}; give those of all seeds: {', '.join(names)}")
    further = further_seeds(replicas)
    rows = (name for name in ln_prob if name not in further)
    return {row: np.stack([ln_prob[name] for name in replicas.get(row, [row])]) for row in rows}


def write_comparisons(path: str | Path, comparisons: Comparisons, **record: object) -> None:
    """Write one line per pair; `record` holds the columns that are the same in all: split, tokens, ..."""
    lines = (
        {"model": model, "other": other, "ratio": interval.value, "low": interval.low, "high": interval.high, **record}
        for (model, other), interval in comparisons.items()
    )
    write_csv(path, lines, COLUMNS)


def read_comparisons(path: str | Path) -> Comparisons:
    """Read what `write_comparisons` wrote, with every pair both ways round. Raises InputError for anything else."""
    comparisons: Comparisons = {}
    for number, row in enumerate(read_csv(path, COLUMNS), start=2):
        try:
            interval = Interval(float(row["ratio"]), float(row["low"]), float(row["high"]))
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}; make it anew with `nplm compare-models`") from None
        comparisons[row["model"], row["other"]] = interval
        comparisons[row["other"], row["model"]] = interval.inverse
    return comparisons
