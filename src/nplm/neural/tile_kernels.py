"""numba bodies of nplm.neural.outputs.rows.TileRows: products on the processor's tile registers (Intel AMX).

numba knows neither tiles nor vectors, so what touches them is written in LLVM's intermediate representation: an
`@intrinsic` returns the code that stands where it is called. Addresses and strides are integers, in bytes. A tile has
16 rows of 64 bytes; a product of tiles takes its second operand in pairs of rows, two bfloat16 numbers to a word:
word [i/2, j] holds elements [i, j] (low half) and [i+1, j]. Everything here is cut into blocks of 32 rows and 32
columns, two tiles each way, padded with zeros: F' and K' are F and K rounded up to multiples of 32. Instructions: Intel
64 and IA-32 Architectures Software Developer's Manual, volume 2, LDTILECFG, TILELOADD, TDPBF16PS, TILESTORED.
"""

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from nplm.neural.compiled_kernels import CONTRACT, LOG2_E, MAGIC, POLYNOMIAL, _as_bits, _as_float, _exp_bits, _joined

BLOCK = 32
ROWS = 256
"""Rows of [U | W | b] at a time in `exponentials`: what is made of them stays in the second-level cache."""

CONFIGURATION = np.zeros(64, np.uint8)  # palette 1: eight registers of 16 rows, 64 bytes each
CONFIGURATION[0] = 1
CONFIGURATION[16:32:2] = 64
CONFIGURATION[48:56] = 16

_byte, _half, _word, _long = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_floats, _words, _halves = (ir.VectorType(element, 16) for element in (ir.FloatType(), _word, _half))


def _long_constant(value: int):
    return ir.Constant(_long, value)


def _all(vector_type, value):
    return ir.Constant(vector_type, [value] * 16)


def _call(builder, name, return_type, *arguments):
    kind = ir.FunctionType(return_type, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _tile(builder, operation, *arguments):
    """An instruction on tiles: a number of Python is that of a register."""
    arguments = [ir.Constant(_byte, a) if isinstance(a, int) else a for a in arguments]
    _call(builder, f"llvm.x86.{operation}", ir.VoidType(), *arguments)


def _pointer(builder, address):
    return builder.inttoptr(address, ir.PointerType(_byte))


def _plus(builder, address, *offsets):
    for offset in offsets:
        address = builder.add(address, _long_constant(offset) if isinstance(offset, int) else offset)
    return address


def _load(builder, vector_type, address):
    # No alignment is promised: where there is one, as in all of torch's matrices, it costs nothing to leave it open.
    return builder.load(builder.inttoptr(address, ir.PointerType(vector_type)), align=2)


def _store(builder, vector, address):
    builder.store(vector, builder.inttoptr(address, ir.PointerType(vector.type)), align=2)


def _halved(builder, words):
    return builder.trunc(words, _halves)


def _to_bfloat16(builder, words):
    """The bits of float32 numbers, with the nearest bfloat16 in the high half."""
    return builder.add(words, _all(_words, 0x8000))


def _high(builder, words):
    return builder.lshr(words, _all(_words, 16))


def _fma(builder, x, y, z):
    return _call(builder, "llvm.fma.v16f32", _floats, x, y, z)


def _exp_words(builder, x):
    """`nplm.neural.compiled_kernels._exp_bits` of sixteen numbers."""
    least, most, magic = (_all(_floats, float(value)) for value in (-126, 127, MAGIC))
    t = builder.fmul(x, _all(_floats, float(LOG2_E)))
    t = builder.select(builder.fcmp_ordered(">", t, least), t, least)
    t = builder.select(builder.fcmp_ordered("<", t, most), t, most)
    shifted = builder.fadd(t, magic)
    r = builder.fsub(t, builder.fsub(shifted, magic))
    *lower, highest = POLYNOMIAL
    p = _all(_floats, float(highest))
    for coefficient in (*reversed(lower), 1):
        p = _fma(builder, p, r, _all(_floats, float(coefficient)))
    return builder.add(builder.bitcast(p, _words), builder.shl(builder.bitcast(shifted, _words), _all(_words, 23)))


@intrinsic
def _configure_tiles(_, configuration):
    def generate(context, builder, signature, arguments):
        _tile(builder, "ldtilecfg", _pointer(builder, *arguments))
        return context.get_dummy_value()

    return types.void(types.intp), generate


@intrinsic
def _release_tiles(_):
    def generate(context, builder, signature, arguments):
        _tile(builder, "tilerelease")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def _multiply(_, product, product_stride, A, A_stride, B, B_stride, depth, add):
    """product [32, 32] becomes A [32, 32 depth] B [32 depth, 32], or gains it where add is not 0.

    product float32; A bfloat16; B in pairs of rows.
    """

    def generate(context, builder, signature, arguments):
        product, product_stride, A, A_stride, B, B_stride, depth, add = arguments
        sixteen = {stride: builder.mul(stride, _long_constant(16)) for stride in (product_stride, A_stride, B_stride)}
        quarters = [
            _pointer(builder, _plus(builder, product, *offsets))
            for offsets in ((), (64,), (sixteen[product_stride],), (sixteen[product_stride], 64))
        ]
        with builder.if_else(builder.icmp_signed("!=", add, _long_constant(0))) as (then, otherwise):
            with then:
                for quarter, pointer in enumerate(quarters):
                    _tile(builder, "tileloadd64", quarter, pointer, product_stride)
            with otherwise:
                for quarter in range(4):
                    _tile(builder, "tilezero", quarter)
        with cgutils.for_range(builder, depth) as loop:
            a = _plus(builder, A, builder.mul(loop.index, _long_constant(64)))
            b = _plus(builder, B, builder.mul(loop.index, sixteen[B_stride]))
            upper, lower, left, right = 4, 5, 6, 7
            _tile(builder, "tileloadd64", upper, _pointer(builder, a), A_stride)
            _tile(builder, "tileloadd64", left, _pointer(builder, b), B_stride)
            _tile(builder, "tileloadd64", right, _pointer(builder, _plus(builder, b, 64)), B_stride)
            _tile(builder, "tdpbf16ps", 0, upper, left)
            _tile(builder, "tdpbf16ps", 1, upper, right)
            _tile(builder, "tileloadd64", lower, _pointer(builder, _plus(builder, a, sixteen[A_stride])), A_stride)
            _tile(builder, "tdpbf16ps", 2, lower, left)
            _tile(builder, "tdpbf16ps", 3, lower, right)
        for quarter in (1, 3, 0, 2):  # the right ones first, and a tile's rows in order: see `_ascend_rows`
            _tile(builder, "tilestored64", quarter, quarters[quarter], product_stride)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 8), generate


