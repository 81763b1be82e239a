import json
import math
from pathlib import Path

import pytest

from nplm.errors import InputError
from nplm.report import claims
from nplm.report.claims import Results, check_claims, read_claims, verdict, verdict_of_all
from nplm.report.table import COLUMNS, NOT_RUN
from nplm.significance import Interval

PAPER_CLAIMS = Path(__file__).parents[1] / "workflow/paper/claims_brown.yaml"
AP_NEWS_CLAIMS = PAPER_CLAIMS.with_name("claims_apnews.yaml")


def row(scores, valid, test, paper=("", ""), **cells):
    numbers = {"valid_ppl": valid, "test_ppl": test, "paper_valid_ppl": paper[0], "paper_test_ppl": paper[1]}
    return dict.fromkeys(COLUMNS, "") | {"scores": scores, "row": scores} | cells | numbers


NETWORK = {"family": "network", "mix": "no"}
TABLE = [
    row("small", "300", "290", ("310", "300"), **NETWORK, direct="yes"),
    row("large", "280", "270", ("290", "270"), **NETWORK, direct="no"),
    row("absent", NOT_RUN, NOT_RUN, ("295", "280"), **NETWORK, direct="no"),
    row("kn", "340", "330", ("350", "340"), family="n-gram", model="kneser_ney"),
    row("classes", "320", "340", ("360", "310"), family="n-gram", model="class_based"),
]
EPOCHS = [{"epoch": float(epoch), "valid_perplexity": abs(epoch - 4) + 1.0} for epoch in range(1, 8)]


def results(**changes):
    intervals = {
        ("small", "large"): Interval(1.07, 1.05, 1.09),
        ("classes", "large"): Interval(1.26, 0.99, 1.3),
        ("kn", "classes"): Interval(0.97, 0.95, 0.99),
    }
    comparisons = intervals | {(b, a): interval.inverse for (a, b), interval in intervals.items()}
    histories = {"small": EPOCHS, "large": EPOCHS}
    return Results(
        **{"experiment": {}, "table": TABLE, "extra": [], "comparisons": comparisons, "histories": histories, **changes}
    )


def check(*parts, **changes):
    claim = {"claim": "A claim.", "source": "section 4.2", "parts": [{"statement": "So.", **part} for part in parts]}
    return check_claims([claim], results(**changes))


@pytest.mark.parametrize(
    ("interval", "boundaries", "expected"),
    [
        ((1.05, 1.01, 1.10), {"above": 1}, "holds"),
        ((1.05, 1.00, 1.10), {"above": 1}, "undecided"),  # the boundary is in the interval
        ((1.05, 0.90, 1.10), {"above": 1}, "undecided"),
        ((0.95, 0.90, 0.99), {"above": 1}, "does not hold"),
        ((0.95, 0.90, 0.99), {"below": 1}, "holds"),
        ((1.05, 1.01, 1.10), {"below": 1}, "does not hold"),
        ((1.05, 1.01, 1.10), {"above": 1, "below": 1.2}, "holds"),
        ((1.05, 1.01, 1.30), {"above": 1, "below": 1.2}, "undecided"),
        ((2.00, 1.60, math.inf), {"above": 1.5}, "holds"),
        ((1.00, 0.00, 1.20), {"above": 1.5}, "does not hold"),
    ],
)
def test_a_verdict_needs_all_of_the_interval(interval, boundaries, expected):
    assert verdict(Interval(*interval), **boundaries) == expected


def test_a_claim_is_as_strong_as_its_weakest_part():
    assert verdict_of_all(["holds", "holds"]) == "holds"
    assert verdict_of_all(["holds", "undecided"]) == "undecided"
    assert verdict_of_all(["undecided", "not run", "holds"]) == "not run"
    assert verdict_of_all(["not run", "does not hold"]) == "does not hold"
    assert verdict_of_all([]) == "not run"


