"""Score streams from outside: another toolkit's log-probability of every token of a split, as numbers in a text."""

from pathlib import Path

import numpy as np

from nplm.errors import InputError
from nplm.files import read_text
from nplm.kinds import FAMILIES, ORDER, TEXT, Key, Kind, choice, whole_number
from nplm.scores import ScoreStream, check_ln_prob
from nplm.streams import Split

KIND = Kind(
    name="external",
    title="another toolkit's model, of which only scores are given",
    source="docs/report.md",
    own_keys=(
        Key("family", choice(*FAMILIES[:2]), "which rows of the tables it is compared with"),
        Key("logarithm", choice("natural", "log10"), "what the files hold"),
        Key("vocabulary_size", whole_number(2), "words that the model shares its probability among"),
        Key(
            "train", {"type": ["string", "null"], "minLength": 1}, "file of the train split, where that is scored", None
        ),
        Key("valid", TEXT, "text file with the log-probability of every token of valid"),
        Key("test", TEXT, "the same of test"),
        Key("n", ORDER | {"type": ["integer", "null"]}, "order, for the tables", None, column="n"),
    ),
    code=None,
    family=None,
)
TO_NATS = {"natural": 1.0, "log10": float(np.log(10))}
"""Logarithm of the file -> factor that makes it natural."""


def read_external_scores(
    path: str | Path, logarithm: str, vocabulary_size: int, split: Split, model: str
) -> ScoreStream:
    """The score stream in a text file that has one number a line (or several, white space between), a token each.

    logarithm: "natural" or "log10"; vocabulary_size: the words that the model shares its probability among. Raises
    InputError when a number is none or is no logarithm of a probability, and, with both numbers, when the file has
    more or fewer of them than the split has tokens, or the model another number of words than the split.
    """
    if logarithm not in TO_NATS:
        raise InputError(f"{model}: logarithm '{logarithm}' is unknown; choose one of {', '.join(TO_NATS)}")
    if vocabulary_size != split.vocabulary_size:
        raise InputError(
            f"{model} shares its probability among {vocabulary_size} words but the vocabulary of {split.name} has "
            f"{split.vocabulary_size}; score with the vocabulary of the split, or correct vocabulary_size"
        )
    numbers = read_text(path).split()
    if len(numbers) != len(split):
        raise InputError(
            f"{path}: has {len(numbers)} log-probabilities but {split.name} has {len(split)} tokens; "
            "give one for each token, sentence ends and <rare> as the split has them"
        )
    try:
        ln_prob = np.array(numbers, dtype=np.float64) * TO_NATS[logarithm]
    except ValueError as error:
        raise InputError(f"{path}: {error}; give one number a token and nothing else") from None
    check_ln_prob(ln_prob, str(path))
    return ScoreStream(model, split.name, ln_prob, split.vocabulary)
