import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from html import unescape

import numpy as np
import pytest
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from nplm.cli import app
from nplm.errors import InputError
from nplm.mixture import Mixture, read_context_bins, write_mixture
from nplm.ngram import deleted_interpolation
from nplm.perplexity import Perplexity
from nplm.report import claims, corpus_card, figures, latex, page, provenance, table_formats
from nplm.report.history import read_histories
from nplm.report.markdown import escape, markdown_table
from nplm.report.mixture_table import mixture_weights_markdown, tabulate_mixture_weights, trigram_mixture
from nplm.report.style import HATCHES, SHADES
from nplm.report.table import NOT_RUN, PAPER_COLUMNS, read_paper, read_table, tabulate
from nplm.significance import Interval, write_comparisons
from nplm.streams import Split

PAPER = """\
scores,model,row,n,c,h,m,direct,mix,train_ppl,valid_ppl,test_ppl
net,mlp,NET,5,,50,60,yes,no,180,290,270
net_mix,mlp,NET mixed,5,,50,60,yes,yes,,260,250
other_mix,mlp,OTHER mixed,5,,50,60,yes,yes,,265,245
trigram,deleted_interpolation,Del. Int.,3,,,,,,31,350,340
kn3,kneser_ney,Kneser-Ney back-off,3,,,,,,,330,320
kn4,kneser_ney,Kneser-Ney back-off,4,,,,,,,331,300
classes,class_based,class_based & 100%,3,500,,,,,,340,330
"""
EXPERIMENT = {
    "models": {
        "trigram": {"kind": "deleted_interpolation"},
        "kn3": {"kind": "kneser_ney", "n": 3, "smoothing": "backoff"},
        "kn4": {"kind": "kneser_ney", "n": 4, "smoothing": "backoff"},
        "kn5": {"kind": "kneser_ney", "n": 5, "smoothing": "interpolated", "cutoffs": [1, 2]},
        "net": {"kind": "nplm", "n": 5, "h": 50, "m": 60, "direct": True},
        "other": {"kind": "nplm", "n": 5, "h": 50, "m": 60, "direct": True},
    },
    "mixtures": {
        "net_mix": {"components": ["net", "trigram"], "weights": "fixed"},
        "other_mix": {"components": ["other", "trigram"], "weights": "fixed"},
        "net_learned": {"components": ["net", "kn5"], "weights": "learned"},
        "ngrams": {"components": ["kn5", "trigram"], "weights": "binned"},
    },
    "exclude": ["other"],
    "table": {"name": "table1", "paper": "paper.csv", "corpus": None, "baseline": "trigram"},
    "training": {"epsilon_0": 0.005},
}
VALID = {
    "trigram": 360, "kn3": 340, "kn4": 341, "kn5": 338, "net": 300, "net_mix": 280, "net_learned": 270, "ngrams": 345,
}  # fmt: skip


def perplexities(valid=VALID):
    import math

    factors = {"train": 0.5, "valid": 1, "test": 0.9}
    return [
        Perplexity(model, split, 100, -math.log(value * factor))
        for model, value in valid.items()
        for split, factor in factors.items()
    ]


@pytest.fixture
def paper(tmp_path):
    (tmp_path / "paper.csv").write_text(PAPER)
    return read_paper(tmp_path / "paper.csv")


@pytest.fixture
def tables(paper):
    return tabulate(EXPERIMENT, paper, perplexities())


def row_of(rows, scores):
    return next(row for row in rows if row["scores"] == scores)


def test_table_has_the_papers_rows_in_its_order(tables, paper):
    table, _ = tables
    assert [row["row"] for row in table] == [row["row"] for row in paper]
    assert {k: v for k, v in row_of(table, "kn3").items() if v} == {
        "row": "Kneser-Ney back-off",
        "model": "kneser_ney",
        "variant": "backoff",
        "n": "3",
        "train_ppl": "170.0000",
        "valid_ppl": "340.0000",
        "test_ppl": "306.0000",
        "paper_valid_ppl": "330",
        "paper_test_ppl": "320",
        "ratio_to_baseline": "0.9444",
        "seeds": "1",
        "paper_ratio_to_baseline": "0.9412",
        "family": "n-gram",
        "scores": "kn3",
    } | {"best_on_validation": "n-gram"}


def test_rows_that_are_not_run_say_so(tables):
    table, _ = tables
    for scores in ("other_mix", "classes"):  # one needs an excluded model, the other is not configured
        row = row_of(table, scores)
        ours = ("train_ppl", "valid_ppl", "test_ppl", "ratio_to_baseline")
        assert {row[column] for column in ours} == {NOT_RUN}
        assert row["paper_test_ppl"] and row["paper_ratio_to_baseline"]


def test_a_split_that_nothing_was_scored_on_is_empty_rather_than_not_run(paper):
    scored = [p for p in perplexities() if p.split != "train"]
    table, extra = tabulate(EXPERIMENT, paper, scored)
    assert {row["train_ppl"] for row in table + extra} == {""}
    assert row_of(table, "other_mix")["test_ppl"] == NOT_RUN
    assert "| train |" not in table_formats.extra_markdown(EXPERIMENT, table, extra)


