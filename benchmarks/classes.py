"""Time and memory of the class-based n-grams: clustering words, fitting a class trigram, scoring the validation split.

    python benchmarks/classes.py --train F --valid F --vocabulary F --output benchmarks/results/classes.csv

Each step is a process of its own, from its start to its end and with numba's cache empty, so importing and compiling
count. `seconds` is wall-clock time, `cpu_seconds` the process's own: they differ where other work shares the machine,
which `load_average` shows (processes that want to run, over the last minute).
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from math import exp
from pathlib import Path

import numba
import numpy as np

from nplm.files import read_csv, write_csv
from nplm.scores import read_scores


def measure(*arguments: object) -> dict[str, object]:
    """Run one subcommand with an empty cache: its wall-clock and processor seconds, and its peak memory."""
    with tempfile.TemporaryDirectory() as cache:
        started = time.perf_counter()
        command = [sys.executable, "-m", "nplm", *map(str, arguments)]
        process = subprocess.Popen(command, env=os.environ | {"NUMBA_CACHE_DIR": cache})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_megabytes": round(usage.ru_maxrss / 1024),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def measure_classes(number: int, files: argparse.Namespace, directory: Path) -> list[dict[str, object]]:
    """One row for each step with this number of classes, with the perplexity that it reached."""
    classes, likelihood, model, scores = (directory / name for name in ("classes", "likelihood", "model", "scores"))
    fitted = f"{{kind: class_ngram, classes: {number}, n: 3, smoothing: interpolated}}"
    inputs = ["--input", f"train={files.train}", "--input", f"classes={classes}"]
    clustering = ["--classes", number, "--seed", files.seed, "--annealing-sweeps", files.annealing_sweeps]
    clustering += ["--output", classes, "--likelihood", likelihood]
    rows = {
        "cluster-words": measure(
            "cluster-words", "--train", files.train, "--vocabulary", files.vocabulary, *clustering
        ),
        "fit-model": measure("fit-model", "--row", fitted, *inputs, "--output", model),
        "score": measure(
            "score", "--model", model, "--split", files.valid, "--name", "class_ngram", "--output", scores
        ),
    }
    *_, last = sweeps = read_csv(likelihood)
    reached = {
        "cluster-words": ("train, class bigram", float(last["perplexity"])),
        "fit-model": ("", None),
        "score": ("valid, class trigram", exp(-read_scores(scores).ln_prob.mean())),
    }
    return [
        {
            "classes": number,
            "step": step,
            "sweeps": len(sweeps) - 1 if step == "cluster-words" else None,
            "perplexity_of": reached[step][0],
            "perplexity": reached[step][1],
            **row,
        }
        for step, row in rows.items()
    ]


def main() -> None:
    """Measure every number of classes and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("train", "valid", "vocabulary", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--classes", type=int, nargs="+", default=[150, 200, 500, 1000, 2000])
    parser.add_argument("--annealing-sweeps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=2003)
    files = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for number in files.classes:
            measured = measure_classes(number, files, Path(directory))
            for r in measured:
                print(f"{number} classes: {r['step']}, {r['seconds']} s, {r['peak_megabytes']} MB", flush=True)
            rows += measured
    write_csv(files.output, rows, rows[0])


if __name__ == "__main__":
    main()
