"""The tables of `nplm.report.table` as CSV, as Markdown for a reader and as LaTeX for a paper."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from nplm.files import write_csv, write_text
from nplm.report import latex
from nplm.report.markdown import bullets, escape, markdown_table
from nplm.report.table import (
    COLUMNS,
    GROUPS,
    NOT_RUN,
    SHAPE,
    Row,
    baseline_row,
    best_on_validation,
    corpora,
    has_paper,
    row_label,
    whose,
)

PERPLEXITIES = {"train_ppl": "train", "valid_ppl": "valid", "test_ppl": "test", "ratio_to_baseline": "ratio"}
OURS = PERPLEXITIES | {"ratio_low": "95 % of ratio"}
PAPER = {f"paper_{column}": title for column, title in PERPLEXITIES.items()}
MODEL = {column: column for column in ("row", *SHAPE, "mix")}
EXTRA_MODEL = {column: column for column in ("row", "variant", "weights", *SHAPE, "mix")}
COMPARISON_NOTES = (
    "Corpus, vocabulary and splits are not exactly the paper's (see the corpus table), so compare the ratios rather "
    "than the perplexities: ours is relative to our baseline, the paper's to its own.",
)


def write_table(directory: str | Path, experiment: dict, table: list[Row]) -> None:
    """Write the paper's rows with ours beside: NAME.csv, NAME.md and NAME.tex, with NAME from the configuration."""
    path = Path(directory) / experiment["table"]["name"]
    write_csv(f"{path}.csv", table, COLUMNS)
    write_text(f"{path}.md", f"# {escape(table_title(table))}\n\n{table_markdown(experiment, table)}")
    write_text(f"{path}.tex", table_latex(experiment, table))


def write_extra(directory: str | Path, experiment: dict, table: list[Row], extra: list[Row]) -> None:
    """Write what the paper's table lacks: extra.csv and extra.md."""
    write_csv(Path(directory) / "extra.csv", extra, COLUMNS)
    text = "# What the paper's table lacks\n\n" + extra_markdown(experiment, table, extra)
    write_text(Path(directory) / "extra.md", text)


def table_title(table: list[Row]) -> str:
    """What the first table holds."""
    if not has_paper(table):
        return "Perplexity"
    if names := corpora(table):
        return f"Perplexity on {names[0]} beside the paper's on {names[1]}"
    return "Perplexity, ours beside the paper's"


def stand_in_note(rows: Sequence[Row]) -> str:
    """That our corpus only stands in for the paper's, if it does."""
    if not corpora(rows):
        return ""
    names = list(map(escape, corpora(rows)))
    return (
        f"**The paper's numbers are of {names[1]}; ours are of {names[0]}, another corpus that stands in for it.** No "
        "perplexity here repeats one of the paper's. Relations between rows (ratios) show what carries over.\n"
    )


def table_markdown(experiment: dict, table: list[Row]) -> str:
    """The paper's rows with ours beside, and how to read them."""
    columns = _filled(MODEL | {"differs": "differs"} | OURS | PAPER, table)
    names = whose(table)
    header = [f"{escape(names['paper_'])}: {title}" if column in PAPER else title for column, title in columns.items()]
    notes = [
        "Perplexity is exp(−mean ln P) over all tokens of the split.",
        *_reading_notes(experiment, table),
        *(COMPARISON_NOTES if has_paper(table) and not corpora(table) else ()),
        *(
            f"Bold, {escape(names[of])}: {escape(row_label(row, table))}, the best {group} on validation."
            for of in names
            for group in GROUPS
            if (row := best_on_validation(table, group, of))
        ),
        *_not_run(table),
    ]
    head = f"{stand_in_note(table)}\n" if has_paper(table) and corpora(table) else ""
    return head + markdown_table(header, _lines(table, columns), left=1) + "\n" + bullets(notes)


def extra_markdown(experiment: dict, table: list[Row], extra: list[Row]) -> str:
    """The rows of models and mixtures that the paper's table lacks, and how to read them."""
    if not extra:
        return "Nothing: every configured model and mixture is in the first table.\n"
    columns = _filled(EXTRA_MODEL | OURS, extra)
    notes = [
        *_reading_notes(experiment, [*table, *extra]),
        "A mixture shows the n, c, h, m of its first component.",
        *(
            f"Bold: {row['row']}, the best {row['best_on_validation']} on validation of both tables' rows."
            for row in _best(extra)
        ),
        *_not_run(extra),
    ]
    left = sum(column in columns for column in ("row", "variant", "weights"))
    return markdown_table(list(columns.values()), _lines(extra, columns), left) + "\n" + bullets(notes)


