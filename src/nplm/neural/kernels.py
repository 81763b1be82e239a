"""The passes over the big matrices [|V|, K] and [|V|, h + ...] that torch would make in several sweeps each.

Each is one sweep, compiled by numba where that is possible, and the same in plain torch otherwise (another device,
float64, or no OpenMP for numba to run on). bfloat16 travels as its bits in uint16.
"""

import functools
import math
import mmap
from contextlib import suppress

import numpy as np
import torch

HUGE_PAGE = 2 << 20  # bytes


@functools.cache
def compiled():
    """The module of numba kernels, each of them compiled, or None where numba's OpenMP threads cannot be had."""
    import numba

    numba.config.THREADING_LAYER = "omp"
    try:
        from nplm.neural import compiled_kernels

        zero, bits, low = np.zeros((1, 1), np.float32), np.zeros((1, 1), np.uint16), np.zeros((1, 1), np.int16)
        compiled_kernels.exponentials_float32(zero, zero[0].copy(), zero[0].copy(), 1)
        compiled_kernels.exponentials_bfloat16(bits, zero[0].copy(), zero[0].copy(), 1)
        compiled_kernels.decay_and_add_bfloat16(bits, low, bits.copy(), np.float32(1))
    except (ImportError, ValueError):
        return None
    return compiled_kernels


def set_threads(threads: int) -> None:
    """Use this many threads in torch and in the compiled kernels."""
    import numba

    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


def empty(*size: int, dtype: torch.dtype, device: str = "cpu") -> torch.Tensor:
    """An uninitialised tensor, on the CPU in huge pages where the system has them.

    Every update walks through all of the big matrices, whose thousands of ordinary pages no processor keeps the
    addresses of.
    """
    bytes = math.prod(size) * dtype.itemsize
    if device != "cpu" or bytes < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(*size, dtype=dtype, device=device)
    memory = mmap.mmap(-1, bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=dtype).view(*size)


def _bits(tensor: torch.Tensor) -> np.ndarray:
    return tensor.view(torch.uint16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _kernel(name: str, tensor: torch.Tensor):
    if tensor.is_cpu and tensor.dtype in (torch.float32, torch.bfloat16) and compiled() is not None:
        return getattr(compiled(), f"{name}_{str(tensor.dtype).removeprefix('torch.')}")
    return None


def exponentials_(Y: torch.Tensor, Q: torch.Tensor, sums: torch.Tensor) -> None:
    """Y[j, k] becomes exp(Y[j, k] - Q[k]) in place, and sums[k] its column sum. Y [rows, K]; Q and sums [K].

    What is beyond the range of float32 is so in the sums: infinite, or 1e38 and more; 0, or 1e-38 a row.
    """
    if kernel := _kernel("exponentials", Y):
        kernel(_bits(Y), Q.numpy(), sums.numpy(), torch.get_num_threads())
    else:
        E = torch.exp(Y.to(Q.dtype) - Q)
        sums.copy_(E.sum(dim=0))
        Y.copy_(E)


def split(master: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A float32 tensor as the nearest bfloat16 and the 16 bits that those lack (int16): `join` gives it back."""
    bits = master.contiguous().view(torch.int32)
    return ((bits + 0x8000) >> 16).to(torch.int16).view(torch.bfloat16), bits.to(torch.int16)


def join(high: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    """The float32 tensor that `split` took apart."""
    return ((high.view(torch.int16).to(torch.int32) << 16) + low).view(torch.float32)


def decay_and_add_(high: torch.Tensor, low: torch.Tensor, change: torch.Tensor, decay: float) -> None:
    """The float32 matrix that is `split` into high and low becomes decay * itself + change, in place.

    The last column (the biases) does not decay. All [rows, F]; change bfloat16.
    """
    if kernel := _kernel("decay_and_add", change):
        kernel(_bits(high), low.numpy(), _bits(change), np.float32(decay))
    else:
        master = join(high, low)
        master[:, :-1].mul_(decay)
        for part, new in zip((high, low), split(master.add_(change)), strict=True):
            part.copy_(new)
