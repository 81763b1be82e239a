import json

import numpy as np
import pytest

from nplm.cli import app
from nplm.corpus.encode import corpus_card, encode_tokens, split_stream
from nplm.corpus.vocabulary import Vocabulary, read_vocabulary
from nplm.errors import InputError
from nplm.streams import HISTORY_KEPT, contexts, read_split


def vocabulary_of(size):
    return Vocabulary(["<rare>", *(f"w{id}" for id in range(1, size))], np.ones(size, dtype=np.int64))


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens.txt"
    path.write_text("w1 w2 unknown w1\nw2 other\n\nw3 w1 other\n")
    return path


def test_words_without_an_id_become_rare(tokens):
    stream = encode_tokens(tokens, vocabulary_of(5))
    assert stream.ids.tolist() == [1, 2, 0, 1, 2, 0, 3, 1, 0]
    assert stream.sentence_ends.tolist() == [4, 6, 9]
    assert stream.document_ends.tolist() == [6, 9]
    assert stream.distinct == 5


@pytest.mark.parametrize(("size", "dtype"), [(4, "uint8"), (256, "uint8"), (257, "uint16"), (70_000, "uint32")])
def test_ids_have_the_smallest_unsigned_type(tokens, size, dtype):
    assert encode_tokens(tokens, vocabulary_of(size)).ids.dtype == dtype


def test_a_mark_that_the_vocabulary_lacks_is_not_made_rare(tmp_path):
    (tmp_path / "tokens.txt").write_text("<paragraph> w1\n")
    with pytest.raises(InputError, match=r"tokens.txt: holds '<paragraph>', which the vocabulary lacks"):
        encode_tokens(tmp_path / "tokens.txt", vocabulary_of(5))


def test_splits_are_contiguous_and_contexts_run_across_them():
    ids = np.arange(500, dtype=np.uint16)
    splits = split_stream(ids, 300, 50, vocabulary_of(500))
    assert [split.name for split in splits] == ["train", "valid", "test"]
    assert [len(split) for split in splits] == [300, 50, 150]
    np.testing.assert_array_equal(np.concatenate([split.tokens for split in splits]), ids)
    assert [len(split.history) for split in splits] == [0, HISTORY_KEPT, HISTORY_KEPT]
    assert contexts(splits[2], 4)[0].tolist() == [346, 347, 348, 349]
    assert contexts(splits[0], 2)[1].tolist() == [-1, 0]


def test_history_is_as_short_as_what_comes_before():
    splits = split_stream(np.arange(500), 2, 3, vocabulary_of(500))
    assert [split.history.tolist() for split in splits] == [[], [0, 1], [0, 1, 2, 3, 4]]


@pytest.mark.parametrize("valid_size", [2, 3])
def test_splits_that_leave_nothing_for_test(valid_size):
    with pytest.raises(InputError, match=rf"train 7 \+ valid {valid_size} = {7 + valid_size} .* 9 for test; lower"):
        split_stream(np.arange(9), 7, valid_size, vocabulary_of(9))


def test_bounds_move_to_the_nearest_end_of_a_document():
    splits = split_stream(np.arange(20), 7, 4, vocabulary_of(20), None, np.array([3, 6, 9, 14, 20]))
    assert [(split.tokens[0], len(split)) for split in splits] == [(0, 6), (6, 3), (9, 11)]
    splits = split_stream(np.arange(20), 7, 4, vocabulary_of(20), 4, np.array([3, 6, 9, 14, 20]))
    assert [(split.tokens[0], len(split)) for split in splits] == [(0, 6), (6, 3), (9, 5)]


def test_a_split_without_a_document_is_refused():
    with pytest.raises(InputError, match="valid: no document of the corpus's 2 ends near"):
        split_stream(np.arange(20), 7, 4, vocabulary_of(20), None, np.array([8, 20]))


def test_what_is_behind_a_test_split_of_given_size_is_in_no_split(tokens):
    vocabulary = vocabulary_of(5)
    stream = encode_tokens(tokens, vocabulary)
    splits = split_stream(stream.ids, 4, 2, vocabulary, 2)
    assert [split.tokens.tolist() for split in splits] == [[1, 2, 0, 1], [2, 0], [3, 1]]
    assert corpus_card(stream, splits, vocabulary)["unused_tokens"] == 1
    with pytest.raises(InputError, match=r"train 4 \+ valid 2 \+ test 4 = 10 tokens are more than all of .* 9; lower"):
        split_stream(stream.ids, 4, 2, vocabulary, 4)


