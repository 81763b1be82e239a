"""numba bodies of nplm.neural.kernels. A bfloat16 matrix comes as its bits in uint16, any other as float32."""

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.extending import intrinsic, overload

# Multiplications may be fused with additions.
CONTRACT = {"contract", "nsz"}

# What tile_kernels.py has from here is compiled into its cache too, which a change here leaves: touch that file then.
LOG2_E = np.float32(1.4426950408889634)
MAGIC = np.float32(1.5 * 2**23)  # added to a small number, leaves its nearest integer in the low bits of the sum
# 2^r on [-1/2, 1/2] as a polynomial (Taylor coefficients ln(2)^k / k!): relative error below 3e-6.
POLYNOMIAL = P1, P2, P3, P4, P5 = [
    np.float32(np.log(2) ** k / f) for k, f in ((1, 1), (2, 2), (3, 6), (4, 24), (5, 120))
]


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


def _widened(element):
    """An element of a matrix as float32."""


@overload(_widened, inline="always")
def _widened_of(element):
    if element == types.uint16:
        return lambda element: _as_float(np.uint32(element) << np.uint32(16))
    return lambda element: element


def _put(row, k, x):
    """row[k] = x, rounded to the nearest that the row can hold."""


@overload(_put, inline="always")
def _put_in(row, k, x):
    if row.dtype == types.uint16:

        def put(row, k, x):
            row[k] = (_as_bits(x) + np.uint32(0x8000)) >> np.uint32(16)
    else:

        def put(row, k, x):
            row[k] = x

    return put


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


@njit(cache=True)
def gather(C, contexts, scale, x):
    m = C.shape[1]
    for k in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            word = contexts[k, i]
            if word < 0 or word >= C.shape[0]:
                raise IndexError("a context holds a word that is not in the vocabulary")
            for j in range(m):
                x[k, i * m + j] = scale * C[word, j]


@njit(cache=True)
def scatter_add(C, contexts, scale, dx):
    m = C.shape[1]
    for k in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            word = contexts[k, i]
            for j in range(m):
                C[word, j] += scale * dx[k, i * m + j]


@njit(cache=True)
def transpose(Z, operand):
    for f in range(operand.shape[0]):
        row = operand[f]
        for k in range(Z.shape[0]):
            _put(row, k, Z[k, f])


# A share of the rows for each thread. A row takes several short loops, so that every one of them is vectorised.
@njit(cache=True, fastmath=CONTRACT)
def _add_exponentials(Y, Q, sums):
    K = Y.shape[1]
    bits = np.empty(K, np.uint32)
    for j in range(Y.shape[0]):
        row = Y[j]
        for k in range(K):
            bits[k] = _exp_bits(_widened(row[k]) - Q[k])
        for k in range(K):
            _put(row, k, _as_float(bits[k]))
        for k in range(K):
            sums[k] += _as_float(bits[k])


@njit(parallel=True, cache=True)
def exponentials(Y, Q, targets, sums, target_logits, shares):
    rows, K = Y.shape
    for k in range(K):
        target_logits[k] = 0
        if 0 <= targets[k] < rows:
            target_logits[k] = _widened(Y[targets[k], k]) - Q[k]
    partial = np.zeros((shares, K), np.float32)
    for share in prange(shares):
        _add_exponentials(Y[rows * share // shares : rows * (share + 1) // shares], Q, partial[share])
    for k in range(K):
        sums[k] = 0
        for share in range(shares):
            sums[k] += partial[share, k]


@njit(cache=True)
def score(S, target_logits, ln_prob):
    least = most = S[0]
    for k in range(S.shape[0]):
        least, most = min(least, S[k]), max(most, S[k])
        ln_prob[k] = np.float64(target_logits[k]) - np.log(np.float64(S[k]))
    return least, most


@njit(cache=True, error_model="numpy")
def gradient(product, S, targets, U, E, dZ):
    for k in range(dZ.shape[0]):
        over_minus_S = -np.float32(1) / S[k]
        for j in range(dZ.shape[1]):
            dZ[k, j] = over_minus_S * _widened(product[k, j])
        target = targets[k]
        if 0 <= target < U.shape[0]:
            for j in range(dZ.shape[1]):
                dZ[k, j] += _widened(U[target, j])
            _put(E[target], k, _widened(E[target, k]) - S[k])


@njit(cache=True, error_model="numpy")
def scale_rows(Z, S, epsilon, operand):
    for k in range(Z.shape[0]):
        over_minus_S = -epsilon / S[k]
        row = operand[k]
        for j in range(Z.shape[1]):
            _put(row, j, over_minus_S * Z[k, j])


@njit(parallel=True, cache=True, fastmath=CONTRACT)
def decay_and_add(high, low, change, decay):
    last = high.shape[1] - 1
    for i in prange(high.shape[0]):
        for j in range(last):
            x = _joined(high[i, j], low[i, j]) * decay + _widened(change[i, j])
            _put(high[i], j, x)
            low[i, j] = np.int16(_as_bits(x))
        x = _joined(high[i, last], low[i, last]) + _widened(change[i, last])
        _put(high[i], last, x)
        low[i, last] = np.int16(_as_bits(x))


@njit(cache=True)
def through_tanh(dZ, Z, epsilon, da, d):
    sums = np.zeros(d.shape[0], np.float32)
    for k in range(da.shape[0]):
        for j in range(da.shape[1]):
            da[k, j] = dZ[k, j] * (np.float32(1) - Z[k, j] * Z[k, j])
        for j in range(da.shape[1]):
            sums[j] += da[k, j]
    for j in range(d.shape[0]):
        d[j] += epsilon * sums[j]
