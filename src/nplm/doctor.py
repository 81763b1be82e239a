"""A preflight of what `snakemake --profile slurm` needs of a site: one finding per need, within seconds.

Each finding says what was looked for and what was found and, where it fails, how to mend it. Two short jobs of one task
on each of two nodes tell whether the nodes see the files and the Python environment, and whether the profile's launcher
makes one MPI world of the tasks.
"""

import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import yaml

from nplm.errors import InputError
from nplm.files import read_text

COMMANDS = ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
LONGEST_POLL = 180
"""Seconds between two looks of Snakemake at its jobs, at most: a job must be remembered for longer."""

# Rank 0 of every world says how large it is and where its ranks are.
WORLD = """
import os
from mpi4py import MPI
nodes = MPI.COMM_WORLD.gather(os.environ.get("SLURMD_NODENAME") or MPI.Get_processor_name())
if nodes:
    print(f"<{len(nodes)} {' '.join(nodes)}>", flush=True)
"""
# What a task sees of the folder and the interpreter of the command line; it leaves a file of its own.
NODE = """
test -e "$0/here" && files=seen || files=unseen
"$1" -c 'import nplm' 2>/dev/null && python=seen || python=unseen
echo "<$SLURMD_NODENAME $files $python>"
test $files = unseen || : > "$0/$SLURMD_NODENAME"
"""


@dataclass(frozen=True)
class Finding:
    """One line of the preflight: outcome is ok, failed or skipped; a failure comes with its remedy."""

    need: str
    outcome: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.outcome:<8}{self.need}: {self.found}" + (f"; {self.remedy}" if self.remedy else "")


def ok(need: str, found: str) -> Finding:
    return Finding(need, "ok", found)


def failed(need: str, found: str, remedy: str) -> Finding:
    return Finding(need, "failed", found, remedy)


@dataclass(frozen=True)
class Profile:
    """What the preflight needs to know of a Snakemake profile."""

    path: Path
    launcher: str
    """what starts the ranks, such as `srun --mpi=pmi2 -K`"""
    status_command: str
    """squeue or sacct"""
    site: list[str]
    """options of srun: the account and the partition of the training, where the profile names any"""
    runtime: int | None = None
    """minutes that the last attempt of a training asks for; None where the profile does not say"""


def read_profile(folder: Path) -> Profile:
    """The profile in a folder. Raises InputError when its config.yaml is missing, no YAML or names no launcher."""
    path = folder / "config.yaml"
    try:
        profile = yaml.safe_load(read_text(path))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{path}, line {line}: no YAML ({error.problem}); mend it or the line before it") from None
    try:
        [mpi] = [entry.removeprefix("mpi=") for entry in profile["config"] if entry.startswith("mpi=")]
        launcher = yaml.safe_load(mpi)["launcher"]
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{path}: no line config: 'mpi={{..., launcher: ...}}'; see slurm/config.yaml") from None
    resources = {**profile.get("default-resources", {}), **profile.get("set-resources", {}).get("train_network", {})}
    names = {"slurm_account": "--account", "slurm_partition": "--partition"}
    site = [f"{option}={resources[name]}" for name, option in names.items() if name in resources]
    attempts = 1 + int(profile.get("retries", 0))
    runtime = minutes(resources.get("runtime"), attempts)
    return Profile(path, launcher, profile.get("slurm-status-command", "sacct"), site, runtime)


def minutes(runtime: object, attempt: int) -> int | None:
    """Minutes of a profile's runtime, a number or an expression in `attempt`; None where it is neither."""
    try:
        return int(eval(str(runtime), {"__builtins__": {"min": min, "max": max}, "attempt": attempt}))
    except (SyntaxError, NameError, TypeError, ValueError):
        return None


def findings(profile: Profile, seconds: int) -> Iterator[Finding]:
    """Look at everything in turn. The jobs wait at most `seconds` for two free nodes."""
    yield environment()
    library = mpi_library()
    yield library
    yield local_world()
    absent = [name for name in COMMANDS if shutil.which(name) is None]
    if "sbatch" in absent:
        yield Finding(
            "SLURM", "skipped", "no sbatch on PATH: this machine can run the workflow by itself (snakemake --cores all)"
        )
        return
    if absent:
        yield failed("SLURM commands", f"no {', '.join(absent)} on PATH", "ask the site or load its SLURM module")
        return
    yield ok("SLURM commands", ", ".join(COMMANDS))
    controller = partitions(profile)
    yield controller
    if controller.outcome != "ok":
        return
    yield plugin()
    yield status_command(profile)
    yield from nodes(profile, seconds)
    yield cluster_world(profile, library.found, seconds)


