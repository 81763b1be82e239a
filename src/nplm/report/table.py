"""The paper's result table with our perplexities beside, and the table of what the paper's lacks.

A table is a list of rows, a row a dict of text cells named by `COLUMNS`, exactly as in the CSV file: all that the
report shows of it elsewhere is read back from that file.
"""

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nplm.errors import InputError
from nplm.files import read_csv
from nplm.kinds import REQUIRED, registry
from nplm.perplexity import Perplexity
from nplm.report.configuration import all_names, is_network, kind_of, models_in, names_run, streams_of
from nplm.rows import complete_row
from nplm.significance import Comparisons

NOT_RUN = "not run"
SPLITS = ("train", "valid", "test")
PAPER_SHAPE = ("n", "c", "h", "m", "direct")
"""order, number of classes, hidden units, features per word, direct connections: the paper's letters"""
SHAPE = tuple(dict.fromkeys((*PAPER_SHAPE, *(column for kind in registry().values() for column in kind.columns))))
"""the paper's, and what else the kinds have columns for"""
PAPER_COLUMNS = ("scores", "model", "row", *PAPER_SHAPE, "mix", *(f"{split}_ppl" for split in SPLITS))
COLUMNS = (
    "row",
    "model",
    "variant",
    *SHAPE,
    "mix",
    *(f"{split}_ppl" for split in SPLITS),
    *(f"paper_{split}_ppl" for split in SPLITS),
    "ratio_to_baseline",  # test perplexity divided by that of the baseline
    "paper_ratio_to_baseline",
    "ratio_low",  # interval of ratio_to_baseline (nplm.significance)
    "ratio_high",
    "seeds",  # trainings that the perplexities are the mean of
    *(f"{split}_ppl_sd" for split in SPLITS),  # their standard deviation, of several seeds
    "weights",  # of a mixture: fixed | learned | binned
    "family",  # network (mixtures with a network too) | n-gram
    "best_on_validation",  # the group (`GROUPS`) that the row is the best of, on validation
    "differs",  # where our model is not the one that the paper describes
    "scores",  # name of our model or mixture
    "corpus",  # of our perplexities and of the paper's, where they are of different corpora; else empty
    "paper_corpus",
)
NETWORK_MIXTURE, N_GRAM = GROUPS = ("network mixture", "n-gram")
"""The groups that the paper compares, each by its best row on validation (its abstract and section 4.2)."""

Row = dict[str, str]


def read_paper(path: str | Path) -> list[Row]:
    """The rows of the paper's table (columns `PAPER_COLUMNS`).

    Raises InputError for a second row of one model and for a cell that is not what its column holds: perplexities are
    1 or more, the shape is of whole numbers, `direct` and `mix` are yes or no; each may be empty. A model has
    no capitals: by `mlp` networks are told from the rest.
    """
    rows = read_csv(path, PAPER_COLUMNS)
    seen: set[str] = set()
    for number, row in enumerate(rows, start=2):
        for split in SPLITS:
            if not _is_perplexity(cell := row[f"{split}_ppl"]):
                raise InputError(f"{path}, line {number}: {split}_ppl is '{cell}'; give a number or leave it empty")
        for column in ("n", "c", "h", "m"):
            if not re.fullmatch("[0-9]*", cell := row[column]):
                raise InputError(f"{path}, line {number}: {column} is '{cell}'; give a whole number or leave it empty")
        for column in ("direct", "mix"):
            if (cell := row[column]) not in ("", "yes", "no"):
                raise InputError(f"{path}, line {number}: {column} is '{cell}'; give yes or no, or leave it empty")
        if (cell := row["model"]) != cell.lower():
            raise InputError(f"{path}, line {number}: model is '{cell}'; write '{cell.lower()}'")
        if (name := row["scores"]) in seen:
            raise InputError(f"{path}, line {number}: a second row of '{name}'; give each of our models one (scores)")
        seen |= {name} - {""}
    return rows


def _is_perplexity(cell: str) -> bool:
    try:
        return cell == "" or 1 <= float(cell) < math.inf
    except ValueError:
        return False


def read_table(path: str | Path) -> list[Row]:
    """A table as `nplm.report.table_formats` writes it. Raises InputError for anything else.

    Columns of kinds that were registered after it was written are empty.
    """
    needed = [column for column in COLUMNS if column not in SHAPE or column in PAPER_SHAPE]
    return [dict.fromkeys(SHAPE, "") | row for row in read_csv(path, needed)]


