"""From tokens and a vocabulary to the three splits of the stream, and the corpus card that counts what is in them."""

from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nplm.corpus.vocabulary import PARAGRAPH, TEXT, Vocabulary, read_tokens
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
    """The ids of all tokens of a file made by tokenize-corpus, in the smallest unsigned type that holds |V| - 1.

    Raises InputError where the file is bad (see `read_tokens`) or holds a mark that the vocabulary lacks.
    """
    ids = array("I")
    sentence_ends = array("Q")
    distinct: set[str] = set()
    index = vocabulary.index
    for words, ends_line in read_tokens(tokens):
        distinct.update(words)
        ids.extend([index.get(word, 0) for word in words])
        if ends_line:
            sentence_ends.append(len(ids))
    for mark in (TEXT, PARAGRAPH):
        if mark in distinct and mark not in index:
            raise InputError(
                f"{tokens}: holds the mark '{mark}', which the vocabulary lacks; build it from these tokens"
            )
    return EncodedStream(
        ids=np.array(ids, dtype=np.min_scalar_type(len(vocabulary) - 1)),
        sentence_ends=np.unique(np.array(sentence_ends, dtype=np.int64)),  # a blank line ends no sentence
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


def corpus_card(
    stream: EncodedStream, splits: list[Split], vocabulary: Vocabulary, record: dict[str, object] | None = None
) -> dict[str, object]:
    """What the corpus and its splits hold, one flat record; a split's sentences are those that end in it.

    `record` is what tokenize-corpus noted of the corpus; without it the card lacks the origin of the tokens.
    Raises InputError when the record is of other tokens.
    """
    if record and record.get("tokens") != len(stream.ids):
        raise InputError(
            f"the record counts {record.get('tokens')} tokens but the stream has {len(stream.ids)}; "
            "give the record that tokenize-corpus made with these tokens"
        )
    card: dict[str, object] = {
        **(record or {}),
        "tokens": len(stream.ids),
        "distinct": stream.distinct,
        "sentences": len(stream.sentence_ends),
        "vocabulary": vocabulary.hash,
        "vocabulary_size": len(vocabulary),
        "vocabulary_scope": vocabulary.scope,
        "rare_threshold": vocabulary.rare_threshold,
        "words_unseen_in_train": len(vocabulary) - len(np.unique(splits[0].tokens)),
    }
    first = 0
    for split in splits:
        end = first + len(split)
        rare = int(np.count_nonzero(split.tokens == 0))
        before, within = np.searchsorted(stream.sentence_ends, [first, end], side="right").tolist()
        card |= {
            f"{split.name}_first": first,
            f"{split.name}_tokens": len(split),
            f"{split.name}_rare_tokens": rare,
            f"{split.name}_rare_rate": rare / len(split),
            f"{split.name}_sentences": within - before,
        }
        first = end
    return card
