"""Fingerprints of code: what a stage's result depends on besides its inputs and parameters.

The workflow passes a stage's fingerprint as a parameter of its rule, so that editing the code reruns the stage. The
source is read, never imported or run; comments, docstrings and layout do not count.
"""

import ast
import hashlib
from copy import copy
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGE = Path(__file__).parent
DECLARATIONS = ("KIND", "KINDS", "MODULES")
"""Names whose values say what kinds of model there are (nplm.kinds). They are no code: what a job needs of them reaches
it as its inputs and parameters, so a new kind, or a better explanation of a key, reruns nothing."""


@cache
def code_of(module: str, function: str | None = None, also: tuple[str, ...] = (), package: Path = PACKAGE) -> str:
    """Fingerprint (16 hex digits) of a module of the package and of all modules of it that it imports, transitively.

    With `function`, only that function of `module` counts, with what it uses of the module and what these import: the
    command line holds several stages in a module. `also` names modules that are looked up at run time, which the source
    does not show. Imports inside functions count. A package's `__init__.py` counts only where something is imported
    from the package itself, because the packages here keep nothing else in it.

    Raises LookupError when the module has no such function.
    """
    tree = _tree(module, package)
    statements = _statements_used(tree, function) if function else tree.body
    waiting = set(also).union(*(_imports(statement, module, package) for statement in statements))
    reached: set[str] = set()
    while waiting:
        reached |= waiting
        waiting = set().union(*(_imports(_tree(name, package), name, package) for name in waiting)) - reached
    codes = [ast.unparse(statement) for statement in statements]
    codes += [f"{name}:\n{ast.unparse(_tree(name, package))}" for name in sorted(reached)]
    return hashlib.sha256("\n".join(codes).encode()).hexdigest()[:16]


def _statements_used(tree: ast.Module, function: str) -> list[ast.stmt]:
    """The statements of a module that a function of it needs, itself included but for its decorators.

    (A decorator puts it on the command line and would lead from there to everything else.)
    """
    bound = {name: statement for statement in tree.body for name in _names_bound(statement)}
    if function not in bound:
        raise LookupError(f"no function '{function}' among {', '.join(sorted(bound)) or 'no definitions'}")
    bound[function] = copy(bound[function])
    bound[function].decorator_list = []
    used: set[ast.stmt] = set()
    waiting = {bound[function]}
    while waiting:
        used |= waiting
        names = {node.id for statement in waiting for node in ast.walk(statement) if isinstance(node, ast.Name)}
        waiting = {bound[name] for name in names & bound.keys()} - used
    return [statement for statement in dict.fromkeys(bound.values()) if statement in used]


def _names_bound(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name.split(".")[0] for alias in names]
        case _:
            stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
            return [node.id for node in stored if isinstance(node.ctx, ast.Store)]


def _imports(tree: ast.AST, module: str, package: Path) -> set[str]:
    """Names of the package's modules that are imported anywhere in a syntax tree of `module`."""
    found = set()
    own = (package.name, module.split(".")[0])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            is_package = _file(module, package).name == "__init__.py"
            parents = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            source = ".".join([*parents, *([node.module] if node.module else [])])
            if source.split(".")[0] in own:
                names = {f"{source}.{alias.name}" for alias in node.names}
                found |= {name if _file(name, package).exists() else source for name in names}
    return {name for name in found if name.split(".")[0] in own}


@cache
def _tree(module: str, package: Path) -> ast.Module:
    """The syntax tree of a module, without docstrings (comments never are in it) and `DECLARATIONS`."""
    tree = _WithoutDocstrings().visit(ast.parse(_file(module, package).read_text(encoding="utf-8")))
    tree.body = [statement for statement in tree.body if not set(_names_bound(statement)) & set(DECLARATIONS)]
    return tree


def _file(module: str, package: Path) -> Path:
    if module.split(".")[0] != package.name:  # of another package, which registers a kind of model
        parent = module.rpartition(".")[0]
        spec = find_spec(module) if not parent or _file(parent, package).name == "__init__.py" else None
        return Path(spec.origin if spec and spec.origin else f"{module}.py")
    path = package.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


class _WithoutDocstrings(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_string = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_string else node