def test_a_ratio_of_named_rows():
    (part,) = check({"quantity": "ratio", "row": "small", "to": "large", "above": 1})
    assert (part["verdict"], part["claim_verdict"], part["rows"]) == ("holds", "holds", "small large")
    assert (part["ours"], part["low"], part["high"]) == ("1.0700", "1.0500", "1.0900")
    assert part["paper"] == f"{300 / 270:.4f}"


def test_the_best_rows_are_chosen_on_validation_ours_and_the_papers_each_by_its_own():
    best = {"quantity": "ratio", "row": {"best": {"family": "n-gram"}}, "to": {"best": NETWORK}, "above": 1}
    (part,) = check(best)
    assert part["rows"] == "classes large", "not kn, which is better on test"
    assert part["paper"] == f"{340 / 270:.4f}", "the paper's best n-gram by its validation is kn"
    assert part["verdict"] == "undecided"


def test_rows_that_the_paper_lacks_count_only_where_the_claim_says_so():
    extra = [row("better", "310", "305", family="n-gram")]
    better = {("better", "large"): Interval(1.1, 1.05, 1.2)}
    part = {"quantity": "ratio", "row": {"best": {"family": "n-gram"}}, "to": "large", "above": 1}
    among_all = {**part, "row": {**part["row"], "among": "all"}}
    comparisons = results().comparisons | better
    here, all_rows = check(part, among_all, extra=extra, comparisons=comparisons)
    assert (here["rows"], all_rows["rows"]) == ("classes large", "better large")
    assert all_rows["paper"] == "" and "best of all rows with family n-gram" in all_rows["quantity"]


def test_a_cell_may_have_one_of_several_values():
    (part,) = check(
        {
            "quantity": "ratio",
            "row": {"best": {"model": ["kneser_ney", "other"]}},
            "to": {"best": {"model": "class_based"}},
            "above": 1,
        }
    )
    assert (part["rows"], part["verdict"]) == ("kn classes", "does not hold")


@pytest.mark.parametrize(
    ("part", "note"),
    [
        ({"quantity": "ratio", "row": "absent", "to": "large", "above": 1}, "needs the row absent"),
        ({"quantity": "ratio", "row": "unheard", "to": "large", "above": 1}, "needs the row unheard"),
        ({"quantity": "ratio", "row": {"best": {"c": "9"}}, "to": "kn", "above": 1}, "needs best row with c 9"),
        (
            {"quantity": "epochs", "row": "kn", "to": "large", "above": 1},
            "needs the training of kn, which is no network",
        ),
        ({"quantity": "communication", "below": 0.1}, "no network was trained by several ranks"),
        ({"elsewhere": "AP News"}, "needs AP News, another experiment"),
    ],
)
def test_what_was_not_run_is_said(part, note):
    (checked,) = check(part)
    assert checked["verdict"] == checked["claim_verdict"] == NOT_RUN
    assert note in checked["note"]


def test_what_another_corpus_decides_does_not_count_here():
    parts = check({"quantity": "ratio", "row": "small", "to": "large", "above": 1}, {"elsewhere": "AP News"})
    assert [part["verdict"] for part in parts] == ["holds", "not run"]
    assert {part["claim_verdict"] for part in parts} == {"holds"}


def test_epochs_are_known_to_half_an_epoch_and_seeds_widen_them():
    part = {"quantity": "epochs", "row": "large", "to": "small", "above": 0.7}
    (one,) = check(part)
    assert (one["ours"], one["low"], one["high"]) == ("1.0000", f"{3.5 / 4.5:.4f}", f"{4.5 / 3.5:.4f}")
    later = [{**epoch, "epoch": epoch["epoch"] + 2} for epoch in EPOCHS]
    (two,) = check(
        part,
        experiment={"replicas": {"large": ["large", "large.seed2"]}},
        histories={"small": EPOCHS, "large": EPOCHS, "large.seed2": later},
    )
    assert (two["ours"], two["low"], two["high"]) == ("1.2500", f"{3.5 / 4.5:.4f}", f"{6.5 / 3.5:.4f}")


