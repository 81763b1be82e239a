"""Training on another device than the processor, as on a GPU: everything is where it is used."""

import numpy as np
import pytest
import torch
from second_device import SECOND_DEVICE, OnTwoDevices
from test_network import SHAPES, V
from test_training import Interference

from nplm.neural import kernels
from nplm.neural.encoders.feed_forward import Shape
from nplm.neural.network import JoinedArchitecture
from nplm.neural.ranks import SingleRank
from nplm.neural.shared_memory import SharedMemoryTraining
from nplm.neural.training import Interrupted, Settings, Training
from nplm.streams import Split

EXAMPLES = 16 * 8
SECONDS = {"tokens_per_second", "peak_memory_mb"}


def training(device: str, shape: Shape, precision: str, folder, monitor, kind=Training, **options) -> Training:
    stream = np.random.default_rng(1).integers(0, V, EXAMPLES + 300).astype(np.uint8)
    train, valid = (
        Split(name, tokens, np.zeros(0, np.uint8), "hash", V)
        for name, tokens in (("train", stream[300:]), ("valid", stream[:300]))
    )
    settings = Settings(JoinedArchitecture(shape), 1, 0.05, 1e-8, 1e-4, 8, precision, device)
    return kind(settings, train, valid, SingleRank(), 1, folder, monitor, **options)


def history_and_best(training: Training) -> tuple[list[dict], dict]:
    """What a training came to, without what differs from run to run."""
    history = [
        {name: value for name, value in record.items() if name not in SECONDS and not name.startswith("seconds")}
        for record in training.progress.history
    ]
    return history, training.best


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float64"])
def test_a_second_device_trains_as_the_processor_does(tmp_path, monkeypatch, shape, precision):
    """To the same bits, where both take the passes of plain torch; interrupted and continued on the second device."""
    monkeypatch.setattr(kernels, "compiled", lambda: None)
    monkeypatch.setattr("nplm.neural.training.CONTROL_INTERVAL", 4)  # of the 16 updates of an epoch
    on_processor = training("cpu", shape, precision, tmp_path, Interference(0, None))
    on_processor.run(2, 0)

    monitor = Interference(2, lambda: setattr(interrupted, "_stop", True))
    with OnTwoDevices() as devices:
        interrupted = training(SECOND_DEVICE, shape, precision, tmp_path, monitor)
        assert interrupted.network.encoder.C.device.type == SECOND_DEVICE
        with pytest.raises(Interrupted):
            interrupted.run(2, 0)
        continued = training(SECOND_DEVICE, shape, precision, tmp_path, monitor)
        assert 0 < continued.progress.position < EXAMPLES
        parameters = continued.run(2, 0)
    assert devices.operations > 1000

    (history, best), (expected_history, expected_best) = map(history_and_best, (continued, on_processor))
    assert history == expected_history
    assert parameters is continued.best
    for name, tensor in best.items():
        assert tensor.device.type == "cpu"
        assert torch.equal(tensor, expected_best[name])


def test_a_training_on_shared_memory_of_one_process_runs_on_a_second_device(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "compiled", lambda: None)
    arguments = (SHAPES["direct"], "float32", tmp_path, Interference(0, None), SharedMemoryTraining)
    on_processor = training("cpu", *arguments, processes=1)
    on_processor.run(2, 0)
    with OnTwoDevices():
        on_second = training(SECOND_DEVICE, *arguments, processes=1)
        on_second.run(2, 0)
    (history, best), (expected_history, expected_best) = map(history_and_best, (on_second, on_processor))
    assert history == expected_history
    assert all(torch.equal(tensor, expected_best[name]) for name, tensor in best.items())


def test_logits_beyond_float32_are_taken_anew_on_a_second_device(monkeypatch):
    monkeypatch.setattr(kernels, "compiled", lambda: None)
    architecture = JoinedArchitecture(SHAPES["direct"])
    parameters = architecture.initial_parameters(1)
    parameters["output"] *= 1e5
    contexts, words = torch.arange(12).view(4, 3), torch.arange(4)
    expected = architecture.network(parameters, SingleRank(), "float32", 4).ln_prob(contexts, words)
    assert expected.min() < -100
    with OnTwoDevices():
        network = architecture.network(parameters, SingleRank(), "float32", 4, SECOND_DEVICE)
        found = network.ln_prob(contexts.to(SECOND_DEVICE), words.to(SECOND_DEVICE)).cpu()
    assert torch.equal(found, expected)


def test_tensors_of_two_devices_are_refused():
    """What the test above rests on."""
    with OnTwoDevices():
        there = torch.ones(3, device=SECOND_DEVICE)
        with pytest.raises(RuntimeError, match="two devices"):
            there + torch.ones(3)
        with pytest.raises(RuntimeError, match="two devices"):
            torch.zeros(()).add_(there.sum())
        with pytest.raises(RuntimeError, match="two devices"):
            torch.stack([there.sum(), torch.zeros(())])
        assert (there + torch.tensor(1.0)).tolist() == [2, 2, 2]
        assert there[torch.tensor([0, 2])].tolist() == [1, 1]
        assert there.cpu().device.type == "cpu"
