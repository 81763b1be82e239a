"""Subcommands that make a model of any kind: fit-model, train-network; and kinds, which lists what there is."""

import os
from pathlib import Path
from typing import Annotated

import typer

from nplm.cli import app
from nplm.cli.options import ModelFile, Seed

Row = Annotated[
    str, typer.Option(help="Row of the configuration, as YAML: '{kind: kneser_ney, n: 3, smoothing: backoff}'.")
]
MOST_PROCESSES = 1024
"""and threads: more are a slip of the pen, and many machines do not survive them"""


@app.command("kinds")
def kinds(
    name: Annotated[str | None, typer.Argument(help="Kind whose keys are shown.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Page of all kinds and keys to write (Markdown).")] = None,
) -> None:
    """List the kinds of model, or the keys of one kind."""
    from nplm.files import write_text
    from nplm.kinds import find_kind, registry
    from nplm.report.kinds import keys_text, kinds_text, models_page

    if markdown:
        write_text(markdown, models_page(registry().values()))
        print(f"{markdown}: {len(registry())} kinds")
    else:
        print(keys_text(find_kind(name, "nplm kinds")) if name else kinds_text(registry().values()), end="")


@app.command("fit-model")
def fit_model(
    row: Row,
    input: Annotated[
        list[str],
        typer.Option(help="What the fit reads, as NAME=PATH: train=train.safetensors; `nplm kinds` says what more."),
    ],
    output: ModelFile,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="Of all random choices, for kinds that draw.")
    ] = None,
) -> None:
    """Fit a model of any kind that one process fits."""
    from nplm.errors import InputError
    from nplm.files import require_writable
    from nplm.kinds import code_of_kind, find_kind
    from nplm.rows import read_row

    complete = read_row(row)
    kind = find_kind(complete["kind"], "--row")
    if kind.code is None or kind.epochs:
        remedy = "train it with train-network" if kind.epochs else "import its scores with import-scores"
        raise InputError(f"--row: a model of kind {kind.name} is not fitted; {remedy}")
    given = [text.partition("=") for text in input]
    expected = ("train", *kind.reads)
    if sorted(name for name, _, path in given if path) != sorted(expected) or len(given) > len(expected):
        raise InputError(
            f"--input: {kind.name} reads {', '.join(expected)}, but {', '.join(name for name, *_ in given)} is given; "
            "give each once, as NAME=PATH"
        )
    inputs = {name: Path(path) for name, _, path in given}
    if kind.random and seed is None:
        raise InputError(f"--seed: {kind.name} draws random numbers; give a seed")
    require_writable([output], inputs.values())
    code = code_of_kind(kind)
    model = code.fit_row(inputs, complete, seed)
    code.write_model(output, model)
    print(f"{output}: " + "\n".join(code.describe(model)))


