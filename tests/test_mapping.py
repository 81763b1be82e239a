import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nplm.cli import app
from nplm.corpus import mapping
from nplm.corpus.mapping import Mapping, count_tokens, map_tokens, read_mapping
from nplm.corpus.proper_nouns import Thresholds
from nplm.corpus.vocabulary import read_tokens
from nplm.errors import InputError

TEXT = """<text> <paragraph> In 1995 the Senate saw Mr. Smith .
Smith paid $12m in London on the 3rd .

<text> <paragraph> LONDON IS SMITH'S
Chapter XIV : I saw London's towers .
"""
EVERYTHING = Mapping(lower_case=True, numbers="forms", proper_nouns="one")


def mapped(tmp_path, text, wanted):
    """The mapped text and its record."""
    (tmp_path / "tokens.txt").write_text(text)
    counts = count_tokens(tmp_path / "tokens.txt", wanted.thresholds)
    record = map_tokens(tmp_path / "tokens.txt", tmp_path / "mapped.txt", wanted, counts)
    return (tmp_path / "mapped.txt").read_text(), record


def test_all_steps_together(tmp_path):
    assert mapped(tmp_path, TEXT, EVERYTHING)[0] == (
        "<text> <paragraph> in <year> the <proper_noun> saw <proper_noun> <proper_noun> .\n"
        "<proper_noun> paid <money> in <proper_noun> on the <ordinal> .\n"
        "\n"
        "<text> <paragraph> <proper_noun> is <proper_noun>\n"
        "chapter <roman> : i saw <proper_noun> towers .\n"
    )


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        (Mapping(), "Chapter XIV : I saw London's towers ."),
        (Mapping(lower_case=True), "chapter xiv : i saw london's towers ."),
        (Mapping(numbers="one"), "Chapter <number> : I saw London's towers ."),
        (Mapping(proper_nouns="one"), "Chapter <proper_noun> : I saw <proper_noun> towers ."),
    ],
)
def test_each_step_by_itself(tmp_path, wanted, line):
    assert mapped(tmp_path, TEXT, wanted)[0].splitlines()[-1] == line


def test_the_record_counts_what_each_step_changed(tmp_path):
    record = mapped(tmp_path, TEXT, EVERYTHING)[1]
    assert (record["tokens"], record["distinct"]) == (32, 25)
    steps = record["steps"]
    assert [(step, steps[step]["tokens_changed"], steps[step]["types_changed"]) for step in steps] == [
        ("numbers", 4, 4),
        ("proper_nouns", 8, 7),
        ("lower_case", 4, 4),
    ]
    assert steps["numbers"]["symbols"] == {"<money>": 1, "<ordinal>": 1, "<roman>": 1, "<year>": 1}
    assert steps["proper_nouns"]["examples"][0] == ["Smith", "<proper_noun>", 2]
    assert ["IS", "is", 1] in steps["lower_case"]["examples"]


@given(st.lists(st.lists(st.sampled_from(["London", "the", "The", ".", "12", "IBM"]), max_size=5), max_size=9))
def test_lines_stay_as_they_were_however_the_tokens_are_read(tmp_path_factory, lines):
    tmp_path = tmp_path_factory.mktemp("mapping")
    text = "".join(" ".join(line) + "\n" for line in lines) + "end"
    whole = mapped(tmp_path, text, EVERYTHING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "BATCH", 1)
        assert mapped(tmp_path, text, EVERYTHING) == whole
    lengths = [len(line.split()) for line in text.splitlines()]
    assert [len(line.split(" ")) if line else 0 for line in whole[0].splitlines()] == lengths


def test_a_line_longer_than_what_is_read_at_a_time(tmp_path):
    text = "he met Smith " * 200_000
    out, record = mapped(tmp_path, text, EVERYTHING)
    assert out == " ".join(["he met <proper_noun>"] * 200_000) + "\n"
    assert record["steps"]["proper_nouns"]["tokens_changed"] == 200_000


def test_tokens_mapped_before_are_refused(tmp_path):
    (tmp_path / "tokens.txt").write_text("in <year>\n")
    with pytest.raises(InputError, match=r"tokens.txt: holds '<year>', a symbol of the mapping"):
        count_tokens(tmp_path / "tokens.txt", EVERYTHING.thresholds)


@pytest.mark.parametrize("token", ["<Number>", "<TEXT>", "<Rare>"])
def test_a_token_that_lower_case_makes_a_reserved_symbol_is_refused(tmp_path, token):
    assert mapped(tmp_path, f"a {token} A\n", Mapping(numbers="one"))[0] == f"a {token} A\n"
    with pytest.raises(InputError, match=rf"tokens.txt: holds '{token}', in lower case a reserved symbol"):
        mapped(tmp_path, f"a {token} A\n", EVERYTHING)


@pytest.mark.parametrize(
    "options", [{"share": float("nan")}, {"share": 2}, {"count": 0}, {"headline_share": float("inf")}]
)
def test_thresholds_that_are_none_are_refused(options):
    with pytest.raises(InputError, match=r"proper nouns: share .* count .* headline share"):
        Thresholds(**options)


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokens.txt").write_text(TEXT)
    for command in (
        "map-tokens --tokens tokens.txt --output mapped.txt --record mapped.json --proper-noun-table nouns.tsv "
        "--lower-case --numbers one --proper-nouns one --share 0.7",
        "build-vocabulary --tokens mapped.txt --size 8 --output vocabulary.tsv",
        "encode-corpus --tokens mapped.txt --vocabulary vocabulary.tsv --train-size 20 --valid-size 9 "
        "--output-directory splits --mapping-record mapped.json",
    ):
        app(command.split(), standalone_mode=False)
    wanted = read_mapping("mapped.json")
    assert (wanted.lower_case, wanted.numbers, wanted.proper_nouns) == (True, "one", "one")
    assert wanted.thresholds.share == 0.7
    assert "smith\t1\t0\tyes" in (tmp_path / "nouns.tsv").read_text()
    assert {"<number>", "<proper_noun>"} < {word for words, _ in read_tokens("mapped.txt") for word in words}
    assert (tmp_path / "vocabulary.tsv").read_text().splitlines()[2:7] == [
        "0\t<rare>\t10", "1\t<text>\t2", "2\t<paragraph>\t2", "3\t<proper_noun>\t8", "4\t<number>\t4"
    ]  # fmt: skip
    card = json.loads((tmp_path / "splits" / "corpus.json").read_text())
    assert (card["tokens"], card["distinct"], card["distinct_mapped"]) == (32, 25, 15)
    assert (card["mapping_numbers"], card["numbers_tokens_changed"], card["numbers_symbols"]) == (
        "one", 4, ["<number> (4)"]
    )  # fmt: skip
    assert "Smith → <proper_noun> (2)" in card["proper_nouns_examples"]


@pytest.mark.parametrize(
    "record", [{}, {"tokens": 3}, {"mapping": {"numbers": "none"}}, {"mapping": {"proper_noun_thresholds": [1]}}]
)
def test_another_record_is_refused(tmp_path, record):
    (tmp_path / "record.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="is no record of map-tokens"):
        read_mapping(tmp_path / "record.json")
