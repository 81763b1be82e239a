import pytest

from nplm.cli import app
from nplm.corpus.explain import explain_text, files_of_experiment, read_rules
from nplm.errors import InputError

TEXT = "In 1995 we saw old Smith.\nThe fog was thick: he saw Bill, the bill.\nThe fog came.\n"


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A folder of results, of a small corpus with everything mapped; the tests run in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT)
    for command in (
        "tokenize-corpus --source text --tokenizer raw --characters clean --input text.txt --output tokens.txt "
        "--record tokens.json --processes 1",
        "map-tokens --tokens tokens.txt --output mapped.txt --record mapped.json --proper-noun-table proper_nouns.tsv "
        "--lower-case --numbers forms --proper-nouns one",
        "build-vocabulary --tokens mapped.txt --size 10 --output vocabulary.tsv",
    ):
        app(command.split(), standalone_mode=False)
    return tmp_path


def test_every_step_of_an_experiment(results):
    explanation = explain_text("The\u00ad Smiths' Smith came in 2026.", read_rules(**files_of_experiment(results)))
    ((*tokens,),) = explanation.sentences
    assert [(token.token, token.step, token.mapped, token.id == 0) for token in tokens] == [
        ("The", "lower_case", "the", False),
        ("Smiths", "lower_case", "smiths", True),
        ("'", "", "'", True),
        ("Smith", "proper_nouns", "<proper_noun>", False),
        ("came", "", "came", True),
        ("in", "", "in", True),
        ("2026", "numbers", "<year>", False),
        (".", "", ".", False),
    ]
    assert [token.evidence for token in tokens][:4] == ["", "", "", "1 of 1"]
    assert explanation.cleaned.startswith("The Smiths'")


def test_the_command_shows_what_becomes_of_the_text(results, capsys):
    app(["explain", "Smith saw [b] Bill in 2026", "--experiment", "."], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "becomes: <proper_noun> saw <rare> <rare> <rare> bill <rare> <year>"
    assert ["Bill", "bill", "1", "of", "2", "5", "2"] in [line.split() for line in lines]


def test_without_files_raw_tokens_are_shown(capsys):
    app(["explain", "don't, Smith"], standalone_mode=False)
    assert capsys.readouterr().out.splitlines()[-1] == "becomes: don't , Smith"


def test_proper_nouns_need_their_table(results):
    with pytest.raises(InputError, match=r"mapped.json: has proper nouns mapped; give their table"):
        read_rules(mapping_record="mapped.json")


@pytest.mark.parametrize("record", ["{}", '{"tokenizer": "none"}', '{"tokenizer": ["raw"]}'])
def test_another_record_is_refused(tmp_path, record):
    (tmp_path / "tokens.json").write_text(record)
    with pytest.raises(InputError, match=r"tokens.json: is no record of tokenize-corpus"):
        read_rules(tmp_path / "tokens.json")


def test_a_folder_without_results_and_a_text_without_tokens_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"tokens.json: no such file"):
        files_of_experiment(tmp_path)
    with pytest.raises(InputError, match="holds no token"):
        explain_text(" \n", read_rules())