def table_latex(experiment: dict, table: list[Row]) -> str:
    """The paper's rows with ours beside, as a LaTeX table."""
    columns = _filled(MODEL | OURS | PAPER, table)
    names = whose(table)
    groups = [
        (title, sum(column in group for column in columns))
        for title, group in (("", MODEL), (names[""], OURS), (names["paper_"], PAPER))
    ]
    caption = (
        f"{table_title(table)}. {_ratio_note(experiment, table)}. "
        "Bold: the best network mixture and the best n-gram on validation."
    )
    return latex.latex_table(
        [(latex.escape(title), width) for title, width in groups if width],
        list(map(latex.escape, columns.values())),
        _lines(table, columns, latex.escape, r"\textbf{{{}}}"),
        latex.escape(caption),
        label=f"tab:{experiment['table']['name']}",
    )


def _reading_notes(experiment: dict, rows: Sequence[Row]) -> list[str]:
    """How to read the columns that the rows fill."""
    notes = [f"{escape(_ratio_note(experiment, rows))}."]
    if any(row["ratio_low"] for row in rows):
        notes.append("95 % of ratio: its interval by a paired block bootstrap on the test split.")
    if any(row["test_ppl_sd"] for row in rows):
        notes.append(
            "±: mean and standard deviation over several trainings, each with a seed of its own; the intervals of "
            "ratios hold what other seeds would change."
        )
    return notes


def _ratio_note(experiment: dict, rows: Sequence[Row]) -> str:
    baseline = baseline_row(experiment, rows)
    name = baseline["row"] if baseline else experiment["table"]["baseline"]
    return f"Ratio is test perplexity divided by that of the baseline ({name})"


def shown(row: Row, column: str) -> str:
    """A cell for the reader: ratios to three decimals, our perplexities to one, the rest as it is.

    A mean over seeds comes with its standard deviation, and `ratio_low` stands for the whole interval.
    """
    cell = row[column]
    if cell in ("", NOT_RUN) or column not in OURS | PAPER or (column.startswith("paper_") and column.endswith("_ppl")):
        return cell
    if column == "ratio_low":
        return f"{float(cell):.3f}–{float(row['ratio_high']):.3f}"
    if deviation := row.get(f"{column}_sd"):
        return f"{float(cell):.1f} ± {float(deviation):.1f}"
    return f"{float(cell):.{3 if 'ratio' in column else 1}f}"


def _lines(
    rows: Sequence[Row], columns: Iterable[str], escaped: Callable[[str], str] = escape, bold: str = "**{}**"
) -> list[list[str]]:
    """The cells for the reader, with the best of each group marked: ours by our validation, the paper's by its."""
    paper_best = _paper_best(rows)
    lines = []
    for row in rows:
        marked = {"row", *OURS} if row["best_on_validation"] else set()
        marked |= set(PAPER) if any(row is best for best in paper_best) else set()
        cells = {column: escaped(shown(row, column)) for column in columns}
        lines.append([bold.format(cell) if column in marked and cell else cell for column, cell in cells.items()])
    return lines


def _filled(columns: dict[str, str], rows: Sequence[Row]) -> dict[str, str]:
    """The columns that are not empty in every row."""
    return {column: title for column, title in columns.items() if any(row[column] for row in rows)}


def _best(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["best_on_validation"]]


def _paper_best(rows: Sequence[Row]) -> list[Row]:
    return [best for group in GROUPS if (best := best_on_validation(rows, group, "paper_"))]


def _not_run(rows: Sequence[Row]) -> list[str]:
    """A note on the rows that were not run, if any."""
    missing = [row["row"] for row in rows if row["test_ppl"] == NOT_RUN]
    if not missing:
        return []
    names = ", ".join(map(escape, dict.fromkeys(missing)))
    return [f"{len(missing)} of {len(rows)} rows were not run, as the configuration lacks or excludes them: {names}."]
