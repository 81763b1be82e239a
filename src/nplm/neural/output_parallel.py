"""One update of section 3.2: every rank owns some output units; the rest of the network is replicated.

Written once for one rank and for many. `forward` and `update` are the two halves of the paper's algorithm; each rank
calls both with the same examples. Communication per update: Allreduce SUM over [2, K] (normalisers and the targets'
logits), SUM over [K, h + (n-1)m + 1] (gradient at the hidden units and the features). Exponentials are of the logits
as they are, as in the paper; only where a normaliser comes near the ends of float32 are they taken anew, of the logits
less their maximum.

The big matrix [|V|/M, K] exists once: logits, then exponentials in place, then (less S at each target) -S times the
gradient at the logits. It is never divided by the normaliser S: 1/S goes into the narrow operand of the product for
the output layer's gradient, and into the narrow result of the one for the hidden gradient. Output units lie along its
rows, so that the products of logits and of the output layer's gradient read the big matrices as they lie in memory.
Gradients are added to the parameters where they arise.
"""

import time
from collections import defaultdict

import torch

from nplm.errors import InputError
from nplm.neural.kernels import compiled, decay_and_add_, empty, exponentials_, join, split
from nplm.neural.network import Parameters, Shape
from nplm.neural.ranks import Ranks
from nplm.neural.shards import shard_range

