import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nplm.errors import InputError
from nplm.streams import NO_TOKEN, Split, contexts, read_split, write_split


def split(tokens, history=()):
    return Split("valid", np.array(tokens, dtype=np.uint8), np.array(history, dtype=np.uint8), "hash", 10)


def test_reads_back(tmp_path):
    write_split(tmp_path / "valid.safetensors", split([3, 1, 2], [9]))
    read = read_split(tmp_path / "valid.safetensors")
    assert (read.name, read.vocabulary, read.vocabulary_size, len(read)) == ("valid", "hash", 10, 3)
    assert read.tokens.tolist() == [3, 1, 2] and read.history.tolist() == [9]
    assert read.tokens.dtype == np.uint8


def test_other_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_split(tmp_path / "valid.safetensors")


def test_stream_begins_with_no_tokens():
    assert contexts(split([5, 6, 7]), 2).tolist() == [[NO_TOKEN, NO_TOKEN], [NO_TOKEN, 5], [5, 6]]


def test_history_runs_into_the_split():
    assert contexts(split([5, 6], [1, 2, 3]), 2).tolist() == [[2, 3], [3, 5]]


def test_no_context_for_order_one():
    assert contexts(split([5, 6], [1]), 0).shape == (2, 0)


def test_orders_beyond_the_history_that_splits_keep_are_refused():
    assert contexts(split([5, 6]), 64).shape == (2, 64)
    with pytest.raises(InputError, match="order 66: give 1 to 65, since a split keeps the 64 tokens"):
        contexts(split([5, 6]), 65)


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(0, 30), st.integers(0, 8))
def test_a_later_split_sees_what_the_whole_stream_shows(stream, cut, length):
    cut = min(cut, len(stream))
    whole = contexts(split(stream), length)
    later = contexts(split(stream[cut:], stream[:cut]), length)
    np.testing.assert_array_equal(later, whole[cut:])
