"""One update of section 3.2: every rank owns some output units; the rest of the network is replicated.

Written once for one rank and for many. `forward` and `update` are the two halves of the paper's algorithm; each rank
calls both with the same examples. Communication per update: Allreduce MAX over [K], SUM over [2, K] (normalisers and
the targets' logits), SUM over [K, h + (n-1)m + 1] (gradient at the hidden units and the features).

Gradients are added to the parameters where they arise. The big matrix [K, |V|/M] exists once: logits, then
exponentials in place. It is never divided by the normaliser S: 1/S goes into the narrow operand of the product for
the output layer's gradient, and into the narrow result of the one for the hidden gradient.
"""

import time
from collections import defaultdict

import torch

from nplm.errors import InputError
from nplm.neural.kernels import decay_and_add_, exponentials_, row_maximum
from nplm.neural.network import Parameters, Shape
from nplm.neural.ranks import Ranks
from nplm.neural.shards import shard_range

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}
"""Type of the operands of the output layer's products. Parameters and sums are float64 for float64, else float32."""


def resolve_precision(precision: str, device: str = "cpu") -> str:
    """`auto` becomes bfloat16 where the processor (or GPU) multiplies it natively, float32 elsewhere."""
    if precision not in ("auto", *PRECISIONS):
        raise InputError(f"precision '{precision}' is unknown; use auto, {', '.join(PRECISIONS)}")
    if precision != "auto":
        return precision
    if device == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        native = torch.cpu.get_capabilities().get("avx512_bf16", False)
    return "bfloat16" if native else "float32"


class PhaseSeconds(defaultdict):
    """Seconds by phase: each `lap` gives the time since the one before to the phase it names."""

    def __init__(self) -> None:
        super().__init__(float)
        self._last = time.perf_counter()

    def start(self) -> None:
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self[phase] += now - self._last
        self._last = now