def test_class_based_rows_have_their_number_of_classes_whether_or_not_the_paper_has_them(paper, tmp_path):
    models = {
        f"class{c}_{smoothing}": {"kind": "class_ngram", "classes": c, "n": 3, "smoothing": smoothing}
        for c in (100, 200)
        for smoothing in ("backoff", "interpolated")
    }
    experiment = {**EXPERIMENT, "models": EXPERIMENT["models"] | models}
    scored = perplexities(VALID | {name: 350 + number for number, name in enumerate(models)})
    for rows in (paper, []):
        table, extra = tabulate(experiment, rows, scored)
        row = row_of(extra or table, "class200_backoff")
        assert (row["c"], row["variant"]) == ("200", "backoff")
        figures.plot_classes(tmp_path / "classes.svg", [*table, *extra])
        words = text_of(tmp_path / "classes.svg")
        assert {"ours, n = 3, backoff", "ours, n = 3, interpolated", "100", "200"} <= set(words)
        assert ("paper, n = 3" in words) == bool(rows)


def test_another_number_of_epochs_than_the_papers_is_told(paper):
    experiment = {**EXPERIMENT, "training": {"epochs": 1}}
    rows = [{**row, "epochs": "5" if row["model"] == "mlp" else ""} for row in paper]
    table, _ = tabulate(experiment, rows, perplexities())
    assert row_of(table, "net")["differs"] == row_of(table, "net_mix")["differs"] == "here epochs = 1 at most"
    assert row_of(table, "trigram")["differs"] == ""
    experiment["models"] = EXPERIMENT["models"] | {"net": EXPERIMENT["models"]["net"] | {"epochs": 5}}
    assert row_of(tabulate(experiment, rows, perplexities())[0], "net")["differs"] == ""


def test_names_show_as_they_are_in_markdown(tmp_path):
    name = "Zq _a_ *b* [c] <d> | `e` &lt; ~~f~~"
    (tmp_path / "paper.csv").write_text(
        PAPER.replace("Del. Int.", f'"{name}\n"').replace("NET mixed", name).replace("OTHER mixed", name)
    )
    paper = read_paper(tmp_path / "paper.csv")
    experiment = {**EXPERIMENT, "table": {**EXPERIMENT["table"], "corpora": {"ours": name, "paper": name}}}
    tables = tabulate(experiment, paper, perplexities())
    ledger = [{**dict.fromkeys(claims.COLUMNS, ""), "corpus": name, "paper_corpus": name}]
    table_formats.write_table(tmp_path, experiment, tables[0])
    claims.write_ledger(tmp_path, ledger)
    texts = [
        (tmp_path / "table1.md").read_text(),
        (tmp_path / "claims.md").read_text(),
        page.page(name, {name: page.summary_markdown(experiment, *tables)}),
    ]
    for text in texts:
        html = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).render(text)
        shown = unescape(re.sub(r"</?(strong|td|th|tr|h[12]|li|p)\b[^>]*>", "", html))
        assert 4 < shown.count("Zq") == shown.count(name)


def test_numbers_of_another_corpus_are_named_where_the_two_meet(paper, tmp_path):
    named = {"ours": "Fairy & Tales", "paper": "AP News"}
    experiment = {**EXPERIMENT, "table": {**EXPERIMENT["table"], "corpora": named}}
    tables = tabulate(experiment, paper, perplexities())
    text = table_formats.table_markdown(experiment, tables[0])
    assert text.startswith("**The paper's numbers are of AP News; ours are of Fairy & Tales, another corpus")
    assert "| paper (AP News): test |" in text and "Corpus, vocabulary and splits are not exactly" not in text
    assert table_formats.table_title(tables[0]) == "Perplexity on Fairy & Tales beside the paper's on AP News"
    latex_text = table_formats.table_latex(experiment, tables[0])
    assert r"{ours (Fairy \& Tales)}" in latex_text and "{paper (AP News)}" in latex_text
    assert "paper (AP News)" in page.summary_markdown(experiment, *tables)
    figures.plot_perplexity(tmp_path / "p.svg", tables)
    assert {"ours (Fairy & Tales)", "paper (AP News)"} <= set(text_of(tmp_path / "p.svg"))


def test_networks_that_were_still_improving_are_named():
    records = [
        {"network": "short", "epochs": 1, "chosen_epoch": 1},
        {"network": "long", "epochs": 9, "chosen_epoch": 9},
        {"network": "done", "epochs": 9, "chosen_epoch": 5},
    ]
    assert page.training_note(records).endswith(": short (1 epoch), long (9 epochs).\n")
    assert page.training_note(records[2:]) == ""


def test_everything_else_that_is_configured_is_in_the_extra_table(tables):
    _, extra = tables
    assert [row["row"] for row in extra] == ["kn5", "other", "net_learned", "ngrams"]
    assert row_of(extra, "other")["test_ppl"] == NOT_RUN
    assert row_of(extra, "kn5")["variant"] == "interpolated, cutoffs = 1 2"
    mixture = row_of(extra, "net_learned")
    assert (mixture["variant"], mixture["weights"], mixture["mix"]) == ("net + kn5", "learned", "yes")
    assert (mixture["n"], mixture["h"], mixture["m"], mixture["direct"]) == ("5", "50", "60", "yes")


