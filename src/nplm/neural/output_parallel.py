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
from nplm.neural.kernels import (
    compiled,
    decay_and_add_,
    divide_,
    empty,
    exponentials_,
    gather_,
    join,
    join_columns_,
    scatter_add_,
    score_targets_,
    split,
    through_tanh_,
)
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


class Batch:
    """The matrices of an update of K examples, kept from one to the next; the big one, E [|V|/M, K], is given."""

    def __init__(self, shape: Shape, E: torch.Tensor, dtype: torch.dtype) -> None:
        K, h, F = E.shape[1], shape.h, shape.output_width

        def matrix(*size: int, dtype: torch.dtype = dtype) -> torch.Tensor:
            return torch.zeros(size, dtype=dtype, device=E.device)

        self.E = E
        # features x, hidden units a, and Z = [a | x | 1], x with direct connections only
        self.x, self.a, self.Z = matrix(K, shape.input_width), matrix(K, h), matrix(K, F)
        # as the products take them: Z, and -epsilon Z / S
        self.Z_T, self.scaled_Z = matrix(F, K, dtype=E.dtype), matrix(K, F, dtype=E.dtype)
        # -S times this rank's part of the gradient at Z; that gradient, of all ranks; and before the tanh
        self.product, self.dZ, self.da = matrix(K, F, dtype=E.dtype), matrix(K, F), matrix(K, h)
        # normalisers S and the targets' logits; ln P
        self.totals, self.ln_prob = matrix(2, K), matrix(K, dtype=torch.float64)
        self.zeros = matrix(K)


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
        self._E = empty(len(self.rows) * K, dtype=operand_type, device=device)
        self._batches: dict[int, Batch] = {}
        compiled()  # so that no phase of the first update has it in its seconds

    @property
    def output(self) -> torch.Tensor:
        """This rank's rows of [U | W | b] in full: float32, or float64 for that precision."""
        return join(self.output_operand, self.output_low) if self.narrow else self.output_operand

    def forward(self, contexts: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """ln P(word | context) in nats, float64 [k], on every rank. contexts [k, n-1] and words [k] int64, k <= K.

        The result is good until the next call with as many examples.
        """
        lap = self.seconds.lap
        self.seconds.start()
        batch = self._batch = self._batch_of(len(words))
        E, totals = batch.E, batch.totals

        self._contexts = contexts.contiguous()
        gather_(self.C, self._contexts, self._C_decay, batch.x)
        lap("gather")
        if self.shape.h:
            torch.addmm(self.d, batch.x, self.H.T, out=batch.a).tanh_()
        join_columns_(batch.a, batch.x, batch.Z, batch.Z_T)
        lap("hidden")

        targets = words - self.rows.start

        def exponentials(Q: torch.Tensor) -> bool:
            exponentials_(E, Q, targets, totals)
            lap("exponentials")
            self.ranks.sum_(totals)
            lap("communication")
            least, most = score_targets_(E, targets, totals, batch.ln_prob)
            return NORMALISERS[0] < least and most < NORMALISERS[1]  # the same on every rank

        torch.mm(self.output_operand, batch.Z_T, out=E)
        lap("output_product")
        if not exponentials(batch.zeros):
            torch.mm(self.output_operand, batch.Z_T, out=E)
            Q = E.amax(dim=0).to(totals.dtype) if len(E) else torch.full_like(batch.zeros, -torch.inf)
            self.ranks.maximum_(Q)
            exponentials(Q)
        lap("exponentials")
        return batch.ln_prob

    def update(self, epsilon: float, weight_decay: float) -> None:
        """Ascend the summed gradient of the examples that `forward` has just seen.

        theta <- theta + epsilon * sum over examples of (d ln P / d theta - weight_decay * theta), without decay on the
        biases b and d (section 2). epsilon: the learning rate per example.
        """
        lap = self.seconds.lap
        self.seconds.start()
        batch, h = self._batch, self.shape.h
        E, dZ, da = batch.E, batch.dZ, batch.da
        decay = 1 - epsilon * weight_decay * len(dZ)

        # d ln P / d (a, x) by this rank's output units
        torch.mm(E.T, self.output_operand, out=batch.product)
        divide_(batch.product, batch.totals[0], batch.Z, epsilon, dZ, batch.scaled_Z)
        lap("hidden_gradient")
        finish_sum = self.ranks.start_sum_(dZ)
        lap("communication")

        if self.narrow:
            torch.mm(E, batch.scaled_Z, out=self._change)
            decay_and_add_(self.output_operand, self.output_low, self._change, decay)
        else:
            b = self.output_operand[:, -1].clone()
            self.output_operand.addmm_(E, batch.scaled_Z, beta=decay)
            self.output_operand[:, -1].add_(b, alpha=1 - decay)
        lap("output_update")
        finish_sum()
        lap("communication")

        dx = dZ[:, h:-1]  # of no columns without direct connections
        if h:
            through_tanh_(dZ, batch.Z, epsilon, da, self.d)
            dx = torch.addmm(dx, da, self.H) if self.shape.direct else torch.mm(da, self.H)
            self.H.addmm_(da.T, batch.x, beta=decay, alpha=epsilon)
        lap("hidden_update")
        self._C_decay *= decay
        scatter_add_(self.C, self._contexts, epsilon / self._C_decay, dx.contiguous())
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

    def _batch_of(self, k: int) -> Batch:
        if k not in self._batches:
            # The big matrix is cut from one buffer so that it is contiguous for every k.
            E = self._E[: len(self.rows) * k].view(-1, k)
            self._batches[k] = Batch(self.shape, E, self.C.dtype)
        return self._batches[k]
