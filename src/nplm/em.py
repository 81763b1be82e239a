"""Weights of a linear mixture by expectation maximisation: one set of weights, or one per bin of the tokens.

P(w | context) = Σ_m α_m(q) P_m(w | context), α ≥ 0, Σ_m α_m(q) = 1, with q the bin of the context. The deleted
interpolation trigram (paper, section 4.1; Jelinek & Mercer 1980) and the mixtures of the network with an n-gram model
(section 2) are both of this form.
"""

from dataclasses import dataclass

import numpy as np

from nplm.errors import InputError


@dataclass(frozen=True)
class Weights:
    """The outcome of `fit_weights`."""

    weights: np.ndarray
    """α, float64 [number_of_bins, M]; each row sums to 1"""
    mean_ln_prob: list[float]
    """mean ln-probability per token (nats) before each update; the last value is that of `weights`"""
    tokens_per_bin: np.ndarray
    """int64 [number_of_bins]"""


def fit_weights(
    ln_prob: np.ndarray,
    bins: np.ndarray | None = None,
    number_of_bins: int = 1,
    iterations: int = 100,
    tolerance: float = 1e-7,
) -> Weights:
    """Weights that maximise the likelihood of the tokens, from equal weights, by EM (Dempster, Laird & Rubin 1977).

    ln_prob [M, T]: each component's ln-probability of each token, in nats; a component may give −inf where another is
    finite. bins int [T]: the bin of each token, None = a single bin. Stops when an update gains less than `tolerance`
    of the mean ln-probability, or after `iterations` updates. A bin without tokens has no likelihood to maximise: it
    takes the weights fitted on all tokens together.

    Raises InputError when there are no tokens or when a token has probability zero under every component.
    """
    M, T = ln_prob.shape
    if T == 0:
        raise InputError("mixture weights cannot be fitted on no tokens; give score streams that are not empty")
    scale = ln_prob.max(axis=0)
    impossible = np.flatnonzero(~np.isfinite(scale))
    if impossible.size:
        raise InputError(
            f"token {impossible[0]} has no finite probability under any component ({impossible.size} of {T} tokens); "
            "add a component that covers them"
        )
    scaled_prob = np.exp(ln_prob - scale)  # the likeliest component of each token has 1, so that nothing underflows
    bins = np.zeros(T, dtype=np.intp) if bins is None else bins
    tokens_per_bin = np.bincount(bins, minlength=number_of_bins)
    occupied = tokens_per_bin > 0

    weights = np.full((number_of_bins, M), 1 / M)
    mean_ln_prob: list[float] = []
    for iteration in range(iterations + 1):
        posterior = weights.T[:, bins] * scaled_prob
        mixed = posterior.sum(axis=0)
        mean_ln_prob.append(float((np.log(mixed) + scale).mean()))
        converged = iteration > 0 and mean_ln_prob[-1] - mean_ln_prob[-2] <= tolerance * abs(mean_ln_prob[-2])
        if converged or iteration == iterations:
            break
        posterior /= mixed
        expected = np.stack([np.bincount(bins, p, minlength=number_of_bins) for p in posterior], axis=1)
        weights[occupied] = expected[occupied] / expected[occupied].sum(axis=1, keepdims=True)
    if not occupied.all():
        weights[~occupied] = fit_weights(ln_prob, None, 1, iterations, tolerance).weights
    return Weights(weights, mean_ln_prob, tokens_per_bin)


def mix(ln_prob: np.ndarray, weights: np.ndarray, bins: np.ndarray | None = None) -> np.ndarray:
    """ln Σ_m α_m(q) P_m: float64 [T], nats, from ln_prob [M, T] (−inf allowed), weights [B, M] and bins int [T].

    Without bins, weights must have a single row.
    """
    with np.errstate(divide="ignore"):  # a weight of zero is ln 0 = −inf
        ln_weights = np.log(weights)
    return np.logaddexp.reduce(ln_prob + (ln_weights.T if bins is None else ln_weights.T[:, bins]), axis=0)
