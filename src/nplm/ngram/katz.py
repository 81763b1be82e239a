"""Katz back-off with Good-Turing discounts (Katz 1987), the standard back-off of the paper's comparison.

Counts are occurrences in every order, and every order backs off (`backoff`): P(w | h) = d_r r / c(h) where (h, w) was
seen r > 0 times. With n_r the number of n-grams of the order that occur r times, r* = (r + 1) n_{r+1} / n_r what they
would occur by Good-Turing, and k = 5, Katz's own choice (SRILM has 7; validation perplexity of the trigram on Brown
404.0 instead of 405.1),

    d_r = (r*/r − (k + 1) n_{k+1} / n_1) / (1 − (k + 1) n_{k+1} / n_1)   for r ≤ k, else 1

A history all of whose counts are above k frees nothing; one count more, as in SRILM, makes room for what it lacks.

Unigrams cannot be discounted so. The recursion usually ends at their relative frequencies (Chen & Goodman 1999), which
are zero for a word of the vocabulary that train lacks; and where the rare words were taken out of the vocabulary, the
n_r do not fall as r grows (Brown: n_1 … n_4 = 684, 959, 1371, 2178), so r* > r. What Good-Turing gives all unseen words
together, n_1 / N with N the tokens, needs no more than n_1: they share it equally, and every other word keeps the part
1 − n_1 / N of its relative frequency. (With one count for all unseen words, which is what SRILM leaves them unless told
otherwise, the validation perplexity would be 451.1.)
"""

from pathlib import Path

import numpy as np

from nplm.arrays import read_arrays, write_arrays
from nplm.errors import InputError
from nplm.kinds import Kind
from nplm.ngram.backoff import (
    CUTOFFS_KEY,
    ORDER_KEY,
    UNDEFINED_DISCOUNTS_KEY,
    Backoff,
    check_cutoffs,
    checked_cutoffs,
    describe_sizes,
    from_arrays,
    from_counts,
    to_arrays,
)
from nplm.ngram.counts import count_ngrams
from nplm.streams import read_split

KIND = Kind(
    name="katz",
    title="Katz back-off n-gram with Good-Turing discounts",
    source="Katz 1987",
    own_keys=(ORDER_KEY, CUTOFFS_KEY, UNDEFINED_DISCOUNTS_KEY),
    code=__name__,
    family="n-gram",
    check=check_cutoffs,
)
K = 5
"""k: counts above are taken as they are"""


def fit(
    tokens: np.ndarray,
    vocabulary_size: int,
    n: int,
    cutoffs: tuple[int, ...] | None = None,
    undefined_discounts: str = "error",
    vocabulary: str = "",
) -> Backoff:
    """Fit a model of order n to the stream `tokens` (word ids [T] in [0, vocabulary_size)).

    cutoffs (one per order, None = 1 everywhere): an n-gram that occurs less often is treated as unseen; the discounts
    come from all n-grams, as in SRILM. undefined_discounts: "error", or "fallback" = a count whose discount the n_r do
    not define is not discounted, as in SRILM.

    Raises InputError for a bad option or stream, and for undefined discounts unless a fallback is asked for.
    """
    cutoffs = checked_cutoffs(n, cutoffs, undefined_discounts)
    tables = count_ngrams(tokens, vocabulary_size, n)
    counts = [table.counts for table in tables]

    discounts = np.array([good_turing_discounts(count) for count in counts[1:]]).reshape(n - 1, K)
    undefined = np.isnan(discounts)
    if undefined.any() and undefined_discounts == "error":
        order, r = np.argwhere(undefined)[0] + (2, 1)
        raise InputError(
            f"order {order}: the numbers of {order}-grams that occur once, twice, … define no discount of count {r}; "
            "train on other text, or leave such counts undiscounted (undefined_discounts: fallback)"
        )
    discounts[undefined] = 1
    unseen = np.count_nonzero(counts[0] == 1) / len(tokens)
    lost = [unseen * np.arange(counts[0].max() + 1)]
    lost += [np.arange(K + 2) * np.hstack([0, 1 - d, 0]) for d in discounts]
    return from_counts(
        tables,
        counts,
        lost,
        backs_off=[True] * n,
        cutoffs=cutoffs,
        vocabulary_size=vocabulary_size,
        vocabulary=vocabulary,
        smoothing="katz",
        discounts=discounts,
        fallback_orders=tuple(int(k) for k in np.flatnonzero(undefined.any(axis=1)) + 2),
    )


def good_turing_discounts(counts: np.ndarray) -> np.ndarray:
    """d_1 … d_k of one order from its counts: float64 [K], nan where the n_r define none.

    That is where n_r is zero, r* is above r, or d_r is not in (0, 1].
    """
    n_r = np.bincount(np.minimum(counts, K + 2), minlength=K + 3)[1 : K + 2]
    r = np.arange(1, K + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (r + 1) * n_r[1:] / (r * n_r[:-1])
        common = (K + 1) * n_r[K] / n_r[0]
        d = (ratio - common) / (1 - common)
    return np.where((ratio <= 1) & (d > 0) & (d <= 1), d, np.nan)


def fit_row(inputs: dict[str, Path], row: dict, seed: int | None) -> Backoff:
    """The model of a row of the configuration; see nplm.kinds.Kind."""
    split = read_split(inputs["train"])
    options = row["cutoffs"], row["undefined_discounts"]
    return fit(split.tokens, split.vocabulary_size, row["n"], *options, split.vocabulary)


def describe(model: Backoff) -> list[str]:
    """Numbers of n-grams and the discounts of each order."""
    lines = [describe_sizes(model)]
    for k, of_order in enumerate(model.discounts, start=2):
        fallback = " (fallback)" if k in model.fallback_orders else ""
        lines.append(f"discounts d1, d2, … of order {k}: {', '.join(f'{d:.4f}' for d in of_order)}{fallback}")
    return lines


def write_model(path: str | Path, model: Backoff) -> None:
    """Write a model; see `read_model`."""
    arrays, header = to_arrays(model)
    write_arrays(path, "katz", arrays, **header)


def read_model(path: str | Path) -> Backoff:
    """Read a model written by `write_model`; it scores the same. Raises InputError for anything else."""
    return from_arrays(*read_arrays(path, "katz"))