def test_a_row_added_to_the_configuration_is_a_row_of_the_table(paper):
    more = {**EXPERIMENT, "models": {**EXPERIMENT["models"], "kn7": {"kind": "kneser_ney", "n": 7}}}
    _, extra = tabulate(more, paper, perplexities({**VALID, "kn7": 333}))
    assert row_of(extra, "kn7")["valid_ppl"] == "333.0000"


def test_best_is_chosen_on_validation_and_marked(tables):
    table, extra = tables
    marked = {row["scores"]: row["best_on_validation"] for row in table + extra if row["best_on_validation"]}
    assert marked == {
        "net_mix": "network mixture",
        "net_learned": "network mixture",  # better than the best of the paper's rows
        "kn3": "n-gram",
        "kn5": "n-gram",
    }


def test_mixture_of_ngrams_is_no_network(tables):
    _, extra = tables
    assert row_of(extra, "ngrams")["family"] == "n-gram"
    assert row_of(extra, "net_learned")["family"] == "network"


def test_model_that_is_not_the_papers_is_told(paper):
    changed = json.loads(json.dumps(EXPERIMENT))
    changed["models"]["net"]["h"] = 20
    changed["mixtures"]["net_mix"]["weights"] = "learned"
    table, _ = tabulate(changed, paper, perplexities())
    assert row_of(table, "net")["differs"] == "here h = 20"
    assert row_of(table, "net_mix")["differs"] == "here h = 20, here weights = learned"
    assert row_of(table, "trigram")["differs"] == ""
    assert "here h = 20" in table_formats.table_markdown(changed, table)


def test_missing_perplexity_is_an_error_and_not_a_row_that_was_not_run(paper):
    without = [p for p in perplexities() if (p.model, p.split) != ("kn4", "test")]
    with pytest.raises(InputError, match="no perplexity of kn4 on test; evaluate it, or exclude it"):
        tabulate(EXPERIMENT, paper, without)


def test_perplexity_of_what_is_not_run_is_an_error(paper):
    with pytest.raises(InputError, match="perplexity of other, which the configuration does not run"):
        tabulate(EXPERIMENT, paper, perplexities({**VALID, "other": 300}))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("290", "29O", "line 2: valid_ppl is '29O'"),
        ("290", "0", "line 2: valid_ppl is '0'"),
        ("3,500", '3,"1,000"', "line 8: c is '1,000'"),
        ("yes,no", "Yes,no", "line 2: direct is 'Yes'; give yes or no"),
        ("kn4,", "kn3,", "line 7: a second row of 'kn3'"),
        (",mlp,", ",MLP,", "line 2: model is 'MLP'; write 'mlp'"),
    ],
)
def test_paper_cell_that_its_column_cannot_hold_is_named_with_its_line(tmp_path, old, new, message):
    (tmp_path / "paper.csv").write_text(PAPER.replace(old, new, 1))
    with pytest.raises(InputError, match=rf"paper\.csv, {message}"):
        read_paper(tmp_path / "paper.csv")


def test_the_papers_ratios_are_empty_where_it_has_no_perplexity_of_the_baseline(paper):
    rows = [row | ({"test_ppl": ""} if row["scores"] == "trigram" else {}) for row in paper]
    table, _ = tabulate(EXPERIMENT, rows, perplexities())
    assert {row["paper_ratio_to_baseline"] for row in table} == {""}


def test_without_a_paper_all_rows_are_in_the_table():
    table, extra = tabulate(EXPERIMENT, [], perplexities())
    assert len(table) == 10 and extra == []
    text = table_formats.table_markdown(EXPERIMENT, table) + page.summary_markdown(EXPERIMENT, table, extra)
    assert "paper" not in text
    assert "| net_learned" in text


def test_an_experiment_without_a_paper_has_no_rows_that_are_not_run(tmp_path):
    experiment = {**EXPERIMENT, "table": {**EXPERIMENT["table"], "paper": None}}
    table, extra = tabulate(experiment, [], perplexities())
    assert [row["scores"] for row in table] == list(VALID) and extra == []
    assert NOT_RUN not in {cell for row in table for cell in row.values()}
    table, _ = tabulate({**experiment, "only": ["kn4"]}, [], perplexities({"trigram": 360, "kn4": 341}))
    assert [row["scores"] for row in table] == ["trigram", "kn4"]
    with pytest.raises(InputError, match="perplexity of kn3, which the configuration does not run"):
        tabulate({**experiment, "only": ["kn4"]}, [], perplexities())


def test_only_some_rows_beside_a_paper_leave_the_others_as_not_run(paper):
    scored = {name: VALID[name] for name in ("trigram", "net", "net_mix")}
    table, extra = tabulate({**EXPERIMENT, "only": ["net_mix"]}, paper, perplexities(scored))
    ran = {row["scores"] for row in table + extra if row["test_ppl"] != NOT_RUN}
    assert ran == scored.keys()
    assert len(table) == 7 and row_of(extra, "kn5")["test_ppl"] == NOT_RUN


