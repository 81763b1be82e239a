"""Subcommands that make the report: tables, figures, provenance and the page that gathers them."""

from pathlib import Path
from typing import Annotated

from typer import Option

from nplm.cli import app

Configuration = Annotated[Path, Option(help="The experiment's resolved configuration (JSON).")]
OutputDirectory = Annotated[Path, Option(help="Folder of the experiment's report.")]
Figure = Annotated[Path, Option(help="Figure to write (SVG).")]
Tables = Annotated[list[Path], Option(help="Table made by tabulate (CSV); repeat for the extra table.")]
PaperTable = Annotated[Path | None, Option(help="The paper's table (CSV); column scores names our model.")]
ComparisonsFile = Annotated[Path | None, Option(help="Comparisons made by compare-models (CSV).")]
Perplexities = Annotated[Path, Option(help="Perplexities made by evaluate-perplexity (CSV).")]


@app.command("compare-models")
def compare_models(
    configuration: Configuration,
    scores: Annotated[list[Path], Option(help="Score stream of one split; repeat for each model and mixture.")],
    output: Annotated[Path, Option(help="CSV to write: the ratio of perplexities of every pair, with its interval.")],
    seed: Annotated[int, Option(help="Seed of the draws.")],
    block_length: Annotated[int, Option(min=1, help="Tokens that are drawn together.")] = 2000,
    resamples: Annotated[int, Option(min=1, help="Draws.")] = 10000,
) -> None:
    """Compare every two models on the same tokens, by a paired block bootstrap."""
    from nplm.report.configuration import read_experiment
    from nplm.scores import read_aligned_scores
    from nplm.significance import compare, of_seeds, write_comparisons

    streams = read_aligned_scores(scores)
    rows = of_seeds(streams, read_experiment(configuration).get("replicas", {}))
    comparisons = compare(rows, block_length, resamples, seed)
    split, tokens = streams[0].split, len(streams[0].ln_prob)
    record = {"split": split, "tokens": tokens, "block_length": block_length, "resamples": resamples}
    write_comparisons(output, comparisons, **record)
    print(f"{output}: {len(comparisons)} pairs on {split}, {resamples} draws of blocks of {block_length} tokens")


@app.command("tabulate")
def tabulate(
    configuration: Configuration,
    perplexity: Perplexities,
    output_directory: OutputDirectory,
    paper: PaperTable = None,
    comparisons: ComparisonsFile = None,
) -> None:
    """Set our perplexities beside the paper's, row by row: TABLE.{csv,md,tex}."""
    from nplm.report.table import NOT_RUN
    from nplm.report.table_formats import write_table

    experiment, table, _ = _tables(configuration, perplexity, paper, comparisons)
    write_table(output_directory, experiment, table)
    run = sum(row["test_ppl"] != NOT_RUN for row in table)
    print(f"{output_directory}: {experiment['table']['name']} ({run} of {len(table)} rows run)")


@app.command("tabulate-extra")
def tabulate_extra(
    configuration: Configuration,
    perplexity: Perplexities,
    output_directory: OutputDirectory,
    paper: PaperTable = None,
    comparisons: ComparisonsFile = None,
) -> None:
    """Tabulate the models and mixtures that the paper's table lacks: extra.{csv,md}."""
    from nplm.report.table_formats import write_extra

    experiment, table, extra = _tables(configuration, perplexity, paper, comparisons)
    write_extra(output_directory, experiment, table, extra)
    print(f"{output_directory}: extra ({len(extra)} rows)")


@app.command("check-claims")
def check_claims(
    configuration: Configuration,
    claims: Annotated[Path, Option(help="The paper's claims as data (YAML).")],
    table: Annotated[Path, Option(help="The paper's table beside ours, made by tabulate (CSV).")],
    extra: Annotated[Path, Option(help="The extra table made by tabulate-extra (CSV).")],
    comparisons: Annotated[Path, Option(help="Comparisons made by compare-models (CSV).")],
    output_directory: OutputDirectory,
    history: Annotated[list[Path] | None, Option(help="A network's history.csv, in a folder of its name.")] = None,
) -> None:
    """Check what the paper claims, claim by claim: claims.{csv,md}."""
    from nplm.report.claims import Results, check_claims, read_claims, write_ledger
    from nplm.report.configuration import read_experiment
    from nplm.report.history import read_histories
    from nplm.report.table import read_table
    from nplm.significance import read_comparisons

    results = Results(
        experiment=read_experiment(configuration),
        table=read_table(table),
        extra=read_table(extra),
        comparisons=read_comparisons(comparisons),
        histories=read_histories(history or []),
    )
    ledger = check_claims(read_claims(claims), results)
    write_ledger(output_directory, ledger)
    verdicts = {row["claim"]: row["claim_verdict"] for row in ledger}
    print(f"{output_directory}: claims ({', '.join(f'{claim} {verdict}' for claim, verdict in verdicts.items())})")


