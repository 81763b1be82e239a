"""Word classes by the exchange algorithm (Kneser & Ney 1993; Martin, Liermann & Ney 1998), started by annealing.

The classes maximise the likelihood of the train stream under its maximum-likelihood class bigram,
P(w | v) = P(w | g(w)) P(g(w) | g(v)). With N the counts of the stream's bigrams and L(n) = n ln n, its logarithm is

    Σ_{g,h} L(N(g, h)) − Σ_g L(N(g, ·)) − Σ_h L(N(·, h)) + Σ_w L(N(·, w)).

A sweep takes the words seen in train by decreasing count; each leaves its class for the one where the likelihood is
highest. At first the C − 1 most frequent words have a class each and the other words share the last. Exchange alone
stops at an optimum near that start, so sweeps of falling temperature come before it: a word then joins a class with
probability proportional to exp(ln likelihood / temperature). On Brown this lowers the train perplexity of the class
bigram from 216.0 to 212.6 with 500 classes, and from 288.1 to 281.3 with 150.

Special symbols are clustered as words are. Nothing tells where a word of the vocabulary that train lacks belongs: such
words join the class of <rare>, which stands for words of their kind. (Validation perplexity of class trigrams on Brown,
150 and 500 classes: 341.1, 338.3; in the class of most words 344.0, 342.4; in a class of their own 386.2, 384.6.)
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit

from nplm.corpus.text import read_pieces
from nplm.corpus.vocabulary import Vocabulary
from nplm.errors import InputError
from nplm.files import write_csv, write_text
from nplm.ngram.counts import count_ngrams

RARE_ID = 0
"""of <rare>"""
TEMPERATURES = (8.0, 1.0)
"""of the first and the last annealing sweep, nats; geometric between (the best likelihood of several tried on Brown)"""
LEAST_GAIN = 1e-6
"""nats of ln likelihood that a move must gain: far above the rounding of the sums, far below any real gain"""
COLUMNS = "word\tclass\tcount"


class Sweep(NamedTuple):
    """The state after one sweep; sweep 0 is the start."""

    sweep: int
    temperature: float
    """0: every move raises the likelihood"""
    mean_ln_likelihood: float
    """of train's tokens after the first, under the maximum-likelihood class bigram, nats per token"""
    moves: int


class Neighbours(NamedTuple):
    """The distinct words on one side of every word: those of word w stand at starts[w] … starts[w + 1] − 1."""

    starts: np.ndarray
    """int64 [V + 1]"""
    words: np.ndarray
    """int32 [U]"""
    counts: np.ndarray
    """int32 [U]: how often w and this neighbour stand together"""


class ClassBigrams(NamedTuple):
    """Counts of the bigrams of classes in a stream."""

    counts: np.ndarray
    """N(g, h): int32 [C, C]"""
    transposed: np.ndarray
    """N(g, h) at [h, g], so that both directions are read along rows: int32 [C, C]"""
    first: np.ndarray
    """N(g, ·): int64 [C]"""
    second: np.ndarray
    """N(·, h): int64 [C]"""


def cluster(
    tokens: np.ndarray,
    vocabulary_size: int,
    number: int,
    seed: int,
    sweeps: int = 30,
    annealing_sweeps: int = 40,
) -> tuple[np.ndarray, list[Sweep]]:
    """The class of every word of the vocabulary, int32 [V], and what each sweep did.

    tokens [T]: word ids of train; number: C. After the annealing sweeps, `sweeps` bounds those that stop when no move
    helps. Classes are numbered by decreasing count of tokens, and each has a word seen in train. The seed is used by
    annealing only. Raises InputError when C is no possible number of classes of the words seen.
    """
    tokens = np.asarray(tokens, dtype=np.int32)
    word_counts = np.bincount(tokens, minlength=vocabulary_size)
    words = np.argsort(-word_counts, kind="stable")[: np.count_nonzero(word_counts)].astype(np.int32)
    if not 1 <= number <= len(words):
        raise InputError(f"{number} classes: train holds {len(words)} distinct words; ask for 1 to {len(words)}")
    classes = np.zeros(vocabulary_size, dtype=np.int32)
    classes[words] = np.minimum(np.arange(len(words)), number - 1)

    following = neighbours(tokens[::-1], vocabulary_size)
    preceding = neighbours(tokens, vocabulary_size)
    bigrams = count_class_bigrams(tokens, classes, number)
    sizes = np.bincount(classes[words], minlength=number)
    table = n_ln_n(np.arange(len(tokens) + 1))
    random = np.random.default_rng(seed)
    done = [Sweep(0, 0.0, mean_ln_likelihood(tokens, classes, number), 0)]
    for temperature in [*np.geomspace(*TEMPERATURES, annealing_sweeps).tolist(), *[0.0] * sweeps]:
        draws = random.random(len(words))
        moves = exchange_sweep(words, classes, sizes, following, preceding, bigrams, table, temperature, draws)
        done.append(Sweep(len(done), temperature, mean_ln_likelihood(tokens, classes, number), moves))
        if temperature == 0 and moves == 0:
            break

    # Without a <rare> in train, the class of most words is the next best place.
    place = classes[RARE_ID] if word_counts[RARE_ID] else sizes.argmax()
    classes[word_counts == 0] = place
    by_count = np.argsort(-np.bincount(classes, word_counts, minlength=number), kind="stable")
    return np.argsort(by_count).astype(np.int32)[classes], done