def test_csv_reads_back(tmp_path, tables):
    table_formats.write_table(tmp_path, EXPERIMENT, tables[0])
    table_formats.write_extra(tmp_path, EXPERIMENT, *tables)
    assert read_table(tmp_path / "table1.csv") == tables[0]
    assert read_table(tmp_path / "extra.csv") == tables[1]


def test_markdown_marks_the_best_and_rounds(tables):
    text = table_formats.table_markdown(EXPERIMENT, tables[0])
    line = next(line for line in text.splitlines() if "NET mixed" in line)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[0] == "**NET mixed**"
    assert "**252.0**" in cells and "**0.778**" in cells and "**250**" in cells
    assert "2 of 7 rows were not run, as the configuration lacks or excludes them: OTHER mixed, class_based" in text


def test_markdown_columns_are_aligned():
    text = markdown_table(["name", "x|y"], [["a", "1"], ["longer", "22"]])
    assert text == "| name   | x\\|y |\n| ------ | ---: |\n| a      |    1 |\n| longer |   22 |\n"


@pytest.mark.parametrize(
    "word", ["``", "*", "_x_", "<s>", "&amp;", "a|b", "\\", "[1]", "~~", "snake_case", "$", "it's"]
)
def test_a_word_is_itself_in_markdown(word):
    text = markdown_table(["word", "words"], [[escape(word), f"{escape(word)} 0.50, {escape(word)} 0.25"]], left=2)
    page = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).render(text)
    cells = [unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", page)]
    assert cells == [word, f"{word} 0.50, {word} 0.25"]
    assert ("\\" in text) == (word not in ("snake_case", "$", "it's"))


def test_latex_is_one_balanced_booktabs_table(paper):
    text = table_formats.table_latex(EXPERIMENT, tabulate(EXPERIMENT, paper, perplexities(), COMPARISONS)[0])
    header = text.split("\\toprule\n")[1].split("\\midrule")[0].strip().splitlines()[-1]
    assert r"95 \% of ratio" in header and not re.search(r"(?<!\\)%", header), "a comment ends a line's cells"
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
    columns = len(re.search(r"\\begin\{tabular\}\{(\w+)\}", text)[1])
    body = text.split(r"\midrule\n".replace(r"\n", "\n"))[1].split(r"\bottomrule")[0].strip().splitlines()
    assert len(body) == 7
    assert {len(re.findall(r"(?<!\\)&", line)) for line in (header, *body)} == {columns - 1}
    assert sum(map(int, re.findall(r"\\multicolumn\{(\d+)\}", text))) == columns
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert r"class\_based \& 100\%" in text
    assert not re.findall(r"(?<!\\)%", text.split(r"\toprule")[1]), "a comment would swallow the rest of its line"


def test_latex_escapes_every_special_character():
    assert latex.escape(r"a_b&c%$#{}~^\d") == (r"a\_b\&c\%\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}d")
    assert latex.escape("<s>|[*]") == r"\textless{}s\textgreater{}\textbar{}{[}{*}]"


def test_summary_compares_the_best_of_each_kind_on_test(tables):
    text = page.summary_markdown(EXPERIMENT, *tables)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    column = {line[0]: line[1:] for line in cells}
    assert column["best network mixture"] == ["NET mixed", "NET mixed", "net_learned"]
    # The paper's best are those with the lowest validation perplexity, not the lowest on test.
    assert column["best network mixture, test"] == ["250", "252.0", "243.0"]
    assert column["best n-gram"] == ["Kneser-Ney back-off, n=3", "Kneser-Ney back-off, n=3", "kn5"]
    assert column["best n-gram above best network mixture, test"] == ["28.0 %", "21.4 %", "25.2 %"]
    assert column["baseline above best network mixture, test"] == ["36.0 %", "28.6 %", "33.3 %"]


def test_summary_of_a_run_without_networks_says_so(paper):
    ngrams_only = {**EXPERIMENT, "exclude": ["net", "other"]}
    tables = tabulate(ngrams_only, paper, perplexities({m: v for m, v in VALID.items() if "net" not in m}))
    text = page.summary_markdown(ngrams_only, *tables)
    assert "above that of the best network mixture by 28.0 % (paper), not run (ours" in text


def test_corpus_table_stands_beside_the_papers_counts():
    card = {"tokens": 1161192, "source": "path /home/somebody/brown", "marks": [], "train_rare_rate": 0.0492, "new": 1}
    rows = corpus_card.tabulate_corpus(card, {"tokens": "1181041"})
    assert [(row["ours"], row["paper"]) for row in rows] == [
        ("1161192", "1181041"), ("path …/brown", ""), ("none", ""), ("0.0492", ""), ("1", "")
    ]  # fmt: skip
    text = corpus_card.corpus_markdown(rows)
    assert "1,161,192 | 1,181,041" in text and "4.92 %" in text and "| new " in text


def test_corpus_table_shows_what_the_mapping_changed():
    card = {
        "mapping_proper_noun_thresholds": {"share": 0.85, "count": 1},
        "numbers_tokens_changed": 2019,
        "numbers_types_changed": 7,
        "numbers_symbols": ["<year> (2016)", "<money> (3)"],
        "numbers_examples": ["1995 → <year> (1234)", "`80s → <year> (2)"],
        "lower_case_tokens_changed": 0,
        "lower_case_types_changed": 0,
        "lower_case_examples": [],
        "rare_threshold": None,
    }
    rows = corpus_card.tabulate_corpus(card, {})
    assert [row["ours"] for row in rows] == [
        "share 0.85; count 1",
        "2019",
        "7",
        "<year> (2016); <money> (3)",
        "1995 → <year> (1234); `80s → <year> (2)",
        "0",
        "0",
        "none",
        "none",
    ]
    table, changes = corpus_card.corpus_markdown(rows).split("What the mapping changed")
    assert "share 0.85" in table and "2,019" not in table
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in changes.splitlines() if line.startswith("|")]
    assert cells[2:] == [
        ["numbers", "2,019", "7", "`1995 → <year>` 1,234, `` `80s → <year> `` 2"],
        ["lower case", "0", "0", "none"],
    ]
    assert "The numbers by their form: `<year>` 2,016, `<money>` 3.\n" in changes


