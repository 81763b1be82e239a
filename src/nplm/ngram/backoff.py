"""Back-off models: the tables that they are, how they score, and how the counts become them once each has its discount.

With c(h, w) the count of word w after history h, c(h) = Σ_w c(h, w), h' = h without its oldest word, and D the discount
of a count, what it loses to other words:

- interpolated: P(w | h) = (c(h, w) − D(c(h, w))) / c(h) + γ(h) P(w | h')
- back-off: P(w | h) = (c(h, w) − D(c(h, w))) / c(h) where (h, w) was seen, else γ(h) P(w | h')

with γ(h) such that the probabilities sum to 1, and P(w | h) = P(w | h') where h was never seen. Below the unigrams is
the uniform distribution 1/|V|, so every word of the vocabulary has a positive probability. What is counted, and what
the discounts are, is the matter of `kneser_ney` and `katz`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nplm.errors import InputError
from nplm.kinds import ORDER, Key, choice, whole_number
from nplm.ngram.counts import MISSING, NgramTable, extend
from nplm.streams import check_order

ORDER_KEY = Key("n", ORDER, "order: the model sees the n − 1 words before the one it predicts", column="n")
SMOOTHING_KEY = Key("smoothing", choice("backoff", "interpolated"), "back off to shorter histories, or mix with them")
CUTOFFS_KEY = Key(
    "cutoffs",
    {"type": ["array", "null"], "minItems": 1, "items": whole_number(1)},
    "least count that is kept, per order: [1, 1, 2] drops trigrams seen once; null keeps all",
    None,
)
UNDEFINED_DISCOUNTS_KEY = Key(
    "undefined_discounts",
    choice("error", "fallback"),
    "where the counts define no discount: stop, or fall back",
    "error",
)
BACKOFF_KEYS = (ORDER_KEY, SMOOTHING_KEY, CUTOFFS_KEY, UNDEFINED_DISCOUNTS_KEY)


def with_fallback(keys: Sequence[Key]) -> tuple[Key, ...]:
    """The keys, with the fallback for undefined discounts as the default."""
    return tuple(replace(key, default="fallback") if key is UNDEFINED_DISCOUNTS_KEY else key for key in keys)


def check_cutoffs(row: dict) -> str | None:
    """What is wrong with a row's cut-offs; see nplm.kinds.Kind.check."""
    if row["cutoffs"] and len(row["cutoffs"]) != row["n"]:
        return f"cutoffs has {len(row['cutoffs'])} counts but n is {row['n']}; give one count per order"
    return None


@dataclass(frozen=True)
class Backoff:
    """A fitted model in back-off form: the P of each n-gram in the tables, and γ of each history; numbers as in counts.

    P(w | h) is that of the longest n-gram (suffix of h, w) in the tables, times γ of every longer suffix of h in them.
    """

    n: int
    vocabulary: str
    vocabulary_size: int
    smoothing: str
    """backoff or interpolated (Kneser-Ney), or katz"""
    cutoffs: tuple[int, ...]
    """the least count that is kept, per order"""
    discounts: np.ndarray
    """Kneser-Ney: D1, D2, D3+ of orders 1 … n, float64 [n, 3]; Katz: d_1 … d_k of orders 2 … n, float64 [n-1, k]"""
    fallback_orders: tuple[int, ...]
    """orders whose counts do not define their discounts"""
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


def describe_sizes(model: Backoff) -> str:
    """How many n-grams of each order the tables have."""
    return ", ".join(f"{len(keys)} {k}-grams" for k, keys in enumerate(model.keys, start=1))


def checked_cutoffs(n: int, cutoffs: Sequence[int] | None, undefined_discounts: str) -> tuple[int, ...]:
    """The cut-offs of every order, 1 where None is given. Raises InputError where these are no options of a model."""
    check_order(n)
    cutoffs = tuple(cutoffs or (1,) * n)
    if len(cutoffs) != n or min(cutoffs) < 1:
        raise InputError(
            f"cut-offs {', '.join(map(str, cutoffs))} do not fit order {n}; give {n} least counts, each at least 1"
        )
    if undefined_discounts not in ("error", "fallback"):
        raise InputError(f"undefined_discounts '{undefined_discounts}' is unknown; give error or fallback")
    return cutoffs


def from_counts(
    tables: list[NgramTable],
    counts: list[np.ndarray],
    lost: Sequence[np.ndarray],
    backs_off: Sequence[bool],
    cutoffs: tuple[int, ...],
    vocabulary_size: int,
    **about: object,
) -> Backoff:
    """The model of which `tables` are the n-grams of orders 1 … n and `counts` the c(h, w), int64 [U] per order.

    lost: D by count, one array per order, its last element for all higher counts. backs_off: per order, the back-off
    form (True) or the interpolated one. An n-gram whose count is below its order's cut-off loses it all and is dropped.
    about: the other fields of the model.
    """
    prob, gamma = [np.array([1 / vocabulary_size])], []
    for k, (table, count) in enumerate(zip(tables, counts, strict=True), start=1):
        removed = lost[k - 1][np.minimum(count, len(lost[k - 1]) - 1)]
        if cutoffs[k - 1] > 1:
            removed = np.where(count < cutoffs[k - 1], count, removed)
        lower = prob[k - 1][table.keys // vocabulary_size]
        p, g = _probabilities(
            count, removed, table.histories, len(prob[k - 1]), lower, backs_off[k - 1], vocabulary_size
        )
        prob.append(p)
        gamma.append(g)

    keys = [table.keys for table in tables]
    if max(cutoffs) > 1:
        kept = [count >= cutoff for count, cutoff in zip(counts, cutoffs, strict=True)]
        keys = _drop_unneeded(kept, tables, vocabulary_size)
        prob[1:] = [p[keep] for p, keep in zip(prob[1:], kept, strict=True)]
        gamma[1:] = [g[keep] for g, keep in zip(gamma[1:], kept[:-1], strict=True)]
    return Backoff(
        n=len(tables),
        vocabulary_size=vocabulary_size,
        cutoffs=cutoffs,
        keys=keys,
        ngram_ln_prob=[np.log(p) for p in prob[1:]],
        ln_gamma=[np.log(g) for g in gamma[1:]],
        **about,
    )


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
    A history whose counts lose nothing gets one count more, which goes to the words not seen after it (as in SRILM).
    """
    total = np.bincount(histories, counts, minlength=number_of_histories)
    freed = np.bincount(histories, removed, minlength=number_of_histories)
    one_more = (freed == 0) & (total > 0)
    total, freed = total + one_more, freed + one_more
    gamma = np.divide(freed, total, out=np.ones(number_of_histories), where=total > 0)
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


def to_arrays(model: Backoff) -> tuple[dict[str, np.ndarray], dict[str, str]]:
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


def from_arrays(arrays: dict[str, np.ndarray], header: dict[str, str]) -> Backoff:
    """The model of which `to_arrays` gave these."""
    n = int(header["n"])
    return Backoff(
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
