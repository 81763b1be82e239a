"""What two cores do for an update of MLP9: threads or ranks, waiting asleep or spinning, alone or beside other work.

    python benchmarks/waiting.py --output benchmarks/results/waiting.csv

Each way runs in processes of its own, in turn, several times: on an idle machine, and beside one process that never
rests. Medians over the turns of the median update.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

K = 128
WAYS = {
    # name: (ranks, threads, environment)
    "1 thread": (1, 1, {}),
    "2 threads, waiting asleep": (1, 2, {"OMP_WAIT_POLICY": "passive"}),
    "2 threads, spinning (OpenMP's default)": (1, 2, {}),
    "2 ranks": (2, 1, {}),
}
BUSY = "while True: pass"


def median_update(ranks_expected: int, threads: int, precision: str, updates: int) -> float | None:
    """Median seconds of an update of MLP9 in this process, the first of its ranks; None in the others."""
    import torch

    from nplm.neural.encoders.feed_forward import Shape
    from nplm.neural.kernels import set_threads
    from nplm.neural.network import JoinedArchitecture
    from nplm.neural.ranks import connect

    ranks = connect(ranks_expected)
    set_threads(threads)
    shape = Shape(17905, 5, 100, 30, False)
    architecture = JoinedArchitecture(shape)
    network = architecture.network(architecture.initial_parameters(1), ranks, precision, K)
    generator = torch.Generator().manual_seed(1)
    contexts = torch.randint(0, shape.vocabulary_size, (K, shape.n - 1), generator=generator)
    words = torch.randint(0, shape.vocabulary_size, (K,), generator=generator)
    seconds = []
    for _ in range(updates):
        start = time.perf_counter()
        network.update(contexts, words, 1e-3, 1e-4)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[3:]) if ranks.rank == 0 else None


def run(way: str, precision: str, updates: int) -> float:
    """Median seconds of an update, measured in processes of their own."""
    ranks, threads, environment = WAYS[way]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    launch = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(ranks)] if ranks > 1 else []
    runner = [sys.executable, "-m", "mpi4py"] if ranks > 1 else [sys.executable]
    command = [*launch, *runner, __file__, "--one", str(ranks), str(threads), precision, str(updates)]
    output = subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True, check=True).stdout
    return float(output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        ranks, threads, precision, updates = arguments.one
        seconds = median_update(int(ranks), int(threads), precision, int(updates))
        print("" if seconds is None else seconds)
        return

    from nplm.files import write_csv

    found: dict[tuple[str, str, str], list[float]] = {}
    for beside in ("nothing", "a busy process"):
        busy = subprocess.Popen([sys.executable, "-c", BUSY]) if beside != "nothing" else None
        try:
            for _ in range(arguments.turns):
                for precision in ("float32", "bfloat16"):
                    for way in WAYS:
                        seconds = run(way, precision, arguments.updates)
                        found.setdefault((beside, precision, way), []).append(seconds)
        finally:
            if busy:
                busy.kill()
    rows = []
    for (beside, precision, way), turns in found.items():
        alone = statistics.median(found[beside, precision, "1 thread"])
        seconds = statistics.median(turns)
        rows.append(
            {
                "beside": beside,
                "precision": precision,
                "way": way,
                "milliseconds": f"{1e3 * seconds:.2f}",
                "times_one_thread": f"{alone / seconds:.2f}",
            }
        )
        print(rows[-1], flush=True)
    write_csv(arguments.output, rows, tuple(rows[0]))


if __name__ == "__main__":
    main()
