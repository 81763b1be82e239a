"""What a network is: an encoder joined to an output layer, the update of both, and what a training asks of any network.

    contexts ──encoder──► Z [K, width + 1] ──output layer──► ln P [K]
             ◄──────────────── dL/dZ ◄────────────────────

Nothing here knows how a network is trained: nplm.neural.training trains whatever has an `Architecture`.
"""

from dataclasses import dataclass
from math import prod
from typing import Protocol

import torch

from nplm.errors import InputError
from nplm.neural.encoders.protocol import EncoderShape
from nplm.neural.objectives import OBJECTIVES
from nplm.neural.outputs import softmax
from nplm.neural.outputs.rows import PRECISIONS, master_type
from nplm.neural.phases import PhaseSeconds
from nplm.neural.ranks import Ranks

Parameters = dict[str, torch.Tensor]
"""A whole network's parameters by name, on one process."""

OUTPUTS = {"softmax": softmax.Softmax}
"""Name in a row of the configuration -> output layer; nplm.neural.kinds names them too, without torch."""


class Network(Protocol):
    """A network that learns, of which this rank has what is its own."""

    seconds: PhaseSeconds

    def ln_prob(self, contexts: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """ln P(word | context) in nats, float64 [k], on every rank. contexts [k, n-1] and words [k] int64, k <= K.

        The result is good until the next call with as many examples.
        """
        ...

    def update(self, contexts: torch.Tensor, words: torch.Tensor, epsilon: float, weight_decay: float) -> torch.Tensor:
        """Ascend the summed gradient of the examples; returns their `ln_prob` from before.

        theta <- theta + epsilon * sum over examples of (d ln P / d theta - weight_decay * theta), without decay on
        biases (section 2). epsilon: the learning rate per example.
        """
        ...

    def settle(self) -> None:
        """Carry out what updates only noted down, before parameters are looked at."""
        ...

    def parts(self) -> Parameters:
        """All tensors that make up this rank's parameters, by name."""
        ...

    def take(self, parts: Parameters) -> None:
        """Learn other tensors, such as `parts` gives, from now on: those of another process, say."""
        ...

    def gathered_parameters(self) -> Parameters | None:
        """A copy of the whole network's parameters on rank 0 of the CPU, None on the other ranks; settles."""
        ...


class Architecture(Protocol):
    """What is known of a network before it has parameters."""

    vocabulary_size: int
    n: int

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Name -> size of every parameter."""
        ...

    def initial_parameters(self, seed: int) -> Parameters:
        """Random initial values, drawn whole from one generator: the number of ranks changes none."""
        ...

    def resolve_precision(self, precision: str, device: str = "cpu") -> str:
        """The precision that `auto` stands for on this machine; any other as it is."""
        ...

    def least_memory(self, K: int, ranks: int) -> int:
        """Bytes that a rank cannot do without."""
        ...

    def network(self, parameters: Parameters, ranks: Ranks, precision: str, K: int, device: str = "cpu") -> Network:
        """A network with a copy of these parameters, for K examples at a time at most."""
        ...

    def to_file(self, parameters: Parameters) -> Parameters:
        """The parameters under the names that a model file has for them."""
        ...

    def from_file(self, arrays: Parameters) -> Parameters:
        """The parameters that `to_file` took apart."""
        ...


def free_parameters(architecture: Architecture) -> int:
    """How many numbers a network learns."""
    return sum(map(prod, architecture.sizes.values()))


@dataclass(frozen=True)
class JoinedArchitecture:
    """See Architecture: an encoder and the output layer that it is joined to."""

    encoder: EncoderShape
    output: str = "softmax"
    objective: str = "likelihood"

    @property
    def vocabulary_size(self) -> int:
        return self.encoder.vocabulary_size

    @property
    def n(self) -> int:
        return self.encoder.n

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        return self.encoder.sizes | softmax.sizes(self.vocabulary_size, self.encoder.width)

    def initial_parameters(self, seed: int) -> Parameters:
        generator = torch.Generator().manual_seed(seed)
        of_encoder = self.encoder.initial_parameters(generator)
        return of_encoder | softmax.initial_parameters(self.vocabulary_size, self.encoder.width, generator)

    def resolve_precision(self, precision: str, device: str = "cpu") -> str:
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

    def least_memory(self, K: int, ranks: int) -> int:
        # all parameters in float32, and the inputs and (in bfloat16) the logits of K examples
        return 4 * free_parameters(self) + K * (4 * (self.encoder.width + 1) + 2 * self.vocabulary_size // ranks)

    def network(
        self, parameters: Parameters, ranks: Ranks, precision: str, K: int, device: str = "cpu"
    ) -> "JoinedNetwork":
        return JoinedNetwork(self, parameters, ranks, precision, K, device)

    def to_file(self, parameters: Parameters) -> Parameters:
        named = {name: parameters[name] for name in self.encoder.sizes}
        *weights, b = parameters["output"].split([*self.encoder.blocks.values(), 1], dim=1)
        return named | dict(zip(self.encoder.blocks, weights, strict=True)) | {"b": b[:, 0]}

    def from_file(self, arrays: Parameters) -> Parameters:
        output = torch.cat([*(arrays[name] for name in self.encoder.blocks), arrays["b"][:, None]], dim=1)
        return {name: arrays[name] for name in self.encoder.sizes} | {"output": output}


class JoinedNetwork:
    """See Network. One update is section 3.2: the output layer is shared out among the ranks, the rest replicated."""

    def __init__(
        self,
        architecture: JoinedArchitecture,
        parameters: Parameters,
        ranks: Ranks,
        precision: str,
        K: int,
        device: str = "cpu",
    ) -> None:
        self.seconds = PhaseSeconds(device)
        self.encoder = architecture.encoder.encoder(parameters, master_type(precision), K, device, self.seconds)
        self.output = OUTPUTS[architecture.output](parameters, ranks, precision, K, device, self.seconds)
        self._learn = OBJECTIVES[architecture.objective]

    def ln_prob(self, contexts: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        self.seconds.start()
        return self.output.ln_prob(self.encoder.encode(contexts), words)

    def update(self, contexts: torch.Tensor, words: torch.Tensor, epsilon: float, weight_decay: float) -> torch.Tensor:
        self.seconds.start()
        decay = 1 - epsilon * weight_decay * len(words)
        Z = self.encoder.encode(contexts)
        ln_prob, dZ = self._learn(self.output, Z, words, epsilon, decay)
        self.encoder.ascend(contexts, dZ, epsilon, decay)
        return ln_prob

    def settle(self) -> None:
        self.encoder.settle()

    def parts(self) -> Parameters:
        return self.encoder.parts | self.output.parts

    def take(self, parts: Parameters) -> None:
        self.encoder.take(parts)
        self.output.take(parts)

    def gathered_parameters(self) -> Parameters | None:
        self.settle()
        of_output = self.output.gathered()
        if of_output is None:
            return None
        return {name: tensor.cpu().clone() for name, tensor in (self.encoder.parts | of_output).items()}