def n_ln_n(n: np.ndarray) -> np.ndarray:
    """L(n) = n ln n, 0 where n is 0: float64 of the same shape."""
    return n * np.log(np.maximum(n, 1))


def neighbours(tokens: np.ndarray, vocabulary_size: int) -> Neighbours:
    """The words before every word of the stream [T]; of the reversed stream, those after it."""
    table = count_ngrams(tokens, vocabulary_size, 2)[1]
    words, before = np.divmod(table.keys, vocabulary_size)
    starts = np.searchsorted(words, np.arange(vocabulary_size + 1))
    return Neighbours(starts, before.astype(np.int32), table.counts.astype(np.int32))


def count_class_bigrams(tokens: np.ndarray, classes: np.ndarray, number: int) -> ClassBigrams:
    """Count the bigrams of the classes [V] of the stream's words [T], afresh."""
    stream = classes[tokens].astype(np.int64)
    counts = np.bincount(stream[:-1] * number + stream[1:], minlength=number**2)
    counts = counts.reshape(number, number).astype(np.int32)
    return ClassBigrams(counts, counts.T.copy(), counts.sum(axis=1), counts.sum(axis=0))


def mean_ln_likelihood(tokens: np.ndarray, classes: np.ndarray, number: int) -> float:
    """Mean ln likelihood of the stream [T] after its first token, under its own class bigram, nats per token."""
    bigrams = count_class_bigrams(tokens, classes, number)
    ln_likelihood = (
        n_ln_n(bigrams.counts).sum()
        - n_ln_n(bigrams.first).sum()
        - n_ln_n(bigrams.second).sum()
        + n_ln_n(np.bincount(tokens[1:])).sum()
    )
    return float(ln_likelihood) / (len(tokens) - 1)


@njit(cache=True)
def exchange_sweep(words, classes, sizes, following, preceding, bigrams, n_ln_n, temperature, draws):
    """Visit each of `words` once and return how many moved; classes, sizes and bigrams are updated in place.

    sizes int64 [C]: words seen in train of each class; n_ln_n float64 [T + 1]: table of L; draws [len(words)]: uniform
    in [0, 1), used above temperature 0.
    A word alone in its class stays: to join another is to merge two classes, which never raises the likelihood.
    """
    moves = 0
    for i in range(len(words)):
        word = words[i]
        old = classes[word]
        if sizes[old] == 1:
            continue
        after, itself = _neighbours_by_class(word, following, classes, len(sizes))
        before, _ = _neighbours_by_class(word, preceding, classes, len(sizes))
        _add(old, after, before, itself, bigrams, -1)
        gains = _gains(after, before, itself, bigrams, n_ln_n)
        new = _choice(gains, old, temperature, draws[i])
        _add(new, after, before, itself, bigrams, 1)
        if new != old:
            classes[word] = new
            sizes[old] -= 1
            sizes[new] += 1
            moves += 1
    return moves


@njit(cache=True)
def _neighbours_by_class(word, neighbours, classes, number):
    """How often the word's neighbours are of each class, int32 [C], and how often it is its own neighbour.

    It is not counted as a neighbour of a class, because its class is in question.
    """
    by_class = np.zeros(number, np.int32)
    itself = 0
    for i in range(neighbours.starts[word], neighbours.starts[word + 1]):
        if neighbours.words[i] == word:
            itself = neighbours.counts[i]
        else:
            by_class[classes[neighbours.words[i]]] += neighbours.counts[i]
    return by_class, itself


@njit(cache=True)
def _add(g, after, before, itself, bigrams, sign):
    """Add (sign 1) a word's bigrams to those of class g, or take them out (sign −1)."""
    for h in np.flatnonzero(after):
        bigrams.counts[g, h] += sign * after[h]
        bigrams.transposed[h, g] += sign * after[h]
    for h in np.flatnonzero(before):
        bigrams.counts[h, g] += sign * before[h]
        bigrams.transposed[g, h] += sign * before[h]
    bigrams.counts[g, g] += sign * itself
    bigrams.transposed[g, g] += sign * itself
    bigrams.first[g] += sign * (after.sum() + itself)
    bigrams.second[g] += sign * (before.sum() + itself)


