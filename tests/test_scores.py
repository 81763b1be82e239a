import sys
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.arrays import write_arrays
from nplm.cli import app
from nplm.errors import InputError
from nplm.kinds import Kind, registry
from nplm.scorers import load_scorer
from nplm.scores import ScoreStream, check_ln_prob, read_aligned_scores, read_scores, score, write_scores
from nplm.streams import Split, write_split


class Bigram:
    """P(word | context) that depends on both, with contexts before the stream's start of their own."""

    n = 2
    vocabulary = "hash"
    vocabulary_size = 5

    def ln_prob(self, contexts, words):
        return np.log((1 + words + 10 * (contexts[:, -1] + 1)) / 100)


SPLIT = Split("test", np.array([4, 0, 3, 3, 1], dtype=np.uint8), np.array([2], dtype=np.uint8), "hash", 5)


def stream(name="a", split="valid", ln_prob=(-1.0, -2.0), vocabulary="hash"):
    return ScoreStream(name, split, np.array(ln_prob), vocabulary)


def test_scores_every_token_in_its_context():
    scored = score(Bigram(), SPLIT, "bigram")
    np.testing.assert_allclose(np.exp(scored.ln_prob) * 100, [35, 51, 14, 44, 42])
    assert (scored.model, scored.split, scored.vocabulary) == ("bigram", "test", "hash")


@pytest.mark.parametrize("batch", [1, 2, 4, 5, 100])
def test_batch_does_not_change_scores(batch):
    np.testing.assert_array_equal(
        score(Bigram(), SPLIT, "bigram", batch).ln_prob, score(Bigram(), SPLIT, "bigram").ln_prob
    )


def test_refuses_a_model_of_another_vocabulary():
    scorer = Bigram()
    scorer.vocabulary = "other"
    with pytest.raises(InputError, match="split test belongs to vocabulary hash but bigram to other"):
        score(scorer, SPLIT, "bigram")


@pytest.mark.parametrize("value", [np.nan, -np.inf, np.inf, 0.5])
def test_refuses_what_is_no_logarithm_of_a_probability(value):
    with pytest.raises(InputError, match=r"here: ln_prob\[1\] = .* \(1 of 3 tokens\)"):
        check_ln_prob(np.array([-1.0, value, 0.0]), "here")


def test_reads_back_the_same_bits(tmp_path):
    written = stream(ln_prob=-np.random.default_rng(0).random(100))
    write_scores(tmp_path / "a.safetensors", written)
    read = read_scores(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(read.ln_prob, written.ln_prob)
    assert (read.model, read.split, read.vocabulary) == ("a", "valid", "hash")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (stream(vocabulary="other"), "b.safetensors belongs to vocabulary other but .*a.safetensors to hash"),
        (stream(split="test"), "scores 2 tokens of test but .* scores 2 of valid"),
        (stream(ln_prob=[-1.0]), "scores 1 tokens of valid but .* scores 2 of valid"),
    ],
)
def test_streams_of_other_tokens_are_not_combined(tmp_path, other, message):
    write_scores(tmp_path / "a.safetensors", stream())
    write_scores(tmp_path / "b.safetensors", other)
    with pytest.raises(InputError, match=message):
        read_aligned_scores([tmp_path / "a.safetensors", tmp_path / "b.safetensors"])


def test_aligned_streams_keep_their_order(tmp_path):
    for name in "ba":
        write_scores(tmp_path / name, stream(name))
    assert [read.model for read in read_aligned_scores([tmp_path / "b", tmp_path / "a"])] == ["b", "a"]


def test_only_models_are_loaded_as_models(tmp_path):
    write_scores(tmp_path / "a", stream())
    with pytest.raises(InputError, match=r"holds 'scores', which is no model; known models: .*kneser_ney"):
        load_scorer(tmp_path / "a")


@pytest.mark.parametrize("kind", ["rnn", "external"])
def test_a_model_file_of_an_unknown_kind_ends_the_command_in_one_line(tmp_path, run, capsys, kind):
    write_arrays(tmp_path / "model", kind, {"none": np.zeros(0)}, vocabulary="hash")
    write_split(tmp_path / "test", SPLIT)
    arguments = ["--model", tmp_path / "model", "--split", tmp_path / "test", "--output", tmp_path / "out"]
    assert run("score", "--name", "x", *map(str, arguments)) == 1
    known = ", ".join(sorted(kind.name for kind in registry().values() if kind.code))
    error = f"nplm: error: {tmp_path}/model: holds '{kind}', which is no model; known models: {known}\n"
    assert capsys.readouterr().err == error
    assert "kneser_ney" in known and "nplm" in known


def test_command_scores_a_model_file(tmp_path, monkeypatch):
    """The command knows a model by its file's kind alone: a new kind of model is a registration."""
    write_arrays(tmp_path / "model.safetensors", "bigram", {"none": np.zeros(0)}, vocabulary="hash")
    write_split(tmp_path / "test.safetensors", SPLIT)
    module = ModuleType("bigram_module")
    module.read_model = lambda path: Bigram()
    monkeypatch.setitem(sys.modules, "bigram_module", module)
    kind = Kind("bigram", "a bigram", "here", own_keys=(), code="bigram_module", family="n-gram")
    monkeypatch.setitem(registry(), "bigram", kind)
    arguments = ["score", "--model", "model", "--split", "test", "--name", "mine", "--output", "out"]
    paths = {"model": "model.safetensors", "test": "test.safetensors", "out": "scores.safetensors"}
    result = CliRunner().invoke(app, [str(tmp_path / paths[a]) if a in paths else a for a in arguments])
    assert result.exit_code == 0, result.output
    assert "mine on test, 5 tokens, perplexity" in result.output
    np.testing.assert_array_equal(
        read_scores(tmp_path / "scores.safetensors").ln_prob, score(Bigram(), SPLIT, "mine").ln_prob
    )
