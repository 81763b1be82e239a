import json

import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.cli import app
from nplm.errors import InputError
from nplm.scores import ScoreStream, write_scores
from nplm.significance import (
    Interval,
    block_sums,
    compare,
    of_seeds,
    read_comparisons,
    resampled_means,
    write_comparisons,
)


def stream(seed, T=4000):
    return -np.random.default_rng(seed).gamma(2.0, 3.0, T)


def test_block_sums_keep_every_token_and_the_last_block_short():
    sums, tokens = block_sums(np.arange(14.0).reshape(2, 7), 3)
    assert sums.tolist() == [[3, 12, 6], [24, 33, 13]]
    assert tokens.tolist() == [3, 3, 1]


def test_too_few_tokens_for_two_blocks_are_refused_with_both_numbers():
    with pytest.raises(InputError, match="100 tokens are fewer than two blocks of 100; lower block_length"):
        block_sums(np.zeros((1, 100)), 100)


def test_ratio_is_that_of_the_perplexities():
    a, b = stream(1), stream(2)
    comparisons = compare({"a": a[None], "b": b[None]}, 50, 200, 0)
    assert list(comparisons) == [("a", "b")]
    interval = comparisons["a", "b"]
    assert interval.value == pytest.approx(np.exp(-a.mean()) / np.exp(-b.mean()), rel=1e-12)
    assert interval.low < interval.value < interval.high


def test_a_shift_of_every_token_is_certain():
    a = stream(1)
    interval = compare({"a": a[None], "worse": a[None] - 0.1}, 50, 200, 0)["a", "worse"]
    assert [interval.low, interval.high] == pytest.approx([np.exp(-0.1)] * 2, rel=1e-12)


def test_the_interval_is_as_wide_as_the_theory_of_independent_tokens_says():
    a, b = stream(1, 40_000), stream(2, 40_000)
    interval = compare({"a": a[None], "b": b[None]}, 100, 4000, 0)["a", "b"]
    expected = 2 * 1.96 * (a - b).std() / np.sqrt(a.size)
    assert np.log(interval.high / interval.low) == pytest.approx(expected, rel=0.15)


def test_tokens_that_go_together_widen_the_interval_only_when_blocks_hold_them_together():
    text = np.repeat(np.random.default_rng(3).normal(0, 0.5, 400), 100)  # one difference for each text of 100 tokens
    a = stream(1, text.size)
    short, long = (compare({"a": a[None], "b": a[None] + text}, length, 2000, 0)["a", "b"] for length in (1, 500))
    assert np.log(long.high / long.low) > 5 * np.log(short.high / short.low)


def test_the_same_draws_serve_all_models_whatever_else_is_compared():
    a, b, c = stream(1), stream(2), stream(3)
    alone = resampled_means(np.stack([a, b]), 64, 100, 7)
    together = resampled_means(np.stack([a, b, c]), 64, 100, 7)
    np.testing.assert_allclose(together[:, :2], alone, rtol=1e-12)
    assert not np.allclose(resampled_means(np.stack([a, b]), 64, 100, 8), alone)


def test_the_ratio_of_rows_with_seeds_is_that_of_their_mean_perplexities_and_within_its_interval():
    a, b = stream(1), stream(2)
    seeds = np.stack([a, a - 1.5])  # one training went badly
    interval = compare({"seeds": seeds, "b": b[None]}, 50, 200, 0)["seeds", "b"]
    assert interval.value == pytest.approx(np.exp(-seeds.mean(axis=1)).mean() / np.exp(-b.mean()), rel=1e-12)
    assert interval.low < interval.value < interval.high


def test_a_row_has_the_streams_of_all_its_seeds():
    ln_prob = {"net": np.array([-1.0, -2]), "kn": np.array([-4.0, -4]), "net.seed2": np.array([-3.0, -4])}
    streams = [ScoreStream(name, "test", values, "hash") for name, values in ln_prob.items()]
    replicas = {"net": ["net", "net.seed2"], "not run": ["not run", "not run.seed2"]}
    rows = of_seeds(streams, replicas)
    assert {name: values.tolist() for name, values in rows.items()} == {"net": [[-1, -2], [-3, -4]], "kn": [[-4, -4]]}
    with pytest.raises(InputError, match=r"no score stream of net\.seed2; give those of all seeds"):
        of_seeds(streams[:2], replicas)
    with pytest.raises(InputError, match="two score streams of kn"):
        of_seeds([*streams, streams[1]], replicas)


def test_seeds_widen_the_interval_about_their_mean_as_student_has_it():
    kn = stream(1)
    net = np.stack([kn - shift for shift in (0.001, 0.002, 0.003)])  # the text itself changes nothing
    interval = compare({"net": net, "kn": kn[None]}, 50, 200, 0)["net", "kn"]
    half = 4.302653 * 0.001 / 3**0.5  # 97.5 % of Student's distribution with 2 degrees of freedom
    expected = [0.002, 0.002 - half, 0.002 + half]
    assert np.log([interval.value, interval.low, interval.high]) == pytest.approx(expected, rel=1e-3)


def test_what_two_rows_of_the_same_seeds_share_does_not_widen_their_interval():
    net = np.stack([stream(1) - shift for shift in (0.1, 0.2, 0.3)])
    interval = compare({"net": net, "its mixture": net + 0.05}, 50, 200, 0)["net", "its mixture"]
    assert [interval.low, interval.high] == pytest.approx([np.exp(0.05)] * 2, rel=1e-9)


def test_text_and_seeds_widen_the_interval_together():
    kn, net = stream(1), stream(2)
    alone = compare({"net": net[None], "kn": kn[None]}, 50, 2000, 0)["net", "kn"]
    seeds = compare({"net": np.stack([net - 0.01, net + 0.01]), "kn": kn[None]}, 50, 2000, 0)["net", "kn"]
    assert seeds.value == pytest.approx(alone.value, rel=1e-3)
    assert seeds.low < alone.low and alone.high < seeds.high


def test_comparisons_read_back_both_ways_round(tmp_path):
    record = {"split": "test", "tokens": 9, "block_length": 3, "resamples": 10}
    write_comparisons(tmp_path / "c.csv", {("a", "b"): Interval(0.8, 0.5, 1.25)}, **record)
    assert read_comparisons(tmp_path / "c.csv") == {
        ("a", "b"): Interval(0.8, 0.5, 1.25),
        ("b", "a"): Interval(1.25, 0.8, 2.0),
    }
    (tmp_path / "c.csv").write_text((tmp_path / "c.csv").read_text().replace("0.5", "half"))
    with pytest.raises(InputError, match=r"c\.csv, line 2: .*'half'.*compare-models"):
        read_comparisons(tmp_path / "c.csv")


def test_command_compares_the_rows_of_a_configuration(tmp_path):
    experiment = {"models": {}, "mixtures": {}, "exclude": [], "table": {}, "replicas": {"a": ["a", "a.seed2"]}}
    (tmp_path / "configuration.json").write_text(json.dumps(experiment))
    command = ["compare-models", "--configuration", str(tmp_path / "configuration.json"), "--seed", "3"]
    for number, name in enumerate(["a", "b", "a.seed2"]):
        path = tmp_path / f"{name}.safetensors"
        write_scores(path, ScoreStream(name, "test", stream(number, 300), "hash"))
        command += ["--scores", str(path)]
    result = CliRunner().invoke(app, [*command, "--block-length", "10", "--output", str(tmp_path / "c.csv")])
    assert result.exit_code == 0, result.output
    assert set(read_comparisons(tmp_path / "c.csv")) == {("a", "b"), ("b", "a")}