@njit(cache=True)
def _gains(after, before, itself, bigrams, n_ln_n):
    """What ln likelihood gains when a word that is in no class joins each of them: float64 [C], nats."""
    number = len(after)
    gains = np.empty(number)
    as_first = after.sum() + itself
    as_second = before.sum() + itself
    for g in range(number):
        # N(g, g) takes all three; the rows below count `after` and `before` there, each as if alone.
        n = bigrams.counts[g, g]
        gains[g] = n_ln_n[n + after[g] + before[g] + itself] + n_ln_n[n] - n_ln_n[n + after[g]] - n_ln_n[n + before[g]]
        gains[g] -= n_ln_n[bigrams.first[g] + as_first] - n_ln_n[bigrams.first[g]]
        gains[g] -= n_ln_n[bigrams.second[g] + as_second] - n_ln_n[bigrams.second[g]]
    # Only the classes beside the word change any other count.
    for h in np.flatnonzero(after):
        more, row = after[h], bigrams.transposed[h]
        for g in range(number):
            gains[g] += n_ln_n[row[g] + more] - n_ln_n[row[g]]
    for h in np.flatnonzero(before):
        more, row = before[h], bigrams.counts[h]
        for g in range(number):
            gains[g] += n_ln_n[row[g] + more] - n_ln_n[row[g]]
    return gains


@njit(cache=True)
def _choice(gains, old, temperature, draw):
    """The class to join: the best, `old` unless another gains enough; above temperature 0, drawn by the gains."""
    best = np.argmax(gains)
    if temperature == 0:
        return best if gains[best] > gains[old] + LEAST_GAIN else old
    cumulative = np.cumsum(np.exp((gains - gains[best]) / temperature))
    return np.searchsorted(cumulative, draw * cumulative[-1], side="right")


@dataclass(frozen=True)
class WordClasses:
    """The class of every word of a vocabulary, in the order of the word ids."""

    words: list[str]
    classes: np.ndarray
    """int32 [V], in 0 … C − 1"""
    counts: np.ndarray
    """int64 [V]: tokens of train"""

    @property
    def vocabulary(self) -> str:
        """hash of the vocabulary"""
        return Vocabulary(self.words, self.counts).hash

    @property
    def number(self) -> int:
        """C"""
        return int(self.classes.max()) + 1


def write_classes(path: str | Path, table: WordClasses) -> None:
    """Write word, class and count of every word, tab-separated, in the order of the vocabulary."""
    rows = zip(table.words, table.classes.tolist(), table.counts.tolist(), strict=True)
    write_text(path, "".join(f"{line}\n" for line in [COLUMNS, *("\t".join(map(str, row)) for row in rows)]))


def read_classes(path: str | Path) -> WordClasses:
    """Read a table written by `write_classes`.

    Raises InputError, with the line, for anything else, and where a class below the highest has no word.
    """
    words, classes, counts = [], [], []
    for line, text, _ in read_pieces(path):
        row = re.fullmatch(r"(\S+)\t([0-9]{1,9})\t([0-9]{1,18})", text)
        if text != COLUMNS if line == 1 else row is None:
            raise InputError(f"{path}:{line}: expected word, class and count; make the file anew with cluster-words")
        if row:
            words.append(row[1])
            classes.append(int(row[2]))
            counts.append(int(row[3]))
    if not words:
        raise InputError(f"{path}: holds no words; make the file anew with cluster-words")
    table = WordClasses(words, np.array(classes, dtype=np.int32), np.array(counts, dtype=np.int64))
    present = np.unique(table.classes)
    if len(present) < table.number:
        missing = int(np.flatnonzero(present != np.arange(len(present)))[0])
        raise InputError(f"{path}: no word is of class {missing} of 0 … {table.number - 1}; number them without gaps")
    return table


def write_likelihood(path: str | Path, done: list[Sweep]) -> None:
    """Write a line for each sweep: its temperature, train's likelihood and perplexity after it, its moves."""
    rows = ({**sweep._asdict(), "perplexity": float(np.exp(-sweep.mean_ln_likelihood))} for sweep in done)
    write_csv(path, rows, ["sweep", "temperature", "mean_ln_likelihood", "perplexity", "moves"])


class ReadableClass(NamedTuple):
    """A class as a person may read it."""

    number: int
    """of the class"""
    size: int
    """words in it that train holds"""
    tokens: int
    """tokens of train in it"""
    words: list[str]
    """the most frequent of these"""


def readable_classes(table: WordClasses, number: int, words: int = 10) -> list[ReadableClass]:
    """`number` of the classes (all, where there are fewer) by their most frequent words, for a report.

    Of the classes with at least `words` words in train, which say more than those of few, it takes some at even
    distances, from the class of most tokens on; where too few are that large, of all the classes.
    """
    sizes = np.bincount(table.classes, table.counts > 0).astype(np.int64)
    tokens = np.bincount(table.classes, table.counts).astype(np.int64)
    candidates = np.flatnonzero(sizes >= words)
    if len(candidates) < number:
        candidates = np.arange(len(sizes))
    candidates = candidates[np.argsort(-tokens[candidates], kind="stable")]
    number = min(number, len(candidates))
    chosen = candidates[np.arange(number) * len(candidates) // number]
    by_count = np.argsort(-table.counts, kind="stable")[: np.count_nonzero(table.counts)]
    return [
        ReadableClass(
            int(c),
            int(sizes[c]),
            int(tokens[c]),
            [table.words[word] for word in by_count[table.classes[by_count] == c][:words]],
        )
        for c in chosen
    ]
