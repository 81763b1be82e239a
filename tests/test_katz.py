from collections import Counter
from functools import cache

import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.cli import app
from nplm.errors import InputError
from nplm.ngram.katz import fit, good_turing_discounts
from nplm.scorers import load_scorer
from nplm.scores import score
from nplm.streams import NO_TOKEN, Split, write_split

V = 120
k = 5


def stream(size: int = 6000, words: int = 110) -> np.ndarray:
    """A stream whose words depend on those before them and whose n_r fall as r grows; `words` to V never occur."""
    random = np.random.default_rng(4)
    draws = random.zipf(1.4, size) % words
    return np.where(random.random(size) < 0.5, draws, np.roll(draws, 1) * 3 % words)


def probabilities(model, context) -> np.ndarray:
    """P of every word of the vocabulary after one context."""
    words = np.arange(model.vocabulary_size)
    return np.exp(model.ln_prob(np.tile(np.array(context, dtype=np.int32), (len(words), 1)), words))


def by_the_book(tokens, n, cutoffs, vocabulary_size):
    """P(words | context) of Katz's formulas on dictionaries: a function of a context, oldest word first."""
    tokens = tokens.tolist()
    counts = [Counter(zip(*(tokens[i:] for i in range(order)), strict=False)) for order in range(1, n + 1)]
    n_r = [Counter(count.values()) for count in counts]
    N = len(tokens)

    def discount(order, r):
        if r < cutoffs[order - 1]:
            return 0
        if order == 1:
            return 1 - n_r[0][1] / N
        if r > k:
            return 1
        of_order = n_r[order - 1]
        r_star = (r + 1) * of_order[r + 1] / of_order[r]
        common = (k + 1) * of_order[k + 1] / of_order[1]
        return (r_star / r - common) / (1 - common)

    @cache
    def p(history):
        order = len(history) + 1
        lower = p(history[1:]) if history else [1 / vocabulary_size] * vocabulary_size
        c = [counts[order - 1][(*history, w)] for w in range(vocabulary_size)]
        if sum(c) == 0:
            return lower
        kept = [discount(order, r) * r for r in c]
        total = sum(c) + (1 if sum(kept) == sum(c) else 0)
        alpha = (1 - sum(kept) / total) / (1 - sum(q for q, r in zip(lower, kept, strict=True) if r))
        return [r / total if r else alpha * q for q, r in zip(lower, kept, strict=True)]

    return p


@pytest.mark.parametrize(
    ("n", "cutoffs"), [(1, (1,)), (2, (1, 1)), (3, (1, 1, 1)), (3, (1, 1, 2)), (3, (1, 3, 2)), (1, (4,))]
)
def test_probabilities_are_those_of_the_formulas_and_sum_to_one(n, cutoffs):
    tokens = stream()
    model = fit(tokens, V, n, cutoffs)
    book = by_the_book(tokens, n, cutoffs, V)
    random = np.random.default_rng(1)
    seen = [tokens[i : i + n - 1] for i in random.integers(0, len(tokens) - n, 30)]
    for context in [*seen, *random.integers(0, V, (30, n - 1))]:
        p = probabilities(model, context)
        np.testing.assert_allclose(p, book(tuple(context.tolist())), rtol=1e-9)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert (p > 0).all()


# The stream a b a b a c over a, b, c, d: no discount is defined, so none is made. n_1 / N = 1/6 goes to d, the one
# unseen word. After a (b twice, c once) and after b (a twice), one more count makes room for the words not seen there.
A, B, C, D = range(4)
TINY = np.array([A, B, A, B, A, C])
UNIGRAMS = np.array([5 / 12, 5 / 18, 5 / 36, 1 / 6])


def test_bigram_by_hand():
    model = fit(TINY, 4, 2, undefined_discounts="fallback")
    assert model.fallback_orders == (2,)
    np.testing.assert_allclose(probabilities(model, [A]), [5 / 28, 1 / 2, 1 / 4, 1 / 14])
    np.testing.assert_allclose(probabilities(model, [B]), [2 / 3, *UNIGRAMS[1:] / UNIGRAMS[1:].sum() / 3])
    for never_followed in (C, D, NO_TOKEN):
        np.testing.assert_allclose(probabilities(model, [never_followed]), UNIGRAMS)


