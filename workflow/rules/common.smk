# What the other rules files share: the checked configuration, the wildcards' constraints, and the functions that turn
# the configuration into inputs, options and resources. No rules.

import json
import os
import re
import shlex
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError

from nplm import configuration
from nplm.corpus.paths import expand_paths
from nplm.errors import InputError
from nplm.fingerprint import code_of
from nplm.kinds import registry
from nplm.scorers import reader_of

SPLITS = ["train", "valid", "test"]


def source_file(path):
    """Path of a file of this repository, seen from the working directory; an absolute path stays as it is."""
    return path if os.path.isabs(path) else os.path.relpath(Path(workflow.basedir) / path)


def checked_configuration():
    """The whole configuration, every experiment complete; a mistake in it ends the run with one line."""
    schema = yaml.safe_load(Path(source_file("workflow/schemas/config.schema.yaml")).read_text())
    try:
        return configuration.resolve_configuration(config, schema)
    except InputError as error:
        raise WorkflowError(str(error)) from None


CONFIGURATION = checked_configuration()
MPI = CONFIGURATION["mpi"]
EXPERIMENTS = {name: CONFIGURATION["experiments"][name] for name in CONFIGURATION["run"]}
ROWS = {name: configuration.complete_rows(block) for name, block in EXPERIMENTS.items()}


def files_of_corpus(name):
    """What the tokens of an experiment that is run are read from; a path that is not there ends the run with one line."""
    corpus = EXPERIMENTS[name]["corpus"]
    if corpus["source"] == "brown":
        return ["resources/brown"]
    try:
        return [str(path) for path in expand_paths(corpus["path"])]
    except InputError as error:
        raise WorkflowError(f"config: experiments.{name}.corpus.path: {error}") from None


CORPUS_FILES = {name: files_of_corpus(name) for name in EXPERIMENTS}


def any_of(names):
    """The regular expression that matches these names and nothing else."""
    return "|".join(sorted(map(re.escape, names))) or "(?!)"


def models_made_by(*rules):
    """Wildcard constraint: names of the models that are made so (nplm.configuration.rule_of) in any experiment run."""
    return any_of(
        {
            name
            for experiment, block in EXPERIMENTS.items()
            for name in configuration.models_run(block)
            if configuration.rule_of(ROWS[experiment][name]) in rules
        }
    )


wildcard_constraints:
    experiment=any_of(EXPERIMENTS),
    split=any_of(SPLITS),
    classes=r"\d+",
    model=any_of({name for block in EXPERIMENTS.values() for name in configuration.models_run(block)}),
    mixture=any_of({name for block in EXPERIMENTS.values() for name in configuration.mixtures_run(block)}),
    table=any_of({block["table"]["name"] for block in EXPERIMENTS.values()}),


def experiment(wildcards):
    """The resolved configuration of the job's experiment."""
    return EXPERIMENTS[wildcards.experiment]


def row(wildcards):
    """The complete row of the job's model."""
    return ROWS[wildcards.experiment][wildcards.model]


def kind(wildcards):
    """What the kind of the job's model says of itself."""
    return registry()[row(wildcards)["kind"]]


def model_file(experiment, name):
    """Path of a model's file."""
    return f"results/{experiment}/models/{name}/model.safetensors"


def model_files(wildcards, of):
    """The model files of an experiment, of the kinds for which `of` holds."""
    return [model_file(wildcards.experiment, name) for name in configuration.models_run(experiment(wildcards), of)]


def options(**values):
    """Command-line options: rare_threshold=3 gives `--rare-threshold 3`.

    True and False give `--x` and `--no-x`, None gives nothing, a list repeats the option. One string of names and
    values, as a parameter, lets Snakemake see any change of either.
    """
    words = []
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(option if value else option.replace("--", "--no-", 1))
        elif value is not None:
            words += [word for item in (value if isinstance(value, list) else [value]) for word in (option, str(item))]
    return shlex.join(words)


def scores_of(experiment, name, split):
    """Path of a model's or mixture's score stream."""
    return f"results/{experiment}/scores/{name}.{split}.safetensors"


