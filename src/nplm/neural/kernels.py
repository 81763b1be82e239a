"""The passes of an update between its products, each in one sweep: what torch would make in several operations.

Over the big matrices [|V|, K] and [|V|, h + ...] a sweep takes the time of moving them. Over the small ones, such as
[K, h], every operation of torch costs tens of microseconds, however little it does: after a product over megabytes its
code is no longer in the processor's caches. So each pass is compiled by numba where that is possible, and the same in
plain torch otherwise (another device, float64, or no OpenMP for numba to run on). bfloat16 travels as its bits in
uint16.
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

        wide, narrow = np.zeros((1, 1), np.float32), np.zeros((1, 1), np.uint16)
        words, low = np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int16)
        one, row = np.float32(1), np.ones(1, np.float32)
        compiled_kernels.gather(wide, words, one, wide.copy())
        compiled_kernels.gather(wide, np.zeros((2, 1), np.int64), one, np.zeros((2, 2), np.float32)[:, :1])  # part of Z
        compiled_kernels.scatter_add(wide, words, one, wide.copy())
        compiled_kernels.through_tanh(wide, wide, one, wide.copy(), row.copy())
        compiled_kernels.decay_and_add(narrow, low, narrow.copy(), one)
        compiled_kernels.score(row, row, row.astype(np.float64))
        for big in (wide, narrow):
            compiled_kernels.transpose(wide, big.copy())
            compiled_kernels.exponentials(big.copy(), row, words[0], row.copy(), row.copy(), 1)
            compiled_kernels.gradient(big, row, words[0], big, big.copy(), wide.copy())
            compiled_kernels.scale_rows(wide, row, one, big.copy())
        compiled_kernels.gradient(wide, row, words[0], narrow, narrow.copy(), wide.copy())
    except (ImportError, ValueError):
        return None
    return compiled_kernels


def tile_kernels():
    """The module of products on tile registers, or None without numba or where the processor has none for bfloat16."""
    return _tile_kernels() if compiled() else None


@functools.cache
def _tile_kernels():
    # LLVM ends the whole process where it is to use what its settings (NUMBA_CPU_NAME, NUMBA_CPU_FEATURES) rule out.
    from numba.core.registry import cpu_target

    features = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
    if not {"+amx-tile", "+amx-bf16"} <= set(features):
        return None
    # A process must ask Linux for tile registers before it uses them.
    if not (torch.cpu.get_capabilities().get("amx_bf16", False) and torch.cpu._init_amx()):
        return None
    from nplm.neural import tile_kernels

    return tile_kernels


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


def arrays(*tensors: torch.Tensor) -> list[np.ndarray]:
    """The tensors as numpy and numba take them, on the same memory: bfloat16 as its bits in uint16."""
    return [(tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy() for tensor in tensors]


def _passes(tensor: torch.Tensor):
    """The compiled passes, if they are for matrices such as this, else None."""
    return compiled() if tensor.is_cpu and tensor.dtype in (torch.float32, torch.bfloat16) else None


def gather_(C: torch.Tensor, contexts: torch.Tensor, scale: float, x: torch.Tensor) -> None:
    """x[k] becomes scale times the features of context k, side by side. C [|V|, m], contexts [K, n-1], x [K, (n-1)m].

    Raises IndexError for a word that C has no row of.
    """
    if passes := _passes(C):
        passes.gather(*arrays(C, contexts), np.float32(scale), *arrays(x))
    else:
        x.copy_(C.index_select(0, contexts.reshape(-1)).view(x.shape)).mul_(scale)


def scatter_add_(C: torch.Tensor, contexts: torch.Tensor, scale: float, dx: torch.Tensor) -> None:
    """Add scale times dx to the features that `gather_` put into x; a word may stand in many contexts."""
    if passes := _passes(C):
        passes.scatter_add(*arrays(C, contexts), np.float32(scale), *arrays(dx))
    else:
        C.index_add_(0, contexts.reshape(-1), dx.reshape(-1, C.shape[1]), alpha=scale)


def transpose_(Z: torch.Tensor, operand: torch.Tensor) -> None:
    """operand [F, K] becomes Z [K, F], transposed and in its type."""
    if passes := _passes(Z):
        passes.transpose(*arrays(Z, operand))
    else:
        operand.copy_(Z.T)


def _own(targets: torch.Tensor, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The targets that are among the rows of a matrix, and their columns."""
    columns = torch.nonzero((targets >= 0) & (targets < rows))[:, 0]
    return targets[columns], columns


