import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.arrays import write_arrays
from nplm.cli import app
from nplm.corpus.vocabulary import Vocabulary, write_vocabulary
from nplm.errors import InputError
from nplm.files import write_csv
from nplm.report.features import (
    chosen_words,
    frequent_words,
    nearest_neighbours,
    neighbours_markdown,
    plane,
    read_features,
)
from nplm.report.table import COLUMNS

WORDS = ["<rare>", "the", "north", "n'th", "east", "south", "seldom"]
VOCABULARY = Vocabulary(WORDS, np.array([900, 500, 300, 200, 100, 80, 4]))
C = np.array([[1, 0], [-1, -1], [0, 2], [0.1, 1], [3, 0], [0, -1], [0, 1]], dtype=np.float32)


def neighbours(word, number=3):
    return [row["neighbour"] for row in nearest_neighbours(C, VOCABULARY, [word], number)]


def test_neighbours_are_the_nearest_in_angle_not_in_length_without_the_word_itself():
    assert neighbours("north") == ["n'th", "east", "the"]
    rows = nearest_neighbours(C, VOCABULARY, ["north"], 2)
    assert (rows[0]["count"], rows[0]["neighbour_count"], rows[0]["rank"]) == (300, 200, 1)
    assert rows[0]["cosine"] == f"{1 / np.hypot(0.1, 1):.4f}"


def test_rare_words_and_symbols_are_no_neighbours():
    assert "seldom" not in neighbours("north", 10)
    assert "<rare>" not in neighbours("east", 10)
    assert neighbours("seldom")[0] == "north", "but a rare word may be asked for"


def test_unknown_word_is_refused():
    with pytest.raises(InputError, match="the vocabulary has no word 'west'"):
        nearest_neighbours(C, VOCABULARY, ["west"], 3)


def test_words_are_chosen_down_the_frequencies():
    words = ["<rare>", ";", *(f"{a}{b}" for a in "abcd" for b in "abcd")]
    assert chosen_words(Vocabulary(words, np.arange(18)[::-1]), 3, of=9) == ["aa", "ad", "bc"]


def test_words_are_chosen_of_any_script_and_where_none_is_of_letters():
    hindi = Vocabulary(["<rare>", ";", "हिन्दी", "n't"], np.array([9, 5, 3, 1]))
    assert chosen_words(hindi, 20) == ["हिन्दी"]
    assert chosen_words(Vocabulary(["<rare>", "w1", "w2"], np.array([9, 5, 3])), 20) == ["w1", "w2"]


def test_frequent_words_leave_symbols_out():
    assert frequent_words(VOCABULARY, 3).tolist() == [1, 2, 3]
    assert frequent_words(VOCABULARY, 99).tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("words", [0, 1, 2, 3])
def test_few_words_have_a_place_each(words):
    points = plane(np.random.default_rng(1).normal(size=(words, 5)).astype(np.float32), 0)
    assert points.shape == (words, 2)
    assert np.isfinite(points).all()


def test_two_features_are_the_plane_and_more_are_mapped_with_neighbours_together():
    np.testing.assert_array_equal(plane(C, 0), C)
    generator = np.random.default_rng(0)
    centres = np.repeat(np.eye(4, dtype=np.float32), 15, axis=0)
    points = plane(centres + 0.05 * generator.normal(size=centres.shape).astype(np.float32), 1)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    same = np.repeat(np.arange(4), 15)[:, None] == np.repeat(np.arange(4), 15)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    assert same[np.arange(60), nearest].all()


def test_the_table_has_a_line_for_each_word():
    rows = [{"model": "net", **row} for row in nearest_neighbours(C, VOCABULARY, ["north", "east"], 2)]
    text = neighbours_markdown([{column: str(cell) for column, cell in row.items()} for row in rows])
    assert "| north | 300   | n'th 0.99, east 0.00  |" in text
    assert "Of net, on validation the best network" in text and "Only words counted 50 times or more" in text
    seldom = neighbours_markdown([{**{column: str(cell) for column, cell in rows[0].items()}, "neighbour_count": "4"}])
    assert "Only words" not in seldom, "where no word is counted so often, all are listed"


@pytest.fixture
def network(tmp_path):
    """Files of two networks, of which `net` is the better on validation; the table has a third, without features."""
    write_vocabulary(tmp_path / "vocabulary.tsv", VOCABULARY)
    for name in ("net", "other"):
        write_arrays(tmp_path / name / "model.safetensors", "nplm", {"C": C}, vocabulary=VOCABULARY.hash)
    rows = [
        dict.fromkeys(COLUMNS, "") | {"scores": name, "family": "network", "mix": "no", "valid_ppl": ppl}
        for name, ppl in (("other", "310"), ("net", "300"), ("of_another_toolkit", "200"))
    ]
    write_csv(tmp_path / "table.csv", rows, COLUMNS)
    return tmp_path


def run(network, command, *options):
    models = [word for name in ("net", "other") for word in ("--model", str(network / name / "model.safetensors"))]
    rest = ["--table", str(network / "table.csv"), "--vocabulary", str(network / "vocabulary.tsv")]
    return CliRunner().invoke(app, [command, *models, *rest, *options])


def test_the_best_network_on_validation_is_the_one_shown(network):
    result = run(network, "tabulate-neighbours", "--word", "north", "--output-directory", str(network))
    assert result.exit_code == 0, result.output
    assert (network / "neighbours.csv").read_text().splitlines()[1].startswith("net,north,300,1,n'th,200,")
    result = run(network, "plot-feature-map", "--seed", "1", "--words", "6", "--output", str(network / "map.svg"))
    assert result.exit_code == 0, result.output
    assert ">north<" in (network / "map.svg").read_text()


def test_features_of_another_vocabulary_are_refused(network):
    other = Vocabulary([*WORDS, "more"], np.append(VOCABULARY.counts, 1))
    with pytest.raises(InputError, match=f"net/model.safetensors to {VOCABULARY.hash}"):
        read_features(network / "net" / "model.safetensors", other)
