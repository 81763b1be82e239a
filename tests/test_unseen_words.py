"""The out-of-vocabulary step: features made of contexts, what is normalised over what, and the table of it."""

import csv

import numpy as np
import pytest
import torch

from nplm.errors import InputError
from nplm.neural import unseen_words
from nplm.neural.energy import EnergyShape, known_logits
from nplm.neural.model import NetworkModel, architecture_of, write_model
from nplm.report.unseen_words import tabulate_unseen_words
from nplm.rows import complete_row
from nplm.scorers import load_scorer
from nplm.streams import Split, contexts, write_split

V = 40
ENERGY = complete_row({"kind": "energy", "n": 3, "h": 4, "m": 3, "held_out": 4}, {}, "row")
RANDOM = np.random.default_rng(3)


@pytest.fixture
def inputs(tmp_path) -> dict:
    """An energy network of random parameters that holds out four words, and a train split with all words."""
    shape = architecture_of(ENERGY, V)
    generator = torch.Generator().manual_seed(1)
    parameters = {name: torch.randn(size, generator=generator) for name, size in shape.sizes.items()}
    write_model(tmp_path / "energy", NetworkModel(ENERGY, shape, parameters, "hash"))
    tokens = RANDOM.integers(0, V, 600).astype(np.uint8)
    write_split(tmp_path / "train", Split("train", tokens, tokens[:0], "hash", V))
    return {"network": tmp_path / "energy", "train": tmp_path / "train"}


def fitted(inputs: dict, seed: int = 5, **keys: object) -> NetworkModel:
    row = complete_row({"kind": "unseen_words", "network": "energy"} | keys, {}, "row")
    return unseen_words.fit_row(inputs, row, seed)


def test_probabilities_sum_to_one_over_all_words_the_new_ones_included(inputs):
    for keys in ({"contexts": 2}, {"features": "random"}, {"features": "rare"}):
        model = fitted(inputs, **keys)
        for context in ([-1, 3], [7, 8], [V - 1, 0]):
            ln_prob = model.ln_prob(np.tile(np.array(context, np.int32), (V, 1)), np.arange(V))
            assert np.exp(ln_prob).sum() == pytest.approx(1, abs=1e-5)


def test_with_the_features_of_rare_words_are_as_probable_as_the_network_says(inputs):
    network, model = load_scorer(inputs["network"]), fitted(inputs, features="rare")
    words = RANDOM.integers(0, V, 200)
    of = RANDOM.integers(0, V, (200, 2)).astype(np.int32)
    np.testing.assert_allclose(model.ln_prob(of, words), network.ln_prob(of, words), rtol=1e-4, atol=1e-5)


