"""The passes over the big matrices [|V|, K] and [|V|, h + ...] that torch would make in several sweeps each.

Each is one sweep, compiled by numba where that is possible, and the same in plain torch otherwise (another device,
float64, or no OpenMP for numba to run on). bfloat16 travels as its bits in uint16.
"""

import functools

import numpy as np
import torch


@functools.cache
def compiled():
    """The module of numba kernels, or None where numba's OpenMP threads cannot be had."""
    import numba

    numba.config.THREADING_LAYER = "omp"
    try:
        from nplm.neural import compiled_kernels

        compiled_kernels.column_maximum_float32(np.zeros((1, 1), np.float32), np.zeros(1, np.float32), 1)
    except (ImportError, ValueError):
        return None
    return compiled_kernels


def set_threads(threads: int) -> None:
    """Use this many threads in torch and in the compiled kernels."""
    import numba

    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


def _bits(tensor: torch.Tensor) -> np.ndarray:
    return tensor.view(torch.uint16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _kernel(name: str, tensor: torch.Tensor):
    if tensor.is_cpu and tensor.dtype in (torch.float32, torch.bfloat16) and compiled() is not None:
        return getattr(compiled(), f"{name}_{str(tensor.dtype).removeprefix('torch.')}")
    return None


def column_maximum(Y: torch.Tensor, maximum: torch.Tensor) -> None:
    """maximum[k] = max_j Y[j, k], minus infinity where there is no row. Y [rows, K], maximum [K] float32 or wider."""
    if len(Y) == 0:
        maximum.fill_(-torch.inf)
    elif kernel := _kernel("column_maximum", Y):
        kernel(_bits(Y), maximum.numpy(), torch.get_num_threads())
    else:
        maximum.copy_(Y.amax(dim=0))


def exponentials_(Y: torch.Tensor, Q: torch.Tensor, sums: torch.Tensor) -> None:
    """Y[j, k] becomes exp(Y[j, k] - Q[k]) in place, and sums[k] its column sum. Q must be at least the maximum."""
    if kernel := _kernel("exponentials", Y):
        kernel(_bits(Y), Q.numpy(), sums.numpy(), torch.get_num_threads())
    else:
        E = torch.exp(Y.to(Q.dtype) - Q)
        sums.copy_(E.sum(dim=0))
        Y.copy_(E)


def decay_and_add_(master: torch.Tensor, change: torch.Tensor, decay: float, operand: torch.Tensor) -> None:
    """master becomes decay * master + change, without decay in the last column (the biases); operand its rounded copy.

    master [rows, F] float32; change and operand [rows, F] bfloat16.
    """
    if kernel := _kernel("decay_and_add", change):
        kernel(master.numpy(), _bits(change), np.float32(decay), _bits(operand))
    else:
        master[:, :-1].mul_(decay)
        master.add_(change)
        operand.copy_(master)
