"""Array files: what is written is read back, with the same bytes every time."""

import numpy as np

from nplm.arrays import read_arrays, write_arrays


def test_the_same_arrays_and_header_give_the_same_bytes(tmp_path):
    header = {f"field{number}": str(number) for number in range(20)} | {"name": 'größe "x"'}
    for name in ("a", "b"):
        write_arrays(tmp_path / name, "test", {"z": np.arange(5), "a": np.ones((2, 3))}, **header)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    arrays, read = read_arrays(tmp_path / "a", "test")
    assert read == {"kind": "test", **header}
    np.testing.assert_array_equal(arrays["z"], np.arange(5))
    np.testing.assert_array_equal(arrays["a"], np.ones((2, 3)))
