"""What made a report: versions, commit, configuration, machine, data, and the seconds of every stage.

It is published with the report, so it holds nothing of whose machine that was: no names, no paths.
"""

import os
import platform
import re
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from nplm.configuration import models_run
from nplm.errors import InputError
from nplm.files import read_csv, write_json, write_text
from nplm.report.configuration import names_run
from nplm.report.corpus_card import without_folders
from nplm.report.history import Epochs, chosen_epoch, phases
from nplm.report.markdown import markdown_table
from nplm.report.table import SPLITS


def today() -> str:
    """The date (UTC), as 2003-02-01."""
    return datetime.now(UTC).date().isoformat()


def versions() -> dict[str, str]:
    """Python's version, this package's and those of the packages that it requires to run."""
    required = (re.split(r"[^\w.-]", line)[0] for line in metadata.requires("nplm") or () if "extra ==" not in line)
    found = {"python": platform.python_version()}
    for name in ("nplm", *required):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # some installers rename a package, such as conda
            found[name] = "unknown"
    return found


def git_state(repository: str | Path) -> dict[str, object]:
    """The commit of a checkout, and whether tracked or new files outside reports/ differ from it; None if unknown."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, text=True)
        except FileNotFoundError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    changes = git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)reports")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if changes is None else bool(changes)}


def processor() -> str:
    """The processor's name, as the system tells it."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        cpuinfo = ""
    model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return model[1] if model else platform.machine()


def machine() -> dict[str, object]:
    """Processor, cores, memory and operating system."""
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        system = f"{platform.system()} {platform.release()}"
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": system,
    }


def read_benchmarks(directory: str | Path, experiment: dict) -> list[dict[str, object]]:
    """Seconds and peak memory of every job, from Snakemake's benchmark files: STAGE.tsv or STAGE/JOB.tsv.

    What an earlier configuration left there of models that `experiment` does not run is left out. Memory is None for a
    job too short to be measured. Raises InputError when there are none.
    """
    directory = Path(directory)
    paths = sorted(directory.rglob("*.tsv"))
    if not paths:
        raise InputError(f"{directory}: has no benchmark files; run the workflow, or leave the folder out")
    names, models = names_run(experiment), experiment["models"]
    splits = experiment.get("scored_splits", SPLITS)
    run = {"", *SPLITS, *names, *(f"{name}.{split}" for name in names for split in splits)}
    run |= {str(models[name]["classes"]) for name in models_run(experiment, lambda kind: "classes" in kind.reads)}
    return [job for path in paths if (job := _job(path, directory))["job"] in run]


def _job(path: Path, directory: Path) -> dict[str, object]:
    stage, _, job = path.relative_to(directory).with_suffix("").as_posix().partition("/")
    rows = read_csv(path, ("s", "max_rss"), delimiter="\t")
    memory = [float(row["max_rss"]) for row in rows if re.fullmatch(r"\d+(\.\d+)?", row["max_rss"])]
    try:
        seconds = sum(float(row["s"]) for row in rows)
    except ValueError as error:
        raise InputError(f"{path}: {error}; remove it and run its rule again") from None
    return {"stage": stage, "job": job, "seconds": seconds, "memory_mib": max(memory, default=None)}


def training_record(histories: dict[str, Epochs]) -> list[dict[str, object]]:
    """Of every network: epochs, the chosen one, and the seconds of each phase over all epochs."""
    return [
        {
            "network": network,
            "epochs": len(epochs),
            "chosen_epoch": int(chosen_epoch(epochs)["epoch"]),
            **{column: round(sum(epoch.get(column, 0.0) for epoch in epochs), 1) for column in phases(epochs)},
        }
        for network, epochs in histories.items()
    ]


def published_corpus(retrieved: dict[str, object]) -> dict[str, object]:
    """The record of how the corpus was retrieved, without folders."""
    return {key: without_folders(value) if isinstance(value, str) else value for key, value in retrieved.items()}


def write_provenance(directory: str | Path, provenance: dict) -> None:
    """Write provenance.json and provenance.md."""
    write_json(Path(directory) / "provenance.json", provenance)
    write_text(Path(directory) / "provenance.md", "# Provenance\n\n" + provenance_markdown(provenance))


def provenance_markdown(provenance: dict) -> str:
    """The record for the reader; the jobs are summed up by stage."""
    git, made_on, corpus = provenance["git"], provenance["machine"], provenance["corpus"] or {}
    dirty = {True: "with changes that are not committed", False: "no other changes", None: "changes unknown"}
    facts = [
        ["recorded", provenance["recorded"]],
        ["commit", f"{git['commit'] or 'unknown'} ({dirty[git['dirty']]})"],
        ["configuration, sha256", provenance["configuration_sha256"]],
        ["vocabulary", provenance["vocabulary"]],
        *([f"corpus: {key}", str(value)] for key, value in corpus.items()),
        ["processor", f"{made_on['processor']}, {made_on['cores']} cores"],
        ["memory", f"{made_on['memory_gib']} GiB"],
        ["system", made_on["system"]],
    ]
    text = markdown_table(["what", "value"], facts, left=2)
    text += f"\nVersions: {', '.join(f'{name} {version}' for name, version in provenance['versions'].items())}.\n"
    if provenance["jobs"]:
        text += (
            "\nSeconds and peak memory of the workflow's jobs, by stage, of the latest run of each job: of a training "
            "that was continued, only what was left.\n\n"
        )
        text += markdown_table(["stage", "jobs", "seconds", "memory, MiB"], _stages(provenance["jobs"]))
    if provenance["training"]:
        text += "\nTraining of the networks, all epochs and also those before an interruption:\n\n"
        columns = list(dict.fromkeys(column for record in provenance["training"] for column in record))
        rows = [[_cell(record.get(column, "")) for column in columns] for record in provenance["training"]]
        text += markdown_table([column.replace("_", " ") for column in columns], rows)
    return text


def _stages(jobs: Iterable[dict]) -> list[list[str]]:
    by_stage: dict[str, list[dict]] = {}
    for job in jobs:
        by_stage.setdefault(job["stage"], []).append(job)
    return [
        [
            stage,
            str(len(group)),
            f"{sum(job['seconds'] for job in group):.1f}",
            _cell(max((job["memory_mib"] for job in group if job["memory_mib"] is not None), default="")),
        ]
        for stage, group in by_stage.items()
    ]


def _cell(value: object) -> str:
    return f"{value:.0f}" if isinstance(value, float) else str(value)
