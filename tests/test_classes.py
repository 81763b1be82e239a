from collections import Counter
from itertools import pairwise
from math import log

import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.cli import app
from nplm.corpus.vocabulary import Vocabulary, write_vocabulary
from nplm.errors import InputError
from nplm.files import read_csv
from nplm.ngram.classes import (
    WordClasses,
    cluster,
    count_class_bigrams,
    exchange_sweep,
    mean_ln_likelihood,
    n_ln_n,
    neighbours,
    read_classes,
    readable_classes,
    write_classes,
)
from nplm.streams import Split, write_split

V = 40
SEEN = 36


def stream(size: int = 3000) -> np.ndarray:
    """A stream whose words depend on those before them; words SEEN to V do not occur."""
    random = np.random.default_rng(3)
    draws = random.zipf(1.3, size) % SEEN
    return np.where(random.random(size) < 0.4, draws, np.roll(draws, 1) * 5 % SEEN)


def ln_likelihood(tokens, classes) -> float:
    """ln likelihood of the stream after its first token from the definition: one token after another."""
    groups = [int(classes[token]) for token in tokens]
    words, second = Counter(tokens[1:].tolist()), Counter(groups[1:])
    first, pairs = Counter(groups[:-1]), Counter(pairwise(groups))
    return sum(
        log(words[int(word)] / second[h]) + log(pairs[g, h] / first[g])
        for word, (g, h) in zip(tokens[1:], pairwise(groups), strict=True)
    )


def test_planted_classes_are_found():
    random = np.random.default_rng(5)
    kinds = np.arange(4000) % 3  # words 0-3, 4-7 and 8-11 take turns
    tokens = kinds * 4 + random.integers(4, size=len(kinds))
    classes, _ = cluster(tokens, 12, 3, seed=1)
    assert len({tuple(classes[kind * 4 : kind * 4 + 4]) for kind in range(3)}) == 3
    assert all(len(set(classes[kind * 4 : kind * 4 + 4])) == 1 for kind in range(3))


@pytest.mark.parametrize("annealing_sweeps", [0, 10])
def test_exchange_never_lowers_the_likelihood_and_ends_where_no_move_helps(annealing_sweeps):
    tokens = stream()
    classes, done = cluster(tokens, V, 6, seed=1, sweeps=100, annealing_sweeps=annealing_sweeps)
    exchange = np.array([sweep.mean_ln_likelihood for sweep in done[annealing_sweeps:]])
    assert done[0].mean_ln_likelihood < exchange[-1]
    assert (np.diff(exchange) >= 0).all()
    assert [sweep.moves == 0 for sweep in done[1:]] == [False] * (len(done) - 2) + [True]
    reached = ln_likelihood(tokens, classes)
    assert done[-1].mean_ln_likelihood == pytest.approx(reached / (len(tokens) - 1), rel=1e-12)
    for word in range(SEEN):
        for other in range(6):
            moved = classes.copy()
            moved[word] = other
            assert ln_likelihood(tokens, moved) <= reached + 1e-5


@pytest.mark.parametrize("temperature", [0.0, 20.0])
def test_incremental_counts_equal_a_recount(temperature):
    tokens = stream()
    classes = (np.arange(V) % 5).astype(np.int32)
    words = np.arange(SEEN, dtype=np.int32)
    sizes = np.bincount(classes[words])
    bigrams = count_class_bigrams(tokens, classes, 5)
    np.testing.assert_array_equal(bigrams.counts.T, bigrams.transposed)
    sides = neighbours(tokens[::-1], V), neighbours(tokens, V)
    for sweep in range(3):
        draws = np.random.default_rng(sweep).random(SEEN)
        before = mean_ln_likelihood(tokens, classes, 5)
        moves = exchange_sweep(
            words, classes, sizes, *sides, bigrams, n_ln_n(np.arange(len(tokens) + 1)), temperature, draws
        )
        assert moves > 0
        assert temperature > 0 or mean_ln_likelihood(tokens, classes, 5) > before
        np.testing.assert_array_equal(sizes, np.bincount(classes[words], minlength=5))
        for kept, recounted in zip(bigrams, count_class_bigrams(tokens, classes, 5), strict=True):
            np.testing.assert_array_equal(kept, recounted)


def test_a_word_alone_in_its_class_stays_at_any_temperature():
    _, done = cluster(stream(), V, SEEN, seed=1, sweeps=1, annealing_sweeps=2)
    assert [sweep.moves for sweep in done] == [0, 0, 0, 0]


def test_the_seed_decides_the_classes_through_annealing_alone():
    tokens = stream()
    classes, done = cluster(tokens, V, 8, seed=1)
    again, done_again = cluster(tokens, V, 8, seed=1)
    np.testing.assert_array_equal(classes, again)
    assert done == done_again
    assert cluster(tokens, V, 8, seed=2)[1] != done
    assert cluster(tokens, V, 8, seed=1, annealing_sweeps=0)[1] == cluster(tokens, V, 8, seed=2, annealing_sweeps=0)[1]