@app.command("tabulate-corpus")
def tabulate_corpus(
    card: Annotated[Path, Option(help="Corpus card made by encode-corpus (JSON).")],
    output_directory: OutputDirectory,
    paper: Annotated[Path | None, Option(help="The paper's counts (CSV: quantity, paper).")] = None,
    name: Annotated[str | None, Option(help="Name of the corpus, where the paper's is another.")] = None,
    paper_name: Annotated[str | None, Option(help="Name of the paper's corpus.")] = None,
) -> None:
    """Set our corpus's counts beside the paper's: corpus.{csv,md}."""
    from nplm.files import read_json
    from nplm.report.corpus_card import read_paper_counts, tabulate_corpus, write_corpus_table

    named, paper_named = ({"name_of_corpus": text} if text else {} for text in (name, paper_name))
    counts = read_paper_counts(paper) if paper else {}
    rows = tabulate_corpus(named | read_json(card), paper_named | counts)
    write_corpus_table(output_directory, rows)
    print(
        f"{output_directory}: corpus ({len(rows)} quantities, {sum(bool(row['paper']) for row in rows)} of the paper's)"
    )


@app.command("tabulate-mixture-weights")
def tabulate_mixture_weights(
    output_directory: OutputDirectory,
    mixture: Annotated[list[Path] | None, Option(help="Mixture made by fit-mixture (JSON); repeat for each.")] = None,
    trigram: Annotated[
        list[Path] | None,
        Option(help="Model of kind deleted_interpolation, in a folder of its name; repeat for each."),
    ] = None,
    bins: Annotated[Path | None, Option(help="Context bins of valid, for the trigrams.")] = None,
) -> None:
    """List every mixture's and interpolated trigram's weights by context-frequency bin: mixture_weights.{csv,md}."""
    from nplm.errors import InputError
    from nplm.mixture import read_context_bins, read_mixture
    from nplm.ngram.deleted_interpolation import read_model
    from nplm.report.mixture_table import tabulate_mixture_weights, trigram_mixture, write_mixture_weights

    if not (mixture or trigram):
        raise InputError("no mixture to list; give some (--mixture), or an interpolated trigram (--trigram)")
    mixtures = []
    if trigram:
        if not bins:
            raise InputError("--trigram needs the context bins of valid; give them (--bins)")
        context_bins = read_context_bins(bins)
        mixtures += [trigram_mixture(path.parent.name, read_model(path), context_bins) for path in trigram]
    mixtures += map(read_mixture, mixture or [])
    rows = tabulate_mixture_weights(mixtures)
    write_mixture_weights(output_directory, rows)
    print(f"{output_directory}: mixture_weights ({len(mixtures)} mixtures, {len(rows)} weights)")


@app.command("tabulate-unseen-words")
def tabulate_unseen_words(
    model: Annotated[list[Path], Option(help="Model of kind unseen_words, in a folder of its name; repeat for each.")],
    scores: Annotated[list[Path], Option(help="Score stream of each model on one split, in the same order.")],
    split: Annotated[Path, Option(help="That split.")],
    output_directory: OutputDirectory,
) -> None:
    """Tabulate the perplexity of the tokens that are words a network was trained without: unseen_words.{csv,md}."""
    from nplm.arrays import require_same_vocabulary
    from nplm.report.unseen_words import read_held_out, tabulate_unseen_words, write_unseen_words
    from nplm.scores import read_aligned_scores
    from nplm.streams import read_split

    streams, scored = read_aligned_scores(scores), read_split(split)
    require_same_vocabulary((split, scored.vocabulary), (scores[0], streams[0].vocabulary))
    held_out = {path.parent.name: read_held_out(path) for path in model}
    rows = tabulate_unseen_words(held_out, {stream.model: stream.ln_prob for stream in streams}, scored.tokens)
    write_unseen_words(output_directory, rows)
    print(f"{output_directory}: unseen_words ({len(rows)} models, {rows[0]['tokens']} tokens of {scored.name})")


