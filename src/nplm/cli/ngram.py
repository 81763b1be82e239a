"""Subcommands of the word n-gram models: bin-contexts, export-arpa."""

from pathlib import Path
from typing import Annotated

from typer import Option

from nplm.cli import app
from nplm.cli.options import TrainFile


@app.command("bin-contexts")
def bin_contexts(
    train: TrainFile,
    split: Annotated[Path, Option(help="Split whose contexts are binned.")],
    output: Annotated[Path, Option(help="Context bins to write: frequency in train and bin of every token's context.")],
) -> None:
    """Put the context of every token of a split into the bin of its frequency in train."""
    from nplm.files import require_writable
    from nplm.ngram.deleted_interpolation import write_context_bins
    from nplm.streams import read_split

    require_writable([output], [train, split])
    binned = read_split(split)
    bins = write_context_bins(output, read_split(train), binned)
    print(f"{output}: {len(bins)} contexts of {binned.name} in bins {bins.min()} to {bins.max()}")


@app.command("export-arpa")
def export_arpa(
    model: Annotated[Path, Option(help="Model file of kind kneser_ney or katz.")],
    vocabulary: Annotated[Path, Option(help="Vocabulary of the model (TSV).")],
    output: Annotated[Path, Option(help="ARPA file to write; its logarithms are to base 10.")],
) -> None:
    """Export a back-off model in the ARPA format, which KenLM and other toolkits read."""
    from nplm.arrays import require_same_vocabulary
    from nplm.corpus.vocabulary import read_vocabulary
    from nplm.errors import InputError
    from nplm.files import require_writable
    from nplm.ngram.arpa import write_arpa
    from nplm.ngram.backoff import Backoff
    from nplm.scorers import load_scorer

    require_writable([output], [model, vocabulary])
    fitted, words = load_scorer(model), read_vocabulary(vocabulary)
    if not isinstance(fitted, Backoff):
        raise InputError(f"{model}: no back-off model; give one of kind kneser_ney or katz")
    require_same_vocabulary((model, fitted.vocabulary), (vocabulary, words.hash))
    sizes = write_arpa(output, fitted, words.words)
    print(f"{output}: {', '.join(f'{size} {k}-grams' for k, size in enumerate(sizes, start=1))}")
