import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nltk.tokenize import NLTKWordTokenizer

from nplm.corpus import treebank
from nplm.corpus.treebank import BORDER, split_sentences

PARTS = st.sampled_from(
    [
        *"ab.,:;?!'\"()[]-$%&*@#5“”‘’»…",
        "can",
        "cannot",
        "don't",
        "'s",
        "n't",
        "'ll",
        "U.S.",
        "gonna",
        "''",
        "``",
        "--",
        "...",
        "1,000",
        BORDER,
        "é",
    ]
)
CHUNKS = st.lists(st.lists(PARTS, min_size=1, max_size=4).map("".join), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Mr. Smith can't go. He won't.", ["Mr. Smith ca n't go .", "He wo n't ."]),
        ('"Why?" she asked. "I said so."', ["`` Why ? '' she asked .", "`` I said so . ''"]),
        ("The U.S. paid $1,234.56 (3.5%).", ["The U.S. paid $ 1,234.56 ( 3.5 % ) ."]),
        ("John's dog -- the dogs' food.", ["John 's dog -- the dogs ' food ."]),
        ("It cost $3\u00a0million.\u2028So what?", ["It cost $ 3 million .", "So what ?"]),
        ('"No," said the boy. "', ["`` No , '' said the boy . ''"]),
        (" \u200b", ["\u200b"]),
        ("\u3000", []),
    ],
)
def test_sentences_and_tokens(text, sentences):
    assert split_sentences([text]) == [sentences]


@settings(deadline=None)
@given(CHUNKS)
def test_tokens_are_nltks_own(chunks):
    # But for those quotation marks that split_sentences names.
    chunks = [chunk for chunk in chunks if chunk.strip("'\"")]
    sentences = list(treebank._sentences(" ".join(chunks)))
    assume(not any(sentence[0].startswith(("''", "\"''", '""')) for sentence in sentences))
    tokens = split_sentences([" ".join(chunks)])[0]
    assert tokens == [" ".join(NLTKWordTokenizer().tokenize(" ".join(sentence))) for sentence in sentences]


@settings(deadline=None)
@given(st.text())
def test_nothing_but_quotation_marks_changes(text):
    def characters(text):
        # All as '': the other way round, the marks of ' and '' beside one another could be taken for '' and '.
        return "".join(text.split()).replace("``", "''").replace('"', "''")

    assert characters("".join("".join(sentences) for sentences in split_sentences([text]))) == characters(text)


def test_tokens_do_not_depend_on_what_was_tokenised_before(monkeypatch):
    texts = ["Don't! (I said “no”.)", "He said etc. and left.", "cannot gonna AT&T."]
    one_by_one = [split_sentences([text])[0] for text in texts]
    monkeypatch.setattr(treebank, "REMEMBERED", 3)  # forgets all the time
    assert split_sentences(texts[::-1])[::-1] == split_sentences(texts) == one_by_one


def test_a_chunk_too_long_for_language_is_a_sentence_of_its_own():
    assert split_sentences(["Yes. " + "!?" * 100_000 + " No."]) == [["Yes .", " ".join("!?" * 100_000), "No ."]]
