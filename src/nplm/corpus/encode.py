"""From tokens and a vocabulary to the three splits of the stream, and the corpus card that counts what is in them."""

from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nplm.corpus.text import read_pieces
from nplm.corpus.vocabulary import PARAGRAPH, TEXT, Vocabulary
from nplm.errors import InputError
from nplm.streams import HISTORY_KEPT, Split

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class EncodedStream:
    """The whole corpus: `ids` [T]; `sentence_ends` [S], the number of tokens up to and with each sentence."""

    ids: np.ndarray
    sentence_ends: np.ndarray
    distinct: int
    """different tokens before rare ones were mapped, marks included"""


def encode_tokens(tokens: str | Path, vocabulary: Vocabulary) -> EncodedStream:
    """The ids of all tokens of a file made by tokenize-corpus, in the smallest unsigned type that holds |V| - 1."""
    ids = array("I")
    sentence_ends = array("Q")
    distinct: set[str] = set()
    index = vocabulary.index
    for _, text, ends_line in read_pieces(tokens):
        words = text.split()
        distinct.update(words)
        ids.extend([index.get(word, 0) for word in words])
        if ends_line:
            sentence_ends.append(len(ids))
    dtype = np.min_scalar_type(len(vocabulary) - 1)
    return EncodedStream(
        ids=np.frombuffer(ids, dtype=np.uint32).astype(dtype),
        sentence_ends=np.frombuffer(sentence_ends, dtype=np.uint64).astype(np.int64),
        distinct=len(distinct),
    )


def split_stream(ids: np.ndarray, train_size: int, valid_size: int, vocabulary: Vocabulary) -> list[Split]:
    """The contiguous splits of the stream: train, valid and, as test, the rest; each with the tokens before it.

    Raises InputError where train and valid leave nothing for test.
    """
    if train_size + valid_size >= len(ids):
        raise InputError(
            f"train {train_size} + valid {valid_size} = {train_size + valid_size} tokens leave none of the corpus's "
            f"{len(ids)} for test; lower splits.train or splits.valid"
        )
    bounds = (0, train_size, train_size + valid_size, len(ids))
    return [
        Split(
            name=name,
            tokens=ids[start:end],
            history=ids[max(0, start - HISTORY_KEPT) : start],
            vocabulary=vocabulary.hash,
            vocabulary_size=len(vocabulary),
        )
        for name, start, end in zip(SPLITS, bounds[:-1], bounds[1:], strict=True)
    ]


def corpus_card(stream: EncodedStream, splits: list[Split], vocabulary: Vocabulary) -> dict[str, object]:
    """What the corpus and its splits hold, one flat record; a split's sentences are those that end in it."""
    train = splits[0]
    in_train = np.bincount(train.tokens, minlength=len(vocabulary))
    card: dict[str, object] = {
        "tokens": len(stream.ids),
        "distinct": stream.distinct,
        "sentences": len(stream.sentence_ends),
        "marks": [mark for mark in (TEXT, PARAGRAPH) if mark in vocabulary.index],
        "vocabulary_size": len(vocabulary),
        "vocabulary": vocabulary.hash,
        "vocabulary_scope": vocabulary.scope,
        "rare_threshold": vocabulary.rare_threshold,
        "words_unseen_in_train": int((in_train == 0).sum()),
    }
    first = 0
    for split in splits:
        end = first + len(split)
        rare = int((split.tokens == 0).sum())
        sentences = np.searchsorted(stream.sentence_ends, [first, end], side="right")
        card |= {
            f"{split.name}_first": first,
            f"{split.name}_tokens": len(split),
            f"{split.name}_rare_tokens": rare,
            f"{split.name}_rare_rate": rare / len(split),
            f"{split.name}_sentences": int(sentences[1] - sentences[0]),
        }
        first = end
    return card
