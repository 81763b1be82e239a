"""Time and memory of the word n-gram models: counting and fitting each on a train split, and scoring the test split.

    python benchmarks/ngram.py --train F --valid F --test F --output benchmarks/results/ngram.csv

Each model is measured in a process of its own, so the peak memory is that model's, with the interpreter and numpy.
`seconds` is wall-clock time, `cpu_seconds` the process's own: they differ where other work shares the machine, which
`load_average` shows (processes that want to run, over the last minute).
"""

import argparse
import os
import platform
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from nplm.files import write_csv
from nplm.ngram import deleted_interpolation, kneser_ney
from nplm.report.provenance import processor
from nplm.scores import score
from nplm.streams import read_split

MODELS = {
    "deleted_interpolation": None,
    **{f"kn{n}_backoff": {"n": n, "smoothing": "backoff"} for n in (2, 3, 4, 5)},
    **{f"kn{n}": {"n": n, "smoothing": "interpolated"} for n in (1, 2, 3, 4, 5)},
    "kn5_cutoffs": {"n": 5, "smoothing": "interpolated", "cutoffs": (1, 1, 2, 2, 2)},
}


def measure(name: str, train_file: Path, valid_file: Path, test_file: Path) -> list[dict[str, object]]:
    """One row for reading, counting and fitting, one for scoring test."""
    started = time.perf_counter(), time.process_time()
    train = read_split(train_file)
    if name == "deleted_interpolation":
        model = deleted_interpolation.fit(train, read_split(valid_file))
    else:
        model = kneser_ney.fit(train.tokens, train.vocabulary_size, vocabulary=train.vocabulary, **MODELS[name])
    rows = [row(name, "read, count, fit", len(train), started)]
    test = read_split(test_file)
    started = time.perf_counter(), time.process_time()
    score(model, test, name)
    return [*rows, row(name, "score test", len(test), started)]


def row(model: str, step: str, tokens: int, started: tuple[float, float]) -> dict[str, object]:
    """A measurement since `started` (wall-clock, cpu) with what it was made on."""
    seconds, cpu_seconds = time.perf_counter() - started[0], time.process_time() - started[1]
    return {
        "model": model,
        "step": step,
        "tokens": tokens,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "tokens_per_second": round(tokens / seconds),
        "tokens_per_cpu_second": round(tokens / cpu_seconds),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "machine": processor(),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def main() -> None:
    """Measure every model and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("train", "valid", "test", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    files = parser.parse_args()
    rows = []
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        for name in MODELS:
            measured = processes.submit(measure, name, files.train, files.valid, files.test).result()
            for r in measured:
                print(f"{r['model']}: {r['step']}, {r['seconds']} s, {r['peak_megabytes']} MB", flush=True)
            rows += measured
    write_csv(files.output, rows, rows[0])


if __name__ == "__main__":
    main()
