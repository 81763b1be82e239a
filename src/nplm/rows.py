"""Rows of the configuration: what a kind's keys allow, and the row with everything that it leaves unsaid.

Everything here is a pure function on the dictionaries that YAML files become.
"""

import json
import re
from collections.abc import Mapping

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.exceptions import best_match

from nplm.errors import InputError
from nplm.kinds import REQUIRED, Key, Kind, find_kind, registry


def _is_whole(checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


Validator = validators.extend(
    Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole)
)
"""JSON schema (draft 2020-12), but 3.0 is no integer: it would be a number with a point to the job."""


def row_schema(kind: Kind) -> dict:
    """JSON schema (draft 2020-12) of a complete row of this kind."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["kind", *(key.name for key in kind.keys if key.default is REQUIRED)],
        "properties": {"kind": {"const": kind.name}} | {key.name: key.schema for key in kind.keys},
    }


def shared_schema() -> dict:
    """JSON schema of an experiment's block `training`: the keys that kinds share, each as the first kind has it."""
    keys = shared_keys()
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _any_of([key.schema for key in of_kinds]) for name, of_kinds in keys.items()},
    }


def shared_keys() -> dict[str, list[Key]]:
    """Name -> the keys of this name, of all kinds, that the block `training` may give."""
    found: dict[str, list[Key]] = {}
    for kind in registry().values():
        for key in kind.keys:
            if key.shared and key not in found.setdefault(key.name, []):
                found[key.name].append(key)
    return found


def complete_row(row: Mapping, shared: Mapping, where: str) -> dict:
    """The row with what it leaves unsaid: from `shared`, an experiment's block `training`, else the key's default.

    Raises InputError, which begins with `where`, for an unknown kind, a key that the kind does not have, a value that
    the key does not allow, and what the kind's own check finds.
    """
    if not isinstance(row, Mapping) or not isinstance(row.get("kind"), str):
        raise InputError(f"{where}: has no kind; known kinds: {', '.join(registry())}")
    kind = find_kind(row["kind"], f"{where}.kind")
    given = {key.name: shared[key.name] for key in kind.keys if key.shared and key.name in shared} | dict(row)
    error = best_match(Validator(row_schema(kind)).iter_errors(given))
    if error:
        raise InputError(f"{where}{_explain(error, kind, row)}")
    complete = {"kind": kind.name} | {key.name: given.get(key.name, key.default) for key in kind.keys}
    if problem := kind.check(complete):
        raise InputError(f"{where}: {problem}")
    return complete


def read_row(text: str) -> dict:
    """The complete row in a mapping in JSON or YAML, such as `{kind: kneser_ney, n: 3, smoothing: backoff}`.

    Raises InputError as `complete_row` does, and for what is no mapping.
    """
    try:
        row = json.loads(text)  # first, for 1e-08 is a number to JSON and text to YAML
    except json.JSONDecodeError:
        try:
            row = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InputError(f"--row: not YAML ({' '.join(str(error).split())})") from None
    return complete_row(row, {}, "--row")


def allowed(schema: dict) -> str:
    """What a key's schema allows, in words."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "array" in types:
        bounds = f"list of {allowed(schema['items'])}"
    elif "boolean" in types:
        bounds = "true | false"
    elif "string" in types:
        bounds = "text"
    else:
        bounds = "whole number" if "integer" in types else "number"
        if "exclusiveMinimum" in schema:
            bounds += f" > {schema['exclusiveMinimum']}"
        elif "minimum" in schema:
            bounds += f" ≥ {schema['minimum']}"
        if "exclusiveMaximum" in schema:
            bounds += f" and < {schema['exclusiveMaximum']}"
        elif "maximum" in schema:
            bounds += f" and ≤ {schema['maximum']}"
    return bounds + (" | null" if "null" in types else "")


def number_as_text(value: object) -> str | None:
    """How to write a number that YAML takes for text (1e-3); None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+e[+-]?\d+", value):
        mantissa, exponent = value.split("e")
        return f"'{value}' is text to YAML; write {mantissa}.0e{exponent}"
    return None


def _any_of(schemas: list[dict]) -> dict:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _explain(error: ValidationError, kind: Kind, row: Mapping) -> str:
    """What is wrong with a row, to stand behind where it is."""
    keys = {key.name: key for key in kind.keys}
    if error.validator == "additionalProperties":
        unknown = ", ".join(f"'{name}'" for name in error.instance if name not in keys and name != "kind")
        return f": unknown key {unknown}; correct or remove it (known keys of {kind.name}: {', '.join(keys)})"
    if error.validator == "required":
        missing = [key for key in kind.keys if key.default is REQUIRED and key.name not in error.instance]
        return f": has no '{missing[0].name}', which {kind.name} needs: {missing[0].meaning}; allowed: " + allowed(
            missing[0].schema
        )
    key = keys[error.absolute_path[0]]
    value = error.instance if len(error.absolute_path) == 1 else row[key.name]
    source = "" if key.name in row else " (from training)"
    if text := number_as_text(value):
        return f".{key.name}{source}: {text}"
    return f".{key.name}{source}: {value!r} is not allowed; allowed: {allowed(key.schema)}"
