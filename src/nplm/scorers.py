"""From a model file to the scorer in it: the one place that knows which module reads which kind of model."""

from importlib import import_module
from pathlib import Path

from nplm.arrays import read_header
from nplm.errors import InputError
from nplm.scores import Scorer

READERS = {
    "class_ngram": "nplm.ngram.class_ngram",
    "deleted_interpolation": "nplm.ngram.deleted_interpolation",
    "katz": "nplm.ngram.katz",
    "kneser_ney": "nplm.ngram.kneser_ney",
    "nplm": "nplm.neural.network",
}
"""Kind of model file -> module whose `read_model(path)` returns its Scorer."""


def load_scorer(path: str | Path) -> Scorer:
    """The scorer held by a model file. Raises InputError when the file is not a model of a known kind."""
    kind = read_header(path)["kind"]
    if kind not in READERS:
        raise InputError(f"{path}: holds '{kind}', which is no model; known models: {', '.join(sorted(READERS))}")
    return import_module(READERS[kind]).read_model(path)
