"""The bigram with one added to every count: P(w | v) = (c(v, w) + 1) / (c(v) + |V|) (Lidstone 1920)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nplm.arrays import read_arrays, write_arrays
from nplm.kinds import Key, Kind, number
from nplm.streams import read_split

KIND = Kind(
    name="add_one",
    title="bigram with a constant added to every count",
    source="Lidstone 1920",
    own_keys=(Key("added", number(0, exclusive=True), "what is added to every count", 1.0, column="added"),),
    code=__name__,
    family="n-gram",
)


@dataclass(frozen=True)
class AddOne:
    """A fitted bigram. See nplm.scores.Scorer."""

    counts: np.ndarray
    """c(v, w), float64 [|V|, |V|]"""
    added: float
    vocabulary: str

    n = 2

    @property
    def vocabulary_size(self) -> int:
        return len(self.counts)

    def ln_prob(self, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        """ln P(word | context) in nats, float64 [T]; contexts [T, 1] hold -1 before the stream's start."""
        before = contexts[:, 0]
        seen = np.where(before >= 0, self.counts[before, words], 0)
        total = np.where(before >= 0, self.counts[before].sum(axis=1), 0)
        return np.log((seen + self.added) / (total + self.added * self.vocabulary_size))


def fit_row(inputs: dict[str, Path], row: dict, seed: int | None) -> AddOne:
    """The model of a row of the configuration."""
    train = read_split(inputs["train"])
    counts = np.zeros((train.vocabulary_size, train.vocabulary_size))
    np.add.at(counts, (train.tokens[:-1], train.tokens[1:]), 1)
    return AddOne(counts, row["added"], train.vocabulary)


def describe(model: AddOne) -> list[str]:
    """What the log says of it."""
    return [f"{np.count_nonzero(model.counts)} bigrams, {model.added} added to each count"]


def write_model(path: str | Path, model: AddOne) -> None:
    """Write a model; see `read_model`."""
    write_arrays(path, "add_one", {"counts": model.counts}, vocabulary=model.vocabulary, added=str(model.added))


def read_model(path: str | Path) -> AddOne:
    """Read a model written by `write_model`. Raises InputError for anything else."""
    arrays, header = read_arrays(path, "add_one")
    return AddOne(arrays["counts"], float(header["added"]), header["vocabulary"])
