import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.cli import app
from nplm.errors import InputError
from nplm.ngram.counts import count_ngrams
from nplm.ngram.kneser_ney import adjusted_counts, fit, modified_discounts, read_model, write_model
from nplm.scorers import load_scorer
from nplm.scores import score
from nplm.streams import NO_TOKEN, Split, contexts, write_split

V = 400
BOTH = pytest.mark.parametrize("smoothing", ["backoff", "interpolated"])


def stream(size: int = 6000, words: int = 350) -> np.ndarray:
    """A stream whose words depend on those before them; some occur once, and `words` to V never."""
    random = np.random.default_rng(7)
    draws = random.zipf(1.5, size) % words
    return np.where(random.random(size) < 0.5, draws, np.roll(draws, 1) * 3 % words)


def probabilities(model, context) -> np.ndarray:
    """P of every word of the vocabulary after one context."""
    words = np.arange(model.vocabulary_size)
    return np.exp(model.ln_prob(np.tile(np.array(context, dtype=np.int32), (len(words), 1)), words))


# The stream a b a b a c over the words a, b, c, d, discounts 0.5, 1, 1.5. Distinct words before a: the stream's
# start and b; before b and c: a. So c(a), c(b), c(c) = 2, 1, 1 and P(a), P(b), P(c), P(d) = 3/8, 1/4, 1/4, 1/8.
# After a: b twice, c once. After b: a twice.
A, B, C, D = range(4)
TINY = np.array([A, B, A, B, A, C])
UNIGRAMS = [3 / 8, 1 / 4, 1 / 4, 1 / 8]


@pytest.mark.parametrize(
    ("smoothing", "cutoffs", "after_a", "after_b"),
    [
        ("interpolated", None, [3 / 16, 1 / 3 + 1 / 8, 1 / 6 + 1 / 8, 1 / 16], [11 / 16, 1 / 8, 1 / 8, 1 / 16]),
        ("backoff", None, [3 / 8, 1 / 3, 1 / 6, 1 / 8], [1 / 2, 1 / 5, 1 / 5, 1 / 10]),
        ("interpolated", (1, 2), [1 / 4, 1 / 2, 1 / 6, 1 / 12], [11 / 16, 1 / 8, 1 / 8, 1 / 16]),
        ("backoff", (1, 2), [1 / 3, 1 / 3, 2 / 9, 1 / 9], [1 / 2, 1 / 5, 1 / 5, 1 / 10]),
    ],
)
def test_bigram_by_hand(smoothing, cutoffs, after_a, after_b):
    model = fit(TINY, 4, 2, smoothing, cutoffs, undefined_discounts="fallback")
    assert model.fallback_orders == (1, 2)
    np.testing.assert_allclose(probabilities(model, [A]), after_a)
    np.testing.assert_allclose(probabilities(model, [B]), after_b)
    for never_followed in (C, D, NO_TOKEN):
        np.testing.assert_allclose(probabilities(model, [never_followed]), UNIGRAMS)


def test_discounts_and_unigrams_by_hand():
    tokens = np.repeat(np.arange(7), [1, 1, 1, 2, 2, 3, 4])  # n1, n2, n3, n4 = 3, 2, 1, 1, so Y = 3/7
    model = fit(tokens, 8, 1)
    np.testing.assert_allclose(model.discounts, [[3 / 7, 19 / 14, 9 / 7]])
    gamma = 23 / 49  # (3 · 3/7 + 2 · 19/14 + 2 · 9/7) / 14
    np.testing.assert_allclose(np.exp(model.ln_prob(np.empty((8, 0)), np.arange(8)))[[0, 3, 5, 6, 7]] - gamma / 8,
        [(1 - 3 / 7) / 14, (2 - 19 / 14) / 14, (3 - 9 / 7) / 14, (4 - 9 / 7) / 14, 0], atol=1e-15)  # fmt: skip


def test_lower_orders_count_distinct_words_to_the_left():
    tokens = stream(400)
    tables = count_ngrams(tokens, V, 4)
    counts = adjusted_counts(tokens, tables, V)
    for k in (1, 2, 3):
        padded = [NO_TOKEN, *tokens.tolist()]
        left_words = {}
        for i in range(len(tokens) - k + 1):
            left_words.setdefault(tuple(padded[i + 1 : i + 1 + k]), set()).add(padded[i])
        seen = counts[k - 1][counts[k - 1] > 0]
        assert sorted(seen) == sorted(len(words) for words in left_words.values())
    assert counts[3] is tables[3].counts


@BOTH
@pytest.mark.parametrize(
    ("n", "cutoffs"),
    [(1, None), (2, None), (3, None), (5, None), (1, (3,)), (3, (1, 1, 2)), (5, (1, 1, 2, 2, 2)), (4, (2, 4, 2, 3))],
)
def test_sums_to_one_after_any_context(smoothing, n, cutoffs):
    tokens = stream()
    model = fit(tokens, V, n, smoothing, cutoffs)
    random = np.random.default_rng(1)
    split = Split("x", tokens, tokens[:0], "", V)
    seen = contexts(split, n - 1)[np.append(np.arange(5), random.integers(0, len(tokens), 30))]
    unseen = random.integers(NO_TOKEN, V, (30, n - 1))
    for context in (*seen, *unseen):
        p = probabilities(model, context)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert (p > 0).all()


