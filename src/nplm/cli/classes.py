"""Subcommands of the class-based n-gram models: cluster-words, fit-class-ngram."""

from pathlib import Path
from typing import Annotated

from typer import Option

from nplm.cli import app
from nplm.cli.options import Cutoffs, ModelFile, Seed, Smoothing, TrainFile, UndefinedDiscounts, least_counts


@app.command("cluster-words")
def cluster_words(
    train: TrainFile,
    vocabulary: Annotated[Path, Option(help="Vocabulary of the split (TSV).")],
    classes: Annotated[int, Option(min=1, help="Number of classes, as many as train has distinct words at most.")],
    seed: Seed,
    output: Annotated[Path, Option(help="Table to write: word, class and count in train of every word (TSV).")],
    likelihood: Annotated[Path, Option(help="Table to write: likelihood and moves of every sweep (CSV).")],
    sweeps: Annotated[
        int, Option(min=0, max=1_000_000, help="Exchange sweeps at most; they stop when no move helps.")
    ] = 30,
    annealing_sweeps: Annotated[
        int, Option(min=0, max=1_000_000, help="Sweeps of falling temperature before; 0 = none.")
    ] = 40,
) -> None:
    """Put the words into classes that make train most likely under a class bigram, by the exchange algorithm."""
    from math import exp

    import numpy as np

    from nplm.arrays import require_same_vocabulary
    from nplm.corpus.vocabulary import read_vocabulary
    from nplm.files import require_writable
    from nplm.ngram.classes import WordClasses, cluster, write_classes, write_likelihood
    from nplm.streams import read_split

    require_writable([output, likelihood], [train, vocabulary])
    split, words = read_split(train), read_vocabulary(vocabulary)
    require_same_vocabulary((train, split.vocabulary), (vocabulary, words.hash))
    class_of_word, done = cluster(split.tokens, len(words), classes, seed, sweeps, annealing_sweeps)
    counts = np.bincount(split.tokens, minlength=len(words))
    write_classes(output, WordClasses(words.words, class_of_word, counts))
    write_likelihood(likelihood, done)
    print(f"{output}: {classes} classes of {len(words)} words, {np.sum(counts == 0)} of them not in {split.name}")
    converged = done[-1].temperature == 0 and done[-1].moves == 0
    print(
        f"{likelihood}: {split.name} perplexity of the class bigram {exp(-done[-1].mean_ln_likelihood):.2f} after "
        f"{len(done) - 1} sweeps, {'where no move helps' if converged else 'the bound, where moves still help'}"
    )


@app.command("fit-class-ngram")
def fit_class_ngram(
    train: TrainFile,
    classes: Annotated[Path, Option(help="Classes of the words, made by cluster-words (TSV).")],
    output: ModelFile,
    order: Annotated[int, Option(min=1, help="n: the model sees the classes of the n-1 words before the predicted.")],
    smoothing: Annotated[Smoothing, Option(help="Back off to shorter histories, or interpolate with them.")],
    cutoffs: Cutoffs = None,
    undefined_discounts: Annotated[
        UndefinedDiscounts,
        Option(help="Where the counts define no discounts: stop, or use 0.5, 1, 1.5 for that order."),
    ] = UndefinedDiscounts.fallback,
) -> None:
    """Fit a class-based n-gram: a modified Kneser-Ney model of the classes, and each word's share of its class."""
    from nplm.arrays import require_same_vocabulary
    from nplm.files import require_writable
    from nplm.ngram.class_ngram import fit, write_model
    from nplm.ngram.classes import read_classes
    from nplm.streams import read_split

    require_writable([output], [train, classes])
    kept = least_counts(cutoffs)
    split, table = read_split(train), read_classes(classes)
    require_same_vocabulary((train, split.vocabulary), (classes, table.vocabulary))
    model = fit(split.tokens, table.classes, order, smoothing, kept, undefined_discounts, split.vocabulary)
    write_model(output, model)
    of_classes = model.class_model
    sizes = ", ".join(f"{len(keys)} {k}-grams" for k, keys in enumerate(of_classes.keys, start=1))
    print(f"{output}: {table.number} classes; {sizes} of classes")
    fallbacks = [f"classes, order {k}" for k in of_classes.fallback_orders] + ["words"] * model.word_fallback
    print(f"fallback discounts: {'; '.join(fallbacks) or 'none'}")
