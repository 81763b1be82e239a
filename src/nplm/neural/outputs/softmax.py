"""The softmax over the whole vocabulary, as section 3.2 shares it out: every rank owns some output units.

Written once for one rank and for many; each rank is given the same examples. Communication per update: Allreduce SUM
over [2, K] (normalisers and the targets' logits), SUM over [K, width + 1] (gradient at Z), each while the rank computes
what does not depend on it. Exponentials are of the logits as they are, as in the paper; only where a normaliser comes
near the ends of float32 are they taken anew, of the logits less their maximum.
"""

from math import sqrt

import torch

from nplm.neural.kernels import score_
from nplm.neural.outputs.rows import output_rows
from nplm.neural.phases import PhaseSeconds
from nplm.neural.ranks import Ranks
from nplm.neural.shards import shard_range

NORMALISERS = (1e-20, 1e20)
"""Between these, quotients by a normaliser S are right in float32. Training keeps ln S near ln |V| of itself."""


def sizes(vocabulary_size: int, width: int) -> dict[str, tuple[int, ...]]:
    """Name -> size of the parameters: the weights of Z, biases in the last column, a row for every word."""
    return {"output": (vocabulary_size, width + 1)}


def initial_parameters(vocabulary_size: int, width: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Weights uniform in ±0.1/√width, biases 0."""
    output = torch.zeros(vocabulary_size, width + 1)
    bound = 0.1 / sqrt(width)
    output[:, :-1] = torch.empty(vocabulary_size, width).uniform_(-bound, bound, generator=generator)
    return {"output": output}


class Buffers:
    """The small matrices of K examples, kept from one update to the next."""

    def __init__(self, Z: torch.Tensor) -> None:
        # normalisers S and the targets' logits; ln P; the gradient at Z
        self.totals, self.ln_prob = Z.new_zeros(2, len(Z)), Z.new_zeros(len(Z)).double()
        self.dZ, self.zeros = torch.zeros_like(Z), Z.new_zeros(len(Z))


class Softmax:
    """The output layer of which this rank owns the rows `shard_range(rank, ranks, |V|)`.

    The parameter `output` [|V|, width + 1] is the whole layer; this rank's copy is made here. `K` is the most examples
    at a time.
    """

    def __init__(
        self,
        parameters: dict[str, torch.Tensor],
        ranks: Ranks,
        precision: str,
        K: int,
        device: str,
        seconds: PhaseSeconds,
    ) -> None:
        output = parameters["output"]
        self.ranks = ranks
        self.seconds = seconds
        self.own = shard_range(ranks.rank, ranks.size, len(output))
        self.rows = output_rows(output[self.own.start : self.own.stop], precision, K, device)
        self._buffers: dict[int, Buffers] = {}

    @property
    def weights(self) -> torch.Tensor:
        """This rank's rows in full: float32, or float64 for that precision."""
        return self.rows.weights

    @property
    def parts(self) -> dict[str, torch.Tensor]:
        """All tensors that make up this rank's rows, by name."""
        return self.rows.parts

    def take(self, parts: dict[str, torch.Tensor]) -> None:
        """Learn other tensors, such as `parts` gives, from now on."""
        self.rows.parts = {name: parts[name] for name in self.rows.parts}

    def gathered(self) -> dict[str, torch.Tensor] | None:
        """The whole layer's weights on rank 0 of the CPU, None on the other ranks."""
        output = self.ranks.gather_rows(self.weights.cpu())
        return None if output is None else {"output": output}

    def ln_prob(self, Z: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """ln P(word | Z) in nats, float64 [k], on every rank; good until the next call with as many examples."""
        return self._forward(Z, words, learn=False).ln_prob

    def ascend_likelihood(
        self, Z: torch.Tensor, words: torch.Tensor, epsilon: float, decay: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Ascend the exact gradient of the summed ln P; returns `ln_prob` from before, and dZ [k, width + 1].

        The weights become decay times themselves, but for the biases, plus epsilon times their gradient.
        """
        buffers = self._forward(Z, words, learn=True)
        lap, S, dZ = self.seconds.lap, buffers.totals[0], buffers.dZ
        self.rows.gradient(S, self._targets(words), dZ)
        lap("hidden_gradient")
        finish_sum = self.ranks.start_sum_(dZ)
        lap("communication")
        self.rows.ascend(S, epsilon, decay)
        lap("output_update")
        finish_sum()
        lap("communication")
        return buffers.ln_prob, dZ

    def _forward(self, Z: torch.Tensor, words: torch.Tensor, learn: bool) -> Buffers:
        """From Z to ln P, and with `learn` on to the product for the gradient at Z."""
        if len(words) not in self._buffers:
            self._buffers[len(words)] = Buffers(Z)
        buffers, targets = self._buffers[len(words)], self._targets(words)
        self.rows.logits(Z, learn)
        self.seconds.lap("output_product")
        if not self._exponentials(buffers, buffers.zeros, targets, learn):
            Q = self.rows.greatest_logits().to(buffers.zeros.dtype)
            self.ranks.maximum_(Q)
            self._exponentials(buffers, Q, targets, learn)
        return buffers

    def _exponentials(self, buffers: Buffers, Q: torch.Tensor, targets: torch.Tensor, learn: bool) -> bool:
        """Whether ln P is right: no normaliser is near the ends of float32. The same on every rank."""
        lap, rows = self.seconds.lap, self.rows
        rows.exponentials(Q, targets, buffers.totals)
        lap(rows.exponentials_phase)
        finish_sum = self.ranks.start_sum_(buffers.totals)
        lap("communication")
        if learn:
            rows.multiply()
            lap("hidden_gradient")
        finish_sum()
        lap("communication")
        least, most = score_(buffers.totals, buffers.ln_prob)
        lap(rows.exponentials_phase)
        return NORMALISERS[0] < least and most < NORMALISERS[1]

    def _targets(self, words: torch.Tensor) -> torch.Tensor:
        """The rows of this rank that the words are, or numbers that no row has."""
        return words - self.own.start