def retrieval_options(wildcards):
    """How Brown is found and verified: one answer for all experiments, for they share its files."""
    answers = {
        name: options(path=block["corpus"]["path"], sha256=block["corpus"]["sha256"])
        for name, block in EXPERIMENTS.items()
        if block["corpus"]["source"] == "brown"
    }
    if len(set(answers.values())) > 1:
        raise WorkflowError(f"config: experiments {', '.join(answers)} differ in corpus.path or corpus.sha256; run one")
    return next(iter(answers.values()))


def corpus_files(wildcards):
    """What an experiment's tokens are read from."""
    return CORPUS_FILES[wildcards.experiment]


def tokenization_options(wildcards):
    """What is read, and how; folders and globs by their own names, for a command line holds only so many files."""
    corpus = experiment(wildcards)["corpus"]
    if corpus["source"] == "brown":
        return options(input=corpus_files(wildcards), source="brown", marks=corpus["marks"])
    names = ("source", "encoding", "bad_bytes", "documents", "characters", "tokenizer", "marks")
    return options(input=corpus["path"], **{name: corpus.get(name) for name in names})


def mapping_options(wildcards):
    mapping = dict(experiment(wildcards)["mapping"])
    thresholds = mapping.pop("proper_noun_thresholds", {})
    return options(**mapping, **thresholds)


def final_tokens(wildcards):
    """The tokens that are encoded: mapped ones where the experiment has a mapping."""
    name = "mapped" if experiment(wildcards).get("mapping") else "tokens"
    return f"results/{wildcards.experiment}/{name}.txt"


def mapping_record(wildcards):
    """What the mapping changed, if the experiment has one."""
    return [f"results/{wildcards.experiment}/mapped.json"] if experiment(wildcards).get("mapping") else []


def vocabulary_options(wildcards):
    block = experiment(wildcards)
    rare = {name: value for name, value in block["vocabulary"].items() if name != "scope"}
    counted = {}
    if block["vocabulary"]["scope"] == "train":
        counted = {"train_size": block["splits"]["train"], "at": block["splits"].get("at")}
    return options(scope=block["vocabulary"]["scope"], **counted, **rare)


def split_options(wildcards):
    splits = experiment(wildcards)["splits"]
    sizes = {f"{split}_size": splits.get(split) for split in SPLITS}
    return options(**sizes, at=splits.get("at"))


def clustering_options(wildcards):
    block = experiment(wildcards)
    return options(**block["clustering"], seed=configuration.derive_seed(block["seed"], f"classes {wildcards.classes}"))


def fit_inputs(wildcards):
    """What the fit of the job's model reads, by name: what its kind says beyond the train split."""
    folder = f"results/{wildcards.experiment}"
    paths = {"train": f"{folder}/train.safetensors"}
    for name in kind(wildcards).reads:
        if name == "classes":
            paths[name] = f"{folder}/classes/{row(wildcards)['classes']}/classes.tsv"
        elif name in kind(wildcards).references:
            paths[name] = model_file(wildcards.experiment, row(wildcards)[name])
        else:
            paths[name] = f"{folder}/{name}.safetensors"
    return paths


def fit_options(wildcards, input):
    """The row, the inputs and, for kinds that draw random numbers, the seed."""
    seed = seed_of(wildcards) if kind(wildcards).random else None
    return options(row=job_row(wildcards), input=[f"{name}={path}" for name, path in input.items()], seed=seed)


def training_options(wildcards):
    return options(row=job_row(wildcards), seed=seed_of(wildcards))


def job_row(wildcards):
    """The complete row as an argument; its seeds are the workflow's business."""
    return json.dumps({key: value for key, value in row(wildcards).items() if key not in ("seed", "seeds")})


def seed_of(wildcards):
    """The row's own seed, or one derived from the experiment's and the model's name."""
    own = row(wildcards)["seed"]
    return configuration.derive_seed(experiment(wildcards)["seed"], wildcards.model) if own is None else own


