"""The energy network against numpy and autograd, its ranks, its kernels, its numerical range and held-out words."""

from math import log

import numpy as np
import pytest
import torch
from test_network import on_ranks

from nplm.errors import InputError
from nplm.neural import energy
from nplm.neural.energy import EnergyShape
from nplm.neural.network import Parameters
from nplm.neural.ranks import SingleRank

V, K = 41, 7  # not whole blocks of words, on any number of ranks
SHAPE = EnergyShape(V, n=4, h=5, m=3)
HELD_OUT = EnergyShape(V, n=4, h=5, m=3, held_out=(3, 17, 40))
EPSILON, DECAY = 0.05, 0.01


def parameters_of(shape: EnergyShape, scale: float = 0.5) -> Parameters:
    """Larger than the initial values, biases too, so that no gradient is near zero."""
    generator = torch.Generator().manual_seed(5)
    return {
        name: torch.randn(size, generator=generator, dtype=torch.float64) * scale for name, size in shape.sizes.items()
    }


def examples(k: int = K) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(9)
    return torch.randint(0, V, (k, SHAPE.n - 1), generator=generator), torch.randint(0, V, (k,), generator=generator)


def network_of(shape: EnergyShape, parameters: Parameters, precision: str = "float64", ranks=None):
    return shape.network(parameters, ranks or SingleRank(), precision, K)


def ln_prob_of_all(network, context: torch.Tensor) -> torch.Tensor:
    """ln P of every word after one context."""
    return network.ln_prob(context.expand(V, -1), torch.arange(V))


def dense_ln_prob(parameters: Parameters, contexts: torch.Tensor) -> torch.Tensor:
    """[K, |V|] in nats: the formula of section 5.1, an x for every pair of context and word."""
    C, H, d, v, b = (parameters[name] for name in "CHdvb")
    x_context = C[contexts].flatten(1)[:, None].expand(-1, len(C), -1)
    x = torch.cat([x_context, C.expand(len(contexts), -1, -1)], dim=2)
    return torch.log_softmax(-(b + torch.tanh(d + x @ H.T) @ v), dim=1)


@pytest.fixture(params=["numba", "torch"])
def sweeps(request, monkeypatch):
    """Both ways to sweep over the words; the plain one in several chunks."""
    if request.param == "torch":
        monkeypatch.setattr(energy, "_sweeps", lambda tensor: None)
        monkeypatch.setattr(energy, "TRIPLES", 300)
    elif not energy._compiled(torch.float64):
        pytest.skip("numba has no OpenMP here")


def test_ln_prob_is_that_of_the_formula(sweeps):
    parameters, (contexts, words) = parameters_of(SHAPE), examples()
    C, H, d, v, b = (parameters[name].numpy() for name in "CHdvb")
    result = network_of(SHAPE, parameters).ln_prob(contexts, words)
    for k in range(K):
        E = [b[i] + v @ np.tanh(d + H @ np.concatenate([*C[contexts[k]], C[i]])) for i in range(V)]
        expected = -E[words[k]] - np.log(np.sum(np.exp(-np.array(E))))
        assert result[k].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("shape", [SHAPE, HELD_OUT])
def test_probabilities_sum_to_one(shape):
    network = network_of(shape, parameters_of(shape))
    for context in torch.tensor([[1, 2, 3], [40, 0, 17]]):
        assert ln_prob_of_all(network, context).exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_every_gradient_equals_autograd(sweeps):
    """One update without decay is epsilon times the gradient: each parameter's, separately."""
    start, (contexts, words) = parameters_of(SHAPE), examples()
    variables = {name: tensor.clone().requires_grad_() for name, tensor in start.items()}
    ln_prob = dense_ln_prob(variables, contexts)[torch.arange(K), words]
    ln_prob.sum().backward()

    network = network_of(SHAPE, start)
    torch.testing.assert_close(network.update(contexts, words, EPSILON, 0), ln_prob.detach(), rtol=0, atol=1e-12)
    for name, theta in network.parts().items():
        gradient = (theta - start[name]) / EPSILON
        torch.testing.assert_close(gradient, variables[name].grad, rtol=1e-9, atol=1e-9, msg=name)


def test_weights_decay_and_biases_do_not():
    start, (contexts, words) = parameters_of(SHAPE), examples()
    plain, decayed = network_of(SHAPE, start), network_of(SHAPE, start)
    plain.update(contexts, words, EPSILON, 0)
    decayed.update(contexts, words, EPSILON, DECAY)
    for name, theta in decayed.parts().items():
        less = EPSILON * DECAY * K * start[name] if name in ("C", "H", "v") else 0
        torch.testing.assert_close(theta, plain.parts()[name] - less, rtol=0, atol=1e-12)


