import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.arrays import read_header
from nplm.cli import app
from nplm.corpus.vocabulary import Vocabulary
from nplm.errors import InputError
from nplm.ngram import kneser_ney
from nplm.ngram.class_ngram import fit, read_model, write_model
from nplm.ngram.classes import WordClasses, write_classes
from nplm.scorers import load_scorer
from nplm.scores import score
from nplm.streams import NO_TOKEN, Split, contexts, write_split

V = 300
SEEN = 270
BOTH = pytest.mark.parametrize("smoothing", ["backoff", "interpolated"])
CLASSES = (np.arange(V) % 25).astype(np.int32)


def stream(size: int = 6000) -> np.ndarray:
    """A stream whose words depend on those before them; some occur once, and SEEN to V never."""
    random = np.random.default_rng(7)
    draws = random.zipf(1.4, size) % SEEN
    return np.where(random.random(size) < 0.5, draws, np.roll(draws, 1) * 3 % SEEN)


def probabilities(model, context) -> np.ndarray:
    """P of every word of the vocabulary after one context."""
    words = np.arange(model.vocabulary_size)
    return np.exp(model.ln_prob(np.tile(np.array(context, dtype=np.int32), (len(words), 1)), words))


def test_bigram_by_hand():
    # Classes a = {0, 1}, b = {2}, c = {3}, d = {4}; the stream is a b a b a c. Discounts are 0.5, 1, 1.5 everywhere.
    # After a, interpolated: P(a), P(b), P(c), P(d) = 3/16, 11/24, 7/24, 1/16.
    # Words: counts 2, 1, 2, 1, 0 of 6, half of it discounted, so P1 = 16/60, 11/60, 16/60, 11/60, 6/60.
    model = fit(np.array([0, 2, 1, 2, 0, 3]), np.array([0, 0, 1, 2, 3], np.int32), 2)
    after_a = [3 / 16 * 16 / 27, 3 / 16 * 11 / 27, 11 / 24, 7 / 24, 1 / 16]
    np.testing.assert_allclose(probabilities(model, [0]), after_a)
    np.testing.assert_allclose(probabilities(model, [1]), after_a)
    unigrams = [3 / 8 * 16 / 27, 3 / 8 * 11 / 27, 1 / 4, 1 / 4, 1 / 8]
    np.testing.assert_allclose(probabilities(model, [NO_TOKEN]), unigrams)
    assert (model.word_fallback, model.class_model.fallback_orders) == (True, (1, 2))


@BOTH
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_sums_to_one_and_leaves_no_word_without_probability(smoothing, n):
    model = fit(stream(), CLASSES, n, smoothing)
    random = np.random.default_rng(2)
    for _ in range(10):
        p = probabilities(model, random.integers(V, size=n - 1))
        assert p.min() > 0
        assert p.sum() == pytest.approx(1, abs=1e-12)
    assert probabilities(model, [NO_TOKEN] * (n - 1)).sum() == pytest.approx(1, abs=1e-12)


@BOTH
def test_sums_to_one_where_a_class_holds_unseen_words_alone(smoothing):
    classes = np.where(np.arange(V) < SEEN, CLASSES, 25).astype(np.int32)
    p = probabilities(fit(stream(), classes, 3, smoothing), [1, 2])
    assert p.min() > 0
    assert p.sum() == pytest.approx(1, abs=1e-12)


def test_a_context_counts_by_its_classes():
    model = fit(stream(), CLASSES, 3)
    np.testing.assert_array_equal(probabilities(model, [1, 2]), probabilities(model, [1 + 25, 2 + 50]))


@BOTH
def test_with_a_class_for_every_word_it_is_the_word_model(smoothing):
    tokens = stream()
    by_class = fit(tokens, np.arange(V, dtype=np.int32), 3, smoothing)
    by_word = kneser_ney.fit(tokens, V, 3, smoothing, undefined_discounts="fallback")
    split = Split("train", tokens, tokens[:0], "", V)
    words_before = contexts(split, 2)
    np.testing.assert_allclose(
        by_class.ln_prob(words_before, tokens), by_word.ln_prob(words_before, tokens), atol=1e-12
    )


@BOTH
def test_a_file_scores_the_same(tmp_path, smoothing):
    split = Split("test", stream(500)[::-1].copy(), stream()[:3], "hash", V)
    model = fit(stream(), CLASSES, 4, smoothing, vocabulary="hash")
    write_model(tmp_path / "model.safetensors", model)
    read = load_scorer(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(score(model, split, "m").ln_prob, score(read, split, "m").ln_prob)
    np.testing.assert_array_equal(score(model, split, "m").ln_prob, score(model, split, "m", batch=7).ln_prob)
    assert (read.n, read.vocabulary, read.vocabulary_size) == (4, "hash", V)
    assert read.class_model.smoothing == smoothing


def test_the_file_says_which_discounts_are_the_fallback(tmp_path):
    write_model(tmp_path / "model", fit(stream(), CLASSES, 3))
    header = read_header(tmp_path / "model")
    assert (header["kind"], header["classes"]) == ("class_ngram", "25")
    assert header["fallback_orders"].startswith("1")
    read = read_model(tmp_path / "model")
    assert read.class_model.fallback_orders[0] == 1
    assert not read.word_fallback
    write_model(tmp_path / "tiny", fit(np.array([0, 2, 1]), np.array([0, 0, 1], np.int32), 2))
    assert read_model(tmp_path / "tiny").word_fallback


def test_undefined_discounts_are_an_error_on_demand():
    with pytest.raises(InputError, match="order 1: no 1-gram has count 1"):
        fit(stream(), CLASSES, 3, undefined_discounts="error")


def test_command_fits_the_model_that_its_options_ask_for(tmp_path):
    words = ["<rare>", *(f"word{i}" for i in range(1, V))]
    hash = Vocabulary(words, np.zeros(V)).hash
    write_split(tmp_path / "train", Split("train", stream(), stream()[:0], hash, V))
    write_classes(tmp_path / "classes.tsv", WordClasses(words, CLASSES, np.bincount(stream(), minlength=V)))
    inputs = [f"train={tmp_path / 'train'}", f"classes={tmp_path / 'classes.tsv'}"]
    arguments = [
        "fit-model",
        "--row",
        "{kind: class_ngram, classes: 25, n: 4, smoothing: backoff, cutoffs: [1, 1, 2, 2]}",
    ]
    arguments += ["--input", inputs[0], "--input", inputs[1], "--output", str(tmp_path / "model")]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert "25 classes" in result.output
    assert "fallback discounts: classes, order 1" in result.output
    model = read_model(tmp_path / "model")
    assert (model.n, model.vocabulary) == (4, hash)
    assert (model.class_model.smoothing, model.class_model.cutoffs) == ("backoff", (1, 1, 2, 2))
    np.testing.assert_array_equal(model.classes, CLASSES)

    words[5] = "another"
    write_classes(tmp_path / "classes.tsv", WordClasses(words, CLASSES, np.bincount(stream(), minlength=V)))
    with pytest.raises(InputError, match=f"classes.tsv belongs to vocabulary .* but .* to {hash}"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
