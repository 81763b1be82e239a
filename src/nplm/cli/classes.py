"""Subcommand of the word classes: cluster-words."""

from pathlib import Path
from typing import Annotated

from typer import Option

from nplm.cli import app
from nplm.cli.options import Seed, TrainFile


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
