"""The configuration: experiments that extend one another, checked against the schema, and what follows from them.

Everything here is a pure function on the dictionaries that YAML files become; the workflow calls it before it plans
any job, so that a wrong value stops it at once.
"""

import hashlib
from collections.abc import Callable
from copy import deepcopy

from jsonschema import ValidationError
from jsonschema.exceptions import best_match

from nplm.errors import InputError
from nplm.kinds import Kind, registry
from nplm.rows import Validator, complete_row, number_as_text, shared_schema

SPLITS = ("train", "valid", "test")


def resolve_configuration(config: dict, schema: dict) -> dict:
    """The configuration with every experiment complete (see `resolve_experiment`) and checked.

    `schema` is the JSON schema (draft 2020-12) of the result but for `training` and the rows of models, which the kinds
    define (nplm.rows). Raises InputError for an unknown key, a value of a wrong type or range, a cycle of `extends`,
    and a name that stands for nothing.
    """
    schema = {**schema, "$defs": schema["$defs"] | {"training": shared_schema()}}
    blocks = config.get("experiments")
    if not isinstance(blocks, dict) or not all(isinstance(block, dict) for block in blocks.values()):
        raise InputError("config: experiments: not a mapping from names to blocks; write one block per experiment")
    resolved = {**config, "experiments": {name: resolve_experiment(blocks, name) for name in blocks}}
    if isinstance(resolved.get("mpi"), dict):
        # Snakemake hands the numbers in `--config "mpi={ranks: 2}"` over as text.
        resolved["mpi"] = {key: int(v) if str(v).isdecimal() else v for key, v in resolved["mpi"].items()}
    error = best_match(Validator(schema).iter_errors(resolved))
    if error:
        raise InputError(_explain(error))
    for name in resolved["run"]:
        if name not in blocks:
            raise InputError(f"config: run: there is no experiment '{name}'; known: {', '.join(blocks)}")
    for name, experiment in resolved["experiments"].items():
        where = f"config: experiments.{name}"
        rows = complete_rows(experiment, where)
        _check_names(experiment, rows, where)
        _check_vocabulary(experiment["vocabulary"], where)
        _check_imported_scores(experiment, rows, where)
        resolved["experiments"][name] = with_replicas(experiment)
    _check_rules({name: resolved["experiments"][name] for name in resolved["run"]})
    return resolved


def resolve_experiment(blocks: dict[str, dict], name: str) -> dict:
    """The block `name` merged over the block that it `extends`, if any, and so on; `extends` itself is gone.

    Mappings merge key by key; everything else (lists too) replaces. A model or mixture that is null here is one of the
    extended block's that this one does without. Raises InputError for a cycle, an unknown name, and a null where there
    is nothing to do without.
    """
    chain = [name]
    while (parent := blocks[chain[-1]].get("extends")) is not None:
        if not isinstance(parent, str) or parent not in blocks:
            raise InputError(
                f"config: experiments.{chain[-1]}.extends: no experiment '{parent}'; known: {', '.join(blocks)}"
            )
        if parent in chain:
            raise InputError(f"config: experiments: {' extends '.join([*chain, parent])}; break the cycle")
        chain.append(parent)
    resolved: dict = {}
    for link in reversed(chain):
        inherited, resolved = resolved, _merge(resolved, blocks[link])
        for part in ("models", "mixtures"):
            if not isinstance(rows := resolved.get(part), dict):
                continue
            for row in [row for row, keys in rows.items() if keys is None]:
                if row not in (inherited.get(part) or {}):
                    raise InputError(f"config: experiments.{link}.{part}.{row}: is null, but there is none to remove")
                del rows[row]
    resolved.pop("extends", None)
    return resolved


def complete_rows(experiment: dict, where: str = "config") -> dict[str, dict]:
    """Model -> its row with what it leaves unsaid. Raises InputError as nplm.rows.complete_row does."""
    shared = experiment.get("training", {})
    return {name: complete_row(row, shared, f"{where}.models.{name}") for name, row in experiment["models"].items()}


def with_replicas(experiment: dict) -> dict:
    """The experiment with a model for every further seed of those that draw (key `seeds`), and mixtures of these.

    The first seed keeps the row's name, the others are `NAME.seed2`, `NAME.seed3`, ...; what they are called decides
    what they draw (`derive_seed`), also where the row gives the first one's `seed`. The key `replicas` lists the names
    of each row that has several. A replica of a mixture takes the replica of the same number of each component that has
    one, and so does a replica of a model that refers to another.
    """
    models, mixtures = dict(experiment["models"]), dict(experiment["mixtures"])
    names: dict[str, list[str]] = {name: [name] for name in models}

    def add_names(row: str, count: int) -> None:
        names[row] = [row, *(f"{row}.seed{number}" for number in range(2, count + 1))]
        for name in names[row][1:]:
            if name in models or name in mixtures:
                raise InputError(f"config: '{name}' is what the second or a later seed of '{row}' is called; rename it")

    def replica(row: str, number: int) -> str:
        """The name of this number's replica of a row, of the last one where there are fewer."""
        return names[row][min(number, len(names[row]) - 1)]

    for model, row in complete_rows(experiment).items():
        add_names(model, row.get("seeds", 1))
        given = experiment["models"][model]
        further = {key: value for key, value in given.items() if key != "seed"}  # it is that of the first
        for number, name in enumerate(names[model][1:], start=1):
            references = {key: replica(row[key], number) for key in registry()[row["kind"]].references}
            models[name] = further | references
    for mixture, row in experiment["mixtures"].items():
        add_names(mixture, max(len(names[component]) for component in row["components"]))
        for number, name in enumerate(names[mixture]):
            mixtures[name] = {**row, "components": [replica(component, number) for component in row["components"]]}

    def with_seeds(listed: list[str]) -> list[str]:
        return [name for row in listed for name in names[row]]

    return {
        **experiment,
        "models": models,
        "mixtures": mixtures,
        "exclude": with_seeds(experiment.get("exclude", [])),
        **({"only": with_seeds(experiment["only"])} if experiment.get("only") is not None else {}),
        "replicas": {row: several for row, several in names.items() if len(several) > 1},
    }


