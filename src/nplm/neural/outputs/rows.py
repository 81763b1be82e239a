"""A rank's rows of the output layer [U | W | b], the big matrix of an update, and the products with both.

The big matrix E [rows, K] holds exponentials of logits, less S at each target once S is known: then it is -S times the
gradient at the logits. It is never divided by the normaliser S: 1/S goes into the narrow operand of the product for the
layer's gradient, and into the narrow result of the one for the hidden gradient. Output units lie along its rows, so
that the products of logits and of the layer's gradient read the big matrices as they lie in memory.

In bfloat16 the layer exists as the rounded operand of the products and the 16 bits that it lacks to float32: the update
of so large a matrix takes the time of moving it, which a float32 copy beside the bfloat16 one would lengthen.

`ProductRows` multiplies with torch, on any device. `TileRows` has bfloat16 products of its own, on the tile registers
of processors that have them (Intel AMX). Products there take less time than moving their operands to and fro, so each
block of rows is multiplied, exponentiated and multiplied again, or multiplied and added, while it is in the cache: two
sweeps over the layer instead of five over matrices of its size.
"""

from typing import Protocol

import numpy as np
import torch

from nplm.neural.kernels import (
    arrays,
    decay_and_add_,
    empty,
    exponentials_,
    gradient_,
    join,
    scale_rows_,
    split,
    tile_kernels,
    transpose_,
)

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}
"""Type of the operands of the output layer's products. Parameters and sums are float64 for float64, else float32."""


def master_type(precision: str) -> torch.dtype:
    """The type of the parameters."""
    return torch.float64 if precision == "float64" else torch.float32


class OutputRows(Protocol):
    """F = h + (n-1)m + 1 columns [U | W | b]; Z [K, F] = [a | x | 1].

    The methods are called in this order, once each; `exponentials` and what follows again after `greatest_logits`.
    """

    parts: dict[str, torch.Tensor]
    """What the layer consists of, by name; changed in place, and read anew at every call."""
    exponentials_phase: str
    """What the time in `exponentials` is called in a training's history."""

    @property
    def weights(self) -> torch.Tensor:
        """[U | W | b] in the parameters' type: [rows, F]."""
        ...

    def logits(self, Z: torch.Tensor, learn: bool = True) -> None:
        """Begin with these examples: their logits are known when `exponentials` ends. Z stays as it is to the end.

        Without `learn`, nothing follows `exponentials`.
        """
        ...

    def exponentials(self, Q: torch.Tensor, targets: torch.Tensor, totals: torch.Tensor) -> None:
        """E becomes exp(logits - Q). totals [2, K]: its column sums, and the targets' logits - Q.

        Q [K]; targets [K]: the row of each example's word, which counts as 0 where it is not one of these. What is
        beyond the range of float32 is so in the sums: infinite, or 1e38 and more; 0, or 1e-38 a row.
        """
        ...

    def greatest_logits(self) -> torch.Tensor:
        """[K]; -inf where there are no rows. After it `exponentials` can be called again."""
        ...

    def multiply(self) -> None:
        """Multiply E with the layer, on which nothing but `gradient` depends: the sums can travel meanwhile."""
        ...

    def gradient(self, S: torch.Tensor, targets: torch.Tensor, dZ: torch.Tensor) -> None:
        """dZ [K, F] becomes this layer's part of the gradient of ln P at Z, and E loses S at the targets.

        S [K]: the normalisers.
        """
        ...

    def ascend(self, S: torch.Tensor, epsilon: float, decay: float) -> None:
        """The layer becomes decay times itself, but for b, plus epsilon times its gradient."""
        ...


class ProductRows:
    """See OutputRows. `weights` [rows, F] are copied; `K` is the most examples at a time."""

    exponentials_phase = "exponentials"

    def __init__(self, weights: torch.Tensor, precision: str, K: int, device: str) -> None:
        dtype = PRECISIONS[precision]
        self._narrow = dtype != master_type(precision)
        parts = dict(zip(("high", "low"), split(weights.float()), strict=True)) if self._narrow else {"high": weights}
        self.parts = {}
        for name, part in parts.items():
            kind = torch.int16 if name == "low" else dtype
            self.parts[name] = empty(*part.shape, dtype=kind, device=device).copy_(part)
        high = self.parts["high"]
        if self._narrow:
            self._change = torch.empty_like(high)
        self._E = empty(len(high) * K, dtype=dtype, device=device)
        self._of_examples: dict[int, tuple[torch.Tensor, ...]] = {}

    @property
    def weights(self) -> torch.Tensor:
        return join(**self.parts) if self._narrow else self.parts["high"]

    def logits(self, Z: torch.Tensor, learn: bool = True) -> None:
        high, K = self.parts["high"], len(Z)
        if K not in self._of_examples:
            # The big matrix is cut from one buffer so that it is contiguous for every K.
            E = self._E[: len(high) * K].view(-1, K)
            self._of_examples[K] = (E, high.new_empty(Z.T.shape), high.new_empty(Z.shape), high.new_empty(Z.shape))
        self.E, self._Z_T, self._product, self._scaled_Z = self._of_examples[K]
        self._Z = Z
        transpose_(Z, self._Z_T)
        torch.mm(high, self._Z_T, out=self.E)

    def exponentials(self, Q: torch.Tensor, targets: torch.Tensor, totals: torch.Tensor) -> None:
        exponentials_(self.E, Q, targets, totals)

    def greatest_logits(self) -> torch.Tensor:
        torch.mm(self.parts["high"], self._Z_T, out=self.E)
        return self.E.amax(dim=0) if len(self.E) else torch.full_like(self._Z_T[0], -torch.inf)

    def multiply(self) -> None:
        torch.mm(self.E.T, self.parts["high"], out=self._product)

    def gradient(self, S: torch.Tensor, targets: torch.Tensor, dZ: torch.Tensor) -> None:
        gradient_(self._product, S, targets, self.parts["high"], self.E, dZ)

    def ascend(self, S: torch.Tensor, epsilon: float, decay: float) -> None:
        high = self.parts["high"]
        scale_rows_(self._Z, S, epsilon, self._scaled_Z)
        if self._narrow:
            torch.mm(self.E, self._scaled_Z, out=self._change)
            decay_and_add_(high, self.parts["low"], self._change, decay)
        else:
            # b, which does not decay, decays together with its change, and both are put right.
            self._scaled_Z[:, -1].mul_(decay)
            high.addmm_(self.E, self._scaled_Z, beta=decay).select(1, -1).div_(decay)


