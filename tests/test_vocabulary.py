import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm.cli import app
from nplm.corpus.vocabulary import (
    Vocabulary,
    build_vocabulary,
    count_words,
    document_ends,
    nearest_end,
    read_vocabulary,
    write_vocabulary,
)
from nplm.errors import InputError

BROWN = Path(__file__).parents[1] / "resources" / "brown"
WORD = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="\ufeff"), min_size=1
)


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens.txt"
    path.write_text("the cat saw the dog\nthe dog Saw the cat\nzebra ! zebra\n")
    return path


def as_dict(vocabulary):
    return dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True))


def test_frequent_words_by_falling_count_and_then_by_code_points(tokens):
    vocabulary = build_vocabulary(count_words(tokens), 1, "corpus")
    assert list(as_dict(vocabulary).items()) == [("<rare>", 3), ("the", 4), ("cat", 2), ("dog", 2), ("zebra", 2)]


def test_scope_train_counts_the_first_tokens_only_even_within_a_line(tokens):
    vocabulary = build_vocabulary(count_words(tokens, 7), 1, "train")
    assert list(as_dict(vocabulary).items()) == [("<rare>", 2), ("the", 3), ("dog", 2)]


def test_a_given_size_keeps_the_most_frequent_words(tokens):
    vocabulary = build_vocabulary(count_words(tokens), None, "corpus", size=4)
    # cat, dog and zebra are as frequent: code points decide.
    assert list(as_dict(vocabulary).items()) == [("<rare>", 5), ("the", 4), ("cat", 2), ("dog", 2)]


@pytest.mark.parametrize(("size", "remedy"), [(9, "lower"), (3, "raise")])
def test_a_size_that_does_not_fit_the_corpus(tmp_path, size, remedy):
    (tmp_path / "tokens.txt").write_text("<text> a b c , .\n")
    with pytest.raises(
        InputError, match=f"^size {size}: .* 6 distinct tokens, 3 of which .*; {remedy} vocabulary.size"
    ):
        build_vocabulary(count_words(tmp_path / "tokens.txt"), None, "corpus", size, keep_punctuation=True)


def test_punctuation_and_special_symbols_are_kept_whatever_their_count(tmp_path):
    (tmp_path / "tokens.txt").write_text("a a a b b <year> ; … <proper_noun> a1 $\n")
    counts = count_words(tmp_path / "tokens.txt")
    symbols = ["<rare>", "<proper_noun>", "<year>"]
    assert build_vocabulary(counts, 2, "corpus", keep_punctuation=True).words == [*symbols, "a", "$", ";", "…"]
    assert build_vocabulary(counts, None, "corpus", 7, keep_punctuation=True).words == [*symbols, "a", "$", ";", "…"]
    assert build_vocabulary(counts, 2, "corpus").words == [*symbols, "a"]


def test_a_special_symbol_that_train_lacks_is_kept_too(tmp_path):
    (tmp_path / "tokens.txt").write_text("a b <year>\nc <year>\n")
    vocabulary = build_vocabulary(count_words(tmp_path / "tokens.txt", 2), 0, "train")
    assert list(as_dict(vocabulary).items()) == [("<rare>", 0), ("<year>", 0), ("a", 1), ("b", 1)]


def test_documents_end_with_blank_lines_and_with_the_file(tmp_path):
    (tmp_path / "tokens.txt").write_text("\na b\nc\n\n\nd e\n\nf\n")
    assert document_ends(tmp_path / "tokens.txt").tolist() == [3, 5, 6]
    assert [nearest_end(size, np.array([3, 5, 6])) for size in (1, 4, 5, 99)] == [3, 3, 5, 6]


def test_marks_come_behind_rare_whatever_their_count(tmp_path):
    (tmp_path / "tokens.txt").write_text("<text> <paragraph> a a a a\n<paragraph> b\n")
    vocabulary = build_vocabulary(count_words(tmp_path / "tokens.txt"), 3, "corpus")
    assert list(as_dict(vocabulary).items()) == [("<rare>", 1), ("<text>", 1), ("<paragraph>", 2), ("a", 4)]


@settings(deadline=None)
@given(st.dictionaries(WORD.filter(lambda word: not word.startswith("<")), st.integers(1, 9)), st.integers(0, 9))
def test_counts_add_up_and_no_word_below_the_threshold_is_kept(counts, threshold):
    vocabulary = build_vocabulary(Counter(counts), threshold, "corpus")
    assert vocabulary.counts.sum() == sum(counts.values())
    assert set(vocabulary.words[1:]) == {word for word in counts if counts[word] > threshold}


def test_train_larger_than_the_corpus(tokens):
    with pytest.raises(InputError, match=r"tokens.txt: holds 13 tokens, fewer than train's 14"):
        count_words(tokens, 14)


def test_reserved_symbol_among_the_tokens(tmp_path):
    (tmp_path / "tokens.txt").write_text("a b\nc <rare>\n")
    with pytest.raises(InputError, match=r"tokens.txt:2: '<rare>' is a reserved symbol"):
        count_words(tmp_path / "tokens.txt")


