import numpy as np
import pytest

from nplm.errors import InputError
from nplm.report import figures
from nplm.report.gains import (
    frequency_groups,
    group_range,
    models_to_show,
    read_gains,
    tabulate_gains,
    write_gains,
)
from nplm.report.table import COLUMNS

CONTEXT = np.array([0, 0, 1, 3, 4, 100])
WORD = np.array([5, 5, 5, 5, 5, 5])
LN_PROB = {
    "trigram": np.array([-5.0, -5, -5, -5, -5, -5]),
    "net": np.array([-4.0, -3, -5, -6, -5, -7]),
}


def test_groups_are_factors_of_four_and_hold_what_their_range_says():
    frequencies = np.array([0, 1, 3, 4, 15, 16, 63, 64, 10**6])
    groups = frequency_groups(frequencies)
    assert groups.tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 10]
    assert all(low <= f <= high for f, (low, high) in zip(frequencies, map(group_range, groups), strict=True))


def test_gain_is_the_mean_over_the_tokens_of_a_group():
    rows = tabulate_gains(LN_PROB, "trigram", {"context": CONTEXT, "word": WORD})
    assert [(row["by"], row["frequency_lowest"], row["tokens"], row["gain"]) for row in rows] == [
        ("context", 0, 2, "1.50000"),
        ("context", 1, 2, "-0.50000"),
        ("context", 4, 1, "0.00000"),
        ("context", 64, 1, "-2.00000"),
        ("word", 4, 6, f"{(1 + 2 + 0 - 1 + 0 - 2) / 6:.5f}"),
    ]
    assert rows[0]["standard_error"] == f"{0.5 / np.sqrt(2):.5f}"


def row(name, valid, **cells):
    return dict.fromkeys(COLUMNS, "") | {"row": name, "scores": name, "valid_ppl": valid} | cells


def test_the_best_of_each_kind_are_shown_without_the_baseline():
    rows = [
        row("trigram", "300", family="n-gram"),
        row("kn", "310", family="n-gram"),
        row("net", "290", family="network", mix="no"),
        row("worse", "295", family="network", mix="no"),
        row("mixed", "250", family="network", mix="yes"),
        row("unrun", "not run", family="network", mix="yes"),
    ]
    assert models_to_show(rows, "trigram") == {
        "best network: net": "net",
        "best network mixture: mixed": "mixed",
        "best other n-gram: kn": "kn",
    }
    assert models_to_show(rows[:1], "trigram") == {}


def test_table_reads_back_and_is_drawn(tmp_path):
    write_gains(tmp_path / "gains.csv", tabulate_gains(LN_PROB, "trigram", {"context": CONTEXT, "word": WORD}))
    gains = read_gains(tmp_path / "gains.csv")
    figures.plot_gains(tmp_path / "gains.svg", gains, {"best network: net": "net"}, "trigram")
    text = (tmp_path / "gains.svg").read_text()
    assert all(f">{word}<" in text for word in ("best network: net", "1–3", "64–255"))
    with pytest.raises(InputError, match="no model but the baseline trigram"):
        figures.plot_gains(tmp_path / "none.svg", gains, {}, "trigram")
