"""The whole workflow on a corpus made here: it finishes, and afterwards reruns exactly what a change touches."""

import csv
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]

CONFIG = """
run: [tiny, second]
mpi: {ranks: 1, launcher: mpiexec, threads: 1}
experiments:
  tiny:
    seed: 1
    corpus: {source: text, path: [text.txt], sha256: null, tokenizer: spaces, marks: none}
    splits: {train: 3000, valid: 500}
    vocabulary: {scope: corpus, rare_threshold: 1}
    training: {epsilon_0: 0.01, r: 0, weight_decay: 0, K: 16, epochs: 2, patience: null, precision: float32}
    clustering: {annealing_sweeps: 2, sweeps: 5}
    models:
      deleted_interpolation: {kind: deleted_interpolation}
      kn2: {kind: kneser_ney, n: 2, smoothing: interpolated, undefined_discounts: fallback}
      kn3: {kind: kneser_ney, n: 3, smoothing: interpolated, undefined_discounts: fallback}
      class9_kn3: {kind: class_ngram, classes: 9, n: 3, smoothing: interpolated}
      MLP7: {kind: nplm, n: 3, h: 4, m: 3, direct: true}
      MLP9: {kind: nplm, n: 4, h: 5, m: 2, direct: false}
      energy: {kind: energy, n: 3, h: 3, m: 3, held_out: 5}
      unseen: {kind: unseen_words, network: energy, features: rare}
      unseen_2: {kind: unseen_words, network: energy, contexts: 2}
    mixtures:
      MLP8: {components: [MLP7, deleted_interpolation], weights: fixed}
      MLP9_binned: {components: [MLP9, deleted_interpolation], weights: binned}
      kn3_learned: {components: [kn3, kn2], weights: learned}
    exclude: [kn3]
    significance: {block_length: 20, resamples: 100}
    table:
      name: table1
      paper: workflow/paper/table1_brown.csv
      corpus: workflow/paper/corpus_brown.csv
      claims: workflow/paper/claims_brown.yaml
      baseline: deleted_interpolation
  second:
    seed: 1
    corpus: {source: text, path: [text.txt], sha256: null, tokenizer: spaces, marks: none}
    splits: {train: 3000, valid: 500}
    vocabulary: {scope: corpus, rare_threshold: 1}
    training: {epsilon_0: 0.01, r: 0, weight_decay: 0, K: 16, epochs: 2, patience: null, precision: float32}
    clustering: {annealing_sweeps: 0, sweeps: 5}
    models:
      deleted_interpolation: {kind: deleted_interpolation}
      kn3_backoff: {kind: kneser_ney, n: 3, smoothing: backoff, undefined_discounts: fallback}
      katz3_backoff: {kind: katz, n: 3, undefined_discounts: fallback}
      class7_kn3: {kind: class_ngram, classes: 7, n: 3, smoothing: backoff}
      MLP10_unmixed: {kind: nplm, n: 3, h: 2, m: 3, direct: true}
    mixtures:
      MLP10: {components: [MLP10_unmixed, deleted_interpolation], weights: fixed}
    exclude: []
    scored_splits: [valid, test]
    significance: {block_length: 20, resamples: 100}
    table:
      name: table2
      paper: workflow/paper/table2_apnews.csv
      corpus: workflow/paper/corpus_apnews.csv
      claims: workflow/paper/claims_apnews.yaml
      corpora: {ours: Made-up Text, paper: AP News}
      baseline: deleted_interpolation
"""


def snakemake(directory: Path, *arguments: str) -> str:
    """Run Snakemake in a folder of its own; its output. A failure shows all of it."""
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        ROOT / "Snakefile",
        "--directory",
        directory,
        "--cores",
        "2",
    ]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        [*command, *arguments],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    return run.stdout


