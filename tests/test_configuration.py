"""Experiments: what extends what, what is refused, what is run."""

from pathlib import Path

import pytest
import yaml

from nplm.configuration import (
    derive_seed,
    is_run,
    mixtures_run,
    models_run,
    network_settings,
    resolve_configuration,
    resolve_experiment,
)
from nplm.errors import InputError

ROOT = Path(__file__).parents[1]
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())


@pytest.fixture
def config() -> dict:
    return yaml.safe_load((ROOT / "config.yaml").read_text())


def test_an_extension_states_only_what_differs():
    blocks = {
        "base": {"training": {"epochs": 20, "K": 128}, "exclude": ["a", "b"]},
        "short": {"extends": "base", "training": {"epochs": 1}},
        "shorter": {"extends": "short", "training": {"K": 1}, "exclude": []},
    }
    assert resolve_experiment(blocks, "shorter") == {"training": {"epochs": 1, "K": 1}, "exclude": []}
    assert blocks["base"] == {"training": {"epochs": 20, "K": 128}, "exclude": ["a", "b"]}, (
        "the blocks stay as they were"
    )


def test_a_resolved_experiment_shares_nothing_with_its_base():
    blocks = {"base": {"models": {"a": {"n": 3}}}, "other": {"extends": "base"}}
    resolve_experiment(blocks, "other")["models"]["a"]["n"] = 5
    assert blocks["base"]["models"]["a"]["n"] == 3


def test_a_cycle_of_extensions_is_named():
    with pytest.raises(InputError, match="a extends b extends c extends a"):
        resolve_experiment({"a": {"extends": "b"}, "b": {"extends": "c"}, "c": {"extends": "a"}}, "a")


def test_extending_the_unknown_is_refused():
    with pytest.raises(InputError, match=r"experiments\.a\.extends: no experiment 'brwn'"):
        resolve_experiment({"a": {"extends": "brwn"}}, "a")


@pytest.mark.parametrize(
    "path", ["config.yaml", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("workflow/configs/*"))]
)
def test_every_configuration_that_ships_is_accepted(config, path):
    over = yaml.safe_load((ROOT / path).read_text())
    experiments = config["experiments"] | over.get("experiments", {})
    resolved = resolve_configuration(config | over | {"experiments": experiments}, SCHEMA)
    assert all("extends" not in block for block in resolved["experiments"].values())


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("trainng", {}, r"top level: unknown key 'trainng'"),
        (
            "experiments.brown.training.epohcs",
            3,
            r"experiments\.brown\.training: unknown key 'epohcs'.*known: .*epochs",
        ),
        ("experiments.brown.models.kn3.h", 3, r"experiments\.brown\.models\.kn3: unknown key 'h'"),
        ("experiments.brown.models.MLP9.epochs", "3", r"models\.MLP9\.epochs: '3' is not of type 'integer'"),
        ("experiments.brown.training.epsilon_0", "1e-3", r"epsilon_0: '1e-3' .*write 1\.0e-3"),
        ("experiments.brown.models.new", {"kind": "rnn"}, r"models\.new\.kind: 'rnn' is not one of .*'nplm'"),
        ("experiments.brown.models.new", {"kind": "kneser_ney"}, r"models\.new: 'n' is a required property"),
        ("experiments.brown.models.a/b", {"kind": "nplm"}, r"models: 'a/b' does not match"),
        ("experiments.brown.corpus.path", ["a.txt"], r"corpus\.path: \['a\.txt'\] is not of type 'string'"),
        ("experiments.brown.models._net", {"kind": "nplm"}, "models: '_net' does not match"),
        ("experiments.brown.mixtures.m", {"components": ["kn5", "kn5"], "weights": "fixed"}, "non-unique elements"),
        ("experiments.brown.table.name", "claims", r"table\.name: 'claims' should not be valid under .*'corpus'"),
        ("experiments.brown.mixtures.kn3", {"components": ["kn5", "kn4"], "weights": "fixed"}, "a model has this name"),
        ("experiments.brown.mixtures.m", {"components": ["kn5", "kn9"], "weights": "fixed"}, "component 'kn9'"),
        ("experiments.brown.exclude", ["MLP11"], r"brown\.exclude: there is no model or mixture 'MLP11'"),
        ("experiments.brown.table.baseline", "kn9", r"table\.baseline: .*'kn9'"),
        ("experiments", [], "experiments: not a mapping"),
        ("run", ["bronw"], "run: there is no experiment 'bronw'"),
        ("mpi.ranks", 0, r"mpi\.ranks: 0 is less than the minimum of 1"),
        ("experiments.brown.models.kn3.n", 66, r"models\.kn3\.n: 66 is greater than the maximum of 65"),
    ],
)
def test_a_mistake_is_named_in_one_line(config, path, value, message):
    *parents, key = path.split(".")
    block = config
    for parent in parents:
        block = block[parent]
    block[key] = value
    with pytest.raises(InputError, match=message) as caught:
        resolve_configuration(config, SCHEMA)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"kn3": {"kind": "katz", "n": 3}}, "second.models.kn3: is katz here and kneser_ney in brown; rename"),
        (
            {"MLP9": {"strategy": "shared-memory"}},
            r"is nplm \(shared-memory\) here and nplm \(output-parallel\) in brown",
        ),
        ({"kn3": {"n": 4}}, None),
    ],
)
def test_a_name_is_of_one_kind_in_all_experiments_that_are_run(config, row, message):
    second = yaml.safe_load(yaml.safe_dump(config["experiments"]["brown"]))
    for name, keys in row.items():
        second["models"][name] = keys if "kind" in keys else second["models"][name] | keys
    config["experiments"]["second"] = second
    resolve_configuration(config, SCHEMA)
    config["run"] = ["brown", "second"]
    if message is None:
        resolve_configuration(config, SCHEMA)
    else:
        with pytest.raises(InputError, match=message):
            resolve_configuration(config, SCHEMA)