@app.command("train-network")
def train_network(
    row: Row,
    train: Annotated[Path, typer.Option(help="encoded train split")],
    valid: Annotated[Path, typer.Option(help="encoded validation split, for early stopping")],
    output: Annotated[Path, typer.Option(help="model file to write: the parameters of the best epoch")],
    history: Annotated[Path, typer.Option(help="CSV to write: one line per epoch")],
    checkpoints: Annotated[Path, typer.Option(help="folder of the checkpoints; an interrupted run goes on from there")],
    seed: Seed,
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
    """Train a network of any kind by a parallel algorithm of section 3, with early stopping on the validation split."""
    # Before torch is loaded: a thread that waits must sleep, not spin, or a busy core halves the speed several times.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from functools import partial

    import pandas
    import torch

    from nplm.arrays import require_same_vocabulary
    from nplm.cli.monitor import monitor_of
    from nplm.cli.watchdog import Watchdog
    from nplm.errors import InputError
    from nplm.files import require_writable, write_text
    from nplm.fingerprint import code_of
    from nplm.kinds import find_kind
    from nplm.neural.model import NetworkModel, architecture_of, write_model
    from nplm.neural.network import free_parameters
    from nplm.neural.ranks import connect
    from nplm.neural.shared_memory import SharedMemoryTraining
    from nplm.neural.training import Interrupted, Settings, Training
    from nplm.rows import read_row
    from nplm.streams import check_order, read_split

    complete = read_row(row)
    kind = find_kind(complete["kind"], "--row")
    if not kind.epochs:
        raise InputError(f"--row: a model of kind {kind.name} is no network that is trained; fit it with fit-model")
    device, K = complete["device"], complete["K"]
    by_outputs = complete["strategy"] == "output-parallel"
    # Before the ranks connect, which is where they may already wait for one another.
    watchdog = Watchdog(stall_minutes if by_outputs and ranks > 1 else 0)
    all_ranks = connect(ranks if by_outputs else 1)
    monitor = watchdog.watched(monitor_of(all_ranks.rank))
    gpu = torch.cuda.is_available()
    if device == "auto":
        allowed = next(key.schema["enum"] for key in kind.keys if key.name == "device")
        device = "cuda" if gpu and ranks == 1 and "cuda" in allowed else "cpu"
    if device == "cuda" and not gpu:
        raise InputError("device: cuda: torch finds no GPU here; give cpu, or install torch for this GPU")
    if device == "cuda" and ranks > 1:
        raise InputError(f"device: cuda runs in one process, but --ranks is {ranks}; give --ranks 1 or device: cpu")
    require_writable((output, history, checkpoints / "checkpoint"), (train, valid))
    splits = {path: read_split(path) for path in (train, valid)}
    require_same_vocabulary(*((path, split.vocabulary) for path, split in splits.items()))
    for path, split in splits.items():
        if not len(split):
            raise InputError(f"{path}: holds no token; give the network some")
    architecture = architecture_of(complete, splits[train].vocabulary_size)
    check_order(architecture.n)
    _require_memory(architecture.least_memory(K, ranks if by_outputs else 1), free_parameters(architecture), K)
    training = (Training if by_outputs else partial(SharedMemoryTraining, processes=ranks))(
        Settings(
            architecture=architecture,
            seed=seed,
            **{name: complete[name] for name in ("epsilon_0", "r", "weight_decay", "K", "precision")},
            device=device,
        ),
        splits[train],
        splits[valid],
        all_ranks,
        threads,
        checkpoints,
        monitor,
        code=code_of("nplm.neural.training" if by_outputs else "nplm.neural.shared_memory", also=(kind.code,)),
        checkpoint_minutes=checkpoint_minutes,
    )
    monitor.line(
        f"{free_parameters(architecture):,} free parameters, {len(splits[train]):,} examples an epoch, {ranks} rank(s) "
        f"of {threads} thread(s), {training.precision} on {device}"
    )
    try:
        parameters = training.run(complete["epochs"], complete["patience"] or 0)
    except Interrupted as interruption:
        monitor.line(f"stopped by a signal; {interruption}")
        raise typer.Exit(143) from None
    except OverflowError:
        raise InputError(
            f"the perplexity is beyond every number in epoch {training.progress.epoch}: training diverged; lower "
            f"epsilon_0 (now {complete['epsilon_0']}) or K ({K})"
        ) from None
    if parameters is not None:
        best = training.progress.best_epoch
        how = {"strategy": complete["strategy"], "device": device}
        records = [{**record, **how, "best": int(record["epoch"] == best)} for record in training.progress.history]
        write_text(history, pandas.DataFrame(records).to_csv(index=False, lineterminator="\n"))
        model = NetworkModel(complete, architecture, parameters, splits[train].vocabulary)
        write_model(output, model, epoch=str(best), seed=str(seed), precision=training.precision)
        monitor.line(f"wrote {output}: the parameters of epoch {best}")
    if all_ranks.size > 1:
        from mpi4py import MPI

        MPI.Finalize()  # as at exit, but while the watchdog still looks on, for the ranks wait for one another here too
    watchdog.stop()


def _require_memory(least: int, parameters: int, K: int) -> None:
    """Raise InputError when the bytes that a rank cannot do without are more than the memory of this machine."""
    from nplm.errors import InputError

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if least > memory:
        raise InputError(
            f"{parameters:,} free parameters and {K:,} examples per update take {least / 2**30:,.0f} GiB or more, and "
            f"this machine has {memory / 2**30:,.0f}; make the network smaller, or lower K"
        )
