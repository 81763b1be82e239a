"""numba bodies of nplm.neural.kernels: parallel over rows, vectorised along them."""

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.extending import intrinsic

# Multiplications may be fused with additions.
CONTRACT = {"contract", "nsz"}

LOG2_E = np.float32(1.4426950408889634)
MAGIC = np.float32(1.5 * 2**23)  # added to a small number, leaves its nearest integer in the low bits of the sum
# 2^r on [-1/2, 1/2] as a polynomial (Taylor coefficients ln(2)^k / k!): relative error below 3e-6.
P1, P2, P3, P4, P5 = (np.float32(np.log(2) ** k / f) for k, f in ((1, 1), (2, 2), (3, 6), (4, 24), (5, 120)))


@intrinsic
def _as_bits(_, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.uint32(types.float32), generate


@intrinsic
def _as_float(_, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.uint32), generate


@njit(inline="always")
def _widen(bits):
    return _as_float(np.uint32(bits) << np.uint32(16))


@njit(inline="always")
def _joined(high, low):
    """The float32 that `nplm.neural.kernels.split` took apart."""
    return _as_float((np.uint32(high) << np.uint32(16)) + np.uint32(np.int32(low)))


@njit(inline="always")
def _exp_bits(x):
    """The bits of exp(x); below -87 those of the smallest normal number, 1e-38, above 88 those of 2^127, 1.7e38."""
    t = min(max(x * LOG2_E, np.float32(-126.0)), np.float32(127.0))
    shifted = t + MAGIC
    r = t - (shifted - MAGIC)
    p = np.float32(1) + r * (P1 + r * (P2 + r * (P3 + r * (P4 + r * P5))))
    return _as_bits(p) + (_as_bits(shifted) << np.uint32(23))


# A share of the rows for each thread. A row takes several short loops, so that every one of them is vectorised.
@njit(cache=True, fastmath=CONTRACT)
def _add_exponentials_float32(Y, Q, sums):
    K = Y.shape[1]
    bits = np.empty(K, np.uint32)
    for j in range(Y.shape[0]):
        row = Y[j]
        for k in range(K):
            bits[k] = _exp_bits(row[k] - Q[k])
        for k in range(K):
            row[k] = _as_float(bits[k])
        for k in range(K):
            sums[k] += _as_float(bits[k])


@njit(parallel=True, cache=True)
def exponentials_float32(Y, Q, sums, shares):
    rows, K = Y.shape
    partial = np.zeros((shares, K), np.float32)
    for share in prange(shares):
        _add_exponentials_float32(Y[rows * share // shares : rows * (share + 1) // shares], Q, partial[share])
    for k in range(K):
        sums[k] = 0
        for share in range(shares):
            sums[k] += partial[share, k]


@njit(cache=True, fastmath=CONTRACT)
def _add_exponentials_bfloat16(Y, Q, sums):
    K = Y.shape[1]
    bits = np.empty(K, np.uint32)
    for j in range(Y.shape[0]):
        row = Y[j]
        for k in range(K):
            bits[k] = _exp_bits(_widen(row[k]) - Q[k])
        for k in range(K):
            row[k] = (bits[k] + np.uint32(0x8000)) >> np.uint32(16)  # to the nearest: all are positive
        for k in range(K):
            sums[k] += _as_float(bits[k])


@njit(parallel=True, cache=True)
def exponentials_bfloat16(Y, Q, sums, shares):
    rows, K = Y.shape
    partial = np.zeros((shares, K), np.float32)
    for share in prange(shares):
        _add_exponentials_bfloat16(Y[rows * share // shares : rows * (share + 1) // shares], Q, partial[share])
    for k in range(K):
        sums[k] = 0
        for share in range(shares):
            sums[k] += partial[share, k]


@njit(parallel=True, cache=True, fastmath=CONTRACT)
def decay_and_add_bfloat16(high, low, change, decay):
    last = high.shape[1] - 1
    for i in prange(high.shape[0]):
        for j in range(last):
            bits = _as_bits(_joined(high[i, j], low[i, j]) * decay + _widen(change[i, j]))
            high[i, j] = (bits + np.uint32(0x8000)) >> np.uint32(16)
            low[i, j] = np.int16(bits)
        bits = _as_bits(_joined(high[i, last], low[i, last]) + _widen(change[i, last]))
        high[i, last] = (bits + np.uint32(0x8000)) >> np.uint32(16)
        low[i, last] = np.int16(bits)
