"""Reading UTF-8 text of any size: the one place that knows line ends, byte-order marks, white space and bad bytes.

A line ends with LF, CR or CRLF. Tokens are separated by white space, which is every character for which Python's
`str.isspace()` holds (beside space and tab also the no-break space U+00A0, U+0085, U+2028 and their like) and the
byte-order mark U+FEFF, which files that were joined carry inside. So no token ever holds white space of any kind, and
tokens written with single spaces between them are read back as they were.
"""

import codecs
import re
from collections.abc import Iterator
from io import IncrementalNewlineDecoder
from pathlib import Path
from typing import BinaryIO, NamedTuple

from nplm.errors import InputError

BLOCK = 1 << 20
"""bytes read at a time"""


class Piece(NamedTuple):
    """A line of text or, where a line is longer than a block, a part of it that is cut at white space."""

    line: int
    """number of the line in the file, from 1"""
    text: str
    ends_line: bool


def read_pieces(path: str | Path) -> Iterator[Piece]:
    """The text of a UTF-8 file, line by line, in memory that is bounded by the longest token and not the longest line.

    A byte-order mark at the start is dropped; the last line needs no line end.
    Raises InputError when the file is missing, is empty, is not UTF-8 or holds a NUL byte.
    """
    line = 1
    rest = ""
    cut = False
    for block in _decoded_blocks(Path(path)):
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


def _decoded_blocks(path: Path) -> Iterator[str]:
    """The file's text, a block at a time, with every line end turned into LF."""
    decoder = IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
    try:
        with open(path, "rb") as file:
            if not file.peek(1):
                raise InputError(f"{path}: is empty; give a file that holds text")
            while block := file.read(BLOCK):
                nul = block.find(b"\0")
                if nul >= 0:
                    raise _bad_byte(file, file.tell() - len(block) + nul, "a NUL byte")
                yield _decode(decoder, file, block)
            yield _decode(decoder, file, b"", final=True)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; correct the path") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give a readable file") from None


def _decode(decoder: IncrementalNewlineDecoder, file: BinaryIO, block: bytes, final: bool = False) -> str:
    try:
        return decoder.decode(block, final).replace("\ufeff", " ")
    except UnicodeDecodeError as error:
        # error.object is what an earlier block left over and then this block, so it ends where the file was read to.
        raise _bad_byte(file, file.tell() - len(error.object) + error.start, "not UTF-8") from None


def _bad_byte(file: BinaryIO, at: int, what: str) -> InputError:
    """The error for the byte at an offset, counted from 0, with its line."""
    file.seek(0)
    before, byte = file.read(at), file.read(1)
    line = 1 + len(re.findall(rb"\r\n?|\n", before))
    utf16 = (before + byte)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"\xff", b"\xfe")
    return InputError(
        f"{file.name}:{line}: byte {at} (0x{byte.hex()}) is {what}; "
        f"give UTF-8 text (iconv -f {'UTF-16' if utf16 else 'ITS_ENCODING'} -t UTF-8 converts)"
    )
