from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.arrays import write_arrays
from nplm.cli import app
from nplm.errors import InputError
from nplm.mixture import ContextBins, fit_mixture, mix, read_mixture, write_mixture
from nplm.scores import ScoreStream, read_scores, write_scores

RANDOM = np.random.default_rng(2003)


def streams(*probabilities, split="valid", names="abc", vocabulary="hash"):
    return [ScoreStream(name, split, np.log(p), vocabulary) for name, p in zip(names, probabilities, strict=False)]


def bins(numbers, split="valid", vocabulary="hash", frequency=None):
    numbers = np.array(numbers)
    return ContextBins(numbers if frequency is None else np.array(frequency), numbers, split, vocabulary, "bins file")


def complementary(tokens=2000, share=0.7):
    """Two components: the first knows a share of the tokens, the second the others."""
    known = np.arange(tokens) < share * tokens
    return np.where(known, 0.9, 1e-9), np.where(known, 1e-9, 0.9)


def test_fixed_weights_are_equal_for_any_number_of_components():
    mixture = fit_mixture("m", "fixed", streams(*RANDOM.random((3, 50))))
    assert mixture.weights == [[1 / 3] * 3]
    assert mixture.iterations == 0
    mixed = mix(mixture, streams([0.1], [0.2], [0.6], split="test"))
    assert np.exp(mixed.ln_prob) == pytest.approx([0.3])
    assert (mixed.model, mixed.split, mixed.vocabulary) == ("m", "test", "hash")


def test_learned_weights_are_the_shares_of_what_each_component_knows():
    mixture = fit_mixture("m", "learned", streams(*complementary()), tolerance=1e-12)
    np.testing.assert_allclose(mixture.weights, [[0.7, 0.3]], atol=1e-6)
    assert mixture.components == ["a", "b"] and mixture.fitted_on == "valid"


def test_binned_weights_differ_by_bin():
    first, second = complementary(share=0.2), complementary(share=0.8)
    components = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    context_bins = bins(np.repeat([1, 3], 2000), frequency=np.tile([4, 9], 2000))
    mixture = fit_mixture("m", "binned", streams(*components), context_bins, tolerance=1e-12)
    np.testing.assert_allclose([mixture.weights[1], mixture.weights[3]], [[0.2, 0.8], [0.8, 0.2]], atol=1e-6)
    assert mixture.tokens_per_bin == [0, 2000, 0, 2000]
    assert mixture.frequency_range_per_bin == [None, [4, 9], None, [4, 9]]


def test_bins_that_valid_does_not_have_take_the_pooled_weights():
    context_bins = bins(np.repeat([1, 3], 1000))
    mixture = fit_mixture("m", "binned", streams(*complementary()), context_bins, tolerance=1e-12)
    np.testing.assert_allclose(mixture.pooled_weights, [0.7, 0.3], atol=1e-6)
    on_test = streams([0.1] * 5, [0.5] * 5, split="test")
    mixed = np.exp(mix(mixture, on_test, bins([0, 1, 2, 4, 17], split="test")).ln_prob)
    pooled = 0.7 * 0.1 + 0.3 * 0.5
    np.testing.assert_allclose(mixed, [pooled, 0.1, pooled, pooled, pooled], atol=1e-6)


@pytest.mark.parametrize("kind", ["fixed", "learned", "binned"])
def test_likelihood_is_recorded_and_is_that_of_the_mixture_on_valid(kind):
    components = streams(*RANDOM.random((3, 400)))
    context_bins = bins(RANDOM.integers(0, 4, 400)) if kind == "binned" else None
    mixture = fit_mixture("m", kind, components, context_bins)
    record = mixture.mean_ln_prob_per_iteration
    assert (np.diff(record) >= 0).all() and len(record) == mixture.iterations + 1
    assert mix(mixture, components, context_bins).ln_prob.mean() == pytest.approx(record[-1], rel=1e-12)


def test_learned_is_no_worse_than_equal_and_binned_no_worse_than_learned():
    components, context_bins = streams(*RANDOM.random((2, 400))), bins(RANDOM.integers(0, 3, 400))
    fixed, learned, binned = (
        fit_mixture("m", kind, components, context_bins if kind == "binned" else None).mean_ln_prob_per_iteration[-1]
        for kind in ("fixed", "learned", "binned")
    )
    assert fixed < learned < binned