def needs(experiment: dict, name: str) -> list[str]:
    """What a model or mixture is made of: a mixture's components, the models that a model's row refers to."""
    if name in experiment["mixtures"]:
        return experiment["mixtures"][name]["components"]
    row = experiment["models"][name]
    return [row[key] for key in registry()[row["kind"]].references]


def is_run(experiment: dict, name: str) -> bool:
    """Whether a model or mixture of a resolved experiment is run.

    It is where neither it nor anything it needs is in `exclude` and, where the experiment has `only`, it is there, is
    the baseline of the table, or something that is run needs it.
    """
    only = experiment.get("only")
    baseline = experiment.get("table", {}).get("baseline")
    baselines = experiment.get("replicas", {}).get(baseline, [baseline])
    wanted = only is None or name in _with_needs(experiment, [*only, *baselines])
    return wanted and not set(_with_needs(experiment, [name])) & set(experiment["exclude"])


def _with_needs(experiment: dict, names: list[str]) -> list[str]:
    """The names and those of everything that they need."""
    return [each for name in names for each in (name, *_with_needs(experiment, needs(experiment, name)))]


def further_seeds(replicas: dict[str, list[str]]) -> set[str]:
    """Names of the trainings that are no row of their own: all of each row's but its first (see `with_replicas`)."""
    return {name for names in replicas.values() for name in names[1:]}


def models_run(experiment: dict, of: Callable[[Kind], object] = lambda kind: True) -> list[str]:
    """Names of the models that are run, of the kinds for which `of` holds (all if none is given), in order."""
    return [
        name for name, row in experiment["models"].items() if of(registry()[row["kind"]]) and is_run(experiment, name)
    ]


def mixtures_run(experiment: dict) -> list[str]:
    """Names of the mixtures that are run, in the config's order."""
    return [name for name in experiment["mixtures"] if is_run(experiment, name)]


def rule_of(row: dict) -> str:
    """What makes a model of this complete row: "import" of its scores, "fit", or training by a "strategy"."""
    kind = registry()[row["kind"]]
    return row["strategy"] if kind.epochs else "fit" if kind.code else "import"


def derive_seed(seed: int, name: str) -> int:
    """The seed (31 bits) of one purpose or model: the same for the same name, whatever else the experiment holds."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:4], "big") >> 1


def _merge(base: dict, over: dict) -> dict:
    merged = deepcopy(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else deepcopy(value)
    return merged


def _check_names(experiment: dict, rows: dict[str, dict], where: str) -> None:
    models, mixtures = experiment["models"], experiment["mixtures"]
    for number, (name, row) in enumerate(rows.items()):
        for key in registry()[row["kind"]].keys:
            earlier = [other for other in list(rows)[:number] if rows[other]["kind"] in key.refers_to]
            if key.refers_to and row[key.name] not in earlier:
                raise InputError(
                    f"{where}.models.{name}.{key.name}: '{row[key.name]}' is no earlier model of kind "
                    f"{' or '.join(key.refers_to)}; give one ({', '.join(earlier) or 'there is none yet'})"
                )
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
    for key in ("exclude", "only"):
        for name in experiment.get(key) or ():
            if name not in known:
                raise InputError(f"{where}.{key}: there is no model or mixture '{name}'; correct or remove it")
    if experiment["table"]["baseline"] not in known:
        raise InputError(f"{where}.table.baseline: there is no model or mixture '{experiment['table']['baseline']}'")


def _check_rules(experiments: dict[str, dict]) -> None:
    """Raise InputError where experiments that are run together have models of one name that different rules make."""
    seen: dict[str, tuple[str, str, str]] = {}
    for experiment, block in experiments.items():
        rows = complete_rows(block)
        made = {name: (rule_of(rows[name]), rows[name]["kind"]) for name in models_run(block)}
        for name, (rule, kind) in (made | dict.fromkeys(mixtures_run(block), ("mix", "a mixture"))).items():
            other, before, other_kind = seen.setdefault(name, (experiment, rule, kind))
            if before != rule:
                raise InputError(
                    f"config: experiments.{experiment}.models.{name}: is {kind} ({rule}) here and {other_kind} "
                    f"({before}) in {other}; rename one of them, or run one experiment at a time"
                )


def _check_vocabulary(vocabulary: dict, where: str) -> None:
    if (vocabulary.get("rare_threshold") is None) == (vocabulary.get("size") is None):
        raise InputError(f"{where}.vocabulary: give one of rare_threshold and size, and null for the other")


def _check_imported_scores(experiment: dict, rows: dict[str, dict], where: str) -> None:
    for name, row in rows.items():
        for split in experiment.get("scored_splits", SPLITS):
            if rule_of(row) == "import" and row[split] is None:
                raise InputError(
                    f"{where}.models.{name}: has no '{split}'; name the file of that split, or leave it out with "
                    "scored_splits: [valid, test]"
                )


def _explain(error: ValidationError) -> str:
    """One line: where, what, and what would be right."""
    where = ".".join(str(part) for part in error.absolute_path) or "top level"
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = ", ".join(f"'{key}'" for key in error.instance if key not in known)
        return f"config: {where}: unknown key {unknown}; correct or remove it (known: {', '.join(known)})"
    if text := number_as_text(error.instance):
        return f"config: {where}: {text}"
    return f"config: {where}: {error.message}"
