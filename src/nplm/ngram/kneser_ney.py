"""Modified Kneser-Ney smoothing, back-off and interpolated (Kneser & Ney 1995; Chen & Goodman 1999).

With c(h, w) the count of word w after history h (in the highest order: occurrences; in the lower orders: the number of
distinct words seen before the n-gram), c(h) = Σ_w c(h, w), h' = h without its oldest word, D the discount of a count:

- interpolated: P(w | h) = (c(h, w) − D(c(h, w))) / c(h) + γ(h) P(w | h')
- back-off: P(w | h) = (c(h, w) − D(c(h, w))) / c(h) where (h, w) was seen, else γ(h) P(w | h')

with γ(h) such that the probabilities sum to 1, and P(w | h) = P(w | h') where h was never seen. In both, unigrams are
interpolated with the uniform distribution 1/|V|, so every word of the vocabulary has a positive probability.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nplm.arrays import read_arrays, write_arrays
from nplm.errors import InputError
from nplm.ngram.counts import MISSING, NgramTable, count_ngrams, extend, find
from nplm.streams import check_order

SMOOTHINGS = ("backoff", "interpolated")
FALLBACK_DISCOUNTS = np.array([0.5, 1.0, 1.5])
"""D1, D2, D3+ of an order whose counts do not define them, when the user asks for a fallback (KenLM's choice)."""


@dataclass(frozen=True)
class KneserNey:
    """A fitted model in back-off form: the P of each n-gram in the tables, and γ of each history; numbers as in counts.

    P(w | h) is that of the longest n-gram (suffix of h, w) in the tables, times γ of every longer suffix of h in them.
    """

    n: int
    vocabulary: str
    vocabulary_size: int
    smoothing: str
    cutoffs: tuple[int, ...]
    """the least count that is kept, per order"""
    discounts: np.ndarray
    """D1, D2, D3+: float64 [n, 3]"""
    fallback_orders: tuple[int, ...]
    """orders whose discounts are FALLBACK_DISCOUNTS"""
    keys: list[np.ndarray]
    """per order 1 … n: int64 [U]"""
    ngram_ln_prob: list[np.ndarray]
    """ln P(last word | the words before it), nats, per order 1 … n: float64 [U]"""
    ln_gamma: list[np.ndarray]
    """ln γ of the n-gram as a history, per order 1 … n-1: float64 [U]"""

    def ln_prob(self, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        """ln P(word | context), nats: float64 [T]; see `nplm.scores.Scorer`."""
        V = self.vocabulary_size
        ngrams = np.asarray(words, dtype=np.int64)
        result = self.ngram_ln_prob[0][ngrams]
        if self.n == 1:
            return result
        histories = contexts[:, -1].astype(np.int64)
        for k in range(2, self.n + 1):
            ngrams = extend(self.keys[k - 1], ngrams, contexts[:, 1 - k], V)
            seen = ngrams != MISSING
            backs_off = ~seen & (histories != MISSING)
            result[backs_off] += self.ln_gamma[k - 2][histories[backs_off]]
            result[seen] = self.ngram_ln_prob[k - 1][ngrams[seen]]
            if k < self.n:
                histories = extend(self.keys[k - 1], histories, contexts[:, -k], V)
        return result


def fit(
    tokens: np.ndarray,
    vocabulary_size: int,
    n: int,
    smoothing: str = "interpolated",
    cutoffs: tuple[int, ...] | None = None,
    undefined_discounts: str = "error",
    vocabulary: str = "",
) -> KneserNey:
    """Fit a model of order n to the stream `tokens` (word ids [T] in [0, vocabulary_size)).

    The stream's start counts as one more distinct word before the n-gram that begins there, so that every n-gram has a
    count in every order. cutoffs (one per order, None = 1 everywhere): an n-gram whose c(h, w) is below is treated as
    unseen and leaves its count to γ(h); the discounts come from all n-grams, as in SRILM.
    undefined_discounts: "error", or "fallback" = FALLBACK_DISCOUNTS for the order concerned.

    Raises InputError for a bad option or stream, and for undefined discounts unless a fallback is asked for.
    """
    check_order(n)
    cutoffs = tuple(cutoffs or (1,) * n)
    _check_options(n, smoothing, cutoffs, undefined_discounts)
    tables = count_ngrams(tokens, vocabulary_size, n)
    counts = adjusted_counts(tokens, tables, vocabulary_size)

    discounts, fallback_orders = _all_discounts(counts, undefined_discounts)

    prob, gamma = [np.array([1 / vocabulary_size])], []
    for k, (table, count) in enumerate(zip(tables, counts, strict=True), start=1):
        removed = np.append(0, discounts[k - 1])[np.minimum(count, 3)]
        if cutoffs[k - 1] > 1:
            removed = np.where(count < cutoffs[k - 1], count, removed)
        lower = prob[k - 1][table.keys // vocabulary_size]
        backs_off = smoothing == "backoff" and k > 1
        p, g = _probabilities(count, removed, table.histories, len(prob[k - 1]), lower, backs_off, vocabulary_size)
        prob.append(p)
        gamma.append(g)

    keys = [table.keys for table in tables]
    if max(cutoffs) > 1:
        kept = [count >= cutoff for count, cutoff in zip(counts, cutoffs, strict=True)]
        keys = _drop_unneeded(kept, tables, vocabulary_size)
        prob[1:] = [p[keep] for p, keep in zip(prob[1:], kept, strict=True)]
        gamma[1:] = [g[keep] for g, keep in zip(gamma[1:], kept[:-1], strict=True)]
    return KneserNey(
        n=n,
        vocabulary=vocabulary,
        vocabulary_size=vocabulary_size,
        smoothing=smoothing,
        cutoffs=cutoffs,
        discounts=discounts,
        fallback_orders=fallback_orders,
        keys=keys,
        ngram_ln_prob=[np.log(p) for p in prob[1:]],
        ln_gamma=[np.log(g) for g in gamma[1:]],
    )


def _check_options(n: int, smoothing: str, cutoffs: tuple[int, ...], undefined_discounts: str) -> None:
    if smoothing not in SMOOTHINGS:
        raise InputError(f"smoothing '{smoothing}' is unknown; give one of {', '.join(SMOOTHINGS)}")
    if len(cutoffs) != n or min(cutoffs) < 1:
        raise InputError(
            f"cut-offs {', '.join(map(str, cutoffs))} do not fit order {n}; give {n} least counts, each at least 1"
        )
    if undefined_discounts not in ("error", "fallback"):
        raise InputError(f"undefined_discounts '{undefined_discounts}' is unknown; give error or fallback")


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


def _probabilities(
    counts: np.ndarray,
    removed: np.ndarray,
    histories: np.ndarray,
    number_of_histories: int,
    lower: np.ndarray,
    backs_off: bool,
    vocabulary_size: int,
) -> tuple[np.ndarray, np.ndarray]:
    """P of the n-grams of one order, [U], and γ of their histories, [number_of_histories].

    counts [U], removed [U]: c(h, w) and what it loses; histories [U]: numbers of h; lower [U]: P(w | h').
    In the back-off form, γ shares what was removed among the words not seen after the history. A history that every
    word of the vocabulary follows has none: its words keep what was removed, in proportion, and its γ is never used.
    """
    total = np.bincount(histories, counts, minlength=number_of_histories)
    gamma = np.ones(number_of_histories)
    np.divide(np.bincount(histories, removed, minlength=number_of_histories), total, out=gamma, where=total > 0)
    discounted = (counts - removed) / total[histories]
    if not backs_off:
        return discounted + gamma[histories] * lower, gamma
    seen = counts > removed
    lower_unseen = 1 - np.bincount(histories, lower * seen, minlength=number_of_histories)
    complete = np.bincount(histories, seen, minlength=number_of_histories) == vocabulary_size
    discounted /= np.where(complete, 1 - gamma, 1)[histories]
    gamma = np.divide(gamma, lower_unseen, out=np.ones(number_of_histories), where=~complete)
    return np.where(seen, discounted, gamma[histories] * lower), gamma


def _drop_unneeded(kept: list[np.ndarray], tables: list[NgramTable], vocabulary_size: int) -> list[np.ndarray]:
    """Renumbered keys of the n-grams that are kept or are the suffix or the history of one; `kept` grows to these.

    All unigrams stay.
    """
    suffixes = [table.keys // vocabulary_size for table in tables]
    for k in range(len(tables) - 1, 0, -1):
        kept[k - 1][suffixes[k][kept[k]]] = True
        kept[k - 1][tables[k].histories[kept[k]]] = True
    kept[0][:] = True
    keys = [tables[0].keys]
    for k in range(1, len(tables)):
        renumbered = np.cumsum(kept[k - 1]) - 1
        keep = kept[k]
        keys.append(renumbered[suffixes[k][keep]] * vocabulary_size + tables[k].keys[keep] % vocabulary_size)
    return keys


def write_model(path: str | Path, model: KneserNey) -> None:
    """Write a model; see `read_model`."""
    arrays, header = to_arrays(model)
    write_arrays(path, "kneser_ney", arrays, **header)


def read_model(path: str | Path) -> KneserNey:
    """Read a model written by `write_model`; it scores the same. Raises InputError for anything else."""
    return from_arrays(*read_arrays(path, "kneser_ney"))


def to_arrays(model: KneserNey) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the header that a file holds of a model."""
    arrays = {"discounts": model.discounts}
    for name in ("keys", "ngram_ln_prob", "ln_gamma"):
        arrays |= {f"{name}_{k}": array for k, array in enumerate(getattr(model, name), start=1)}
    header = {
        "n": str(model.n),
        "vocabulary": model.vocabulary,
        "vocabulary_size": str(model.vocabulary_size),
        "smoothing": model.smoothing,
        "cutoffs": ",".join(map(str, model.cutoffs)),
        "fallback_orders": ",".join(map(str, model.fallback_orders)),
    }
    return arrays, header


def from_arrays(arrays: dict[str, np.ndarray], header: dict[str, str]) -> KneserNey:
    """The model of which `to_arrays` gave these."""
    n = int(header["n"])
    return KneserNey(
        n=n,
        vocabulary=header["vocabulary"],
        vocabulary_size=int(header["vocabulary_size"]),
        smoothing=header["smoothing"],
        cutoffs=tuple(int(c) for c in header["cutoffs"].split(",")),
        discounts=arrays["discounts"],
        fallback_orders=tuple(int(k) for k in header["fallback_orders"].split(",") if k),
        keys=[arrays[f"keys_{k}"] for k in range(1, n + 1)],
        ngram_ln_prob=[arrays[f"ngram_ln_prob_{k}"] for k in range(1, n + 1)],
        ln_gamma=[arrays[f"ln_gamma_{k}"] for k in range(1, n)],
    )
