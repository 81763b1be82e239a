import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.cli import app
from nplm.errors import InputError
from nplm.perplexity import perplexity, read_perplexities, write_perplexities
from nplm.scores import ScoreStream, write_scores


def stream(probabilities, model="a", split="test"):
    return ScoreStream(model, split, np.log(probabilities), "hash")


def test_uniform_distribution_has_the_perplexity_of_its_size():
    assert perplexity(stream(np.full(7, 1 / 50))).perplexity == pytest.approx(50)


def test_is_the_inverse_of_the_geometric_mean():
    result = perplexity(stream([0.5, 0.125, 1.0]))
    assert result.tokens == 3
    assert result.perplexity == pytest.approx(16 ** (1 / 3))


def test_no_tokens_have_no_perplexity():
    with pytest.raises(InputError, match="a on test: no tokens"):
        perplexity(stream([]))


def test_table_reads_back(tmp_path):
    written = [perplexity(stream([0.1, 0.3], split=split)) for split in ("valid", "test")]
    write_perplexities(tmp_path / "p.csv", written)
    assert read_perplexities(tmp_path / "p.csv") == written


def test_same_stream_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match="two score streams of a on test"):
        write_perplexities(tmp_path / "p.csv", [perplexity(stream([0.5]))] * 2)


def test_cell_that_is_no_number_is_named(tmp_path):
    (tmp_path / "p.csv").write_text("model,split,tokens,mean_ln_prob,perplexity\na,test,many,-1,2.7\n")
    with pytest.raises(InputError, match=r"p\.csv: .*'many'"):
        read_perplexities(tmp_path / "p.csv")


def test_command_tabulates_all_streams(tmp_path):
    arguments = ["evaluate-perplexity", "--output", str(tmp_path / "p.csv")]
    for model, split, probability in (("a", "valid", 0.25), ("a", "test", 0.5), ("b", "test", 0.1)):
        write_scores(tmp_path / f"{model}.{split}", stream([probability] * 4, model, split))
        arguments += ["--scores", str(tmp_path / f"{model}.{split}")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0 and "3 perplexities of 2 models" in result.output
    with open(tmp_path / "p.csv", newline="") as file:
        rows = [(r["model"], r["split"], r["tokens"], round(float(r["perplexity"]), 9)) for r in csv.DictReader(file)]
    assert rows == [("a", "valid", "4", 4.0), ("a", "test", "4", 2.0), ("b", "test", "4", 10.0)]
