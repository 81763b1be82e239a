import pytest

from nplm.configuration import derive_seed, mixtures_run, models_run, needs, with_replicas
from nplm.errors import InputError
from nplm.kinds import TEXT, Key, Kind, registry

NETWORK = {"kind": "nplm", "n": 5, "h": 2, "m": 2, "direct": False}
EXPERIMENT = {
    "training": {"seeds": 3},
    "models": {
        "kn3": {"kind": "kneser_ney", "n": 3, "smoothing": "backoff"},
        "net": NETWORK,
        "plane": NETWORK | {"seeds": 1},
    },
    "mixtures": {
        "mixed": {"components": ["net", "kn3"], "weights": "fixed"},
        "all": {"components": ["mixed", "plane"], "weights": "learned"},
        "plain": {"components": ["plane", "kn3"], "weights": "fixed"},
    },
    "exclude": [],
}


def test_networks_and_what_mixes_them_are_repeated_once_per_seed():
    experiment = with_replicas(EXPERIMENT)
    assert experiment["replicas"] == {
        name: [name, f"{name}.seed2", f"{name}.seed3"] for name in ("net", "mixed", "all")
    }
    assert models_run(experiment) == ["kn3", "net", "plane", "net.seed2", "net.seed3"]
    assert experiment["mixtures"]["all.seed3"] == {"components": ["mixed.seed3", "plane"], "weights": "learned"}
    assert experiment["mixtures"]["mixed"] == EXPERIMENT["mixtures"]["mixed"]
    assert "net.seed2" not in EXPERIMENT["models"]


def test_one_seed_changes_nothing():
    experiment = with_replicas({**EXPERIMENT, "training": {}})
    assert experiment == {**EXPERIMENT, "training": {}, "replicas": {}}


def test_every_seed_draws_differently():
    assert derive_seed(1, "net") != derive_seed(1, "net.seed2")


def test_a_seed_given_in_the_row_is_that_of_the_first_training_only():
    row = NETWORK | {"seed": 7}
    models = with_replicas({**EXPERIMENT, "models": {**EXPERIMENT["models"], "net": row}})["models"]
    assert models["net"] == row
    assert models["net.seed2"] == models["net.seed3"] == NETWORK


def test_excluding_a_row_excludes_all_its_seeds():
    experiment = with_replicas({**EXPERIMENT, "exclude": ["net"]})
    assert models_run(experiment) == ["kn3", "plane"]
    assert mixtures_run(experiment) == ["plain"]


def test_a_name_that_a_seed_would_take_is_refused():
    models = {**EXPERIMENT["models"], "net.seed2": {"kind": "kneser_ney", "n": 2, "smoothing": "backoff"}}
    with pytest.raises(InputError, match=r"'net\.seed2' is what the second or a later seed of 'net' is called"):
        with_replicas({**EXPERIMENT, "models": models})


def test_a_model_that_refers_to_another_takes_the_replica_of_the_same_number(monkeypatch):
    keys = (Key("base", TEXT, "the model that it builds on", refers_to=("nplm",)),)
    kind = Kind("random_upon", "", "", own_keys=keys, code="x", family="n-gram", reads=("base",), random=True)
    monkeypatch.setitem(registry(), "random_upon", kind)
    models = {name: {"kind": "random_upon", "base": base} for name, base in (("upon", "net"), ("upon_one", "plane"))}
    experiment = with_replicas({**EXPERIMENT, "models": EXPERIMENT["models"] | models})
    bases = {name: row["base"] for name, row in experiment["models"].items() if "base" in row}
    assert bases == {
        **{"upon": "net", "upon.seed2": "net.seed2", "upon.seed3": "net.seed3"},
        **{name: "plane" for name in ("upon_one", "upon_one.seed2", "upon_one.seed3")},
    }
    assert needs(experiment, "upon.seed3") == ["net.seed3"]
    experiment = with_replicas({**EXPERIMENT, "models": EXPERIMENT["models"] | models, "exclude": ["net"]})
    assert models_run(experiment) == ["kn3", "plane", "upon_one", "upon_one.seed2", "upon_one.seed3"]


def test_only_some_rows_are_run_with_all_their_seeds_and_those_of_the_baseline():
    experiment = with_replicas({**EXPERIMENT, "only": ["mixed"], "table": {"baseline": "kn3"}})
    assert models_run(experiment) == ["kn3", "net", "net.seed2", "net.seed3"]
    assert mixtures_run(experiment) == ["mixed", "mixed.seed2", "mixed.seed3"]
    experiment = with_replicas({**EXPERIMENT, "only": ["kn3"], "table": {"baseline": "net"}})
    assert models_run(experiment) == ["kn3", "net", "net.seed2", "net.seed3"]