def exponentials_(Y: torch.Tensor, Q: torch.Tensor, targets: torch.Tensor, totals: torch.Tensor) -> None:
    """Y[j, k] becomes exp(Y[j, k] - Q[k]) in place. totals [2, K]: its column sums, and Y - Q as they were at targets.

    Y [rows, K]; Q [K]; targets [K]: the row of each column's target, which counts as 0 where Y has no such row. What is
    beyond the range of float32 is so in the sums: infinite, or 1e38 and more; 0, or 1e-38 a row.
    """
    sums, target_logits = totals
    if passes := _passes(Y):
        passes.exponentials(*arrays(Y, Q, targets, sums, target_logits), torch.get_num_threads())
    else:
        own, columns = _own(targets, len(Y))
        target_logits.zero_()[columns] = Y[own, columns].to(Q.dtype) - Q[columns]
        E = torch.exp(Y.to(Q.dtype) - Q)
        sums.copy_(E.sum(dim=0))
        Y.copy_(E)


def score_(totals: torch.Tensor, ln_prob: torch.Tensor) -> tuple[float, float]:
    """ln_prob [K] becomes the targets' logits - ln S; returns the least and the largest S.

    totals [2, K]: S and the targets' logits, of all ranks.
    """
    S, target_logits = totals
    if passes := _passes(totals):
        return passes.score(*arrays(S, target_logits, ln_prob))
    torch.sub(target_logits.double(), torch.log(S.double()), out=ln_prob)
    least, most = torch.stack(torch.aminmax(S)).tolist()
    return least, most


def gradient_(
    product: torch.Tensor,
    S: torch.Tensor,
    targets: torch.Tensor,
    U: torch.Tensor,
    E: torch.Tensor,
    dZ: torch.Tensor,
) -> None:
    """dZ [K, F] becomes U[targets] - product / S, and each target's cell of E loses S, where U [rows, F] has its row.

    That makes E -S times the gradient of ln P at the logits. product, of [K, F] or more, is E^T U from before.
    """
    if passes := _passes(product):
        passes.gradient(*arrays(product, S, targets, U, E, dZ))
    else:
        torch.mul(product, S.reciprocal().neg_()[:, None], out=dZ)
        own, columns = _own(targets, len(U))
        dZ[columns] += U[own]
        E[own, columns] = (E[own, columns].to(S.dtype) - S[columns]).to(E.dtype)


def scale_rows_(Z: torch.Tensor, S: torch.Tensor, epsilon: float, operand: torch.Tensor) -> None:
    """operand [K, F] becomes -epsilon Z / S, row by row, in its type."""
    if passes := _passes(Z):
        passes.scale_rows(*arrays(Z, S), np.float32(epsilon), *arrays(operand))
    else:
        operand.copy_(Z * (-epsilon / S)[:, None])


def through_tanh_(dZ: torch.Tensor, Z: torch.Tensor, epsilon: float, da: torch.Tensor, d: torch.Tensor) -> None:
    """da [K, h] becomes dZ * (1 - a^2), with a the first h columns of Z; d [h] gains epsilon times its column sums."""
    h = len(d)
    if passes := _passes(dZ):
        passes.through_tanh(*arrays(dZ, Z), np.float32(epsilon), *arrays(da, d))
    else:
        torch.mul(dZ[:, :h], 1 - Z[:, :h].square(), out=da)
        d.add_(da.sum(dim=0), alpha=epsilon)


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
    if passes := _passes(change):
        passes.decay_and_add(*arrays(high, low, change), np.float32(decay))
    else:
        master = join(high, low)
        master[:, :-1].mul_(decay)
        for part, new in zip((high, low), split(master.add_(change)), strict=True):
            part.copy_(new)
