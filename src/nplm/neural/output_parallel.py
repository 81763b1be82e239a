"""One update of section 3.2: every rank owns some output units; the rest of the network is replicated.

Written once for one rank and for many; each rank is given the same examples. Communication per update: Allreduce SUM
over [2, K] (normalisers and the targets' logits), SUM over [K, h + (n-1)m + 1] (gradient at the hidden units and the
features), each while the rank computes what does not depend on it. Exponentials are of the logits as they are, as in
the paper; only where a normaliser comes near the ends of float32 are they taken anew, of the logits less their maximum.
Gradients are added to the parameters where they arise.
"""

import time
from collections import defaultdict

import torch

from nplm.errors import InputError
from nplm.neural.kernels import compiled, empty, gather_, scatter_add_, score_, through_tanh_
from nplm.neural.network import Parameters, Shape
from nplm.neural.output_layer import PRECISIONS, master_type, output_layer
from nplm.neural.ranks import Ranks
from nplm.neural.shards import shard_range

NORMALISERS = (1e-20, 1e20)
"""Between these, quotients by a normaliser S are right in float32. Training keeps ln S near ln |V| of itself."""


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
    """The small matrices of an update of K examples, kept from one to the next."""

    def __init__(self, shape: Shape, K: int, like: torch.Tensor) -> None:
        def matrix(*size: int) -> torch.Tensor:
            return like.new_zeros(size)

        h = shape.h
        # Z = [a | x | 1], hidden units and features; x by itself where there are no direct connections
        self.Z = matrix(K, shape.output_width)
        self.Z[:, -1] = 1
        self.a = self.Z[:, :h]
        self.x = self.Z[:, h:-1] if shape.direct else matrix(K, shape.input_width)
        # the gradient at Z, and at the hidden units before the tanh
        self.dZ, self.da = matrix(K, shape.output_width), matrix(K, h)
        # normalisers S and the targets' logits; ln P
        self.totals, self.ln_prob = matrix(2, K), matrix(K).double()
        self.zeros = matrix(K)


