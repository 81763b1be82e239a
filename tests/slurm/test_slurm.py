"""The workflow on a real SLURM cluster: it finishes, and what happens to the training does not change its result."""

import csv
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import cluster as slurm
import pytest
from workspace import LOG, MODEL, Workspace


def of_cluster(workspace: Workspace, name: str, *arguments: str) -> str:
    return slurm.command(workspace.cluster, name, *arguments)


def wait_for(condition, failure: str, run: subprocess.Popen) -> None:
    """Wait for something to happen on the cluster while Snakemake runs."""
    slurm.wait_for(lambda: condition() or run.poll() is not None, failure, timeout=900)
    assert run.poll() is None, f"Snakemake ended: {failure}"


def running_training(workspace: Workspace) -> str:
    """Id of the SLURM job that trains, empty while there is none."""
    states = of_cluster(workspace, "squeue", "--noheader", "--states=RUNNING", "--format=%A %Z")
    return "".join(
        job for job, _, path in (line.partition(" ") for line in states.splitlines()) if is_in(workspace, path)
    )


def is_in(workspace: Workspace, path: str) -> bool:
    return Path(path.strip()) == workspace.directory


def start_training(workspace: Workspace, *arguments: str) -> subprocess.Popen:
    """Start the training on the cluster and wait for its first checkpoint."""
    run = workspace.start("--profile", "slurm", *arguments, "--", MODEL)
    wait_for(lambda: workspace.checkpoints(), "no checkpoint", run)
    return run


def model_of(workspace: Workspace) -> bytes:
    return (workspace.directory / MODEL).read_bytes()


def test_the_report_is_that_of_a_local_run(empty, finished, tmp_path):
    local = empty.copy(tmp_path / "local", epochs=2)
    local.snakemake("--cores", "2")
    names = [path.name for path in (local.directory / "reports/tiny").glob("*.csv")]
    assert "table1.csv" in names
    names.remove("trainings.csv")  # seconds and ranks
    for name in names:
        rows, local_rows = (
            list(csv.reader((place.directory / "reports/tiny" / name).read_text().splitlines()))
            for place in (finished, local)
        )
        assert [[expected(cell) for cell in row] for row in local_rows] == [
            [number(cell) for cell in row] for row in rows
        ]
    for place, arguments in ((finished, ["--cores", "1"]), (local, ["--profile", "slurm"])):
        assert "Nothing to be done" in place.snakemake("--dry-run", *arguments), "where it ran must not rerun it"


def expected(cell: str):
    value = number(cell)
    return value if isinstance(value, str) else pytest.approx(value, rel=1e-6)


def number(cell: str) -> float | str:
    return float(cell) if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell) else cell


def test_the_two_ranks_were_on_two_nodes(finished):
    jobs = of_cluster(finished, "squeue", "--noheader", "--states=all", "--format=%k %N %Z").splitlines()
    nodes = [
        node
        for comment, node, path in (job.split(maxsplit=2) for job in jobs)
        if comment.startswith("rule_train_network") and is_in(finished, path)
    ]
    assert nodes == ["n[1-2]"]
    assert "2 rank(s) of 1 thread(s)" in finished.read(LOG)


def test_a_cancelled_training_is_reported_and_a_rerun_continues(untrained, undisturbed):
    run = start_training(untrained, "--retries", "0")
    job = running_training(untrained)
    of_cluster(untrained, "scancel", job)
    output = untrained.finish(run, status=1)
    assert re.search(rf"SLURM-job '{job}' failed, SLURM status is: 'CANCELLED'", output)
    assert not (untrained.directory / MODEL).exists()
    untrained.snakemake("--profile", "slurm", "--", MODEL)
    assert "continuing in epoch" in untrained.read(LOG)
    assert model_of(untrained) == undisturbed


def test_a_killed_rank_ends_the_job_and_the_retry_continues(untrained, undisturbed):
    run = start_training(untrained)
    job = running_training(untrained)
    first, second = untrained.ranks()
    os.kill(second, signal.SIGKILL)
    wait_for(lambda: running_training(untrained) != job, "the other rank goes on alone", run)
    assert not slurm.running(first)
    output = untrained.finish(run)
    assert re.search(rf"SLURM-job '{job}' failed", output)
    assert "Trying to restart job" in output
    assert "continuing in epoch" in untrained.read(LOG)
    assert model_of(untrained) == undisturbed


