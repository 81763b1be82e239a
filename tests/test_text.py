import gzip
import lzma
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm.corpus import text as text_module
from nplm.corpus.text import REPLACED, read_pieces, zstd
from nplm.errors import InputError

PACK = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstd.compress}


def lines(path, **options):
    return [piece.text for piece in read_pieces(path, **options)]


@pytest.mark.parametrize("ending", PACK)
def test_packed_files_are_read_as_the_plain_one_whatever_they_are_called(tmp_path, ending):
    content = "\ufeffeins\r\nzwei wörter\n".encode() + b"x" * 3_000_000
    for name, packed in ((f"a.{ending}", PACK[ending](content)), ("b", PACK[ending](content))):
        (tmp_path / name).write_bytes(packed)
    (tmp_path / "plain").write_bytes(content)
    assert lines(tmp_path / "plain")[:2] == ["eins", "zwei wörter"]
    assert lines(tmp_path / f"a.{ending}") == lines(tmp_path / "b") == lines(tmp_path / "plain")


@pytest.mark.parametrize("ending", PACK)
def test_members_one_after_the_other_are_all_read(tmp_path, ending):
    (tmp_path / "a").write_bytes(PACK[ending](b"a\n") + PACK[ending](b"b\n"))
    assert lines(tmp_path / "a") == ["a", "b"]