def environment() -> Finding:
    """The commands that the rules call must be those of this interpreter's environment."""
    need, here = "Python environment", Path(sys.executable).parent
    for name in ("nplm", "python", "snakemake"):
        path = shutil.which(name)
        if path is None or Path(path).parent != here:
            return failed(
                need, f"{name} on PATH is {path or 'missing'}, not {here / name}", f"put {here} first on PATH"
            )
    return ok(need, str(here))


def plugin() -> Finding:
    """Snakemake's executor for SLURM."""
    name = "snakemake-executor-plugin-slurm"
    try:
        return ok("executor", f"{name} {version(name)}")
    except PackageNotFoundError:
        return failed("executor", f"{name} is not installed", f"{sys.executable} -m pip install {name}")


def mpi_library() -> Finding:
    """The MPI that mpi4py loads, which decides what can launch it."""
    run = call([sys.executable, "-c", "from mpi4py import MPI; print(MPI.Get_library_version())"])
    if run.returncode:
        return failed("MPI of mpi4py", last_line(run.stderr), "install mpi4py and an MPI: pip install mpi4py mpich")
    return ok("MPI of mpi4py", " ".join(run.stdout.strip("\0\n ").split("\n")[0].split()))


def local_world() -> Finding:
    """Whether mpiexec makes one world of two ranks on this machine."""
    need, remedy = (
        "two ranks on this machine",
        "mpiexec must belong to the MPI of mpi4py: pip install mpich puts both here",
    )
    if shutil.which("mpiexec") is None:
        return failed(need, "no mpiexec on PATH", remedy)
    return one_world(need, call(["env", "HYDRA_RMK=user", "mpiexec", "-n", "2", *probe_of_world()]), remedy)


def partitions(profile: Profile) -> Finding:
    """Whether the controller answers, a training has a partition, and that one's time limit suffices.

    A job that asks for more time than its partition has waits for ever.
    """
    need = "partition"
    run = call(["sinfo", "--noheader", "--format=%P %l"])
    if run.returncode:
        return failed("SLURM controller", last_line(run.stderr), "ask the site: slurmctld does not answer")
    limits = dict(line.split() for line in run.stdout.splitlines())
    named = [option.removeprefix("--partition=") for option in profile.site if option.startswith("--partition=")]
    [name, *_] = [*named, *(name.rstrip("*") for name in limits if name.endswith("*")), None]
    if name is None:
        return failed(need, f"none of {', '.join(limits)} is the default", f"set slurm_partition in {profile.path}")
    limit = next((limit for other, limit in limits.items() if other.rstrip("*") == name), None)
    if limit is None:
        return failed(need, f"there is no {name}, only {', '.join(limits)}", f"mend slurm_partition in {profile.path}")
    allowed = limit_minutes(limit)
    if profile.runtime is not None and profile.runtime > allowed:
        return failed(
            need,
            f"a training may ask for {profile.runtime} minutes, {name} has {allowed:.0f}",
            f"set runtime: min(240 * attempt, {allowed:.0f}) in {profile.path}",
        )
    return ok(need, f"{name}, time limit {limit}")


def limit_minutes(limit: str) -> float:
    """Minutes of a time limit as sinfo writes it: [days-]hours:minutes:seconds with parts left out, or infinite."""
    if not re.fullmatch(r"(\d+-)?[\d:]+", limit):
        return math.inf
    days, _, clock = limit.rpartition("-")
    hours, minutes, seconds = ([0, 0] + [int(part) for part in clock.split(":")])[-3:]
    return 1440 * int(days or 0) + 60 * hours + minutes + seconds / 60


def status_command(profile: Profile) -> Finding:
    """Whether Snakemake will learn that a job has ended: from accounts, or as SLURM remembers the job long enough."""
    need = f"end of jobs by {profile.status_command}"
    configuration = call(["scontrol", "show", "config"]).stdout
    remembered = re.search(r"^MinJobAge\s*=\s*(\d+)", configuration, re.M)
    accounts = not re.search(r"^AccountingStorageType\s*=\s*accounting_storage/none", configuration, re.M)
    sacct = accounts and shutil.which("sacct") is not None and call(["sacct", "--noheader", "-X"]).returncode == 0
    long_enough = remembered is not None and int(remembered[1]) > LONGEST_POLL
    memory = f"MinJobAge is {remembered[1] if remembered else 'unknown'} s"
    if profile.status_command == "squeue":
        if long_enough:
            return ok(need, memory)
        other = (
            "set slurm-status-command: sacct"
            if sacct
            else f"ask the site for MinJobAge over {LONGEST_POLL} or slurmdbd"
        )
        return failed(need, f"{memory}, too short", f"{other} ({profile.path})" if sacct else other)
    if sacct:
        return ok(need, "sacct answers")
    other = f"set slurm-status-command: squeue in {profile.path}" if long_enough else "ask the site for slurmdbd"
    return failed(need, "the site keeps no accounts", other)