@intrinsic
def _transpose(_, source, source_stride, target, target_stride):
    """target becomes source, transposed: both [16, 16] words. Rows exchange 1, 2, 4, 8 words with the 1, 2, 4, 8th."""

    def generate(context, builder, signature, arguments):
        source, source_stride, target, target_stride = arguments

        def row(start, stride, i):
            return _plus(builder, start, builder.mul(stride, _long_constant(i)))

        rows = [_load(builder, _words, row(source, source_stride, i)) for i in range(16)]
        for bit in (1, 2, 4, 8):
            upper = [j if not j & bit else 16 + (j ^ bit) for j in range(16)]
            lower = [j | bit if not j & bit else 16 + j for j in range(16)]
            for i in range(16):
                if not i & bit:
                    pair = rows[i], rows[i | bit]
                    rows[i] = builder.shuffle_vector(*pair, ir.Constant(_words, upper))
                    rows[i | bit] = builder.shuffle_vector(*pair, ir.Constant(_words, lower))
        for i in range(16):
            _store(builder, rows[i], row(target, target_stride, i))
        return context.get_dummy_value()

    return types.void(*[types.intp] * 4), generate


@intrinsic
def _pair_rows(_, source, source_stride, copy, pairs, columns, row_pairs):
    """The rows of source, 2 row_pairs of them, as they are into copy and in pairs into pairs; `columns` of each.

    All are read, and are written to rows of as many columns, in steps of 32.
    """

    def generate(context, builder, signature, arguments):
        source, source_stride, copy, pairs, columns, row_pairs = arguments
        half_row = ir.VectorType(_half, 32)
        width = builder.mul(columns, _long_constant(2))
        with cgutils.for_range(builder, row_pairs) as outer:
            pair = builder.mul(outer.index, _long_constant(2))
            first = _plus(builder, source, builder.mul(pair, source_stride))
            first_copy = _plus(builder, copy, builder.mul(pair, width))
            words = _plus(builder, pairs, builder.mul(pair, width))
            with cgutils.for_range(builder, builder.lshr(columns, _long_constant(5))) as inner:
                offset = builder.mul(inner.index, _long_constant(64))
                even = _load(builder, half_row, _plus(builder, first, offset))
                odd = _load(builder, half_row, _plus(builder, first, source_stride, offset))
                _store(builder, even, _plus(builder, first_copy, offset))
                _store(builder, odd, _plus(builder, first_copy, width, offset))
                for half in range(2):
                    mask = [j for i in range(16) for j in (16 * half + i, 32 + 16 * half + i)]
                    joined = builder.shuffle_vector(even, odd, ir.Constant(ir.VectorType(_word, 32), mask))
                    _store(builder, joined, _plus(builder, words, offset, offset, 64 * half))
        return context.get_dummy_value()

    return types.void(*[types.intp] * 6), generate


