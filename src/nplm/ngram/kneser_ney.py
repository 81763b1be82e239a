"""Modified Kneser-Ney smoothing, back-off and interpolated (Kneser & Ney 1995; Chen & Goodman 1999).

The count c(h, w) is in the highest order that of occurrences; in the lower orders the number of distinct words seen
before the n-gram. Each order has three discounts, of the counts 1, 2, and 3 and above. What `backoff` says of both
forms holds, but for the unigrams, which are interpolated with the uniform distribution in both.
"""

from pathlib import Path

import numpy as np

from nplm.arrays import read_arrays, write_arrays
from nplm.errors import InputError
from nplm.kinds import Kind
from nplm.ngram.backoff import (
    BACKOFF_KEYS,
    Backoff,
    check_cutoffs,
    checked_cutoffs,
    describe_sizes,
    from_arrays,
    from_counts,
    to_arrays,
)
from nplm.ngram.counts import NgramTable, count_ngrams, find
from nplm.streams import read_split

KIND = Kind(
    name="kneser_ney",
    title="modified Kneser-Ney n-gram, back-off or interpolated",
    source="Kneser & Ney 1995; Chen & Goodman 1999",
    own_keys=BACKOFF_KEYS,
    code=__name__,
    family="n-gram",
    check=check_cutoffs,
)
SMOOTHINGS = ("backoff", "interpolated")
FALLBACK_DISCOUNTS = np.array([0.5, 1.0, 1.5])
"""D1, D2, D3+ of an order whose counts do not define them, when the user asks for a fallback (KenLM's choice)."""


def fit(
    tokens: np.ndarray,
    vocabulary_size: int,
    n: int,
    smoothing: str = "interpolated",
    cutoffs: tuple[int, ...] | None = None,
    undefined_discounts: str = "error",
    vocabulary: str = "",
) -> Backoff:
    """Fit a model of order n to the stream `tokens` (word ids [T] in [0, vocabulary_size)).

    The stream's start counts as one more distinct word before the n-gram that begins there, so that every n-gram has a
    count in every order. cutoffs (one per order, None = 1 everywhere): an n-gram whose c(h, w) is below is treated as
    unseen and leaves its count to γ(h); the discounts come from all n-grams, as in SRILM.
    undefined_discounts: "error", or "fallback" = FALLBACK_DISCOUNTS for the order concerned.

    Raises InputError for a bad option or stream, and for undefined discounts unless a fallback is asked for.
    """
    cutoffs = checked_cutoffs(n, cutoffs, undefined_discounts)
    if smoothing not in SMOOTHINGS:
        raise InputError(f"smoothing '{smoothing}' is unknown; give one of {', '.join(SMOOTHINGS)}")
    tables = count_ngrams(tokens, vocabulary_size, n)
    counts = adjusted_counts(tokens, tables, vocabulary_size)

    discounts, fallback_orders = _all_discounts(counts, undefined_discounts)
    return from_counts(
        tables,
        counts,
        lost=[np.append(0, of_order) for of_order in discounts],
        backs_off=[False] + [smoothing == "backoff"] * (n - 1),
        cutoffs=cutoffs,
        vocabulary_size=vocabulary_size,
        vocabulary=vocabulary,
        smoothing=smoothing,
        discounts=discounts,
        fallback_orders=fallback_orders,
    )


def adjusted_counts(tokens: np.ndarray, tables: list[NgramTable], vocabulary_size: int) -> list[np.ndarray]:
    """c(h, w) per order: int64 [U]; occurrences in the highest order, distinct words to the left in the lower ones."""
    keys = [table.keys for table in tables]
    adjusted = []
    for k in range(1, len(tables)):
        left_words = np.bincount(keys[k] // vocabulary_size, minlength=len(keys[k - 1]))
        left_words[find(keys, tokens[None, :k], vocabulary_size)] += 1  # the stream's start
        adjusted.append(left_words)
    return [*adjusted, tables[-1].counts]


def modified_discounts(counts: np.ndarray, order: int) -> np.ndarray:
    """D1, D2, D3+ of one order from its counts: float64 [3] (Chen & Goodman 1999, equation 26).

    Y = n1 / (n1 + 2 n2) and D_j = j − (j + 1) Y n_{j+1} / n_j with n_j the number of n-grams that have count j.
    Raises InputError where an n_j is zero or a discount is not positive.
    """
    remedy = "train on other text, or ask for the fallback discounts (undefined_discounts: fallback)"
    n1, n2, n3, n4 = (int(n_j) for n_j in np.bincount(np.minimum(counts, 5), minlength=6)[1:5])
    for j, n_j in enumerate((n1, n2, n3, n4), start=1):
        if n_j == 0:
            raise InputError(f"order {order}: no {order}-gram has count {j}, which the discounts need; {remedy}")
    Y = n1 / (n1 + 2 * n2)
    discounts = np.array([1 - 2 * Y * n2 / n1, 2 - 3 * Y * n3 / n2, 3 - 4 * Y * n4 / n3])
    for j, discount in enumerate(discounts, start=1):
        if discount <= 0:
            raise InputError(f"order {order}: the discount of count {j} is {discount:.4g}, not positive; {remedy}")
    return discounts


def _all_discounts(counts: list[np.ndarray], undefined_discounts: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """The discounts of every order, float64 [n, 3], and the orders that had to take FALLBACK_DISCOUNTS."""
    discounts, fallback_orders = [], []
    for order, count in enumerate(counts, start=1):
        try:
            discounts.append(modified_discounts(count, order))
        except InputError:
            if undefined_discounts == "error":
                raise
            discounts.append(FALLBACK_DISCOUNTS)
            fallback_orders.append(order)
    return np.array(discounts), tuple(fallback_orders)


def fit_row(inputs: dict[str, Path], row: dict, seed: int | None) -> Backoff:
    """The model of a row of the configuration; see nplm.kinds.Kind."""
    split = read_split(inputs["train"])
    options = row["smoothing"], row["cutoffs"], row["undefined_discounts"]
    return fit(split.tokens, split.vocabulary_size, row["n"], *options, split.vocabulary)


def describe(model: Backoff) -> list[str]:
    """Numbers of n-grams and the discounts of each order."""
    discounts = (
        f"{k}: {', '.join(f'{d:.4f}' for d in of_order)}" + (" (fallback)" if k in model.fallback_orders else "")
        for k, of_order in enumerate(model.discounts, start=1)
    )
    return [describe_sizes(model), f"discounts D1, D2, D3+ of order {'; '.join(discounts)}"]


def write_model(path: str | Path, model: Backoff) -> None:
    """Write a model; see `read_model`."""
    arrays, header = to_arrays(model)
    write_arrays(path, "kneser_ney", arrays, **header)


def read_model(path: str | Path) -> Backoff:
    """Read a model written by `write_model`; it scores the same. Raises InputError for anything else."""
    return from_arrays(*read_arrays(path, "kneser_ney"))
