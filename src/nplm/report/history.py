"""The networks' training histories, one line per epoch."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from nplm.errors import InputError
from nplm.files import read_csv

COLUMNS = ("epoch", "train_perplexity", "valid_perplexity", "seconds_training")

Epochs = list[dict[str, float]]
Epoch = TypeVar("Epoch", bound=Mapping)


def read_histories(paths: Iterable[str | Path]) -> dict[str, Epochs]:
    """Network -> its epochs (all numeric columns), from files named by the folder that each is in.

    Raises InputError when a file has no epochs, a cell of `COLUMNS` is not a number, or two files are of one network.
    """
    histories = {}
    for path in map(Path, paths):
        rows = read_csv(path, COLUMNS)
        if not rows:
            raise InputError(f"{path}: has no epochs; train the network first")
        if path.parent.name in histories:
            raise InputError(
                f"{path}: a second history of {path.parent.name}; networks are told apart by their folders"
            )
        histories[path.parent.name] = [_numbers(path, row) for row in rows]
    return histories


def chosen_epoch(epochs: Sequence[Epoch]) -> Epoch:
    """The epoch whose parameters are kept: the lowest validation perplexity (number or text), the first of equals."""
    return min(epochs, key=lambda epoch: float(epoch["valid_perplexity"]))


def phases(epochs: Iterable[Epoch]) -> list[str]:
    """The columns of seconds that any epoch has: a training can go on on a machine where an update has other phases."""
    return list(dict.fromkeys(column for epoch in epochs for column in epoch if column.startswith("seconds_")))


def _numbers(path: Path, row: dict[str, str]) -> dict[str, float]:
    numbers = {}
    for column, cell in row.items():
        with suppress(ValueError):
            numbers[column] = float(cell)
        if column in COLUMNS and not math.isfinite(numbers.get(column, math.nan)):
            raise InputError(f"{path}: {column} is '{cell}', not a number; train the network anew")
    return numbers
