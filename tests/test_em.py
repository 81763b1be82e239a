import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nplm.em import fit_weights, mix
from nplm.errors import InputError

DISTRIBUTIONS = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])


def outcomes(weight: float) -> np.ndarray:
    """1000 outcomes in exactly the proportions of weight · first + (1 - weight) · second distribution."""
    counts = 1000 * (weight * DISTRIBUTIONS[0] + (1 - weight) * DISTRIBUTIONS[1])
    return np.repeat(np.arange(3), counts.round().astype(int))


def test_recovers_the_weights_that_made_the_tokens_in_each_bin():
    first, second = outcomes(0.3), outcomes(0.85)
    ln_prob = np.log(DISTRIBUTIONS[:, np.concatenate([first, second])])
    bins = np.repeat([2, 0], [len(first), len(second)])
    fitted = fit_weights(ln_prob, bins, 3, iterations=10_000, tolerance=1e-15)
    np.testing.assert_allclose(fitted.weights[[2, 0]], [[0.3, 0.7], [0.85, 0.15]], atol=1e-5)
    assert fitted.tokens_per_bin.tolist() == [1000, 0, 1000]


def test_bin_without_tokens_takes_the_weights_of_all_tokens_together():
    ln_prob = np.log(DISTRIBUTIONS[:, outcomes(0.3)])
    fitted = fit_weights(ln_prob, np.repeat([0, 2], 500), 3)
    np.testing.assert_array_equal(fitted.weights[1], fit_weights(ln_prob).weights[0])
    assert np.abs(fitted.weights[1] - fitted.weights[0]).max() > 0.01


@given(
    ln_prob=arrays(np.float64, (3, 40), elements=st.one_of(st.floats(-2000, 0), st.just(-np.inf))),
    bins=arrays(np.int64, 40, elements=st.integers(0, 4)),
)
def test_likelihood_never_decreases_and_is_that_of_the_weights(ln_prob, bins):
    ln_prob[2] = np.maximum(ln_prob[2], -2000)  # one component is always finite
    fitted = fit_weights(ln_prob, bins, 5)
    assert (np.diff(fitted.mean_ln_prob) >= -1e-9 * np.abs(fitted.mean_ln_prob[0])).all()
    assert fitted.mean_ln_prob[-1] == pytest.approx(mix(ln_prob, fitted.weights, bins).mean(), rel=1e-9)
    np.testing.assert_allclose(fitted.weights.sum(axis=1), 1, atol=1e-12)
    assert (fitted.weights >= 0).all()


def test_component_that_covers_a_share_of_the_tokens_gets_that_share():
    ln_prob = np.full((2, 10), -np.inf)
    ln_prob[0, :7], ln_prob[1, 7:] = -1500, -3
    np.testing.assert_allclose(fit_weights(ln_prob).weights, [[0.7, 0.3]], atol=1e-12)


def test_stops_on_convergence_or_at_the_bound():
    ln_prob = np.log(DISTRIBUTIONS[:, outcomes(0.3)])
    assert len(fit_weights(ln_prob, iterations=4, tolerance=0).mean_ln_prob) == 5
    gains = -np.diff(fit_weights(ln_prob, tolerance=1e-4).mean_ln_prob)
    assert len(gains) < 20


def test_mix_is_the_logarithm_of_the_weighted_sum():
    ln_prob = np.log([[0.5, 0.25, 1e-300], [0.1, 0.75, 0.5]])
    weights = np.array([[0.2, 0.8], [1.0, 0.0]])
    np.testing.assert_allclose(mix(ln_prob, weights, np.array([0, 0, 1])), np.log([0.18, 0.65, 1e-300]))
    np.testing.assert_allclose(mix(ln_prob, weights[:1]), np.log([0.18, 0.65, 0.4]))


def test_refuses_a_token_that_no_component_can_explain():
    ln_prob = np.array([[-1.0, -np.inf], [-2.0, -np.inf]])
    with pytest.raises(InputError, match="token 1 has no finite probability"):
        fit_weights(ln_prob)
    with pytest.raises(InputError, match="no tokens"):
        fit_weights(np.empty((2, 0)))