def tabulate(
    experiment: dict,
    paper: Sequence[Mapping[str, str]],
    perplexities: Iterable[Perplexity],
    comparisons: Comparisons | None = None,
) -> tuple[list[Row], list[Row]]:
    """The paper's rows in its order with ours beside, and the rows of every other model and mixture.

    A row that was trained from several seeds shows the mean over them, with its standard deviation. Without paper rows,
    all are in the first table. A split of which there is no perplexity at all is left empty. Raises InputError when
    there is a perplexity of something that the configuration does not run, or none on valid or test of something that
    it runs.
    """
    ours = {(p.model, p.split): p.perplexity for p in perplexities}
    for model, _ in ours:
        if model not in names_run(experiment):
            raise InputError(f"perplexity of {model}, which the configuration does not run; evaluate only what it runs")
    for name in names_run(experiment):
        for split in ("valid", "test"):
            if (name, split) not in ours:
                raise InputError(f"no perplexity of {name} on {split}; evaluate it, or exclude it in the configuration")

    paper_of = {row["scores"]: row for row in paper}
    table = [
        _row(experiment, row["scores"], ours, comparisons or {})
        | _paper_cells(experiment, row, paper_of.get(experiment["table"]["baseline"]))
        for row in paper
    ]
    extra = [_row(experiment, name, ours, comparisons or {}) for name in all_names(experiment) if name not in paper_of]
    if not paper:
        table, extra = extra, []
    for group in GROUPS:
        for rows in (table, table + extra):
            # The best row of all may be one that the paper's table lacks: then there is a best row in each table.
            best = best_on_validation(rows, group)
            if best is not None:
                best["best_on_validation"] = group
    return table, extra


def best_on_validation(rows: Iterable[Row], group: str, of: str = "") -> Row | None:
    """The row of a group (`GROUPS`) with the lowest validation perplexity; see `lowest_on_validation`."""
    return lowest_on_validation((row for row in rows if _group(row) == group), of)


def lowest_on_validation(rows: Iterable[Row], of: str = "") -> Row | None:
    """The row with the lowest validation perplexity, the first of equals; None if none was run.

    `of`: "" for our perplexities, "paper_" for the paper's.
    """
    column = f"{of}valid_ppl"
    members = [row for row in rows if row[column] not in ("", NOT_RUN)]
    return min(members, key=lambda row: float(row[column]), default=None)


def _group(row: Row) -> str | None:
    if row["family"] == "network":
        return NETWORK_MIXTURE if row["mix"] == "yes" else None
    return N_GRAM


def _row(experiment: dict, name: str, ours: Mapping[tuple[str, str], float], comparisons: Comparisons) -> Row:
    """The row of a model or mixture, as the configuration describes it, with our perplexities."""

    def of_seeds(row: str, split: str) -> list[float]:
        return [ours[stream, split] for stream in streams_of(experiment, row) if (stream, split) in ours]

    baseline = experiment["table"]["baseline"]
    corpora = experiment["table"].get("corpora") or {"ours": "", "paper": ""}
    row = dict.fromkeys(COLUMNS, "") | _configured(experiment, name) | {"scores": name}
    row |= {"corpus": corpora["ours"], "paper_corpus": corpora["paper"]}
    scored = {split for _, split in ours} or SPLITS
    for split in SPLITS:
        values = of_seeds(name, split)
        row[f"{split}_ppl"] = f"{statistics.mean(values):.4f}" if values else NOT_RUN if split in scored else ""
        row[f"{split}_ppl_sd"] = f"{statistics.stdev(values):.4f}" if len(values) > 1 else ""
    test, baseline_test = of_seeds(name, "test"), of_seeds(baseline, "test")
    row["seeds"] = str(len(test) or "")
    ran = test and baseline_test
    row["ratio_to_baseline"] = f"{statistics.mean(test) / statistics.mean(baseline_test):.4f}" if ran else NOT_RUN
    if (name, baseline) in comparisons:
        interval = comparisons[name, baseline]
        row |= {"ratio_low": f"{interval.low:.4f}", "ratio_high": f"{interval.high:.4f}"}
    return row


