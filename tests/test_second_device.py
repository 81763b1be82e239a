"""Training on another device than the processor, as on a GPU: everything is where it is used."""

import numpy as np
import pytest
import torch
from second_device import SECOND_DEVICE, OnTwoDevices

from nplm.neural import kernels
from nplm.neural.network import Shape
from nplm.neural.ranks import SingleRank
from nplm.neural.train import Interrupted, Settings, Training
from nplm.streams import Split

V = 23
SHAPES = {
    "direct": Shape(V, 4, 5, 3, True),
    "hidden only": Shape(V, 3, 6, 2, False),
    "no hidden layer": Shape(V, 5, 0, 4, True),
}
SECONDS = {"tokens_per_second", "peak_memory_mb"}


class Interruption:
    """A monitor; it calls `act` once, in the middle of the second epoch."""

    def __init__(self) -> None:
        self.act = None

    def line(self, text) -> None:
        pass

    def examples(self, epoch, learned, total, train_perplexity) -> None:
        if self.act and epoch == 2 and learned < total:
            self.act()
            self.act = None


def training(device: str, shape: Shape, precision: str, folder, monitor) -> Training:
    stream = np.random.default_rng(1).integers(0, V, 16 * 8 + 300).astype(np.uint8)
    train, valid = (
        Split(name, tokens, np.zeros(0, np.uint8), "hash", V)
        for name, tokens in (("train", stream[300:]), ("valid", stream[:300]))
    )
    settings = Settings(shape, 1, 0.05, 1e-8, 1e-4, 8, precision, device)
    return Training(settings, train, valid, SingleRank(), 1, folder, monitor)


def history_and_best(training: Training) -> tuple[list[dict], dict]:
    """What a training came to, without what differs from run to run."""
    history = [
        {name: value for name, value in record.items() if name not in SECONDS and not name.startswith("seconds")}
        for record in training.progress.history
    ]
    return history, vars(training.best)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float64"])
def test_a_second_device_trains_as_the_processor_does(tmp_path, monkeypatch, shape, precision):
    """To the same bits, where both take the passes of plain torch; interrupted and continued on the second device."""
    monkeypatch.setattr(kernels, "compiled", lambda: None)
    monkeypatch.setattr("nplm.neural.train.CONTROL_INTERVAL", 8)  # of the 16 updates of an epoch
    on_processor = training("cpu", shape, precision, tmp_path, Interruption())
    on_processor.run(2, 0)

    monitor = Interruption()
    with OnTwoDevices() as devices:
        interrupted = training(SECOND_DEVICE, shape, precision, tmp_path, monitor)
        assert interrupted.network.C.device.type == SECOND_DEVICE
        monitor.act = lambda: setattr(interrupted, "_stop", True)
        with pytest.raises(Interrupted):
            interrupted.run(2, 0)
        continued = training(SECOND_DEVICE, shape, precision, tmp_path, monitor)
        assert continued.progress.position > 0
        network = continued.run(2, 0)
    assert devices.operations > 1000

    (history, best), (expected_history, expected_best) = map(history_and_best, (continued, on_processor))
    assert history == expected_history
    assert network.parameters is continued.best
    for name, tensor in best.items():
        assert tensor.device.type == "cpu"
        assert torch.equal(tensor, expected_best[name])


def test_tensors_of_two_devices_are_refused():
    """What the test above rests on."""
    with OnTwoDevices():
        there = torch.ones(3, device=SECOND_DEVICE)
        with pytest.raises(RuntimeError, match="two devices"):
            there + torch.ones(3)
        with pytest.raises(RuntimeError, match="two devices"):
            torch.zeros(()).add_(there.sum())
        assert (there + torch.tensor(1.0)).tolist() == [2, 2, 2]
        assert there.cpu().device.type == "cpu"
