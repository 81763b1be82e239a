"""Training a network (sections 2, 3.2 and 4.2): epochs over the shuffled examples, early stopping, checkpoints.

Learning rate epsilon_t = epsilon_0 / (1 + r t), t = examples seen. The examples of an epoch are shuffled by a
permutation drawn from (seed, epoch), so that an interrupted epoch can be taken up in its middle.
"""

import math
import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from nplm.errors import InputError
from nplm.neural.checkpoint import Progress, digest, fingerprint, read_checkpoint, write_checkpoint
from nplm.neural.kernels import set_threads
from nplm.neural.model import word_ids
from nplm.neural.network import Architecture, Network, Parameters
from nplm.neural.ranks import Ranks
from nplm.streams import Split, contexts

CONTROL_INTERVAL = 64
"""Updates between two looks at the clock and at signals: those looks are collective."""
VALIDATION_BATCH = 256


class Monitor(Protocol):
    """Who is told how the training goes; nplm.cli.monitor has one for logs and one for terminals."""

    def line(self, text: str) -> None:
        """Something worth keeping: an epoch's outcome, where a run continues."""
        ...

    def examples(self, epoch: int, learned: int, total: int, train_perplexity: float) -> None:
        """Called several times a second: `learned` of `total` examples of the epoch."""
        ...


class Interrupted(Exception):
    """A signal asked the training to stop; the message says how to go on."""


@dataclass(frozen=True)
class Settings:
    """What determines a training besides its data. Units: epsilon_0 per example, K examples, weight_decay per unit."""

    architecture: Architecture
    seed: int
    epsilon_0: float
    r: float
    weight_decay: float
    K: int
    precision: str
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name, least in (("epsilon_0", 0), ("r", 0), ("weight_decay", 0), ("K", 1)):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= least):
                raise InputError(f"training setting {name} = {value} is out of range; give a number >= {least}")
        if self.epsilon_0 * self.weight_decay * self.K >= 1:
            raise InputError(
                f"epsilon_0 * weight_decay * K = {self.epsilon_0 * self.weight_decay * self.K} would turn the sign of "
                "the weights at every update; lower one of the three below 1"
            )

    def learning_rate(self, examples: int) -> float:
        """epsilon_t = epsilon_0 / (1 + r t) after t examples."""
        return self.epsilon_0 / (1 + self.r * examples)


def stopping_epoch(valid_perplexities: list[float], epochs: int, patience: int) -> int | None:
    """The epoch after which a training with these validation perplexities ends, None when it goes on.

    It ends after `epochs`, or once `patience` epochs in a row have not bettered the best (patience 0: never early).
    """
    best = 0
    for epoch, perplexity in enumerate(valid_perplexities, start=1):
        if perplexity < valid_perplexities[best]:
            best = epoch - 1
        if epoch >= epochs or (patience and epoch - 1 - best >= patience):
            return epoch
    return None


