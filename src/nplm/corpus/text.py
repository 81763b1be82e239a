"""Reading text of any size, packed or not: the one place that knows encodings, line ends and bad bytes.

A line ends with LF, CR or CRLF. Tokens are separated by white space, which is every character for which Python's
`str.isspace()` holds (beside space and tab also the no-break space U+00A0, U+0085, U+2028 and their like) and the
byte-order mark U+FEFF, which files that were joined carry inside. So no token ever holds white space of any kind, and
tokens written with single spaces between them are read back as they were.
"""

import codecs
import gzip
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from io import IncrementalNewlineDecoder
from pathlib import Path
from typing import BinaryIO, NamedTuple

from nplm.errors import InputError
from nplm.files import require_file, unreadable

try:
    from compression import zstd  # Python 3.14 and later
except ImportError:
    from backports import zstd

BLOCK = 1 << 20
"""bytes read at a time"""
NUL = "\0"
BAD_CHARACTER = re.compile("[\0\ud800-\udfff]")
"""NUL bytes, and half characters (lone surrogates), which some encodings can hold and UTF-8 cannot"""
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
REPLACED = "bytes_replaced"
"""what `read_pieces` counts: bad bytes, or sequences of them, that U+FFFD stands for"""


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    return iter(partial(file.read, BLOCK), b"")


def _xz_blocks(file: BinaryIO) -> Iterator[bytes]:
    """The unpacked bytes of an .xz file: streams, each with zero bytes after it or none, a multiple of four.

    Python's own reader stops at the first thing behind a stream that is no stream, without a word.
    """
    packed = file.read(BLOCK)
    while packed:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        while not stream.eof:
            if not packed and stream.needs_input and not (packed := file.read(BLOCK)):
                raise EOFError("it ends within a stream")
            block, packed = stream.decompress(packed, BLOCK), b""
            if block:
                yield block
        padding, packed = 0, stream.unused_data
        while (packed := packed or file.read(BLOCK)).startswith(b"\0"):
            stripped = packed.lstrip(b"\0")
            padding, packed = padding + len(packed) - len(stripped), stripped
        if padding % 4:
            raise lzma.LZMAError(f"{padding} zero bytes behind a stream, no multiple of four")


PACKED: dict[str, tuple[bytes, Callable[[BinaryIO], Iterator[bytes]] | None]] = {
    ".gz": (b"\x1f\x8b", lambda file: _blocks(gzip.GzipFile(fileobj=file))),
    ".xz": (b"\xfd7zXZ\0", _xz_blocks),
    ".zst": (b"\x28\xb5\x2f\xfd", lambda file: _blocks(zstd.ZstdFile(file))),
    ".bz2": (b"BZh91AY&SY", None),
    ".Z": (b"\x1f\x9d", None),
    ".zip": (b"PK\x03\x04", None),
    ".7z": (b"7z\xbc\xaf\x27\x1c", None),
}
"""Ending of a packed file's name -> the bytes such a file begins with, its unpacked blocks (None: not unpacked here)"""


class Piece(NamedTuple):
    """A line of text or, where a line is longer than a block, a part of it that is cut at white space."""

    line: int
    """number of the line in the file, from 1"""
    text: str
    ends_line: bool


def read_pieces(
    path: str | Path, encoding: str = "utf-8", bad_bytes: str = "error", counts: Counter[str] | None = None
) -> Iterator[Piece]:
    """The text of a file, line by line, in memory that is bounded by the longest token and not the longest line.

    A file packed with gzip, xz or Zstandard is unpacked on the way. A byte-order mark at the start is dropped;
    the last line needs no line end. With `bad_bytes` "replace", U+FFFD stands for what is not in the encoding, and
    `counts[REPLACED]` grows by the number of these.
    Raises InputError when the file is missing, empty or broken, is not in its encoding or holds a NUL character.
    """
    line = 1
    rest = ""
    cut = False
    for block in _decoded_blocks(Path(path), encoding, bad_bytes, Counter() if counts is None else counts):
        *complete, rest = (rest + block).split("\n")
        for text in complete:
            yield Piece(line, text, ends_line=True)
            line += 1
            cut = False
        if len(rest) > BLOCK:
            # The last token may go on in the next block; "|" stands for what comes, so white space at the end cuts too.
            *before, last = (rest + "|").rsplit(maxsplit=1)
            if before:
                yield Piece(line, before[0], ends_line=False)
                rest = last[:-1]
                cut = True
    if rest or cut:
        yield Piece(line, rest, ends_line=True)


def check_encoding(encoding: str) -> None:
    """Raises InputError unless Python has an incremental decoder from bytes to text of this name."""
    try:
        "".encode(encoding)  # refuses codecs that do not make text of bytes, as zlib
        codecs.getincrementaldecoder(encoding)
    except (LookupError, UnicodeError):
        raise InputError(
            f"encoding {encoding}: Python has no text encoding of this name; give one such as utf-8, cp1252 or utf-16"
        ) from None


