"""How the time of an epoch falls with the number of ranks, and what part of it is communication: measured, predicted.

    python benchmarks/scaling.py measure --folder benchmarks/results     # minutes, on an otherwise idle machine
    python benchmarks/scaling.py predict --folder benchmarks/results     # from those files; prints the check
    mpiexec -n 8 python -m mpi4py benchmarks/scaling.py agree --ranks 8   # correctness only, also oversubscribed

One update of K examples on M ranks takes

    output(ceil(|V|/M)) + replicated + sum over its Allreduces of allreduce(bytes, M)

where `output` is what grows with a rank's rows of [U | W | b], `replicated` what every rank does for all (hidden layer
and features), both measured by running the trainer's own update on a shard with collectives that do nothing. The time
of an Allreduce is that of the better of two algorithms that MPI libraries choose between (Thakur, Rabenseifner and
Gropp 2005, section 4), for a network of given latency and bandwidth, which are inputs.
"""

import argparse
import itertools
import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch

from nplm.files import read_csv, write_csv
from nplm.neural.encoders.feed_forward import Shape
from nplm.neural.kernels import set_threads
from nplm.neural.network import JoinedArchitecture
from nplm.neural.phases import PhaseSeconds
from nplm.neural.ranks import SingleRank, connect

K = 128
OUTPUT_PHASES = ("output_product", "exponentials", "output_sweep", "hidden_gradient", "output_update")
REPLICATED_PHASES = ("gather", "hidden", "hidden_update", "feature_update")
MEASURED_SHARDS = (1, 2, 4, 8, 16, 32, 64, 256)
PREDICTED_RANKS = (1, 2, 4, 8, 16, 32, 40, 64, 128, 256)


@dataclass(frozen=True)
class Task:
    """A network on a corpus of so many training tokens."""

    shape: Shape
    tokens: int


TASKS = {
    "Brown MLP1": Task(Shape(17905, 5, 50, 60, True), 800_000),
    "Brown MLP9": Task(Shape(17905, 5, 100, 30, False), 800_000),
    "AP News": Task(Shape(17964, 6, 60, 100, True), 13_994_528),
}


@dataclass(frozen=True)
class Network:
    """Seconds before the first byte of a message, and bytes per second after it."""

    latency: float
    bandwidth: float

    def allreduce(self, size: int, ranks: int) -> float:
        """Seconds of an Allreduce of so many bytes: recursive doubling, or reduce-scatter with allgather.

        The arithmetic of the reduction is left out; it is far below the transfer's time.
        """
        if ranks == 1:
            return 0.0
        steps = math.ceil(math.log2(ranks))
        doubling = steps * (self.latency + size / self.bandwidth)
        halving = 2 * steps * self.latency + 2 * (ranks - 1) / ranks * size / self.bandwidth
        return min(doubling, halving)


NETWORKS = {
    "InfiniBand 100 Gbit/s": Network(2e-6, 10e9),
    "Ethernet 10 Gbit/s": Network(20e-6, 1.1e9),
    "Ethernet 1 Gbit/s": Network(50e-6, 110e6),
    "Myrinet 2000": Network(10e-6, 240e6),
}


class Shard(SingleRank):
    """Rank 0 of many, alone: its collectives do nothing. Good for timing only."""

    def __init__(self, size: int) -> None:
        self.size = size


class ProcessorSeconds(PhaseSeconds):
    """Seconds of this process's one thread on a processor, so that other programs on the machine do not count."""

    def start(self) -> None:
        self._last = time.process_time()

    def lap(self, phase: str) -> None:
        now = time.process_time()
        self[phase] += now - self._last
        self._last = now


def message_sizes(shape: Shape, K: int) -> list[int]:
    """Bytes of the Allreduces of one update: the normalisers with the targets' logits, the gradient."""
    return [4 * 2 * K, 4 * K * (shape.width + 1)]


