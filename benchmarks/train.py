"""How near the training's update comes to the machine's matrix-multiply rate, and how far it is from plain PyTorch.

    python benchmarks/train.py --output benchmarks/results/train.csv
    mpiexec -n 2 python -m mpi4py benchmarks/train.py --ranks 2 --threads 1 --output benchmarks/results/train_2.csv

    python benchmarks/train.py --device cuda --output benchmarks/results/train_cuda.csv

Arithmetic of an example: 6 |V| (h + (n-1) m direct) operations, the three products of the output layer. For each shape
and precision it measures, in interleaved repeats, (a) those three products alone, each in the layouts that a program
may choose for its operands, of which the fastest counts, (b) our update, (c) the update that a user would write with
nn.Embedding, nn.Linear, cross_entropy, backward and SGD with weight decay, at the same batch, in one process with the
threads of all ranks together. Medians; rates in operations of (a)'s count per second. Column products_plain_gflops has
(a) in the layout of nn.Linear. The products' matrices lie in huge pages, as ours do.
"""

import argparse
import csv
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from torch import nn

from nplm.files import complete_file
from nplm.neural.encoders.feed_forward import Shape
from nplm.neural.kernels import empty, set_threads
from nplm.neural.network import JoinedArchitecture
from nplm.neural.outputs.rows import PRECISIONS
from nplm.neural.ranks import Ranks, connect
from nplm.report.provenance import processor

SHAPES = {
    "MLP1": Shape(17905, 5, 50, 60, True),
    "MLP9": Shape(17905, 5, 100, 30, False),
    "AP News": Shape(17964, 6, 60, 100, True),
}


