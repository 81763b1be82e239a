"""What an output layer is trained for: from Z and the words to its own update and the gradient at Z."""

import torch

from nplm.neural.outputs.softmax import Softmax


def likelihood(
    output: Softmax, Z: torch.Tensor, words: torch.Tensor, epsilon: float, decay: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The exact likelihood (section 2): ln P of the examples from before the update, float64 [k], and dZ."""
    return output.ascend_likelihood(Z, words, epsilon, decay)


OBJECTIVES = {"likelihood": likelihood}
"""Name in a row of the configuration -> function; nplm.neural.kinds names them too, without torch."""
