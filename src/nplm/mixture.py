"""Linear mixtures of score streams: P = Σ_m α_m(q) P_m, most of all the network with the interpolated trigram.

The paper (section 2) mixes with equal weights, with weights learned on the validation set, or with weights learned
there for each bin q of the context's frequency (the bins of the deleted interpolation, section 4.1). Only score
streams are mixed, so a component may be any model, or a mixture, or another toolkit's output.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from nplm import em
from nplm.arrays import read_arrays, require_same_vocabulary
from nplm.errors import InputError
from nplm.files import read_json, write_json
from nplm.scores import ScoreStream

KINDS = ("fixed", "learned", "binned")


@dataclass(frozen=True)
class ContextBins:
    """The bin of every token's context, by how often the context occurs in train."""

    frequency: np.ndarray
    """int [T]: occurrences in train of (w[t-2], w[t-1])"""
    bin: np.ndarray
    """int [T], ≥ 0"""
    split: str
    vocabulary: str
    path: str
    """where they were read from, for messages"""


def read_context_bins(path: str | Path) -> ContextBins:
    """Read a file of kind "context_bins". Raises InputError for anything else."""
    arrays, header = read_arrays(path, "context_bins")
    return ContextBins(arrays["frequency"], arrays["bin"], header["split"], header["vocabulary"], str(path))


@dataclass(frozen=True)
class Mixture:
    """Weights of M components for each of B bins, with the record of how they were found.

    Bin b of the lists below is the context bin `b`; mixtures of kind "fixed" and "learned" have the single bin 0.
    """

    name: str
    kind: str
    """fixed | learned | binned"""
    components: list[str]
    """names of the M components, in the order of their weights"""
    weights: list[list[float]]
    """α [B, M], each row sums to 1"""
    pooled_weights: list[float]
    """α [M] fitted on all tokens together: what a bin takes that the fitted split did not have"""
    tokens_per_bin: list[int]
    """tokens of the fitted split in each bin"""
    frequency_range_per_bin: list[list[int] | None] | None
    """lowest and highest frequency in train of each bin's contexts on the fitted split; None where there is none"""
    mean_ln_prob_per_iteration: list[float]
    """nats per token on the fitted split, from equal weights to the last"""
    vocabulary: str
    fitted_on: str
    """name of the split"""

    @property
    def iterations(self) -> int:
        """Updates of the weights that EM made."""
        return len(self.mean_ln_prob_per_iteration) - 1


def fit_mixture(
    name: str,
    kind: str,
    streams: list[ScoreStream],
    bins: ContextBins | None = None,
    iterations: int = 100,
    tolerance: float = 1e-7,
) -> Mixture:
    """The mixture of two or more score streams of the validation split, already known to be aligned.

    `kind`: "fixed" leaves the weights equal, "learned" fits one per component by EM, "binned" one per component and bin
    of `bins`. EM stops as `em.fit_weights` says. Raises InputError when the kind is unknown, there are too few
    components or two of one name, the split is not valid, or bins are missing, not wanted, or of other tokens.
    """
    components = [stream.model for stream in streams]
    if kind not in KINDS:
        raise InputError(f"{name}: weights '{kind}' are unknown; choose one of {', '.join(KINDS)}")
    if len(components) < 2 or len(set(components)) < len(components):
        raise InputError(f"{name}: components {', '.join(components) or '(none)'}; give two or more different ones")
    if streams[0].split != "valid":
        raise InputError(f"{name}: weights are fitted on valid, not on {streams[0].split}; give the streams of valid")
    _require_bins(name, kind, bins, streams[0])

    ln_prob = np.stack([stream.ln_prob for stream in streams])
    pooled = em.fit_weights(ln_prob, iterations=0 if kind == "fixed" else iterations, tolerance=tolerance)
    fitted = pooled
    if bins is not None:
        fitted = em.fit_weights(ln_prob, bins.bin, int(bins.bin.max()) + 1, iterations, tolerance)
    return Mixture(
        name=name,
        kind=kind,
        components=components,
        weights=fitted.weights.tolist(),
        pooled_weights=pooled.weights[0].tolist(),
        tokens_per_bin=fitted.tokens_per_bin.tolist(),
        frequency_range_per_bin=None if bins is None else frequency_ranges(bins),
        mean_ln_prob_per_iteration=fitted.mean_ln_prob,
        vocabulary=streams[0].vocabulary,
        fitted_on=streams[0].split,
    )


def mix(mixture: Mixture, streams: list[ScoreStream], bins: ContextBins | None = None) -> ScoreStream:
    """The mixture's score stream on the split of the components' streams (aligned, in the mixture's order).

    A token in a bin that the fitted split did not have takes the pooled weights. Raises InputError when the streams are
    not the mixture's components in its order, belong to another vocabulary, or bins are missing, not wanted, or of
    other tokens.
    """
    names = [stream.model for stream in streams]
    if names != mixture.components:
        raise InputError(
            f"{mixture.name} mixes {', '.join(mixture.components)} in this order but is given {', '.join(names)}; "
            "give its components' score streams in its order"
        )
    require_same_vocabulary((mixture.name, mixture.vocabulary), (names[0], streams[0].vocabulary))
    _require_bins(mixture.name, mixture.kind, bins, streams[0])
    weights, bin_of_token = np.array(mixture.weights), None
    if bins is not None:
        bin_of_token = np.minimum(bins.bin, len(weights))
        weights = np.vstack([weights, mixture.pooled_weights])
    ln_prob = em.mix(np.stack([stream.ln_prob for stream in streams]), weights, bin_of_token)
    return ScoreStream(mixture.name, streams[0].split, ln_prob, streams[0].vocabulary)


def _require_bins(name: str, kind: str, bins: ContextBins | None, stream: ScoreStream) -> None:
    """Raise InputError unless there are bins exactly for a binned mixture, and they are of the stream's tokens."""
    if bins is None:
        if kind == "binned":
            raise InputError(f"{name}: binned weights need the context bins of {stream.split}; give them (--bins)")
        return
    if kind != "binned":
        raise InputError(f"{name}: {kind} weights have no use for {bins.path}; leave --bins out")
    require_same_vocabulary((bins.path, bins.vocabulary), (f"{stream.model} on {stream.split}", stream.vocabulary))
    if (bins.split, bins.bin.size) != (stream.split, stream.ln_prob.size):
        raise InputError(
            f"{bins.path} bins {bins.bin.size} tokens of {bins.split} but {stream.model} scores {stream.ln_prob.size} "
            f"of {stream.split}; give the context bins of {stream.split}"
        )


def frequency_ranges(bins: ContextBins) -> list[list[int] | None]:
    """Lowest and highest frequency seen in each bin, None where there is none."""
    ranges: list[list[int] | None] = [None] * (int(bins.bin.max()) + 1)
    for b in np.unique(bins.bin):
        inside = bins.frequency[bins.bin == b]
        ranges[b] = [int(inside.min()), int(inside.max())]
    return ranges


def write_mixture(path: str | Path, mixture: Mixture) -> None:
    """Write a mixture as JSON, field by field as in `Mixture`, with the number of EM's updates."""
    write_json(path, {**asdict(mixture), "iterations": mixture.iterations})


def read_mixture(path: str | Path) -> Mixture:
    """Read a mixture written by `write_mixture`. Raises InputError for anything else."""
    fields = read_json(path)
    fields.pop("iterations", None)
    try:
        return Mixture(**fields)
    except TypeError as error:
        raise InputError(f"{path}: not a mixture ({error}); make it anew with `nplm fit-mixture`") from None
