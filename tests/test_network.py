"""The sharded update against plain autograd, its collectives, its numerical range and its fused passes."""

import threading

import numpy as np
import pytest
import torch

from nplm.errors import InputError
from nplm.neural import kernels
from nplm.neural.encoders.feed_forward import Shape
from nplm.neural.model import NetworkModel, read_model, write_model
from nplm.neural.network import JoinedArchitecture, JoinedNetwork, Parameters, free_parameters
from nplm.neural.ranks import SingleRank
from nplm.neural.shards import shard_range
from nplm.rows import complete_row
from nplm.scores import score
from nplm.streams import NO_TOKEN, Split

V = 23  # divisible by none of the numbers of ranks
SHAPES = {
    "direct": Shape(V, 4, 5, 3, True),
    "hidden only": Shape(V, 3, 6, 2, False),
    "no hidden layer": Shape(V, 5, 0, 4, True),
}
EPSILON, DECAY, K = 0.05, 0.01, 7


def network_of(shape: Shape, parameters: Parameters, ranks, precision: str, K: int, device="cpu") -> JoinedNetwork:
    return JoinedArchitecture(shape).network(parameters, ranks, precision, K, device)


def initial_parameters(shape: Shape, seed: int) -> Parameters:
    return JoinedArchitecture(shape).initial_parameters(seed)


class ThreadRanks:
    """Ranks as threads of one process: the collectives of nplm.neural.ranks, each noted in `calls`."""

    def __init__(self, rank: int, size: int, shared: dict) -> None:
        self.rank, self.size, self._shared, self.calls = rank, size, shared, []

    def _exchange(self, name, tensor, combine):
        self.calls.append((name, tuple(tensor.shape)))
        self._shared["slots"][self.rank] = tensor.clone()
        self._shared["barrier"].wait(timeout=30)
        result = combine(torch.stack(self._shared["slots"]))
        self._shared["barrier"].wait(timeout=30)
        tensor.copy_(result)

    def maximum_(self, tensor):
        self._exchange("max", tensor, lambda parts: parts.amax(dim=0))

    def start_sum_(self, tensor):
        total = tensor.clone()
        self._exchange("sum", total, lambda parts: parts.sum(dim=0))
        tensor.fill_(torch.nan)  # while the sum is on its way
        return lambda: tensor.copy_(total)


def on_ranks(size: int, work) -> list:
    """work(ranks) on every rank, one thread each; the results in rank order."""
    shared = {"slots": [None] * size, "barrier": threading.Barrier(size)}
    results = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = work(ThreadRanks(rank, size, shared))
        except BaseException:
            shared["barrier"].abort()
            raise

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result is not None for result in results), "a rank failed; see its traceback above"
    return results


def parameters_of(shape: Shape) -> Parameters:
    """Larger than the initial values, biases too, so that no gradient is near zero."""
    generator = torch.Generator().manual_seed(5)
    return {
        name: torch.randn(tensor.shape, generator=generator, dtype=torch.float64) * 0.5
        for name, tensor in initial_parameters(shape, seed=3).items()
    }


def batches(shape: Shape, number: int, k: int = K) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(9)
    return [
        (
            torch.randint(0, V, (k, shape.n - 1), generator=generator),
            torch.randint(0, V, (k,), generator=generator),
        )
        for _ in range(number)
    ]


