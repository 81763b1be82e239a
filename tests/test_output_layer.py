"""The output layer with torch's products and with those on tile registers, against the formulas in float64."""

import pytest
import torch

from nplm.neural import kernels
from nplm.neural.output_layer import OutputLayer, ProductLayer, TileLayer, output_layer

LAYERS = ["float64", "float32", "bfloat16", "tiles"]
# Relative to the largest value. In bfloat16 torch rounds every product's result, tiles only the operands.
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "bfloat16": 0.01, "tiles": 0.006}


def layer_of(kind: str, weights: torch.Tensor, K: int) -> OutputLayer:
    if kind != "tiles":
        return ProductLayer(weights, kind, K, "cpu")
    if not kernels.tile_kernels():
        pytest.skip("this processor has no tile registers")
    return TileLayer(weights, K)


def assert_near(found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    assert torch.isfinite(found).all()
    assert (found.double() - expected).abs().max() <= tolerance * expected.abs().max()


@pytest.fixture(params=[1, 3])
def threads(request, monkeypatch) -> int:
    monkeypatch.setattr(torch, "get_num_threads", lambda: request.param)
    return request.param


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize(
    "rows, F, K",
    [(1, 2, 1), (31, 15, 7), (32, 32, 32), (33, 33, 33), (255, 17, 64), (257, 64, 31), (300, 101, 128), (601, 40, 130)],
)
def test_an_update_follows_the_formulas(kind, rows, F, K):
    """Sums, the targets' logits, the hidden gradient and the new layer, of two updates and of fewer examples in one."""
    generator = torch.Generator().manual_seed(rows)

    def random(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    # of operands that all types hold
    weights = random(rows, F).bfloat16().double() / 4
    layer = layer_of(kind, weights if kind == "float64" else weights.float(), K)
    dtype = layer.weights.dtype
    epsilon, decay, tolerance = 0.01, 0.9, TOLERANCE[kind]
    for k in (K, max(K - 3, 1)):
        Z, Q = random(k, F).bfloat16().double() / 4, random(k).to(dtype).double()
        targets = torch.randint(-1, rows + 1, (k,), generator=generator)
        totals, dZ = torch.empty(2, k, dtype=dtype), torch.empty(k, F, dtype=dtype)
        weights = layer.weights.double().clone()
        layer.logits(Z.to(dtype))
        layer.exponentials(Q.to(dtype), targets, totals)
        layer.multiply()

        own = ((targets >= 0) & (targets < rows)).double()
        logits = Z @ weights.T - Q[:, None]
        target_logits = own * logits.gather(1, targets.clamp(0, rows - 1)[:, None])[:, 0]
        sums = logits.exp().sum(dim=1)
        assert_near(totals[0], sums, tolerance)
        assert_near(totals[1], target_logits, max(tolerance, 1e-30))
        S = 1.5 * sums  # as if another rank had rows too
        layer.gradient(S.to(dtype), targets, dZ)
        gradient = -logits.exp() / S[:, None]
        gradient[torch.arange(k), targets.clamp(0, rows - 1)] += own
        assert_near(dZ, gradient @ weights, tolerance)
        layer.ascend(S.to(dtype), epsilon, decay)
        expected = decay * weights + epsilon * gradient.T @ Z
        expected[:, -1] += (1 - decay) * weights[:, -1]
        assert_near(layer.weights, expected, min(tolerance, 1e-3))


@pytest.mark.parametrize("kind", LAYERS)
def test_exponentials_can_be_taken_anew_after_the_greatest_logits(kind):
    """As a training does where they leave float32: the gradient is of the second ones."""
    weights = torch.tensor([[200.0, 0.5], [-200, 0.25], [100, -1]], dtype=torch.float64)
    layer = layer_of(kind, weights if kind == "float64" else weights.float(), 2)
    dtype = layer.weights.dtype
    Z, targets = torch.tensor([[1.0, 1], [-1, 1]], dtype=dtype), torch.tensor([0, 0])
    totals, dZ = torch.empty(2, 2, dtype=dtype), torch.empty(2, 2, dtype=dtype)
    layer.logits(Z)
    layer.exponentials(torch.zeros(2, dtype=dtype), targets, totals)
    layer.multiply()
    assert kind == "float64" or (totals[0] > 1e38).all()
    Q = layer.greatest_logits().to(dtype)
    rounding = 5e-3 if kind in ("bfloat16", "tiles") else 1e-6
    greatest = torch.tensor([200.5, 200.25], dtype=dtype)
    torch.testing.assert_close(Q, greatest, rtol=rounding, atol=0)
    layer.exponentials(Q, targets, totals)
    layer.multiply()
    expected = (
        torch.exp(torch.tensor([200.5, 200.25], dtype=dtype) - Q) if kind == "tiles" else torch.ones(2, dtype=dtype)
    )
    torch.testing.assert_close(totals[0], expected, rtol=1e-6, atol=0)
    layer.gradient(totals[0], targets, dZ)
    torch.testing.assert_close(dZ, torch.tensor([[0, 0], [400, 0.25]], dtype=dtype), rtol=rounding, atol=200 * rounding)


def test_tiles_serve_where_they_can(monkeypatch):
    """bfloat16 on a processor that has them; all else is torch's."""
    weights = torch.ones(3, 2)
    assert isinstance(output_layer(weights, "float32", 2, "cpu"), ProductLayer)
    if kernels.tile_kernels():
        assert isinstance(output_layer(weights, "bfloat16", 2, "cpu"), TileLayer)
    monkeypatch.setattr(kernels, "compiled", lambda: None)
    assert isinstance(output_layer(weights, "bfloat16", 2, "cpu"), ProductLayer)


def test_what_is_not_a_number_in_scratch_does_not_reach_a_result():
    """The registers multiply padding too: zeros times what another use left there."""
    layer = layer_of("tiles", torch.ones(40, 5), 3)
    Z, totals, dZ = torch.ones(3, 5) / 2, torch.empty(2, 3), torch.empty(3, 5)
    results = []
    for _ in range(2):
        layer.logits(Z)
        layer.exponentials(torch.zeros(3), torch.tensor([0, 1, 39]), totals)
        layer.gradient(totals[0], torch.tensor([0, 1, 39]), dZ)
        layer.ascend(totals[0], 0.0, 1.0)
        results.append((totals.clone(), dZ.clone()))
        block = layer._kernels.BLOCK
        layer._scratch[:, : block * layer._padded[1]] = 0x7FC07FC0  # where `ascend` has its products
    for before, after in zip(*results, strict=True):
        assert torch.equal(before, after)