def examples(split: Split, n: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Contexts [T, n-1], as a view of the stream of T + n-1 words, and words [T], int64."""
    stream = word_ids(np.concatenate([contexts(split, n - 1)[0], split.tokens])).to(device)
    return stream.unfold(0, n - 1, 1)[:-1], stream[n - 1 :]


class Training:
    """One network's training on this rank: `run` it. Its checkpoint's folder is named by a fingerprint.

    The number of ranks, the threads, `epochs` and `patience` are not part of the fingerprint: the first two do not
    change the result beyond rounding, and a finished training goes on from its last epoch when more are asked for.
    """

    def __init__(
        self,
        settings: Settings,
        train: Split,
        valid: Split,
        ranks: Ranks,
        threads: int,
        checkpoints: Path,
        monitor: Monitor,
        code: str = "",
        checkpoint_minutes: float = 3.0,
    ) -> None:
        set_threads(threads)
        # A denormal number costs a hundred times a normal one, and decayed weights become denormal.
        torch.set_flush_denormal(True)
        self.settings, self.ranks, self.threads = settings, ranks, threads
        self.monitor = monitor
        self.checkpoint_seconds = 60 * checkpoint_minutes
        determinants = {
            **asdict(settings),
            "precision": settings.architecture.resolve_precision(settings.precision, settings.device),
            "data": digest(train.tokens, train.history, valid.tokens, valid.history),
            "vocabulary": train.vocabulary,
            "code": code,
        }
        self.precision = determinants["precision"]
        self.checkpoint = Path(checkpoints) / fingerprint(determinants) / "checkpoint.safetensors"
        self.train, self.valid = (examples(split, settings.architecture.n, settings.device) for split in (train, valid))
        self.progress, parameters, self.best = self._start()
        self.network = self._network(parameters)
        self._last_checkpoint = time.monotonic()
        self._stop = False

    def run(self, epochs: int, patience: int) -> Parameters | None:
        """Train for at most `epochs`, stopping after `patience` epochs without a better validation perplexity.

        patience 0 never stops early. Epochs that are already done count: a run that ended goes on when it is asked for
        more epochs; asked for fewer than it has done, it starts anew.

        Returns the parameters of the best epoch on rank 0, None on the others. Raises Interrupted after SIGTERM or
        SIGUSR1, with the checkpoint written, and InputError when the perplexity is no longer a number.
        """
        if (end := self._end(epochs, patience)) is not None and end < len(self.progress.history):
            self.monitor.line(
                f"the checkpoint is {len(self.progress.history)} epochs old, beyond the end asked for: starting anew"
            )
            self._restart()
        with self._signals():
            while self._end(epochs, patience) is None:
                self._epoch()
                self._validate()
                self._write_checkpoint()
        return self.best if self.ranks.rank == 0 else None

    def _start(self) -> tuple[Progress, Parameters, Parameters | None]:
        # Rank 0 alone reads: on a slow shared file system the ranks may not see the same file. Where it cannot, its
        # error ends them all (`python -m mpi4py`).
        found = None
        if self.ranks.rank == 0 and self.checkpoint.exists():
            found = read_checkpoint(self.checkpoint, self.settings.architecture.sizes)
        if found := self.ranks.broadcast(found):
            progress = found[0]
            self.monitor.line(
                f"continuing in epoch {progress.epoch} after {progress.position:,} examples: {self.checkpoint}"
            )
            return found
        return Progress(), self._initial_parameters(), None

    def _restart(self) -> None:
        self.progress, self.best = Progress(), None
        self.network = self._network(self._initial_parameters())

    def _initial_parameters(self) -> Parameters:
        return self.settings.architecture.initial_parameters(self.settings.seed)

    def _network(self, parameters: Parameters) -> Network:
        examples = max(self.settings.K, VALIDATION_BATCH)
        return self.settings.architecture.network(
            parameters, self.ranks, self.precision, examples, self.settings.device
        )

    def _end(self, epochs: int, patience: int) -> int | None:
        return stopping_epoch([record["valid_perplexity"] for record in self.progress.history], epochs, patience)

    def _epoch(self) -> None:
        progress, network, K = self.progress, self.network, self.settings.K
        all_contexts, words = self.train
        total = len(words)
        order = np.random.default_rng([self.settings.seed, progress.epoch]).permutation(total)
        order = torch.from_numpy(order).to(words.device)
        network.seconds.clear()
        network.seconds.update(progress.seconds)
        # On the device until it is read: ln P of the updates since the last control.
        ln_prob = torch.zeros((), dtype=torch.float64, device=words.device)
        for update, start in enumerate(range(progress.position, total, K), start=1):
            drawn = order[start : start + K]
            seen = (progress.epoch - 1) * total + start
            rate, weight_decay = self.settings.learning_rate(seen), self.settings.weight_decay
            ln_prob += network.update(all_contexts[drawn], words[drawn], rate, weight_decay).sum()
            if update % CONTROL_INTERVAL == 0 or start + K >= total:
                network.settle()
                progress.position = min(start + K, total)
                progress.train_ln_prob += ln_prob.item()
                ln_prob.zero_()
                self._require_finite(progress.train_ln_prob)
                self._control()
                train_perplexity = math.exp(-progress.train_ln_prob / progress.position)
                self.monitor.examples(progress.epoch, progress.position, total, train_perplexity)

    def _validate(self) -> None:
        """Close the epoch: validation perplexity, a record of the history, the best parameters."""
        progress, settings = self.progress, self.settings
        phases = dict(self.network.seconds)
        started = time.monotonic()
        all_contexts, words = self.valid
        ln_prob = 0.0
        for start in range(0, len(words), VALIDATION_BATCH):
            part = slice(start, start + VALIDATION_BATCH)
            ln_prob += self.network.ln_prob(all_contexts[part], words[part]).sum().item()
        self._require_finite(ln_prob)
        total = len(self.train[1])
        training_seconds = sum(phases.values())
        record = {
            "epoch": progress.epoch,
            "examples": progress.epoch * total,
            "learning_rate": settings.learning_rate(progress.epoch * total),
            "train_perplexity": math.exp(-progress.train_ln_prob / total),
            "valid_perplexity": math.exp(-ln_prob / len(words)),
            "tokens_per_second": total / training_seconds,
            "ranks": self.ranks.size,
            "threads": self.threads,
            "precision": self.precision,
            "seconds_training": training_seconds,
            "seconds_validation": time.monotonic() - started,
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            / (2**20 if sys.platform == "darwin" else 2**10),
            **{f"seconds_{phase}": seconds for phase, seconds in phases.items()},
        }
        progress.history.append(record)
        best = min(progress.history, key=lambda record: record["valid_perplexity"])
        if best is record:
            progress.best_epoch = progress.epoch
            self.best = self.network.gathered_parameters()
        self.monitor.line(
            f"epoch {progress.epoch}: train perplexity {record['train_perplexity']:.2f}, "
            f"valid perplexity {record['valid_perplexity']:.2f} (best: epoch {best['epoch']}), "
            f"{record['tokens_per_second']:,.0f} tokens/s"
        )
        progress.epoch += 1
        progress.position, progress.train_ln_prob, progress.seconds = 0, 0.0, {}
        self.network.seconds.clear()

    def _control(self) -> None:
        """Collective: write a checkpoint when it is time to, or when any rank was asked to stop."""
        stop = self.ranks.any(self._stop)
        due = time.monotonic() - self._last_checkpoint >= self.checkpoint_seconds
        if stop or self.ranks.any(self.ranks.rank == 0 and due):
            self._write_checkpoint()
        if stop:
            raise Interrupted(f"run the same command again to continue from {self.checkpoint}")

    def _write_checkpoint(self) -> None:
        self.progress.seconds = dict(self.network.seconds)
        current = self.network.gathered_parameters()
        if current is not None:
            write_checkpoint(self.checkpoint, self.progress, current, self.best)
        self._last_checkpoint = time.monotonic()

    def _require_finite(self, ln_prob: float) -> None:
        if not math.isfinite(ln_prob):
            raise InputError(
                f"the perplexity is no longer a number in epoch {self.progress.epoch} after {self.progress.position:,} "
                f"examples: training diverged; lower epsilon_0 (now {self.settings.epsilon_0}) or K ({self.settings.K})"
            )

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM and SIGUSR1 (what clusters send before the time limit) ask for a checkpoint and an end."""

        def ask_to_stop(number, frame) -> None:
            self._stop = True

        asked = (signal.SIGTERM, signal.SIGUSR1)
        before = [signal.signal(number, ask_to_stop) for number in asked]
        try:
            yield
        finally:
            for number, handler in zip(asked, before, strict=True):
                signal.signal(number, handler)