@app.command("tabulate-trainings")
def tabulate_trainings(
    history: Annotated[list[Path], Option(help="A network's history.csv, in a folder of its name; repeat for each.")],
    output_directory: OutputDirectory,
) -> None:
    """List what each network's training took and reached: trainings.{csv,md}."""
    from nplm.files import read_csv
    from nplm.report.history import COLUMNS, read_histories
    from nplm.report.trainings import tabulate_trainings, write_trainings

    read_histories(history)  # refuses what is no history
    rows = tabulate_trainings({path.parent.name: read_csv(path, COLUMNS) for path in history})
    write_trainings(output_directory, rows)
    print(f"{output_directory}: trainings ({len(rows)} networks)")


@app.command("plot-learning-curves")
def plot_learning_curves(
    history: Annotated[list[Path], Option(help="A network's history.csv, in a folder of its name; repeat for each.")],
    output: Figure,
    configuration: Annotated[Path | None, Option(help="Resolved configuration (JSON): which are seeds of one.")] = None,
) -> None:
    """Draw train and validation perplexity by epoch of every network."""
    from nplm.report.configuration import read_experiment
    from nplm.report.figures import plot_learning_curves
    from nplm.report.history import read_histories

    histories = read_histories(history)
    replicas = read_experiment(configuration).get("replicas") if configuration else None
    plot_learning_curves(output, histories, replicas)
    print(f"{output}: {', '.join(histories)}")


@app.command("plot-perplexity")
def plot_perplexity(table: Tables, output: Figure) -> None:
    """Draw the test perplexity of every row, ours and the paper's on one axis."""
    from nplm.report.figures import plot_perplexity
    from nplm.report.table import read_table

    tables = [read_table(path) for path in table]
    plot_perplexity(output, tables)
    print(f"{output}: {sum(map(len, tables))} rows")


@app.command("plot-mixture-weights")
def plot_mixture_weights(
    weights: Annotated[Path, Option(help="Weights made by tabulate-mixture-weights (CSV).")],
    output: Figure,
) -> None:
    """Draw the weights of the binned mixtures by context-frequency bin."""
    from nplm.report.figures import plot_mixture_weights
    from nplm.report.mixture_table import read_mixture_weights

    plot_mixture_weights(output, read_mixture_weights(weights))
    print(f"{output}: from {weights}")


@app.command("plot-classes")
def plot_classes(table: Tables, output: Figure) -> None:
    """Draw test perplexity of the class-based models against the number of classes, ours and the paper's."""
    from nplm.report.figures import plot_classes
    from nplm.report.table import read_table

    rows = [row for path in table for row in read_table(path)]
    plot_classes(output, rows)
    print(f"{output}: {sum(bool(row['c']) for row in rows)} class-based rows")


@app.command("tabulate-gains")
def tabulate_gains(
    configuration: Configuration,
    scores: Annotated[list[Path], Option(help="Score stream of one split; repeat for each model and mixture.")],
    train: Annotated[Path, Option(help="The train split, in which words are counted.")],
    split: Annotated[Path, Option(help="The split that the streams score.")],
    bins: Annotated[Path, Option(help="Context bins of that split, made by bin-contexts.")],
    output: Annotated[Path, Option(help="Table to write (CSV).")],
) -> None:
    """Tabulate every model's gain over the baseline, by frequency of the context and of the word in train."""
    import numpy as np

    from nplm.arrays import require_same_vocabulary
    from nplm.mixture import read_context_bins
    from nplm.report.configuration import read_experiment
    from nplm.report.gains import tabulate_gains, write_gains
    from nplm.scores import read_aligned_scores
    from nplm.significance import of_seeds
    from nplm.streams import read_split

    experiment = read_experiment(configuration)
    streams = read_aligned_scores(scores)
    counted, scored, contexts = read_split(train), read_split(split), read_context_bins(bins)
    require_same_vocabulary(
        (train, counted.vocabulary),
        (split, scored.vocabulary),
        (bins, contexts.vocabulary),
        (scores[0], streams[0].vocabulary),
    )
    word_counts = np.bincount(counted.tokens, minlength=counted.vocabulary_size)
    ln_prob = of_seeds(streams, experiment.get("replicas", {}))
    rows = tabulate_gains(
        {row: seeds.mean(axis=0) for row, seeds in ln_prob.items()},
        experiment["table"]["baseline"],
        {"context": contexts.frequency, "word": word_counts[scored.tokens]},
    )
    write_gains(output, rows)
    print(f"{output}: {len(rows)} groups of tokens of {len(streams)} score streams")


