"""Imports go one way: between the packages, and between the modules of each, there is no circle."""

import ast
from graphlib import TopologicalSorter

import pytest

from nplm.fingerprint import PACKAGE, _imports

ALLOWED = {
    "base": set(),
    "corpus": {"base"},
    "ngram": {"base", "corpus"},
    "neural": {"base"},
    "report": {"base", "corpus", "ngram"},
    "cli": {"base", "corpus", "ngram", "neural", "report"},
}
"""Package -> the packages that it may import from; `base` is the modules of nplm itself."""
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.glob("**/*.py")
}


def imports_of(module: str) -> set[str]:
    """The modules of nplm that a module imports, within functions too."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    return _imports(tree, module, PACKAGE) - {module}


def package_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ALLOWED else "base"


def test_between_packages_imports_go_one_way():
    found = {package: set() for package in ALLOWED}
    for module in MODULES:
        if module not in ("nplm.__main__", "nplm.cli"):
            found[package_of(module)] |= {package_of(other) for other in imports_of(module)} - {package_of(module)}
    for package, others in found.items():
        assert others <= ALLOWED[package], f"{package} imports from {sorted(others - ALLOWED[package])}"
    assert tuple(TopologicalSorter(ALLOWED).static_order())[-1] == "cli"


@pytest.mark.parametrize("package", ALLOWED)
def test_between_modules_there_is_no_circle(package):
    """A package's own __init__ aside, which the command line's modules take `app` from."""
    modules = {module for module in MODULES if package_of(module) == package and module != "nplm.cli"}
    graph = {module: imports_of(module) & modules for module in modules}
    assert len(list(TopologicalSorter(graph).static_order())) == len(modules)


def test_what_a_network_is_does_not_know_how_it_is_trained():
    of_network = {"nplm.neural.network"}
    for _ in range(10):
        of_network |= {other for module in of_network for other in imports_of(module)}
    assert not of_network & {"nplm.neural.training", "nplm.neural.shared_memory", "nplm.neural.checkpoint"}
    assert "nplm.neural.outputs.softmax" in of_network
