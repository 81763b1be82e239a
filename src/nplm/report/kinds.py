"""The kinds of model for a reader: in a terminal, and as the page docs/models.md."""

import json
from collections.abc import Iterable

from nplm.kinds import REQUIRED, Key, Kind
from nplm.report.markdown import escape, markdown_table
from nplm.rows import allowed


def kinds_text(kinds: Iterable[Kind]) -> str:
    """One line a kind: its name, what it is, its source."""
    kinds = list(kinds)
    width = max(len(kind.name) for kind in kinds)
    lines = [f"{kind.name:{width}}  {kind.title} ({kind.source})" for kind in kinds]
    return "\n".join([*lines, "", "The keys of one of them: nplm kinds NAME"]) + "\n"


def keys_text(kind: Kind) -> str:
    """What a kind is, what its fit reads, and a line for each of its keys."""
    lines = [f"{kind.name}: {kind.title} ({kind.source})", facts(kind), ""]
    cells = [_cells(key) for key in kind.keys]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)] if cells else []
    for line in cells:
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return "\n".join(lines if cells else [*lines, "It has no keys."]) + "\n"


def models_page(kinds: Iterable[Kind]) -> str:
    """The page docs/models.md: every kind with its keys."""
    parts = [
        "# Kinds of model\n\n"
        "`nplm kinds --markdown docs/models.md` makes this page from the declarations of the kinds; do not edit it. "
        "A row of a kind stands under `models` in an experiment's block of the configuration, for example "
        "`kn3: {kind: kneser_ney, n: 3, smoothing: interpolated}`. Keys marked † may also stand in the experiment's "
        "block `training`, for all rows that have them. [adding-a-model.md](adding-a-model.md) shows how to add a "
        "kind.\n"
    ]
    for kind in kinds:
        text = f"## {kind.name}\n\n{escape(kind.title[0].upper() + kind.title[1:])}. Source: {escape(kind.source)}. "
        text += f"{facts(kind)}\n"
        if kind.keys:
            rows = [
                [f"`{name}`" + " †" * key.shared, escape(values), escape(default), escape(meaning)]
                for key in kind.keys
                for name, values, default, meaning in [_cells(key)]
            ]
            text += "\n" + markdown_table(["key", "allowed", "default", "meaning"], rows, left=4)
        else:
            text += "\nIt has no keys.\n"
        parts.append(text)
    return "\n".join(parts)


def facts(kind: Kind) -> str:
    """Family, inputs and manner of a kind's fit, in one line."""
    if kind.code is None:
        return "Nothing is fitted."
    reads = ", ".join(("train", *kind.reads, *(("valid",) if kind.epochs else ())))
    said = [f"Family: {kind.family}", f"reads: {reads}"]
    if kind.epochs:
        said.append("trained in epochs" + " by one or several ranks" * kind.ranks)
    if kind.random:
        said.append("draws random numbers")
    return "; ".join(said) + "."


def _cells(key: Key) -> list[str]:
    if key.default is REQUIRED:
        default = "required"
    else:
        default = key.default if isinstance(key.default, str) else json.dumps(key.default)
    return [key.name, allowed(key.schema), default, key.meaning]