@app.command("plot-gains")
def plot_gains(
    configuration: Configuration,
    gains: Annotated[Path, Option(help="Table made by tabulate-gains (CSV).")],
    table: Tables,
    output: Figure,
) -> None:
    """Draw the gain over the baseline of the best network, the best network mixture and the best n-gram."""
    from nplm.report.configuration import read_experiment
    from nplm.report.figures import plot_gains
    from nplm.report.gains import models_to_show, read_gains
    from nplm.report.table import read_table

    baseline = read_experiment(configuration)["table"]["baseline"]
    models = models_to_show([row for path in table for row in read_table(path)], baseline)
    plot_gains(output, read_gains(gains), models, baseline)
    print(f"{output}: {', '.join(models)}")


@app.command("plot-training-time")
def plot_training_time(
    history: Annotated[list[Path], Option(help="A network's history.csv, in a folder of its name; repeat for each.")],
    output: Figure,
) -> None:
    """Draw the minutes that an epoch of each network takes, by phase."""
    from nplm.report.figures import plot_training_time
    from nplm.report.history import read_histories

    histories = read_histories(history)
    plot_training_time(output, histories)
    print(f"{output}: {', '.join(histories)}")


Networks = Annotated[list[Path], Option(help="A network's model file, in a folder of its name; repeat for each.")]
VocabularyFile = Annotated[Path, Option(help="The experiment's vocabulary.tsv.")]


@app.command("tabulate-neighbours")
def tabulate_neighbours(
    model: Networks,
    table: Tables,
    vocabulary: VocabularyFile,
    output_directory: OutputDirectory,
    word: Annotated[list[str] | None, Option(help="Word to list; repeat. None: words of all frequencies.")] = None,
    number: Annotated[int, Option(min=1, help="Neighbours of each word.")] = 8,
) -> None:
    """List the nearest neighbours of words in the features of the best network: neighbours.{csv,md}."""
    from nplm.corpus.vocabulary import read_vocabulary
    from nplm.report.features import chosen_words, nearest_neighbours, read_features, write_neighbours

    words = read_vocabulary(vocabulary)
    path = _best_network(model, table)
    chosen = word or chosen_words(words, 20)
    rows = nearest_neighbours(read_features(path, words), words, chosen, number)
    write_neighbours(output_directory, [{"model": path.parent.name, **row} for row in rows])
    print(f"{output_directory}: neighbours ({len(chosen)} words, features of {path.parent.name})")


@app.command("tabulate-word-classes")
def tabulate_word_classes(
    classes: Annotated[list[Path], Option(help="Classes made by cluster-words (TSV); repeat for each number of them.")],
    configuration: Configuration,
    table: Tables,
    output_directory: OutputDirectory,
    number: Annotated[int, Option(min=1, help="Classes to list.")] = 12,
) -> None:
    """List frequent words of some classes of the best class-based model: word_classes.{csv,md}."""
    from nplm.errors import InputError
    from nplm.ngram.classes import read_classes
    from nplm.report.configuration import read_experiment
    from nplm.report.table import read_table
    from nplm.report.word_classes import best_number_of_classes, class_rows, write_word_classes

    best = best_number_of_classes(read_experiment(configuration), [row for path in table for row in read_table(path)])
    of_number = {words.number: words for words in map(read_classes, classes)}
    if best not in of_number:
        raise InputError(f"the best class-based row of the tables has {best} classes; give their file by --classes")
    rows = class_rows(of_number[best], number)
    write_word_classes(output_directory, rows)
    print(f"{output_directory}: word_classes ({len(rows)} of {best} classes)")


