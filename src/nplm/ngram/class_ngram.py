"""Class-based n-grams: P(w | h) = P(w | c(w)) P(c(w) | c(h)) (Brown et al. 1992, section 3; Ney & Kneser 1993).

c(h) is the history h with each word replaced by its class. P(c | c(h)) is a modified Kneser-Ney model of the stream
of classes. P(w | c) is the Kneser-Ney unigram P1 of the words, interpolated with the uniform distribution as always,
within the class: P1(w) / Σ_{v in c} P1(v). So every word has p > 0 in its class, and one that train lacks has about as
much as one seen once, whatever else is in the class. (Validation perplexity of class trigrams on Brown with 150 and 500
classes: 341.1, 338.3; with discounting inside each class and what it frees spread over that class 352.6, 372.3; with
0.3 added to every count 349.8, 346.8.)
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nplm.arrays import read_arrays, require_same_vocabulary, write_arrays
from nplm.kinds import Key, Kind, whole_number
from nplm.ngram import kneser_ney
from nplm.ngram.backoff import (
    BACKOFF_KEYS,
    Backoff,
    check_cutoffs,
    describe_sizes,
    from_arrays,
    to_arrays,
    with_fallback,
)
from nplm.streams import NO_TOKEN, read_split

KIND = Kind(
    name="class_ngram",
    title="modified Kneser-Ney n-gram of word classes",
    source="Brown et al. 1992; Ney & Kneser 1993",
    own_keys=(
        Key("classes", whole_number(1), "number of word classes, which the exchange algorithm finds", column="c"),
        *with_fallback(BACKOFF_KEYS),
    ),
    code=__name__,
    family="n-gram",
    reads=("classes",),
    check=check_cutoffs,
)


@dataclass(frozen=True)
class ClassNgram:
    """A fitted model."""

    vocabulary: str
    classes: np.ndarray
    """c(w): int32 [V], in 0 … C − 1"""
    word_ln_prob: np.ndarray
    """ln P(w | c(w)), nats: float64 [V]"""
    word_fallback: bool
    """whether the discounts of P1 are kneser_ney.FALLBACK_DISCOUNTS"""
    class_model: Backoff
    """P(c | c(h)): its words are the C classes"""

    @property
    def n(self) -> int:
        """order, of words as of classes"""
        return self.class_model.n

    @property
    def vocabulary_size(self) -> int:
        """|V|"""
        return len(self.classes)

    def ln_prob(self, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        """ln P(word | context), nats: float64 [T]; see `nplm.scores.Scorer`."""
        classes_and_none = np.append(self.classes, np.int32(NO_TOKEN))  # index NO_TOKEN is the last place
        class_ln_prob = self.class_model.ln_prob(classes_and_none[contexts], self.classes[words])
        return class_ln_prob + self.word_ln_prob[words]


def fit(
    tokens: np.ndarray,
    classes: np.ndarray,
    n: int,
    smoothing: str = "interpolated",
    cutoffs: tuple[int, ...] | None = None,
    undefined_discounts: str = "fallback",
    vocabulary: str = "",
) -> ClassNgram:
    """Fit a model of order n to the stream `tokens` (word ids [T]), given the class of every word, `classes` [V].

    smoothing, cutoffs (of n-grams of classes) and undefined_discounts are those of `kneser_ney.fit`. The fallback is
    the rule here, not the exception: hardly a class follows only one to four distinct classes, so the discounts of
    order 1 are seldom defined.

    Raises InputError as `kneser_ney.fit` does.
    """
    vocabulary_size, number = len(classes), int(classes.max()) + 1
    unigrams = kneser_ney.fit(tokens, vocabulary_size, 1, undefined_discounts=undefined_discounts)
    word_prob = np.exp(unigrams.ngram_ln_prob[0])
    class_prob = np.bincount(classes, word_prob, minlength=number)
    return ClassNgram(
        vocabulary=vocabulary,
        classes=classes,
        word_ln_prob=np.log(word_prob / class_prob[classes]),
        word_fallback=bool(unigrams.fallback_orders),
        class_model=kneser_ney.fit(classes[tokens], number, n, smoothing, cutoffs, undefined_discounts),
    )


def fit_row(inputs: dict[str, Path], row: dict, seed: int | None) -> ClassNgram:
    """The model of a row of the configuration; see nplm.kinds.Kind."""
    from nplm.ngram.classes import read_classes  # which compiles; planning a run needs none of it

    split, table = read_split(inputs["train"]), read_classes(inputs["classes"])
    require_same_vocabulary((inputs["train"], split.vocabulary), (inputs["classes"], table.vocabulary))
    options = row["smoothing"], row["cutoffs"], row["undefined_discounts"]
    return fit(split.tokens, table.classes, row["n"], *options, split.vocabulary)


def describe(model: ClassNgram) -> list[str]:
    """Numbers of classes and of their n-grams, and what had to fall back."""
    of_classes = model.class_model
    fallbacks = [f"classes, order {k}" for k in of_classes.fallback_orders] + ["words"] * model.word_fallback
    return [
        f"{of_classes.vocabulary_size} classes; {describe_sizes(of_classes)} of classes",
        f"fallback discounts: {'; '.join(fallbacks) or 'none'}",
    ]


def write_model(path: str | Path, model: ClassNgram) -> None:
    """Write a model; see `read_model`."""
    arrays, header = to_arrays(model.class_model)
    header |= {
        "vocabulary": model.vocabulary,
        "vocabulary_size": str(model.vocabulary_size),
        "classes": str(model.class_model.vocabulary_size),
        "word_fallback": str(model.word_fallback),
    }
    arrays |= {"classes": model.classes, "word_ln_prob": model.word_ln_prob}
    write_arrays(path, "class_ngram", arrays, **header)


def read_model(path: str | Path) -> ClassNgram:
    """Read a model written by `write_model`; it scores the same. Raises InputError for anything else."""
    arrays, header = read_arrays(path, "class_ngram")
    return ClassNgram(
        vocabulary=header["vocabulary"],
        classes=arrays["classes"],
        word_ln_prob=arrays["word_ln_prob"],
        word_fallback=header["word_fallback"] == "True",
        class_model=from_arrays(arrays, header | {"vocabulary": "", "vocabulary_size": header["classes"]}),
    )