def test_sweeps_are_bounded():
    assert [s.temperature for s in cluster(stream(), V, 6, 1, sweeps=1, annealing_sweeps=2)[1]] == [0, 8, 1, 0]
    unmoved, done = cluster(stream(), V, 6, 1, sweeps=0, annealing_sweeps=0)
    assert len(done) == 1
    assert len(set(unmoved)) == 6


@pytest.mark.parametrize("number", [1, 2, 7, SEEN])
def test_every_class_has_a_seen_word_and_numbers_fall_with_tokens(number):
    tokens = stream()
    classes, _ = cluster(tokens, V, number, seed=1)
    tokens_of_class = np.bincount(classes[tokens], minlength=number)
    assert len(tokens_of_class) == number
    assert tokens_of_class.min() > 0
    assert (np.diff(tokens_of_class) <= 0).all()


def test_unseen_words_share_the_class_of_rare():
    classes, _ = cluster(stream(), V, 6, seed=1)
    assert (classes[SEEN:] == classes[0]).all()


def test_unseen_words_share_the_class_of_most_words_where_train_lacks_rare():
    classes, _ = cluster(stream() + 1, V + 1, 6, seed=1)
    largest = np.bincount(classes[1 : SEEN + 1]).argmax()
    assert (classes[[0, *range(SEEN + 1, V + 1)]] == largest).all()


@pytest.mark.parametrize("number", [0, -3, SEEN + 1])
def test_impossible_numbers_of_classes_are_refused(number):
    with pytest.raises(InputError, match=f"^{number} classes: .* ask for 1 to {SEEN}$"):
        cluster(stream(), V, number, seed=1)


def table() -> WordClasses:
    words = ["<rare>", '"', "the", "#", "a", "'s", "naïve"]
    return WordClasses(words, np.array([1, 2, 0, 2, 0, 1, 1], np.int32), np.array([4, 2, 9, 3, 7, 1, 0]))


def test_classes_survive_a_file(tmp_path):
    write_classes(tmp_path / "classes.tsv", table())
    assert (tmp_path / "classes.tsv").read_text().splitlines()[:3] == ["word\tclass\tcount", "<rare>\t1\t4", '"\t2\t2']
    read = read_classes(tmp_path / "classes.tsv")
    assert read.words == table().words
    np.testing.assert_array_equal(read.classes, table().classes)
    np.testing.assert_array_equal(read.counts, table().counts)
    assert read.number == 3
    assert read.vocabulary == Vocabulary(table().words, np.zeros(7, dtype=int)).hash


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the\t0\t5\n", ":1: expected word, class and count"),
        ("word\tclass\tcount\nthe\t0\t5\na\tx\t3\n", ":3: expected word, class and count"),
        ("word\tclass\tcount\nthe\t0\n", ":2: expected word, class and count"),
        ("word\tclass\tcount\n", "holds no words"),
        ("word\tclass\tcount\nthe\t0\t5\na\t2\t3\n", "no word is of class 1 of 0 … 2"),
    ],
)
def test_other_files_are_refused_with_the_place(tmp_path, text, message):
    (tmp_path / "classes.tsv").write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_classes(tmp_path / "classes.tsv")
    assert "classes.tsv" in str(error.value)


def test_readable_classes_show_their_most_frequent_words():
    first, second = readable_classes(table(), 2, words=2)
    assert first == (0, 2, 16, ["the", "a"])
    assert second == (1, 2, 5, ["<rare>", "'s"])
    assert [c.number for c in readable_classes(table(), 12, words=3)] == [0, 1, 2]
    assert readable_classes(table(), 2)[1] == (1, 2, 5, ["<rare>", "'s"])


def test_command_writes_the_classes_and_the_likelihood(tmp_path):
    vocabulary = Vocabulary(["<rare>", *(f"word{i}" for i in range(1, V))], np.ones(V, dtype=int))
    write_vocabulary(tmp_path / "vocabulary.tsv", vocabulary)
    write_split(tmp_path / "train", Split("train", stream(), stream()[:0], vocabulary.hash, V))
    arguments = ["cluster-words", "--train", str(tmp_path / "train"), "--classes", "6", "--seed", "4"]
    arguments += ["--sweeps", "9", "--vocabulary", str(tmp_path / "vocabulary.tsv")]
    arguments += ["--output", str(tmp_path / "classes.tsv"), "--likelihood", str(tmp_path / "likelihood.csv")]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert f"6 classes of {V} words, {V - SEEN} of them not in train" in result.output
    classes, done = cluster(stream(), V, 6, seed=4, sweeps=9)
    read = read_classes(tmp_path / "classes.tsv")
    np.testing.assert_array_equal(read.classes, classes)
    np.testing.assert_array_equal(read.counts, np.bincount(stream(), minlength=V))
    rows = read_csv(tmp_path / "likelihood.csv")
    assert [float(row["mean_ln_likelihood"]) for row in rows] == [sweep.mean_ln_likelihood for sweep in done]
    assert float(rows[-1]["perplexity"]) == pytest.approx(np.exp(-done[-1].mean_ln_likelihood))

    other = Vocabulary(["<rare>", *(f"other{i}" for i in range(1, V))], np.ones(V, dtype=int))
    write_vocabulary(tmp_path / "vocabulary.tsv", other)
    with pytest.raises(InputError, match=f"{vocabulary.hash}.*|.*{other.hash}"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