def test_paper_count_that_the_card_lacks_is_refused():
    with pytest.raises(InputError, match="'token' is not on the corpus card"):
        corpus_card.tabulate_corpus({"tokens": 1}, {"token": "1"})


SPLITS = {"train": slice(0, 400), "valid": slice(400, None)}
MIXTURES = [
    Mixture("half", "fixed", ["net", "trigram"], [[0.5, 0.5]], [0.5, 0.5], [100], None, [-5.0], "hash", "valid"),
    Mixture(
        name="by_bin",
        kind="binned",
        components=["net", "trigram"],
        weights=[[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]],
        pooled_weights=[0.6, 0.4],
        tokens_per_bin=[0, 40, 60],
        frequency_range_per_bin=[None, [3, 9], [0, 0]],
        mean_ln_prob_per_iteration=[-5.0, -4.9],
        vocabulary="hash",
        fitted_on="valid",
    ),
]


def test_mixture_weights_are_listed_by_bin_rare_contexts_first():
    rows = tabulate_mixture_weights(MIXTURES)
    assert [(r["mixture"], r["bin"], r["tokens"], r["weight"]) for r in rows if r["component"] == "net"] == [
        ("half", "", 100, "0.500000"),
        ("by_bin", 2, 60, "0.900000"),
        ("by_bin", 1, 40, "0.250000"),
        ("by_bin", "pooled", 0, "0.600000"),
    ]
    text = mixture_weights_markdown([{column: str(cell) for column, cell in row.items()} for row in rows])
    assert re.search(r"by_bin .* 0\.250 \+ 0\.750 \| +1 \| +3–9 \| +40 \|", text)


def test_interpolated_trigram_is_listed_as_the_mixture_that_it_is(tmp_path):
    words = np.random.default_rng(1).integers(0, 4, 500).astype(np.uint8)
    train, valid = (Split(name, words[part], words[:0], "hash", 4) for name, part in SPLITS.items())
    model = deleted_interpolation.fit(train, valid)
    deleted_interpolation.write_context_bins(tmp_path / "bins", train, valid)
    rows = tabulate_mixture_weights([trigram_mixture("Del. Int.", model, read_context_bins(tmp_path / "bins"))])
    seen = [b for b in reversed(range(len(model.weights))) if model.valid_tokens_per_bin[b]]
    bigram = [(row["bin"], row["weight"]) for row in rows if row["component"] == "bigram" and row["bin"] != "pooled"]
    assert bigram == [(b, f"{model.weights[b][2]:.6f}") for b in seen]
    assert sum(float(row["weight"]) for row in rows if row["bin"] == seen[0]) == pytest.approx(1, abs=1e-5)
    deleted_interpolation.write_context_bins(tmp_path / "bins", train, train)
    with pytest.raises(InputError, match="give the context bins of valid"):
        trigram_mixture("Del. Int.", model, read_context_bins(tmp_path / "bins"))


@pytest.mark.parametrize(
    ("arguments", "message"), [((), "no mixture to list"), (("--trigram", "m"), "--trigram needs the context bins")]
)
def test_a_table_of_no_mixture_and_a_trigram_without_bins_are_refused(tmp_path, run, capsys, arguments, message):
    assert run("tabulate-mixture-weights", *arguments, "--output-directory", tmp_path) == 1
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


HISTORY = """\
epoch,train_perplexity,valid_perplexity,precision,seconds_training,seconds_communication,best
1,900.0,500.0,float32,10.5,1.0,0
2,400.0,350.0,float32,10.0,1.5,1
3,300.0,360.0,float32,10.0,1.5,0
"""


