"""From tokens and a vocabulary to the three splits of the stream, and the corpus card that counts what is in them."""

from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nplm.corpus.vocabulary import SPECIAL_SYMBOLS, Vocabulary, nearest_end, read_tokens
from nplm.errors import InputError
from nplm.streams import HISTORY_KEPT, Split

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class EncodedStream:
    """The whole corpus: `ids` [T]; the number of tokens up to and with each sentence [S] and each document [D]."""

    ids: np.ndarray
    sentence_ends: np.ndarray
    document_ends: np.ndarray
    distinct: int
    """different tokens before rare ones became <rare>, marks included"""


def encode_tokens(tokens: str | Path, vocabulary: Vocabulary) -> EncodedStream:
    """The ids of all tokens of a file made by tokenize-corpus or map-tokens, in the smallest type that holds |V| - 1.

    Raises InputError where the file is bad (see `read_tokens`) or holds a special symbol that the vocabulary lacks.
    """
    ids = array("I")
    sentence_ends, document_ends = array("Q"), array("Q")
    distinct: set[str] = set()
    index = vocabulary.index
    blank = True
    for words, ends_line in read_tokens(tokens):
        blank &= not words
        distinct.update(words)
        ids.extend([index.get(word, 0) for word in words])
        if ends_line:
            if not blank:
                sentence_ends.append(len(ids))
            elif ids:
                document_ends.append(len(ids))
            blank = True
    document_ends.append(len(ids))
    for symbol in SPECIAL_SYMBOLS:
        if symbol in distinct and symbol not in index:
            raise InputError(f"{tokens}: holds '{symbol}', which the vocabulary lacks; build it from these tokens")
    return EncodedStream(
        ids=np.array(ids, dtype=np.min_scalar_type(len(vocabulary) - 1)),
        sentence_ends=np.array(sentence_ends, dtype=np.int64),
        document_ends=np.unique(np.array(document_ends, dtype=np.int64)),
        distinct=len(distinct),
    )


def split_stream(
    ids: np.ndarray,
    train_size: int,
    valid_size: int,
    vocabulary: Vocabulary,
    test_size: int | None = None,
    document_ends: np.ndarray | None = None,
) -> list[Split]:
    """The contiguous splits of the stream: train, valid and test, which is the rest where its size is not given.

    Each has the tokens before it. With `document_ends` every bound is moved to the nearest end of a document.
    Raises InputError where a split would be empty or the stream is too short.
    """
    sizes = (train_size, valid_size) if test_size is None else (train_size, valid_size, test_size)
    wanted = [sum(sizes[: count + 1]) for count in range(len(sizes))]
    if wanted[-1] > len(ids) or (test_size is None and wanted[-1] == len(ids)):
        named = " + ".join(f"{name} {size}" for name, size in zip(SPLITS, sizes, strict=False))
        raise InputError(
            f"{named} = {wanted[-1]} tokens {'leave none' if test_size is None else 'are more than all'} of the "
            f"corpus's {len(ids)}{' for test' if test_size is None else ''}; lower splits.train or splits.valid"
        )
    bounds = [0, *wanted, *([len(ids)] if test_size is None else [])]
    if document_ends is not None:
        bounds[1:] = [nearest_end(bound, document_ends) for bound in bounds[1:]]
        for name, start, end in zip(SPLITS, bounds[:-1], bounds[1:], strict=True):
            if start >= end:
                raise InputError(
                    f"{name}: no document of the corpus's {len(document_ends)} ends near its bounds; change its size "
                    "(config key splits), or set splits.at to token"
                )
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


def mapping_counts(record: dict) -> dict[str, object]:
    """What the corpus card says of the mapping, from the record that map-tokens made: one flat record.

    Raises InputError for another record.
    """
    try:
        found = {"distinct": record["distinct"]}
        found |= {f"mapping_{option}": value for option, value in record["mapping"].items()}
        for step, counts in record["steps"].items():
            found[f"{step}_tokens_changed"] = counts["tokens_changed"]
            found[f"{step}_types_changed"] = counts["types_changed"]
            if counts["symbols"]:
                found[f"{step}_symbols"] = [f"{symbol} ({count})" for symbol, count in counts["symbols"].items()]
            found[f"{step}_examples"] = [f"{before} → {after} ({count})" for before, after, count in counts["examples"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            "the record of the mapping is not what map-tokens writes; give the one it made of these tokens"
        ) from None
    return found


def corpus_card(
    stream: EncodedStream,
    splits: list[Split],
    vocabulary: Vocabulary,
    record: dict[str, object] | None = None,
    mapping: dict[str, object] | None = None,
) -> dict[str, object]:
    """What the corpus and its splits hold, one flat record; a split's sentences are those that end in it.

    `record` is what tokenize-corpus noted of the corpus; without it the card lacks the origin of the tokens. `mapping`
    is what map-tokens noted, if the tokens were mapped.
    Raises InputError when a record is of other tokens.
    """
    for stage, noted in (("tokenize-corpus", record), ("map-tokens", mapping)):
        if noted is not None and noted.get("tokens") != len(stream.ids):
            raise InputError(
                f"the record counts {noted.get('tokens')} tokens but the stream has {len(stream.ids)}; "
                f"give the record that {stage} made with these tokens"
            )
    card: dict[str, object] = {
        **(record or {}),
        "tokens": len(stream.ids),
        "distinct": stream.distinct,
        **({"distinct_mapped": stream.distinct, **mapping_counts(mapping)} if mapping else {}),
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
    if first < len(stream.ids):
        card["unused_tokens"] = len(stream.ids) - first
    return card
