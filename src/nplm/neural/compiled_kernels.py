"""numba bodies of nplm.neural.kernels: one sweep each, parallel over rows, vectorised along them."""

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.extending import intrinsic

# Sums may be reassociated (that is what lets them use vector registers); infinities and NaN keep their meaning in the
# maxima, which are taken over integers.
REASSOCIATE = {"reassoc", "nsz", "contract", "arcp"}

LOG2_E = np.float32(1.4426950408889634)
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
def _exp(x):
    """exp(x) for x <= 0; below -87 the smallest normal number, about 1e-38."""
    t = max(x * LOG2_E, np.float32(-126.0))
    k = np.int32(t - np.float32(0.5))  # truncation of a negative number: the nearest integer
    r = t - np.float32(k)
    p = np.float32(1) + r * (P1 + r * (P2 + r * (P3 + r * (P4 + r * P5))))
    return p * _as_float(np.uint32(k + np.int32(127)) << np.uint32(23))


@njit(parallel=True, cache=True)
def row_maximum_float32(Y, maximum):
    for k in prange(Y.shape[0]):
        row = Y[k].view(np.int32)
        largest = np.int32(-(2**31))
        for j in range(row.shape[0]):
            # the order of the floats is that of their bits as signed integers, once the negative ones are mirrored
            key = row[j] ^ ((row[j] >> np.int32(31)) & np.int32(0x7FFFFFFF))
            largest = max(largest, key)
        maximum[k] = _as_float(np.uint32(largest ^ ((largest >> np.int32(31)) & np.int32(0x7FFFFFFF))))


@njit(parallel=True, cache=True)
def row_maximum_bfloat16(Y, maximum):
    for k in prange(Y.shape[0]):
        row = Y[k].view(np.int16)
        largest = np.int16(-(2**15))
        for j in range(row.shape[0]):
            key = np.int16(row[j] ^ ((row[j] >> np.int16(15)) & np.int16(0x7FFF)))
            largest = max(largest, key)
        maximum[k] = _widen(np.uint16(largest ^ ((largest >> np.int16(15)) & np.int16(0x7FFF))))


@njit(parallel=True, cache=True, fastmath=REASSOCIATE)
def exponentials_float32(Y, Q, sums):
    for k in prange(Y.shape[0]):
        row, q, total = Y[k], Q[k], np.float32(0)
        for j in range(row.shape[0]):
            e = _exp(row[j] - q)
            total += e
            row[j] = e
        sums[k] = total


@njit(parallel=True, cache=True, fastmath=REASSOCIATE)
def exponentials_bfloat16(Y, Q, sums):
    for k in prange(Y.shape[0]):
        row, q, total = Y[k], Q[k], np.float32(0)
        for j in range(row.shape[0]):
            e = _exp(_widen(row[j]) - q)
            total += e
            row[j] = _narrow(e)
        sums[k] = total


@njit(parallel=True, cache=True, fastmath=REASSOCIATE)
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