def test_float32_is_near_float64(sweeps):
    start, (contexts, words) = parameters_of(SHAPE), examples()
    results = []
    for precision in ("float32", "float64"):
        network = network_of(SHAPE, start, precision)
        ln_prob = network.update(contexts, words, EPSILON, DECAY)
        results.append({"ln_prob": ln_prob} | {name: theta.double() for name, theta in network.parts().items()})
    torch.testing.assert_close(*results, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("precision, tolerance", [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("ranks", [2, 3, 42])
def test_ranks_agree_with_one_and_bitwise_with_each_other(precision, tolerance, ranks):
    """42 ranks: the last one has no words."""
    start, (contexts, words) = parameters_of(HELD_OUT), examples()

    def train(own_ranks):
        network = network_of(HELD_OUT, start, precision, own_ranks)
        losses = [network.update(contexts, words, EPSILON, DECAY).clone() for _ in range(2)]
        return network, torch.stack([*losses, network.ln_prob(contexts, words)])

    [(alone, expected)] = on_ranks(1, train)
    results = on_ranks(ranks, train)
    gradients = HELD_OUT.h * (K + 1 + HELD_OUT.m) + V * (HELD_OUT.m + 1)
    for network, losses in results:
        assert network.ranks.calls == 2 * [("sum", (2, K)), ("sum", (gradients,))] + [("sum", (2, K))]
        torch.testing.assert_close(losses, expected, rtol=tolerance, atol=tolerance)
        assert torch.equal(losses, results[0][1])
        for name, theta in network.parts().items():
            torch.testing.assert_close(theta, alone.parts()[name], rtol=tolerance, atol=tolerance)
            assert torch.equal(theta, results[0][0].parts()[name]), f"{name} differs between ranks"
    of_others = [network.gathered_parameters() for network, _ in results[1:]]
    assert of_others == [None] * (ranks - 1)
    assert set(results[0][0].gathered_parameters()) == set(HELD_OUT.sizes)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("scaled", ["b", "v", "H"])
def test_extreme_values_stay_finite(precision, ranks, scaled):
    """Energies of ±4e3 and tanhs of ±1: everything that is computed from them is a number."""
    start, (contexts, words) = parameters_of(SHAPE), examples()
    start[scaled] = start[scaled] * 4e3

    def update(own_ranks):
        network = network_of(SHAPE, start, precision, own_ranks)
        return network, network.update(contexts, words, 1e-3, DECAY)

    expected = dense_ln_prob(start, contexts)[torch.arange(K), words]
    for network, ln_prob in on_ranks(ranks, update):
        if scaled != "H":  # where both A and B are beyond ±20, their sum is not what the formula has
            torch.testing.assert_close(ln_prob, expected, rtol=1e-4, atol=1e-4)
        assert ln_prob.isfinite().all()
        assert all(theta.isfinite().all() for theta in network.parts().values())


def test_normalisers_beyond_float32_are_taken_anew():
    start, (contexts, words) = parameters_of(SHAPE), examples()
    expected = network_of(SHAPE, start).ln_prob(contexts, words)
    for shift in (200, -200):  # of every energy, which changes no probability
        shifted = start | {"b": start["b"] + shift}
        result = network_of(SHAPE, shifted, "float32").ln_prob(contexts, words)
        torch.testing.assert_close(result, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("h, K", [(1, 1), (5, 7), (9, 37)])
def test_numba_and_torch_agree(monkeypatch, dtype, h, K):
    if not (compiled := energy._compiled(dtype)):
        pytest.skip("numba has no OpenMP here")
    assert energy.ROWS == compiled.ROWS
    generator = torch.Generator().manual_seed(2)
    rows = 3 * energy.ROWS

    def random(*size):
        return torch.randn(*size, generator=generator, dtype=torch.float64).to(dtype)

    u, w, v, base = (2 * random(h, K)).exp(), (2 * random(rows, h)).exp(), random(h), random(rows)
    u[0, 0], w[0, 0] = np.exp(40), np.exp(40)

    def swept() -> list[torch.Tensor]:
        Y = torch.empty(rows, K, dtype=dtype)
        energy.logits_(u, w, v, base, Y)
        results = [torch.full(size, torch.nan, dtype=dtype) for size in ((h, K), (rows, h), (h,), (rows,))]
        energy.gradient_(u, w, v, Y, 1 + Y.abs().sum(dim=0), *results)
        return [Y, *results]

    by_numba = swept()
    monkeypatch.setattr(energy, "_sweeps", lambda tensor: None)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(by_numba, swept(), rtol=tolerance, atol=tolerance)


def test_the_number_of_threads_changes_rounding_only(monkeypatch):
    start, (contexts, words) = parameters_of(SHAPE), examples()
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        network = network_of(SHAPE, start)
        network.update(contexts, words, EPSILON, DECAY)
        results.append(network.parts())
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], rtol=1e-12, atol=1e-12)


def test_held_out_words_share_the_probability_of_rare():
    network = network_of(HELD_OUT, parameters_of(HELD_OUT))
    ln_prob = ln_prob_of_all(network, torch.tensor([1, 3, 2])).clone()
    as_rare = ln_prob_of_all(network, torch.tensor([1, 0, 2]))
    assert torch.equal(ln_prob, as_rare)
    assert torch.equal(ln_prob[[3, 17, 40]], ln_prob[[0, 0, 0]])

    known = [word for word in range(V) if word not in HELD_OUT.held_out]
    of_known = dense_ln_prob(parameters_of(HELD_OUT), torch.tensor([[1, 0, 2]]))[0, known].log_softmax(dim=0)
    of_known[0] -= log(4)
    torch.testing.assert_close(ln_prob[known], of_known, rtol=0, atol=1e-12)

    logits = energy.known_logits(HELD_OUT, parameters_of(HELD_OUT), torch.tensor([[1, 3, 2]]))[0].log_softmax(dim=0)
    logits[0] -= log(4)
    torch.testing.assert_close(logits[known], of_known, rtol=0, atol=1e-12)
    assert (logits[list(HELD_OUT.held_out)] == -torch.inf).all()


def test_an_update_changes_no_energy_of_held_out_words():
    start, (contexts, words) = parameters_of(HELD_OUT), examples()
    contexts[0, 0], words[0], words[1] = 17, 40, 0
    network, as_rare = (network_of(HELD_OUT, start) for _ in range(2))
    result = network.update(contexts, words, EPSILON, 0)
    rare = torch.tensor([word if word not in HELD_OUT.held_out else 0 for word in range(V)])
    assert torch.equal(result, as_rare.update(rare[contexts], rare[words], EPSILON, 0))
    held_out = list(HELD_OUT.held_out)
    for name, theta in network.parts().items():
        assert torch.equal(theta, as_rare.parts()[name])
        if name in ("C", "b"):
            assert torch.equal(theta[held_out], start[name][held_out])
            assert not torch.equal(theta[0], start[name][0])


def test_initial_values_are_near_uniform_and_of_one_generator():
    first, again, other = (SHAPE.initial_parameters(seed) for seed in (1, 1, 2))
    assert {name: tuple(theta.shape) for name, theta in first.items()} == SHAPE.sizes
    for name in "CHv":
        assert torch.equal(first[name], again[name]) and not torch.equal(first[name], other[name])
    ln_prob = ln_prob_of_all(network_of(SHAPE, first), torch.tensor([1, 2, 3]))
    assert (ln_prob + log(V)).abs().max() < 0.2


def test_training_finds_what_follows_a_word():
    contexts = torch.arange(1, 9)[:, None].expand(-1, 3)
    words = contexts[:, 0] * 5 % V
    shape = EnergyShape(V, n=4, h=30, m=10)
    network = network_of(shape, shape.initial_parameters(1), "float32")
    for _ in range(150):
        network.update(contexts, words, 0.1, 0)
    assert network.ln_prob(contexts, words).mean() > log(0.5)


def test_an_architecture_is_of_its_row():
    row = {"n": 4, "h": 5, "m": 3, "held_out": 0, "held_out_seed": 1}
    assert energy.architecture(row, V) == SHAPE
    held_out = energy.architecture(row | {"held_out": 5}, V).held_out
    assert held_out == energy.drawn_words(V, 5, 1) != energy.drawn_words(V, 5, 2)
    assert len(set(held_out)) == 5 and all(4 <= word < 20 for word in held_out)
    with pytest.raises(InputError, match="hold out fewer"):
        energy.architecture(row | {"held_out": 17}, V)
    assert [SHAPE.resolve_precision(name) for name in ("auto", "float32", "float64")] == [
        "float32",
        "float32",
        "float64",
    ]
    with pytest.raises(InputError, match="use auto, float32, float64"):
        SHAPE.resolve_precision("bfloat16")
    for wrong in ({"h": 0}, {"n": 1}, {"held_out": (0,)}, {"held_out": (V,)}, {"held_out": (2, 2)}):
        with pytest.raises(InputError):
            EnergyShape(**{"vocabulary_size": V, "n": 4, "h": 5, "m": 3} | wrong)
    parameters = SHAPE.initial_parameters(1)
    assert SHAPE.from_file(SHAPE.to_file(parameters)) == parameters
    assert 4 * sum(theta.numel() for theta in parameters.values()) < SHAPE.least_memory(K, 1)
