"""The claims ledger: what the paper claims, and whether it holds here. Claims are data, verdicts are computed.

A quantity comes with an interval. It decides when all of the interval lies on one side of the claim's boundary; an
interval that includes the boundary leaves the claim undecided.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from nplm.errors import InputError
from nplm.files import read_csv, read_text
from nplm.report.configuration import streams_of
from nplm.report.history import Epochs, chosen_epoch
from nplm.report.markdown import bullets, escape, markdown_table, write_csv_and_markdown
from nplm.report.table import COLUMNS as TABLE_COLUMNS
from nplm.report.table import NOT_RUN, Row, corpora, lowest_on_validation, whose
from nplm.significance import Comparisons, Interval

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
VERDICTS = (HOLDS, FAILS, UNDECIDED, NOT_RUN)
COLUMNS = (
    "claim",  # its number; a claim has one row for each of its parts
    "claim_verdict",  # of all its parts that this experiment can decide
    "claim_statement",
    "source",  # where in the paper
    "part",
    "statement",
    "quantity",
    "rule",  # when it holds
    "paper",
    "ours",
    "low",  # interval of ours
    "high",
    "verdict",
    "rows",  # names of the models and mixtures that it was computed from
    "note",  # what is missing
    "corpus",  # that ours was computed on and that the paper speaks of, where they are not the same; else empty
    "paper_corpus",
)
Selector = str | dict
"""A row's name, or {"best": {column: cell or list of cells}}, with "among": "all" for the rows of both tables"""


@dataclass(frozen=True)
class Results:
    """What claims are checked against."""

    experiment: dict
    """its resolved configuration"""
    table: Sequence[Row]
    """the paper's rows with ours beside (nplm.report.table)"""
    extra: Sequence[Row]
    """the rows that the paper lacks"""
    comparisons: Comparisons
    """of every two rows on test"""
    histories: dict[str, Epochs]
    """of every network"""


class Missing(Exception):
    """A quantity cannot be computed, since something was not run; the message says what."""


def read_claims(path: str | Path) -> list[dict]:
    """The claims in a YAML file, as its head describes them. Raises InputError where it is not so."""
    try:
        claims = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML ({' '.join(str(error).split())}); mend it") from None
    if error := best_match(Draft202012Validator(SCHEMA).iter_errors(claims)):
        raise InputError(f"{path}: {_explain(error)}")
    return claims


def _explain(error: ValidationError) -> str:
    """One line: where, counted from 1, what, and what would be right."""
    where = ".".join(str(step + 1 if isinstance(step, int) else step) for step in error.absolute_path)
    what = error.message
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        what = f"unknown key '{min(error.instance.keys() - known, key=str)}'; known: {', '.join(known)}"
    elif error.validator == "anyOf":
        what = "no boundary; give above or below"
    elif error.validator == "type" and "string" in error.schema["type"] and isinstance(error.instance, bool | int):
        what += "; write it in quotes, for to YAML it is no text"
    return f"claim {where}: {what}" if where else f"no list of claims: {what}"


def check_claims(claims: Sequence[dict], results: Results) -> list[Row]:
    """The ledger: one row of text (`COLUMNS`) per part of a claim, in order."""
    names = results.experiment.get("table", {}).get("corpora") or {"ours": "", "paper": ""}
    ledger = []
    for number, claim in enumerate(claims, start=1):
        parts = [_check(part, results) for part in claim["parts"]]
        here = [row["verdict"] for row, part in zip(parts, claim["parts"], strict=True) if "elsewhere" not in part]
        about = {
            "claim": str(number),
            "claim_verdict": verdict_of_all(here),
            "claim_statement": claim["claim"],
            "source": claim["source"],
            "corpus": names["ours"],
            "paper_corpus": names["paper"],
        }
        ledger += [row | about | {"part": str(part)} for part, row in enumerate(parts, start=1)]
    return ledger


