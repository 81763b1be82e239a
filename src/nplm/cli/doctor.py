"""The subcommand that looks before a run."""

from pathlib import Path
from typing import Annotated

import typer

from nplm.cli import app


@app.command()
def doctor(
    profile: Annotated[Path, typer.Option(help="folder of the Snakemake profile that is to be used")] = Path("slurm"),
    seconds: Annotated[int, typer.Option(help="seconds to wait for two free nodes", min=1)] = 30,
) -> None:
    """Check what this machine and its SLURM, if any, offer the workflow: one line each, and how to mend what fails."""
    from nplm.doctor import findings, read_profile

    failures = 0
    for finding in findings(read_profile(profile), seconds):
        print(finding, flush=True)
        failures += finding.outcome == "failed"
    if failures:
        raise typer.Exit(1)