def test_a_training_that_was_still_gaining_leaves_its_side_open():
    gaining = EPOCHS[:4]
    part = {"quantity": "epochs", "row": "large", "to": "small", "above": 1.5}
    assert check(part, histories={"small": EPOCHS, "large": gaining})[0]["high"] == "inf"
    assert check(part, histories={"small": gaining, "large": EPOCHS})[0]["low"] == "0.0000"


def test_communication_is_a_share_of_the_seconds_of_parallel_epochs_only():
    epochs = [
        {"epoch": 1.0, "ranks": 2.0, "seconds_training": 10.0, "seconds_communication": 1.0},
        {"epoch": 2.0, "ranks": 2.0, "seconds_training": 30.0, "seconds_communication": 1.5},
        {"epoch": 3.0, "ranks": 1.0, "seconds_training": 50.0, "seconds_communication": 0.0},
    ]
    (part,) = check({"quantity": "communication", "below": 0.15}, histories={"large": epochs, "small": EPOCHS})
    assert (part["ours"], part["low"], part["high"]) == ("0.0625", "0.0500", "0.1000")
    assert (part["rows"], part["verdict"]) == ("large", "holds")


def test_on_another_corpus_the_ledger_says_whose_claims_and_whose_numbers_they_are(tmp_path):
    part = {"quantity": "ratio", "row": "small", "to": "large", "above": 1}
    named = {"table": {"corpora": {"ours": "Fairy Tales", "paper": "AP News"}}}
    claims.write_ledger(tmp_path, check(part, experiment=named))
    assert claims.read_ledger(tmp_path / "claims.csv")[0]["corpus"] == "Fairy Tales"
    text = (tmp_path / "claims.md").read_text()
    assert text.startswith("# Do the paper's claims of AP News carry over to Fairy Tales?\n")
    assert "neither confirms nor refutes what the paper says of AP News" in text and "| paper (AP News) |" in text
    claims.write_ledger(tmp_path, check(part))
    assert (tmp_path / "claims.md").read_text().startswith("# Does the paper hold?\n\nVerdicts on 1 claims")


def test_the_claims_of_ap_news_are_borne_out_by_the_papers_own_numbers():
    from nplm.report.table import read_paper, tabulate

    experiment = {"models": {}, "mixtures": {}, "exclude": [], "table": {"baseline": "deleted_interpolation"}}
    table, extra = tabulate(experiment, read_paper(AP_NEWS_CLAIMS.with_name("table2_apnews.csv")), [])
    stated = read_claims(AP_NEWS_CLAIMS)
    ledger = check_claims(stated, Results(experiment, table, extra, {}, {}))
    parts = [part for claim in stated for part in claim["parts"]]
    checked = {part["statement"]: part["paper"] for part in ledger}
    assert checked["A Kneser-Ney model with n = 5 is better than one with n = 3."] == f"{127 / 117:.4f}"
    for part in parts:
        if "quantity" in part and (value := checked[part["statement"]]):
            boundaries = {key: part[key] for key in ("above", "below") if key in part}
            assert verdict(Interval(*[float(value)] * 3), **boundaries) == "holds", part["statement"]


