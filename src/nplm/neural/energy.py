"""The energy network of section 5.1: the next word is an input like the words before it, and has an energy.

    x = (C(w[t-n+1]), ..., C(w[t-1]), C(w)),   E(context, w) = b[w] + v·tanh(d + H x),
    P(w | context) = exp(-E(context, w)) / sum over w' in V of exp(-E(context, w'))

Of b only the next word's counts: those of the context words cancel. H is taken in two, A[k] = d + H_context x_context
of every example and B[i] = H_next C[i] of every word, so that a triple (word i, hidden unit j, example k) costs one
quotient r: with u = exp(2A) and w = exp(2B),

    tanh(A + B) = 1 - 2r,   1 - tanh² = 4r(1 - r),   r = 1 / (1 + u w).

Every rank sums over some of the words and has a whole copy of the parameters. Communication per update: Allreduce SUM
over [2, K] (normalisers and the targets' logits), SUM over all gradients that the words add to. The triples are never
stored; the gradient takes their quotients anew.
"""

import functools
import math
from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch

from nplm.errors import InputError
from nplm.neural import kernels
from nplm.neural.network import Parameters, free_parameters
from nplm.neural.outputs.rows import master_type
from nplm.neural.outputs.softmax import NORMALISERS
from nplm.neural.phases import PhaseSeconds
from nplm.neural.ranks import Ranks
from nplm.neural.shards import shard_range

PRECISIONS = ("float32", "float64")
RARE = 0
"""The id of <rare>."""
ROWS = 16
"""Words come in blocks of so many, as nplm.neural.energy_kernels takes them."""
GREATEST = 40.0
"""Of |2A| and |2B|: with it u w stays within float32. A tanh beyond ±20 is 1 to all its digits."""
TRIPLES = 1 << 22
"""Without numba, how many (word, hidden unit, example) are in memory at a time."""