@pytest.mark.parametrize(
    ("ending", "behind", "read"),
    [
        ("xz", 4 * b"\0", ["a"]),
        ("xz", 8 * b"\0" + lzma.compress(b"b\n") + 4 * b"\0", ["a", "b"]),
        ("xz", 3 * b"\0", None),
        ("gz", 3 * b"\0", ["a"]),
        *((ending, garbage, None) for ending in PACK for garbage in (b"garbage", b"garbage" * 1000)),
    ],
)
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_what_stands_behind_a_packed_stream_is_read_or_refused(tmp_path, monkeypatch, ending, behind, read, block):
    monkeypatch.setattr(text_module, "BLOCK", block)
    (tmp_path / "a").write_bytes(PACK[ending](b"a\n") + behind)
    if read:
        assert lines(tmp_path / "a") == read
    else:
        with pytest.raises(InputError, match="a: the packed file is cut off or broken"):
            lines(tmp_path / "a")


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("damage", ["cut", "changed", "cut early"])
def test_a_damaged_packed_file_is_named_in_one_line(tmp_path, ending, damage):
    packed = bytearray(PACK[ending](bytes(range(65, 91)) * 10_000))
    if damage == "changed":
        packed[len(packed) // 2] ^= 0xFF
        packed[-5] ^= 0xFF
    else:
        del packed[-4 if damage == "cut" else 12 :]
    (tmp_path / "a.txt").write_bytes(packed)
    with pytest.raises(InputError, match=r"a.txt: the packed file is cut off or broken") as error:
        lines(tmp_path / "a.txt")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.gz", b"plain text", r"a.gz: is no \.gz file"),
        ("a.zst", b"\x1f", r"a.zst: is no \.zst file"),
        ("a.txt", b"\x1f\x9d\x90text", r"a.txt: is packed \(\.Z\)"),
        ("a.txt", b"BZh91AY&SY...", r"a.txt: is packed \(\.bz2\)"),
        ("a.txt", b"PK\x03\x04text", r"a.txt: is packed \(\.zip\)"),
        ("a.gz", gzip.compress(b""), "a.gz: is empty"),
        ("a.gz", gzip.compress(b"a\nb\xff"), r"a.gz:2: byte 3 \(0xff\) is not UTF-8"),
    ],
)
def test_what_is_packed_otherwise_or_not_at_all(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        lines(tmp_path / name)


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-32", "cp1252", "shift_jis", "gb18030", "utf-7", "utf8"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_encoding_is_read_wherever_the_reader_cuts(tmp_path, monkeypatch, encoding, end):
    expected = ["price £5", "", "fin"] if encoding in ("cp1252", "utf-7") else ["Ж ж", "", "末"]
    (tmp_path / "a").write_bytes(end.join(expected).encode(encoding))
    for block in (1, 2, 3, 1000):
        monkeypatch.setattr(text_module, "BLOCK", block)
        pieces = list(read_pieces(tmp_path / "a", encoding))
        assert "".join("".join(piece.text.split()) for piece in pieces) == "".join("".join(expected).split())
        assert {piece.line for piece in pieces} >= {1, 3}


@pytest.mark.parametrize(
    ("encoding", "content", "message"),
    [
        ("cp1252", b"a\nb\x81c", r"a:2: byte 3 \(0x81\) is not CP1252"),
        ("ascii", b"a\r\nb\xc3\xa9", r"a:2: byte 4 \(0xc3\) is not ASCII"),
        ("utf-16-le", "a\nb".encode("utf-16-le") + b"\x00\xd8" + "c".encode("utf-16-le"), r"a:2: byte 6 \(0x00\)"),
        ("utf-16-le", "a\nbc".encode("utf-16-le")[:-1], r"a:2: byte 6 \(0x63\) is not UTF-16-LE"),
        ("utf-16-le", "a\n\0".encode("utf-16-le"), r"a:2: byte 5 \(0x00\) is a NUL byte"),
        ("shift_jis", "末\n末".encode("shift_jis") + b"\x81", r"a:2: byte 5 \(0x81\) is not SHIFT_JIS"),
        ("euc_jp", "末\n".encode("euc_jp") + b"\xff\xff", r"a:2: byte 3 \(0xff\) is not EUC_JP"),
        ("unicode_escape", rb"a\ud800", r"a:1: byte 6 \(0x30\) is half a character"),
        ("utf-16", "text".encode("utf-16-le"), r"a:1: byte 1 \(0x00\) is not UTF-16; .* state utf-16-le or utf-16-be"),
        ("utf-32", "text".encode("utf-32-le"), r"a:1: byte \d .* is not UTF-32; .* state utf-32-le or utf-32-be"),
        ("punycode", b"a-!", r"a:1: byte \d .* is not PUNYCODE"),
        ("idna", b"xn--a\n", r"a:1: byte 6 \(the end\) is not IDNA"),
    ],
)
@pytest.mark.parametrize("block", [1, 2, 1000])
def test_the_place_of_a_bad_byte_in_any_encoding(tmp_path, monkeypatch, encoding, content, message, block):
    monkeypatch.setattr(text_module, "BLOCK", block)
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        lines(tmp_path / "a", encoding=encoding)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("encoding", "content"), [("utf-16", b"t\0e\0"), ("utf-32", b"t\0\0\0e\0\0\0"), ("punycode", b"-\xff")]
)
def test_what_a_decoder_cannot_replace_is_refused(tmp_path, encoding, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputError, match=rf"a:1: byte \d .* is not {encoding.upper()}"):
        lines(tmp_path / "a", encoding=encoding, bad_bytes="replace")


@pytest.mark.parametrize("encoding", ["zlib", "rot13", "hex", "no such", ""])
def test_what_is_no_text_encoding_is_refused(tmp_path, encoding):
    (tmp_path / "a").write_bytes(b"abc")
    with pytest.raises(InputError, match=f"encoding {encoding}: .*has no text encoding of this name"):
        lines(tmp_path / "a", encoding=encoding)


@settings(deadline=None)
@given(content=st.binary(min_size=1), block=st.integers(1, 9))
def test_replacing_is_pythons_own_and_counted(tmp_path_factory, content, block):
    path = tmp_path_factory.mktemp("replace") / "a"
    path.write_bytes(b"a" + content)
    counts = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "BLOCK", block)
        read = "".join(lines(path, bad_bytes="replace", counts=counts))
    expected = (b"a" + content).decode("utf-8-sig", "replace").replace("\0", "\ufffd").replace("\ufeff", " ")
    assert "".join(read.split()) == "".join(expected.split())
    genuine = (b"a" + content).decode(errors="ignore").count("\ufffd")
    assert counts[REPLACED] == expected.count("\ufffd") - genuine