NORMALISERS = (1e-20, 1e20)
"""Between these, quotients by a normaliser S are right in float32. Training keeps ln S near ln |V| of itself."""

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

    def __init__(self, device: str = "cpu") -> None:
        super().__init__(float)
        # A GPU works on after the call that asked it to; its time belongs to the phase that asked.
        self._wait = torch.cuda.synchronize if device == "cuda" else None
        self._last = time.perf_counter()

    def start(self) -> None:
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        if self._wait:
            self._wait()
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
        self.seconds = PhaseSeconds(device)
        operand_type = PRECISIONS[precision]
        master_type = torch.float64 if precision == "float64" else torch.float32

        def own(tensor: torch.Tensor, dtype=master_type) -> torch.Tensor:
            return empty(*tensor.shape, dtype=dtype, device=device).copy_(tensor)

        self.C, self.H, self.d = own(parameters.C), own(parameters.H), own(parameters.d)
        self._C_decay = 1.0  # the features are this times C; see `settle`
        self.narrow = operand_type != master_type
        # [U | W | b] as the products take it, and in bfloat16 the 16 bits of float32 that it lacks: the update of so
        # large a matrix takes the time of moving it, which a float32 copy beside the bfloat16 one would lengthen.
        output = parameters.output[self.rows.start : self.rows.stop]
        if self.narrow:
            high, low = split(output.float())
            self.output_operand, self.output_low = own(high, operand_type), own(low, torch.int16)
            self._change = own(high, operand_type)
        else:
            self.output_operand = own(output)
        self._Z = own(torch.ones(K, shape.output_width))  # its last column stays 1: the input of the biases
        self._E = empty(len(self.rows) * K, dtype=operand_type, device=device)
        compiled()  # so that no phase of the first update has it in its seconds

    @property
    def output(self) -> torch.Tensor:
        """This rank's rows of [U | W | b] in full: float32, or float64 for that precision."""
        return join(self.output_operand, self.output_low) if self.narrow else self.output_operand

    def forward(self, contexts: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """ln P(word | context) in nats, float64 [k], on every rank. contexts [k, n-1] and words [k] int64, k <= K."""
        k, h, width = len(words), self.shape.h, self.shape.input_width
        lap = self.seconds.lap
        self.seconds.start()

        self._contexts = contexts
        x = self._x = self.C[contexts].view(k, width)
        if self._C_decay != 1:
            x *= self._C_decay
        Z = self._Z[:k]
        lap("gather")
        if h:
            Z[:, :h] = torch.addmm(self.d, x, self.H.T).tanh_()
        if self.shape.direct:
            Z[:, h:-1] = x
        lap("hidden")

        owned, targets = self._owned, self._targets = self._owned_targets(words)
        # The buffer is cut so that the matrix of a smaller batch is contiguous too.
        E = self._E_now = self._E[: len(self.rows) * k].view(-1, k)
        totals = torch.empty(2, k, dtype=Z.dtype, device=Z.device)
        S, target_logits = totals
        self._S = S

        def exponentials(Q: torch.Tensor) -> None:
            target_logits.zero_()[owned] = E[targets, owned].to(Z.dtype) - Q[owned]
            exponentials_(E, Q, S)
            lap("exponentials")
            self.ranks.sum_(totals)
            lap("communication")

        operand = self._operand(Z.T)
        torch.mm(self.output_operand, operand, out=E)
        lap("output_product")
        exponentials(torch.zeros_like(S))
        least, most = torch.aminmax(S)
        if not (NORMALISERS[0] < least and most < NORMALISERS[1]):  # the same on every rank, as S is
            torch.mm(self.output_operand, operand, out=E)
            Q = E.amax(dim=0).to(Z.dtype) if len(E) else torch.full_like(S, -torch.inf)
            self.ranks.maximum_(Q)
            exponentials(Q)
        return target_logits.double() - torch.log(S.double())

    def update(self, epsilon: float, weight_decay: float) -> None:
        """Ascend the summed gradient of the examples that `forward` has just seen.

        theta <- theta + epsilon * sum over examples of (d ln P / d theta - weight_decay * theta), without decay on the
        biases b and d (section 2). epsilon: the learning rate per example.
        """
        k, h = len(self._S), self.shape.h
        lap = self.seconds.lap
        self.seconds.start()
        decay = 1 - epsilon * weight_decay * k
        E, Z = self._E_now, self._Z[:k]
        over_minus_S = self._S.reciprocal().neg_()[:, None]

        # d ln P / d y = 1 [target] - E / S = -(E - S [target]) / S
        E[self._targets, self._owned] -= self._S[self._owned].to(E.dtype)
        # d ln P / d (a, x) by this rank's output units
        dZ = torch.mm(E.T, self.output_operand).to(Z.dtype) * over_minus_S
        lap("hidden_gradient")
        finish_sum = self.ranks.start_sum_(dZ)
        lap("communication")

        scaled = self._operand(Z * (epsilon * over_minus_S))
        if self.narrow:
            torch.mm(E, scaled, out=self._change)
            decay_and_add_(self.output_operand, self.output_low, self._change, decay)
        else:
            b = self.output_operand[:, -1].clone()
            self.output_operand.addmm_(E, scaled, beta=decay)
            self.output_operand[:, -1].add_(b, alpha=1 - decay)
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
        self._C_decay *= decay
        dx = dx.reshape(-1, self.shape.m)
        self.C.index_add_(0, self._contexts.reshape(-1), dx, alpha=epsilon / self._C_decay)
        lap("feature_update")

    def settle(self) -> None:
        """Carry out the decay of C, which updates only note down: a sweep over all of C at each of them is dear.

        A training that settles after every so many updates, and only then takes up or leaves parameters, gets the same
        bits whether or not it is interrupted.
        """
        if self._C_decay != 1:
            self.C *= self._C_decay
            self._C_decay = 1.0

    def gathered_parameters(self) -> Parameters | None:
        """A copy of the whole network's parameters on rank 0 of the CPU, None on the other ranks; settles C."""
        self.settle()
        output = self.ranks.gather_rows(self.output.cpu())
        if output is None:
            return None
        return Parameters(C=self.C, H=self.H, d=self.d, output=output).map(lambda tensor: tensor.cpu().clone())

    def _operand(self, Z: torch.Tensor) -> torch.Tensor:
        return Z.to(self.output_operand.dtype).contiguous()

    def _owned_targets(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Which examples have their target on this rank, and the local rows of those targets."""
        owned = torch.nonzero((words >= self.rows.start) & (words < self.rows.stop))[:, 0]
        return owned, words[owned] - self.rows.start