def test_weights_come_from_valid_only():
    with pytest.raises(InputError, match="fitted on valid, not on test"):
        fit_mixture("m", "learned", streams([0.1], [0.2], split="test"))


@pytest.mark.parametrize(
    ("kind", "names", "context_bins", "message"),
    [
        ("equal", "ab", None, "weights 'equal' are unknown; choose one of fixed, learned, binned"),
        ("learned", "a", None, "give two or more"),
        ("learned", "aa", None, "components a, a; give two or more different ones"),
        ("binned", "ab", None, "need the context bins of valid"),
        ("learned", "ab", bins([0, 1]), "no use for bins file"),
        ("binned", "ab", bins([0, 1, 2]), "bins 3 tokens of valid but a scores 2 of valid"),
        ("binned", "ab", bins([0, 1], split="test"), "bins 2 tokens of test but a scores 2 of valid"),
        ("binned", "ab", bins([0, 1], vocabulary="other"), "hash but bins file to other"),
    ],
)
def test_what_cannot_be_fitted_is_refused(kind, names, context_bins, message):
    with pytest.raises(InputError, match=message):
        fit_mixture("m", kind, streams([0.1, 0.2], [0.2, 0.1], names=names), context_bins)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (streams([0.1], [0.2], names="ba"), "m mixes a, b in this order but is given b, a"),
        (streams([0.1], [0.2], [0.3]), "is given a, b, c"),
        (streams([0.1], [0.2], vocabulary="other"), "a belongs to vocabulary other but m to hash"),
    ],
)
def test_only_the_components_in_their_order_are_mixed(given, message):
    mixture = fit_mixture("m", "learned", streams([0.1, 0.2], [0.2, 0.1]))
    with pytest.raises(InputError, match=message):
        mix(mixture, given)


def test_mixture_of_probabilities_too_small_for_a_float_is_finite():
    mixture = fit_mixture("m", "fixed", streams([0.1], [0.1]))
    first, second = streams([1], [1])
    tiny = [replace(first, ln_prob=np.array([-5000.0])), replace(second, ln_prob=np.array([-5001.0]))]
    assert mix(mixture, tiny).ln_prob == pytest.approx(-5000 + np.log((1 + np.exp(-1)) / 2))


def test_mixture_reads_back(tmp_path):
    mixture = fit_mixture("m", "binned", streams(*complementary(100)), bins(np.repeat([0, 2], 50)))
    write_mixture(tmp_path / "m.json", mixture)
    assert read_mixture(tmp_path / "m.json") == mixture


def test_other_json_is_no_mixture(tmp_path):
    (tmp_path / "m.json").write_text('{"name": "m"}')
    with pytest.raises(InputError, match=r"m\.json: not a mixture"):
        read_mixture(tmp_path / "m.json")


def test_commands_fit_on_valid_and_mix_test(tmp_path):
    for split, tokens in (("valid", 300), ("test", 4)):
        numbers = np.arange(tokens) % 2
        write_arrays(
            tmp_path / f"bins.{split}",
            "context_bins",
            {"frequency": numbers, "bin": numbers},
            split=split,
            vocabulary="hash",
        )
        for stream in streams(*RANDOM.random((2, tokens)), split=split):
            write_scores(tmp_path / f"{stream.model}.{split}", stream)
    mixture, mixed = str(tmp_path / "m.json"), str(tmp_path / "m.test")

    def inputs(split):
        given = [word for name in "ab" for word in ("--component", str(tmp_path / f"{name}.{split}"))]
        return [*given, "--bins", str(tmp_path / f"bins.{split}")]

    fit = ["fit-mixture", *inputs("valid"), "--weights", "binned", "--name", "m", "--output", mixture]
    for arguments in (fit, ["mix", "--mixture", mixture, *inputs("test"), "--output", mixed]):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, (result.output, result.exception)
    weights = np.array(read_mixture(mixture).weights)[np.arange(4) % 2].T
    components = np.exp([read_scores(tmp_path / f"{name}.test").ln_prob for name in "ab"])
    np.testing.assert_allclose(np.exp(read_scores(mixed).ln_prob), (weights * components).sum(axis=0))