@pytest.fixture
def histories(tmp_path):
    paths = [tmp_path / network / "history.csv" for network in ("net", "other")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(HISTORY)
    return read_histories(paths)


def text_of(path):
    """The words in an SVG file, which parses as XML."""
    return [element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture
def drawings(tables, histories):
    weights = [{k: str(v) for k, v in row.items()} for row in tabulate_mixture_weights(MIXTURES)]
    return {
        "learning_curves": lambda path: figures.plot_learning_curves(path, histories),
        "perplexity": lambda path: figures.plot_perplexity(path, tables),
        "mixture_weights": lambda path: figures.plot_mixture_weights(path, weights),
        "classes": lambda path: figures.plot_classes(path, tables[0]),
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("learning_curves", ["net: 350.0 on validation after epoch 2", "chosen epoch", "validation"]),
        ("perplexity", ["Kneser-Ney back-off, n=4", "kn5", "net_learned", "ours", "paper"]),
        ("mixture_weights", ["net in by_bin", "0", "3–9"]),
        ("classes", ["500", "paper, n = 3"]),
    ],
)
def test_figure_says_what_it_shows_as_text_and_is_the_same_every_time(tmp_path, drawings, name, words):
    drawings[name](tmp_path / "first.svg")
    drawings[name](tmp_path / "second.svg")
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()
    assert set(words) <= set(text_of(tmp_path / "first.svg"))


def test_one_epoch_has_one_whole_number_on_its_axis(tmp_path):
    histories = {"net": [{"epoch": 1, "train_perplexity": 120.0, "valid_perplexity": 119.0}]}
    figures.plot_learning_curves(tmp_path / "l.svg", histories)
    assert "1" in text_of(tmp_path / "l.svg")
    assert not {"0.9", "1.0", "1.1"} & set(text_of(tmp_path / "l.svg"))


def test_an_axis_of_a_narrow_range_has_several_labels(tmp_path):
    epochs = [{"epoch": epoch, "train_perplexity": 93.0, "valid_perplexity": 120.0 - epoch} for epoch in (1, 2)]
    figures.plot_learning_curves(tmp_path / "l.svg", {"net": epochs})
    assert {"100", "110"} <= set(text_of(tmp_path / "l.svg"))


def test_no_two_of_the_eleven_phases_of_an_epoch_look_alike():
    assert len(set(zip(SHADES, HATCHES, strict=True))) >= 11


def test_row_far_worse_than_the_others_is_written_at_the_edge(tmp_path, paper):
    tables = tabulate(EXPERIMENT, paper, perplexities({**VALID, "kn5": 2000}))
    figures.plot_perplexity(tmp_path / "p.svg", tables)
    assert "ours: 1800 →" in text_of(tmp_path / "p.svg")


def test_names_in_figures_are_no_mathematics(tmp_path, tables):
    name = r"costs $5, not $\frac{$"
    rows = [row | {"row": name, "corpus": name} for row in tables[0][:1]]
    figures.plot_perplexity(tmp_path / "p.svg", [rows])
    assert {name, f"ours ({name})"} <= set(text_of(tmp_path / "p.svg"))


def test_the_figure_of_rows_that_the_paper_lacks_does_not_speak_of_it(tmp_path, tables):
    figures.plot_perplexity(tmp_path / "p.svg", tables[1:])
    assert "ours" in text_of(tmp_path / "p.svg") and "paper" not in text_of(tmp_path / "p.svg")


def test_figures_of_nothing_are_refused(tmp_path, tables):
    with pytest.raises(InputError, match="none of the mixtures has a weight per bin"):
        figures.plot_mixture_weights(tmp_path / "f.svg", [])
    with pytest.raises(InputError, match="no row of the tables has a number of classes"):
        figures.plot_classes(tmp_path / "f.svg", tables[1])
    with pytest.raises(InputError, match="no row of the tables has a test perplexity"):
        figures.plot_perplexity(tmp_path / "f.svg", [[]])
    assert not (tmp_path / "f.svg").exists()


def test_history_that_is_broken_is_named(tmp_path):
    for cell in ("nought", "nan", ""):
        (tmp_path / "history.csv").write_text(HISTORY.replace("500.0", cell))
        with pytest.raises(InputError, match=rf"history\.csv: valid_perplexity is '{cell}'"):
            read_histories([tmp_path / "history.csv"])
    (tmp_path / "history.csv").write_text(HISTORY.splitlines()[0] + "\n")
    with pytest.raises(InputError, match="has no epochs"):
        read_histories([tmp_path / "history.csv"])


def test_two_histories_of_one_network_are_refused(tmp_path, histories):
    (tmp_path / "elsewhere" / "net").mkdir(parents=True)
    (tmp_path / "elsewhere" / "net" / "history.csv").write_text(HISTORY)
    with pytest.raises(InputError, match=r"elsewhere/net/history\.csv: a second history of net"):
        read_histories([tmp_path / "net" / "history.csv", tmp_path / "elsewhere" / "net" / "history.csv"])


def test_training_is_summed_over_epochs(histories):
    assert provenance.training_record(histories)[0] == {
        "network": "net",
        "epochs": 3,
        "chosen_epoch": 2,
        "seconds_training": 30.5,
        "seconds_communication": 4.0,
    }


def test_a_training_that_went_on_with_other_phases_has_them_all(tmp_path):
    """Begun on a processor with tile registers, continued on one without."""
    alike = {"epoch": 1.0, "valid_perplexity": 9.0, "seconds_training": 3.0, "seconds_validation": 1.0}
    histories = {
        "net": [alike | {"seconds_output_sweep": 2.0}, alike | {"epoch": 2.0, "seconds_hidden_gradient": 1.5}],
        "later": [alike | {"seconds_exponentials": 1.0}],
    }
    record = provenance.training_record(histories)[0]
    assert record["seconds_output_sweep"] == 2.0 and record["seconds_hidden_gradient"] == 1.5
    assert record["seconds_training"] == 6.0
    figures.plot_training_time(tmp_path / "t.svg", histories)
    phases = ["output sweep", "hidden gradient", "exponentials", "validation"]
    assert [text for text in text_of(tmp_path / "t.svg") if text in phases] == phases


def test_benchmarks_are_named_by_stage_and_job_and_are_of_what_is_run(tmp_path):
    jobs = [("score/net.test", 1.5, "200.5"), ("score/kn3.test", 0.5, "-"), ("tabulate", 2, "9")]
    left = [("score/net.seed2.test", 9, "9"), ("train_network/other", 9, "9"), ("cluster_words/500", 9, "9")]
    for name, seconds, memory in jobs + left:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.tsv").write_text(f"s\tmax_rss\n{seconds}\t{memory}\n")
    jobs = provenance.read_benchmarks(tmp_path, EXPERIMENT)
    assert [(j["stage"], j["job"], j["seconds"], j["memory_mib"]) for j in jobs] == [
        ("score", "kn3.test", 0.5, None),
        ("score", "net.test", 1.5, 200.5),
        ("tabulate", "", 2.0, 9.0),
    ]


def git(directory, *arguments):
    identity = ["-c", "user.name=n", "-c", "user.email=e"]
    return subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True, text=True)


