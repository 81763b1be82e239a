"""A place where the workflow runs on the test cluster: a copy of it with a tiny corpus."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import cluster as slurm
import yaml

TIMEOUT = 900
"""Seconds for a run of Snakemake: nothing here is a test of speed."""

ROOT = Path(__file__).parents[2]
TINY = """
corpus: {source: text, path: [text.txt], sha256: null, tokenizer: spaces, marks: none}
splits: {train: 3000, valid: 500}
vocabulary: {scope: corpus, rare_threshold: 1}
training: {epsilon_0: 0.002, r: 0, weight_decay: 0, K: 128, epochs: 2, patience: null, precision: float64}
models:
  kn2: {kind: kneser_ney, n: 2, smoothing: interpolated, undefined_discounts: fallback}
  MLP9: {kind: nplm, n: 4, h: 5, m: 3, direct: false}
mixtures:
  MLP9_learned: {components: [MLP9, kn2], weights: learned}
exclude: []
significance: {block_length: 20, resamples: 100}
words: null
table: {name: table1, paper: null, corpus: null, baseline: kn2}
"""
"""What the experiment has of its own; all else is as in config.yaml."""
MODEL = "results/tiny/models/MLP9/model.safetensors"
LOG = "results/tiny/logs/train_network/MLP9.log"

OUTER_JOB = {
    **{name: "7" for name in ("SLURM_JOB_ID", "SLURM_JOBID")},
    **{name: "n[1-2]" for name in ("SLURM_NODELIST", "SLURM_JOB_NODELIST")},
    **{name: "2" for name in ("SLURM_NNODES", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_JOB_NUM_NODES")},
    "SLURM_TASKS_PER_NODE": "1(x2)",
    "SLURM_CONF": "/nowhere/slurm.conf",
}
"""The environment of a job inside which somebody starts a local run."""

EPOCHS = 300
"""Long enough for something to happen to a training after its first epoch."""


class Workspace:
    """A copy of what `snakemake` reads of the repository, with a corpus and a configuration of its own."""

    def __init__(self, directory: Path, cluster: Path) -> None:
        self.directory = directory
        path = os.pathsep.join(map(str, (cluster / "bin", Path(sys.executable).parent, os.environ["PATH"])))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        self.environment["PATH"] = path
        self.environment["PYTHONFAULTHANDLER"] = "1"  # so that a rank that is aborted says where it was
        self.environment["NPLM_STALL_MINUTES"] = "4"  # well before TIMEOUT, so that the next attempt can still end

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen:
        """Start Snakemake in the background; what it says goes to snakemake.txt."""
        with open(self.directory / "snakemake.txt", "w") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "snakemake", *arguments],
                cwd=self.directory,
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                # Where the tests themselves run in the background, Ctrl-C is ignored, and would be there too.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def snakemake(self, *arguments: str, status: int = 0, **environment: str) -> str:
        """Run Snakemake to its end, which must be this exit status; what it said."""
        return self.finish(self.start(*arguments, **environment), status)

    def finish(self, run: subprocess.Popen, status: int = 0) -> str:
        try:
            run.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"Snakemake did not end in {TIMEOUT} s\n{self.state()}") from None
        finally:
            run.kill()
        assert run.returncode == status, self.said()
        return self.said()

    def state(self) -> str:
        """What somebody wants to know of a run that hangs: what was said, the jobs, and where the ranks are (ended)."""
        for rank in self.ranks():
            os.kill(rank, signal.SIGABRT)
        time.sleep(5)
        said = {"snakemake": self.said(), LOG: self.read(LOG), "jobs": "\n".join(self.job_logs())}
        for name, *arguments in (("squeue", "--states=all"), ("sinfo", "--Node", "--long")):
            said[name] = slurm.command(self.cluster, name, *arguments)
        said["slurmctld.log"] = (self.cluster / "log/slurmctld.log").read_text()[-5000:]
        return "\n".join(f"--- {name}\n{text}" for name, text in said.items())

    def ranks(self) -> list[int]:
        """Process ids of the training's ranks (which are not the job's shells and not SLURM's clients)."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
                here = Path(os.readlink(process / "cwd")) == self.directory
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if here and words[1:5] == [b"-m", b"mpi4py", b"-m", b"nplm"]:
                found.append(int(process.name))
        return found

    def said(self) -> str:
        return (self.directory / "snakemake.txt").read_text()

    def read(self, path: str) -> str:
        """A file's text, empty while it is not there: Snakemake removes a log before the next attempt."""
        try:
            return (self.directory / path).read_text()
        except FileNotFoundError:
            return ""

    def change_profile(self, **train_network: object) -> None:
        """Two ranks, one on each node of the cluster, and these resources of the rule train_network."""
        path = self.directory / "slurm/config.yaml"
        profile = yaml.safe_load(path.read_text())
        [mpi] = [yaml.safe_load(entry.removeprefix("mpi=")) for entry in profile["config"]]
        mpi["ranks"] = 2
        mpi["launcher"] = train_network.pop("launcher", mpi["launcher"])
        # A block without quotes, as in the profile: it passes through several shells on its way to the nodes.
        profile["config"] = ["mpi={" + ", ".join(f"{key}: {value}" for key, value in mpi.items()) + "}"]
        profile["set-resources"]["train_network"].update(nodes=2, mem_mb_per_cpu=1000, **train_network)
        profile["default-resources"].update(mem_mb=1000)
        path.write_text(yaml.safe_dump(profile))

    def configure(self, epochs: int) -> None:
        """Write config.yaml: the tiny experiment, its network trained for so many epochs."""
        config = yaml.safe_load((ROOT / "config.yaml").read_text())
        brown, tiny = config["experiments"]["brown"], yaml.safe_load(TINY)
        tiny = {**brown, **tiny, "training": {**brown["training"], **tiny["training"], "epochs": epochs}}
        config |= {"run": ["tiny"], "experiments": {"tiny": tiny}}
        (self.directory / "config.yaml").write_text(yaml.safe_dump(config))

    def copy(self, directory: Path, epochs: int) -> "Workspace":
        """The same place with an untrained network that is to be trained for so many epochs."""
        shutil.copytree(self.directory, directory, symlinks=True)
        for made in ("results/tiny/models/MLP9", "results/tiny/checkpoints", ".snakemake/slurm_logs"):
            shutil.rmtree(directory / made, ignore_errors=True)
        workspace = Workspace(directory, self.cluster)
        workspace.configure(epochs)
        return workspace

    @property
    def cluster(self) -> Path:
        return Path(self.environment["PATH"].split(os.pathsep)[0]).parent

    def checkpoints(self) -> list[Path]:
        return list(self.directory.glob("results/tiny/checkpoints/MLP9/*/checkpoint.safetensors"))

    def job_logs(self) -> list[str]:
        """What the jobs of the training said, oldest first; SLURM's log of a job that ended well is removed."""
        return [
            path.read_text()
            for path in sorted(self.directory.glob(".snakemake/slurm_logs/rule_train_network/**/*.log"))
        ]