def mpi_resources(ranks, launcher):
    """Resources of an MPI job. `launch` starts the command line; with one rank there is no MPI, and no `mpi` resource.

    With more ranks, mpi4py's own runner ends all of them when one fails. Where Snakemake itself runs inside a SLURM
    job, HYDRA_RMK keeps MPICH's mpiexec from starting the ranks on that job's nodes; srun does not look at it.
    """
    if ranks == 1:
        return {"launch": "nplm", "mem_mb": 3000}
    return {
        "launch": f"env HYDRA_RMK=user {launcher} -n {ranks} python -m mpi4py -m nplm",
        "mpi": launcher,
        "tasks": ranks,
        "mem_mb_per_cpu": 3000,
    }


def fitting_code(wildcards):
    """A fit depends on the code of the model's own kind and of no other."""
    return code_of("nplm.cli.models", "fit_model", also=(kind(wildcards).code,))


def training_code(wildcards):
    """So does a training."""
    return code_of("nplm.cli.models", "train_network", also=(kind(wildcards).code,))


def scoring_code(wildcards):
    """So does scoring."""
    return code_of("nplm.cli.scores", "score", also=(reader_of(kind(wildcards)), kind(wildcards).code))


def external_options(wildcards):
    given = row(wildcards)
    return options(logarithm=given["logarithm"], vocabulary_size=given["vocabulary_size"])


def component_scores(wildcards):
    """The score streams of a mixture's components: on the job's split, or on valid where weights are fitted."""
    mixture = experiment(wildcards)["mixtures"][wildcards.mixture]
    split = wildcards.get("split", "valid")
    return [scores_of(wildcards.experiment, name, split) for name in mixture["components"]]


def bins_of_mixture(wildcards):
    """The context bins of the same split, where the mixture's weights need them."""
    binned = experiment(wildcards)["mixtures"][wildcards.mixture]["weights"] == "binned"
    return context_bins(wildcards) if binned else []


def context_bins(wildcards):
    """The context bins of the wildcards' split, by default valid."""
    return [f"results/{wildcards.experiment}/context_bins/{wildcards.get('split', 'valid')}.safetensors"]


def mixture_inputs(wildcards, input):
    return options(component=list(input.components), bins=list(input.bins))


def all_scores(wildcards):
    """Every score stream that the experiment's tables are of, models first."""
    block = experiment(wildcards)
    names = [*configuration.models_run(block), *configuration.mixtures_run(block)]
    splits = block.get("scored_splits", SPLITS)
    return [scores_of(wildcards.experiment, name, split) for name in names for split in splits]


def test_scores(wildcards):
    """The test score streams of an experiment, models first."""
    return [path for path in all_scores(wildcards) if path.endswith(".test.safetensors")]


def comparison_options(wildcards):
    block = experiment(wildcards)
    return options(**block.get("significance", {}), seed=configuration.derive_seed(block["seed"], "significance"))


def histories(wildcards):
    """The training history of every model of an experiment that is trained in epochs."""
    return [
        path.replace("model.safetensors", "history.csv") for path in model_files(wildcards, lambda kind: kind.epochs)
    ]


def mixture_files(wildcards):
    """Every mixture of an experiment."""
    mixtures = configuration.mixtures_run(experiment(wildcards))
    return [f"results/{wildcards.experiment}/mixtures/{mixture}.json" for mixture in mixtures]


def interpolated_trigrams(wildcards):
    """The models of an experiment that are mixtures themselves, whose weights the report shows."""
    return model_files(wildcards, lambda kind: "mixture_weights" in kind.shows)


def retrieval_record(wildcards):
    """Where the corpus came from, if it was retrieved."""
    return ["resources/brown"] if experiment(wildcards)["corpus"]["source"] == "brown" else []


def paper_file(key):
    """Input function: a file of the paper's figures that the experiment's stand beside, if there is one."""

    def paths(wildcards):
        path = experiment(wildcards)["table"].get(key)
        return [source_file(path)] if path else []

    return paths


def corpus_names(wildcards):
    """Names of the corpus and of the paper's, where they are not the same."""
    names = experiment(wildcards)["table"].get("corpora")
    return {"name": names["ours"], "paper_name": names["paper"]} if names else {}


def tables(wildcards):
    """The tables of perplexities: the paper's rows, and what its table lacks."""
    name = experiment(wildcards)["table"]["name"]
    return [f"reports/{wildcards.experiment}/{table}.csv" for table in (name, "extra")]