def predicted_update(output: dict[int, float], replicated: float, shape: Shape, ranks: int, network: Network) -> dict:
    """Seconds of one update and of its parts. output: measured seconds by rows of a shard."""
    rows = -(-shape.vocabulary_size // ranks)
    parts = {
        "output_seconds": interpolated(output, rows),
        "replicated_seconds": replicated,
        "communication_seconds": sum(network.allreduce(size, ranks) for size in message_sizes(shape, K)),
    }
    return {"rows": rows, **parts, "update_seconds": sum(parts.values())}


def interpolated(measured: dict[int, float], rows: int) -> float:
    """Straight lines between the measured shards, which reach from the whole vocabulary to a few rows."""
    points = sorted(measured.items())
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x0 <= rows <= x1:
            return y0 + (y1 - y0) * (rows - x0) / (x1 - x0)
    raise ValueError(f"no shard of about {rows} rows was measured; there are {', '.join(str(x) for x, _ in points)}")


def seconds_of_updates(shape: Shape, ranks, repeats: int, parameters, clock=PhaseSeconds) -> dict[str, float]:
    """Median seconds of each phase of one update, and of the whole, after a few that do not count."""
    architecture = JoinedArchitecture(shape)
    network = architecture.network(parameters, ranks, architecture.resolve_precision("auto"), K)
    network.seconds = network.encoder.seconds = network.output.seconds = clock()
    generator = torch.Generator().manual_seed(1)
    records = []
    for repeat in range(-3, repeats):
        contexts = torch.randint(0, shape.vocabulary_size, (K, shape.n - 1), generator=generator)
        words = torch.randint(0, shape.vocabulary_size, (K,), generator=generator)
        network.seconds.clear()
        start = time.perf_counter()
        network.update(contexts, words, 1e-3, 1e-4)
        if repeat >= 0:
            records.append({**network.seconds, "update": time.perf_counter() - start})
    return {phase: statistics.median(record[phase] for record in records) for phase in records[0]}


def measure_parts(ranks: int, repeats: int) -> list[dict]:
    """The parts of an update on shards of many sizes, while `ranks` processes of this machine do the same."""
    everyone = connect(ranks)
    rows = []
    for name, task in TASKS.items():
        parameters = JoinedArchitecture(task.shape).initial_parameters(1)
        for shards in MEASURED_SHARDS:
            everyone.any(False)  # all processes begin together, for they share the memory's bandwidth
            seconds = seconds_of_updates(task.shape, Shard(shards), repeats, parameters, ProcessorSeconds)
            rows.append(
                {
                    "task": name,
                    "processes": ranks,
                    "rows": -(-task.shape.vocabulary_size // shards),
                    "output_seconds": sum(seconds.get(phase, 0) for phase in OUTPUT_PHASES),
                    "replicated_seconds": sum(seconds[phase] for phase in REPLICATED_PHASES),
                }
            )
    return rows if everyone.rank == 0 else []


def measure_allreduce(ranks: int, repeats: int) -> list[dict]:
    """Median seconds of Allreduces of the sizes of one update."""
    everyone = connect(ranks)
    rows = []
    for size in sorted({size for task in TASKS.values() for size in message_sizes(task.shape, K)}):
        tensor, seconds = torch.ones(size // 4), []
        for repeat in range(-3, 20 * repeats):
            everyone.any(False)
            start = time.perf_counter()
            everyone.start_sum_(tensor)()
            if repeat >= 0:
                seconds.append(time.perf_counter() - start)
            tensor.fill_(1)
        rows.append({"processes": ranks, "bytes": size, "seconds": statistics.median(seconds)})
    return rows if everyone.rank == 0 else []


def measure_updates(ranks: int, repeats: int) -> list[dict]:
    """Whole updates of real ranks, for the check of the prediction."""
    everyone = connect(ranks)
    rows = []
    for name, task in TASKS.items():
        seconds = seconds_of_updates(
            task.shape, everyone, repeats, JoinedArchitecture(task.shape).initial_parameters(1)
        )
        rows.append(
            {
                "task": name,
                "ranks": ranks,
                "update_seconds": seconds["update"],
                "communication_seconds": seconds.get("communication", 0.0) if ranks > 1 else 0.0,
            }
        )
    return rows if everyone.rank == 0 else []


MEASUREMENTS = {"parts": measure_parts, "allreduce": measure_allreduce, "updates": measure_updates}


def measure(folder: Path, repeats: int) -> None:
    """Run every measurement on one and on two ranks, each in processes of its own."""
    for name, ranks_of in (("parts", (1, 2)), ("allreduce", (2,)), ("updates", (1, 2))):
        rows = []
        for ranks in ranks_of:
            part = folder / f".scaling_{name}_{ranks}.csv"
            launch = ["mpiexec", "-n", str(ranks), sys.executable, "-m", "mpi4py"] if ranks > 1 else [sys.executable]
            arguments = ["--ranks", str(ranks), "--repeats", str(repeats), "--output", str(part)]
            subprocess.run([*launch, __file__, name, *arguments], check=True)
            rows += read_csv(part)
            part.unlink()
        write_csv(folder / f"scaling_{name}.csv", rows, rows[0])


def fitted_network(folder: Path) -> Network:
    """Latency and bandwidth between two ranks of this machine, from the smallest and the largest Allreduce."""
    measured = {int(row["bytes"]): float(row["seconds"]) for row in read_csv(folder / "scaling_allreduce.csv")}
    small, large = min(measured), max(measured)
    bandwidth = (large - small) / (measured[large] - measured[small])
    return Network(measured[small] - small / bandwidth, bandwidth)


def predict(folder: Path, networks: dict[str, Network]) -> None:
    """Write every task on every network at every number of ranks, the same for a reader, and the check of the model.

    These are scaling.csv, scaling_epochs.csv (a line per task and number of ranks, a column per network) and, against
    the real updates, scaling_check.csv.
    """
    parts = read_csv(folder / "scaling_parts.csv")

    def measured(name: str, processes: int) -> tuple[dict[int, float], float]:
        chosen = [row for row in parts if row["task"] == name and row["processes"] == str(processes)]
        output = {int(row["rows"]): float(row["output_seconds"]) for row in chosen}
        return output, statistics.median(float(row["replicated_seconds"]) for row in chosen)

    rows = []
    for name, task in TASKS.items():
        output, replicated = measured(name, 1)
        alone = interpolated(output, task.shape.vocabulary_size) + replicated
        for network_name, network in networks.items():
            for ranks in PREDICTED_RANKS:
                update = predicted_update(output, replicated, task.shape, ranks, network)
                rows.append(
                    {
                        "task": name,
                        "network": network_name,
                        "latency_seconds": network.latency,
                        "bandwidth_bytes_per_second": network.bandwidth,
                        "ranks": ranks,
                        **update,
                        "epoch_seconds": update["update_seconds"] * math.ceil(task.tokens / K),
                        "communication_share": update["communication_seconds"] / update["update_seconds"],
                        "speed_up": alone / update["update_seconds"],
                    }
                )
    write_csv(folder / "scaling.csv", rows, rows[0])
    epochs = {}
    for row in rows:
        cell = f"{row['epoch_seconds']:,.0f} s, {row['communication_share']:.0%}"
        epochs.setdefault((row["task"], row["ranks"]), {})[row["network"]] = cell
    rows = [{"task": task, "ranks": ranks, **cells} for (task, ranks), cells in epochs.items()]
    write_csv(folder / "scaling_epochs.csv", rows, rows[0])

    here = fitted_network(folder)
    print(f"this machine: latency {here.latency * 1e6:.1f} us, bandwidth {here.bandwidth / 1e9:.2f} GB/s")
    checks = []
    for row in read_csv(folder / "scaling_updates.csv"):
        ranks, task = int(row["ranks"]), TASKS[row["task"]]
        predicted = predicted_update(*measured(row["task"], ranks), task.shape, ranks, here)["update_seconds"]
        real = float(row["update_seconds"])
        checks.append(
            {
                "task": row["task"],
                "ranks": ranks,
                "predicted_milliseconds": f"{1e3 * predicted:.2f}",
                "measured_milliseconds": f"{1e3 * real:.2f}",
                "difference": f"{predicted / real - 1:+.0%}",
            }
        )
        print(checks[-1])
    write_csv(folder / "scaling_check.csv", checks, checks[0])


def agree(ranks: int, updates: int = 20) -> None:
    """Train so many updates on all ranks and again on rank 0 alone; say how far the parameters are apart."""
    everyone = connect(ranks)
    task = TASKS["Brown MLP9"]

    def trained(ranks):
        architecture = JoinedArchitecture(task.shape)
        network = architecture.network(architecture.initial_parameters(1), ranks, "float64", K)
        generator = torch.Generator().manual_seed(1)
        for _ in range(updates):
            contexts = torch.randint(0, task.shape.vocabulary_size, (K, task.shape.n - 1), generator=generator)
            words = torch.randint(0, task.shape.vocabulary_size, (K,), generator=generator)
            network.update(contexts, words, 1e-3, 1e-4)
        return network.gathered_parameters()

    together = trained(everyone)
    if everyone.rank == 0:
        alone = trained(SingleRank())
        for name, tensor in alone.items():
            difference = ((together[name] - tensor).abs().max() / tensor.abs().max()).item()
            print(f"{name}: {ranks} ranks and one differ by {difference:.1e} of the largest value")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "predict", "agree", *MEASUREMENTS])
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--latency", type=float, help="seconds; with --bandwidth: predict for this network only")
    parser.add_argument("--bandwidth", type=float, help="bytes per second")
    parser.add_argument("--repeats", type=int, default=101)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    set_threads(1)
    torch.set_flush_denormal(True)
    if arguments.what == "measure":
        measure(arguments.folder, arguments.repeats)
    elif arguments.what == "predict":
        given = {"given": Network(arguments.latency, arguments.bandwidth)} if arguments.latency else NETWORKS
        predict(arguments.folder, given)
    elif arguments.what == "agree":
        agree(arguments.ranks)
    else:
        rows = MEASUREMENTS[arguments.what](arguments.ranks, arguments.repeats)
        if rows:
            write_csv(arguments.output, rows, rows[0])


if __name__ == "__main__":
    main()
