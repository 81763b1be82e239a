"""The experiment as the report sees it: a resolved block of the configuration, and what its models are."""

import hashlib
import json
from pathlib import Path

from nplm.configuration import further_seeds, mixtures_run, models_run
from nplm.errors import InputError
from nplm.files import read_json
from nplm.kinds import Kind, registry


def read_experiment(path: str | Path) -> dict:
    """An experiment's resolved configuration, from JSON. Raises InputError when the report lacks a part of it."""
    experiment = read_json(path)
    for key in ("models", "mixtures", "exclude", "table"):
        if key not in experiment:
            raise InputError(f"{path}: has no '{key}'; give the experiment's resolved configuration")
    return experiment


def configuration_hash(experiment: dict) -> str:
    """sha256 (hex) of the experiment as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(experiment, sort_keys=True).encode()).hexdigest()


def streams_of(experiment: dict, row: str) -> list[str]:
    """The names of a row's score streams: its own, and those of its further seeds if it has any."""
    return experiment.get("replicas", {}).get(row, [row])


def all_names(experiment: dict) -> list[str]:
    """The rows of the tables: models, then mixtures, in the configuration's order; one row for all its seeds.

    Beside a paper's table they are all there, run or not; without one, only those that are run.
    """
    hidden = further_seeds(experiment.get("replicas", {}))
    names = (
        [*experiment["models"], *experiment["mixtures"]] if experiment["table"].get("paper") else names_run(experiment)
    )
    return [name for name in names if name not in hidden]


def names_run(experiment: dict) -> list[str]:
    """The models and mixtures that are run, those of further seeds too, in the configuration's order."""
    return [*models_run(experiment), *mixtures_run(experiment)]


def models_in(experiment: dict, name: str) -> list[dict]:
    """The configured models that a mixture is made of, in order; a model is made of itself."""
    if name in experiment["models"]:
        return [experiment["models"][name]]
    components = experiment["mixtures"][name]["components"]
    return [model for component in components for model in models_in(experiment, component)]


def kind_of(model: dict) -> Kind:
    """The kind of a configured model."""
    return registry()[model["kind"]]


def is_network(experiment: dict, name: str) -> bool:
    """Whether a model is a network, or a mixture has one."""
    return any(kind_of(model).family_of(model) == "network" for model in models_in(experiment, name))
