"""The rules from a corpus to encoded splits: which files they read, and what a change reruns."""

import json
from pathlib import Path

import pytest
import yaml
from test_workflow import CONFIG, planned, snakemake

CARD = "results/tiny/corpus.json"
TEXT = "In 1995 we saw London .\nThe fog of London was thick .\n\nLondon paid $12m in 1995 .\n\n" * 30


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    write_config(tmp_path)
    return tmp_path


def write_config(folder: Path, **blocks: dict) -> None:
    """The tiny configuration, with blocks of it replaced."""
    config = yaml.safe_load(CONFIG)
    config["experiments"]["tiny"] |= {"splits": {"train": 300, "valid": 90}, **blocks}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))


def test_without_a_mapping_tokens_are_encoded_as_they_are(folder):
    assert planned(folder, CARD) == {"tokenize_corpus", "build_vocabulary", "encode_corpus"}


def test_with_a_mapping_the_mapped_tokens_are_encoded(folder):
    mapping = {"lower_case": True, "numbers": "forms", "proper_nouns": "one"}
    blocks = {
        "corpus": {**yaml.safe_load(CONFIG)["experiments"]["tiny"]["corpus"], "documents": "blank_line"},
        "splits": {"train": 300, "valid": 90, "test": 90, "at": "document"},
        "vocabulary": {"scope": "train", "rare_threshold": None, "size": 12},
    }
    write_config(folder, mapping=mapping, **blocks)
    snakemake(folder, CARD)
    card = json.loads((folder / CARD).read_text())
    assert {key: card[key] for key in ("vocabulary_size", "vocabulary_scope", "distinct", "distinct_mapped")} == {
        "vocabulary_size": 12, "vocabulary_scope": "train", "distinct": 14, "distinct_mapped": 13
    }  # fmt: skip
    assert card["proper_nouns_tokens_changed"] == 90
    words = (folder / "results/tiny/vocabulary.tsv").read_text()
    assert "<proper_noun>" in words and "<year>" in words and "London" not in words
    assert "<money> paid" not in (folder / "results/tiny/mapped.txt").read_text()

    write_config(folder, mapping={**mapping, "proper_noun_thresholds": {"share": 0.9}}, **blocks)
    assert planned(folder, CARD) == {"map_tokens", "build_vocabulary", "encode_corpus"}
    assert "--share 0.9" in snakemake(folder, CARD, "--dry-run", "--printshellcmds")
    write_config(folder, mapping=mapping, **{**blocks, "splits": {**blocks["splits"], "valid": 80}})
    assert planned(folder, CARD) == {"encode_corpus"}


def test_files_are_named_by_folders_and_globs(folder):
    (folder / "more").mkdir()
    for name in ("b.txt", "a.txt"):
        (folder / "more" / name).write_text(f"from {name}\n" * 150)
    corpus = {**yaml.safe_load(CONFIG)["experiments"]["tiny"]["corpus"], "path": ["text.txt", "more/*.txt"]}
    write_config(folder, corpus=corpus)
    snakemake(folder, "results/tiny/tokens.txt")
    lines = (folder / "results/tiny/tokens.txt").read_text().splitlines()
    assert [line for line in lines if line.startswith("from")] == ["from a.txt"] * 150 + ["from b.txt"] * 150


def test_a_corpus_may_have_more_files_than_a_command_line_holds(folder):
    texts = folder / "texts of one newswire"
    texts.mkdir()
    for number in range(1200):
        (texts / f"{'a long name of a file ' * 5}{number:04}.txt").write_text(f"text {number}\n")
    corpus = {**yaml.safe_load(CONFIG)["experiments"]["tiny"]["corpus"], "path": [str(texts)]}
    write_config(folder, corpus=corpus)
    snakemake(folder, "results/tiny/tokens.txt")
    assert json.loads((folder / "results/tiny/tokens.json").read_text())["texts"] == 1200
