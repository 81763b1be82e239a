"""A trained network as a scorer, and the file it lives in: named arrays and the row that made them, nothing pickled."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from nplm.arrays import read_arrays, read_header, write_arrays
from nplm.errors import InputError
from nplm.kinds import code_of_kind, find_kind
from nplm.neural.network import Architecture, JoinedArchitecture, Parameters
from nplm.neural.ranks import SingleRank

BATCH = 256
"""examples that are scored at a time"""


@dataclass(frozen=True)
class NetworkModel:
    """A trained network. See nplm.scores.Scorer."""

    row: dict
    """the complete row of the configuration, with its kind"""
    architecture: Architecture
    parameters: Parameters
    vocabulary: str

    @property
    def n(self) -> int:
        return self.architecture.n

    @property
    def vocabulary_size(self) -> int:
        return self.architecture.vocabulary_size

    def ln_prob(self, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        """ln P(word | context) in nats, float64 [T]; products in the parameters' own precision."""
        precision = str(next(iter(self.parameters.values())).dtype).removeprefix("torch.")
        network = self.architecture.network(self.parameters, SingleRank(), precision, BATCH)
        contexts, words = word_ids(contexts), word_ids(words)
        parts = [
            network.ln_prob(contexts[start : start + BATCH], words[start : start + BATCH]).clone()
            for start in range(0, len(words), BATCH)
        ]
        return torch.cat(parts).numpy() if parts else np.empty(0)


def word_ids(ids: np.ndarray) -> torch.Tensor:
    """Words as the network takes them, int64; places before the stream's start (id -1) become <rare> (id 0)."""
    return torch.from_numpy(np.maximum(ids, 0).astype(np.int64))


def architecture_of(row: dict, vocabulary_size: int) -> Architecture:
    """The network that a complete row of the configuration describes."""
    code = code_of_kind(find_kind(row["kind"], "row"))
    if hasattr(code, "architecture"):
        return code.architecture(row, vocabulary_size)
    return JoinedArchitecture(code.shape(row, vocabulary_size), row["output"], row["objective"])


def write_model(path: str | Path, model: NetworkModel, **header: str) -> None:
    """Write a network, under the paper's names where it has them; see `read_model`."""
    write_arrays(
        path,
        model.row["kind"],
        {name: tensor.numpy() for name, tensor in model.architecture.to_file(model.parameters).items()},
        row=json.dumps(model.row, sort_keys=True),
        vocabulary=model.vocabulary,
        vocabulary_size=str(model.vocabulary_size),
        **header,
    )


def read_model(path: str | Path) -> NetworkModel:
    """Read a network written by `write_model`. Raises InputError for anything else."""
    arrays, header = read_arrays(path, read_header(path)["kind"])
    if not {"row", "vocabulary_size"} <= header.keys():
        raise InputError(
            f"{path}: holds '{header['kind']}' without the row of a network; give a network, or train it anew"
        )
    row = json.loads(header["row"])
    architecture = architecture_of(row, int(header["vocabulary_size"]))
    parameters = architecture.from_file({name: torch.from_numpy(array) for name, array in arrays.items()})
    return NetworkModel(row, architecture, parameters, header["vocabulary"])
