"""The preflight says what fails and how to mend it, on sites made of scripts; tests/slurm tries it on a cluster."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nplm import doctor
from nplm.doctor import Profile, read_profile
from nplm.errors import InputError

ROOT = Path(__file__).parents[1]
HERE = Path(sys.executable).parent

# An srun that drops its options and runs the rest as the task of either node, one after the other.
SRUN = """
while case "$1" in -*) true ;; *) false ;; esac; do shift; done
SLURMD_NODENAME=n1 "$@" || exit
{second}
"""
SECOND = 'SLURMD_NODENAME=n2 "$@"'


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Writes commands into a folder that, with this Python environment and a few tools, is all of PATH."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("env", "sh"):
        (tools / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{HERE}")
    monkeypatch.chdir(tmp_path)

    def write(**commands: str) -> None:
        for name, script in commands.items():
            (tools / name).write_text(f"#!/bin/sh\n{script}\n")
            (tools / name).chmod(0o755)

    return write


def profile(
    launcher: str = "srun --mpi=pmi2 -K", status_command: str = "squeue", site: tuple[str, ...] = ()
) -> Profile:
    return Profile(Path("slurm/config.yaml"), launcher, status_command, list(site))


def test_without_slurm_it_says_so_and_checks_the_rest(site):
    run = subprocess.run(
        [sys.executable, "-m", "nplm", "doctor", "--profile", str(ROOT / "slurm")], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    _command, *lines = run.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ok", "ok", "ok", "skipped"]
    assert "one world of 2 ranks" in lines[2]
    assert "no sbatch on PATH" in lines[3]


def test_a_failure_ends_it_with_status_1(site):
    site(nplm="")
    run = subprocess.run(
        [sys.executable, "-m", "nplm", "doctor", "--profile", str(ROOT / "slurm")], capture_output=True, text=True
    )
    assert run.returncode == 1
    assert f"put {HERE} first on PATH" in run.stdout


def test_missing_slurm_commands_are_named(site, monkeypatch):
    for name in ("environment", "mpi_library", "local_world"):
        monkeypatch.setattr(doctor, name, lambda: doctor.ok("", ""))
    site(sbatch="", srun="")
    last = list(doctor.findings(profile(), 1))[-1]
    assert last.outcome == "failed"
    assert last.found == "no squeue, scancel, scontrol, sinfo on PATH"


def test_the_profile_of_the_repository_is_understood():
    found = read_profile(ROOT / "slurm")
    assert found.launcher.startswith("srun --mpi=")
    assert found.status_command == "squeue"
    assert found.site == []
    assert found.runtime == 720


def test_account_and_partition_of_the_training_come_from_the_profile(tmp_path):
    (tmp_path / "config.yaml").write_text(
        "config: ['mpi={ranks: 2, launcher: srun}']\n"
        "default-resources: {slurm_account: lab, slurm_partition: cpu}\n"
        "set-resources: {train_network: {slurm_partition: mpi}}\n"
    )
    assert read_profile(tmp_path).site == ["--account=lab", "--partition=mpi"]


@pytest.mark.parametrize("text", [None, "jobs: 1\n", "config: ['mpi={ranks: 2}']\n", "config: {run: quick}\n", ""])
def test_a_profile_without_a_launcher_is_refused(tmp_path, text):
    if text is not None:
        (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InputError, match=r"config\.yaml: no"):
        read_profile(tmp_path)


def test_a_slip_in_the_profiles_yaml_is_named_with_its_line(tmp_path):
    (tmp_path / "config.yaml").write_text("jobs: 1\ndefault-resources:\n  mem_mb 4000\n  runtime: 60\n")
    with pytest.raises(InputError, match=r"config\.yaml, line 4: no YAML"):
        read_profile(tmp_path)


def test_a_controller_that_does_not_answer(site):
    site(sinfo="echo 'sinfo: fatal: no configuration' >&2; exit 1")
    found = doctor.partitions(profile())
    assert found.outcome == "failed"
    assert found.found == "sinfo: fatal: no configuration"


@pytest.mark.parametrize(
    "named, runtime, outcome, says",
    [
        ("--partition=cpu", 720, "ok", "cpu, time limit 1-00:00:00"),
        ("--partition=cpu", 1441, "failed", "1441 minutes, cpu has 1440"),
        ("--partition=short", 31, "failed", "31 minutes, short has 30"),
        ("--partition=gpu", 99999, "ok", "infinite"),
        ("--partition=gone", 1, "failed", "there is no gone, only cpu, short, gpu"),
        (None, 1, "failed", "none of cpu, short, gpu is the default"),
    ],
)
def test_the_partition_and_its_time_limit(site, named, runtime, outcome, says):
    site(sinfo="echo cpu 1-00:00:00; echo short 30:00; echo gpu infinite")
    found = doctor.partitions(Profile(Path("slurm/config.yaml"), "srun", "squeue", [named] if named else [], runtime))
    assert found.outcome == outcome
    assert says in found.found
    assert found.outcome == "ok" or "slurm/config.yaml" in found.remedy


def test_the_default_partition(site):
    site(sinfo="echo cpu 30:00; echo 'main* infinite'")
    assert doctor.partitions(profile()).found == "main, time limit infinite"


@pytest.mark.parametrize(
    "runtime, minutes", [(60, 60), ("60 * attempt", 240), ("min(60 * attempt, 100)", 100), ("4h", None), (None, None)]
)
def test_minutes_of_the_last_attempt(runtime, minutes):
    assert doctor.minutes(runtime, 4) == minutes


@pytest.mark.parametrize(
    "command, remembered, accounts, outcome, remedy",
    [
        ("squeue", 300, True, "ok", ""),
        ("squeue", 300, False, "ok", ""),
        ("squeue", 60, True, "failed", "set slurm-status-command: sacct"),
        ("squeue", 60, False, "failed", "ask the site"),
        ("sacct", 60, True, "ok", ""),
        ("sacct", 300, False, "failed", "set slurm-status-command: squeue"),
        ("sacct", 60, False, "failed", "ask the site"),
    ],
)
def test_how_the_end_of_a_job_is_learned(site, command, remembered, accounts, outcome, remedy):
    storage = "slurmdbd" if accounts else "none"
    site(
        scontrol=f"echo 'AccountingStorageType = accounting_storage/{storage}'; echo 'MinJobAge = {remembered} sec'",
        sacct="",
    )
    found = doctor.status_command(profile(status_command=command))
    assert found.outcome == outcome
    assert remedy in found.remedy


def outcomes(findings) -> dict[str, str]:
    return {finding.need: finding.outcome for finding in findings}


def test_nodes_that_see_everything(site, tmp_path):
    site(srun=SRUN.format(second=SECOND))
    assert set(outcomes(doctor.nodes(profile(), 1)).values()) == {"ok"}
    assert [path.name for path in tmp_path.iterdir()] == ["bin"], "nothing is left behind"


def test_a_node_without_the_files(site):
    site(srun=SRUN.format(second='SLURMD_NODENAME=n2 "$1" "$2" "$3" /nowhere "$5"'))
    found = {finding.need: finding for finding in doctor.nodes(profile(), 1)}
    assert found["shared files"].outcome == "failed"
    assert found["shared files"].found.endswith("is not the same on n2")
    assert found["Python on the nodes"].outcome == "ok"


def test_a_node_without_the_environment(site):
    site(srun=SRUN.format(second='SLURMD_NODENAME=n2 "$1" "$2" "$3" "$4" /nowhere/python'))
    found = {finding.need: finding for finding in doctor.nodes(profile(), 1)}
    assert found["Python on the nodes"].outcome == "failed"
    assert found["Python on the nodes"].found.endswith("does not import nplm on n2")


@pytest.mark.parametrize(
    "srun, found",
    [
        ("echo 'srun: error: Requested nodes are busy' >&2; exit 1", "srun: error: Requested nodes are busy"),
        (SRUN.format(second=""), "tasks ran on n1"),
    ],
)
def test_no_two_nodes(site, srun, found):
    site(srun=srun)
    [only] = doctor.nodes(profile(), 1)
    assert only.outcome == "failed"
    assert only.found == found
    assert "--seconds" in only.remedy


def test_busy_nodes_are_not_the_launchers_fault(site):
    site(srun="echo 'srun: error: Unable to allocate resources: Requested nodes are busy' >&2; exit 1")
    found = doctor.cluster_world(profile(), "MPICH", 1)
    assert found.outcome == "failed"
    assert "--seconds" in found.remedy and "must fit" not in found.remedy


def test_a_launcher_that_makes_one_world(site):
    """Played by mpiexec behind srun's options."""
    site(srun=SRUN.format(second="").replace('SLURMD_NODENAME=n1 "$@"', f'HYDRA_RMK=user {HERE}/mpiexec -n 2 "$@"'))
    assert doctor.cluster_world(profile(), "MPICH", 1).outcome == "ok"


def test_a_launcher_that_makes_a_world_of_each_rank(site):
    site(srun=SRUN.format(second=SECOND))
    found = doctor.cluster_world(profile("srun --mpi=none"), "MPICH Version: 5", 1)
    assert found.outcome == "failed"
    assert found.found == "2 worlds of 1 rank(s) instead of one of 2"
    assert "srun --mpi=none" in found.remedy and "MPICH Version: 5" in found.remedy


def test_an_outer_job_does_not_shape_the_jobs_that_are_tried(site, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    passed_on = doctor.call(["env"]).stdout
    assert "SLURM_CONF=" in passed_on
    assert "SLURM_JOB_ID" not in passed_on


def test_a_command_that_cannot_be_run_is_a_finding():
    run = doctor.call(["/nowhere/sinfo"])
    assert run.returncode != 0
    assert "/nowhere/sinfo cannot be run" in run.stderr