def test_card_counts_the_corpus_and_its_splits(tokens):
    vocabulary = vocabulary_of(5)
    stream = encode_tokens(tokens, vocabulary)
    card = corpus_card(stream, split_stream(stream.ids, 5, 2, vocabulary), vocabulary)
    expected = {
        "tokens": 9,
        "distinct": 5,
        "sentences": 3,
        "vocabulary": vocabulary.hash,
        "vocabulary_size": 5,
        "words_unseen_in_train": 2,  # w3, w4
        "train_first": 0,
        "train_tokens": 5,
        "train_rare_tokens": 1,
        "train_rare_rate": 0.2,
        "train_sentences": 1,
        "valid_first": 5,
        "valid_tokens": 2,
        "valid_rare_tokens": 1,
        "valid_rare_rate": 0.5,
        "valid_sentences": 1,
        "test_first": 7,
        "test_tokens": 2,
        "test_rare_tokens": 1,
        "test_rare_rate": 0.5,
        "test_sentences": 1,
    }
    assert expected.items() <= card.items()


@pytest.mark.parametrize(
    ("record", "mapping", "message"),
    [
        ({"tokens": 8}, None, "record counts 8 tokens but the stream has 9"),
        ({}, None, "record counts None tokens"),
        (None, {}, "record counts None tokens"),
        (None, {"tokens": 9}, "the record of the mapping is not what map-tokens writes"),
        (None, {"tokens": 9, "distinct": 1, "mapping": {}, "steps": {"a": 1}}, "is not what map-tokens writes"),
    ],
)
def test_record_of_other_tokens_is_refused(tokens, record, mapping, message):
    vocabulary = vocabulary_of(5)
    stream = encode_tokens(tokens, vocabulary)
    with pytest.raises(InputError, match=message):
        corpus_card(stream, split_stream(stream.ids, 5, 2, vocabulary), vocabulary, record, mapping)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("tokenize-corpus --source text --input a.txt --output a.txt", "a.txt: is an input"),
        ("tokenize-corpus --source text --input a.txt --output b --record ./b", "b: is another output"),
        ("build-vocabulary --tokens a.txt --output a.txt", "a.txt: is an input"),
        ("map-tokens --tokens a.txt --output b --record c --proper-noun-table b", "b: is another output"),
        (
            "encode-corpus --tokens a.txt --vocabulary a.txt --train-size 1 --valid-size 1 --output-directory . "
            "--record corpus.json",
            "corpus.json: is an input",
        ),
        (
            "encode-corpus --tokens a.txt --vocabulary a.txt --train-size 1 --valid-size 1 --output-directory a.txt",
            "a.txt/train.safetensors: cannot be written",
        ),
    ],
)
def test_an_output_that_would_replace_another_file_is_refused_and_nothing_written(
    tmp_path, monkeypatch, command, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(InputError, match=message):
        app(command.split(), standalone_mode=False)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "a")]


def test_from_texts_to_splits_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfThe cat sat.\r\nThe dog sat.\r\n\r\nThe end.")
    (tmp_path / "b.txt").write_bytes(b"The cat sat, the dog sat.")
    for command in (
        "tokenize-corpus --source text --tokenizer raw --input a.txt --input b.* --marks text+paragraph "
        "--output tokens.txt --record tokens.json",
        "build-vocabulary --tokens tokens.txt --scope train --train-size 12 --rare-threshold 1 --output vocabulary.tsv",
        "encode-corpus --tokens tokens.txt --vocabulary vocabulary.tsv --train-size 12 --valid-size 6 "
        "--output-directory splits --record tokens.json",
    ):
        app(command.split(), standalone_mode=False)
    vocabulary = read_vocabulary("vocabulary.tsv")
    assert vocabulary.words == ["<rare>", "<text>", "<paragraph>", "The", ".", "sat"]
    splits = [read_split(f"splits/{name}.safetensors") for name in ("train", "valid", "test")]
    assert " ".join(vocabulary.words[id] for split in splits for id in split.tokens) == (
        "<text> <paragraph> The <rare> sat . The <rare> sat . <paragraph> The "
        "<rare> . <text> <paragraph> The <rare> sat <rare> <rare> <rare> sat ."
    )
    assert {(split.vocabulary, split.vocabulary_size) for split in splits} == {(vocabulary.hash, 6)}
    card = json.loads((tmp_path / "splits" / "corpus.json").read_text())
    assert {
        key: card[key] for key in ("corpus", "source", "tokenizer", "marks", "texts", "paragraphs", "sentences")
    } == {
        "corpus": "text",
        "source": "a.txt ... b.txt",
        "tokenizer": "raw",
        "marks": "text+paragraph",
        "texts": 2,
        "paragraphs": 3,
        "sentences": 4,
    }
    assert (card["vocabulary_scope"], card["rare_threshold"]) == ("train", 1)