def ledger(wildcards):
    """The ledger of the paper's claims, if the experiment checks any."""
    return [f"reports/{wildcards.experiment}/claims.csv"] if experiment(wildcards)["table"].get("claims") else []


def mixture_table(wildcards):
    """The table of mixture weights, if there are mixtures."""
    mixtures = mixture_files(wildcards) + interpolated_trigrams(wildcards)
    return [f"reports/{wildcards.experiment}/mixture_weights.csv"] if mixtures else []


def models_with_features(wildcards):
    """The models of an experiment that have features of words, C."""
    return model_files(wildcards, has_features)


def has_features(kind):
    return "features" in kind.shows


def neighbour_table(wildcards):
    """The table of words with similar features, if a model has any."""
    return [f"reports/{wildcards.experiment}/neighbours.csv"] if models_with_features(wildcards) else []


def training_table(wildcards):
    """The table of trainings, if there is one."""
    return [f"reports/{wildcards.experiment}/trainings.csv"] if histories(wildcards) else []


def class_files(wildcards):
    """The word classes of the class-based models, one table for each number of classes."""
    names = configuration.models_run(experiment(wildcards), reads_classes)
    numbers = {ROWS[wildcards.experiment][name]["classes"] for name in names}
    return [f"results/{wildcards.experiment}/classes/{number}/classes.tsv" for number in sorted(numbers)]


def reads_classes(kind):
    return "classes" in kind.reads


def word_class_table(wildcards):
    """The table of word classes, if there is a class-based model."""
    return [f"reports/{wildcards.experiment}/word_classes.csv"] if class_files(wildcards) else []


def models_with_unseen_words(wildcards):
    """The models of an experiment whose network was trained without some words; one of each row's seeds."""
    return [model_file(wildcards.experiment, name) for name in names_with_unseen_words(wildcards)]


def names_with_unseen_words(wildcards):
    block = experiment(wildcards)
    return rows(block, configuration.models_run(block, lambda kind: "unseen_words" in kind.shows))


def scores_of_unseen_words(wildcards):
    """Their score streams on test, in the same order."""
    return [scores_of(wildcards.experiment, name, "test") for name in names_with_unseen_words(wildcards)]


def unseen_word_table(wildcards):
    """The table of words never seen in training, if a model has any."""
    return [f"reports/{wildcards.experiment}/unseen_words.csv"] if models_with_unseen_words(wildcards) else []


def rows(block, names):
    """Those of the names that are rows of the tables: all but the further seeds."""
    further = configuration.further_seeds(block["replicas"])
    return [name for name in names if name not in further]


def models_in_the_plane(wildcards):
    """The models with two features a word, which can be plotted as they are; one of each row's seeds."""
    block = experiment(wildcards)
    names = rows(block, configuration.models_run(block, has_features))
    return [name for name in names if ROWS[wildcards.experiment][name].get("m") == 2]


def captions_of_figures(wildcards):
    """The figures for which the experiment has something to show, in the report's order -> the name of their caption."""
    block = experiment(wildcards)
    weights = {block["mixtures"][mixture]["weights"] for mixture in configuration.mixtures_run(block)}
    run = rows(block, [*configuration.models_run(block), *configuration.mixtures_run(block)])
    shown = {
        "perplexity": True,
        "gains": block["table"]["baseline"] in run and len(run) > 1,
        "learning_curves": histories(wildcards),
        "mixture_weights": "binned" in weights or interpolated_trigrams(wildcards),
        "classes": class_files(wildcards),
        "training_time": histories(wildcards),
        "feature_map": models_with_features(wildcards),
    }
    return {name: name for name in shown if shown[name]} | {
        f"features.{name}": "features" for name in models_in_the_plane(wildcards)
    }


def figures(wildcards):
    """The figures of an experiment's report, in order."""
    return [f"reports/{wildcards.experiment}/{figure}.svg" for figure in captions_of_figures(wildcards)]


def captions(wildcards):
    """Their captions, in the same order."""
    return [source_file(f"workflow/report/{caption}.rst") for caption in captions_of_figures(wildcards).values()]


def final_output():
    """What the default target makes: the report of every experiment that is run."""
    return expand("reports/{experiment}/{page}", experiment=EXPERIMENTS, page=["README.md", "index.html"])
