"""The cluster that these tests share, and places in which the workflow runs on it.

They skip where slurm-wlm or munge is missing or does not start, unless NPLM_REQUIRE_SLURM is set: then they fail.
"""

import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import cluster as slurm
import pytest
from workspace import EPOCHS, MODEL, OUTER_JOB, ROOT, Workspace


@pytest.fixture(scope="session")
def cluster():
    """Folder of a running cluster of two nodes."""
    missing = slurm.missing_programs()
    if missing:
        unavailable(f"{', '.join(missing)} not found: install the packages slurm-wlm and munge")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        slurm.up(folder)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        slurm.down(folder)
        unavailable(f"no SLURM cluster could be started: {error}")
    yield folder
    slurm.down(folder)
    shutil.rmtree(folder)


def unavailable(reason: str) -> None:
    if os.environ.get("NPLM_REQUIRE_SLURM"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def empty(cluster, tmp_path_factory) -> Workspace:
    """A place in which nothing has run."""
    directory = tmp_path_factory.mktemp("workflow") / "empty"
    directory.mkdir()
    for name in ("workflow", "envs", "slurm", "src"):
        shutil.copytree(ROOT / name, directory / name)
    shutil.copy(ROOT / "Snakefile", directory)
    chance = random.Random(1)
    words = [f"word{i}" for i in range(60)]
    text = [chance.choices(words, [1 / (i + 1) for i in range(60)], k=10) for _ in range(400)]
    (directory / "text.txt").write_text("".join(" ".join(sentence) + "\n" for sentence in text))
    workspace = Workspace(directory, cluster)
    workspace.configure(epochs=2)
    workspace.change_profile()
    return workspace


@pytest.fixture(scope="session")
def finished(empty) -> Workspace:
    """A place in which the whole workflow has run on the cluster."""
    directory = empty.directory.with_name("finished")
    shutil.copytree(empty.directory, directory)
    workspace = Workspace(directory, empty.cluster)
    workspace.snakemake("--profile", "slurm")
    return workspace


@pytest.fixture
def untrained(finished, tmp_path) -> Workspace:
    """A place in which only a long training of two ranks is to be done."""
    return finished.copy(tmp_path / "untrained", EPOCHS)


@pytest.fixture(scope="session")
def undisturbed(finished, tmp_path_factory) -> bytes:
    """The model of the long training, from two ranks on this machine and without SLURM, though inside a SLURM job."""
    workspace = finished.copy(tmp_path_factory.mktemp("undisturbed") / "workflow", EPOCHS)
    workspace.snakemake("--cores", "2", "--config", "mpi={ranks: 2}", "--", MODEL, **OUTER_JOB)
    return (workspace.directory / MODEL).read_bytes()