def test_before_the_time_limit_the_training_writes_a_checkpoint_from_which_the_next_attempt_continues(
    finished, tmp_path
):
    endless = finished.copy(tmp_path / "endless", epochs=1_000_000)
    # SLURM looks every half minute, so that the signal comes 20 to 50 seconds before the limit. Where one minute is not
    # even enough to start, the next attempt has more.
    endless.change_profile(runtime="attempt", slurm_extra="'--signal=TERM@20'")
    run = start_training(endless, "--retries", "6")
    wait_for(lambda: "continuing in epoch" in endless.read(LOG), "no attempt continues", run)
    stopped = [said for said in endless.job_logs() if "stopped by a signal" in said]
    assert stopped and "DUE TO TIME LIMIT" not in stopped[-1]
    run.send_signal(signal.SIGINT)
    endless.finish(run, status=1)
    slurm.wait_for(lambda: not running_training(endless), "an interrupted Snakemake leaves its job running")


def test_a_job_whose_node_goes_down_is_requeued_and_continues(untrained, undisturbed):
    run = start_training(untrained)
    job = running_training(untrained)
    of_cluster(untrained, "scontrol", "update", "nodename=n2", "state=down", "reason=test")
    wait_for(lambda: not running_training(untrained), "the job goes on without its node", run)
    of_cluster(untrained, "scontrol", "update", "nodename=n2", "state=resume")
    output = untrained.finish(run)
    said = "\n\n".join([f"not SLURM but Snakemake restarted job {job}", *untrained.job_logs(), output])
    assert output.count("has been submitted with SLURM jobid") == 1, said
    assert "continuing in epoch" in untrained.read(LOG)
    assert model_of(untrained) == undisturbed


def test_a_launcher_that_does_not_fit_the_mpi_library_is_refused(untrained):
    """Without pmi2, each rank is a world of its own."""
    untrained.change_profile(launcher="srun --mpi=none -K")
    output = untrained.snakemake("--profile", "slurm", "--retries", "0", "--", MODEL, status=1)
    assert "srun --mpi=none" in output
    assert re.search(r"--ranks 2 was asked for but the MPI world has 1 .*MPICH.*srun --mpi=pmi2", untrained.read(LOG))
    assert "Traceback" not in untrained.read(LOG)
    assert not (untrained.directory / MODEL).parent.exists() and not untrained.checkpoints()


def test_a_rank_that_raises_leaves_its_traceback_in_the_log(untrained, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'train-network' in sys.orig_argv and os.environ.get('SLURM_PROCID') == '1':\n"
        "    from nplm.neural.network import JoinedNetwork\n"
        "    def fail(self, *arguments):\n"
        "        raise RuntimeError('rank 1 fails on purpose')\n"
        "    JoinedNetwork.update = fail\n"
    )
    path = os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    untrained.snakemake("--profile", "slurm", "--retries", "0", "--", MODEL, status=1, PYTHONPATH=path)
    log = untrained.read(LOG)
    assert "Traceback (most recent call last)" in log
    assert "RuntimeError: rank 1 fails on purpose" in log
    assert not (untrained.directory / MODEL).exists()


def test_the_preflight_finds_nothing_amiss(empty):
    output = preflight(empty)
    _, *lines = output.stdout.splitlines()  # the first is the command
    assert {line.split()[0] for line in lines} == {"ok"}, output.stdout
    assert "on two nodes by srun --mpi=pmi2 -K: one world of 2 ranks on n1 and n2" in output.stdout
    assert output.returncode == 0


def test_the_preflight_finds_a_launcher_that_does_not_fit(untrained):
    untrained.change_profile(launcher="srun --mpi=none -K")
    output = preflight(untrained)
    [failure] = [line for line in output.stdout.splitlines() if line.startswith("failed")]
    assert "2 worlds of 1 rank(s) instead of one of 2" in failure
    assert "srun --mpi=none -K" in failure and "MPICH" in failure and "--mpi=pmi2" in failure
    assert output.returncode == 1


def preflight(workspace: Workspace) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "nplm", "doctor", "--seconds", "300"]
    return subprocess.run(command, cwd=workspace.directory, env=workspace.environment, capture_output=True, text=True)