def _decoded_blocks(path: Path, encoding: str, bad_bytes: str, counts: Counter[str]) -> Iterator[str]:
    """The file's text, a block at a time, with every line end turned into LF."""
    check_encoding(encoding)
    utf8 = codecs.lookup(encoding).name == "utf-8"
    new_decoder = codecs.getincrementaldecoder("utf-8-sig" if utf8 else encoding)
    errors = "nplm.replace" if bad_bytes == "replace" else "strict"
    decoder = new_decoder(errors)
    line_ends = IncrementalNewlineDecoder(None, translate=True)
    bytes_before = lines_before = 0
    start = b""
    for block in _byte_blocks(path):
        start = start or block[:2]
        state = decoder.getstate()
        replaced_before = _replaced.total()
        try:
            text = decoder.decode(block, final=not block)
            if bad_bytes == "error" and BAD_CHARACTER.search(text):
                raise ValueError
        except ValueError:
            decoder = new_decoder(errors)
            decoder.setstate(state)
            text, at, what = _until_bad(decoder, block)
            line = 1 + lines_before + line_ends.decode(text, final=True).count("\n")
            what = what.format(encoding=encoding.upper())
            raise InputError(f"{path}:{line}: byte {bytes_before + at} {what}; {_remedy(start, encoding)}") from None
        text, characters_replaced = BAD_CHARACTER.subn("\ufffd", text)
        counts[REPLACED] += _replaced.total() - replaced_before + characters_replaced
        text = line_ends.decode(text, final=not block)
        bytes_before += len(block)
        lines_before += text.count("\n")
        yield text.replace("\ufeff", " ")


def _until_bad(decoder: codecs.IncrementalDecoder, block: bytes) -> tuple[str, int, str]:
    """(the text before the first bad byte of a block, the byte's place in the block, what it is), a byte at a time.

    The place is negative where the bytes of an earlier block turn out to be bad.
    """
    texts = []
    for at in range(len(block) + 1):
        byte = block[at : at + 1]
        try:
            text = decoder.decode(byte, final=not byte)
        except UnicodeDecodeError as error:
            # error.object is what the decoder had kept back, and then this byte
            place = at + len(byte) - len(error.object) + error.start
            return "".join(texts), place, f"(0x{error.object[error.start]:02x}) is not {{encoding}}"
        except UnicodeError:  # of decoders that do not say where, and that cannot replace
            return "".join(texts), at, f"({f'0x{byte.hex()}' if byte else 'the end'}) is not {{encoding}}"
        if decoder.errors == "strict" and (bad := BAD_CHARACTER.search(text)):
            return "".join(texts), at, f"(0x{block[at]:02x}) is {'a NUL byte' if bad[0] == NUL else 'half a character'}"
        texts.append(text)
    raise AssertionError("only a block that holds a bad byte is to be given")


def _remedy(start: bytes, encoding: str) -> str:
    has_mark = start in (*UTF16_MARKS, codecs.BOM_UTF32_BE[:2])
    if (name := codecs.lookup(encoding).name) in ("utf-16", "utf-32") and not has_mark:
        return f"it begins without a byte-order mark, so state {name}-le or {name}-be (encoding: ..., or --encoding)"
    if start in UTF16_MARKS and not encoding.lower().startswith("utf-16"):
        return "this looks like UTF-16: state that encoding (encoding: utf-16, or --encoding)"
    return "state the right encoding (encoding: ..., or --encoding), or have such bytes replaced (bad_bytes: replace)"


_replaced: Counter[str] = Counter()
"""how often `_replace` was called in this process; an error handler has no other way to say so"""


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Error handler that puts U+FFFD in the place of what cannot be decoded, as Python's own, and counts it."""
    _replaced["calls"] += 1
    return codecs.replace_errors(error)


codecs.register_error("nplm.replace", _replace)


def _byte_blocks(path: Path) -> Iterator[bytes]:
    """The unpacked bytes of a file, a block at a time, and an empty block at its end."""
    require_file(path)
    try:
        with open(path, "rb") as file:
            start = file.peek(8)
            blocks = _blocks(file)
            for ending, (magic, unpack) in PACKED.items():
                if start.startswith(magic):
                    if unpack is None:
                        raise InputError(f"{path}: is packed ({ending}), and not with gzip, xz or zstd; unpack it")
                    blocks = unpack(file)
                    break
                if start and path.suffix == ending:
                    raise InputError(f"{path}: is no {ending} file, whatever its name says; rename it or get it anew")
            block = b""
            for block in blocks:
                yield block
            if not block:
                raise InputError(f"{path}: is empty; give a file that holds text")
            yield b""
    except (EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the packed file is cut off or broken ({error}); get it anew") from None
    except OSError as error:
        raise unreadable(path, error) from None