@app.command("plot-feature-map")
def plot_feature_map(
    model: Networks,
    table: Tables,
    vocabulary: VocabularyFile,
    output: Figure,
    seed: Annotated[int, Option(help="Seed of the map's start.")],
    words: Annotated[int, Option(min=4, help="Words on the map, the most frequent ones.")] = 600,
) -> None:
    """Draw the features of the best network on a map in two dimensions, by t-SNE."""
    path = _best_network(model, table)
    _plot_features(path, vocabulary, output, words, seed, ("t-SNE 1", "t-SNE 2"))
    print(f"{output}: features of {path.parent.name}")


@app.command("plot-features")
def plot_features(
    model: Annotated[Path, Option(help="Model file of a network with m = 2.")],
    vocabulary: VocabularyFile,
    output: Figure,
    words: Annotated[int, Option(min=4, help="Words in the plane, the most frequent ones.")] = 600,
) -> None:
    """Draw the two features of every frequent word, of a network with m = 2."""
    _plot_features(model, vocabulary, output, words, 0, ("feature 1", "feature 2"))
    print(f"{output}: features of {model.parent.name}")


def _plot_features(
    model: Path, vocabulary: Path, output: Path, number: int, seed: int, axis_labels: tuple[str, str]
) -> None:
    from nplm.corpus.vocabulary import read_vocabulary
    from nplm.report.features import frequent_words, plane, read_features
    from nplm.report.figures import plot_words

    words = read_vocabulary(vocabulary)
    ids = frequent_words(words, number)
    points = plane(read_features(model, words)[ids], seed)
    plot_words(output, points, [words.words[i] for i in ids], axis_labels)


def _best_network(models: list[Path], tables: list[Path]) -> Path:
    """The model file of the best unmixed network on validation, by the tables, among those given."""
    from nplm.errors import InputError
    from nplm.report.gains import best_network
    from nplm.report.table import read_table

    of_name = {path.parent.name: path for path in models}
    # Another toolkit's network may be better, but has no features to show.
    best = best_network([row for path in tables for row in read_table(path) if row["scores"] in of_name])
    if best is None:
        raise InputError(f"the tables have no row of a network that is given ({', '.join(of_name)}); give its tables")
    return of_name[best["scores"]]


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
    from nplm.corpus.vocabulary import read_vocabulary
    from nplm.files import read_json
    from nplm.report import provenance
    from nplm.report.configuration import configuration_hash, read_experiment
    from nplm.report.history import read_histories

    experiment = read_experiment(configuration)
    record = {
        "recorded": provenance.today(),
        "git": provenance.git_state(repository),
        "configuration_sha256": configuration_hash(experiment),
        "vocabulary": read_vocabulary(vocabulary).hash,
        "corpus": provenance.published_corpus(read_json(retrieved)) if retrieved else None,
        "machine": provenance.machine(),
        "versions": provenance.versions(),
        "training": provenance.training_record(read_histories(history or [])),
        "jobs": provenance.read_benchmarks(benchmarks, experiment) if benchmarks else [],
    }
    provenance.write_provenance(output_directory, record)
    print(f"{output_directory}: provenance ({len(record['jobs'])} jobs, commit {record['git']['commit']})")


