"""The configuration: experiments that extend one another, checked against the schema, and what follows from them.

Everything here is a pure function on the dictionaries that YAML files become; the workflow calls it before it plans
any job, so that a wrong value stops it at once.
"""

import hashlib
import re
from copy import deepcopy

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from nplm.errors import InputError


def resolve_configuration(config: dict, schema: dict) -> dict:
    """The configuration with every experiment complete (see `resolve_experiment`) and checked.

    `schema` is the JSON schema (draft 2020-12) of the result. Raises InputError for an unknown key, a value of a wrong
    type or range, a cycle of `extends`, and a name that stands for nothing.
    """
    blocks = config.get("experiments")
    if not isinstance(blocks, dict) or not all(isinstance(block, dict) for block in blocks.values()):
        raise InputError("config: experiments: not a mapping from names to blocks; write one block per experiment")
    resolved = {**config, "experiments": {name: resolve_experiment(blocks, name) for name in blocks}}
    if isinstance(resolved.get("mpi"), dict):
        # Snakemake hands the numbers in `--config "mpi={ranks: 2}"` over as text.
        resolved["mpi"] = {key: int(v) if str(v).isdecimal() else v for key, v in resolved["mpi"].items()}
    error = best_match(Draft202012Validator(schema).iter_errors(resolved))
    if error:
        raise InputError(_explain(error))
    for name in resolved["run"]:
        if name not in blocks:
            raise InputError(f"config: run: there is no experiment '{name}'; known: {', '.join(blocks)}")
    for name, experiment in resolved["experiments"].items():
        _check_names(experiment, f"config: experiments.{name}")
        _check_vocabulary(experiment["vocabulary"], f"config: experiments.{name}")
        _check_external_rows(experiment, f"config: experiments.{name}")
        resolved["experiments"][name] = with_replicas(experiment)
    _check_kinds({name: resolved["experiments"][name] for name in resolved["run"]})
    return resolved


def resolve_experiment(blocks: dict[str, dict], name: str) -> dict:
    """The block `name` merged over the block that it `extends`, if any, and so on; `extends` itself is gone.

    Mappings merge key by key; everything else (lists too) replaces. Raises InputError for a cycle or an unknown name.
    """
    chain = [name]
    while (parent := blocks[chain[-1]].get("extends")) is not None:
        if parent not in blocks:
            raise InputError(
                f"config: experiments.{chain[-1]}.extends: no experiment '{parent}'; known: {', '.join(blocks)}"
            )
        if parent in chain:
            raise InputError(f"config: experiments: {' extends '.join([*chain, parent])}; break the cycle")
        chain.append(parent)
    resolved: dict = {}
    for link in reversed(chain):
        resolved = _merge(resolved, blocks[link])
    resolved.pop("extends", None)
    return resolved


def with_replicas(experiment: dict) -> dict:
    """The experiment with a model for every further seed of its networks (setting `seeds`), and mixtures of these.

    The first seed keeps the row's name, the others are `NAME.seed2`, `NAME.seed3`, ...; what they are called decides
    what they draw (`derive_seed`), also where the row gives the first one's `seed`. The key `replicas` lists the names
    of each row that has several. A replica of a mixture takes the replica of the same number of each component that has
    one.
    """
    models, mixtures = dict(experiment["models"]), dict(experiment["mixtures"])
    names: dict[str, list[str]] = {name: [name] for name in models}

    def add_names(row: str, count: int) -> None:
        names[row] = [row, *(f"{row}.seed{number}" for number in range(2, count + 1))]
        for name in names[row][1:]:
            if name in models or name in mixtures:
                raise InputError(f"config: '{name}' is what the second or a later seed of '{row}' is called; rename it")

    for model, row in experiment["models"].items():
        if row["kind"] == "nplm":
            add_names(model, network_settings(experiment, model).get("seeds", 1))
            further = {key: value for key, value in row.items() if key != "seed"}  # it is that of the first
            models |= {name: further for name in names[model][1:]}
    for mixture, row in experiment["mixtures"].items():
        parts = [names[component] for component in row["components"]]
        add_names(mixture, max(map(len, parts)))
        for number, name in enumerate(names[mixture]):
            mixtures[name] = {**row, "components": [part[min(number, len(part) - 1)] for part in parts]}
    return {
        **experiment,
        "models": models,
        "mixtures": mixtures,
        "exclude": [name for excluded in experiment["exclude"] for name in names[excluded]],
        "replicas": {row: several for row, several in names.items() if len(several) > 1},
    }