class TileRows:
    """See OutputRows: bfloat16 on processors with tile registers, where `tile_kernels` is not None."""

    exponentials_phase = "output_sweep"  # which is logits, exponentials, and what `multiply` does elsewhere

    def __init__(self, weights: torch.Tensor, K: int) -> None:
        self._kernels = tile_kernels()
        rows, F = weights.shape
        high, low = split(weights.float())
        self.parts = {
            "high": empty(rows, F, dtype=torch.bfloat16).copy_(high),
            "low": empty(rows, F, dtype=torch.int16).copy_(low),
        }
        self._padded = rows, F = self._whole_blocks(rows), self._whole_blocks(F)
        self._E = empty(rows * self._whole_blocks(K), dtype=torch.bfloat16).zero_()
        self._of_examples: dict[int, tuple[torch.Tensor, ...]] = {}
        threads = torch.get_num_threads()
        words = self._kernels.scratch_words(F, self._whole_blocks(K))
        self._scratch = empty(threads, words, dtype=torch.int32).zero_().view(torch.uint32)

    def _whole_blocks(self, size: int) -> int:
        return -(-size // self._kernels.BLOCK) * self._kernels.BLOCK

    @property
    def weights(self) -> torch.Tensor:
        return join(**self.parts)

    def logits(self, Z: torch.Tensor, learn: bool = True) -> None:
        K, (rows, F) = self._whole_blocks(len(Z)), self._padded
        if K not in self._of_examples:
            shares = len(self._scratch)
            words = (torch.zeros(size, dtype=torch.int32).view(torch.uint32) for size in ((F // 2, K), (K // 2, F)))
            floats = (torch.zeros(size) for size in (K, (shares, K), (shares, K, F)))
            self._of_examples[K] = (self._E[: rows * K].view(rows, K), *words, *floats)
        self.E, self._Z_columns, self._Z_rows, self._Q, self._sums, self._products = self._of_examples[K]
        self._Z, self._learn = Z, learn
        self._kernels.pack_columns(*arrays(Z, self._Z_columns))

    def exponentials(self, Q: torch.Tensor, targets: torch.Tensor, totals: torch.Tensor) -> None:
        high, Z = self.parts["high"], self._Z
        self._Q[: len(Q)] = Q
        self._kernels.exponentials(
            *arrays(high, self._Z_columns, self._Q, self.E, self._sums, self._products, self._scratch), self._learn
        )
        totals[0] = self._sums[0, : len(Z)]
        self._kernels.target_logits(*arrays(high, Z, Q, targets, totals[1]))

    def greatest_logits(self) -> torch.Tensor:
        # As exact as the logits: it is needed where they are so large that rounding it would not bring them back.
        high, Z = self.parts["high"].float(), self._Z.bfloat16().float()
        return (high @ Z.T).amax(dim=0) if len(high) else torch.full_like(Z[:, 0], -torch.inf)

    def multiply(self) -> None:
        pass  # `exponentials` has, while E was in the cache

    def gradient(self, S: torch.Tensor, targets: torch.Tensor, dZ: torch.Tensor) -> None:
        gradient_(self._products[0], S, targets, self.parts["high"], self.E, dZ)

    def ascend(self, S: torch.Tensor, epsilon: float, decay: float) -> None:
        self._kernels.pack_scaled_rows(*arrays(self._Z, S), np.float32(epsilon), *arrays(self._Z_rows))
        operands = arrays(self.parts["high"], self.parts["low"], self.E, self._Z_rows)
        self._kernels.ascend(*operands, np.float32(decay), *arrays(self._scratch))


def output_rows(weights: torch.Tensor, precision: str, K: int, device: str) -> OutputRows:
    """A layer of a copy of these rows of [U | W | b]; K is the most examples at a time."""
    if precision == "bfloat16" and device == "cpu" and tile_kernels():
        return TileRows(weights, K)
    return ProductRows(weights, precision, K, device)