def test_git_state_tells_commit_and_changes_but_for_the_reports(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "HEAD").stdout.strip()
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "new.csv").write_text("")
    assert provenance.git_state(tmp_path) == {"commit": commit, "dirty": False}
    (tmp_path / "code.py").write_text("2")
    assert provenance.git_state(tmp_path) == {"commit": commit, "dirty": True}


def test_git_state_outside_a_checkout_is_unknown(tmp_path):
    assert provenance.git_state(tmp_path) == {"commit": None, "dirty": None}


COMPARISONS = {
    ("net_mix", "trigram"): Interval(0.7778, 0.75, 0.80),
    ("kn3", "net_mix"): Interval(1.2143, 1.20, 1.23),
    ("trigram", "net_mix"): Interval(1.2857, 1.25, 1.3333),
}
CLAIMS = """
- claim: The network beats the n-grams.
  source: abstract
  parts:
    - {statement: It does., quantity: ratio, row: {best: {family: n-gram}}, to: net_mix, above: 1.1}
"""


@pytest.fixture
def made(tmp_path, paper):
    """The inputs of all report commands, as files."""
    (tmp_path / "configuration.json").write_text(json.dumps(EXPERIMENT))
    from nplm.perplexity import write_perplexities

    write_perplexities(tmp_path / "perplexity.csv", perplexities())
    (tmp_path / "corpus.json").write_text(json.dumps({"tokens": 7, "vocabulary": "hash"}))
    (tmp_path / "vocabulary.tsv").write_text("id\tword\tcount\n0\t<rare>\t3\n1\tthe\t2\n")
    (tmp_path / "retrieved.json").write_text(json.dumps({"source": f"path {tmp_path}", "sha256": "12ab"}))
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "score.tsv").write_text("s\tmax_rss\n1.5\t20\n")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "history.csv").write_text(HISTORY)
    record = {"split": "test", "tokens": 100, "block_length": 5, "resamples": 10}
    write_comparisons(tmp_path / "comparisons.csv", COMPARISONS, **record)
    (tmp_path / "claims.yaml").write_text(CLAIMS)
    (tmp_path / "perplexity.rst").write_text("Perplexity of ``every``\nrow.\n")
    for mixture in MIXTURES:
        write_mixture(tmp_path / f"{mixture.name}.json", mixture)
    return tmp_path


COMMANDS = """\
tabulate --configuration configuration.json --paper paper.csv --perplexity perplexity.csv --output-directory report
tabulate-extra --configuration configuration.json --paper paper.csv --perplexity perplexity.csv \
--output-directory report
tabulate-corpus --card corpus.json --output-directory report
tabulate-mixture-weights --mixture half.json --mixture by_bin.json --output-directory report
check-claims --configuration configuration.json --claims claims.yaml --table report/table1.csv \
--extra report/extra.csv --comparisons comparisons.csv --history net/history.csv --output-directory report
plot-learning-curves --history net/history.csv --output report/learning_curves.svg
plot-perplexity --table report/table1.csv --table report/extra.csv --output report/perplexity.svg
plot-mixture-weights --weights report/mixture_weights.csv --output report/mixture_weights.svg
plot-classes --table report/table1.csv --output report/classes.svg
plot-training-time --history net/history.csv --output report/training_time.svg
record-provenance --configuration configuration.json --vocabulary vocabulary.tsv --retrieved retrieved.json \
--benchmarks benchmarks --history net/history.csv --output-directory report
write-report-page --configuration configuration.json --table report/table1.csv --extra report/extra.csv \
--corpus report/corpus.csv --provenance report/provenance.json --mixture-weights report/mixture_weights.csv \
--claims report/claims.csv --comparisons comparisons.csv --figure report/perplexity.svg --caption perplexity.rst \
--output report/README.md --html report/index.html
"""


