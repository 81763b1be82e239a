"""What a network asks of its encoder.

An encoder turns contexts into Z [K, width + 1], whose last column is 1, and learns from the gradient at Z. Every rank
has all of it. Its shape is what is known before there are parameters.
"""

from typing import Protocol

import torch

from nplm.neural.phases import PhaseSeconds


class Encoder(Protocol):
    """An encoder with its parameters, for K examples at a time at most."""

    @property
    def parts(self) -> dict[str, torch.Tensor]:
        """All tensors that it learns, by name."""
        ...

    def take(self, parts: dict[str, torch.Tensor]) -> None:
        """Learn other tensors, such as `parts` gives, from now on: those of another process, say."""
        ...

    def encode(self, contexts: torch.Tensor) -> torch.Tensor:
        """Z [k, width + 1] of contexts [k, n-1], int64; good until the next call with as many examples."""
        ...

    def ascend(self, contexts: torch.Tensor, dZ: torch.Tensor, epsilon: float, decay: float) -> None:
        """The parameters, but for biases, become decay times themselves, and all gain epsilon times their gradient.

        contexts: those of the last `encode`; dZ [k, width + 1]: the gradient of ln P at Z, which may be overwritten.
        """
        ...

    def settle(self) -> None:
        """Carry out what `ascend` only noted down, before anybody looks at `parts`."""
        ...


class EncoderShape(Protocol):
    """The sizes of an encoder."""

    vocabulary_size: int
    n: int

    @property
    def width(self) -> int:
        """Columns of Z but for the last, which is 1."""
        ...

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Name -> size of every parameter."""
        ...

    @property
    def blocks(self) -> dict[str, int]:
        """Name in a model file -> columns of the output layer's weights, in the order of the columns of Z."""
        ...

    def initial_parameters(self, generator: torch.Generator) -> dict[str, torch.Tensor]:
        """Random initial values, float32, drawn whole from the generator: the number of ranks changes none."""
        ...

    def encoder(
        self, parameters: dict[str, torch.Tensor], dtype: torch.dtype, K: int, device: str, seconds: PhaseSeconds
    ) -> Encoder:
        """An encoder with a copy of these parameters."""
        ...