def _paper_cells(experiment: dict, paper: Mapping[str, str], baseline: Mapping[str, str] | None) -> Row:
    """What the paper's table says of a row; its description of the model stands in place of ours."""
    cells = {column: paper[column] for column in ("row", "model", *PAPER_SHAPE, "mix")}
    cells |= {f"paper_{split}_ppl": paper[f"{split}_ppl"] for split in SPLITS}
    cells["family"] = "network" if paper["model"] == "mlp" else "n-gram"
    configured = _configured(experiment, paper["scores"])
    described = {column: paper[column] for column in PAPER_SHAPE} | {"weights": "fixed"}
    cells["differs"] = ", ".join(
        f"here {column} = {configured[column]}"
        for column, cell in described.items()
        if configured.get(column) not in (None, "", cell)
    )
    epochs = _epochs(experiment, paper["scores"])
    if paper.get("epochs") and epochs and epochs != paper["epochs"]:
        cells["differs"] = ", ".join(filter(None, [cells["differs"], f"here epochs = {epochs} at most"]))
    if baseline is not None and paper["test_ppl"] and baseline["test_ppl"]:
        cells["paper_ratio_to_baseline"] = f"{float(paper['test_ppl']) / float(baseline['test_ppl']):.4f}"
    return cells


def _epochs(experiment: dict, name: str) -> str:
    """Epochs at most of a network, or of the network in a mixture; empty for anything else."""
    networks = [
        model
        for model in (models_in(experiment, name) if name in all_names(experiment) else [])
        if kind_of(model).epochs
    ]
    return str(complete_row(networks[0], experiment.get("training", {}), name)["epochs"]) if networks else ""


def _configured(experiment: dict, name: str) -> Row:
    """What the configuration says of a model or mixture, in the table's columns; nothing if it does not have it."""
    if name not in all_names(experiment):
        return {}
    first = models_in(experiment, name)[0]  # a mixture has the shape of its first component
    kind = kind_of(first)
    row = {"row": name, "model": kind.label or kind.name}
    for key in kind.keys:
        value = first.get(key.name, None if key.default is REQUIRED else key.default)
        if key.column and value is not None:
            row[key.column] = _text(value)
    row["family"] = "network" if is_network(experiment, name) else "n-gram"
    if name in experiment["mixtures"]:
        mixture = experiment["mixtures"][name]
        return row | {"variant": " + ".join(mixture["components"]), "mix": "yes", "weights": mixture["weights"]}
    hidden = {"kind", *kind.columns.values()}
    hidden |= set(first) if kind.code is None else set()  # where nothing is fitted, all but its shape
    options = {key: value for key, value in first.items() if key not in hidden}
    smoothing = options.pop("smoothing", None)
    variant = ", ".join([*filter(None, [smoothing]), *(f"{key} = {_text(value)}" for key, value in options.items())])
    return row | {"variant": variant, "mix": "no" if row["family"] == "network" else ""}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return str(value)


def row_label(row: Row, rows: Sequence[Row]) -> str:
    """A name of the row that is its own among `rows`: the paper's, with n and c where the paper's is not enough."""
    if sum(other["row"] == row["row"] for other in rows) == 1:
        return row["row"]
    classes = f", c={row['c']}" if row["c"] else ""
    return f"{row['row']}, n={row['n']}{classes}"


def baseline_row(experiment: dict, rows: Iterable[Row]) -> Row | None:
    """The row of the model that ratios are relative to; None if it is not among them."""
    return next((row for row in rows if row["scores"] == experiment["table"]["baseline"]), None)


def corpora(rows: Sequence[Row]) -> tuple[str, str] | None:
    """Names of our corpus and of the paper's where ours only stands in for it; None where they are the same."""
    return next(((row["corpus"], row["paper_corpus"]) for row in rows if row["corpus"]), None)


def whose(rows: Sequence[Row]) -> dict[str, str]:
    """What our numbers ("") and the paper's ("paper_") are called: with the name of the corpus where these differ."""
    names = corpora(rows)
    return {"": f"ours ({names[0]})", "paper_": f"paper ({names[1]})"} if names else {"": "ours", "paper_": "paper"}


def has_paper(rows: Iterable[Row]) -> bool:
    """Whether any of the rows is the paper's."""
    return any(row["paper_valid_ppl"] or row["paper_test_ppl"] for row in rows)