def is_run(experiment: dict, name: str) -> bool:
    """Whether a model or mixture of a resolved experiment is run: neither it nor anything it needs is excluded."""
    mixture = experiment["mixtures"].get(name, {"components": []})
    return name not in experiment["exclude"] and all(is_run(experiment, part) for part in mixture["components"])


def further_seeds(replicas: dict[str, list[str]]) -> set[str]:
    """Names of the trainings that are no row of their own: all of each row's but its first (see `with_replicas`)."""
    return {name for names in replicas.values() for name in names[1:]}


def models_run(experiment: dict, *kinds: str) -> list[str]:
    """Names of the models that are run, of the given kinds (all kinds if none is given), in the config's order."""
    return [
        name
        for name, model in experiment["models"].items()
        if is_run(experiment, name) and (not kinds or model["kind"] in kinds)
    ]


def mixtures_run(experiment: dict) -> list[str]:
    """Names of the mixtures that are run, in the config's order."""
    return [name for name in experiment["mixtures"] if is_run(experiment, name)]


def network_settings(experiment: dict, model: str) -> dict:
    """The settings of a network: those of `training`, over which the model's own row goes, without its kind."""
    defaults = {"strategy": "output-parallel", "device": "auto"}
    settings = {**defaults, **experiment["training"], **experiment["models"][model]}
    del settings["kind"]
    return settings


def derive_seed(seed: int, name: str) -> int:
    """The seed (31 bits) of one purpose or model: the same for the same name, whatever else the experiment holds."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:4], "big") >> 1


def _merge(base: dict, over: dict) -> dict:
    merged = deepcopy(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else deepcopy(value)
    return merged


def _check_names(experiment: dict, where: str) -> None:
    models, mixtures = experiment["models"], experiment["mixtures"]
    known = list(models)
    for name, mixture in mixtures.items():
        if name in models:
            raise InputError(f"{where}.mixtures.{name}: a model has this name too; rename one of them")
        for component in mixture["components"]:
            if component not in known:
                raise InputError(
                    f"{where}.mixtures.{name}: component '{component}' is no model and no earlier mixture; correct it"
                )
        known.append(name)
    for name in experiment["exclude"]:
        if name not in known:
            raise InputError(f"{where}.exclude: there is no model or mixture '{name}'; correct or remove it")
    if experiment["table"]["baseline"] not in known:
        raise InputError(f"{where}.table.baseline: there is no model or mixture '{experiment['table']['baseline']}'")


def _check_kinds(experiments: dict[str, dict]) -> None:
    """Raise InputError where experiments that are run together have models of one name that different rules make."""
    seen: dict[str, tuple[str, str]] = {}
    for experiment, block in experiments.items():
        for name, model in block["models"].items():
            kind = model["kind"]
            if kind == "nplm":
                kind += f" ({network_settings(block, name)['strategy']})"
            other, before = seen.setdefault(name, (experiment, kind))
            if before != kind:
                raise InputError(
                    f"config: experiments.{experiment}.models.{name}: is {kind} here and {before} in {other}; rename "
                    "one of them, or run one experiment at a time"
                )


def _check_vocabulary(vocabulary: dict, where: str) -> None:
    if (vocabulary.get("rare_threshold") is None) == (vocabulary.get("size") is None):
        raise InputError(f"{where}.vocabulary: give one of rare_threshold and size, and null for the other")


def _check_external_rows(experiment: dict, where: str) -> None:
    if "train" not in experiment.get("scored_splits", ["train"]):
        return
    for name, model in experiment["models"].items():
        if model["kind"] == "external" and "train" not in model:
            raise InputError(
                f"{where}.models.{name}: has no 'train'; name the file of that split, or leave train out with "
                "scored_splits: [valid, test]"
            )


def _explain(error: ValidationError) -> str:
    """One line: where, what, and what would be right."""
    where = ".".join(str(part) for part in error.absolute_path) or "top level"
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = ", ".join(f"'{key}'" for key in error.instance if key not in known)
        return f"config: {where}: unknown key {unknown}; correct or remove it (known: {', '.join(known)})"
    if (
        error.validator == "type"
        and isinstance(error.instance, str)
        and re.fullmatch(r"[+-]?\d+e[+-]?\d+", error.instance)
    ):
        mantissa, exponent = error.instance.split("e")
        return f"config: {where}: '{error.instance}' is text to YAML; write {mantissa}.0e{exponent}"
    return f"config: {where}: {error.message}"
