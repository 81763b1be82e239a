"""Subcommands that make and combine score streams: score, fit-mixture, mix, evaluate-perplexity."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from nplm.cli import app

if TYPE_CHECKING:
    from nplm.scores import ScoreStream


@app.command("score")
def score(
    model: Annotated[Path, Option(help="Model file (model.safetensors) of any kind.")],
    split: Annotated[Path, Option(help="Split to score (train, valid or test .safetensors).")],
    name: Annotated[str, Option(help="Name of the model in mixtures and tables.")],
    output: Annotated[Path, Option(help="Score stream to write: ln P of every token, in nats.")],
) -> None:
    """Score every token of a split with a model."""
    from nplm.files import require_writable
    from nplm.scorers import load_scorer
    from nplm.scores import score, write_scores
    from nplm.streams import read_split

    require_writable([output], [model, split])
    stream = score(load_scorer(model), read_split(split), name)
    write_scores(output, stream)
    _print_summary(output, stream)


@app.command("import-scores")
def import_scores(
    log_probabilities: Annotated[Path, Option(help="Text file with the log-probability of every token, in order.")],
    split: Annotated[Path, Option(help="Split that was scored (train, valid or test .safetensors).")],
    logarithm: Annotated[str, Option(help="natural | log10: what the file holds.")],
    vocabulary_size: Annotated[int, Option(min=1, help="Words that the outside model shares its probability among.")],
    name: Annotated[str, Option(help="Name of the model in mixtures and tables.")],
    output: Annotated[Path, Option(help="Score stream to write: ln P of every token, in nats.")],
) -> None:
    """Make a score stream of another toolkit's log-probabilities."""
    from nplm.external import read_external_scores
    from nplm.files import require_writable
    from nplm.scores import write_scores
    from nplm.streams import read_split

    require_writable([output], [log_probabilities, split])
    stream = read_external_scores(log_probabilities, logarithm, vocabulary_size, read_split(split), name)
    write_scores(output, stream)
    _print_summary(output, stream)


@app.command("fit-mixture")
def fit_mixture(
    component: Annotated[list[Path], Option(help="Score stream of a component on valid; repeat for each, in order.")],
    weights: Annotated[str, Option(help="fixed (equal) | learned (one per component) | binned (one set per bin).")],
    name: Annotated[str, Option(help="Name of the mixture in tables.")],
    output: Annotated[Path, Option(help="Mixture to write (JSON): weights and how EM found them.")],
    bins: Annotated[Path | None, Option(help="Context bins of valid; with binned weights only.")] = None,
    iterations: Annotated[int, Option(min=1, help="EM stops after this many updates.")] = 100,
    tolerance: Annotated[float, Option(min=0, help="EM stops when the mean ln P gains less, relatively.")] = 1e-7,
) -> None:
    """Fit a mixture's weights on the validation score streams of its components."""
    from nplm.files import require_writable
    from nplm.mixture import fit_mixture, read_context_bins, write_mixture
    from nplm.scores import read_aligned_scores

    require_writable([output], filter(None, (*component, bins)))
    streams = read_aligned_scores(component)
    mixture = fit_mixture(name, weights, streams, bins and read_context_bins(bins), iterations, tolerance)
    write_mixture(output, mixture)
    pooled = ", ".join(f"{c} {w:.3f}" for c, w in zip(mixture.components, mixture.pooled_weights, strict=True))
    print(f"{output}: {weights} weights, {len(mixture.weights)} bins, {mixture.iterations} updates; pooled: {pooled}")


@app.command("mix")
def mix(
    mixture: Annotated[Path, Option(help="Mixture (JSON) made by fit-mixture.")],
    component: Annotated[list[Path], Option(help="Score stream of a component; repeat for each, in order.")],
    output: Annotated[Path, Option(help="Score stream to write, under the mixture's name.")],
    bins: Annotated[Path | None, Option(help="Context bins of the same split; with binned weights only.")] = None,
) -> None:
    """Mix score streams of one split with a mixture's weights."""
    from nplm.files import require_writable
    from nplm.mixture import mix, read_context_bins, read_mixture
    from nplm.scores import read_aligned_scores, write_scores

    require_writable([output], filter(None, (mixture, *component, bins)))
    stream = mix(read_mixture(mixture), read_aligned_scores(component), bins and read_context_bins(bins))
    write_scores(output, stream)
    _print_summary(output, stream)


@app.command("evaluate-perplexity")
def evaluate_perplexity(
    scores: Annotated[list[Path], Option(help="Score stream; repeat for each model and split.")],
    output: Annotated[Path, Option(help="CSV to write: model, split, tokens, mean_ln_prob (nats), perplexity.")],
) -> None:
    """Tabulate the perplexity of score streams."""
    from nplm.files import require_writable
    from nplm.perplexity import perplexity, write_perplexities
    from nplm.scores import read_scores

    require_writable([output], scores)
    perplexities = [perplexity(read_scores(path)) for path in scores]
    write_perplexities(output, perplexities)
    models = len({p.model for p in perplexities})
    print(f"{output}: {len(perplexities)} perplexities of {models} models and mixtures")


def _print_summary(output: Path, stream: "ScoreStream") -> None:
    from nplm.perplexity import perplexity

    p = perplexity(stream)
    print(f"{output}: {p.model} on {p.split}, {p.tokens} tokens, perplexity {p.perplexity:.2f}")
