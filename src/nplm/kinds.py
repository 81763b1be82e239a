"""Kinds of model: what a kind says of itself, and the one list of where they are declared.

A kind is declared beside its code, in a module that is light to import. From the declaration come the schema of a
configuration's rows, the inputs of the rule that fits it, its columns in tables, `nplm kinds` and docs/models.md.
docs/adding-a-model.md shows how to add one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from nplm.errors import InputError

MODULES = (
    "nplm.ngram.deleted_interpolation",
    "nplm.ngram.kneser_ney",
    "nplm.ngram.katz",
    "nplm.ngram.class_ngram",
    "nplm.neural.kinds",
    "nplm.external",
)
"""The registrations: modules that declare a `KIND`, or several `KINDS`. Other packages' stand in `ENTRY_POINTS`."""
ENTRY_POINTS = "nplm.kinds"
"""Group of entry points by which an installed package registers its modules."""
REQUIRED: Any = object()
"""Default of a key that every row must have."""
FAMILIES = ("n-gram", "network", "vectors")


@dataclass(frozen=True)
class Key:
    """One key of a row in the configuration."""

    name: str
    schema: dict
    """JSON schema of its values"""
    meaning: str
    """one line"""
    default: Any = REQUIRED
    column: str | None = None
    """the column of tables that shows it"""
    shared: bool = False
    """whether an experiment's block `training` may give it for all rows that have it"""
    refers_to: tuple[str, ...] = ()
    """where the value is the name of another model, which is made before: the kinds that it may be of"""


@dataclass(frozen=True)
class Kind:
    """What a kind of model says of itself.

    `code` names the module that computes. Of a kind that is fitted by one process it has

        fit_row(inputs, row, seed) -> model     inputs: name -> path; row: complete, with its defaults
        write_model(path, model)
        describe(model) -> list of lines        what the log says of it
        read_model(path) -> nplm.scores.Scorer

    and of a network that is trained in epochs (`epochs`)

        shape(row, vocabulary_size) -> nplm.neural.encoders.protocol.EncoderShape
        architecture(row, vocabulary_size) -> nplm.neural.network.Architecture   instead, where it is no encoder
    """

    name: str
    title: str
    """what it is, in a phrase"""
    source: str
    """where it is published"""
    own_keys: tuple[Key, ...]
    """its keys; `keys` has those of every kind that is random, too"""
    code: str | None
    """None: nothing is fitted, another toolkit's scores are imported"""
    family: str | None
    """one of `FAMILIES`; None: the row's key `family` says it"""
    reads: tuple[str, ...] = ()
    """what its fit reads beyond the train split: valid, classes (of words), or a key that refers to a model"""
    random: bool = False
    """whether it draws random numbers: it then has the keys `seed` and `seeds`"""
    epochs: bool = False
    """whether it is trained in epochs: it then has a history, learning curves and checkpoints"""
    ranks: bool = False
    """whether several ranks train it together"""
    shows: tuple[str, ...] = ()
    """parts of the report that are made of its model file: mixture_weights, features, unseen_words"""
    label: str = ""
    """what the column `model` of tables calls it; the name unless given"""
    check: Callable[[dict], str | None] = field(default=lambda row: None)
    """what is wrong with a complete row beyond its keys' types, in one line that says what to do"""

    @property
    def keys(self) -> tuple[Key, ...]:
        """All keys of its rows but `kind`."""
        return self.own_keys + (SEED_KEYS if self.random else ())

    def family_of(self, row: dict) -> str:
        """The family of a row of this kind."""
        return self.family or row["family"]

    @property
    def references(self) -> tuple[str, ...]:
        """Names of the keys whose values are names of other models."""
        return tuple(key.name for key in self.keys if key.refers_to)

    @property
    def columns(self) -> dict[str, str]:
        """Column of tables -> the key that it shows."""
        return {key.column: key.name for key in self.keys if key.column}


def whole_number(least: int, most: int | None = None, or_null: bool = False) -> dict:
    """JSON schema of the integers from `least` to `most`."""
    bounds = {"minimum": least} | ({"maximum": most} if most is not None else {})
    return {"type": ["integer", "null"] if or_null else "integer", **bounds}


def number(least: float, exclusive: bool = False) -> dict:
    """JSON schema of the numbers from `least` upwards, itself included or not."""
    return {"type": "number", "exclusiveMinimum" if exclusive else "minimum": least}


def choice(*values: str) -> dict:
    """JSON schema of some words."""
    return {"enum": list(values)}


BOOLEAN = {"type": "boolean"}
TEXT = {"type": "string", "minLength": 1}
ORDER = whole_number(1, 65)
"""a split keeps 64 tokens before its start (nplm.streams.HISTORY_KEPT)"""
SEED_KEYS = (
    Key(
        "seed",
        whole_number(0, 2**63 - 1, or_null=True),
        "seed of its own, for one derived from the experiment's and its name",
        None,
    ),
    Key("seeds", whole_number(1), "how many are made, each from a seed of its own", 1, shared=True),
)


@cache
def registry() -> dict[str, Kind]:
    """Name -> kind, of every module registered here and by other packages, in that order.

    Raises InputError when two modules register one name, or a module has neither KIND nor KINDS.
    """
    outside = sorted(point.value for point in entry_points(group=ENTRY_POINTS))
    return collect(import_module(name) for name in (*MODULES, *outside))


def collect(modules: Iterable[ModuleType]) -> dict[str, Kind]:
    """Name -> kind, of these modules; see `registry`."""
    kinds: dict[str, Kind] = {}
    registered_by: dict[str, str] = {}
    for module in modules:
        declared = getattr(module, "KINDS", None) or (getattr(module, "KIND", None),)
        for kind in declared:
            if not isinstance(kind, Kind):
                raise InputError(f"{module.__name__} is registered but declares no kind; give it KIND = Kind(...)")
            if kind.name in kinds:
                raise InputError(
                    f"kind '{kind.name}' is registered by {registered_by[kind.name]} and by {module.__name__}; "
                    "rename one of them"
                )
            kinds[kind.name], registered_by[kind.name] = kind, module.__name__
    return kinds


def find_kind(name: str, where: str) -> Kind:
    """The kind of this name. Raises InputError, which begins with `where`, when there is none."""
    if name not in registry():
        raise InputError(f"{where}: '{name}' is no kind of model; known kinds: {', '.join(registry())}")
    return registry()[name]


def code_of_kind(kind: Kind) -> ModuleType:
    """The module that computes; importing it may take a second, where torch comes with it."""
    return import_module(kind.code)
