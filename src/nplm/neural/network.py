"""The network's parameters (section 2), their initial values, and the file they live in.

x = (C(w[t-n+1]), ..., C(w[t-1])),  a = tanh(d + H x),  y = b + W x + U a,  P = softmax(y)
"""

from dataclasses import dataclass, fields
from math import sqrt
from pathlib import Path

import numpy as np
import torch

from nplm.arrays import read_arrays, write_arrays
from nplm.errors import InputError


@dataclass(frozen=True)
class Shape:
    """Sizes of a network: |V|, order n, hidden units h (0 = no hidden layer), features m, direct connections or not."""

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
    def output_width(self) -> int:
        """Columns of the output layer [U | W | b]."""
        return self.h + self.direct * self.input_width + 1

    @property
    def free_parameters(self) -> int:
        """|V| (1 + n m + h) + h (1 + (n - 1) m) with direct connections (section 2)."""
        return self.vocabulary_size * (self.m + self.output_width) + self.h * (1 + self.input_width)


@dataclass
class Parameters:
    """All parameters of a network, on one process.

    C [|V|, m] word features; H [h, (n-1)m] and d [h] hidden layer; output [|V|, h + (n-1)m + 1] = [U | W | b], the
    hidden-to-output weights, the direct connections (absent without them) and the biases side by side, so that all of
    y is one product.
    """

    C: torch.Tensor
    H: torch.Tensor
    d: torch.Tensor
    output: torch.Tensor

    def map(self, function) -> "Parameters":
        """The same with `function` applied to every tensor."""
        return Parameters(**{field.name: function(getattr(self, field.name)) for field in fields(self)})


def initial_parameters(shape: Shape, seed: int) -> Parameters:
    """Random initial values, float32: C uniform in ±0.1, H in ±1/√((n-1)m), U and W in ±0.1/√(fan-in), biases 0.

    Drawn whole from one generator and only then sharded, so they do not depend on the number of ranks.
    """
    generator = torch.Generator().manual_seed(seed)

    def uniform(rows: int, columns: int, bound: float) -> torch.Tensor:
        return torch.empty(rows, columns).uniform_(-bound, bound, generator=generator)

    fan_in = shape.output_width - 1
    output = torch.zeros(shape.vocabulary_size, shape.output_width)
    C = uniform(shape.vocabulary_size, shape.m, 0.1)
    H = uniform(shape.h, shape.input_width, 1 / sqrt(shape.input_width))
    output[:, :-1] = uniform(shape.vocabulary_size, fan_in, 0.1 / sqrt(fan_in))
    return Parameters(C=C, H=H, d=torch.zeros(shape.h), output=output)


@dataclass(frozen=True)
class Network:
    """A trained network: the scorer that `read_model` gives. See nplm.scores.Scorer."""

    shape: Shape
    parameters: Parameters
    vocabulary: str

    @property
    def n(self) -> int:
        return self.shape.n

    @property
    def vocabulary_size(self) -> int:
        return self.shape.vocabulary_size

    def ln_prob(self, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        """ln P(word | context) in nats, float64 [T]; products in the parameters' own precision."""
        from nplm.neural.output_parallel import OutputParallel
        from nplm.neural.ranks import SingleRank

        precision = str(self.parameters.C.dtype).removeprefix("torch.")
        batch = 256
        network = OutputParallel(self.shape, self.parameters, SingleRank(), precision, batch)
        contexts, words = word_ids(contexts), word_ids(words)
        parts = [
            network.ln_prob(contexts[start : start + batch], words[start : start + batch]).clone()
            for start in range(0, len(words), batch)
        ]
        return torch.cat(parts).numpy() if parts else np.empty(0)


def word_ids(ids: np.ndarray) -> torch.Tensor:
    """Words as the network takes them, int64; places before the stream's start (id -1) become <rare> (id 0)."""
    return torch.from_numpy(np.maximum(ids, 0).astype(np.int64))


def write_model(path: str | Path, network: Network, **header: str) -> None:
    """Write a network under the paper's names C, H, d, U, W, b; see `read_model`."""
    shape, parameters = network.shape, network.parameters
    U, W, b = parameters.output.split([shape.h, shape.output_width - shape.h - 1, 1], dim=1)
    tensors = {"C": parameters.C, "H": parameters.H, "d": parameters.d, "U": U, "W": W, "b": b[:, 0]}
    write_arrays(
        path,
        "nplm",
        {name: tensor.numpy() for name, tensor in tensors.items()},
        vocabulary=network.vocabulary,
        **{field.name: str(int(getattr(shape, field.name))) for field in fields(shape)},
        **header,
    )


def read_model(path: str | Path) -> Network:
    """Read a network written by `write_model`. Raises InputError for anything else."""
    arrays, header = read_arrays(path, "nplm")
    sizes = {field.name: int(header[field.name]) for field in fields(Shape)}
    shape = Shape(**{**sizes, "direct": bool(sizes["direct"])})
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    output = torch.cat([tensors["U"], tensors["W"], tensors["b"][:, None]], dim=1)
    parameters = Parameters(C=tensors["C"], H=tensors["H"], d=tensors["d"], output=output)
    return Network(shape=shape, parameters=parameters, vocabulary=header["vocabulary"])
