"""numba bodies of nplm.neural.energy: the sweeps over (word, hidden unit, example), float32 or float64.

Both take r = 1 / (1 + u w) of every triple. Examples lie side by side in memory, so the innermost loops are vectors of
them; four words are taken at a time, so that each of those short loops has work enough.
"""

import numpy as np
from numba import njit, prange

ROWS = 16  # words that stay in the innermost cache together: whole blocks of them come, as nplm.neural.energy says

# Multiplications may be fused with additions, and sums over the examples taken in another order.
REORDER = {"contract", "nsz", "reassoc"}


@njit(cache=True, fastmath=REORDER, error_model="numpy")
def _block_logits(u, w, v, Y):
    h, K = u.shape
    one = u.dtype.type(1)
    for i in range(0, ROWS, 4):
        y0, y1, y2, y3 = Y[i], Y[i + 1], Y[i + 2], Y[i + 3]
        for j in range(h):
            u_j, v_j = u[j], v[j] + v[j]
            w0, w1, w2, w3 = w[i, j], w[i + 1, j], w[i + 2, j], w[i + 3, j]
            for k in range(K):
                y0[k] += v_j / (one + u_j[k] * w0)
                y1[k] += v_j / (one + u_j[k] * w1)
                y2[k] += v_j / (one + u_j[k] * w2)
                y3[k] += v_j / (one + u_j[k] * w3)


@njit(parallel=True, cache=True, error_model="numpy")
def logits(u, w, v, base, Y, shares):
    """See nplm.neural.energy.logits_."""
    blocks = len(w) // ROWS
    for share in prange(shares):
        for block in range(blocks * share // shares, blocks * (share + 1) // shares):
            rows = slice(block * ROWS, (block + 1) * ROWS)
            for i in range(block * ROWS, (block + 1) * ROWS):
                Y[i, :] = base[i]
            _block_logits(u, w[rows], v, Y[rows])


@njit(cache=True, fastmath=REORDER, error_model="numpy")
def _block_gradient(u, w, v, G, dA, dB, dv):
    h, K = u.shape
    one, four = u.dtype.type(1), u.dtype.type(4)
    for j in range(h):
        u_j, dA_j, scale = u[j], dA[j], -four * v[j]
        for i in range(0, ROWS, 4):
            w0, w1, w2, w3 = w[i, j], w[i + 1, j], w[i + 2, j], w[i + 3, j]
            G0, G1, G2, G3 = G[i], G[i + 1], G[i + 2], G[i + 3]
            s0 = s1 = s2 = s3 = t = u.dtype.type(0)
            for k in range(K):
                r0 = one / (one + u_j[k] * w0)
                r1 = one / (one + u_j[k] * w1)
                r2 = one / (one + u_j[k] * w2)
                r3 = one / (one + u_j[k] * w3)
                p0, p1, p2, p3 = G0[k] * r0, G1[k] * r1, G2[k] * r2, G3[k] * r3
                q0, q1, q2, q3 = p0 - p0 * r0, p1 - p1 * r1, p2 - p2 * r2, p3 - p3 * r3
                dA_j[k] += (q0 + q1) + (q2 + q3)
                s0 += q0
                s1 += q1
                s2 += q2
                s3 += q3
                t += (p0 + p1) + (p2 + p3)
            dB[i, j], dB[i + 1, j], dB[i + 2, j], dB[i + 3, j] = scale * s0, scale * s1, scale * s2, scale * s3
            dv[j] += t


@njit(parallel=True, cache=True, error_model="numpy")
def gradient(u, w, v, E, S, dA, dB, dv, db, shares):
    """See nplm.neural.energy.gradient_."""
    h, K = u.shape
    blocks = len(w) // ROWS
    over_S = -1 / S
    partial_dA, partial_dv = np.zeros((shares, h, K), u.dtype), np.zeros((shares, h), u.dtype)
    for share in prange(shares):
        G = np.empty((ROWS, K), u.dtype)
        for block in range(blocks * share // shares, blocks * (share + 1) // shares):
            rows = slice(block * ROWS, (block + 1) * ROWS)
            for i in range(ROWS):
                total = u.dtype.type(0)
                for k in range(K):
                    G[i, k] = E[block * ROWS + i, k] * over_S[k]
                    total -= G[i, k]
                db[block * ROWS + i] = total
            _block_gradient(u, w[rows], v, G, partial_dA[share], dB[rows], partial_dv[share])
    for j in range(h):
        dA[j, :] = 0
        dv[j] = 0
        for share in range(shares):
            dv[j] += 2 * partial_dv[share, j]
            for k in range(K):
                dA[j, k] -= 4 * v[j] * partial_dA[share, j, k]
