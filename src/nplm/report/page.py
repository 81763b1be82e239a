"""The page that gathers a report: what was found first, then the tables, figures and records that it rests on."""

import os
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from nplm.files import read_text
from nplm.report.markdown import escape, markdown_table
from nplm.report.table import GROUPS, NOT_RUN, Row, baseline_row, best_on_validation, has_paper, row_label, whose
from nplm.report.table_formats import shown
from nplm.significance import Comparisons

REPRODUCTION = """\
Everything here is made by `snakemake --cores all`, with the `--configfile` of this experiment if it has one; the commit
and the configuration's hash are under Provenance. A single file is made by the command beside it; what it is computed
from, and every command with its arguments, is in the logs under `results/EXPERIMENT/logs`. Every command runs by hand
too: `nplm --help` lists them.
"""


def page(title: str, sections: dict[str, str]) -> str:
    """Markdown of a page with one section per (heading, text); empty sections are left out."""
    parts = [f"# {escape(title)}\n", *(f"## {escape(heading)}\n\n{text}" for heading, text in sections.items() if text)]
    return "\n".join(parts)


def figures_markdown(figures: Sequence[str | Path], captions: Sequence[str | Path], page_path: str | Path) -> str:
    """The figures, shown by links relative to the page, each with its caption (if any) and how to make it anew."""
    parts = []
    for figure, caption in zip_longest(figures, captions):
        name = Path(figure).stem
        link = _link(figure, page_path)
        parts.append(f"### {_heading(name)}\n\n![{name.replace('_', ' ')}]({link})\n")
        if caption is not None:
            parts.append(f"{_caption(caption)}\n")
        parts.append(made_by([figure], page_path))
    return "\n".join(parts)


def _heading(name: str) -> str:
    """A figure's name for the reader: learning_curves is "Learning curves"."""
    return name[:1].upper() + name[1:].replace("_", " ").replace(".", " of ")


def made_by(paths: Sequence[str | Path], page_path: str | Path) -> str:
    """Links to files of the report, and the command that makes them anew."""
    links = ", ".join(f"[{Path(path).name}]({_link(path, page_path)})" for path in paths)
    return f"{links}, made by `snakemake -c1 {' '.join(map(str, paths))}`.\n"


def _link(path: str | Path, page_path: str | Path) -> str:
    return Path(os.path.relpath(path, Path(page_path).parent)).as_posix()


def _caption(path: str | Path) -> str:
    """A caption of the Snakemake report, in reStructuredText, as Markdown: they use nothing of it but ``code``."""
    return " ".join(read_text(path).replace("``", "`").split())


def settings_markdown(experiment: dict) -> str:
    """The settings that every model of the experiment shares."""
    rows = [
        [f"{part}: {key}", str(value)]
        for part in ("splits", "mapping", "vocabulary", "training", "clustering")
        for key, value in (experiment.get(part) or {}).items()
    ]
    return markdown_table(["setting", "value"], rows) if rows else ""


def summary_markdown(
    experiment: dict, table: Sequence[Row], extra: Sequence[Row], comparisons: Comparisons | None = None
) -> str:
    """The paper's comparison: the best network mixture, the best n-gram and the baseline on test.

    Our ratios come with their intervals where `comparisons` has them. The best are chosen on validation, the paper's by
    the paper's numbers and ours by ours, among the rows of the paper's table and among all.
    """
    baseline = baseline_row(experiment, [*table, *extra])
    columns = {
        escape(whose(table)["paper_"]): _comparison(baseline, table, "paper_"),
        "ours, the paper's rows": _comparison(baseline, table, "", comparisons),
        "ours, all rows": _comparison(baseline, [*table, *extra], "", comparisons),
    }
    if not has_paper(table):
        columns = {"ours": columns["ours, all rows"]}
    labels = list(next(iter(columns.values())))
    n_gram_above, baseline_above = (
        ", ".join(f"{cells[label]} ({whose})" for whose, cells in columns.items()) for label in labels[-2:]
    )
    lines = [[label, *(cells[label] for cells in columns.values())] for label in labels]
    return (
        f"On test, the perplexity of the best n-gram is above that of the best network mixture by {n_gram_above}; that "
        f"of the baseline by {baseline_above}. The best are chosen on validation; in brackets, 95 % intervals by a "
        "paired block bootstrap.\n\n" + markdown_table(["", *columns], lines)
    )


def training_note(training: Sequence[dict]) -> str:
    """Which networks' validation perplexity was lowest at the very end, from the record of the trainings.

    training: nplm.report.provenance.training_record.
    """
    ended = [record for record in training if record["chosen_epoch"] == record["epochs"]]
    if not ended:
        return ""
    names = ", ".join(
        f"{record['network']} ({record['epochs']} epoch{'s' if record['epochs'] > 1 else ''})" for record in ended
    )
    return f"Still improving on validation when the training ended, so likely to gain from more epochs: {names}.\n"


def _comparison(
    baseline: Row | None, rows: Sequence[Row], of: str = "", intervals: Comparisons | None = None
) -> dict[str, str]:
    """Label -> cell of one column of the summary; `of` is "paper_" for the paper's perplexities."""
    mixture, n_gram = (best_on_validation(rows, group, of) for group in GROUPS)
    cells = {}
    for group, row in zip(GROUPS, (mixture, n_gram), strict=True):
        cells[f"best {group}"] = escape(row_label(row, rows)) if row else NOT_RUN
        cells[f"best {group}, valid"] = _perplexity(row, f"{of}valid_ppl")
        cells[f"best {group}, test"] = _perplexity(row, f"{of}test_ppl")
    cells["baseline"] = escape(baseline["row"]) if baseline else NOT_RUN
    cells["baseline, test"] = _perplexity(baseline, f"{of}test_ppl")
    cells["best n-gram above best network mixture, test"] = _above(n_gram, mixture, f"{of}test_ppl", intervals)
    cells["baseline above best network mixture, test"] = _above(baseline, mixture, f"{of}test_ppl", intervals)
    return cells


def _perplexity(row: Row | None, column: str) -> str:
    return shown(row, column) if row else NOT_RUN


def _above(row: Row | None, mixture: Row | None, column: str, intervals: Comparisons | None) -> str:
    """By how many percent a row's perplexity is above the network mixture's, with the interval if there is one."""
    if not row or not mixture or {row[column], mixture[column]} & {"", NOT_RUN}:
        return NOT_RUN
    above = f"{100 * (float(row[column]) / float(mixture[column]) - 1):.1f} %"
    interval = (intervals or {}).get((row["scores"], mixture["scores"]))
    return f"{above} ({100 * (interval.low - 1):.1f} to {100 * (interval.high - 1):.1f})" if interval else above