@app.command("write-report-page")
def write_report_page(
    configuration: Configuration,
    table: Annotated[Path, Option(help="The paper's table beside ours, made by tabulate (CSV).")],
    extra: Annotated[Path, Option(help="The extra table made by tabulate-extra (CSV).")],
    corpus: Annotated[Path, Option(help="Corpus table made by tabulate-corpus (CSV).")],
    provenance: Annotated[Path, Option(help="Provenance made by record-provenance (JSON).")],
    output: Annotated[Path, Option(help="Page to write (Markdown).")],
    html: Annotated[Path | None, Option(help="The same page to write as one HTML file with everything in it.")] = None,
    claims: Annotated[Path | None, Option(help="Ledger made by check-claims (CSV).")] = None,
    comparisons: ComparisonsFile = None,
    mixture_weights: Annotated[Path | None, Option(help="Table made by tabulate-mixture-weights (CSV).")] = None,
    neighbours: Annotated[Path | None, Option(help="Table made by tabulate-neighbours (CSV).")] = None,
    word_classes: Annotated[Path | None, Option(help="Table made by tabulate-word-classes (CSV).")] = None,
    unseen_words: Annotated[Path | None, Option(help="Table made by tabulate-unseen-words (CSV).")] = None,
    trainings: Annotated[Path | None, Option(help="Table made by tabulate-trainings (CSV).")] = None,
    figure: Annotated[list[Path] | None, Option(help="Figure to show; repeat for each, in order.")] = None,
    caption: Annotated[list[Path] | None, Option(help="Caption of each figure, in the same order.")] = None,
) -> None:
    """Gather verdicts, summary, tables, figures, corpus card and provenance on one page."""
    from nplm.files import read_json, write_text
    from nplm.report import page
    from nplm.report.claims import claims_markdown, claims_title, read_ledger
    from nplm.report.configuration import read_experiment
    from nplm.report.corpus_card import corpus_markdown, read_corpus_table
    from nplm.report.features import neighbours_markdown, read_neighbours
    from nplm.report.html import html_page
    from nplm.report.mixture_table import mixture_weights_markdown, read_mixture_weights
    from nplm.report.provenance import provenance_markdown
    from nplm.report.table import corpora, has_paper, read_table
    from nplm.report.table_formats import extra_markdown, table_markdown, table_title
    from nplm.report.trainings import read_trainings, trainings_markdown
    from nplm.report.unseen_words import read_unseen_words, unseen_words_markdown
    from nplm.report.word_classes import read_word_classes, word_classes_markdown
    from nplm.significance import read_comparisons

    experiment = read_experiment(configuration)
    rows, extra_rows = read_table(table), read_table(extra)
    ledger = read_ledger(claims) if claims else []
    record = read_json(provenance)
    intervals = read_comparisons(comparisons) if comparisons else {}

    def section(text: str, *paths: Path) -> str:
        return f"{text}\n{page.made_by(paths, output)}"

    sections = {
        claims_title(ledger): section(claims_markdown(ledger), claims) if claims else "",
        "Summary": page.summary_markdown(experiment, rows, extra_rows, intervals)
        + (f"\n{note}" if (note := page.training_note(record["training"])) else ""),
        table_title(rows): section(table_markdown(experiment, rows), table),
        "What the paper's table lacks": section(extra_markdown(experiment, rows, extra_rows), extra)
        if has_paper(rows)
        else "",
        "Figures": page.figures_markdown(figure or [], caption or [], output),
        "Words with similar features": section(neighbours_markdown(read_neighbours(neighbours)), neighbours)
        if neighbours
        else "",
        "Words never seen in training": section(unseen_words_markdown(read_unseen_words(unseen_words)), unseen_words)
        if unseen_words
        else "",
        "Word classes": section(word_classes_markdown(read_word_classes(word_classes)), word_classes)
        if word_classes
        else "",
        "Corpus": section(corpus_markdown(read_corpus_table(corpus)), corpus),
        "Weights of the mixtures": section(
            mixture_weights_markdown(read_mixture_weights(mixture_weights)), mixture_weights
        )
        if mixture_weights
        else "",
        "Trainings": section(trainings_markdown(read_trainings(trainings)), trainings) if trainings else "",
        "Settings": page.settings_markdown(experiment),
        "Provenance": section(provenance_markdown(record), provenance),
        "How to make it anew": page.REPRODUCTION,
    }
    title = f"Results: {output.absolute().parent.name}"
    if names := corpora(rows):
        title += f" ({names[0]}, standing in for {names[1]})"
    write_text(output, page.page(title, sections))
    if html:
        write_text(html, html_page(title, sections, output.parent))
    print(f"{output}: {sum(map(bool, sections.values()))} sections, {len(figure or [])} figures")


def _tables(
    configuration: Path, perplexity: Path, paper: Path | None, comparisons: Path | None
) -> tuple[dict, list[dict], list[dict]]:
    from nplm.perplexity import read_perplexities
    from nplm.report.configuration import read_experiment
    from nplm.report.table import read_paper, tabulate
    from nplm.significance import read_comparisons

    experiment = read_experiment(configuration)
    rows = tabulate(
        experiment,
        read_paper(paper) if paper else [],
        read_perplexities(perplexity),
        read_comparisons(comparisons) if comparisons else {},
    )
    return experiment, *rows
