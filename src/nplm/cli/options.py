"""Options that several subcommands share. The stage groups import from here and not from one another, so that the
fingerprint of a stage (`nplm.fingerprint`) does not take in the stages of another group.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

from nplm.errors import InputError

Smoothing = StrEnum("Smoothing", ["backoff", "interpolated"])
UndefinedDiscounts = StrEnum("UndefinedDiscounts", ["error", "fallback"])
TrainFile = Annotated[Path, Option(help="Encoded train split.")]
ModelFile = Annotated[Path, Option(help="Model file to write.")]
Seed = Annotated[int, Option(min=0, max=2**64 - 1, help="Of all random choices.")]
Cutoffs = Annotated[
    str | None, Option(help="Least count that is kept, per order: 1,1,2 drops singleton trigrams; default all.")
]


def least_counts(cutoffs: str | None) -> tuple[int, ...] | None:
    """The numbers of the option --cutoffs; InputError where they are none."""
    try:
        return tuple(int(cutoff) for cutoff in cutoffs.split(",")) if cutoffs else None
    except ValueError:
        raise InputError(f"--cutoffs {cutoffs}: not whole numbers with commas between; give one per order") from None
