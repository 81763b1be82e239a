"""From a model file to the scorer in it, by the kind that its header names."""

from importlib import import_module
from pathlib import Path

from nplm.arrays import read_header
from nplm.errors import InputError
from nplm.kinds import Kind, registry
from nplm.scores import Scorer


def reader_of(kind: Kind) -> str:
    """The module whose `read_model(path)` gives the scorer in a model file of this kind."""
    return "nplm.neural.model" if kind.epochs else kind.code


def load_scorer(path: str | Path) -> Scorer:
    """The scorer held by a model file. Raises InputError when the file is not a model of a known kind."""
    name = read_header(path)["kind"]
    known = {kind.name for kind in registry().values() if kind.code}
    if name not in known:
        raise InputError(f"{path}: holds '{name}', which is no model; known models: {', '.join(sorted(known))}")
    return import_module(reader_of(registry()[name])).read_model(path)
