"""Perplexity of a score stream: exp(−mean ln P) over all its tokens (paper, section 4), none of them special."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nplm.errors import InputError
from nplm.files import read_csv, write_csv
from nplm.scores import ScoreStream

COLUMNS = ("model", "split", "tokens", "mean_ln_prob", "perplexity")


@dataclass(frozen=True)
class Perplexity:
    """How well `model` (or mixture) predicts the `tokens` tokens of `split`; `mean_ln_prob` in nats per token."""

    model: str
    split: str
    tokens: int
    mean_ln_prob: float

    @property
    def perplexity(self) -> float:
        """exp(−mean ln P), from 1 (certain of every token); |V| for the uniform distribution."""
        return float(np.exp(-self.mean_ln_prob))


def perplexity(stream: ScoreStream) -> Perplexity:
    """The perplexity of a score stream. Raises InputError when the stream has no tokens."""
    if stream.ln_prob.size == 0:
        raise InputError(f"{stream.model} on {stream.split}: no tokens to average over; give a split that is not empty")
    return Perplexity(stream.model, stream.split, stream.ln_prob.size, float(stream.ln_prob.mean()))


def write_perplexities(path: str | Path, perplexities: list[Perplexity]) -> None:
    """Write one line per model and split. Raises InputError when a model comes twice for the same split."""
    seen: set[tuple[str, str]] = set()
    for p in perplexities:
        if (p.model, p.split) in seen:
            raise InputError(f"{path}: two score streams of {p.model} on {p.split}; give each stream once")
        seen.add((p.model, p.split))
    write_csv(path, ({column: getattr(p, column) for column in COLUMNS} for p in perplexities), COLUMNS)


def read_perplexities(path: str | Path) -> list[Perplexity]:
    """Read what `write_perplexities` wrote. Raises InputError for anything else."""
    rows = read_csv(path, COLUMNS)
    try:
        return [Perplexity(row["model"], row["split"], int(row["tokens"]), float(row["mean_ln_prob"])) for row in rows]
    except ValueError as error:
        raise InputError(f"{path}: {error}; make it anew with `nplm evaluate-perplexity`") from None
