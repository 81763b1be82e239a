"""What is asked of SLURM for the jobs that train with MPI, without any SLURM: ranks, CPUs, memory, time, signal."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROFILE = yaml.safe_load((ROOT / "slurm/config.yaml").read_text())
[MPI] = [yaml.safe_load(entry.removeprefix("mpi=")) for entry in PROFILE["config"]]

# Plans the workflow like the command line that follows it, and prints its jobs instead of running them.
LIST_JOBS = """
import json, sys
from snakemake import cli
from snakemake.workflow import Workflow

def list_jobs(workflow, *arguments, **options):
    workflow._prepare_dag(forceall=True, ignore_incomplete=True, lock_warn_only=True)
    workflow._build_dag()
    jobs = []
    for job in workflow.dag.jobs:
        described = {"rule": job.rule.name, "shell": job.rule.shellcmd or "", "threads": job.threads}
        described["resources"] = dict(job.resources.items())
        job.attempt = 2
        described["resources of the next attempt"] = dict(job.resources.items())
        jobs.append(described)
    print("JOBS" + json.dumps(jobs, default=str))

Workflow.execute = list_jobs
cli.main(sys.argv[1:])
"""


class Resources(dict):
    """Resources as the executor plugin reads them: as a mapping and as attributes."""

    __getattr__ = dict.__getitem__


class Job:
    def __init__(self, described: dict) -> None:
        self.rule, self.shell, self.threads = described["rule"], described["shell"], described["threads"]
        self.resources = Resources(described["resources"])
        self.next_resources = Resources(described["resources of the next attempt"])


def planned(directory: Path, *arguments: str, **mpi: object) -> list[Job]:
    """The jobs of the networks and all others, planned in a folder of their own with these keys of the block mpi."""
    command = [sys.executable, "-c", LIST_JOBS, "--dry-run", "--directory", str(directory)]
    command += ["--configfile", "config.yaml", *arguments, "--config", f"mpi={json.dumps(mpi)}"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = re.search("^JOBS(.*)$", output.stdout, re.M)
    assert found, output.stdout + output.stderr
    return [Job(described) for described in json.loads(found[1])]


@pytest.fixture(scope="module", params=[1, 2, 40])
def ranks(request) -> int:
    return request.param


@pytest.fixture(scope="module")
def jobs(ranks, tmp_path_factory) -> list[Job]:
    """All jobs under the profile, at so many ranks."""
    return planned(tmp_path_factory.mktemp("slurm"), "--profile", "slurm", **{**MPI, "ranks": ranks})


def trainings(jobs: list[Job]) -> list[Job]:
    found = [job for job in jobs if "{resources.launch}" in job.shell]
    assert {job.rule for job in found} == {"train_network"}
    return found


def submit_command(job: Job) -> str:
    from snakemake_executor_plugin_slurm.submit_string import get_submit_command

    names = ("run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir")
    return get_submit_command(job, dict.fromkeys(names, ""))


def test_one_task_per_rank_with_one_cpu_and_its_own_memory(jobs, ranks):
    for job in trainings(jobs):
        command = submit_command(job)
        assert re.findall(r"--ntasks=(\d+)", command) == [str(ranks)]
        assert re.findall(r"--cpus-per-task=(\d+)", command) == ["1"]
        assert re.findall(r"--mem\S* \d+", command) == ["--mem-per-cpu 3000"]
        assert "--signal=TERM@" in command


def test_a_single_rank_is_no_mpi_job(jobs, ranks):
    for job in trainings(jobs):
        assert ("mpi" in job.resources) == (ranks > 1)
        assert ("tasks" in job.resources) == (ranks > 1)
        assert (MPI["launcher"] in job.resources.launch) == (ranks > 1)


def test_every_other_job_is_one_task(jobs):
    for job in jobs:
        if "{resources.launch}" not in job.shell and job.shell:
            assert "mpi" not in job.resources
            assert "--ntasks=1 " in submit_command(job)


def test_the_launcher_starts_as_many_ranks_as_the_program_expects(jobs, ranks):
    for job in trainings(jobs):
        assert "--ranks {resources.rank_count}" in job.shell
        assert job.resources.rank_count == ranks
        assert re.findall(r" -n (\d+)", job.resources.launch) == ([str(ranks)] if ranks > 1 else [])


def test_ranks_times_threads_is_what_was_asked_for(jobs, ranks):
    for job in trainings(jobs):
        assert job.threads == 1
        assert "--threads {resources.rank_threads}" in job.shell
        assert job.resources.rank_threads == 1


def test_no_rule_names_a_launcher(jobs):
    assert not [job.rule for job in jobs if re.search(r"\b(srun|mpirun|mpiexec)\b", job.shell)]


def test_the_next_attempt_has_more_time(jobs):
    for job in trainings(jobs):
        assert job.next_resources.runtime > job.resources.runtime


@pytest.mark.parametrize("ranks, threads", [(1, 2), (2, 1), (2, 2)])
def test_on_one_machine_a_training_takes_the_cores_that_it_uses(tmp_path, ranks, threads):
    jobs = planned(tmp_path, "--cores", "2", ranks=ranks, threads=threads, launcher="mpiexec")
    for job in trainings(jobs):
        assert job.resources.rank_count * job.resources.rank_threads == job.threads == max(ranks, threads)


def test_ranks_on_one_machine_do_not_go_to_the_nodes_of_an_outer_slurm_job(tmp_path):
    """MPICH's mpiexec would follow these variables and start the ranks with the outer job's srun."""
    [launch] = {job.resources.launch for job in trainings(planned(tmp_path, ranks=2, threads=1, launcher="mpiexec"))}
    outer = {"SLURM_JOB_ID": "7", "SLURM_JOBID": "7", "SLURM_NODELIST": "n1,n2", "SLURM_JOB_NODELIST": "n1,n2"}
    outer |= {"SLURM_NNODES": "2", "SLURM_NTASKS": "2", "SLURM_TASKS_PER_NODE": "1(x2)"}
    environment = {**os.environ, **outer, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    count = "from mpi4py import MPI; print(MPI.COMM_WORLD.Get_size())"
    command = [*launch.split()[: launch.split().index("-m")], "-c", count]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert re.findall(r"\d", output.stdout) == ["2", "2"], output.stderr


def test_processes_on_shared_memory_are_the_cpus_of_one_task(ranks, tmp_path):
    row = {"kind": "nplm", "n": 3, "h": 2, "m": 2, "direct": False, "strategy": "shared-memory"}
    config = {"experiments": {"shared": {"extends": "brown", "models": {"MLP_shared": row}}}, "run": ["shared"]}
    (tmp_path / "shared.yaml").write_text(yaml.safe_dump(config))
    jobs = planned(tmp_path, str(tmp_path / "shared.yaml"), "--profile", "slurm", **{**MPI, "ranks": ranks})
    [job] = [job for job in jobs if job.rule == "train_network_shared_memory"]
    assert "mpi" not in job.resources
    command = submit_command(job)
    assert re.findall(r"--ntasks=(\d+)", command) == ["1"]
    assert re.findall(r"--cpus-per-task=(\d+)", command) == [str(ranks)]
    assert (job.resources.rank_count, job.resources.rank_threads) == (ranks, 1)
