"""The deleted-interpolation trigram (paper, section 4.1; Jelinek & Mercer 1980), and the bins of its contexts.

P(w | w[t-2], w[t-1]) = α0(q) / |V| + α1(q) p1(w) + α2(q) p2(w | w[t-1]) + α3(q) p3(w | w[t-2], w[t-1])

p1, p2, p3 are relative frequencies in train. The bin of the context is q = ⌈−ln((1 + f) / T)⌉ with f the frequency of
(w[t-2], w[t-1]) in train and T the tokens of train. Each bin has its own weights α ≥ 0, Σα = 1, fitted by EM on the
validation split.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp
from pathlib import Path

import numpy as np

from nplm.arrays import read_arrays, require_same_vocabulary, write_arrays
from nplm.em import fit_weights, mix
from nplm.kinds import Kind
from nplm.ngram.counts import MISSING, count_ngrams, extend, find
from nplm.streams import Split, contexts, read_split

KIND = Kind(
    name="deleted_interpolation",
    title="interpolated trigram (deleted interpolation), its weights by EM on valid",
    source="Bengio et al. 2003, section 4.1; Jelinek & Mercer 1980",
    own_keys=(),
    code=__name__,
    family="n-gram",
    reads=("valid",),
    shows=("mixture_weights",),
)
ORDER = 3


def bin_of(frequency: np.ndarray, train_size: int) -> np.ndarray:
    """q = ⌈−ln((1 + frequency) / T)⌉ of contexts that occur `frequency` times among T training tokens: int64, ≥ 0."""
    return np.ceil(-np.log((1 + frequency) / train_size)).astype(np.int64)


def number_of_bins(train_size: int) -> int:
    """Bins 0 … ⌈ln T⌉; the last is that of contexts never seen."""
    return int(bin_of(np.zeros(1), train_size)[0]) + 1


def context_frequency(train: np.ndarray, vocabulary_size: int, bigrams: np.ndarray) -> np.ndarray:
    """How often each bigram (word ids [T, 2], oldest first, NO_TOKEN never counts) occurs in train: int64 [T]."""
    tables = count_ngrams(train, vocabulary_size, 2)
    numbers = find([table.keys for table in tables], bigrams, vocabulary_size)
    return np.where(numbers == MISSING, 0, tables[1].counts[numbers])


def write_context_bins(path: str | Path, train: Split, split: Split) -> np.ndarray:
    """Write the frequency in train and the bin of the context of every token of `split`; return the bins.

    File of kind "context_bins": frequency int64 [T], bin int64 [T]. Raises InputError when the vocabularies differ.
    """
    require_same_vocabulary(("train", train.vocabulary), (f"split {split.name}", split.vocabulary))
    frequency = context_frequency(train.tokens, train.vocabulary_size, contexts(split, 2))
    bins = bin_of(frequency, len(train))
    write_arrays(
        path,
        "context_bins",
        {"frequency": frequency, "bin": bins},
        split=split.name,
        vocabulary=split.vocabulary,
        train_size=str(len(train)),
        number_of_bins=str(number_of_bins(len(train))),
    )
    return bins


@dataclass(frozen=True)
class DeletedInterpolation:
    """A fitted trigram; the n-grams of order k are numbered as in nplm.ngram.counts.

    A context that train never shows followed by a word has no relative frequencies: p3 is then p2, and p2 is p1 where
    w[t-1] is such a word. Each component is so a distribution in every context, and with them their mixture.
    """

    vocabulary: str
    vocabulary_size: int
    train_size: int
    """T, tokens"""
    keys: list[np.ndarray]
    """per order 1 … 3: int64 [U]"""
    counts: list[np.ndarray]
    """occurrences in train, per order 1 … 3: int64 [U]"""
    followed: list[np.ndarray]
    """occurrences in train that a word follows, per order 1, 2: int64 [U]"""
    weights: np.ndarray
    """α0 … α3 of each bin: float64 [number of bins, 4]"""
    mean_ln_prob: np.ndarray
    """of the validation split, in nats, at each iteration of EM"""
    valid_tokens_per_bin: np.ndarray
    """int64 [number of bins]; bins with 0 hold the weights fitted on all validation tokens together"""

    n = ORDER

    def ln_prob(self, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        """ln P(word | context), nats: float64 [T]; see `nplm.scores.Scorer`."""
        ln_components, frequency = self.components(contexts, words)
        return mix(ln_components, self.weights, bin_of(frequency, self.train_size))

    def components(self, contexts: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ln of 1/|V|, p1, p2, p3 of each word, float64 [4, T] (−inf where zero), and the context's frequency [T]."""
        ngrams = np.asarray(words, dtype=np.int64)
        prob = np.empty((4, len(words)))
        prob[0] = 1 / self.vocabulary_size
        prob[1] = self.counts[0][ngrams] / self.train_size
        for k in (2, 3):
            history = find(self.keys, contexts[:, 1 - k :], self.vocabulary_size)
            followed = np.where(history == MISSING, 0, self.followed[k - 2][history])
            ngrams = extend(self.keys[k - 1], ngrams, contexts[:, 1 - k], self.vocabulary_size)
            count = np.where(ngrams == MISSING, 0, self.counts[k - 1][ngrams])
            prob[k] = np.divide(count, followed, out=prob[k - 1].copy(), where=followed > 0)
        frequency = np.where(history == MISSING, 0, self.counts[1][history])
        with np.errstate(divide="ignore"):  # a word may never occur in train, or never in this context
            return np.log(prob), frequency


