"""Subcommands that make the report: tables, figures, provenance and the page that gathers them."""

from pathlib import Path
from typing import Annotated

from typer import Option

from nplm.cli import app

Configuration = Annotated[Path, Option(help="The experiment's resolved configuration (JSON).")]
OutputDirectory = Annotated[Path, Option(help="Folder of the experiment's report.")]
Figure = Annotated[Path, Option(help="Figure to write (SVG).")]
Tables = Annotated[list[Path], Option(help="Table made by tabulate (CSV); repeat for the extra table.")]


@app.command("tabulate")
def tabulate(
    configuration: Configuration,
    paper: Annotated[Path, Option(help="The paper's table (CSV); column scores names our model of each row.")],
    perplexity: Annotated[Path, Option(help="Perplexities made by evaluate-perplexity (CSV).")],
    output_directory: OutputDirectory,
) -> None:
    """Set our perplexities beside the paper's: TABLE.{csv,md,tex}, and extra.{csv,md} for what the paper lacks."""
    from nplm.perplexity import read_perplexities
    from nplm.report import table
    from nplm.report.configuration import read_configuration

    config = read_configuration(configuration)
    paper_rows, extra_rows = table.tabulate(config, table.read_paper(paper), read_perplexities(perplexity), perplexity)
    table.write_tables(output_directory, config, paper_rows, extra_rows)
    name = config.table["name"]
    run = sum(row["test_ppl"] != table.NOT_RUN for row in paper_rows)
    print(
        f"{output_directory}: {name}.csv, .md, .tex ({run} of {len(paper_rows)} rows run), extra.csv, .md "
        f"({len(extra_rows)} rows)"
    )


@app.command("tabulate-corpus")
def tabulate_corpus(
    card: Annotated[Path, Option(help="Corpus card made by encode-corpus (JSON).")],
    output_directory: OutputDirectory,
    paper: Annotated[Path | None, Option(help="The paper's counts (CSV: quantity, paper).")] = None,
) -> None:
    """Set our corpus's counts beside the paper's: corpus.{csv,md}."""


@app.command("tabulate-mixture-weights")
def tabulate_mixture_weights(
    mixture: Annotated[list[Path], Option(help="Mixture made by fit-mixture (JSON); repeat for each.")],
    output_directory: OutputDirectory,
) -> None:
    """List every mixture's weights by context-frequency bin: mixture_weights.{csv,md}."""


@app.command("plot-learning-curves")
def plot_learning_curves(
    history: Annotated[list[Path], Option(help="A network's history.csv, in a folder of its name; repeat for each.")],
    output: Figure,
) -> None:
    """Draw train and validation perplexity by epoch of every network."""


@app.command("plot-perplexity")
def plot_perplexity(table: Tables, output: Figure) -> None:
    """Draw the test perplexity of every row, ours and the paper's on one axis."""


@app.command("plot-mixture-weights")
def plot_mixture_weights(
    weights: Annotated[Path, Option(help="Weights made by tabulate-mixture-weights (CSV).")],
    output: Figure,
) -> None:
    """Draw the weights of the binned mixtures by context-frequency bin."""


@app.command("plot-classes")
def plot_classes(table: Tables, output: Figure) -> None:
    """Draw test perplexity of the class-based models against the number of classes, ours and the paper's."""


@app.command("record-provenance")
def record_provenance(
    configuration: Configuration,
    vocabulary: Annotated[Path, Option(help="The experiment's vocabulary.tsv.")],
    output_directory: OutputDirectory,
    retrieved: Annotated[Path | None, Option(help="retrieved.json of a corpus that was retrieved.")] = None,
    benchmarks: Annotated[Path | None, Option(help="Folder of Snakemake's benchmark files, STAGE[/JOB].tsv.")] = None,
    history: Annotated[list[Path] | None, Option(help="A network's history.csv, in a folder of its name.")] = None,
    repository: Annotated[Path, Option(help="Git checkout whose commit is recorded.")] = Path("."),
) -> None:
    """Record what made the report: versions, commit, configuration, machine, seconds: provenance.{json,md}."""


@app.command("write-report-page")
def write_report_page(
    configuration: Configuration,
    table: Annotated[Path, Option(help="The paper's table beside ours, made by tabulate (CSV).")],
    extra: Annotated[Path, Option(help="The extra table made by tabulate (CSV).")],
    corpus: Annotated[Path, Option(help="Corpus table made by tabulate-corpus (CSV).")],
    provenance: Annotated[Path, Option(help="Provenance made by record-provenance (JSON).")],
    output: Annotated[Path, Option(help="Page to write (Markdown).")],
    mixture_weights: Annotated[Path | None, Option(help="Table made by tabulate-mixture-weights (CSV).")] = None,
    figure: Annotated[list[Path] | None, Option(help="Figure to show; repeat for each, in order.")] = None,
) -> None:
    """Gather summary, tables, figures, corpus card and provenance on one page."""