class PlainNetwork(nn.Module):
    """The network as a PyTorch user would write it."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.input_width
        self.C = nn.Embedding(shape.vocabulary_size, shape.m)
        self.hidden = nn.Linear(width, shape.h)
        self.output = nn.Linear(shape.h, shape.vocabulary_size)
        self.direct = nn.Linear(width, shape.vocabulary_size, bias=False) if shape.direct else None

    def forward(self, contexts: torch.Tensor) -> torch.Tensor:
        x = self.C(contexts).flatten(1)
        y = self.output(torch.tanh(self.hidden(x)))
        return y + self.direct(x) if self.direct else y


def plain_update(network: PlainNetwork, optimizer: torch.optim.Optimizer, contexts, words) -> None:
    optimizer.zero_grad()
    nn.functional.cross_entropy(network(contexts), words, reduction="sum").backward()
    optimizer.step()


def wait_asleep(ranks: Ranks) -> None:
    """A barrier that leaves the processors of the ranks that wait to the others."""
    if ranks.size > 1:
        from mpi4py import MPI

        request = MPI.COMM_WORLD.Ibarrier()
        while not request.Test():
            time.sleep(1e-4)


def products(shape: Shape, rows: int, K: int, precision: str, device: str) -> dict[str, dict[str, Callable]]:
    """The three products of the output layer -> layout of the big matrix -> a function without arguments."""
    F, dtype = shape.width + 1, PRECISIONS[precision]

    def matrix(*size: int) -> torch.Tensor:
        return empty(*size, dtype=dtype, device=device).copy_(torch.rand(*size, device=device))

    Z, U, E = matrix(K, F), matrix(rows, F), matrix(K, rows)
    E_T, Z_T, dZ, dU = matrix(rows, K), matrix(F, K), matrix(K, F), matrix(rows, F)
    return {
        "logits": {
            "plain": lambda: torch.mm(Z, U.T, out=E),
            "units along rows": lambda: torch.mm(U, Z_T, out=E_T),
        },
        "hidden gradient": {
            "plain": lambda: torch.mm(E, U, out=dZ),
            "units along rows": lambda: torch.mm(E_T.T, U, out=dZ),
        },
        "gradient of U": {
            "plain": lambda: torch.mm(E.T, Z, out=dU),
            "units along rows": lambda: torch.mm(E_T, Z, out=dU),
        },
    }


def interleaved_medians(work: dict, repeats: int, device: str) -> dict:
    """Median seconds of one call of each function, three calls of each in turn, the first of which does not count.

    That one finds the caches as another function left them; in a training an update follows an update.
    """
    seconds = {name: [] for name in work}
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for repeat in range(-1, repeats):
        for name, function in work.items():
            for call in range(3):
                start = time.perf_counter()
                function()
                wait()
                if repeat >= 0 and call:
                    seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--examples-per-update", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    K, device = arguments.examples_per_update, arguments.device
    ranks = connect(arguments.ranks)
    set_threads(arguments.threads)
    torch.set_flush_denormal(True)
    generator = torch.Generator().manual_seed(1)

    records = []
    for name, shape in SHAPES.items():
        contexts = torch.randint(0, shape.vocabulary_size, (K, shape.n - 1), generator=generator).to(device)
        words = torch.randint(0, shape.vocabulary_size, (K,), generator=generator).to(device)
        architecture = JoinedArchitecture(shape)
        work = {}
        for precision in ("float32", "bfloat16"):
            network = architecture.network(architecture.initial_parameters(1), ranks, precision, K, device)

            def update(network=network, contexts=contexts, words=words) -> None:
                network.update(contexts, words, 1e-3, 1e-4)

            work["ours", precision] = update
            for product, layouts in products(shape, len(network.output.own), K, precision, device).items():
                for layout, multiply in layouts.items():
                    work[precision, product, layout] = multiply
        plain = PlainNetwork(shape).to(device)
        optimizer = torch.optim.SGD(plain.parameters(), lr=1e-3, weight_decay=1e-4)

        def update_plainly(plain=plain, optimizer=optimizer, contexts=contexts, words=words) -> None:
            if ranks.rank == 0:
                torch.set_num_threads(ranks.size * arguments.threads)
                plain_update(plain, optimizer, contexts, words)
                torch.set_num_threads(arguments.threads)
            wait_asleep(ranks)

        work["plain"] = update_plainly
        seconds = interleaved_medians(work, arguments.repeats, device)

        operations = 6 * shape.vocabulary_size * shape.width * K
        plain_seconds = seconds["plain"]
        for precision in ("float32", "bfloat16"):
            of_products = {key[1:]: value for key, value in seconds.items() if len(key) == 3 and key[0] == precision}
            floor = sum(
                min(value for (product, _), value in of_products.items() if product == wanted)
                for wanted in dict.fromkeys(product for product, _ in of_products)
            )
            floor_plain = sum(value for (_, layout), value in of_products.items() if layout == "plain")
            ours = seconds["ours", precision]
            records.append(
                {
                    "network": name,
                    "precision": precision,
                    "device": device,
                    "ranks": ranks.size,
                    "threads": arguments.threads,
                    "K": K,
                    "products_gflops": round(operations / floor / 1e9, 1),
                    "products_plain_gflops": round(operations / floor_plain / 1e9, 1),
                    "update_gflops": round(operations / ours / 1e9, 1),
                    "update_tokens_per_second": round(K / ours),
                    "plain_tokens_per_second": round(K / plain_seconds),
                    "share_of_products_rate": round(floor / ours, 3),
                    "share_of_plain_products_rate": round(floor_plain / ours, 3),
                    "times_plain_pytorch": round(plain_seconds / ours, 2),
                    "times_our_float32": round(seconds["ours", "float32"] / ours, 2),
                    "processor": torch.cuda.get_device_name() if device == "cuda" else processor(),
                    "torch": torch.__version__,
                }
            )
            if ranks.rank == 0:
                print(
                    {key: value for key, value in records[-1].items() if key not in ("processor", "torch")}, flush=True
                )
    if ranks.rank == 0:
        with complete_file(arguments.output) as partial, open(partial, "w", newline="") as file:
            writer = csv.DictWriter(file, records[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(records)
        print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