def planned(directory: Path, *arguments: str) -> set[str]:
    """The jobs that Snakemake would run: the rule's name, with its model or mixture where it has one."""
    output = snakemake(directory, "--dry-run", *arguments)
    jobs = re.findall(r"^(?:local)?rule (\w+):\n((?: +.*\n)+)", output, re.M)
    wildcards = [(rule, re.search(r"wildcards: .*(?:model|mixture)=([\w.-]+)", text)) for rule, text in jobs]
    return {f"{rule} {match[1]}" if match else rule for rule, match in wildcards}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder in which the workflow has run to its end."""
    directory = tmp_path_factory.mktemp("workflow of spaces")
    chance = random.Random(1)
    words = [f"word{i}" for i in range(60)]
    text = [chance.choices(words, [1 / (i + 1) for i in range(60)], k=10) for _ in range(400)]
    (directory / "text.txt").write_text("".join(" ".join(sentence) + "\n" for sentence in text))
    (directory / "config.yaml").write_text(CONFIG)
    snakemake(directory)
    return directory


@pytest.fixture
def changed(finished):
    """Writes a changed configuration, for the time of a test."""

    def change(path: str, value: object, keep: bool = False) -> None:
        config = yaml.safe_load((finished / "config.yaml").read_text() if keep else CONFIG)
        *parents, key = path.split(".")
        block = config
        for parent in parents:
            block = block[parent]
        block[key] = value
        (finished / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))

    yield change
    (finished / "config.yaml").write_text(CONFIG)


def test_the_table_holds_every_row_that_was_run(finished):
    with open(finished / "reports/tiny/table1.csv", newline="") as file:
        test_ppl = {row["row"]: row["test_ppl"] for row in csv.DictReader(file)}
    ran = {row for row, value in test_ppl.items() if value != "not run"}
    assert ran == {"MLP7", "MLP8", "MLP9", "Del. Int."}
    assert all(1 < float(test_ppl[row]) < 61 for row in ran)


def test_an_experiment_on_another_corpus_than_the_papers_says_so_wherever_the_two_meet(finished):
    report = finished / "reports/second"
    tables = [f"{table}.{kind}" for table in ("table2", "claims", "corpus") for kind in ("csv", "md")]
    for name in (*tables, "table2.tex", "perplexity.svg", "README.md", "index.html"):
        text = (report / name).read_text()
        assert "Made-up Text" in text and "AP News" in text, name
    for path in (finished / "reports/tiny").iterdir():
        assert "Made-up Text" not in path.read_text(), path.name
    with open(report / "table2.csv", newline="") as file:
        rows = {row["row"]: row for row in csv.DictReader(file)}
    assert {row["train_ppl"] for row in rows.values()} == {""}, "the splits are not scored that are not asked for"
    assert rows["MLP10"]["paper_test_ppl"] == "109" and float(rows["MLP10"]["test_ppl"]) > 1
    assert "here n = 3" in rows["MLP10"]["differs"] and "here epochs = 2 at most" in rows["MLP10"]["differs"]
    with open(report / "claims.csv", newline="") as file:
        verdicts = [row["verdict"] for row in csv.DictReader(file) if row["rows"]]
    assert len(verdicts) >= 4, "claims are decided from the rows that there are"
    assert "ours (Made-up Text), n = 3, backoff" in (report / "classes.svg").read_text()
    assert not list((finished / "results/second/scores").glob("*.train.safetensors"))


def test_a_finished_tree_has_nothing_to_do(finished):
    assert "Nothing to be done" in snakemake(finished, "--dry-run")


def test_nothing_but_results_and_reports_is_left_behind(finished):
    assert {path.name for path in finished.iterdir()} == {"text.txt", "config.yaml", "results", "reports", ".snakemake"}


def test_a_changed_learning_rate_reruns_training_and_what_follows(finished, changed):
    changed("experiments.tiny.models.MLP9.epsilon_0", 0.02)
    assert planned(finished) == {
        "write_configuration",
        "train_network MLP9",
        "score MLP9",
        "fit_mixture MLP9_binned",
        "mix MLP9_binned",
        "evaluate_perplexity",
        "compare_models",
        "check_claims",
        "tabulate",
        "tabulate_extra",
        "tabulate_mixture_weights",
        "plot_perplexity",
        "plot_learning_curves",
        "plot_mixture_weights",
        "plot_classes",
        "tabulate_gains",
        "plot_gains",
        "plot_training_time",
        "tabulate_trainings",
        "tabulate_neighbours",
        "tabulate_word_classes",
        "plot_feature_map",
        "plot_features MLP9",
        "record_provenance",
        "write_report_page",
        "all",
    }


def test_a_new_model_reruns_no_other(finished, changed):
    changed("experiments.tiny.exclude", [])
    jobs = planned(finished)
    assert {"fit_model kn3", "score kn3", "fit_mixture kn3_learned", "mix kn3_learned"} < jobs
    assert not {job for job in jobs if re.match(r"(fit_|train_|score|mix )", job) and "kn3" not in job}


def test_only_what_is_asked_for_is_made_with_what_it_needs_and_the_baseline(finished, changed):
    changed("experiments.tiny.only", ["MLP9_binned"])
    changed("run", ["tiny"], keep=True)
    jobs = {job for job in planned(finished, "--forceall") if re.match(r"(fit_|train_|cluster_|score|mix )", job)}
    models = {"deleted_interpolation", "MLP9"}
    assert jobs == {
        *("fit_model deleted_interpolation", "train_network MLP9", "fit_mixture MLP9_binned", "mix MLP9_binned"),
        *(f"score {model}" for model in models),
    }


def test_one_rule_makes_models_of_one_name_and_two_kinds(finished, changed):
    changed("experiments.second.models.kn2", {"kind": "katz", "n": 2, "undefined_discounts": "fallback"})
    jobs = planned(finished)
    assert {"fit_model kn2", "score kn2"} < jobs
    assert not {job for job in jobs if re.match(r"(fit_|train_|score|mix )", job) and "kn2" not in job}


def test_rows_added_to_the_configuration_show_everywhere(finished, changed, tmp_path):
    directory = tmp_path / "more rows"
    external = {"kind": "external", "family": "n-gram", "logarithm": "log10", "vocabulary_size": 61}
    for split in ("train", "valid", "test"):
        external[split] = f"{split}.txt"
    changed("experiments.tiny.models.theirs", external)
    changed(
        "experiments.tiny.mixtures.with_theirs", {"components": ["MLP9", "theirs"], "weights": "learned"}, keep=True
    )
    changed("experiments.tiny.models.MLP7.seeds", 2, keep=True)
    shutil.copytree(finished, directory)
    for split, tokens in (("train", 3000), ("valid", 500), ("test", 500)):
        (directory / f"{split}.txt").write_text("-1.5\n" * tokens)
    snakemake(directory)
    for path in (
        *(f"reports/tiny/{file}" for file in ("extra.csv", "extra.md", "gains.csv", "perplexity.svg")),
        *(f"reports/tiny/{file}" for file in ("README.md", "index.html")),
        *("results/tiny/perplexity.csv", "results/tiny/comparisons.csv"),
    ):
        text = (directory / path).read_text()
        assert "theirs" in text and "with_theirs" in text, path
    with open(directory / "reports/tiny/table1.csv", newline="") as file:
        seeds = {row["row"]: (row["seeds"], row["test_ppl_sd"] != "") for row in csv.DictReader(file)}
    assert seeds["MLP7"] == seeds["MLP8"] == ("2", True)
    assert seeds["MLP9"] == ("1", False)
    assert "Nothing to be done" in snakemake(directory, "--dry-run")


def test_ranks_and_launcher_rerun_nothing(finished, changed):
    changed("mpi", {"ranks": 2, "launcher": "srun", "threads": 1})
    assert "Nothing to be done" in snakemake(finished, "--dry-run")


def test_threads_rerun_nothing(finished, changed):
    changed("mpi.threads", 2)
    assert "Nothing to be done" in snakemake(finished, "--dry-run")


def test_two_ranks_train_the_same_network(finished, changed, tmp_path):
    directory = tmp_path / "two"
    changed("mpi.ranks", 2)
    shutil.copytree(finished, directory)
    shutil.rmtree(directory / "results/tiny/checkpoints")
    history = "results/tiny/models/MLP9/history.csv"
    output = snakemake(directory, "--forcerun", "train_network", "--", history)
    assert re.search(r"^ +threads: 2$", output, re.M), "a rank is a core of this machine"
    assert "2 rank(s)" in (directory / "results/tiny/logs/train_network/MLP9.log").read_text()
    with open(finished / history, newline="") as one, open(directory / history, newline="") as two:
        for row_of_one, row_of_two in zip(csv.DictReader(one), csv.DictReader(two), strict=True):
            assert float(row_of_two["valid_perplexity"]) == pytest.approx(
                float(row_of_one["valid_perplexity"]), rel=1e-3
            )


def test_the_snakemake_report_shows_every_table_and_figure(finished):
    snakemake(finished, "--report", "report.html")
    page = (finished / "report.html").read_text()
    (finished / "report.html").unlink()
    for path in (finished / "reports").glob("*/*"):
        if path.suffix in {".csv", ".svg"}:
            assert path.name in page


@pytest.mark.parametrize("name", [None, "quick", "full"])
def test_the_configurations_that_ship_plan_every_model(tmp_path, name):
    shutil.copy(ROOT / "config.yaml", tmp_path)
    arguments = ["--configfile", str(ROOT / f"workflow/configs/{name}.yaml")] if name else []
    jobs = planned(tmp_path, *arguments)
    ngrams = {"fit_model deleted_interpolation", "fit_model katz3_backoff"}
    assert ngrams | {"retrieve_corpus", "mix MLP10"} < jobs
    networks = {job.split()[1] for job in jobs if job.startswith("train_network")}
    rows = {"MLP1", "MLP3", "MLP5", "MLP7", "MLP9"}
    expected = {
        None: rows | {"MLP_plane"},
        "quick": {"MLP9"},
        "full": rows | {f"{row}.seed{seed}" for row in rows for seed in (2, 3)} | {"MLP_plane"},
    }
    assert networks == expected[name]


@pytest.mark.parametrize(
    ("name", "files"), [("ap_news", "data/ap_news/a.sgml"), ("gutenberg", "data/gutenberg16m.txt.xz")]
)
def test_the_experiments_of_table_2_ask_for_their_files_in_one_line_and_plan_its_rows(tmp_path, name, files):
    shutil.copy(ROOT / "config.yaml", tmp_path)
    arguments = ["--configfile", str(ROOT / f"workflow/configs/{name}.yaml")]
    with pytest.raises(AssertionError, match=rf"config: experiments\.{name}\.corpus\.path: data/[\w.]+: no such file"):
        planned(tmp_path, *arguments)
    (tmp_path / files).parent.mkdir(parents=True)
    (tmp_path / files).write_text("Text.")
    jobs = planned(tmp_path, *arguments)
    rows = {f"fit_model kn{n}_backoff" for n in (3, 4, 5)}
    assert rows | {"map_tokens", "fit_model deleted_interpolation", "mix MLP10"} < jobs
    assert {job for job in jobs if job.startswith("train_network")} == {"train_network MLP10_unmixed"}


def test_choosing_the_learning_rate_does_not_look_at_the_test_split(tmp_path):
    shutil.copy(ROOT / "config.yaml", tmp_path)
    config = ROOT / "workflow/configs/learning_rate.yaml"
    jobs = planned(tmp_path, "reports/learning_rate/learning_curves.svg", "--configfile", str(config))
    trials = yaml.safe_load(config.read_text())["experiments"]["learning_rate"]["models"]
    assert {job for job in jobs if job.startswith("train_network")} == {f"train_network {name}" for name in trials}
    assert not [job for job in jobs if job.startswith(("score", "fit_"))]


def test_a_mistake_in_the_configuration_ends_the_run_in_one_line(tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG.replace("epochs:", "epohcs:"))
    with pytest.raises(AssertionError, match=r"config: experiments\.tiny\.training: unknown key 'epohcs'"):
        snakemake(tmp_path, "--dry-run")