@settings(deadline=None)
@given(st.sets(WORD))
def test_a_vocabulary_is_read_back_as_it_was(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.tsv"
    words = ["<rare>", *sorted(words - {"<rare>"})]
    written = Vocabulary(words, np.arange(len(words)), "train", 3)
    write_vocabulary(path, written)
    read = read_vocabulary(path)
    assert (read.words, read.scope, read.rare_threshold, read.hash) == (words, "train", 3, written.hash)
    np.testing.assert_array_equal(read.counts, written.counts)


def test_a_vocabulary_saved_by_another_editor_is_the_same(tmp_path):
    path = tmp_path / "vocabulary.tsv"
    path.write_bytes(b'\xef\xbb\xbf# scope=corpus rare_threshold=1\r\nid\tword\tcount\r\n0\t<rare>\t5\r\n1\t"\t2')
    vocabulary = read_vocabulary(path)
    assert (as_dict(vocabulary), vocabulary.scope, vocabulary.rare_threshold) == ({"<rare>": 5, '"': 2}, "corpus", 1)


def test_the_hash_names_the_words_and_their_order():
    words = ["<rare>", "a", "b"]
    hashes = {
        Vocabulary(words, np.array([1, 1, 1])).hash,
        Vocabulary(words, np.array([9, 3, 2])).hash,
        Vocabulary(["<rare>", "b", "a"], np.array([1, 1, 1])).hash,
        Vocabulary([*words, "c"], np.array([1, 1, 1, 1])).hash,
    }
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0\t<rare>\t1\n", ":1: expected the column names"),
        ("# scope=moon rare_threshold=3\nid\tword\tcount\n", ":1: expected the column names"),
        ("id\tword\tcount\n", ":2: id 0 is not <rare>"),
        ("id\tword\tcount\n0\tthe\t1\n", ":2: id 0 is not <rare>"),
        ("id\tword\tcount\n0\t<rare>\t1\n2\ta\t1\n", ":3: id 2 stands where 1 is expected"),
        ("id\tword\tcount\n0\t<rare>\t1\n1 a 1\n", ":3: expected id, word and count"),
        ("id\tword\tcount\n0\t<rare>\t1\n1\ta\t-1\n", ":3: expected id, word and count"),
        ("id\tword\tcount\n0\t<rare>\t1\n1\ta\xa0b\t1\n", ":3: expected id, word and count"),
        ("id\tword\tcount\n0\t<rare>\t1\n\n", ":3: expected id, word and count"),
        ("id\tword\tcount\n0\t<rare>\t1\n1\ta\t1\n2\ta\t1\n", ":4: 'a' occurs twice"),
    ],
)
def test_what_is_no_vocabulary_is_named_with_its_line(tmp_path, content, message):
    path = tmp_path / "vocabulary.tsv"
    path.write_text(content)
    with pytest.raises(InputError, match=f"vocabulary.tsv{message}.*build-vocabulary"):
        read_vocabulary(path)


def test_vocabulary_and_ids_do_not_depend_on_the_hash_seed(tmp_path):
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("\n".join(f"w{number % 97} x{number % 31} ." for number in range(500)))
    made = set()
    for seed in ("0", "1", "2003"):
        output = tmp_path / seed
        code = (
            "import sys; from nplm.cli import app; from nplm.streams import read_split\n"
            "tokens, output = sys.argv[1:]\n"
            "app(['build-vocabulary', '--tokens', tokens, '--output', f'{output}/v.tsv'], standalone_mode=False)\n"
            "app(['encode-corpus', '--tokens', tokens, '--vocabulary', f'{output}/v.tsv', '--train-size', '900',"
            " '--valid-size', '300', '--output-directory', output], standalone_mode=False)\n"
            "print([read_split(f'{output}/{split}.safetensors').tokens.tolist() for split in ('train', 'test')])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, tokens, output],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        made.add(((output / "v.tsv").read_text(), done.stdout.splitlines()[-1], (output / "corpus.json").read_text()))
    assert len(made) == 1


@pytest.mark.skipif(not BROWN.exists(), reason="the Brown corpus has not been retrieved (snakemake retrieve_corpus)")
def test_counts_of_the_brown_corpus(tmp_path):
    record = tmp_path / "tokens.json"
    command = ["tokenize-corpus", "--source", "brown", "--input", BROWN, "--output", tmp_path / "tokens.txt"]
    app([*map(str, command), "--record", str(record)], standalone_mode=False)
    counts = json.loads(record.read_text())
    assert [counts[what] for what in ("texts", "paragraphs", "sentences", "tokens")] == [500, 15_667, 57_340, 1_161_192]
    words = count_words(tmp_path / "tokens.txt")
    assert len(words) == 56_057
    vocabulary = build_vocabulary(words, 3, "corpus")
    assert (len(vocabulary), vocabulary.hash) == (17_905, "5451295e4468a923")
    assert len(build_vocabulary(count_words(tmp_path / "tokens.txt", 800_000), 3, "train")) == 14_114