def verdict(interval: Interval, above: float | None = None, below: float | None = None) -> str:
    """Whether a quantity lies between its boundaries with all of its interval, outside with all of it, or neither."""
    if (above is not None and interval.high < above) or (below is not None and interval.low > below):
        return FAILS
    inside = (above is None or interval.low > above) and (below is None or interval.high < below)
    return HOLDS if inside else UNDECIDED


def verdict_of_all(verdicts: Sequence[str]) -> str:
    """Of a claim with parts of these verdicts: one part that does not hold is enough to refute it."""
    return next((v for v in (FAILS, NOT_RUN, UNDECIDED) if v in verdicts), HOLDS if verdicts else NOT_RUN)


def _check(part: dict, results: Results) -> Row:
    row = dict.fromkeys(COLUMNS, "")
    row |= {"statement": part["statement"], "verdict": NOT_RUN, "paper": str(part.get("paper", ""))}
    if "elsewhere" in part:
        return row | {"note": f"needs {part['elsewhere']}, another experiment"}
    row |= {"quantity": _described(part), "rule": _rule(part)}
    if part["quantity"] == "ratio":
        row["paper"] = _paper_ratio(part, results.table)
    try:
        interval, names = QUANTITIES[part["quantity"]](part, results)
    except Missing as missing:
        return row | {"note": str(missing)}
    numbers = {"ours": interval.value, "low": interval.low, "high": interval.high}
    return row | {
        **{column: f"{number:.4f}" for column, number in numbers.items()},
        "verdict": verdict(interval, part.get("above"), part.get("below")),
        "rows": " ".join(names),
    }


def _ratio(part: dict, results: Results) -> tuple[Interval, list[str]]:
    """Test perplexity of one row divided by another's."""
    names = [_selected(part[key], results)["scores"] for key in ("row", "to")]
    if names[0] == names[1]:  # the best of two groups may be one row
        return Interval(1.0, 1.0, 1.0), names
    if tuple(names) not in results.comparisons:
        raise InputError(f"no comparison of {names[0]} with {names[1]}; make them anew with `nplm compare-models`")
    return results.comparisons[tuple(names)], names


def _epochs(part: dict, results: Results) -> tuple[Interval, list[str]]:
    """Epochs until the best validation perplexity, of one network divided by another's.

    Each is known to half an epoch; seeds widen the interval to the lowest and highest. A training that was still
    gaining when it ended leaves its side open.
    """
    names = [_selected(part[key], results)["scores"] for key in ("row", "to")]
    numbers, gaining = [], []
    for name in names:
        if name not in results.histories:
            raise Missing(f"needs the training of {name}, which is no network trained here")
        trainings = [results.histories[stream] for stream in streams_of(results.experiment, name)]
        chosen = [chosen_epoch(epochs)["epoch"] for epochs in trainings]
        numbers.append(chosen)
        gaining.append(any(epochs[-1]["epoch"] == epoch for epochs, epoch in zip(trainings, chosen, strict=True)))
    one, other = numbers
    return Interval(
        statistics.mean(one) / statistics.mean(other),
        0.0 if gaining[1] else (min(one) - 0.5) / (max(other) + 0.5),
        math.inf if gaining[0] else (max(one) + 0.5) / (min(other) - 0.5),
    ), names


def _communication(part: dict, results: Results) -> tuple[Interval, list[str]]:
    """Share of communication in the seconds of training by several ranks: of all networks; lowest and highest epoch."""
    histories = results.histories
    parallel = {name: [epoch for epoch in epochs if epoch.get("ranks", 1) > 1] for name, epochs in histories.items()}
    epochs = [epoch for several in parallel.values() for epoch in several]
    if not epochs:
        raise Missing("no network was trained by several ranks (config: mpi)")
    shares = [epoch["seconds_communication"] / epoch["seconds_training"] for epoch in epochs]
    total = sum(epoch["seconds_training"] for epoch in epochs)
    pooled = sum(epoch["seconds_communication"] for epoch in epochs) / total
    return Interval(pooled, min(shares), max(shares)), [network for network, several in parallel.items() if several]


