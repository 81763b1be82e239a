"""The out-of-vocabulary step of section 5.1: features for words that an energy network was trained without.

The network was trained with words held out: wherever they stand in train it saw <rare>. Each of them, j, now gets
features and joins the vocabulary:

    C(j) = mean over its first contexts in train of  sum over i of P(i | context) C(i)

with i the words that the network knows. The energy is of the features alone but for b, and b[j] says how often a word
is to be expected: <rare> and the held-out words share the expectation of <rare> equally, b[j] = b[<rare>] + ln(1 +
their number). So with the features of <rare> for all of them, every word has just the probability that the network
itself gives it, which shares P(<rare>) among them: what the features add is all that differs. P is normalised over the
whole vocabulary, held-out words included, and they have their new features as words of a context, too.
"""

import json
from math import log
from pathlib import Path

import numpy as np
import torch

from nplm.arrays import read_arrays, require_same_vocabulary, write_arrays
from nplm.errors import InputError
from nplm.neural.energy import RARE, EnergyShape, known_logits
from nplm.neural.model import NetworkModel, word_ids
from nplm.neural.model import read_model as read_network
from nplm.streams import Split, contexts, read_split


def fit_row(inputs: dict[str, Path], row: dict, seed: int | None) -> NetworkModel:
    """The model of a row of the configuration. Raises InputError where the network knows every word."""
    model, train = read_network(inputs["network"]), read_split(inputs["train"])
    if not isinstance(model.architecture, EnergyShape):
        raise InputError(
            f"{inputs['network']}: holds '{model.row['kind']}'; give an energy network that holds out words"
        )
    require_same_vocabulary((inputs["network"], model.vocabulary), (inputs["train"], train.vocabulary))
    held_out = list(model.architecture.held_out)
    if not held_out:
        raise InputError(f"{inputs['network']}: was trained with every word; train it with held_out > 0")
    C, b = model.parameters["C"].clone(), model.parameters["b"].clone()
    if row["features"] == "rare":
        C[held_out] = C[RARE].clone()
    elif row["features"] == "random":
        C[held_out] = random_features(C, held_out, seed)
    else:
        for word in held_out:
            C[word] = features_of_contexts(model, first_contexts(train, word, model.n - 1, row["contexts"]))
    b[[RARE, *held_out]] = b[RARE] + log(1 + len(held_out))
    return scorer(model.parameters | {"C": C, "b": b}, held_out, row, model.vocabulary)


def scorer(parameters: dict[str, torch.Tensor], held_out: list[int], row: dict, vocabulary: str) -> NetworkModel:
    """The network in which the words have features, so that it holds none out; the row keeps which they are."""
    (V, m), (h, width) = parameters["C"].shape, parameters["H"].shape
    return NetworkModel(row | {"held_out": held_out}, EnergyShape(V, width // m, h, m), parameters, vocabulary)


def first_contexts(train: Split, word: int, length: int, number: int) -> np.ndarray:
    """The contexts [≤ number, length] of a word's first occurrences in train."""
    return contexts(train, length)[np.flatnonzero(train.tokens == word)[:number]]


def features_of_contexts(model: NetworkModel, of_word: np.ndarray) -> torch.Tensor:
    """C [m] of a word in these contexts: the mean of the features expected there, or without contexts C of <rare>."""
    C = model.parameters["C"]
    if not len(of_word):
        return C[RARE]
    y = known_logits(model.architecture, model.parameters, word_ids(of_word))
    return (torch.softmax(y, dim=1) @ C).mean(dim=0)


def random_features(C: torch.Tensor, held_out: list[int], seed: int) -> torch.Tensor:
    """Features [held out, m] drawn from the normal distribution with the mean and deviation of the known words' C."""
    known = torch.ones(len(C), dtype=torch.bool)
    known[held_out] = False
    noise = torch.randn(len(held_out), C.shape[1], generator=torch.Generator().manual_seed(seed))
    return C[known].mean(dim=0) + C[known].std(dim=0) * noise


def describe(model: NetworkModel) -> list[str]:
    """How many words got features, and from what."""
    row = model.row
    source = f"their first {row['contexts']} contexts" if row["features"] == "contexts" else row["features"]
    return [f"{len(row['held_out'])} words with features from {source}"]


def write_model(path: str | Path, model: NetworkModel) -> None:
    """Write a model; see `read_model`."""
    arrays = {name: tensor.numpy() for name, tensor in model.parameters.items()}
    row = {key: value for key, value in model.row.items() if key != "held_out"}
    write_arrays(
        path,
        row["kind"],
        arrays | {"held_out": np.array(model.row["held_out"], dtype=np.int64)},
        row=json.dumps(row, sort_keys=True),
        vocabulary=model.vocabulary,
    )


def read_model(path: str | Path) -> NetworkModel:
    """Read a model written by `write_model`. Raises InputError for anything else."""
    arrays, header = read_arrays(path, "unseen_words")
    held_out = arrays.pop("held_out").tolist()
    parameters = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return scorer(parameters, held_out, json.loads(header["row"]), header["vocabulary"])
