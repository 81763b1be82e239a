import pytest

from nplm.corpus.mapping import LINE_END, count_batches
from nplm.corpus.proper_nouns import Thresholds, decide, read_proper_nouns, stem, write_proper_nouns
from nplm.errors import InputError


def cases_of(text, **thresholds):
    """The counts of a text, a sentence a line."""
    words = [word for line in text.splitlines() for word in [*line.split(), LINE_END]]
    return count_batches([words], Thresholds(**thresholds)).cases


def found(text, **thresholds):
    return decide(cases_of(text, **thresholds), Thresholds(**thresholds))


def test_a_capital_at_a_sentence_start_tells_nothing():
    assert found("Dogs bark\nCats saw London\n`` Yes , '' he said . Perhaps so") == {"london"}


def test_a_word_often_written_without_a_capital_is_none():
    text = "he saw Bill\n" * 3 + "the bill\n"
    assert found(text, share=0.76) == set()
    assert found(text, share=0.75) == {"bill"}


def test_capitals_are_counted_as_often_as_the_count_says():
    assert found("to London\nto London\nto Paris", count=2) == {"london"}


def test_the_pronoun_is_none():
    assert found("what I said\nwhat I'm and I’ll\nthe In Isle") == {"in", "isle"}


def test_words_in_capitals_share_the_evidence_of_their_other_forms():
    assert found("the NATO pact\nhe did NOT go\nhe did not go\nto PARIS , to Paris") == {"nato", "paris"}


def test_headlines_count_for_nothing():
    headline = "PRICES RISE IN LONDON\n"
    assert found(headline + "to London") == {"london"}
    assert found(headline * 9 + "the prices rise in London") == {"london"}
    assert found(headline, headline_share=1.1) == {"rise", "in", "london"}


def test_a_possessive_counts_as_the_word():
    assert found("in London's fog\nLondon's fog\nthe dogs' Dogs'") == {"london"}
    assert [stem(word) for word in ("Atlanta's", "BOSTON’S", "o'clock", "Jones'")] == [
        "atlanta", "boston", "o'clock", "jones"
    ]  # fmt: skip


def test_the_table_is_read_back(tmp_path):
    counts = cases_of("to London\nto London\nthe Bill , the bill")
    write_proper_nouns(tmp_path / "table.tsv", counts, decide(counts, Thresholds()))
    assert (tmp_path / "table.tsv").read_text().splitlines() == [
        "word\tcapitalised_inside\tlower_case\tproper_noun",
        "london\t2\t0\tyes",
        "bill\t1\t1\tno",
    ]
    counts_read, words = read_proper_nouns(tmp_path / "table.tsv")
    assert words == {"london"}
    assert counts_read.capitalised_inside == {"london": 2, "bill": 1}
    assert counts_read.lower_case["bill"] == 1


def test_another_table_is_refused(tmp_path):
    (tmp_path / "table.tsv").write_text("id\tword\n1\ta\n")
    with pytest.raises(InputError, match="has no column 'capitalised_inside'"):
        read_proper_nouns(tmp_path / "table.tsv")
