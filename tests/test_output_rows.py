"""The output layer with torch's products and with those on tile registers, against the formulas in float64."""

import ctypes
import math
import mmap
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from nplm.neural import kernels
from nplm.neural.kernels import arrays
from nplm.neural.outputs.rows import OutputRows, ProductRows, TileRows, output_rows

LAYERS = ["float64", "float32", "bfloat16", "tiles"]
# Relative to the largest value. In bfloat16 torch rounds every product's result, tiles only the operands.
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "bfloat16": 0.01, "tiles": 0.006}


def layer_of(kind: str, weights: torch.Tensor, K: int) -> OutputRows:
    if kind != "tiles":
        return ProductRows(weights, kind, K, "cpu")
    if not kernels.tile_kernels():
        pytest.skip("this processor has no tile registers")
    return TileRows(weights, K)


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
    """Sums, the targets' logits, the hidden gradient and the new layer; the second update has fewer examples."""
    generator = torch.Generator().manual_seed(rows)

    def random(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    # of operands that all types hold
    weights = random(rows, F).bfloat16().double() / 4
    layer = layer_of(kind, weights if kind == "float64" else weights.float(), K)
    dtype = layer.weights.dtype
    decay, tolerance = 0.9, TOLERANCE[kind]
    for k in (K, max(K - 3, 1), K):
        Z, Q = random(k, F).bfloat16().double() / 4, random(k).to(dtype).double()
        targets = torch.randint(-1, rows + 1, (k,), generator=generator)
        totals, dZ = torch.empty(2, k, dtype=dtype), torch.empty(k, F, dtype=dtype)
        weights = layer.weights.double().clone()
        layer.logits(Z.to(dtype), learn=False)
        layer.exponentials(Q.to(dtype), targets, totals)
        scored = totals.clone()
        layer.logits(Z.to(dtype))
        layer.exponentials(Q.to(dtype), targets, totals)
        layer.multiply()
        assert torch.equal(scored, totals)

        own = ((targets >= 0) & (targets < rows)).double()
        logits = Z @ weights.T - Q[:, None]
        target_logits = own * logits.gather(1, targets.clamp(0, rows - 1)[:, None])[:, 0]
        sums = logits.exp().sum(dim=1)
        assert_near(totals[0], sums, tolerance)
        assert_near(totals[1], target_logits, tolerance)
        S = 1.5 * sums  # as if another rank had rows too
        layer.gradient(S.to(dtype), targets, dZ)
        gradient = -logits.exp() / S[:, None]
        gradient[torch.arange(k), targets.clamp(0, rows - 1)] += own
        assert_near(dZ, gradient @ weights, tolerance)
        # The change as a whole, and where no target is: much smaller, as it is all over U in a training.
        change = gradient.T @ Z
        epsilon = float(0.1 / change.abs().max().clamp(min=1e-9))
        layer.ascend(S.to(dtype), epsilon, decay)
        decayed = decay * weights
        decayed[:, -1] = weights[:, -1]
        found = (layer.weights.double() - decayed) / epsilon
        rounding = 2.0**-22 * weights.abs().max() / epsilon if dtype == torch.float32 else 0
        for some in (torch.ones(rows, dtype=bool), ~torch.isin(torch.arange(rows), targets)):
            if some.any():
                difference = (found - change)[some].abs().max()
                assert difference <= 2 * tolerance * change[some].abs().max() + rounding


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
    assert isinstance(output_rows(weights, "float32", 2, "cpu"), ProductRows)
    if kernels.tile_kernels():
        assert isinstance(output_rows(weights, "bfloat16", 2, "cpu"), TileRows)
    monkeypatch.setattr(kernels, "compiled", lambda: None)
    assert isinstance(output_rows(weights, "bfloat16", 2, "cpu"), ProductRows)


def test_what_is_not_a_number_in_scratch_does_not_reach_a_result():
    """The registers multiply padding too: zeros times what another use left there."""
    layer = layer_of("tiles", torch.ones(40, 5), 3)
    Z, totals, dZ = torch.ones(3, 5) / 2, torch.empty(2, 3), torch.empty(3, 5)
    results = []
    for _ in range(2):
        layer.logits(Z)
        layer.exponentials(torch.zeros(3), torch.tensor([0, 1, 39]), totals)
        layer.gradient(totals[0], torch.tensor([0, 1, 39]), dZ)
        layer.ascend(totals[0], 1e-3, 1.0)
        results.append((totals.clone(), dZ.clone(), layer.weights.clone()))
        layer.parts["high"].fill_(1)
        layer.parts["low"].fill_(0)
        block = layer._kernels.BLOCK
        layer._scratch[:, : block * layer._padded[1]] = 0x7FC07FC0  # where `ascend` has its products
    for before, after in zip(*results, strict=True):
        assert torch.equal(before, after)


def guarded(array: np.ndarray) -> np.ndarray:
    """A copy that ends where memory ends: the byte behind it belongs to nobody."""
    pages = -(-array.nbytes // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + pages * mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
    copy = np.frombuffer(memory, array.dtype, array.size, pages * mmap.PAGESIZE - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("rows", [1, 2, 31, 32, 33, 63, 64, 256, 257])
@pytest.mark.parametrize("F", [2, 15, 33, 101])
def test_tiles_read_and_write_nothing_beyond_the_layer(rows, F):
    """The registers take 32 columns at a time of rows that lie one behind another: the last must not be read so."""
    layer = layer_of("tiles", torch.ones(rows, F) / 8, 3)
    layer.parts = {name: torch.from_numpy(guarded(*arrays(part))) for name, part in layer.parts.items()}
    layer.parts["high"] = layer.parts["high"].view(torch.bfloat16)
    totals, dZ, targets = torch.empty(2, 3), torch.empty(3, F), torch.tensor([0, 1, 2])
    layer.logits(torch.ones(3, F))
    layer.exponentials(torch.zeros(3), targets, totals)
    torch.testing.assert_close(totals[0], torch.full((3,), rows * math.exp(F / 8)), rtol=1e-4, atol=0)
    layer.gradient(totals[0], targets, dZ)
    layer.ascend(totals[0], 0.0, 0.5)
    assert (layer.weights[:, :-1] == 1 / 16).all() and (layer.weights[:, -1] == 1 / 8).all()


@pytest.mark.parametrize("K", [1, 2, 31, 32, 33])
def test_operands_on_tiles_are_rounded_to_the_nearest(K):
    layer = layer_of("tiles", torch.ones(4, 5), K)
    generator = torch.Generator().manual_seed(K)
    Z, S = torch.randn(K, 5, generator=generator), torch.rand(K, generator=generator) + 1
    layer.logits(Z)
    columns = layer._Z_columns.view(torch.bfloat16).view(-1, layer._Z_columns.shape[1], 2)  # [f/2, k, f%2]
    columns = columns.permute(0, 2, 1).reshape(-1, columns.shape[1])
    assert torch.equal(columns[:5, :K], Z.T.bfloat16())
    assert not columns[5:].any() and not columns[:, K:].any()
    layer._kernels.pack_scaled_rows(*arrays(Z, S), np.float32(0.5), *arrays(layer._Z_rows))
    rows = layer._Z_rows.view(torch.bfloat16).view(-1, layer._Z_rows.shape[1], 2)
    rows = rows.permute(0, 2, 1).reshape(-1, rows.shape[1])
    torch.testing.assert_close(rows[:K, :5], (-0.5 * Z / S[:, None]).bfloat16(), rtol=2**-8, atol=0)
    assert not rows[K:].any() and not rows[:, 5:].any()


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "tiles"])
def test_a_layer_works_on_the_parts_that_it_is_given(kind):
    """As processes on shared memory do: what one of two layers learns, the other has."""
    layers = [layer_of(kind, weights, 2) for weights in (torch.ones(40, 3), torch.zeros(40, 3))]
    layers[1].parts = layers[0].parts
    Z, totals, targets = torch.ones(2, 3), torch.empty(2, 2), torch.tensor([0, 39])
    layers[0].logits(Z)
    layers[0].exponentials(torch.zeros(2), targets, totals)
    layers[0].multiply()
    layers[0].gradient(totals[0], targets, torch.empty(2, 3))
    layers[0].ascend(totals[0], 0.5, 1.0)
    assert layers[1].weights[0, 0] > 1.4
    assert torch.equal(*(layer.weights for layer in layers))
    layers[1].logits(Z)
    layers[1].exponentials(torch.zeros(2), targets, totals)
    assert totals[1, 0] > 4.2


@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_of_no_rows_adds_nothing(kind):
    layer = layer_of(kind, torch.ones(0, 3, dtype=torch.float64 if kind == "float64" else torch.float32), 2)
    dtype = layer.weights.dtype
    totals, dZ, targets = torch.ones(2, 2, dtype=dtype), torch.ones(2, 3, dtype=dtype), torch.tensor([0, 1])
    layer.logits(torch.ones(2, 3, dtype=dtype))
    layer.exponentials(torch.zeros(2, dtype=dtype), targets, totals)
    layer.multiply()
    assert (totals == 0).all()
    layer.gradient(torch.ones(2, dtype=dtype), targets, dZ)
    assert (dZ == 0).all()
    assert (layer.greatest_logits() == -torch.inf).all()
    layer.ascend(torch.ones(2, dtype=dtype), 0.5, 1.0)


def test_no_tiles_where_numba_may_not_use_them():
    """LLVM would end the process."""
    lines = (
        "from nplm.neural.outputs.rows import output_rows; import torch;"
        "layer = output_rows(torch.ones(3, 2), 'bfloat16', 2, 'cpu'); print(type(layer).__name__)"
    )
    environment = os.environ | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    run = subprocess.run([sys.executable, "-c", lines], env=environment, capture_output=True, text=True)
    assert run.stdout == "ProductRows\n", run.stderr
