"""Subcommands of the network."""

import os
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nplm.cli import app
from nplm.cli.options import Seed

if TYPE_CHECKING:
    from nplm.neural.network import Shape

Device = StrEnum("Device", ["auto", "cpu", "cuda"])
Precision = StrEnum("Precision", ["auto", "float32", "bfloat16", "float64"])
MOST_PROCESSES = 1024
"""and threads: more are a slip of the pen, and many machines do not survive them"""
Strategy = StrEnum("Strategy", [(name, name) for name in ("output-parallel", "shared-memory")])


@app.command()
def train_nplm(
    train: Annotated[Path, typer.Option(help="encoded train split")],
    valid: Annotated[Path, typer.Option(help="encoded validation split, for early stopping")],
    output: Annotated[Path, typer.Option(help="model file to write: the parameters of the best epoch")],
    history: Annotated[Path, typer.Option(help="CSV to write: one line per epoch")],
    checkpoints: Annotated[Path, typer.Option(help="folder of the checkpoints; an interrupted run goes on from there")],
    order: Annotated[int, typer.Option(help="n: the network sees the n-1 words before the one it predicts")],
    hidden: Annotated[int, typer.Option(help="h: hidden units; 0 = no hidden layer")],
    features: Annotated[int, typer.Option(help="m: features of each word")],
    direct: Annotated[bool, typer.Option(help="direct connections W from features to outputs")],
    epsilon_0: Annotated[float, typer.Option("--epsilon-0", help="initial learning rate per example")],
    seed: Seed,
    r: Annotated[float, typer.Option("--r", help="learning rate after t examples: epsilon_0 / (1 + r t)")] = 1e-8,
    weight_decay: Annotated[float, typer.Option(help="weight decay of C, H, U, W")] = 1e-4,
    examples_per_update: Annotated[int, typer.Option("--examples-per-update", help="K, a mini-batch")] = 128,
    epochs: Annotated[int, typer.Option(min=1, help="epochs at most")] = 20,
    patience: Annotated[
        int, typer.Option(min=0, help="stop after this many epochs without improvement; 0 = never")
    ] = 3,
    precision: Annotated[Precision, typer.Option(help="of the output layer's products")] = "auto",
    strategy: Annotated[
        Strategy, typer.Option(help="what the ranks share out: the outputs (section 3.2), or the examples (3.1)")
    ] = "output-parallel",
    device: Annotated[Device, typer.Option(help="cuda: a GPU, and one process; auto: where there is one")] = "cpu",
    ranks: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_PROCESSES,
            help="processes: MPI's, which must be there, or those on shared memory; 1 = no MPI",
        ),
    ] = 1,
    threads: Annotated[int, typer.Option(min=1, max=MOST_PROCESSES, help="threads of each process")] = 1,
    checkpoint_minutes: Annotated[float, typer.Option(min=0, help="minutes between checkpoints within an epoch")] = 3.0,
    stall_minutes: Annotated[
        float,
        typer.Option(
            min=0,
            envvar="NPLM_STALL_MINUTES",
            help="minutes without progress after which the ranks of MPI give up; 0 = never",
        ),
    ] = 30.0,
) -> None:
    """Train a network by a parallel algorithm of section 3, with early stopping on the validation split."""
    # Before torch is loaded: a thread that waits must sleep, not spin, or a busy core halves the speed several times.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import pandas
    import torch

    from nplm.arrays import require_same_vocabulary
    from nplm.cli.monitor import monitor_of
    from nplm.cli.watchdog import Watchdog
    from nplm.errors import InputError
    from nplm.files import require_writable, write_text
    from nplm.fingerprint import code_of
    from nplm.neural.network import Shape, write_model
    from nplm.neural.ranks import connect
    from nplm.neural.shared_memory import SharedMemoryTraining
    from nplm.neural.train import Interrupted, Settings, Training
    from nplm.streams import read_split

    by_outputs = strategy == "output-parallel"
    # Before the ranks connect, which is where they may already wait for one another.
    watchdog = Watchdog(stall_minutes if by_outputs and ranks > 1 else 0)
    all_ranks = connect(ranks if by_outputs else 1)
    monitor = watchdog.watched(monitor_of(all_ranks.rank))
    gpu = torch.cuda.is_available()
    if device == "auto":
        device = "cuda" if gpu and ranks == 1 else "cpu"
    if device == "cuda" and not gpu:
        raise InputError("--device cuda: torch finds no GPU here; give --device cpu, or install torch for this GPU")
    if device == "cuda" and ranks > 1:
        raise InputError(f"--device cuda runs in one process, but --ranks is {ranks}; give --ranks 1 or --device cpu")
    require_writable((output, history, checkpoints / "checkpoint"), (train, valid))
    splits = {path: read_split(path) for path in (train, valid)}
    require_same_vocabulary(*((path, split.vocabulary) for path, split in splits.items()))
    for path, split in splits.items():
        if not len(split):
            raise InputError(f"{path}: holds no token; give the network some")
    shape = Shape(splits[train].vocabulary_size, order, hidden, features, direct)
    _require_memory(shape, examples_per_update, ranks if by_outputs else 1)
    training = (Training if by_outputs else partial(SharedMemoryTraining, processes=ranks))(
        Settings(
            shape=shape,
            seed=seed,
            epsilon_0=epsilon_0,
            r=r,
            weight_decay=weight_decay,
            K=examples_per_update,
            precision=str(precision),
            device=str(device),
        ),
        splits[train],
        splits[valid],
        all_ranks,
        threads,
        checkpoints,
        monitor,
        code=code_of("nplm.neural.train" if by_outputs else "nplm.neural.shared_memory"),
        checkpoint_minutes=checkpoint_minutes,
    )
    monitor.line(
        f"{shape.free_parameters:,} free parameters, {len(splits[train]):,} examples an epoch, {ranks} rank(s) of "
        f"{threads} thread(s), {training.precision} on {device}"
    )
    try:
        network = training.run(epochs, patience)
    except Interrupted as interruption:
        monitor.line(f"stopped by a signal; {interruption}")
        raise typer.Exit(143) from None
    except OverflowError:
        raise InputError(
            f"the perplexity is beyond every number in epoch {training.progress.epoch}: training diverged; lower "
            f"epsilon_0 (now {epsilon_0}) or K ({examples_per_update})"
        ) from None
    if network is not None:
        best = training.progress.best_epoch
        how = {"strategy": str(strategy), "device": str(device)}
        records = [{**record, **how, "best": int(record["epoch"] == best)} for record in training.progress.history]
        write_text(history, pandas.DataFrame(records).to_csv(index=False, lineterminator="\n"))
        write_model(output, network, epoch=str(best), seed=str(seed), precision=training.precision)
        monitor.line(f"wrote {output}: the parameters of epoch {best}")
    if all_ranks.size > 1:
        from mpi4py import MPI

        MPI.Finalize()  # as at exit, but while the watchdog still looks on, for the ranks wait for one another here too
    watchdog.stop()


def _require_memory(shape: "Shape", K: int, ranks: int) -> None:
    """Raise InputError when what a rank cannot do without is more than the memory of this machine."""
    from nplm.errors import InputError

    # all parameters in float32, and the inputs and (in bfloat16) the logits of K examples
    least = 4 * shape.free_parameters + K * (4 * shape.output_width + 2 * shape.vocabulary_size // ranks)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if least > memory:
        raise InputError(
            f"{shape.free_parameters:,} free parameters and {K:,} examples per update take {least / 2**30:,.0f} GiB or "
            f"more, and this machine has {memory / 2**30:,.0f}; lower order, hidden, features or K"
        )
