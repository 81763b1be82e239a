"""Subcommands of the word n-gram models: bin-contexts, fit-deleted-interpolation, -kneser-ney, -katz, export-arpa."""

from pathlib import Path
from typing import Annotated

from typer import Option

from nplm.cli import app
from nplm.cli.options import Cutoffs, ModelFile, Smoothing, TrainFile, UndefinedDiscounts, least_counts


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


@app.command("fit-deleted-interpolation")
def fit_deleted_interpolation(
    train: TrainFile,
    valid: Annotated[Path, Option(help="Encoded validation split, for the weights.")],
    output: ModelFile,
    iterations: Annotated[int, Option(min=1, help="EM stops after this many updates.")] = 100,
    tolerance: Annotated[float, Option(min=0, help="EM stops when the mean ln P gains less, relatively.")] = 1e-7,
) -> None:
    """Fit the deleted-interpolation trigram: counts on train, weights per context bin on valid by EM."""
    from math import exp

    from nplm.files import require_writable
    from nplm.ngram.deleted_interpolation import fit, write_model
    from nplm.streams import read_split

    require_writable([output], [train, valid])
    model = fit(read_split(train), read_split(valid), iterations, tolerance)
    write_model(output, model)
    empty = int((model.valid_tokens_per_bin == 0).sum())
    print(
        f"{output}: {', '.join(f'{len(keys)} {k}-grams' for k, keys in enumerate(model.keys, start=1))}; "
        f"{len(model.weights)} bins, {empty} of them without validation tokens"
    )
    print(f"EM: {len(model.mean_ln_prob) - 1} updates, validation perplexity {exp(-model.mean_ln_prob[-1]):.2f}")


@app.command("fit-kneser-ney")
def fit_kneser_ney(
    train: TrainFile,
    output: ModelFile,
    order: Annotated[int, Option(min=1, help="n: the model sees the n-1 words before the one it predicts.")],
    smoothing: Annotated[Smoothing, Option(help="Back off to shorter histories, or interpolate with them.")],
    cutoffs: Cutoffs = None,
    undefined_discounts: Annotated[
        UndefinedDiscounts,
        Option(help="Where the counts define no discounts: stop, or use 0.5, 1, 1.5 for that order."),
    ] = UndefinedDiscounts.error,
) -> None:
    """Fit a modified Kneser-Ney model."""
    from nplm.files import require_writable
    from nplm.ngram.kneser_ney import fit, write_model
    from nplm.streams import read_split

    require_writable([output], [train])
    kept = least_counts(cutoffs)
    split = read_split(train)
    model = fit(split.tokens, split.vocabulary_size, order, smoothing, kept, undefined_discounts, split.vocabulary)
    write_model(output, model)
    print(f"{output}: {', '.join(f'{len(keys)} {k}-grams' for k, keys in enumerate(model.keys, start=1))}")
    discounts = (
        f"{k}: {', '.join(f'{d:.4f}' for d in of_order)}" + (" (fallback)" if k in model.fallback_orders else "")
        for k, of_order in enumerate(model.discounts, start=1)
    )
    print(f"discounts D1, D2, D3+ of order {'; '.join(discounts)}")


@app.command("fit-katz")
def fit_katz(
    train: TrainFile,
    output: ModelFile,
    order: Annotated[int, Option(min=1, help="n: the model sees the n-1 words before the one it predicts.")],
    cutoffs: Cutoffs = None,
    undefined_discounts: Annotated[
        UndefinedDiscounts, Option(help="Where the counts define no discount: stop, or leave that count undiscounted.")
    ] = UndefinedDiscounts.error,
) -> None:
    """Fit a Katz back-off model with Good-Turing discounts."""
    from nplm.files import require_writable
    from nplm.ngram.katz import fit, write_model
    from nplm.streams import read_split

    require_writable([output], [train])
    kept = least_counts(cutoffs)
    split = read_split(train)
    model = fit(split.tokens, split.vocabulary_size, order, kept, undefined_discounts, split.vocabulary)
    write_model(output, model)
    print(f"{output}: {', '.join(f'{len(keys)} {k}-grams' for k, keys in enumerate(model.keys, start=1))}")
    for k, of_order in enumerate(model.discounts, start=2):
        fallback = " (fallback)" if k in model.fallback_orders else ""
        print(f"discounts d1, d2, … of order {k}: {', '.join(f'{d:.4f}' for d in of_order)}{fallback}")


@app.command("export-arpa")
def export_arpa(
    model: Annotated[Path, Option(help="Model file made by fit-kneser-ney or fit-katz.")],
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
        raise InputError(f"{model}: no back-off model; give one made by fit-kneser-ney or fit-katz")
    require_same_vocabulary((model, fitted.vocabulary), (vocabulary, words.hash))
    sizes = write_arpa(output, fitted, words.words)
    print(f"{output}: {', '.join(f'{size} {k}-grams' for k, size in enumerate(sizes, start=1))}")