class OutputParallel:
    """A network of which this rank owns the rows `shard_range(rank, ranks, |V|)` of the output layer [U | W | b].

    `parameters` are the whole network's; this rank's copy is made here. `K` is the most examples at a time.
    """

    def __init__(
        self, shape: Shape, parameters: Parameters, ranks: Ranks, precision: str, K: int, device: str = "cpu"
    ) -> None:
        self.shape = shape
        self.ranks = ranks
        self.rows = shard_range(ranks.rank, ranks.size, shape.vocabulary_size)
        self.seconds = PhaseSeconds(device)
        self.C, self.H, self.d = (
            empty(*tensor.shape, dtype=master_type(precision), device=device).copy_(tensor)
            for tensor in (parameters.C, parameters.H, parameters.d)
        )
        self._C_decay = 1.0  # the features are this times C; see `settle`
        self.layer = output_layer(parameters.output[self.rows.start : self.rows.stop], precision, K, device)
        self._batches: dict[int, Batch] = {}
        compiled()  # so that no phase of the first update has it in its seconds

    @property
    def output(self) -> torch.Tensor:
        """This rank's rows of [U | W | b] in full: float32, or float64 for that precision."""
        return self.layer.weights

    def ln_prob(self, contexts: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """ln P(word | context) in nats, float64 [k], on every rank. contexts [k, n-1] and words [k] int64, k <= K.

        The result is good until the next call with as many examples.
        """
        return self._forward(contexts, words, learn=False).ln_prob

    def update(self, contexts: torch.Tensor, words: torch.Tensor, epsilon: float, weight_decay: float) -> torch.Tensor:
        """Ascend the summed gradient of the examples; returns their `ln_prob` from before.

        theta <- theta + epsilon * sum over examples of (d ln P / d theta - weight_decay * theta), without decay on the
        biases b and d (section 2). epsilon: the learning rate per example.
        """
        batch = self._forward(contexts, words, learn=True)
        lap, h = self.seconds.lap, self.shape.h
        S, Z, dZ, da = batch.totals[0], batch.Z, batch.dZ, batch.da
        decay = 1 - epsilon * weight_decay * len(Z)

        self.layer.gradient(S, self._targets(words), dZ)
        lap("hidden_gradient")
        finish_sum = self.ranks.start_sum_(dZ)
        lap("communication")
        self.layer.ascend(S, epsilon, decay)
        lap("output_update")
        finish_sum()
        lap("communication")

        dx = dZ[:, h:-1]  # of no columns without direct connections
        if h:
            through_tanh_(dZ, Z, epsilon, da, self.d)
            dx = torch.addmm(dx, da, self.H) if self.shape.direct else torch.mm(da, self.H)
            self.H.addmm_(da.T, batch.x, beta=decay, alpha=epsilon)
        lap("hidden_update")
        self._C_decay *= decay
        scatter_add_(self.C, contexts.contiguous(), epsilon / self._C_decay, dx.contiguous())
        lap("feature_update")
        return batch.ln_prob

    def _forward(self, contexts: torch.Tensor, words: torch.Tensor, learn: bool) -> Batch:
        """From the features to ln P, and with `learn` on to the product for the hidden gradient."""
        lap, layer = self.seconds.lap, self.layer
        self.seconds.start()
        if len(words) not in self._batches:
            self._batches[len(words)] = Batch(self.shape, len(words), self.C)
        batch = self._batches[len(words)]
        Z, targets = batch.Z, self._targets(words)

        gather_(self.C, contexts.contiguous(), self._C_decay, batch.x)
        lap("gather")
        if self.shape.h:
            torch.addmm(self.d, batch.x, self.H.T, out=batch.a).tanh_()
        lap("hidden")

        layer.logits(Z, learn)
        lap("output_product")
        if not self._exponentials(batch, batch.zeros, targets, learn):
            Q = layer.greatest_logits().to(batch.zeros.dtype)
            self.ranks.maximum_(Q)
            self._exponentials(batch, Q, targets, learn)
        return batch

    def _exponentials(self, batch: Batch, Q: torch.Tensor, targets: torch.Tensor, learn: bool) -> bool:
        """Whether ln P is right: no normaliser is near the ends of float32. The same on every rank."""
        lap, layer = self.seconds.lap, self.layer
        layer.exponentials(Q, targets, batch.totals)
        lap(layer.exponentials_phase)
        finish_sum = self.ranks.start_sum_(batch.totals)
        lap("communication")
        if learn:
            layer.multiply()
            lap("hidden_gradient")
        finish_sum()
        lap("communication")
        least, most = score_(batch.totals, batch.ln_prob)
        lap(layer.exponentials_phase)
        return NORMALISERS[0] < least and most < NORMALISERS[1]

    def _targets(self, words: torch.Tensor) -> torch.Tensor:
        """The rows of this rank that the words are, or numbers that no row has."""
        return words - self.rows.start

    def settle(self) -> None:
        """Carry out the decay of C, which updates only note down: a sweep over all of C at each of them is dear.

        A training that settles after every so many updates, and only then takes up or leaves parameters, gets the same
        bits whether or not it is interrupted.
        """
        if self._C_decay != 1:
            self.C *= self._C_decay
            self._C_decay = 1.0

    def parts(self) -> dict[str, torch.Tensor]:
        """All tensors that make up this rank's parameters, by name."""
        return {"C": self.C, "H": self.H, "d": self.d, **self.layer.parts}

    def take(self, parts: dict[str, torch.Tensor]) -> None:
        """Train other tensors, such as `parts` gives, from now on: those of another process, say."""
        self.C, self.H, self.d = (parts[name] for name in ("C", "H", "d"))
        self.layer.parts = {name: parts[name] for name in self.layer.parts}

    def gathered_parameters(self) -> Parameters | None:
        """A copy of the whole network's parameters on rank 0 of the CPU, None on the other ranks; settles C."""
        self.settle()
        output = self.ranks.gather_rows(self.output.cpu())
        if output is None:
            return None
        return Parameters(C=self.C, H=self.H, d=self.d, output=output).map(lambda tensor: tensor.cpu().clone())