@dataclass(frozen=True)
class EnergyShape:
    """Sizes: |V|, order n, hidden units h, features m. See nplm.neural.network.Architecture.

    held_out: ids of words that the network does not know. Wherever they stand it sees <rare>, and they are no words of
    the normaliser; they and <rare> have an equal share each of the probability of <rare>.
    """

    vocabulary_size: int
    n: int
    h: int
    m: int
    held_out: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.n < 2 or self.m < 1 or self.h < 1 or self.vocabulary_size < 2:
            raise InputError(
                f"there is no energy network with n = {self.n}, h = {self.h}, m = {self.m} and "
                f"|V| = {self.vocabulary_size}; give n >= 2, h >= 1, m >= 1 and a vocabulary of two words or more"
            )
        if len(set(self.held_out)) < len(self.held_out):
            raise InputError("a word is held out twice; name each word once")
        if any(not RARE < word < self.vocabulary_size for word in self.held_out):
            raise InputError(f"a held-out word has an id that is not from 1 to {self.vocabulary_size - 1}")

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """C word features, H and d hidden layer (the last m columns of H for the next word), v and b energies."""
        V, h, m = self.vocabulary_size, self.h, self.m
        return {"C": (V, m), "H": (h, self.n * m), "d": (h,), "v": (h,), "b": (V,)}

    def initial_parameters(self, seed: int) -> Parameters:
        """C uniform in ±0.1, H in ±1/√(nm), v in ±1/√h; d = 0, b = 0."""
        generator = torch.Generator().manual_seed(seed)
        bounds = {"C": 0.1, "H": 1 / sqrt(self.n * self.m), "v": 1 / sqrt(self.h)}
        drawn = {
            name: torch.empty(self.sizes[name]).uniform_(-bound, bound, generator=generator)
            for name, bound in bounds.items()
        }
        return drawn | {"d": torch.zeros(self.h), "b": torch.zeros(self.vocabulary_size)}

    def resolve_precision(self, precision: str, device: str = "cpu") -> str:
        """`auto` becomes float32."""
        if precision not in ("auto", *PRECISIONS):
            raise InputError(f"the energy network has no precision '{precision}'; use auto, {', '.join(PRECISIONS)}")
        return "float32" if precision == "auto" else precision

    def least_memory(self, K: int, ranks: int) -> int:
        # in float32: the parameters; the gradients, nearly as many; and of this rank's words w, dB and K exponentials
        rows = -(-self.vocabulary_size // ranks)
        return 4 * (2 * free_parameters(self) + rows * (2 * self.h + K) + K * self.h)

    def network(
        self, parameters: Parameters, ranks: Ranks, precision: str, K: int, device: str = "cpu"
    ) -> "EnergyNetwork":
        return EnergyNetwork(self, parameters, ranks, self.resolve_precision(precision, device), device)

    def to_file(self, parameters: Parameters) -> Parameters:
        return parameters

    def from_file(self, arrays: Parameters) -> Parameters:
        return arrays


def architecture(row: dict, vocabulary_size: int) -> EnergyShape:
    """The network of a row of the configuration."""
    held_out = drawn_words(vocabulary_size, row["held_out"], row["held_out_seed"])
    return EnergyShape(vocabulary_size, row["n"], row["h"], row["m"], held_out)


def drawn_words(vocabulary_size: int, number: int, seed: int) -> tuple[int, ...]:
    """Ids of words to hold out, from a tenth to a half of the way down the vocabulary: neither frequent nor the rarest.

    Ids are in order of frequency. Raises InputError where there are fewer words than `number`.
    """
    candidates = np.arange(max(1, vocabulary_size // 10), vocabulary_size // 2)
    if number > len(candidates):
        raise InputError(
            f"held_out: {number} words are to be drawn of {len(candidates)}, the words from a tenth to a half of "
            "the way down the vocabulary; hold out fewer"
        )
    return tuple(np.sort(np.random.default_rng(seed).choice(candidates, number, replace=False)).tolist())


def known_logits(shape: EnergyShape, parameters: Parameters, contexts: torch.Tensor) -> torch.Tensor:
    """-E [k, |V|] of every word after contexts [k, n-1], -inf of those that are held out."""
    C, H, d, v, b = (parameters[name] for name in ("C", "H", "d", "v", "b"))
    known = torch.ones(len(C), dtype=torch.bool)
    known[list(shape.held_out)] = False
    contexts = torch.where(known[contexts], contexts, RARE)
    A = torch.addmm(d, C[contexts].flatten(1), H[:, : -shape.m].T)
    B = C @ H[:, -shape.m :].T
    y = torch.stack([-(torch.tanh(a + B) @ v) for a in A]) - b
    return y.masked_fill(~known, -torch.inf)


@functools.cache
def _compiled(dtype: torch.dtype):
    """The numba kernels, compiled for this type, or None where numba's OpenMP threads cannot be had."""
    if not kernels.compiled():
        return None
    from nplm.neural import energy_kernels

    h, K = 1, 1
    u, w, v, E = (np.ones(size, str(dtype).removeprefix("torch.")) for size in ((h, K), (ROWS, h), h, (ROWS, K)))
    base = E[:, 0].copy()
    energy_kernels.logits(u, w, v, base, E, 1)
    energy_kernels.gradient(u, w, v, E, v, u.copy(), w.copy(), v.copy(), base, 1)
    return energy_kernels


def _sweeps(tensor: torch.Tensor):
    """The compiled kernels, if they are for such tensors, else None."""
    return _compiled(tensor.dtype) if tensor.is_cpu else None


def logits_(u: torch.Tensor, w: torch.Tensor, v: torch.Tensor, base: torch.Tensor, Y: torch.Tensor) -> None:
    """Y[i, k] becomes base[i] + 2 sum over j of v[j] r[i, j, k].

    u [h, K], w [rows, h], v [h], base [rows], Y [rows, K]; rows a multiple of ROWS.
    """
    if sweeps := _sweeps(u):
        sweeps.logits(*kernels.arrays(u, w, v, base, Y), torch.get_num_threads())
        return
    for part in _chunks(u, w):
        r = 1 / (1 + w[part, :, None] * u)
        torch.add(base[part, None], torch.einsum("j,ijk->ik", v, r), alpha=2, out=Y[part])


def gradient_(
    u: torch.Tensor,
    w: torch.Tensor,
    v: torch.Tensor,
    E: torch.Tensor,
    S: torch.Tensor,
    dA: torch.Tensor,
    dB: torch.Tensor,
    dv: torch.Tensor,
    db: torch.Tensor,
) -> None:
    """The gradient of the summed ln P, whose gradient at the logits is G = -E / S: the last four become these sums.

    dA [h, K]: sum over i of -4 v r(1 - r) G. dB [rows, h]: the same, over k. dv [h]: sum over i and k of 2 r G, lacking
    the sum of -G, which is 0 over the words of all ranks. db [rows]: sum over k of -G. E [rows, K]; S [K] the
    normalisers; the others as in `logits_`.
    """
    if sweeps := _sweeps(u):
        sweeps.gradient(*kernels.arrays(u, w, v, E, S, dA, dB, dv, db), torch.get_num_threads())
        return
    dA.zero_()
    dv.zero_()
    for part in _chunks(u, w):
        G = E[part] / -S
        torch.sum(G, dim=1, out=db[part]).neg_()
        r = 1 / (1 + w[part, :, None] * u)
        p = r * G[:, None]
        dv += 2 * p.sum(dim=(0, 2))
        p -= p * r
        dA += p.sum(dim=0)
        dB[part] = p.sum(dim=2) * (-4 * v)
    dA *= (-4 * v)[:, None]


def _chunks(u: torch.Tensor, w: torch.Tensor) -> list[slice]:
    """Rows of w that make TRIPLES with u, or few more."""
    step = math.ceil(TRIPLES / u.numel())
    return [slice(start, start + step) for start in range(0, len(w), step)]


class Batch:
    """The matrices of K examples, kept from one update to the next."""

    def __init__(self, shape: EnergyShape, K: int, rows: int, like: torch.Tensor) -> None:
        h, m = shape.h, shape.m
        self.x = like.new_zeros(K, (shape.n - 1) * m)  # the features of the contexts
        self.u = like.new_zeros(h, K)
        self.Y = like.new_zeros(rows, K)  # logits, then their exponentials, then -S times the gradient at them
        # normalisers S and the targets' logits
        self.totals, self.zeros, self.ln_prob = like.new_zeros(2, K), like.new_zeros(K), like.new_zeros(K).double()
        # All that ranks add up: dA, dv, the next word's part of dH, and of dC, and db. One buffer, one message.
        sizes = [(h, K), (h,), (h, m), (shape.vocabulary_size, m), (shape.vocabulary_size,)]
        numbers = [math.prod(size) for size in sizes]
        self.gradients = like.new_zeros(sum(numbers))
        self.dA, self.dv, self.dH, self.dC, self.db = (
            part.view(size) for part, size in zip(self.gradients.split(numbers), sizes, strict=True)
        )


class EnergyNetwork:
    """See nplm.neural.network.Network. This rank sums over the words `shard_range(rank, ranks, |V|)`."""

    def __init__(
        self, shape: EnergyShape, parameters: Parameters, ranks: Ranks, precision: str, device: str = "cpu"
    ) -> None:
        self.shape = shape
        self.ranks = ranks
        self.seconds = PhaseSeconds(device)
        self.own = shard_range(ranks.rank, ranks.size, shape.vocabulary_size)
        dtype = master_type(precision)
        self.take(
            {
                name: kernels.empty(*size, dtype=dtype, device=device).copy_(parameters[name])
                for name, size in shape.sizes.items()
            }
        )
        # Whole blocks of rows, one at the least. Those beyond this rank's words, and held-out words, have no energy.
        rows = max(1, math.ceil(len(self.own) / ROWS)) * ROWS
        held_out = [word - self.own.start for word in shape.held_out if word in self.own]
        self._no_words = torch.tensor([*held_out, *range(len(self.own), rows)], dtype=torch.int64, device=device)
        self._known = torch.arange(shape.vocabulary_size, device=device)
        self._known[list(shape.held_out)] = RARE
        # w, base and dB, db of these rows
        self._w, self._base = self.C.new_ones(rows, shape.h), self.C.new_zeros(rows)
        self._dB, self._db = torch.zeros_like(self._w), torch.zeros_like(self._base)
        self._batches: dict[int, Batch] = {}
        _sweeps(self.C)  # so that no phase of the first update has their compilation in its seconds

    def ln_prob(self, contexts: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """See nplm.neural.network.Network."""
        self.seconds.start()
        return self._forward(self._known[contexts], self._known[words]).ln_prob

    def update(self, contexts: torch.Tensor, words: torch.Tensor, epsilon: float, weight_decay: float) -> torch.Tensor:
        """See nplm.neural.network.Network."""
        self.seconds.start()
        contexts, words = self._known[contexts], self._known[words]
        decay = 1 - epsilon * weight_decay * len(words)
        batch = self._forward(contexts, words)
        self._gradients(batch, words)
        finish_sum = self.ranks.start_sum_(batch.gradients)
        finish_sum()
        self.seconds.lap("communication")
        self._ascend(batch, contexts, epsilon, decay)
        return batch.ln_prob

    def settle(self) -> None:
        """Nothing is only noted down."""

    def parts(self) -> Parameters:
        """The parameters themselves: every rank has them all."""
        return {"C": self.C, "H": self.H, "d": self.d, "v": self.v, "b": self.b}

    def take(self, parts: Parameters) -> None:
        """See nplm.neural.network.Network."""
        self.C, self.H, self.d, self.v, self.b = (parts[name] for name in ("C", "H", "d", "v", "b"))

    def gathered_parameters(self) -> Parameters | None:
        """A copy of the parameters on rank 0 of the CPU, None on the other ranks."""
        if self.ranks.rank:
            return None
        return {name: tensor.cpu().clone() for name, tensor in self.parts().items()}

    @property
    def _H(self) -> list[torch.Tensor]:
        """H_context [h, (n-1)m] and H_next [h, m], on the memory of H."""
        return self.H.split([(self.shape.n - 1) * self.shape.m, self.shape.m], dim=1)

    def _forward(self, contexts: torch.Tensor, words: torch.Tensor) -> Batch:
        """ln P of every word, and the exponentials of this rank's logits; both words and contexts are known ones."""
        K = len(words)
        if K not in self._batches:
            self._batches[K] = Batch(self.shape, K, len(self._w), self.C)
        batch, lap, (H_context, H_next) = self._batches[K], self.seconds.lap, self._H
        own = slice(self.own.start, self.own.stop)
        kernels.gather_(self.C, contexts.contiguous(), 1.0, batch.x)
        lap("gather")
        torch.addmm(self.d[:, None], H_context, batch.x.T, out=batch.u)
        w = torch.mm(self.C[own], H_next.T, out=self._w[: len(self.own)])
        for exponents in (batch.u, w):
            exponents.mul_(2).clamp_(-GREATEST, GREATEST).exp_()
        self._base[: len(self.own)] = -(self.b[own] + self.v.sum())
        lap("hidden")
        targets = self._targets(words)
        self._logits(batch)
        if not self._exponentials(batch, batch.zeros, targets):
            self._logits(batch)  # for the exponentials took their place
            Q = batch.Y.amax(dim=0)
            self.ranks.maximum_(Q)
            self._exponentials(batch, Q, targets)
        if self.shape.held_out:
            batch.ln_prob[words == RARE] -= math.log(1 + len(self.shape.held_out))
        return batch

    def _targets(self, words: torch.Tensor) -> torch.Tensor:
        """The rows that this rank has of the words, -1 for other words."""
        return torch.where((words >= self.own.start) & (words < self.own.stop), words - self.own.start, -1)

    def _logits(self, batch: Batch) -> None:
        logits_(batch.u, self._w, self.v, self._base, batch.Y)
        batch.Y[self._no_words] = -torch.inf
        self.seconds.lap("energies")

    def _exponentials(self, batch: Batch, Q: torch.Tensor, targets: torch.Tensor) -> bool:
        """Whether ln P is right: no normaliser is near the ends of float32. The same on every rank."""
        kernels.exponentials_(batch.Y, Q, targets, batch.totals)
        batch.Y[self._no_words] = 0  # the compiled exponentials know no smaller number than 1e-38
        self.seconds.lap("energies")
        finish_sum = self.ranks.start_sum_(batch.totals)
        finish_sum()
        self.seconds.lap("communication")
        least, most = kernels.score_(batch.totals, batch.ln_prob)
        self.seconds.lap("energies")
        return NORMALISERS[0] < least and most < NORMALISERS[1]

    def _gradients(self, batch: Batch, words: torch.Tensor) -> None:
        """What this rank's words add to the gradients, into the buffer that ranks add up."""
        S, own, rows = batch.totals[0], slice(self.own.start, self.own.stop), len(self.own)
        targets = self._targets(words)
        columns = torch.nonzero(targets >= 0)[:, 0]
        batch.Y[targets[columns], columns] -= S[columns]
        batch.gradients.zero_()
        gradient_(batch.u, self._w, self.v, batch.Y, S, batch.dA, self._dB, batch.dv, self._db)
        self.seconds.lap("energy_gradient")
        dB = self._dB[:rows]
        torch.mm(dB.T, self.C[own], out=batch.dH)
        torch.mm(dB, self._H[1], out=batch.dC[own])
        batch.db[own] = self._db[:rows]
        self.seconds.lap("feature_update")

    def _ascend(self, batch: Batch, contexts: torch.Tensor, epsilon: float, decay: float) -> None:
        """Add the gradients, the same on every rank, and what they make at the contexts."""
        H_context, H_next = self._H
        dx = torch.mm(batch.dA.T, H_context)
        H_context.addmm_(batch.dA, batch.x, beta=decay, alpha=epsilon)
        H_next.mul_(decay).add_(batch.dH, alpha=epsilon)
        self.d.add_(batch.dA.sum(dim=1), alpha=epsilon)
        self.v.mul_(decay).add_(batch.dv, alpha=epsilon)
        self.b.add_(batch.db, alpha=epsilon)
        self.C.mul_(decay).add_(batch.dC, alpha=epsilon)
        kernels.scatter_add_(self.C, contexts.contiguous(), epsilon, dx)
        self.seconds.lap("feature_update")