@BOTH
@pytest.mark.parametrize("cutoffs", [None, (1, 1, 2)])
def test_sums_to_one_where_every_word_follows_a_history(smoothing, cutoffs):
    tokens = np.random.default_rng(3).integers(0, 3, 300)
    model = fit(tokens, 3, 3, smoothing, cutoffs, undefined_discounts="fallback")
    for context in np.ndindex(3, 3):
        assert probabilities(model, context).sum() == pytest.approx(1, abs=1e-12)


@BOTH
def test_scores_do_not_depend_on_the_batch_and_survive_the_file(tmp_path, smoothing):
    tokens = stream()
    model = fit(tokens[:5000], V, 4, smoothing, (1, 1, 2, 2), vocabulary="hash")
    split = Split("test", tokens[5000:].astype(np.uint8), tokens[4990:5000].astype(np.uint8), "hash", V)
    expected = score(model, split, "model").ln_prob
    np.testing.assert_array_equal(score(model, split, "model", batch=7).ln_prob, expected)
    write_model(tmp_path / "model.safetensors", model)
    same = load_scorer(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(score(same, split, "model").ln_prob, expected)
    assert (same.smoothing, same.cutoffs, same.fallback_orders) == (smoothing, (1, 1, 2, 2), ())
    np.testing.assert_array_equal(same.discounts, model.discounts)


@BOTH
def test_order_4_uses_longer_contexts_than_order_2_where_they_help(smoothing):
    tokens = np.tile(np.random.default_rng(0).integers(0, 8, 200), 10)  # the next word follows from the last few
    long, short = (fit(tokens, 8, n, smoothing, undefined_discounts="fallback") for n in (4, 2))
    split = Split("x", tokens, tokens[:0], "", 8)
    assert score(long, split, "x").ln_prob.mean() > score(short, split, "x").ln_prob.mean() + 0.5


def test_undefined_discounts_name_order_and_count():
    with pytest.raises(InputError, match=r"order 2: no 2-gram has count 3, .*fallback"):
        modified_discounts(np.array([1, 1, 2, 4]), order=2)
    with pytest.raises(InputError, match=r"order 3: the discount of count 2 is -1, not positive"):
        modified_discounts(np.repeat([1, 2, 3, 4], [2, 1, 2, 1]), order=3)
    with pytest.raises(InputError, match="order 1: no 1-gram"):
        fit(TINY, 4, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "order 0"),
        ({"n": 66}, "order 66: give 1 to 65"),
        ({"n": 10**12}, "order 1000000000000"),
        ({"n": 2, "smoothing": "witten-bell"}, "witten-bell"),
        ({"n": 2, "cutoffs": (1,)}, "cut-offs 1 do not fit order 2"),
        ({"n": 2, "cutoffs": (1, 0)}, "cut-offs 1, 0 do not fit"),
        ({"n": 2, "undefined_discounts": "guess"}, "guess"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        fit(stream(), V, **options)


def test_command_fits_the_model_that_its_options_ask_for(tmp_path):
    write_split(tmp_path / "train", Split("train", stream(), stream()[:0], "hash", V))
    arguments = ["fit-model", "--input", f"train={tmp_path / 'train'}", "--output", str(tmp_path / "model"), "--row"]
    row = "{kind: kneser_ney, n: 3, smoothing: backoff, cutoffs: [1, 1, 2]}"
    result = CliRunner().invoke(app, [*arguments, row], catch_exceptions=False)
    assert "3-grams" in result.output
    model = read_model(tmp_path / "model")
    assert (model.n, model.smoothing, model.cutoffs, model.vocabulary) == (3, "backoff", (1, 1, 2), "hash")
    expected = fit(stream(), V, 3, "backoff", (1, 1, 2), vocabulary="hash")
    split = Split("test", stream()[5000:], stream()[4990:5000], "hash", V)
    np.testing.assert_array_equal(score(model, split, "x").ln_prob, score(expected, split, "x").ln_prob)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{kind: kneser_ney, n: 2, smoothing: backoff, cutoffs: [1, x]}", r"--row\.cutoffs: \[1, 'x'\] is not allowed"),
        ("{kind: kneser_ney, n: 2, smoothing: backoff, cutoffs: [1]}", "--row: cutoffs has 1 counts but n is 2"),
        ("{kind: kneser_ney, n: 2}", "--row: has no 'smoothing', which kneser_ney needs: .*backoff | interpolated"),
        ("{kind: kneser_nay}", "--row.kind: 'kneser_nay' is no kind of model; known kinds: .*kneser_ney"),
        ("{n: 3}", "--row: has no kind; known kinds: .*kneser_ney"),
        ("[3", "--row: not YAML"),
        ("{kind: nplm, n: 2, h: 1, m: 1, direct: true}", "kind nplm is not fitted; train it with train-network"),
        (
            "{kind: external, family: n-gram, logarithm: log10, vocabulary_size: 9, valid: v, test: t}",
            "kind external is not fitted; import its scores with import-scores",
        ),
        ("{kind: deleted_interpolation}", "--input: deleted_interpolation reads train, valid, but train is given"),
    ],
)
def test_a_row_that_cannot_be_fitted_ends_the_command_in_one_line(tmp_path, row, message):
    write_split(tmp_path / "train", Split("train", stream(), stream()[:0], "hash", V))
    arguments = ["fit-model", "--input", f"train={tmp_path / 'train'}", "--output", str(tmp_path / "model"), "--row"]
    with pytest.raises(InputError, match=message) as caught:
        CliRunner().invoke(app, [*arguments, row], catch_exceptions=False)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "model").exists()