def dense_update(shape: Shape, parameters: Parameters, contexts, words) -> tuple[torch.Tensor, Parameters]:
    """ln P of each example and the updated parameters, as the paper's equations say, by autograd on the dense model."""
    C, H, d = (parameters[name].clone().requires_grad_() for name in ("C", "H", "d"))
    U, W, b = (
        tensor.clone().requires_grad_()
        for tensor in parameters["output"].split([shape.h, shape.width - shape.h, 1], dim=1)
    )
    x = C[contexts].flatten(1)
    y = b[:, 0] + torch.tanh(d + x @ H.T) @ U.T
    if shape.direct:
        y = y + x @ W.T
    ln_prob = torch.log_softmax(y, dim=1)[torch.arange(len(words)), words]
    ln_prob.sum().backward()
    with torch.no_grad():
        for theta, decays in ((C, True), (H, True), (d, False), (U, True), (W, True), (b, False)):
            gradient = torch.zeros_like(theta) if theta.grad is None else theta.grad
            theta += EPSILON * (gradient - len(words) * DECAY * decays * theta)
        output = torch.cat([U, W, b], dim=1)
    return ln_prob.detach(), {"C": C.detach(), "H": H.detach(), "d": d.detach(), "output": output}


def assert_near(expected: Parameters, parameters: Parameters, tolerance: float) -> None:
    """Every parameter differs by no more than this share of the largest value of its matrix."""
    assert parameters.keys() == expected.keys()
    for name, tensor in expected.items():
        largest = tensor.abs().amax().item() if tensor.numel() else 0.0
        difference = (parameters[name].double() - tensor.double()).abs()
        assert (difference <= tolerance * largest).all(), name


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_updates_equal_autograd_on_the_dense_model(shape, ranks):
    """Loss of every example and all parameters after several updates, the last one of a smaller batch."""
    examples = batches(shape, 4) + batches(shape, 1, k=3)
    start = parameters_of(shape)

    def train(own_ranks):
        network = network_of(shape, start, own_ranks, "float64", K)
        losses = []
        for contexts, words in examples:
            losses.append(network.update(contexts, words, EPSILON, DECAY).clone())
        network.settle()
        return network, losses

    results = on_ranks(ranks, train)

    expected = start
    for step, (contexts, words) in enumerate(examples):
        ln_prob, expected = dense_update(shape, expected, contexts, words)
        for _, losses in results:
            torch.testing.assert_close(losses[step], ln_prob, rtol=1e-10, atol=1e-12)
    output = torch.cat([network.output.weights for network, _ in results])
    torch.testing.assert_close(output, expected["output"], rtol=1e-10, atol=1e-12)
    for network, _ in results:
        torch.testing.assert_close(network.encoder.C, expected["C"], rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(network.encoder.H, expected["H"], rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(network.encoder.d, expected["d"], rtol=1e-10, atol=1e-12)


def test_every_gradient_equals_autograd():
    """One update without decay is epsilon times the gradient: each parameter's, separately."""
    shape = SHAPES["direct"]
    start = parameters_of(shape)
    [(contexts, words)] = batches(shape, 1)
    C, H, d = (start[name].clone().requires_grad_() for name in ("C", "H", "d"))
    output = start["output"].clone().requires_grad_()
    x = C[contexts].flatten(1)
    y = torch.cat([torch.tanh(d + x @ H.T), x, torch.ones(K, 1, dtype=torch.float64)], dim=1) @ output.T
    (-torch.nn.functional.cross_entropy(y, words, reduction="sum")).backward()

    network = network_of(shape, start, SingleRank(), "float64", K)
    network.update(contexts, words, 1.0, 0.0)
    after = network.encoder.parts | {"output": network.output.weights}
    for name, theta in (("C", C), ("H", H), ("d", d), ("output", output)):
        change = after[name] - start[name]
        torch.testing.assert_close(change, theta.grad, rtol=1e-9, atol=1e-12, msg=lambda m, name=name: f"{name}: {m}")


@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives_of_an_update_and_identical_replicas(ranks):
    """Section 3.2: one SUM for normaliser and target, one for the hidden gradient; replicas in step."""
    shape = SHAPES["direct"]

    def train(own_ranks):
        network = network_of(shape, parameters_of(shape), own_ranks, "float32", K)
        for contexts, words in batches(shape, 3):
            network.update(contexts, words, EPSILON, DECAY)
        return network

    networks = on_ranks(ranks, train)
    once = [("sum", (2, K)), ("sum", (K, shape.width + 1))]
    for network in networks:
        assert network.output.ranks.calls == 3 * once
        for name in ("C", "H", "d"):
            own, first = (getattr(some.encoder, name) for some in (network, networks[0]))
            assert torch.equal(own, first), f"{name} differs between ranks"


@pytest.mark.parametrize("precision, tolerance", [("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 1e-2)])
def test_more_ranks_than_blocks_leave_the_last_ranks_without_rows(precision, tolerance):
    """|V| = 4 on 3 ranks: blocks of 2, 2 and none; the empty rank must not disturb the others."""
    shape = Shape(4, 2, 2, 2, True)
    start = initial_parameters(shape, 1)
    contexts, words = torch.tensor([[0], [3]]), torch.tensor([1, 3])

    def ln_prob(own_ranks):
        network = network_of(shape, start, own_ranks, precision, 2)
        before = network.update(contexts, words, EPSILON, DECAY).clone()
        return torch.cat([before, network.ln_prob(contexts, words)])

    alone, *shared = on_ranks(1, ln_prob) + on_ranks(3, ln_prob)
    for result in shared:
        torch.testing.assert_close(result, alone, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("ranks, rows", [(1, 23), (2, 23), (3, 23), (5, 23), (7, 4), (40, 17964)])
def test_shards_cover_every_row_once_in_order(ranks, rows):
    ranges = [shard_range(rank, ranks, rows) for rank in range(ranks)]
    assert [row for own in ranges for row in own] == list(range(rows))
    assert len(ranges[0]) == -(-rows // ranks)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
def test_extreme_logits_stay_finite(precision, ranks):
    """Logits of +-4e4: the probabilities are 0 and 1, and everything that is computed from them is a number.

    On three ranks the greatest are on one of them, and one has no rows.
    """
    shape = Shape(4, 2, 1, 1, False)
    parameters = {name: torch.zeros_like(tensor) for name, tensor in initial_parameters(shape, 1).items()}
    # The greatest logit is a sum of two numbers that bfloat16 holds; itself it is none.
    parameters["d"] += 100
    parameters["output"][:, 0] = torch.tensor([-39936, -10000, 10000, 39936.0])
    parameters["output"][:, 1] = torch.tensor([-110, 0, 0, 110.0])

    def update(own_ranks):
        network = network_of(shape, parameters, own_ranks, precision, 2)
        ln_prob = network.update(torch.tensor([[0], [1]]), torch.tensor([3, 0]), EPSILON, DECAY)
        network.settle()
        return network, ln_prob

    for network, ln_prob in on_ranks(ranks, update):
        assert ln_prob[0] == pytest.approx(0, abs=1e-6)
        assert ln_prob[1] == pytest.approx(-80092, rel=1e-2)
        for tensor in (network.encoder.C, network.encoder.H, network.encoder.d, network.output.weights):
            assert torch.isfinite(tensor).all()


@pytest.fixture(params=["compiled", "plain"])
def passes(request, monkeypatch) -> None:
    """The passes of an update as numba has them, and as plain torch does."""
    if request.param == "plain":
        monkeypatch.setattr(kernels, "compiled", lambda: None)


@pytest.mark.usefixtures("passes")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("precision, tolerance", [("float32", 1e-5), ("bfloat16", 0.02)])
def test_narrow_precision_follows_float64(shape, precision, tolerance):
    """A few updates in lower precision stay close to those in float64, relative to the size of each parameter.

    With the compiled passes, and with those of plain torch, which a GPU takes too.
    """
    networks = [network_of(shape, parameters_of(shape), SingleRank(), p, K) for p in ("float64", precision)]
    for contexts, words in batches(shape, 4) + batches(shape, 1, k=3):
        ln_prob = []
        for network in networks:
            ln_prob.append(network.update(contexts, words, EPSILON, DECAY).clone())
        torch.testing.assert_close(*ln_prob, rtol=tolerance, atol=tolerance)
    assert_near(*(network.gathered_parameters() for network in networks), tolerance)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("precision, tolerance", [("float32", 1e-4), ("bfloat16", 0.05)])
def test_a_gpu_computes_what_the_processor_does(shape, precision, tolerance):
    """ln P of every example over some updates, and the parameters after them."""
    networks = {
        device: network_of(shape, parameters_of(shape), SingleRank(), precision, K, device)
        for device in ("cpu", "cuda")
    }
    for contexts, words in batches(shape, 4) + batches(shape, 1, k=3):
        ln_prob = {}
        for device, network in networks.items():
            ln_prob[device] = network.update(contexts.to(device), words.to(device), EPSILON, DECAY).cpu()
        torch.testing.assert_close(ln_prob["cuda"], ln_prob["cpu"], rtol=tolerance, atol=tolerance)
    assert_near(*(network.gathered_parameters() for network in networks.values()), tolerance)


def results_of_passes(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """What every pass makes of the same random matrices, those of the output layer narrow."""
    generator = torch.Generator().manual_seed(2)

    def random(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator)

    found = {}
    C, contexts, dx = random(50, 4), torch.randint(0, 50, (6, 3), generator=generator), random(6, 12)
    found["gather"] = torch.empty(6, 12)
    kernels.gather_(C, contexts, 0.75, found["gather"])
    found["scatter_add"] = C
    kernels.scatter_add_(C, contexts, 0.75, dx)

    Z, d = random(6, 33), random(5)
    kernels.gather_(C, contexts, 0.75, Z[:, 20:-1])
    found["gather into columns"], found["transpose"] = Z, torch.empty(33, 6, dtype=dtype)
    kernels.transpose_(Z, found["transpose"])

    Y, Q = (random(1001, 6) * 10).to(dtype), torch.tensor([0.0, 0, -30, 30, 1e4, -1e4])
    Y[:, 4:] += Q[4:].to(dtype)
    targets, totals = torch.tensor([3, -1, 1000, 1001, 5, 0]), torch.empty(2, 6)
    kernels.exponentials_(Y, Q, targets, totals)
    found["exponentials"], found["sums"], found["target logits"] = Y.clone(), *totals
    found["ln_prob"] = torch.empty(6, dtype=torch.float64)
    found["extremes"] = torch.tensor(kernels.score_(totals, found["ln_prob"]))

    found["gradient dZ"], found["gradient E"] = torch.empty(6, 33), Y
    U = random(1001, 33).to(dtype)
    kernels.gradient_(random(6, 33).to(dtype), totals[0] + 1, targets, U, Y, found["gradient dZ"])
    found["scale_rows"] = torch.empty(6, 33, dtype=dtype)
    kernels.scale_rows_(Z, totals[0] + 1, 0.5, found["scale_rows"])
    found["through_tanh da"], found["through_tanh d"] = torch.empty(6, 5), d
    kernels.through_tanh_(random(6, 33), Z, 0.5, found["through_tanh da"], d)

    high, low = kernels.split(random(5, 33))
    kernels.decay_and_add_(high, low, random(5, 33).bfloat16(), 0.75)
    found["decay_and_add high"], found["decay_and_add"] = high, kernels.join(high, low)
    return found


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_passes_agree_with_plain_torch(dtype, threads, monkeypatch):
    """Every pass computes what torch does, to the rounding of its type, however the rows are shared out."""
    if kernels.compiled() is None:
        pytest.skip("numba's OpenMP threads are not to be had here")
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    fused = results_of_passes(dtype)
    monkeypatch.setattr(kernels, "compiled", lambda: None)
    for name, plain in results_of_passes(dtype).items():
        relative = 1e-2 if plain.dtype == torch.bfloat16 else 1e-6 if name == "decay_and_add" else 1e-5
        absolute = {"exponentials": 1e-30, "sums": 0, "decay_and_add": 1e-7, "decay_and_add high": 0}.get(name, 1e-6)
        torch.testing.assert_close(
            fused[name], plain, rtol=relative, atol=absolute, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.usefixtures("passes")
@pytest.mark.parametrize("word", [50, -1])
def test_words_outside_the_vocabulary_are_refused(word):
    with pytest.raises(IndexError):
        kernels.gather_(torch.ones(50, 4), torch.tensor([[word]]), 1.0, torch.empty(1, 4))


@pytest.mark.usefixtures("passes")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_exponentials_beyond_float32_show_in_their_sums(dtype):
    totals = torch.empty(2, 4)
    logits = torch.tensor([[200.0, 88.9, -200.0, torch.inf]] * 3).to(dtype)
    kernels.exponentials_(logits, torch.zeros(4), torch.zeros(4, dtype=torch.int64), totals)
    sums = totals[0]
    assert (sums[[0, 1, 3]] > 1e38).all()
    assert sums[2] < 1e-37


def test_a_split_matrix_joins_to_the_same_bits():
    master = torch.tensor([1.0, -1.0, 0.0, 1e-30, -3.3e38, 1.00390625, 0.1]) * torch.tensor([[1.0], [1 + 2**-20]])
    high, low = kernels.split(master)
    assert torch.equal(kernels.join(high, low), master)
    assert ((high.float() - master).abs() <= 2**-8 * master.abs()).all(), "not the nearest"


def model_of(shape: Shape, parameters: Parameters) -> NetworkModel:
    row = {"kind": "nplm", "n": shape.n, "h": shape.h, "m": shape.m, "direct": shape.direct}
    return NetworkModel(complete_row(row, {}, "row"), JoinedArchitecture(shape), parameters, "hash")


def test_network_sums_to_one_over_the_vocabulary():
    shape = SHAPES["direct"]
    parameters = {name: tensor * 5 for name, tensor in initial_parameters(shape, 4).items()}
    network = model_of(shape, parameters)
    contexts = np.array([[NO_TOKEN, NO_TOKEN, 3], [1, 2, 3], [22, 22, 22]], dtype=np.int32)
    for context in contexts:
        ln_prob = network.ln_prob(np.tile(context, (V, 1)), np.arange(V, dtype=np.int32))
        assert np.exp(ln_prob).sum() == pytest.approx(1, abs=1e-5)


def test_network_read_back_scores_the_same_whatever_the_batch(tmp_path):
    shape = SHAPES["direct"]
    network = model_of(shape, initial_parameters(shape, 4))
    write_model(tmp_path / "model.safetensors", network)
    words = np.random.default_rng(0).integers(0, V, 700).astype(np.uint16)
    split = Split("test", words, np.empty(0, np.uint16), "hash", V)
    before = score(network, split, "MLP").ln_prob
    after = score(read_model(tmp_path / "model.safetensors"), split, "MLP", batch=33).ln_prob
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_free_parameters_are_counted_as_in_section_2():
    """|V| (1 + n m + h) + h (1 + (n - 1) m) for the paper's AP News network."""
    shape = Shape(17964, 6, 60, 100, True)
    free = free_parameters(JoinedArchitecture(shape))
    assert free == 17964 * (1 + 6 * 100 + 60) + 60 * (1 + 5 * 100)
    assert sum(tensor.numel() for tensor in initial_parameters(shape, 1).values()) == free


def test_impossible_networks_and_precisions_are_refused():
    with pytest.raises(InputError, match="no input"):
        Shape(V, 3, 0, 2, False)
    with pytest.raises(InputError, match="n >= 2"):
        Shape(V, 1, 3, 2, True)
    with pytest.raises(InputError, match="float16"):
        JoinedArchitecture(SHAPES["direct"]).resolve_precision("float16")
