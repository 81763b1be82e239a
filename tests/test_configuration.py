"""Experiments: what extends what, what is refused, what is run."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml
from jsonschema import Draft202012Validator

from nplm import kinds
from nplm.configuration import (
    complete_rows,
    derive_seed,
    is_run,
    mixtures_run,
    models_run,
    resolve_configuration,
    resolve_experiment,
    rule_of,
)
from nplm.errors import InputError
from nplm.kinds import REQUIRED, Kind, collect, registry
from nplm.neural.kinds import OBJECTIVES, OUTPUTS
from nplm.report.configuration import all_names, names_run
from nplm.rows import complete_row, row_schema

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
        (
            "experiments.brown.models.kn3.h",
            3,
            r"config: experiments\.brown\.models\.kn3: unknown key 'h'; correct or remove it "
            r"\(known keys of kneser_ney: n, smoothing, cutoffs, undefined_discounts\)$",
        ),
        (
            "experiments.brown.models.MLP9.epochs",
            "3",
            r"config: experiments\.brown\.models\.MLP9\.epochs: '3' is not allowed; allowed: whole number ≥ 1$",
        ),
        ("experiments.brown.models.MLP9.epsilon_0", "1e-3", r"models\.MLP9\.epsilon_0: '1e-3' .*write 1\.0e-3"),
        ("experiments.brown.models.MLP9.epsilon_0", 0, r"MLP9\.epsilon_0: 0 is not allowed; allowed: number > 0$"),
        ("experiments.brown.models.MLP9.direct", 1, r"MLP9\.direct: 1 is not allowed; allowed: true | false$"),
        ("experiments.brown.models.MLP9.h", 0, r"models\.MLP9: a network with h = 0 and no direct connections has no"),
        ("experiments.brown.models.kn3.cutoffs", [1, 2], r"models\.kn3: cutoffs has 2 counts but n is 3; give one"),
        ("experiments.brown.training.epochs", "3", r"brown\.training\.epochs: '3' is not of type 'integer'"),
        ("experiments.brown.training.h", 3, r"experiments\.brown\.training: unknown key 'h'.*known: .*epochs"),
        ("experiments.brown.training.epsilon_0", "1e-3", r"epsilon_0: '1e-3' .*write 1\.0e-3"),
        (
            "experiments.brown.models.new",
            {"kind": "rnn"},
            rf"brown\.models\.new\.kind: 'rnn' is no kind of model; known kinds: {', '.join(registry())}$",
        ),
        ("experiments.brown.models.new", {"n": 3}, r"models\.new: has no kind; known kinds: .*nplm"),
        (
            "experiments.brown.models.new",
            {"kind": "kneser_ney"},
            r"brown\.models\.new: has no 'n', which kneser_ney needs: order: .*; allowed: whole number ≥ 1 and ≤ 65$",
        ),
        (
            "experiments.brown.models.MLP9.output",
            "tree",
            rf"MLP9\.output: 'tree' is not allowed; allowed: {re.escape(' | '.join(OUTPUTS))}$",
        ),
        (
            "experiments.brown.models.MLP9.objective",
            "margin",
            rf"MLP9\.objective: 'margin' is not allowed; allowed: {re.escape(' | '.join(OBJECTIVES))}$",
        ),
        ("experiments.brown.models.a/b", {"kind": "nplm"}, r"models: 'a/b' does not match"),
        ("experiments.brown.corpus.path", ["a.txt"], r"corpus\.path: \['a\.txt'\] is not of type 'string'"),
        ("experiments.brown.models._net", {"kind": "nplm"}, "models: '_net' does not match"),
        ("experiments.brown.mixtures.m", {"components": ["kn5", "kn5"], "weights": "fixed"}, "non-unique elements"),
        ("experiments.brown.table.name", "claims", r"table\.name: 'claims' should not be valid under .*'corpus'"),
        ("experiments.brown.mixtures.kn3", {"components": ["kn5", "kn4"], "weights": "fixed"}, "a model has this name"),
        ("experiments.brown.mixtures.m", {"components": ["kn5", "kn9"], "weights": "fixed"}, "component 'kn9'"),
        ("experiments.brown.exclude", ["MLP11"], r"brown\.exclude: there is no model or mixture 'MLP11'"),
        ("experiments.brown.only", ["MLP11"], r"brown\.only: there is no model or mixture 'MLP11'; correct or remove"),
        ("experiments.brown.only", [], r"experiments\.brown\.only: \[\] should be non-empty"),
        ("experiments.brown.models.kn9", None, r"brown\.models\.kn9: is null, but there is none to remove"),
        ("experiments.brown.table.baseline", "kn9", r"table\.baseline: .*'kn9'"),
        ("experiments", [], "experiments: not a mapping"),
        ("run", ["bronw"], "run: there is no experiment 'bronw'"),
        ("mpi.ranks", 0, r"mpi\.ranks: 0 is less than the minimum of 1"),
        (
            "experiments.brown.models.kn3.n",
            66,
            r"models\.kn3\.n: 66 is not allowed; allowed: whole number ≥ 1 and ≤ 65$",
        ),
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
        ({"kn3": {"kind": "katz", "n": 3}}, None),
        (
            {"kn3": {"kind": "nplm", "n": 3, "h": 1, "m": 1, "direct": True}},
            r"second\.models\.kn3: is nplm \(output-parallel\) here and kneser_ney \(fit\) in brown; rename",
        ),
        (
            {"MLP9": {"strategy": "shared-memory"}},
            r"is nplm \(shared-memory\) here and nplm \(output-parallel\) in brown",
        ),
        ({"kn3": {"n": 4}}, None),
    ],
)
def test_a_name_is_made_by_one_rule_in_all_experiments_that_are_run(config, row, message):
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
    assert models_run(experiment, lambda kind: kind.name in ("deleted_interpolation", "nplm")) == ["trigram"]
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
    row = {"kind": "nplm", "n": 5, "h": 4, "m": 3, "direct": False}
    training = {"epochs": 20, "K": 64, "patience": None, "seeds": 2}
    ngram = {"kind": "kneser_ney", "n": 3, "smoothing": "backoff"}
    experiment = {"training": training, "models": {"net": row | {"epochs": 3}, "kn3": ngram}}
    assert complete_rows(experiment) == {
        "net": {
            **row,
            **{"output": "softmax", "objective": "likelihood", "epsilon_0": 0.01, "r": 1e-8, "weight_decay": 1e-4},
            **{"K": 64, "epochs": 3, "patience": None, "precision": "auto", "strategy": "output-parallel"},
            **{"device": "auto", "seed": None, "seeds": 2},
        },
        "kn3": ngram | {"cutoffs": None, "undefined_discounts": "error"},
    }
    del experiment["training"]
    assert complete_rows(experiment)["net"]["K"] == 128


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


@pytest.mark.parametrize(
    ("only", "models", "mixtures"),
    [
        (["kn4"], ["deleted_interpolation", "kn4"], []),
        (["MLP10"], ["deleted_interpolation", "MLP9"], ["MLP10"]),
        (
            ["MLP9_kn5_learned", "katz3_backoff"],
            *[["deleted_interpolation", "kn5", "katz3_backoff", "MLP9"], ["MLP9_kn5_learned"]],
        ),
        (["deleted_interpolation"], ["deleted_interpolation"], []),
    ],
)
def test_only_some_rows_are_run_with_what_they_need_and_the_baseline(config, only, models, mixtures):
    config["experiments"]["brown"]["only"] = only
    experiment = resolve_configuration(config, SCHEMA)["experiments"]["brown"]
    assert (models_run(experiment), mixtures_run(experiment)) == (models, mixtures)
    assert [name for name in experiment["models"] if is_run(experiment, name)] == models


def test_a_mixture_that_is_the_baseline_comes_with_its_components(config):
    brown = config["experiments"]["brown"]
    brown["only"], brown["table"]["baseline"] = ["kn4"], "MLP10"
    experiment = resolve_configuration(config, SCHEMA)["experiments"]["brown"]
    assert names_run(experiment) == ["deleted_interpolation", "kn4", "MLP9", "MLP10"]


def test_what_is_excluded_is_not_run_though_it_is_asked_for(config):
    config["experiments"]["brown"] |= {"only": ["MLP10", "kn4"], "exclude": ["MLP9"]}
    experiment = resolve_configuration(config, SCHEMA)["experiments"]["brown"]
    assert names_run(experiment) == ["deleted_interpolation", "kn4"]


def test_an_extension_with_null_for_only_runs_all_again(config):
    config["experiments"]["brown"]["only"] = ["kn4"]
    config["experiments"]["more"] = {"extends": "brown", "only": None}
    experiments = resolve_configuration(config, SCHEMA)["experiments"]
    assert models_run(experiments["more"]) == list(experiments["brown"]["models"])
    assert mixtures_run(experiments["more"]) == list(experiments["brown"]["mixtures"])


def test_null_removes_a_model_or_mixture_of_the_extended_block(config):
    config["experiments"] |= {
        "fewer": {
            "extends": "brown",
            "models": {"MLP7": None, "kn4": {"n": 7}},
            "mixtures": {"MLP8": None},
        },
        "fewest": {"extends": "fewer", "models": {"kn4": None, "MLP7": {"kind": "katz", "n": 2}}},
    }
    experiments = resolve_configuration(config, SCHEMA)["experiments"]
    brown, fewer, fewest = (experiments[name] for name in ("brown", "fewer", "fewest"))
    assert brown["models"].keys() - fewer["models"].keys() == {"MLP7"}
    assert brown["mixtures"].keys() - fewer["mixtures"].keys() == {"MLP8"}
    assert fewer["models"]["kn4"] == brown["models"]["kn4"] | {"n": 7}
    assert fewer["models"].keys() - fewest["models"].keys() == {"kn4"}
    assert fewest["models"]["MLP7"] == {"kind": "katz", "n": 2}, "nothing is left of the row that was removed"
    assert config["experiments"]["brown"]["models"]["MLP7"]["h"] == 50, "the blocks stay as they were"


@pytest.mark.parametrize(
    ("part", "name", "message"),
    [
        ("models", "MLP11", r"config: experiments\.fewer\.models\.MLP11: is null, but there is none to remove"),
        ("mixtures", "kn3", r"config: experiments\.fewer\.mixtures\.kn3: is null, but there is none to remove"),
        ("models", "MLP7", r"config: experiments\.fewer\.mixtures\.MLP8: component 'MLP7' is no model"),
        ("models", "deleted_interpolation", r"component 'deleted_interpolation' is no model"),
    ],
)
def test_null_of_what_is_not_inherited_or_still_needed_is_refused(config, part, name, message):
    config["experiments"]["fewer"] = {"extends": "brown", part: {name: None}}
    with pytest.raises(InputError, match=message) as caught:
        resolve_configuration(config, SCHEMA)
    assert "\n" not in str(caught.value)


def test_without_a_paper_rows_that_are_not_run_are_not_in_the_tables(config):
    brown = config["experiments"]["brown"]
    brown["only"] = ["kn4", "MLP10"]
    experiment = resolve_configuration(config, SCHEMA)["experiments"]["brown"]
    assert all_names(experiment) == [*brown["models"], *brown["mixtures"]]
    brown["table"]["paper"] = None
    experiment = resolve_configuration(config, SCHEMA)["experiments"]["brown"]
    assert all_names(experiment) == ["deleted_interpolation", "kn4", "MLP9", "MLP10"]


def test_an_experiment_need_not_exclude_nor_share_anything(config):
    brown = config["experiments"]["brown"]
    del brown["exclude"], brown["training"]
    experiment = resolve_configuration(config, SCHEMA)["experiments"]["brown"]
    assert names_run(experiment) == [*brown["models"], *brown["mixtures"]]


@pytest.mark.parametrize("kind", registry().values(), ids=registry())
def test_the_defaults_of_every_kind_are_allowed_by_its_keys(kind):
    Draft202012Validator.check_schema(row_schema(kind))
    for key in kind.keys:
        if key.default is not REQUIRED:
            errors = [error.message for error in Draft202012Validator(key.schema).iter_errors(key.default)]
            assert not errors, (key.name, errors)
    assert len({key.name for key in kind.keys}) == len(kind.keys)
    assert kind.family in kinds.FAMILIES or (kind.family is None and "family" in {key.name for key in kind.keys})


def test_a_complete_row_is_complete(config):
    for name, row in complete_rows(config["experiments"]["brown"]).items():
        assert complete_row(row, {"epochs": 99, "K": 99}, name) == row


def test_what_makes_a_model_follows_from_its_row(config):
    rows = complete_rows(config["experiments"]["brown"])
    assert {rule_of(row) for row in rows.values() if row["kind"] != "nplm"} == {"fit"}
    assert rule_of(rows["MLP9"]) == "output-parallel"
    assert rule_of(rows["MLP9"] | {"strategy": "shared-memory"}) == "shared-memory"
    assert rule_of({"kind": "external"}) == "import"


def declaring(module: str, **declared: object) -> ModuleType:
    """A made-up module with these declarations."""
    made = ModuleType(module)
    vars(made).update(declared)
    return made


def of_name(name: str) -> Kind:
    return Kind(name, "a kind", "here", own_keys=(), code="nowhere", family="n-gram")


def test_two_registrations_of_one_name_name_both_modules():
    one, two = of_name("one"), of_name("two")
    first = declaring("package.first", KIND=one)
    assert collect([first, declaring("other.second", KINDS=(two,))]) == {"one": one, "two": two}
    message = r"^kind 'one' is registered by package\.first and by other\.second; rename one of them$"
    with pytest.raises(InputError, match=message):
        collect([first, declaring("other.second", KINDS=(two, of_name("one")))])


@pytest.mark.parametrize("declared", [{}, {"KIND": "one"}, {"KINDS": ()}])
def test_a_registered_module_that_declares_no_kind_is_named(declared):
    with pytest.raises(InputError, match=r"^package\.empty is registered but declares no kind; give it KIND"):
        collect([declaring("package.empty", **declared)])


def test_another_package_registers_a_kind_by_its_entry_point(monkeypatch):
    monkeypatch.setitem(sys.modules, "made_up", declaring("made_up", KIND=of_name("made_up")))
    points = {"nplm.kinds": [SimpleNamespace(value="made_up")]}
    monkeypatch.setattr(kinds, "entry_points", lambda group: points[group])
    assert registry.__wrapped__().keys() == {*registry(), "made_up"}


def test_a_name_is_a_model_or_a_mixture_in_all_experiments_that_are_run(config):
    second = {"extends": "brown", "only": ["MLP2"], "mixtures": {"MLP2": None}}
    second["models"] = {"MLP2": {"kind": "kneser_ney", "n": 2, "smoothing": "backoff"}}
    config["experiments"]["second"] = second
    config["run"] = ["brown", "second"]
    with pytest.raises(InputError, match=r"second\.models\.MLP2: is kneser_ney \(fit\) here and a mixture \(mix\)"):
        resolve_configuration(config, SCHEMA)
    config["experiments"]["brown"]["only"] = ["kn3"]
    resolve_configuration(config, SCHEMA)


def test_what_is_not_run_may_be_made_otherwise_in_another_experiment(config):
    config["experiments"]["brown"]["only"] = ["kn3"]
    config["experiments"]["second"] = {
        "extends": "brown",
        "only": ["kn2"],
        "models": {"MLP1": {"strategy": "shared-memory"}},
    }
    config["run"] = ["brown", "second"]
    resolve_configuration(config, SCHEMA)
