"""A SLURM cluster of two nodes on this machine, for tests. By hand: `python cluster.py up FOLDER`, then `down FOLDER`.

Needs the packages slurm-wlm and munge, no root and nothing of /etc. Everything lies in FOLDER, whose bin/ holds the
SLURM commands bound to this cluster: put it first on PATH. (SLURM_CONF alone would not do: the executor plugin removes
SLURM_* variables from the environment of its job steps.) The daemons inherit the niceness of this program.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

NODES = ("n1", "n2")
DAEMONS = ("munged", "slurmctld", "slurmd")
COMMANDS = ("sbatch", "srun", "scancel", "squeue", "sinfo", "scontrol", "sacct", "sacctmgr", "sshare")
TIMEOUT = 120
"""Seconds that anything may take to start or to stop."""

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# A requeued job waits for the end of its old credential: a few seconds instead of two minutes.
AuthInfo=socket={folder}/run/munge.socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=5,batch_sched_delay=0,sched_min_interval=10000
SlurmdParameters=config_overrides
LaunchParameters=disable_send_gids
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
# A node that answers late because the machine is busy is not down.
SlurmdTimeout=0
MessageTimeout=60
# Long enough for every test to ask what became of its jobs.
MinJobAge=86400
KillWait=5
Waittime=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 \
RealMemory=8000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 \
RealMemory=8000 State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=UNLIMITED State=UP OverSubscribe=NO
"""


def missing_programs() -> list[str]:
    """The daemons and commands that this machine lacks."""
    return [name for name in (*DAEMONS, *COMMANDS) if program(name) is None]


def program(name: str) -> str | None:
    """Path of a program; daemons lie where an ordinary user's PATH does not lead."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def up(folder: Path) -> None:
    """Start the cluster and wait until both nodes are idle. Raises RuntimeError when it does not come up."""
    for name in (
        "bin",
        "etc",
        "run",
        "log",
        "state",
        *(f"{kind}-{node}" for kind in ("spool", "tmp") for node in NODES),
    ):
        (folder / name).mkdir(parents=True)
    key = folder / "etc/munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(1024))
    configuration = folder / "etc/slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=host(), user=pwd.getpwuid(os.getuid()).pw_name, folder=folder, ports=free_ports(1 + len(NODES))
        )
    )
    for name in COMMANDS:
        wrapper = folder / "bin" / name
        wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={configuration} exec {program(name)} "$@"\n')
        wrapper.chmod(0o755)
    munge_files = {"socket": "run/munge.socket", "pid-file": "run/munged.pid", "log-file": "log/munged.log"}
    munge_files |= {"key-file": "etc/munge.key", "seed-file": "etc/munge.seed"}
    run(folder, "munged", "--force", *(f"--{option}={folder / path}" for option, path in munge_files.items()))
    run(folder, "slurmctld")
    for node in NODES:
        run(folder, "slurmd", "-N", node)
    wait_for(
        lambda: command(folder, "sinfo", "--noheader", "--Node", "--format=%T").split() == ["idle"] * len(NODES),
        f"the nodes are not idle; see {folder}/log",
    )


def down(folder: Path) -> None:
    """Cancel all jobs, then stop the daemons of the pid files."""
    if (folder / "run/slurmctld.pid").exists():
        jobs = command(folder, "squeue", "--noheader", "--format=%A").split()
        if jobs:
            command(folder, "scancel", *jobs)
            wait_for(lambda: not command(folder, "squeue", "--noheader"), f"jobs {', '.join(jobs)} do not end")
    for path in sorted((folder / "run").glob("*.pid"), key=lambda path: path.name == "munged.pid"):
        pid = int(path.read_text())
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
        wait_for(lambda: not running(pid), f"{path.stem} (process {pid}) does not stop")  # noqa: B023


def host() -> str:
    return socket.gethostname().split(".")[0]


def free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def run(folder: Path, daemon: str, *arguments: str) -> None:
    """Start a daemon, which goes into the background by itself."""
    environment = {**os.environ, "SLURM_CONF": str(folder / "etc/slurm.conf")}
    with open(folder / f"log/{daemon}.start", "a+") as log:
        status = subprocess.run(
            [program(daemon), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=TIMEOUT,
        ).returncode
        log.seek(0)
        if status:
            raise RuntimeError(f"{daemon} does not start: {log.read().strip()}")


def command(folder: Path, name: str, *arguments: str) -> str:
    """Standard output of a SLURM command; empty while the controller does not answer."""
    return subprocess.run(
        [folder / "bin" / name, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=TIMEOUT,
    ).stdout


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition, failure: str, timeout: float = TIMEOUT) -> None:
    """Ask until the condition holds; RuntimeError with `failure` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{failure} (waited {timeout:.0f} s)")
        time.sleep(0.1)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("up", "down"):
        sys.exit(__doc__)
    if sys.argv[1] == "up" and (missing := missing_programs()):
        sys.exit(f"{', '.join(missing)} not found: install the packages slurm-wlm and munge")
    {"up": up, "down": down}[sys.argv[1]](Path(sys.argv[2]).resolve())
