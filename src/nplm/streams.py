"""A split of the encoded corpus: a contiguous part of one stream of word ids, and the contexts of its tokens.

The corpus is one continuous stream (paper, section 4): contexts run across sentence ends, and the first tokens of a
split have the last tokens of the split before it as their history. Only the first tokens of the whole stream have a
shorter history; the places before the stream's start hold `NO_TOKEN`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nplm.arrays import read_arrays, write_arrays
from nplm.errors import InputError

NO_TOKEN = -1
HISTORY_KEPT = 64
"""Tokens kept from before a split: more than any order in use needs."""


def check_order(n: int) -> None:
    """Raise InputError unless n is an order whose contexts a split holds whole, at its start too."""
    if not 1 <= n <= HISTORY_KEPT + 1:
        raise InputError(
            f"order {n}: give 1 to {HISTORY_KEPT + 1}, since a split keeps the {HISTORY_KEPT} tokens before its start"
        )


@dataclass(frozen=True)
class Split:
    """One part of the stream: `tokens` [T] (word ids), `history` [<= HISTORY_KEPT] (the ids just before them)."""

    name: str
    tokens: np.ndarray
    history: np.ndarray
    vocabulary: str
    """hash of the vocabulary that the ids index"""
    vocabulary_size: int
    """|V|"""

    def __len__(self) -> int:
        return len(self.tokens)


def write_split(path: str | Path, split: Split) -> None:
    """Write a split; see `read_split`."""
    write_arrays(
        path,
        "split",
        {"tokens": split.tokens, "history": split.history},
        name=split.name,
        vocabulary=split.vocabulary,
        vocabulary_size=str(split.vocabulary_size),
    )


def read_split(path: str | Path) -> Split:
    """Read a split written by `write_split`. Raises InputError for anything else."""
    arrays, header = read_arrays(path, "split")
    return Split(
        name=header["name"],
        tokens=arrays["tokens"],
        history=arrays["history"],
        vocabulary=header["vocabulary"],
        vocabulary_size=int(header["vocabulary_size"]),
    )


def contexts(split: Split, length: int) -> np.ndarray:
    """The context of every token: int32 [T, length], oldest word first, so column -1 is w[t-1].

    Places before the stream's start hold NO_TOKEN. The result is a read-only view of T + length values. Raises
    InputError as `check_order` does.
    """
    check_order(length + 1)
    if length == 0:
        return np.empty((len(split), 0), dtype=np.int32)
    padded = np.full(length + len(split), NO_TOKEN, dtype=np.int32)
    history = split.history[max(0, len(split.history) - length) :]
    padded[length - len(history) : length] = history
    padded[length:] = split.tokens
    return np.lib.stride_tricks.sliding_window_view(padded, length)[: len(split)]
