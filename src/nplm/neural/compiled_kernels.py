"""numba bodies of nplm.neural.kernels: parallel over rows, vectorised along them."""

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.extending import intrinsic

# Multiplications may be fused with additions; infinities and NaN keep their meaning in the maxima, which are taken over
# integers.
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
def _narrow(x):
    """Round to the nearest bfloat16, ties to even."""
    bits = _as_bits(x)
    return np.uint16((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16))


@njit(inline="always")
def _exp_bits(x):
    """The bits of exp(x) for x <= 0; below -87 the smallest normal number, about 1e-38."""
    t = max(x * LOG2_E, np.float32(-126.0))
    shifted = t + MAGIC
    r = t - (shifted - MAGIC)
    p = np.float32(1) + r * (P1 + r * (P2 + r * (P3 + r * (P4 + r * P5))))
    return _as_bits(p) + (_as_bits(shifted) << np.uint32(23))


# The order of floats is that of their bits as signed integers, once the negative ones are mirrored.
@njit(inline="always")
def _mirror16(bits):
    return np.int16(bits ^ ((bits >> np.int16(15)) & np.int16(0x7FFF)))


@njit(inline="always")
def _mirror32(bits):
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


# A share of the rows for each thread. A row takes several short loops, so that every one of them is vectorised.
@njit(cache=True)
def _raise_maximum_float32(Y, largest):
    for j in range(Y.shape[0]):
        row = Y[j].view(np.int32)
        for k in range(Y.shape[1]):
            largest[k] = max(largest[k], _mirror32(row[k]))


@njit(parallel=True, cache=True)
def column_maximum_float32(Y, maximum, shares):
    rows, K = Y.shape
    largest = np.full((shares, K), -(2**31), np.int32)
    for share in prange(shares):
        _raise_maximum_float32(Y[rows * share // shares : rows * (share + 1) // shares], largest[share])
    for k in range(K):
        for share in range(1, shares):
            largest[0, k] = max(largest[0, k], largest[share, k])
        maximum[k] = _as_float(np.uint32(_mirror32(largest[0, k])))


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


@njit(cache=True)
def _raise_maximum_bfloat16(Y, largest):
    for j in range(Y.shape[0]):
        row = Y[j].view(np.int16)
        for k in range(Y.shape[1]):
            largest[k] = max(largest[k], _mirror16(row[k]))


@njit(parallel=True, cache=True)
def column_maximum_bfloat16(Y, maximum, shares):
    rows, K = Y.shape
    largest = np.full((shares, K), -(2**15), np.int16)
    for share in prange(shares):
        _raise_maximum_bfloat16(Y[rows * share // shares : rows * (share + 1) // shares], largest[share])
    for k in range(K):
        for share in range(1, shares):
            largest[0, k] = max(largest[0, k], largest[share, k])
        maximum[k] = _widen(np.uint16(_mirror16(largest[0, k])))


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
def decay_and_add_bfloat16(master, change, decay, operand):
    last = master.shape[1] - 1
    for i in prange(master.shape[0]):
        for j in range(last):
            value = master[i, j] * decay + _widen(change[i, j])
            master[i, j] = value
            operand[i, j] = _narrow(value)
        value = master[i, last] + _widen(change[i, last])
        master[i, last] = value
        operand[i, last] = _narrow(value)