def test_discounts_by_hand_free_what_good_turing_gives_to_the_unseen():
    n_r = np.array([100, 40, 20, 12, 8, 5, 4])
    d = good_turing_discounts(np.repeat(np.arange(1, 8), n_r))  # common term 0.3; r* = 0.8, 1.5, 2.4, 10/3, 3.75
    np.testing.assert_allclose(d, (np.array([0.8, 0.75, 0.8, 5 / 6, 0.75]) - 0.3) / 0.7)
    assert (n_r[:5] * np.arange(1, 6) * (1 - d)).sum() == pytest.approx(n_r[0])


@pytest.mark.parametrize(
    ("n_r", "undefined"),
    [
        ([100, 40, 20, 12, 8, 0], [5]),  # r* = 0 for r = 5
        ([100, 40, 0, 12, 8, 5], [2, 3]),
        ([100, 40, 30, 12, 8, 5], [2]),  # r* of 2 is above 2
        ([100, 40, 20, 12, 80, 5], [4, 5]),
        ([10, 40, 20, 12, 8, 5], [1, 2, 3, 4, 5]),  # more is common than any count may lose
        ([0, 40, 20, 12, 8, 5], [1, 2, 3, 4, 5]),
        ([], [1, 2, 3, 4, 5]),
    ],
)
def test_discounts_that_the_counts_do_not_define(n_r, undefined):
    d = good_turing_discounts(np.repeat(np.arange(1, len(n_r) + 1), n_r))
    assert (np.flatnonzero(np.isnan(d)) + 1).tolist() == undefined


def test_undefined_discounts_name_order_and_count_or_leave_the_count_as_it_is():
    tokens = stream(300)
    with pytest.raises(InputError, match=r"order 2: .* no discount of count 4; .*fallback"):
        fit(tokens, V, 3)
    model = fit(tokens, V, 3, undefined_discounts="fallback")
    assert model.fallback_orders == (2, 3)
    assert (model.discounts[0] == 1).tolist() == [False, False, False, True, True]
    for context in ([3, 9], tokens[:2], tokens[100:102]):
        assert probabilities(model, context).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("tokens", "vocabulary_size"),
    [
        (np.random.default_rng(3).integers(0, 3, 300), 3),  # every word follows every history
        (np.repeat(np.arange(4), 3), 6),  # no word occurs once, two never
        (np.arange(5), 7),  # every word occurs once
    ],
)
def test_sums_to_one_where_counts_are_peculiar(tokens, vocabulary_size):
    model = fit(tokens, vocabulary_size, 2, undefined_discounts="fallback")
    for word in range(vocabulary_size):
        p = probabilities(model, [word])
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert (p > 0).all()


@pytest.mark.parametrize("n", [1, 3])
def test_command_fits_the_model_that_its_options_ask_for(tmp_path, n):
    tokens = stream()
    write_split(tmp_path / "train", Split("train", tokens, tokens[:0], "hash", V))
    arguments = ["fit-model", "--input", f"train={tmp_path / 'train'}", "--output", str(tmp_path / "model")]
    arguments += ["--row", f"{{kind: katz, n: {n}, cutoffs: [{', '.join('112'[:n])}]}}"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert f"{n}-grams" in result.output
    expected = fit(tokens, V, n, (1, 1, 2)[:n], vocabulary="hash")
    model = load_scorer(tmp_path / "model")
    assert (model.n, model.cutoffs, model.vocabulary) == (n, (1, 1, 2)[:n], "hash")
    split = Split("test", tokens[5000:], tokens[4990:5000], "hash", V)
    np.testing.assert_array_equal(score(model, split, "x").ln_prob, score(expected, split, "x").ln_prob)