def fit(train: Split, valid: Split, iterations: int = 100, tolerance: float = 1e-7) -> DeletedInterpolation:
    """Count the trigrams of train and fit the weights on valid by EM; see `nplm.em.fit_weights` for when it stops.

    A bin that no validation token falls into takes the weights fitted on all validation tokens together.
    Raises InputError when the vocabularies differ, train has fewer than 3 tokens or valid has none.
    """
    require_same_vocabulary(("train", train.vocabulary), ("valid", valid.vocabulary))
    V = train.vocabulary_size
    tables = count_ngrams(train.tokens, V, ORDER)
    bins = number_of_bins(len(train))
    equal_weights = DeletedInterpolation(
        vocabulary=train.vocabulary,
        vocabulary_size=V,
        train_size=len(train),
        keys=[table.keys for table in tables],
        counts=[table.counts for table in tables],
        followed=[
            np.bincount(longer.histories, longer.counts, minlength=len(table.keys)).astype(np.int64)
            for table, longer in pairwise(tables)
        ],
        weights=np.full((bins, ORDER + 1), 1 / (ORDER + 1)),
        mean_ln_prob=np.empty(0),
        valid_tokens_per_bin=np.zeros(bins, dtype=np.int64),
    )
    ln_components, frequency = equal_weights.components(contexts(valid, ORDER - 1), valid.tokens)
    fitted = fit_weights(ln_components, bin_of(frequency, len(train)), bins, iterations, tolerance)
    return replace(
        equal_weights,
        weights=fitted.weights,
        mean_ln_prob=np.array(fitted.mean_ln_prob),
        valid_tokens_per_bin=fitted.tokens_per_bin,
    )


def fit_row(inputs: dict[str, Path], row: dict, seed: int | None) -> DeletedInterpolation:
    """The model of a row of the configuration; see nplm.kinds.Kind."""
    return fit(read_split(inputs["train"]), read_split(inputs["valid"]))


def describe(model: DeletedInterpolation) -> list[str]:
    """Numbers of n-grams and bins, and what EM reached."""
    empty = int((model.valid_tokens_per_bin == 0).sum())
    return [
        f"{', '.join(f'{len(keys)} {k}-grams' for k, keys in enumerate(model.keys, start=1))}; "
        f"{len(model.weights)} bins, {empty} of them without validation tokens",
        f"EM: {len(model.mean_ln_prob) - 1} updates, validation perplexity {exp(-model.mean_ln_prob[-1]):.2f}",
    ]


def write_model(path: str | Path, model: DeletedInterpolation) -> None:
    """Write a model; see `read_model`."""
    arrays = {name: getattr(model, name) for name in ("weights", "mean_ln_prob", "valid_tokens_per_bin")}
    for name in ("keys", "counts", "followed"):
        arrays |= {f"{name}_{k}": array for k, array in enumerate(getattr(model, name), start=1)}
    write_arrays(
        path,
        "deleted_interpolation",
        arrays,
        vocabulary=model.vocabulary,
        vocabulary_size=str(model.vocabulary_size),
        train_size=str(model.train_size),
    )


def read_model(path: str | Path) -> DeletedInterpolation:
    """Read a model written by `write_model`; it scores the same. Raises InputError for anything else."""
    arrays, header = read_arrays(path, "deleted_interpolation")
    return DeletedInterpolation(
        vocabulary=header["vocabulary"],
        vocabulary_size=int(header["vocabulary_size"]),
        train_size=int(header["train_size"]),
        keys=[arrays[f"keys_{k}"] for k in (1, 2, 3)],
        counts=[arrays[f"counts_{k}"] for k in (1, 2, 3)],
        followed=[arrays[f"followed_{k}"] for k in (1, 2)],
        weights=arrays["weights"],
        mean_ln_prob=arrays["mean_ln_prob"],
        valid_tokens_per_bin=arrays["valid_tokens_per_bin"],
    )
