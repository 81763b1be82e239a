"""Training shared out by data (section 3.1): processes of one machine write to the same parameters without locks.

Each process learns its own part of an epoch's examples and adds its updates to parameters in shared memory while the
others do the same. An update may be computed from parameters that another process is just changing, and now and then
one is lost; the paper saw no harm in that noise (compare Niu et al. 2011, Hogwild). So the result depends on the
processes and, beyond rounding, on their timing: no two runs are the same.
"""

import queue

import numpy as np
import torch
from torch import multiprocessing

from nplm.neural.kernels import set_threads
from nplm.neural.network import Parameters
from nplm.neural.output_parallel import OutputParallel
from nplm.neural.ranks import SingleRank
from nplm.neural.train import CONTROL_INTERVAL, Interrupted, Settings, Training

SHARED = ("C", "H", "d", "output", "output_operand")
"""What of an OutputParallel the processes share; all else is each one's own."""


class SharedMemoryTraining(Training):
    """A training by `processes` processes on shared parameters; this one is the first of them.

    Epochs, validation, early stopping and the checkpoint after every epoch are those of `Training`. Within an epoch
    there is no state that all processes agree on, so an interrupted one starts anew.
    """

    def __init__(self, *arguments, processes: int, code: str = "", **options) -> None:
        super().__init__(*arguments, code=f"{code} shared-memory {processes}", **options)
        self.processes = processes

    def run(self, epochs: int, patience: int):
        """See `Training.run`. Raises RuntimeError when another process ends before its part is done."""
        context = multiprocessing.get_context("spawn")
        self._results = context.Queue()
        self._orders = [context.Queue() for _ in range(1, self.processes)]
        self._others = []
        try:
            return super().run(epochs, patience)
        finally:
            for process in self._others:
                process.terminate()

    def _epoch(self) -> None:
        progress, network, settings = self.progress, self.network, self.settings
        # Taken up in its middle, an epoch would be learned twice in part: it has no middle here.
        progress.position, progress.train_ln_prob = 0, 0.0
        self._start_others()
        network.seconds.clear()
        total = len(self.train[1])
        for orders in self._orders:
            orders.put(progress.epoch)

        def control(learned: int, ln_prob: float) -> None:
            self._require_finite(ln_prob)
            if self._stop:
                raise Interrupted
            position = min(learned * self.processes, total)
            self.monitor.examples(progress.epoch, position, total, float(np.exp(-ln_prob / learned)))

        ln_prob = learn_part(network, self.train, settings, progress.epoch, 0, self.processes, control)
        progress.train_ln_prob = ln_prob + sum(self._result() for _ in self._others)
        network.seconds.lap("communication")  # the wait for the others
        progress.position = total
        self._require_finite(progress.train_ln_prob)

    def _validate(self) -> None:
        super()._validate()
        self.progress.history[-1]["ranks"] = self.processes

    def _start_others(self) -> None:
        if self._others:
            return
        tensors = {name: getattr(self.network, name).share_memory_() for name in SHARED}
        context = multiprocessing.get_context("spawn")
        for number, orders in enumerate(self._orders, start=1):
            arguments = (number, self.processes, self.settings, self.precision, tensors, self.train)
            process = context.Process(target=_work, args=(*arguments, orders, self._results), daemon=True)
            process.start()
            self._others.append(process)

    def _result(self) -> float:
        while True:
            try:
                return self._results.get(timeout=5)
            except queue.Empty:
                for process in self._others:
                    if not process.is_alive():
                        raise RuntimeError(f"a process of the training ended with status {process.exitcode}") from None


def learn_part(
    network: OutputParallel,
    train: tuple[torch.Tensor, torch.Tensor],
    settings: Settings,
    epoch: int,
    number: int,
    processes: int,
    control=lambda learned, ln_prob: None,
) -> float:
    """Learn every so-many-th example of an epoch's permutation; their summed ln P in nats, before their updates.

    `control` is called now and then with the examples learned and their ln P.
    """
    contexts, words = train
    total, K = len(words), settings.K
    order = torch.from_numpy(np.random.default_rng([settings.seed, epoch]).permutation(total)[number::processes].copy())
    ln_prob = 0.0
    for update, start in enumerate(range(0, len(order), K), start=1):
        drawn = order[start : start + K]
        ln_prob += network.forward(contexts[drawn], words[drawn]).sum().item()
        seen = (epoch - 1) * total + start * processes
        network.update(settings.learning_rate(seen), settings.weight_decay)
        network.settle()  # the decay that is only noted down is not shared
        if update % CONTROL_INTERVAL == 0:
            control(start + len(drawn), ln_prob)
    return ln_prob


def _work(number, processes, settings, precision, tensors, train, orders, results) -> None:
    """Another process: learn its part of every epoch that is ordered, on the shared parameters."""
    set_threads(1)
    torch.set_flush_denormal(True)
    parameters = Parameters(**{name: tensors[name] for name in ("C", "H", "d", "output")})
    network = OutputParallel(settings.shape, parameters, SingleRank(), precision, settings.K)
    for name, tensor in tensors.items():
        setattr(network, name, tensor)
    while True:
        results.put(learn_part(network, train, settings, orders.get(), number, processes))
