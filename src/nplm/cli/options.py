"""Options that several subcommands share. The stage groups import from here and not from one another, so that the
fingerprint of a stage (`nplm.fingerprint`) does not take in the stages of another group.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

Smoothing = StrEnum("Smoothing", ["backoff", "interpolated"])
UndefinedDiscounts = StrEnum("UndefinedDiscounts", ["error", "fallback"])
TrainFile = Annotated[Path, Option(help="Encoded train split.")]
ModelFile = Annotated[Path, Option(help="Model file to write.")]