class OutputParallel:
    """A network of which this rank owns the rows `shard_range(rank, ranks, |V|)` of the output layer [U | W | b].

    `parameters` are the whole network's; this rank's copy is made here. `K` is the most examples at a time.
    """

    def __init__(
        self, shape: Shape, parameters: Parameters, ranks: Ranks, precision: str, K: int, device="cpu"
    ) -> None:
        self.shape = shape
        self.ranks = ranks
        self.rows = shard_range(ranks.rank, ranks.size, shape.vocabulary_size)
        self.seconds = PhaseSeconds()
        operand_type = PRECISIONS[precision]
        master_type = torch.float64 if precision == "float64" else torch.float32

        def own(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(device=device, dtype=master_type, copy=True).contiguous()

        self.C, self.H, self.d = own(parameters.C), own(parameters.H), own(parameters.d)
        self.output = own(parameters.output[self.rows.start : self.rows.stop])
        self.narrow = operand_type != master_type
        self.output_operand = self.output.to(operand_type) if self.narrow else self.output

        def empty(*size: int, dtype=master_type) -> torch.Tensor:
            return torch.empty(*size, dtype=dtype, device=device)

        self._Z = empty(K, shape.output_width)
        self._Z[:, -1] = 1  # the input of the biases
        self._Z_operand = empty(K, shape.output_width, dtype=operand_type)
        self._Y = empty(K, len(self.rows), dtype=operand_type)
        self._Q = empty(K)
        self._change = empty(*self.output.shape, dtype=operand_type) if self.narrow else None

    def forward(self, contexts: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """ln P(word | context) in nats, float64 [k], on every rank. contexts [k, n-1] and words [k] int64, k <= K."""
        k, h, width = len(words), self.shape.h, self.shape.input_width
        lap = self.seconds.lap
        self.seconds.start()

        self._contexts = contexts
        self._x = self.C[contexts].view(k, width)
        Z = self._Z[:k]
        lap("gather")
        if h:
            Z[:, :h] = torch.tanh(torch.addmm(self.d, self._x, self.H.T))
        if self.shape.direct:
            Z[:, h:-1] = self._x
        lap("hidden")

        Y = self._Y[:k]
        torch.mm(self._operand(Z), self.output_operand.T, out=Y)
        lap("output_product")
        Q = self._Q[:k]
        row_maximum(Y, Q)
        lap("exponentials")
        self.ranks.maximum_(Q)
        lap("communication")

        self._owned, self._targets = self._owned_targets(words)
        sums = torch.zeros(2, k, dtype=Z.dtype, device=Z.device)  # normalisers S, and the targets' logits
        sums[1, self._owned] = Y[self._owned, self._targets].to(Z.dtype)
        exponentials_(Y, Q, sums[0])
        lap("exponentials")
        self.ranks.sum_(sums)
        lap("communication")
        self._S = sums[0]
        return (sums[1] - Q).double() - torch.log(self._S.double())

    def update(self, epsilon: float, weight_decay: float) -> None:
        """Ascend the summed gradient of the examples that `forward` has just seen.

        theta <- theta + epsilon * sum over examples of (d ln P / d theta - weight_decay * theta), without decay on the
        biases b and d (section 2). epsilon: the learning rate per example.
        """
        k, h = len(self._S), self.shape.h
        lap = self.seconds.lap
        self.seconds.start()
        decay = 1 - epsilon * weight_decay * k
        E, Z = self._Y[:k], self._Z[:k]

        # d ln P / d (a, x) of this rank's output units: the target's row less the expected row
        dZ = torch.mm(E, self.output_operand).to(Z.dtype)
        dZ.div_(self._S.neg()[:, None])
        dZ[self._owned] += self.output[self._targets]
        lap("hidden_gradient")
        finish_sum = self.ranks.start_sum_(dZ)
        lap("communication")

        self._update_output(E, Z, epsilon, decay)
        lap("output_update")
        finish_sum()
        lap("communication")

        x, a = self._x, Z[:, :h]
        dx = dZ[:, h:-1] if self.shape.direct else torch.zeros_like(x)
        if h:
            da = dZ[:, :h] * (1 - a * a)
            dx = torch.addmm(dx, da, self.H)
            self.H.addmm_(da.T, x, beta=decay, alpha=epsilon)
            self.d.add_(da.sum(dim=0), alpha=epsilon)
        lap("hidden_update")
        self.C.mul_(decay)
        self.C.index_add_(0, self._contexts.reshape(-1), dx.reshape(-1, self.shape.m), alpha=epsilon)
        lap("feature_update")

    def gathered_parameters(self) -> Parameters | None:
        """A copy of the whole network's parameters on rank 0 of the CPU, None on the other ranks."""
        output = self.ranks.gather_rows(self.output.cpu())
        if output is None:
            return None
        return Parameters(C=self.C, H=self.H, d=self.d, output=output).map(lambda tensor: tensor.cpu().clone())

    def _update_output(self, E: torch.Tensor, Z: torch.Tensor, epsilon: float, decay: float) -> None:
        scaled = self._operand(Z * (-epsilon / self._S)[:, None])
        if self.narrow:
            torch.mm(E.T, scaled, out=self._change)
            decay_and_add_(self.output, self._change, decay, self.output_operand)
        else:
            b = self.output[:, -1].clone()
            self.output.addmm_(E.T, scaled, beta=decay)
            self.output[:, -1].add_(b, alpha=1 - decay)
        self.output.index_add_(0, self._targets, Z[self._owned], alpha=epsilon)
        if self.narrow:
            self.output_operand[self._targets] = self.output[self._targets].to(self.output_operand.dtype)

    def _operand(self, Z: torch.Tensor) -> torch.Tensor:
        return self._Z_operand[: len(Z)].copy_(Z) if self.narrow else Z

    def _owned_targets(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Which examples have their target on this rank, and the local rows of those targets."""
        owned = torch.nonzero((words >= self.rows.start) & (words < self.rows.stop))[:, 0]
        return owned, words[owned] - self.rows.start
