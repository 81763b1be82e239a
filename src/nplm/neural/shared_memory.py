"""Training shared out by data (section 3.1): processes of one machine write to the same parameters without locks.

Each process learns its own part of an epoch's examples and adds its updates to parameters in shared memory while the
others do the same. An update may be computed from parameters that another process is just changing, and now and then
one is lost; the paper saw no harm in that noise (compare Niu et al. 2011, Hogwild). So the result depends on the
processes and, beyond rounding, on their timing: no two runs are the same.
"""

import os
import threading
from contextlib import suppress

import numpy as np
import torch
from torch import multiprocessing

from nplm.errors import InputError
from nplm.neural.kernels import set_threads
from nplm.neural.network import Network
from nplm.neural.ranks import SingleRank
from nplm.neural.training import Interrupted, Settings, Training
from nplm.processes import Other, how_ended, kill_others, signals_blocked, start_other

LOOK_SECONDS = 0.2
"""Between two looks at signals and at the other processes while their results are waited for."""


class SharedMemoryTraining(Training):
    """A training by `processes` processes on shared parameters; this one is the first of them.

    Epochs, validation, early stopping and the checkpoint after every epoch are those of `Training`. Within an epoch
    there is no state that all processes agree on, so an interrupted one starts anew.
    """

    def __init__(self, *arguments, processes: int, code: str = "", **options) -> None:
        super().__init__(*arguments, code=f"{code} shared-memory {processes}", **options)
        self.processes = processes

    def run(self, epochs: int, patience: int):
        """See `Training.run`; a signal ends the epoch under way and writes no checkpoint.

        Raises InputError also when another process ends before this one.
        """
        with OtherProcesses(self.processes - 1) as self._others:
            return super().run(epochs, patience)

    def _epoch(self) -> None:
        progress, network, settings = self.progress, self.network, self.settings
        # Taken up in its middle, an epoch would be learned twice in part: it has no middle here.
        progress.position, progress.train_ln_prob = 0, 0.0
        self._others.start(settings, self.precision, network, self.train)
        network.seconds.clear()
        total = len(self.train[1])
        self._others.order(progress.epoch)

        def control(learned: int, ln_prob: float) -> None:
            self._require_finite(ln_prob)
            self._look()
            position = min(learned * self.processes, total)
            self.monitor.examples(progress.epoch, position, total, float(np.exp(-ln_prob / learned)))

        ln_prob = learn_part(network, self.train, settings, progress.epoch, 0, self.processes, control)
        progress.train_ln_prob = ln_prob + sum(self._others.results(self._look))
        network.seconds.lap("communication")  # the wait for the others
        progress.position = total
        self._require_finite(progress.train_ln_prob)

    def _validate(self) -> None:
        super()._validate()
        self.progress.history[-1]["ranks"] = self.processes

    def _look(self) -> None:
        """Stop when a signal asks for it or another process has ended."""
        epoch = self.progress.epoch
        if epoch == 1:
            remedy = "run the same command again to start anew: of an unfinished first epoch nothing is kept"
        else:
            remedy = f"run the same command again to continue after epoch {epoch - 1} from {self.checkpoint}"
        if self._stop:
            raise Interrupted(remedy)
        if end := self._others.end():
            raise InputError(f"{end} in epoch {epoch}; {remedy}")


class OtherProcesses:
    """The `count` processes that train with this one: none before `start`, and none after the context."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._processes: list[Other] = []

    def __enter__(self) -> "OtherProcesses":
        return self

    def __exit__(self, *exception) -> None:
        kill_others(self._processes)

    def start(
        self, settings: Settings, precision: str, network: Network, train: tuple[torch.Tensor, torch.Tensor]
    ) -> None:
        """Put the network's parameters into shared memory and start the processes on them, unless they run."""
        if self._processes:
            return
        tensors = {name: tensor.share_memory_() for name, tensor in network.parts().items()}
        with signals_blocked():  # what is sent to the whole group of processes is for this one to heed
            for number in range(1, self._count + 1):
                self._processes.append(start_other(_work, number, self._count + 1, settings, precision, tensors, train))

    def order(self, epoch: int) -> None:
        """Let the processes learn their parts of an epoch."""
        for _, connection in self._processes:
            with suppress(OSError):  # of a process that has ended, which `results` finds
                connection.send(epoch)

    def results(self, look) -> list[float]:
        """The ln P of every process's part; `look`, called while they are waited for, must raise on `end`."""
        results = []
        for process, connection in self._processes:
            while not connection.poll(LOOK_SECONDS):
                look()
            try:
                results.append(connection.recv())
            except (EOFError, OSError):
                process.join()
                look()
        return results

    def end(self) -> str | None:
        """How one of the processes has ended, None while all of them run."""
        for number, (process, _) in enumerate(self._processes, start=2):
            if not process.is_alive():
                return f"process {number} of {self._count + 1} ended {how_ended(process)}"
        return None


def learn_part(
    network: Network,
    train: tuple[torch.Tensor, torch.Tensor],
    settings: Settings,
    epoch: int,
    number: int,
    processes: int,
    control=lambda learned, ln_prob: None,
) -> float:
    """Learn every so-many-th example of an epoch's permutation; their summed ln P in nats, before their updates.

    `control` is called after every update with the examples learned so far and their ln P.
    """
    contexts, words = train
    total, K = len(words), settings.K
    order = torch.from_numpy(np.random.default_rng([settings.seed, epoch]).permutation(total)[number::processes].copy())
    ln_prob = 0.0
    for start in range(0, len(order), K):
        drawn = order[start : start + K]
        seen = (epoch - 1) * total + start * processes
        rate = settings.learning_rate(seen)
        ln_prob += network.update(contexts[drawn], words[drawn], rate, settings.weight_decay).sum().item()
        network.settle()  # the decay that is only noted down is not shared
        control(start + len(drawn), ln_prob)
    return ln_prob


def _work(number, processes, settings, precision, tensors, train, connection) -> None:
    """Another process: learn its part of every epoch that is ordered, on the shared parameters."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    set_threads(1)
    torch.set_flush_denormal(True)
    own = settings.architecture.initial_parameters(settings.seed)  # which give way to those that are shared
    network = settings.architecture.network(own, SingleRank(), precision, settings.K)
    network.take(tensors)
    with suppress(EOFError, ConnectionError):  # the first process has ended
        while True:
            connection.send(learn_part(network, train, settings, connection.recv(), number, processes))


def _end_with_parent() -> None:
    """End this process, whatever it is doing, when the first one is no more."""
    multiprocessing.parent_process().join()
    os._exit(1)
