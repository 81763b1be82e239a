"""The paper's encoder (section 2): x = (C(w[t-n+1]), ..., C(w[t-1])),  a = tanh(d + H x),  Z = [a | x | 1].

Without direct connections Z = [a | 1]. With the softmax as its output layer this is the paper's network:
y = b + W x + U a, P = softmax(y). Gradients are added to the parameters where they arise.
"""

from dataclasses import dataclass
from math import sqrt

import torch

from nplm.errors import InputError
from nplm.neural.kernels import compiled, empty, gather_, scatter_add_, through_tanh_
from nplm.neural.phases import PhaseSeconds


@dataclass(frozen=True)
class Shape:
    """Sizes: |V|, order n, hidden units h (0 = no hidden layer), features m, direct connections or not."""

    vocabulary_size: int
    n: int
    h: int
    m: int
    direct: bool

    def __post_init__(self) -> None:
        if self.n < 2 or self.m < 1 or self.h < 0 or self.vocabulary_size < 2:
            raise InputError(
                f"there is no network with n = {self.n}, h = {self.h}, m = {self.m} and |V| = {self.vocabulary_size}; "
                "give n >= 2, h >= 0, m >= 1 and a vocabulary of two words or more"
            )
        if self.h == 0 and not self.direct:
            raise InputError("a network with h = 0 and no direct connections has no input; set h > 0 or direct: true")

    @property
    def input_width(self) -> int:
        """(n - 1) m, the length of x."""
        return (self.n - 1) * self.m

    @property
    def width(self) -> int:
        """Columns of [a | x]."""
        return self.h + self.direct * self.input_width

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """C word features, H and d hidden layer."""
        return {"C": (self.vocabulary_size, self.m), "H": (self.h, self.input_width), "d": (self.h,)}

    @property
    def blocks(self) -> dict[str, int]:
        """U hidden-to-output weights, W direct connections (of no columns without them)."""
        return {"U": self.h, "W": self.width - self.h}

    def initial_parameters(self, generator: torch.Generator) -> dict[str, torch.Tensor]:
        """C uniform in ±0.1, H in ±1/√((n-1)m), d = 0."""
        bounds = {"C": 0.1, "H": 1 / sqrt(self.input_width)}
        drawn = {
            name: torch.empty(self.sizes[name]).uniform_(-bound, bound, generator=generator)
            for name, bound in bounds.items()
        }
        return drawn | {"d": torch.zeros(self.h)}

    def encoder(
        self, parameters: dict[str, torch.Tensor], dtype: torch.dtype, K: int, device: str, seconds: PhaseSeconds
    ) -> "FeedForward":
        """See nplm.neural.encoders.protocol."""
        return FeedForward(self, parameters, dtype, device, seconds)


def shape(row: dict, vocabulary_size: int) -> Shape:
    """The encoder of a row of the configuration."""
    return Shape(vocabulary_size, row["n"], row["h"], row["m"], row["direct"])


class Batch:
    """The small matrices of an update of K examples, kept from one to the next."""

    def __init__(self, shape: Shape, K: int, like: torch.Tensor) -> None:
        h = shape.h
        # Z = [a | x | 1], hidden units and features; x by itself where there are no direct connections
        self.Z = like.new_zeros(K, shape.width + 1)
        self.Z[:, -1] = 1
        self.a = self.Z[:, :h]
        self.x = self.Z[:, h:-1] if shape.direct else like.new_zeros(K, shape.input_width)
        # the gradient at the hidden units before the tanh
        self.da = like.new_zeros(K, h)


class FeedForward:
    """See nplm.neural.encoders.protocol.Encoder."""

    def __init__(
        self,
        shape: Shape,
        parameters: dict[str, torch.Tensor],
        dtype: torch.dtype,
        device: str,
        seconds: PhaseSeconds,
    ) -> None:
        self.shape = shape
        self.seconds = seconds
        self.take(
            {
                name: empty(*size, dtype=dtype, device=device).copy_(parameters[name])
                for name, size in shape.sizes.items()
            }
        )
        self._C_decay = 1.0  # the features are this times C; see `settle`
        self._batches: dict[int, Batch] = {}
        compiled()  # so that no phase of the first update has it in its seconds

    @property
    def parts(self) -> dict[str, torch.Tensor]:
        return {"C": self.C, "H": self.H, "d": self.d}

    def take(self, parts: dict[str, torch.Tensor]) -> None:
        self.C, self.H, self.d = (parts[name] for name in ("C", "H", "d"))

    def encode(self, contexts: torch.Tensor) -> torch.Tensor:
        K = len(contexts)
        if K not in self._batches:
            self._batches[K] = Batch(self.shape, K, self.C)
        batch = self._batches[K]
        gather_(self.C, contexts.contiguous(), self._C_decay, batch.x)
        self.seconds.lap("gather")
        if self.shape.h:
            torch.addmm(self.d, batch.x, self.H.T, out=batch.a).tanh_()
        self.seconds.lap("hidden")
        return batch.Z

    def ascend(self, contexts: torch.Tensor, dZ: torch.Tensor, epsilon: float, decay: float) -> None:
        batch, h = self._batches[len(contexts)], self.shape.h
        dx = dZ[:, h:-1]  # of no columns without direct connections
        if h:
            through_tanh_(dZ, batch.Z, epsilon, batch.da, self.d)
            dx = torch.addmm(dx, batch.da, self.H) if self.shape.direct else torch.mm(batch.da, self.H)
            self.H.addmm_(batch.da.T, batch.x, beta=decay, alpha=epsilon)
        self.seconds.lap("hidden_update")
        self._C_decay *= decay
        scatter_add_(self.C, contexts.contiguous(), epsilon / self._C_decay, dx.contiguous())
        self.seconds.lap("feature_update")

    def settle(self) -> None:
        """Carry out the decay of C, which updates only note down: a sweep over all of C at each of them is dear.

        A training that settles after every so many updates, and only then takes up or leaves parameters, gets the same
        bits whether or not it is interrupted.
        """
        if self._C_decay != 1:
            self.C *= self._C_decay
            self._C_decay = 1.0