def test_numbers_of_the_mpi_block_may_come_as_text(config):
    config["mpi"]["ranks"] = "3"
    assert resolve_configuration(config, SCHEMA)["mpi"]["ranks"] == 3


def test_excluding_a_model_drops_all_that_needs_it():
    experiment = {
        "models": {"net": {"kind": "nplm"}, "kn": {"kind": "kneser_ney"}, "trigram": {"kind": "deleted_interpolation"}},
        "mixtures": {
            "with_net": {"components": ["net", "trigram"]},
            "of_mixture": {"components": ["with_net", "kn"]},
            "without": {"components": ["kn", "trigram"]},
        },
        "exclude": ["net"],
    }
    assert models_run(experiment) == ["kn", "trigram"]
    assert models_run(experiment, "deleted_interpolation", "nplm") == ["trigram"]
    assert mixtures_run(experiment) == ["without"]
    assert not is_run(experiment, "of_mixture")


def test_an_external_row_names_the_files_of_the_splits_that_are_scored(config):
    row = {"kind": "external", "family": "n-gram", "logarithm": "log10", "vocabulary_size": 9}
    row |= {"valid": "b", "test": "c"}
    brown = config["experiments"]["brown"]
    brown["models"]["theirs"] = row
    with pytest.raises(InputError, match=r"brown\.models\.theirs: has no 'train'.*scored_splits"):
        resolve_configuration(config, SCHEMA)
    brown["scored_splits"] = ["valid", "test"]
    assert resolve_configuration(config, SCHEMA)["experiments"]["brown"]["models"]["theirs"] == row


def test_a_networks_row_goes_over_the_shared_training_settings():
    experiment = {"training": {"epochs": 20, "K": 128}, "models": {"net": {"kind": "nplm", "n": 5, "epochs": 3}}}
    settings = network_settings(experiment, "net")
    assert settings == {"n": 5, "epochs": 3, "K": 128, "strategy": "output-parallel", "device": "auto"}


def test_every_model_has_a_seed_of_its_own():
    seeds = {derive_seed(seed, name) for seed in (1, 2) for name in ("MLP1", "MLP2", "1 MLP1")}
    assert len(seeds) == 6
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert derive_seed(2003, "MLP9") == 1383046034, "a change here would retrain every network"


@pytest.mark.parametrize("vocabulary", [{"rare_threshold": 3, "size": 100}, {"rare_threshold": None}])
def test_one_of_threshold_and_size_is_given(config, vocabulary):
    config["experiments"]["brown"]["vocabulary"] |= vocabulary
    with pytest.raises(InputError, match=r"experiments\.brown\.vocabulary: give one of rare_threshold and size"):
        resolve_configuration(config, SCHEMA)


@pytest.mark.parametrize(
    ("block", "value", "where"),
    [
        ("mapping", {"numbers": "all"}, r"mapping\.numbers"),
        ("mapping", {"proper_noun_thresholds": {"share": 2}}, r"mapping\.proper_noun_thresholds\.share"),
        ("mapping", {"upper_case": True}, "mapping: unknown key 'upper_case'"),
        ("splits", {"train": 1, "valid": 1, "at": "line"}, r"splits\.at"),
    ],
)
def test_mistakes_in_the_mapping_and_the_splits_are_named(config, block, value, where):
    config["experiments"]["brown"][block] = value
    with pytest.raises(InputError, match=where):
        resolve_configuration(config, SCHEMA)