QUANTITIES: dict[str, Callable] = {"ratio": _ratio, "epochs": _epochs, "communication": _communication}
"""What may decide a claim -> the function that computes it; raises Missing when a row that it needs was not run."""

_TEXT = {"type": "string", "minLength": 1}
_SELECTOR = {
    "type": ["string", "object"],
    "required": ["best"],
    "additionalProperties": False,
    "properties": {
        "best": {
            "type": "object",
            "propertyNames": {"enum": list(TABLE_COLUMNS)},
            "additionalProperties": {"type": ["string", "array"], "items": {"type": "string"}},
        },
        "among": {"const": "all"},
    },
}
_PART = {
    "type": "object",
    "required": ["statement"],
    "additionalProperties": False,
    "properties": {
        "statement": _TEXT,
        "quantity": {"enum": list(QUANTITIES)},
        "row": _SELECTOR,
        "to": _SELECTOR,
        "above": {"type": "number"},
        "below": {"type": "number"},
        "because": _TEXT,
        "paper": {"type": "number"},
        "elsewhere": _TEXT,
    },
    "if": {"not": {"required": ["elsewhere"]}},
    "then": {
        "required": ["quantity"],
        "anyOf": [{"required": ["above"]}, {"required": ["below"]}],
        "if": {"properties": {"quantity": {"enum": ["ratio", "epochs"]}}},
        "then": {"required": ["row", "to"]},
    },
}
SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["claim", "source", "parts"],
        "additionalProperties": False,
        "properties": {"claim": _TEXT, "source": _TEXT, "parts": {"type": "array", "minItems": 1, "items": _PART}},
    },
}
"""JSON schema (draft 2020-12) of a file of claims"""


def _selected(selector: Selector, results: Results) -> Row:
    """The row that a selector means. Raises Missing when it was not run."""
    if isinstance(selector, str):
        row = next((row for row in (*results.table, *results.extra) if row["scores"] == selector), None)
        if row is None or row["test_ppl"] == NOT_RUN:
            raise Missing(f"needs the row {selector}")
        return row
    rows = [*results.table, *results.extra] if selector.get("among") == "all" else results.table
    row = lowest_on_validation(_with_cells(rows, selector["best"]))
    if row is None:
        raise Missing(f"needs {_name(selector)}")
    return row


def _with_cells(rows: Sequence[Row], cells: dict[str, str | list[str]]) -> list[Row]:
    allowed = {column: cell if isinstance(cell, list) else [cell] for column, cell in cells.items()}
    return [row for row in rows if all(row[column] in values for column, values in allowed.items())]


def _paper_ratio(part: dict, table: Sequence[Row]) -> str:
    """The same ratio of the paper's perplexities, its best rows chosen by its own validation; empty if it has none."""
    perplexities = []
    for key in ("row", "to"):
        selector = part[key]
        if isinstance(selector, str):
            row = next((row for row in table if row["scores"] == selector), None)
        else:
            row = None if "among" in selector else lowest_on_validation(_with_cells(table, selector["best"]), "paper_")
        if row is None or not row["paper_test_ppl"]:
            return ""
        perplexities.append(float(row["paper_test_ppl"]))
    return f"{perplexities[0] / perplexities[1]:.4f}"


def _described(part: dict) -> str:
    pair = " / ".join(_name(part[key]) for key in ("row", "to") if key in part)
    return {
        "ratio": f"test perplexity: {pair}",
        "epochs": f"epochs: {pair}",
        "communication": "share of communication in the seconds of training",
    }[part["quantity"]]


def _name(selector: Selector) -> str:
    if isinstance(selector, str):
        return selector
    cells = (
        f"{column} {' or '.join(cell) if isinstance(cell, list) else cell or 'empty'}"
        for column, cell in selector["best"].items()
    )
    return f"best {'of all rows' if 'among' in selector else 'row'} with {', '.join(cells)}"