def test_the_seven_claims_of_the_paper_are_read_and_its_own_numbers_bear_most_of_them_out():
    from nplm.report.table import read_paper, tabulate

    experiment = {"models": {}, "mixtures": {}, "exclude": [], "table": {"baseline": "deleted_interpolation"}}
    table, extra = tabulate(experiment, read_paper(PAPER_CLAIMS.with_name("table1_brown.csv")), [])
    ledger = check_claims(read_claims(PAPER_CLAIMS), Results(experiment, table, extra, {}, {}))
    assert {part["claim"] for part in ledger} == set("1234567")
    assert {part["verdict"] for part in ledger} == {NOT_RUN}
    paper = {f"{part['claim']}.{part['part']}": part["paper"] for part in ledger}
    assert (paper["1.1"], paper["1.2"]) == (f"{312 / 252:.4f}", f"{336 / 252:.4f}")
    assert paper["6.2"] == f"{321 / 312:.4f}"
    parts = {
        f"{number}.{place}": part
        for number, claim in enumerate(read_claims(PAPER_CLAIMS), start=1)
        for place, part in enumerate(claim["parts"], start=1)
    }
    for place, value in paper.items():
        if value and "quantity" in parts[place]:
            boundaries = {key: parts[place][key] for key in ("above", "below") if key in parts[place]}
            assert verdict(Interval(*[float(value)] * 3), **boundaries) == "holds", place


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "quantity: ratio",
            "quantity: ration",
            r"claim 1\.parts\.1\.quantity: 'ration' is not one of \['ratio', 'epochs'",
        ),
        ("quantity: ratio", "quantity: [ratio]", r"claim 1\.parts\.1\.quantity: \['ratio'\] is not one of"),
        ("above: 1.19", "abvoe: 1.19", r"claim 1\.parts\.1: unknown key 'abvoe'; known: statement, "),
        ("above: 1.19", "paper: 1.19", r"claim 1\.parts\.1: no boundary; give above or below"),
        ("above: 1.19", "above:", r"parts\.1\.above: None is not of type 'number'"),
        ("above: 1.19", "above: 19 %", r"parts\.1\.above: '19 %' is not of type 'number'"),
        ("row: {best: {family: n-gram}}", "", r"claim 1\.parts\.1: 'row' is a required property"),
        ("{family: n-gram}", "{famly: n-gram}", r"parts\.1\.row\.best: 'famly' is not one of \['row', 'model'"),
        (
            'mix: "yes"',
            "mix: yes",
            r"parts\.1\.to\.best\.mix: True is not of type 'string', 'array'; write it in quotes",
        ),
        ("n-gram}, among: all", "n-gram}, among: every", r"parts\.4\.row\.among: 'all' was expected"),
        ("source:", "sauce:", "claim 1: 'source' is a required property"),
        ("- claim:", "- claim: [", "not YAML"),
    ],
)
def test_a_mistake_in_the_claims_is_named(tmp_path, old, new, message):
    (tmp_path / "claims.yaml").write_text(PAPER_CLAIMS.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_claims(tmp_path / "claims.yaml")


@pytest.mark.parametrize("text", ["", "claim: one", "- one"])
def test_a_file_that_holds_no_claims_is_refused(tmp_path, text):
    (tmp_path / "claims.yaml").write_text(text)
    with pytest.raises(InputError, match=r"claims\.yaml: .* is not of type"):
        read_claims(tmp_path / "claims.yaml")


def test_a_row_is_as_good_as_itself():
    best = {"best": {"family": "n-gram"}}
    (part,) = check({"quantity": "ratio", "row": best, "to": "classes", "above": 1})
    assert (part["rows"], part["ours"], part["verdict"]) == ("classes classes", "1.0000", "undecided")


def test_a_ledger_reads_back_and_shows_every_verdict(tmp_path):
    ledger = check(
        {"quantity": "ratio", "row": "small", "to": "large", "above": 1},
        {"quantity": "ratio", "row": "absent", "to": "large", "above": 1},
    )
    claims.write_ledger(tmp_path, ledger)
    assert claims.read_ledger(tmp_path / "claims.csv") == ledger
    text = (tmp_path / "claims.md").read_text()
    assert "Verdicts on 1 claims: holds 0, does not hold 0, undecided 0, not run 1." in text
    assert "| 1 holds, 1 not run |" in text and "1.070 (1.050–1.090)" in text
    assert json.dumps(ledger)  # plain text all through