@intrinsic
def _exponentials(_, Y, Q, E, E_stride, pairs, sums, row_pairs):
    """exp(Y - Q) of 2 row_pairs rows, 32 columns: bfloat16 into E and, in pairs of rows, into pairs; added to sums.

    Y and pairs have rows of 32 columns.
    """

    def generate(context, builder, signature, arguments):
        Y, Q, E, E_stride, pairs, sums, row_pairs = arguments
        halves = (0, 64)
        shift = [_load(builder, _floats, _plus(builder, Q, half)) for half in halves]
        totals = [cgutils.alloca_once_value(builder, _load(builder, _floats, _plus(builder, sums, h))) for h in halves]
        with cgutils.for_range(builder, row_pairs) as loop:
            y = _plus(builder, Y, builder.mul(loop.index, _long_constant(256)))
            even_row = _plus(builder, E, builder.mul(loop.index, builder.mul(E_stride, _long_constant(2))))
            odd_row = _plus(builder, even_row, E_stride)
            pair = _plus(builder, pairs, builder.mul(loop.index, _long_constant(128)))
            for i, half in enumerate(halves):
                even, odd = (
                    _exp_words(builder, builder.fsub(_load(builder, _floats, _plus(builder, y, half, row)), shift[i]))
                    for row in (0, 128)
                )
                both = builder.fadd(builder.bitcast(even, _floats), builder.bitcast(odd, _floats))
                builder.store(builder.fadd(builder.load(totals[i]), both), totals[i])
                even = _high(builder, _to_bfloat16(builder, even))
                odd = builder.and_(_to_bfloat16(builder, odd), _all(_words, 0xFFFF0000))
                _store(builder, builder.or_(even, odd), _plus(builder, pair, half))
                _store(builder, _halved(builder, even), _plus(builder, even_row, half // 2))
                _store(builder, _halved(builder, _high(builder, odd)), _plus(builder, odd_row, half // 2))
        for i, half in enumerate(halves):
            _store(builder, builder.load(totals[i]), _plus(builder, sums, half))
        return context.get_dummy_value()

    return types.void(*[types.intp] * 7), generate


@intrinsic
def _decay_and_add(_, high, low, change, decay, sixteens):
    """Sixteen times `sixteens` float32 numbers split into high and low become decay times themselves + change."""

    def generate(context, builder, signature, arguments):
        high, low, change, decay, sixteens = arguments
        decay = builder.insert_element(ir.Constant(_floats, ir.Undefined), decay, ir.Constant(_word, 0))
        decay = builder.shuffle_vector(decay, ir.Constant(_floats, ir.Undefined), _all(_words, 0))
        with cgutils.for_range(builder, sixteens) as loop:
            offset = builder.mul(loop.index, _long_constant(32))
            high_address, low_address = _plus(builder, high, offset), _plus(builder, low, offset)
            upper = builder.shl(builder.zext(_load(builder, _halves, high_address), _words), _all(_words, 16))
            lower = builder.sext(_load(builder, _halves, low_address), _words)
            x = builder.bitcast(builder.add(upper, lower), _floats)
            x = _fma(builder, x, decay, _load(builder, _floats, _plus(builder, change, offset, offset)))
            bits = builder.bitcast(x, _words)
            _store(builder, _halved(builder, bits), low_address)
            _store(builder, _halved(builder, _high(builder, _to_bfloat16(builder, bits))), high_address)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.float32, types.intp), generate


@njit(inline="always")
def _rounded(x):
    """The nearest bfloat16's bits."""
    return (_as_bits(x) + np.uint32(0x8000)) >> np.uint32(16)


@njit(inline="always")
def _address(array):
    return np.intp(array.ctypes.data)


@njit(inline="always")
def _start_tiles():
    _configure_tiles(_address(CONFIGURATION))


# Types are given so that importing this module compiles it, or finds it compiled, outside of any measured time.
_number, _vector, _matrix = types.float32, types.float32[::1], types.float32[:, ::1]
_bfloat16_matrix, _word_matrix = types.uint16[:, ::1], types.uint32[:, ::1]


@njit([types.void(_matrix, _word_matrix)], cache=True)
def pack_columns(Z, pairs):
    """Z [K, F], transposed and rounded, in pairs of its columns: pairs [F'/2, K'], 0 before the first call.

    Of other examples than these nothing is used, but it must be numbers.
    """
    K, F = Z.shape
    for k in range(K):
        for f in range(0, F - 1, 2):
            pairs[f >> 1, k] = _rounded(Z[k, f]) | (_rounded(Z[k, f + 1]) << np.uint32(16))
        if F % 2:
            pairs[F >> 1, k] = _rounded(Z[k, F - 1])


@njit([types.void(_matrix, _vector, _number, _word_matrix)], cache=True, error_model="numpy")
def pack_scaled_rows(Z, S, epsilon, pairs):
    """-epsilon Z / S, row by row, rounded, in pairs of rows: pairs [K'/2, F'], 0 before the first call.

    Z [K, F]; S [K].
    """
    K, F = Z.shape
    for k in range(0, K, 2):
        even = -epsilon / S[k]
        odd = -epsilon / S[k + 1] if k + 1 < K else np.float32(0)
        below = min(k + 1, K - 1)
        for f in range(F):
            pairs[k >> 1, f] = _rounded(even * Z[k, f]) | (_rounded(odd * Z[below, f]) << np.uint32(16))
    pairs[(K + 1) >> 1 :] = 0


@njit(
    [types.void(_bfloat16_matrix, _matrix, _vector, types.int64[::1], _vector)],
    cache=True,
    fastmath=CONTRACT | {"reassoc"},
)
def target_logits(U, Z, Q, targets, found):
    """found[k] becomes row k of Z, rounded, times row targets[k] of U, less Q[k]; 0 where U has no such row."""
    for k in range(Z.shape[0]):
        found[k] = 0
        if 0 <= targets[k] < U.shape[0]:
            logit = np.float32(0)
            for f in range(Z.shape[1]):
                u = _as_float(np.uint32(U[targets[k], f]) << np.uint32(16))
                logit += u * _as_float(_rounded(Z[k, f]) << np.uint32(16))
            found[k] = logit - Q[k]


def scratch_words(F: int, K: int) -> int:
    """Words of scratch that a share of the rows takes; F and K padded."""
    return ROWS * F + ROWS // 2 * K + BLOCK * BLOCK + BLOCK * BLOCK // 2


@njit(cache=True)
def _exponentials_of_rows(U, first, end, Z_pairs, Q, E, sums, product, scratch, multiply):
    F, width, K = U.shape[1], 2 * Z_pairs.shape[0], Z_pairs.shape[1]
    # Of a block of rows: U as it is and in pairs, E^T; of 32 rows and columns: logits, and E in pairs
    padded_U = scratch[: ROWS * width // 2].view(np.uint16).reshape(ROWS, width)
    U_pairs = scratch[ROWS * width // 2 : ROWS * width].reshape(ROWS // 2, width)
    at = ROWS * width + ROWS // 2 * K
    E_T = scratch[ROWS * width : at].reshape(K, ROWS // 2)
    Y = scratch[at : at + BLOCK * BLOCK].view(np.float32).reshape(BLOCK, BLOCK)
    E_pairs = scratch[at + BLOCK * BLOCK : at + BLOCK * BLOCK * 3 // 2].reshape(BLOCK // 2, BLOCK)
    # so many rows can be read to the padded width without leaving U
    readable = max(U.shape[0] - (width + F - 1) // F + 1, 0)

    _start_tiles()
    for start in range(first, end, ROWS):
        rows = min(end - start, ROWS)
        whole = max(min(rows, readable - start), 0) // 2
        _pair_rows(_address(U) + 2 * F * start, 2 * F, _address(padded_U), _address(U_pairs), width, whole)
        for i in range(2 * whole, rows, 2):
            padded_U[i : i + 2, F:] = 0  # what is not a number there would come into the products
            for f in range(F):
                below = U[start + i + 1, f] if i + 1 < rows else np.uint16(0)
                padded_U[i, f], padded_U[i + 1, f] = U[start + i, f], below
                U_pairs[i >> 1, f] = np.uint32(U[start + i, f]) | (np.uint32(below) << np.uint32(16))
        U_pairs[(rows + 1) >> 1 :] = 0
        for k in range(0, K, BLOCK):
            for i in range(0, rows, BLOCK):
                _multiply(
                    _address(Y), 128, _address(padded_U) + 2 * width * i, 2 * width,
                    _address(Z_pairs) + 4 * k, 4 * K, width // BLOCK, 0,
                )  # fmt: skip
                own = min(BLOCK, rows - i)
                _exponentials(
                    _address(Y), _address(Q) + 4 * k, _address(E) + 2 * (K * (start + i) + k), 2 * K,
                    _address(E_pairs), _address(sums) + 4 * k, own // 2,
                )  # fmt: skip
                if own % 2:
                    for j in range(BLOCK):
                        e = _as_float(_exp_bits(Y[own - 1, j] - Q[k + j]))
                        sums[k + j] += e
                        E[start + i + own - 1, k + j] = E_pairs[own >> 1, j] = _rounded(e)
                for half in range(0, BLOCK if multiply else 0, 16):
                    _transpose(_address(E_pairs) + 4 * half, 128, _address(E_T) + 2 * (ROWS * (k + half) + i), 2 * ROWS)
        depth = (rows + BLOCK - 1) // BLOCK
        for k in range(0, K if multiply else 0, BLOCK):
            for f in range(0, width, BLOCK):
                _multiply(
                    _address(product) + 4 * (width * k + f), 4 * width, _address(E_T) + 2 * ROWS * k, 2 * ROWS,
                    _address(U_pairs) + 4 * f, 4 * width, depth, start - first,
                )  # fmt: skip
    _release_tiles()


@njit(inline="always")
def _share(rows, share, shares):
    """The start of a share of the rows, at whole blocks."""
    return min((rows + BLOCK - 1) // BLOCK * share // shares * BLOCK, rows)


@njit(
    [
        types.void(
            _bfloat16_matrix,
            _word_matrix,
            _vector,
            _bfloat16_matrix,
            _matrix,
            types.float32[:, :, ::1],
            _word_matrix,
            types.boolean,
        )
    ],
    parallel=True,
    cache=True,
)
def exponentials(U, Z_pairs, Q, E, sums, product, scratch, multiply):
    """E becomes exp(U Z - Q), sums its column sums and, if `multiply`, product E^T U, in one sweep over U.

    U [rows, F] bfloat16; Z_pairs [F'/2, K'], of `pack_columns`; Q [K'] float32; E [rows', K'] bfloat16; sums
    [shares, K'] and product [shares, K', F'] float32: the results are in the first, the others are scratch, as is
    scratch [shares, scratch_words(F', K')]. Scratch must hold numbers, not NaNs.
    """
    shares = scratch.shape[0]
    for share in prange(shares):
        first, end = _share(U.shape[0], share, shares), _share(U.shape[0], share + 1, shares)
        sums[share] = 0
        if first == end:
            product[share] = 0
        _exponentials_of_rows(U, first, end, Z_pairs, Q, E, sums[share], product[share], scratch[share], multiply)
    for share in range(1, shares):
        sums[0] += sums[share]
        product[0] += product[share]


@njit(cache=True)
def _ascend_rows(high, low, first, end, E, Z_pairs, decay, scratch):
    F, K, width = high.shape[1], 2 * Z_pairs.shape[0], Z_pairs.shape[1]
    change = scratch.view(np.float32)
    _start_tiles()
    for start in range(first, end, BLOCK):
        # Rows of the change follow one another as those of U do: what a block of 32 columns has too much on the right
        # of one row is the left of the next, which is written later.
        for f in range(width - BLOCK, -1, -BLOCK):
            _multiply(
                _address(change) + 4 * f, 4 * F, _address(E) + 2 * K * start, 2 * K,
                _address(Z_pairs) + 4 * f, 4 * width, K // BLOCK, 0,
            )  # fmt: skip
        rows = min(BLOCK, end - start)
        for i in range(rows):  # biases do not decay
            change[F * i + F - 1] += (1 - decay) * _joined(high[start + i, F - 1], low[start + i, F - 1])
        sixteens = rows * F // 16
        at = 2 * F * start
        _decay_and_add(_address(high) + at, _address(low) + at, _address(change), decay, sixteens)
        for i in range(16 * sixteens, rows * F):
            j, f = start + i // F, i % F
            x = _joined(high[j, f], low[j, f]) * decay + change[i]
            high[j, f] = _rounded(x)
            low[j, f] = np.int16(_as_bits(x))
    _release_tiles()


@njit(
    [types.void(_bfloat16_matrix, types.int16[:, ::1], _bfloat16_matrix, _word_matrix, _number, _word_matrix)],
    parallel=True,
    cache=True,
)
def ascend(high, low, E, Z_pairs, decay, scratch):
    """The float32 matrix split into high and low becomes decay times itself, but for its last column, + E Z.

    high, low [rows, F]; E [rows', K'] bfloat16; Z_pairs [K'/2, F'], of `pack_scaled_rows`; scratch as `exponentials`.
    """
    shares = scratch.shape[0]
    for share in prange(shares):
        first, end = _share(high.shape[0], share, shares), _share(high.shape[0], share + 1, shares)
        _ascend_rows(high, low, first, end, E, Z_pairs, decay, scratch[share])
