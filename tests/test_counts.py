from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nplm.errors import InputError
from nplm.ngram.counts import MISSING, _sort, count_ngrams, find
from nplm.streams import NO_TOKEN

streams = st.lists(st.integers(0, 4), min_size=5, max_size=60)
V = 5


def ngrams_of(stream: list[int], k: int) -> list[tuple[int, ...]]:
    return [tuple(stream[i : i + k]) for i in range(len(stream) - k + 1)]


@given(stream=streams, dtype=st.sampled_from([np.uint8, np.uint16, np.int64]))
def test_every_ngram_of_every_order_is_found_with_its_count_and_history(stream, dtype):
    tables = count_ngrams(np.array(stream, dtype=dtype), V, 5)
    keys = [table.keys for table in tables]
    for k in range(2, 6):
        expected = Counter(ngrams_of(stream, k))
        ngrams = np.array(list(expected))
        numbers = find(keys, ngrams, V)
        table = tables[k - 1]
        assert sorted(numbers) == list(range(len(table.keys)))
        assert table.counts[numbers].tolist() == list(expected.values())
        assert table.histories[numbers].tolist() == find(keys, ngrams[:, :-1], V).tolist()
        assert (np.diff(table.keys) > 0).all()


def test_unigrams_are_numbered_by_word_seen_or_not():
    table = count_ngrams(np.array([2, 0, 2]), 4, 1)[0]
    assert table.keys.tolist() == [0, 1, 2, 3]
    assert table.counts.tolist() == [1, 0, 2, 0]


@given(stream=streams)
def test_unseen_ngrams_and_places_before_the_stream_are_missing(stream):
    keys = [table.keys for table in count_ngrams(np.array(stream), V, 3)]
    ngrams = list(product(range(NO_TOKEN, V), repeat=3))
    found = find(keys, np.array(ngrams), V) != MISSING
    assert [ngram for ngram, is_found in zip(ngrams, found, strict=True) if is_found] == sorted(
        set(ngrams_of(stream, 3))
    )


@given(keys=arrays(np.int64, st.integers(1, 30), elements=st.integers(0, 9) | st.integers(0, 2**63 - 1)))
def test_sort_of_small_and_of_large_keys(keys):
    in_order, order = _sort(keys.copy())
    assert in_order.tolist() == sorted(keys.tolist())
    assert keys[order].tolist() == in_order.tolist()
    assert sorted(order) == list(range(len(keys)))


def test_bad_streams_are_refused():
    with pytest.raises(InputError, match="2 tokens holds no 3-gram"):
        count_ngrams(np.array([0, 1]), 2, 3)
    with pytest.raises(InputError, match="word ids 0 … 7 do not fit a vocabulary of 7"):
        count_ngrams(np.array([0, 7]), 7, 2)
    with pytest.raises(InputError, match="exceed 63-bit keys"):
        count_ngrams(np.array([0, 1]), 2**62, 2)
