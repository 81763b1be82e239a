"""Options that several subcommands share. The stage groups import from here and not from one another, so that the
fingerprint of a stage (`nplm.fingerprint`) does not take in the stages of another group.
"""

from pathlib import Path
from typing import Annotated

from typer import Option

TrainFile = Annotated[Path, Option(help="Encoded train split.")]
ModelFile = Annotated[Path, Option(help="Model file to write.")]
Seed = Annotated[int, Option(min=0, max=2**64 - 1, help="Of all random choices.")]
