"""Array files: what is written is read back, with the same bytes every time; anything else is refused by name."""

import numpy as np
import pytest

from nplm.arrays import read_arrays, read_header, require_same_vocabulary, write_arrays
from nplm.errors import InputError


def test_reads_back_arrays_and_header(tmp_path):
    transposed = np.arange(6, dtype=np.uint16).reshape(2, 3).T  # not contiguous in memory
    write_arrays(tmp_path / "a.safetensors", "sample", {"a": transposed, "empty": np.empty(0)}, vocabulary="v")
    arrays, header = read_arrays(tmp_path / "a.safetensors", "sample")
    np.testing.assert_array_equal(arrays["a"], [[0, 3], [1, 4], [2, 5]])
    assert arrays["a"].dtype == np.uint16 and arrays["empty"].size == 0
    assert header == read_header(tmp_path / "a.safetensors") == {"kind": "sample", "vocabulary": "v"}


def test_the_same_arrays_and_header_give_the_same_bytes(tmp_path):
    header = {f"field{number}": str(number) for number in range(20)} | {"name": 'größe "x"'}
    for name in ("a", "b"):
        write_arrays(tmp_path / name, "test", {"z": np.arange(5), "a": np.ones((2, 3))}, **header)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    arrays, read = read_arrays(tmp_path / "a", "test")
    assert read == {"kind": "test", **header}
    np.testing.assert_array_equal(arrays["z"], np.arange(5))
    np.testing.assert_array_equal(arrays["a"], np.ones((2, 3)))


def test_refuses_another_kind(tmp_path):
    write_arrays(tmp_path / "a.safetensors", "split", {"a": np.zeros(1)})
    with pytest.raises(InputError, match=r"a\.safetensors: holds 'split' where 'scores' is expected"):
        read_arrays(tmp_path / "a.safetensors", "scores")


@pytest.mark.parametrize("content", [b"", b"text", b"\xff" * 100, None])
def test_names_a_file_that_is_missing_or_no_safetensors_file(tmp_path, content):
    path = tmp_path / "broken.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"broken\.safetensors: (not a safetensors|no such) file") as error:
        read_arrays(path, "scores")
    assert "\n" not in str(error.value)


def test_refuses_a_safetensors_file_of_another_program(tmp_path):
    from safetensors.numpy import save_file

    save_file({"weight": np.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(InputError, match="no header field 'kind'"):
        read_header(tmp_path / "other.safetensors")


def test_truncated_file_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    write_arrays(path, "sample", {"a": np.zeros(100)})
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match="not a safetensors file"):
        read_arrays(path, "sample")


def test_different_vocabularies_are_both_named():
    assert require_same_vocabulary(("a", "1"), ("b", "1")) == "1"
    with pytest.raises(InputError, match="c belongs to vocabulary 2 but a to 1"):
        require_same_vocabulary(("a", "1"), ("b", "1"), ("c", "2"))