def test_features_are_expected_over_the_known_words_in_the_words_first_contexts(inputs):
    network, model = load_scorer(inputs["network"]), fitted(inputs, contexts=2)
    word = network.architecture.held_out[1]
    train = unseen_words.read_split(inputs["train"])
    first = contexts(train, 2)[np.flatnonzero(train.tokens == word)[:2]]
    known = np.setdiff1d(np.arange(V), network.architecture.held_out)
    C = network.parameters["C"].numpy()
    expected = np.zeros(3)
    for context in first:
        ln_prob = network.ln_prob(np.tile(context, (len(known), 1)), known)
        ln_prob[0] += np.log(1 + len(network.architecture.held_out))  # all of <rare>, of which the scorer gives a share
        expected += np.exp(ln_prob) @ C[known] / len(first)
    np.testing.assert_allclose(model.parameters["C"][word].numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(model.parameters["C"].numpy()[known], C[known])


def test_a_model_read_back_scores_the_same_and_knows_what_was_held_out(inputs, tmp_path):
    model = fitted(inputs)
    unseen_words.write_model(tmp_path / "model", model)
    same = load_scorer(tmp_path / "model")
    of, words = RANDOM.integers(0, V, (50, 2)).astype(np.int32), RANDOM.integers(0, V, 50)
    np.testing.assert_array_equal(same.ln_prob(of, words), model.ln_prob(of, words))
    assert same.row["held_out"] == list(architecture_of(ENERGY, V).held_out)


def test_random_features_follow_the_seed_and_the_known_words(inputs):
    C = [fitted(inputs, seed, features="random").parameters["C"] for seed in (1, 1, 2)]
    assert torch.equal(C[0], C[1]) and not torch.equal(C[0], C[2])


def test_a_network_that_knows_every_word_is_refused(inputs, tmp_path):
    row = ENERGY | {"held_out": 0}
    shape = EnergyShape(V, 3, 4, 3)
    write_model(tmp_path / "all", NetworkModel(row, shape, shape.initial_parameters(1), "hash"))
    with pytest.raises(InputError, match="trained with every word; train it with held_out > 0"):
        fitted(inputs | {"network": tmp_path / "all"})


def test_logits_of_held_out_words_are_none():
    shape = architecture_of(ENERGY, V)
    y = known_logits(shape, shape.initial_parameters(1), torch.tensor([[1, 2]]))
    assert torch.isinf(y[0, list(shape.held_out)]).all() and torch.isfinite(y).sum() == V - 4


def test_the_table_compares_the_held_out_words_alone():
    tokens = np.array([1, 2, 3, 2])
    words = {"rare": np.array([2]), "contexts": np.array([2]), "other": np.array([3])}
    ln_prob = {
        "rare": np.log([0.5, 0.1, 0.5, 0.1]),
        "contexts": np.log([0.5, 0.2, 0.5, 0.2]),
        "other": np.log([0.5, 0.5, 0.25, 0.5]),
    }
    rows = {row["model"]: row for row in tabulate_unseen_words(words, ln_prob, tokens)}
    assert [rows[name]["perplexity"] for name in words] == ["10.00", "5.00", "4.00"]
    assert rows["contexts"]["ln_gain"] == f"{np.log(2):.4f}" and rows["contexts"]["ln_gain_standard_error"] == "0.0000"
    assert rows["rare"]["ln_gain"] == rows["other"]["ln_gain"] == ""
    assert rows["rare"]["tokens"] == "2" and rows["rare"]["perplexity_other_tokens"] == "2.00"
    with pytest.raises(InputError, match="none of the 1 held-out words"):
        tabulate_unseen_words({"rare": np.array([9])}, ln_prob, tokens)


def test_the_command_line_writes_the_table(inputs, tmp_path, run, capsys):
    names = ["rare", "four"]
    split = tmp_path / "train"
    for name, keys in zip(names, ("features: rare", "contexts: 4"), strict=True):
        row = f"{{kind: unseen_words, network: energy, {keys}}}"
        read = [f"{key}={path}" for key, path in inputs.items()]
        model = tmp_path / name / "model.safetensors"
        made = ("fit-model", "--row", row, "--input", read[0], "--input", read[1], "--seed", 1, "--output", model)
        assert run(*made) == 0, capsys.readouterr().err
        scored = ("score", "--model", model, "--split", split, "--name", name, "--output", tmp_path / f"{name}.scores")
        assert run(*scored) == 0, capsys.readouterr().err
    options = [option for name in names for option in ("--model", tmp_path / name / "model.safetensors")]
    options += [option for name in names for option in ("--scores", tmp_path / f"{name}.scores")]
    assert run("tabulate-unseen-words", *options, "--split", split, "--output-directory", tmp_path) == 0
    with open(tmp_path / "unseen_words.csv", newline="") as file:
        assert [row["model"] for row in csv.DictReader(file)] == names
    assert "| four" in (tmp_path / "unseen_words.md").read_text()


def test_a_model_of_another_kind_is_no_network_for_it(inputs, tmp_path):
    unseen_words.write_model(tmp_path / "unseen", fitted(inputs))
    with pytest.raises(InputError, match="unseen: holds 'unseen_words' without the row of a network"):
        fitted(inputs | {"network": tmp_path / "unseen"})
    row = complete_row({"kind": "nplm", "n": 3, "h": 2, "m": 2, "direct": False}, {}, "row")
    shape = architecture_of(row, V)
    write_model(tmp_path / "nplm", NetworkModel(row, shape, shape.initial_parameters(1), "hash"))
    with pytest.raises(InputError, match="nplm: holds 'nplm'; give an energy network"):
        fitted(inputs | {"network": tmp_path / "nplm"})
