"""Score streams: one natural-log probability per token of a split, the only thing the later stages know of a model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from nplm.arrays import read_arrays, require_same_vocabulary, write_arrays
from nplm.errors import InputError
from nplm.streams import Split, contexts


class Scorer(Protocol):
    """What every model of language offers, neural or not."""

    n: int
    """order: the model looks at the n - 1 words before the one it predicts"""
    vocabulary: str
    vocabulary_size: int

    def ln_prob(self, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        """ln P(word | context), in nats: float64 [T].

        contexts [T, n-1] word ids, oldest first, NO_TOKEN where the stream had not begun; words [T] word ids.
        """
        ...


@dataclass(frozen=True)
class ScoreStream:
    """`ln_prob` float64 [T] in nats, of the model (or mixture) `model` on the split `split`."""

    model: str
    split: str
    ln_prob: np.ndarray
    vocabulary: str


def score(scorer: Scorer, split: Split, model: str, batch: int = 1 << 18) -> ScoreStream:
    """Score every token of a split; `batch` (tokens at a time) bounds memory and does not change the result.

    Raises InputError when model and split belong to different vocabularies, and when a probability is not in (0, 1].
    """
    require_same_vocabulary((model, scorer.vocabulary), (f"split {split.name}", split.vocabulary))
    all_contexts = contexts(split, scorer.n - 1)
    ln_prob = np.empty(len(split), dtype=np.float64)
    for start in range(0, len(split), batch):
        part = slice(start, start + batch)
        ln_prob[part] = scorer.ln_prob(all_contexts[part], split.tokens[part])
    stream = ScoreStream(model=model, split=split.name, ln_prob=ln_prob, vocabulary=split.vocabulary)
    check_ln_prob(stream.ln_prob, f"{model} on {split.name}")
    return stream


def check_ln_prob(ln_prob: np.ndarray, where: str) -> None:
    """Raise InputError unless every value is the logarithm of a probability in (0, 1] (rounding of 1e-9 allowed)."""
    wrong = np.flatnonzero(~(np.isfinite(ln_prob) & (ln_prob <= 1e-9)))
    if wrong.size:
        at = wrong[0]
        raise InputError(
            f"{where}: ln_prob[{at}] = {ln_prob[at]} is not the logarithm of a probability in (0, 1] "
            f"({wrong.size} of {ln_prob.size} tokens); the model that wrote it is broken"
        )


def write_scores(path: str | Path, stream: ScoreStream) -> None:
    """Write a score stream; see `read_scores`."""
    write_arrays(
        path,
        "scores",
        {"ln_prob": stream.ln_prob},
        model=stream.model,
        split=stream.split,
        vocabulary=stream.vocabulary,
    )


def read_scores(path: str | Path) -> ScoreStream:
    """Read a score stream written by `write_scores`. Raises InputError for anything else."""
    arrays, header = read_arrays(path, "scores")
    check_ln_prob(arrays["ln_prob"], str(path))
    return ScoreStream(
        model=header["model"], split=header["split"], ln_prob=arrays["ln_prob"], vocabulary=header["vocabulary"]
    )


def read_aligned_scores(paths: list[str | Path]) -> list[ScoreStream]:
    """Read score streams of one split; InputError unless split, length and vocabulary are the same in all."""
    streams = [read_scores(path) for path in paths]
    require_same_vocabulary(*((path, stream.vocabulary) for path, stream in zip(paths, streams, strict=True)))
    for path, stream in zip(paths[1:], streams[1:], strict=True):
        if (stream.split, stream.ln_prob.size) != (streams[0].split, streams[0].ln_prob.size):
            raise InputError(
                f"{path} scores {stream.ln_prob.size} tokens of {stream.split} but {paths[0]} scores "
                f"{streams[0].ln_prob.size} of {streams[0].split}; combine streams of one split only"
            )
    return streams
