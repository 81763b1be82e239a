from collections import Counter
from itertools import pairwise
from math import ceil, log

import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.arrays import read_arrays
from nplm.cli import app
from nplm.errors import InputError
from nplm.ngram.deleted_interpolation import bin_of, fit, number_of_bins, write_model
from nplm.scorers import load_scorer
from nplm.scores import score
from nplm.streams import NO_TOKEN, Split, contexts, write_split

V = 45
NEVER = 44
"""a word that train does not hold"""


def splits() -> tuple[Split, Split, Split]:
    """Train, valid and test of one stream whose words depend on the two before them; train lacks the last words."""
    random = np.random.default_rng(11)
    draws = random.zipf(1.4, 5000) % 40
    tokens = np.where(random.random(5000) < 0.6, (np.roll(draws, 1) + np.roll(draws, 2)) % 40, draws)
    tokens[4100::50] = NEVER
    tokens = tokens.astype(np.uint8)
    limits = (0, 4000, 4600, 5000)
    return tuple(
        Split(name, tokens[start:end], tokens[max(0, start - 64) : start], "hash", V)
        for name, start, end in zip(("train", "valid", "test"), limits[:-1], limits[1:], strict=True)
    )


TRAIN, VALID, TEST = splits()
MODEL = fit(TRAIN, VALID)


def probabilities(context: tuple[int, int]) -> np.ndarray:
    return np.exp(MODEL.ln_prob(np.tile(np.array(context), (V, 1)), np.arange(V)))


def test_bins_are_the_papers():
    frequencies = np.array([0, 1, 2, 9, 799_999])  # -ln((1 + frequency)/800000) = 13.59, 12.90, 12.49, 11.29, 0
    assert bin_of(frequencies, 800_000).tolist() == [14, 13, 13, 12, 0]
    assert number_of_bins(800_000) == 15


def test_probability_is_the_papers_formula_where_the_context_is_known():
    words = TRAIN.tokens.tolist()
    T = len(words)
    counts = {k: Counter(tuple(words[i : i + k]) for i in range(T - k + 1)) for k in (1, 2, 3)}
    for u, v in list(counts[2])[:40]:
        alpha = MODEL.weights[ceil(-log((1 + counts[2][u, v]) / T))]
        p = probabilities((u, v))
        after_v = sum(count for (first, _), count in counts[2].items() if first == v)
        after_uv = sum(count for (*context, _), count in counts[3].items() if context == [u, v])
        for w in (0, 1, 2, 7, NEVER):
            components = (1 / V, counts[1][w,] / T, counts[2][v, w] / after_v, counts[3][u, v, w] / after_uv)
            assert p[w] == pytest.approx(alpha @ components, rel=1e-12)


def test_undefined_components_give_their_weight_to_the_next_lower_one():
    alpha = MODEL.weights[-1]
    unigrams = MODEL.counts[0] / len(TRAIN)
    for context in ((3, NEVER), (NO_TOKEN, NO_TOKEN)):  # nothing follows NEVER: p2 and p3 are p1
        np.testing.assert_allclose(probabilities(context), alpha[0] / V + alpha[1:].sum() * unigrams)
    p = probabilities((NEVER, 3))  # p3 is p2
    bigrams = np.array([Counter(pairwise(TRAIN.tokens.tolist()))[3, w] for w in range(V)])
    np.testing.assert_allclose(p, alpha[0] / V + alpha[1] * unigrams + (alpha[2] + alpha[3]) * bigrams / bigrams.sum())


def test_sums_to_one_after_any_context():
    random = np.random.default_rng(5)
    seen = contexts(TRAIN, 2)[random.integers(2, len(TRAIN), 50)]
    unseen = random.integers(NO_TOKEN, V, (50, 2))
    last = TRAIN.tokens[-2:]
    for context in (*seen, *unseen, last, (NEVER, NEVER), (NO_TOKEN, 3)):
        assert probabilities(context).sum() == pytest.approx(1, abs=1e-12)


def test_weights_are_those_of_the_validation_split():
    assert (np.diff(MODEL.mean_ln_prob) > -1e-12).all()
    assert score(MODEL, VALID, "x").ln_prob.mean() == pytest.approx(MODEL.mean_ln_prob[-1], rel=1e-12)
    np.testing.assert_allclose(MODEL.weights.sum(axis=1), 1, atol=1e-12)
    occupied = MODEL.valid_tokens_per_bin > 0
    assert occupied.sum() >= 4
    assert len(np.unique(MODEL.weights[~occupied], axis=0)) == 1  # all of the validation data together
    assert MODEL.mean_ln_prob[-1] > MODEL.mean_ln_prob[0] + 0.01


def test_scores_do_not_depend_on_the_batch_and_survive_the_file(tmp_path):
    expected = score(MODEL, TEST, "x").ln_prob
    np.testing.assert_array_equal(score(MODEL, TEST, "x", batch=13).ln_prob, expected)
    write_model(tmp_path / "model", MODEL)
    np.testing.assert_array_equal(score(load_scorer(tmp_path / "model"), TEST, "x").ln_prob, expected)


def test_commands_write_the_bins_of_every_token_and_the_model(tmp_path):
    for split in (TRAIN, VALID, TEST):
        write_split(tmp_path / split.name, split)
    run = CliRunner().invoke
    train, valid, test = (str(tmp_path / name) for name in ("train", "valid", "test"))
    run(
        app,
        ["bin-contexts", "--train", train, "--split", test, "--output", str(tmp_path / "bins")],
        catch_exceptions=False,
    )
    arrays, header = read_arrays(tmp_path / "bins", "context_bins")
    words = TRAIN.tokens.tolist()
    counts = Counter(pairwise(words))
    frequencies = [counts[tuple(context)] for context in contexts(TEST, 2).tolist()]
    assert arrays["frequency"].tolist() == frequencies
    assert arrays["bin"].tolist() == [ceil(-log((1 + frequency) / len(TRAIN))) for frequency in frequencies]
    assert header["vocabulary"] == "hash"
    model = str(tmp_path / "model")
    inputs = ["--input", f"train={train}", "--input", f"valid={valid}"]
    row = "{kind: deleted_interpolation}"
    result = run(app, ["fit-model", "--row", row, *inputs, "--output", model], catch_exceptions=False)
    assert f"validation perplexity {np.exp(-MODEL.mean_ln_prob[-1]):.2f}" in result.output
    np.testing.assert_array_equal(load_scorer(model).weights, MODEL.weights)


def test_splits_of_two_vocabularies_are_refused():
    other = Split("valid", VALID.tokens, VALID.history, "other", V)
    with pytest.raises(InputError, match="other"):
        fit(TRAIN, other)
