import math

import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.cli import app
from nplm.errors import InputError
from nplm.external import read_external_scores
from nplm.report.configuration import is_network
from nplm.report.table import tabulate
from nplm.scores import read_scores
from nplm.streams import Split, write_split

SPLIT = Split("test", np.array([1, 2, 1], dtype=np.uint8), np.array([], dtype=np.uint8), "hash", 3)


def read(tmp_path, text, logarithm="natural", vocabulary_size=3):
    (tmp_path / "scores.txt").write_text(text)
    return read_external_scores(tmp_path / "scores.txt", logarithm, vocabulary_size, SPLIT, "theirs")


def test_log_probabilities_become_nats(tmp_path):
    stream = read(tmp_path, "-1\n-2.5\n-3e-1\n", "log10")
    np.testing.assert_allclose(np.exp(stream.ln_prob), [0.1, 10**-2.5, 10**-0.3], rtol=1e-15)
    assert (stream.model, stream.split, stream.vocabulary) == ("theirs", "test", "hash")
    assert read(tmp_path, "-1 -2.5\n-0.3").ln_prob.tolist() == [-1, -2.5, -0.3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-1\n-2\n",), r"scores\.txt: has 2 log-probabilities but test has 3 tokens"),
        (("-1\n-2\n-3\n-4\n",), r"has 4 log-probabilities but test has 3 tokens"),
        (("-1\n-2\n-3\n", "natural", 5), "theirs shares its probability among 5 words but .* test has 3;"),
        (("-1\n-2\n-3\n", "log2"), "logarithm 'log2' is unknown; choose one of natural, log10"),
        (("-1\nOOV\n-3\n",), r"scores\.txt: .*'OOV'"),
        (("-1\n0.2\n-3\n",), r"ln_prob\[1\] = 0\.2 is not the logarithm of a probability"),
        (("-1\n-inf\n-3\n",), r"ln_prob\[1\] = -inf is not"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, *arguments)


def test_command_makes_a_score_stream(tmp_path):
    write_split(tmp_path / "test.safetensors", SPLIT)
    (tmp_path / "theirs.txt").write_text("-1\n-1\n-1\n")
    command = ["import-scores", "--logarithm", "log10", "--vocabulary-size", "3", "--name", "theirs"]
    paths = {"--log-probabilities": "theirs.txt", "--split": "test.safetensors", "--output": "s.safetensors"}
    command += [word for option, name in paths.items() for word in (option, str(tmp_path / name))]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "perplexity 10.00" in result.output
    assert read_scores(tmp_path / "s.safetensors").ln_prob.tolist() == [-math.log(10)] * 3


def test_an_external_row_is_of_the_family_that_it_says():
    theirs = {"kind": "external", "logarithm": "log10", "vocabulary_size": 3, "train": "a", "valid": "b", "test": "c"}
    experiment = {
        "models": {
            "SRILM": {**theirs, "family": "n-gram", "n": 5},
            "LSTM": {**theirs, "family": "network"},
        },
        "mixtures": {"both": {"components": ["SRILM", "LSTM"], "weights": "fixed"}},
        "exclude": ["SRILM", "LSTM"],
        "table": {"baseline": "SRILM", "paper": "paper.csv"},
    }
    assert [is_network(experiment, name) for name in ("SRILM", "LSTM", "both")] == [False, True, True]
    table, _ = tabulate(experiment, [], [])
    assert {column: table[0][column] for column in ("row", "model", "variant", "n", "family")} == {
        "row": "SRILM",
        "model": "external",
        "variant": "",
        "n": "5",
        "family": "n-gram",
    }
