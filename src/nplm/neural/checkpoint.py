"""Everything a training needs to go on to the same bits, in one file that rank 0 replaces at a stroke."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from nplm.arrays import read_arrays, write_arrays
from nplm.errors import InputError
from nplm.neural.network import Parameters


@dataclass
class Progress:
    """How far a training has come. Parameters are kept apart, so that this is small and plain."""

    epoch: int = 1
    """the epoch under way, from 1"""
    position: int = 0
    """examples of this epoch already learned"""
    train_ln_prob: float = 0.0
    """their summed ln P in nats, each taken before its update"""
    best_epoch: int = 0
    """the epoch with the lowest validation perplexity; 0 before the first validation"""
    history: list[dict] = field(default_factory=list)
    """one record per finished epoch, see nplm.neural.training"""
    seconds: dict[str, float] = field(default_factory=dict)
    """seconds by phase in the epoch under way"""


def fingerprint(determinants: dict) -> str:
    """16 hexadecimal digits that differ whenever anything that determines a training differs."""
    return hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()[:16]


def digest(*arrays: np.ndarray) -> str:
    """16 hexadecimal digits of the arrays' types and contents."""
    sha256 = hashlib.sha256()
    for array in arrays:
        sha256.update(str(array.dtype).encode())
        sha256.update(np.ascontiguousarray(array).tobytes())
    return sha256.hexdigest()[:16]


def write_checkpoint(path: Path, progress: Progress, current: Parameters, best: Parameters | None) -> None:
    """Replace the checkpoint at `path`: the parameters now, those of the best epoch (if any yet), the progress."""
    arrays = {
        f"{name}.{tensor}": values.numpy()
        for name, parameters in (("current", current), ("best", best))
        if parameters is not None
        for tensor, values in parameters.items()
    }
    write_arrays(path, "checkpoint", arrays, progress=json.dumps(vars(progress)))


def read_checkpoint(path: Path, sizes: dict[str, tuple[int, ...]]) -> tuple[Progress, Parameters, Parameters | None]:
    """What `write_checkpoint` wrote of a network whose parameters have these sizes.

    Raises InputError when the file holds anything else.
    """
    try:
        arrays, header = read_arrays(path, "checkpoint")
        progress = Progress(**json.loads(header["progress"]))
        found = {
            name: {tensor: torch.from_numpy(arrays[f"{name}.{tensor}"]) for tensor in sizes}
            for name in (["current", "best"] if progress.best_epoch else ["current"])
        }
    except (InputError, KeyError, TypeError, ValueError):
        found = {}
    if not found or any(p[tensor].shape != size for p in found.values() for tensor, size in sizes.items()):
        raise InputError(f"{path}: cannot be read as a checkpoint of this training; remove it to start anew")
    return progress, found["current"], found.get("best")