WAIT = "see sinfo; account and partition are set in {}; --seconds gives a busy site more time"
"""what to do where no nodes were given"""


def nodes(profile: Profile, seconds: int) -> Iterator[Finding]:
    """Whether two nodes see this folder, and write into it, and this Python environment."""
    # In the working directory, since that is what must be shared.
    with tempfile.TemporaryDirectory(dir=".", prefix=".nplm-doctor-") as folder:
        marks = Path(folder).resolve()
        (marks / "here").touch()
        run = call([*on_two_nodes(["srun"], profile, seconds), "sh", "-c", NODE, str(marks), sys.executable], seconds)
        seen = re.findall(r"<(\S+) (\w+) (\w+)>", run.stdout)
        written = {path.name for path in marks.iterdir()}
    names = [name for name, _, _ in seen]
    if run.returncode or len(names) != 2:
        yield failed(
            "a job on two nodes",
            last_line(run.stderr) or f"tasks ran on {', '.join(names) or 'no node'}",
            WAIT.format(profile.path),
        )
        return
    yield ok("a job on two nodes", " and ".join(names))
    blind = [name for name, files, _ in seen if files == "unseen" or name not in written]
    here = Path.cwd()
    yield (
        failed("shared files", f"{here} is not the same on {', '.join(blind)}", "work in a folder that all nodes share")
        if blind
        else ok("shared files", f"{here} is seen and written by both nodes")
    )
    blind = [name for name, _, python in seen if python == "unseen"]
    remedy = "install the environment in a folder that all nodes share"
    yield (
        failed("Python on the nodes", f"{sys.executable} does not import nplm on {', '.join(blind)}", remedy)
        if blind
        else ok("Python on the nodes", f"{sys.executable} imports nplm on both nodes")
    )


def cluster_world(profile: Profile, library: str, seconds: int) -> Finding:
    """Whether the profile's launcher makes one world of two ranks on two nodes."""
    launcher = shlex.split(profile.launcher)
    kinds = " ".join(call(["srun", "--mpi=list"]).stdout.split())
    remedy = (
        f"launcher '{profile.launcher}' in {profile.path} must fit {library}: --mpi=pmi2 for MPICH, --mpi=pmix for "
        f"Open MPI ({kinds})"
    )
    run = call([*on_two_nodes(launcher, profile, seconds), *probe_of_world()], seconds)
    if "Unable to allocate resources" in run.stderr:  # so no launcher was tried
        remedy = WAIT.format(profile.path)
    return one_world(f"two ranks on two nodes by {profile.launcher}", run, remedy)


def on_two_nodes(launcher: list[str], profile: Profile, seconds: int) -> list[str]:
    task = ["--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--time=2", f"--immediate={seconds}"]
    return [*launcher, *task, *profile.site]


def probe_of_world() -> list[str]:
    return [sys.executable, "-m", "mpi4py", "-c", WORLD]


def one_world(need: str, run: subprocess.CompletedProcess, remedy: str) -> Finding:
    """What the probe's output says: one world of two ranks, or anything else."""
    worlds = re.findall(r"<(\d+) ([^>]*)>", run.stdout)
    if len(worlds) == 1 and worlds[0][0] == "2":
        return ok(need, f"one world of 2 ranks on {' and '.join(worlds[0][1].split())}")
    if worlds:
        return failed(need, f"{len(worlds)} worlds of {worlds[0][0]} rank(s) instead of one of 2", remedy)
    return failed(need, last_line(run.stderr) or f"no answer (exit status {run.returncode})", remedy)


def call(command: list[str], seconds: int = 0) -> subprocess.CompletedProcess:
    """Run a command that may wait so many seconds for nodes; one that hangs fails with a line that says so."""
    # A job inside which this runs must not shape the jobs that are tried here.
    inherited = {
        name: value for name, value in os.environ.items() if not re.match(r"(SLURM|SRUN|SBATCH)_(?!CONF$)", name)
    }
    limit = seconds + 60
    try:
        return subprocess.run(
            command, env=inherited, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"{command[0]} gave no answer in {limit} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", f"{command[0]} cannot be run: {error.strerror}")


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