def test_commands_make_the_report_from_files_alone(made, monkeypatch):
    monkeypatch.chdir(made)
    for command in COMMANDS.splitlines():
        result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 0, (command, result.output, result.exception)
    report = made / "report"
    assert {path.name for path in report.iterdir()} == {
        *("table1.csv", "table1.md", "table1.tex", "extra.csv", "extra.md", "corpus.csv", "corpus.md"),
        *("mixture_weights.csv", "mixture_weights.md", "provenance.json", "provenance.md", "README.md", "index.html"),
        *(
            "claims.csv",
            "claims.md",
            "training_time.svg",
            "learning_curves.svg",
            "perplexity.svg",
            "mixture_weights.svg",
            "classes.svg",
        ),
    }
    text = (report / "README.md").read_text()
    assert text.startswith("# Results: report\n\n## Does the paper hold?\n\nVerdicts on 1 claims: holds 1,")
    assert "![perplexity](perplexity.svg)\n\nPerplexity of `every` row.\n" in text
    assert "[table1.csv](table1.csv), made by `snakemake -c1 report/table1.csv`." in text
    assert "21.4 % (20.0 to 23.0)" in text
    for part in ("claims", "table1", "extra", "corpus", "mixture_weights", "provenance"):
        assert (report / f"{part}.md").read_text().split("\n\n", 1)[1] in text
    record = json.loads((report / "provenance.json").read_text())
    assert record["corpus"]["sha256"] == "12ab" and record["versions"]["torch"]
    assert record["training"][0]["network"] == "net" and record["jobs"][0]["seconds"] == 1.5
    # Published: nothing of whose machine it was.
    for path in report.iterdir():
        assert str(made.parent) not in path.read_text(), path.name


@pytest.mark.parametrize("missing", ["configuration.json", "paper.csv", "perplexity.csv"])
def test_missing_input_ends_in_one_line(made, monkeypatch, run, capsys, missing):
    monkeypatch.chdir(made)
    (made / missing).unlink()
    assert run(*COMMANDS.splitlines()[0].split()) == 1
    assert capsys.readouterr().err == f"nplm: error: {missing}: no such file; make it first, or give another path\n"
    assert not (made / "report").exists()


def test_too_little_memory_ends_in_one_line(made, monkeypatch, run, capsys):
    def no_room(*_):
        raise MemoryError

    monkeypatch.chdir(made)
    monkeypatch.setattr("nplm.report.table.tabulate", no_room)
    assert run(*COMMANDS.splitlines()[0].split()) == 1
    assert re.fullmatch("nplm: error: not enough memory .*\n", capsys.readouterr().err)


def test_paper_columns_are_those_of_the_tables_kept_in_the_repository():
    from pathlib import Path

    directory = Path(__file__).parent.parent / "workflow" / "paper"
    rows = read_paper(directory / "table1_brown.csv")
    assert len(rows) == 21 and set(rows[0]) == set(PAPER_COLUMNS)
    assert corpus_card.read_paper_counts(directory / "corpus_brown.csv")["tokens"] == "1181041"


def test_a_row_of_several_seeds_shows_mean_and_deviation(paper):
    seeds = {**EXPERIMENT, "replicas": {"net": ["net", "net.seed2"]}}
    seeds["models"] = {**EXPERIMENT["models"], "net.seed2": EXPERIMENT["models"]["net"]}
    table, extra = tabulate(seeds, paper, perplexities({**VALID, "net.seed2": 310}))
    row = row_of(table, "net")
    assert (row["seeds"], row["valid_ppl"], row["valid_ppl_sd"]) == ("2", "305.0000", "7.0711")
    assert row["ratio_to_baseline"] == f"{305 / 360:.4f}"
    assert "net.seed2" not in {row["scores"] for row in table + extra}
    assert "| 305.0 ± 7.1 |" in table_formats.table_markdown(seeds, table)
    assert row_of(table, "trigram")["valid_ppl_sd"] == ""


def test_ratios_carry_their_intervals(paper):
    tables = tabulate(EXPERIMENT, paper, perplexities(), COMPARISONS)
    assert (row_of(tables[0], "net_mix")["ratio_low"], row_of(tables[0], "kn3")["ratio_low"]) == ("0.7500", "")
    text = table_formats.table_markdown(EXPERIMENT, tables[0])
    assert "| **0.750–0.800** |" in text and "by a paired block bootstrap" in text
    assert "21.4 % (20.0 to 23.0)" in page.summary_markdown(EXPERIMENT, *tables, COMPARISONS)


def test_seeds_of_a_network_share_a_panel(tmp_path, histories):
    figures.plot_learning_curves(tmp_path / "f.svg", histories, {"net": ["net", "other"]})
    assert [text for text in text_of(tmp_path / "f.svg") if "on validation" in text] == [
        "net: 350.0 ± 0.0 on validation, 2 seeds"
    ]
    with pytest.raises(InputError, match=r"no history of net\.seed2"):
        figures.plot_learning_curves(tmp_path / "f.svg", histories, {"net": ["net", "net.seed2"]})