def _rule(part: dict) -> str:
    rule = " and ".join(f"{key} {part[key]}" for key in ("above", "below") if key in part)
    return f"{rule} ({part['because']})" if "because" in part else rule


def read_ledger(path: str | Path) -> list[Row]:
    """A ledger written by `write_ledger`."""
    return read_csv(path, COLUMNS)


def write_ledger(directory: str | Path, ledger: list[Row]) -> None:
    """Write claims.csv and claims.md."""
    write_csv_and_markdown(Path(directory) / "claims", claims_title(ledger), ledger, COLUMNS, claims_markdown)


def claims_title(ledger: Sequence[Row]) -> str:
    """The question that the verdicts answer."""
    names = corpora(ledger)
    return f"Do the paper's claims of {names[1]} carry over to {names[0]}?" if names else "Does the paper hold?"


def claims_markdown(ledger: Sequence[Row]) -> str:
    """The verdicts, one line per claim, and below what decided them, one line per part."""
    claims = list({row["claim"]: row for row in ledger}.values())
    counts = ", ".join(f"{v} {sum(row['claim_verdict'] == v for row in claims)}" for v in VERDICTS)
    verdicts = [
        [row["claim"], row["claim_verdict"], row["claim_statement"], _decided(ledger, row["claim"])] for row in claims
    ]
    details = [
        [
            f"{row['claim']}.{row['part']}",
            row["verdict"],
            row["statement"],
            row["ours"] and f"{_short(row['ours'])} ({_short(row['low'])}–{_short(row['high'])})",
            _short(row["paper"]),
            row["rule"],
            row["quantity"],
            row["rows"].replace(" ", ", ") or row["note"],
        ]
        for row in ledger
    ]
    paper = escape(whose(ledger)["paper_"])
    header = ["part", "verdict", "the paper says", "ours (interval)", paper, "holds if", "quantity", "computed from"]
    notes = [
        "Verdicts are computed from the tables, never typed; boundaries are stated with the claims.",
        "A part is undecided when the interval includes its boundary. Of a ratio it is a 95 % interval by a paired "
        "block bootstrap on the test split; of a number of epochs, half an epoch to either side of each, open where a "
        "training was still gaining when it ended; of the share of communication, the lowest and the highest epoch.",
        "Intervals are about other text, with these trained models; what other seeds would change is in them where a "
        "row was trained from several. Each is at 95 % on its own: of so many, one may be wrong by chance.",
        "Where the paper gives a size, a part holds when ours is beyond the stated share of it, however far beyond.",
        "A claim holds when all parts hold that this corpus can decide, and fails when one fails.",
    ]
    return (
        f"{_stand_in_note(ledger)}Verdicts on {len(claims)} claims: {counts}.\n\n"
        + markdown_table(["claim", "verdict", "the paper says", "parts"], verdicts, left=4)
        + "\n"
        + markdown_table(header, details, left=len(header))
        + "\n"
        + bullets(notes)
    )


def _stand_in_note(ledger: Sequence[Row]) -> str:
    """What a verdict means where ours is computed on another corpus than the paper's."""
    if not corpora(ledger):
        return ""
    names = list(map(escape, corpora(ledger)))
    return (
        f"**The paper's claims and numbers are of {names[1]}; ours are of {names[0]}, which stands in for it.** A "
        f"verdict here says whether a relation carries over to {names[0]}. It neither confirms nor refutes what the "
        f"paper says of {names[1]}.\n\n"
    )


def _decided(ledger: Sequence[Row], claim: str) -> str:
    """How the parts of a claim came out, such as "3 holds, 2 not run"."""
    verdicts = [row["verdict"] for row in ledger if row["claim"] == claim]
    return ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)


def _short(number: str) -> str:
    return f"{float(number):.3f}" if number else ""
