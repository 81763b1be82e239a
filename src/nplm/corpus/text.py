"""Reading UTF-8 text of any size: the one place that knows line ends, byte-order marks, white space and bad bytes.

A line ends with LF, CR or CRLF. Tokens are separated by white space, which is every character for which Python's
`str.isspace()` holds: beside space and tab also the no-break space U+00A0, U+0085, U+2028 and their like. So no token
ever holds white space of any kind, and joined by single spaces the tokens are read back as they were.
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
    for block in _decoded_blocks(Path(path)):
        *complete, rest = (rest + block).split("\n")
        for text in complete:
            yield Piece(line, text, ends_line=True)
            line += 1
        if len(rest) > BLOCK:
            # Cut behind the last white space: what follows may be half a token.
            uncut = len(rest) - len(re.search(r"\S*\Z", rest[-BLOCK:]).group())
            if uncut > len(rest) - BLOCK:
                yield Piece(line, rest[:uncut], ends_line=False)
                rest = rest[uncut:]
    if rest:
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
                try:
                    yield decoder.decode(block)
                except UnicodeDecodeError as error:
                    # error.object ends where the block ends, and begins with what an earlier block left over.
                    at = file.tell() - len(error.object) + error.start
                    raise _bad_byte(file, at, "not UTF-8") from None
            try:
                yield decoder.decode(b"", final=True)
            except UnicodeDecodeError as error:
                raise _bad_byte(file, file.tell() - len(error.object), "a UTF-8 character cut short") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; correct the path") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give a readable file") from None


def _bad_byte(file: BinaryIO, at: int, what: str) -> InputError:
    """The error for the byte at an offset, with its line, and with the likely encoding where a mark gives it away."""
    file.seek(0)
    before = file.read(at)
    byte = file.read(1)[0]
    line = 1 + len(re.findall(rb"\r\n?|\n", before))
    utf16 = (before + bytes([byte]))[:1] in (b"\xff", b"\xfe")
    encoding = "UTF-16" if utf16 else "ITS-ENCODING"
    return InputError(
        f"{file.name}:{line}: byte {at} (0x{byte:02x}) is {what}{', the file looks like UTF-16' if utf16 else ''}; "
        f"give UTF-8 text (iconv -f {encoding} -t UTF-8 converts)"
    )
