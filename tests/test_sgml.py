import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm.corpus import sgml
from nplm.corpus.documents import End
from nplm.corpus.sgml import newswire_passages
from nplm.corpus.text import Piece
from nplm.errors import InputError


def read(content):
    """(the paragraphs of each document that has any, what was left out) of a file with this content."""
    counts = Counter()
    pieces = [Piece(number, line, True) for number, line in enumerate(content.split("\n"), 1)]
    documents = [[]]
    for passage in newswire_passages("wire", pieces, counts):
        documents[-1].append(passage.text)
        if passage.end == End.DOCUMENT:
            documents.append([])
    assert documents.pop() == []
    return documents, +counts


NORTH_AMERICAN_NEWS = """<DOC>
<DOCNO> nyt950101.0001 </DOCNO>
<SLUG fv=taf-z> BC-TEST &LR;      </SLUG>
<PREAMBLE>
BC-TEST (Attn: desks)
</PREAMBLE>
<TEXT>
<p>
   &UR; First paragraph, of AT&AMP;T &MD; and
a second line.&QL;
<p>
   Second one.
<p>
   -0-
</TEXT>
<TRAILER>
NYT-01-01-95 1200EST
</TRAILER>
</DOC>"""
TIPSTER = """<DOC>
<DOCNO> AP880212-0001 </DOCNO>
<HEAD>Reports of Things</HEAD>
<BYLINE>By A. WRITER</BYLINE>
<DATELINE>BANGKOK, Thailand (AP) </DATELINE>
<TEXT>
   First paragraph goes
on here.
   Second one.
   Third one
ends.
</TEXT>
</DOC>
"""
GIGAWORD = """<DOC id="AFP_ENG_19940512.0004" type="story" >
<HEADLINE>
Headline here
</HEADLINE>
<TEXT>
<P>
First
paragraph.
</P>
<P>
Second &quot;one&quot;.
</P>
</TEXT>
</DOC>
"""
REUTERS = """<!DOCTYPE lewis SYSTEM "lewis.dtd">
<REUTERS NEWID="1"><TOPICS><D>crude</D></TOPICS><TEXT>&#2;
<TITLE>A &lt;TITLE></TITLE><DATELINE>    LONDON - </DATELINE><BODY>First line
of &lt;GM> text.
    Second one.
 Reuter
&#3;</BODY></TEXT></REUTERS>
<REUTERS><TEXT TYPE="UNPROC">&#2;
All of it.
Reuters...
</TEXT></REUTERS>
"""
WALL_STREET = "<DOC><HL> Headline </HL><LP>   The lead. </LP>\n<TEXT>\n   The rest.\n</TEXT></DOC>"
TDT = "<doc><docno>1</docno><body><headline>H</headline><text>The text.</text></body></doc>"


@pytest.mark.parametrize(
    ("content", "documents", "left_out"),
    [
        (
            NORTH_AMERICAN_NEWS,
            [["First paragraph, of AT&T -- and a second line.", "Second one."]],
            {
                "typesetting_codes": 2,
                "other_words_left_out": 8,
                "sign_offs_left_out": 1,
            },
        ),
        (
            TIPSTER,
            [["First paragraph goes on here.", "Second one.", "Third one ends."]],
            {"heading_words_left_out": 9, "other_words_left_out": 1},
        ),
        (GIGAWORD, [["First paragraph.", 'Second "one".']], {"heading_words_left_out": 2}),
        (
            REUTERS,
            [["First line of <GM> text.", "Second one."], ["All of it."]],
            {
                "heading_words_left_out": 4,
                "other_words_left_out": 2,
                "comment_words_left_out": 4,
                "control_characters": 2,
                "sign_offs_left_out": 2,
            },
        ),
        (WALL_STREET, [["The lead.", "The rest."]], {"heading_words_left_out": 1}),
        (TDT, [["The text."]], {"heading_words_left_out": 1, "other_words_left_out": 1}),
    ],
)
def test_what_is_taken_from_each_kind_of_newswire(content, documents, left_out):
    assert read(content) == (documents, Counter(left_out))


@pytest.mark.parametrize("content", [NORTH_AMERICAN_NEWS, TIPSTER, GIGAWORD])
def test_tags_in_any_case(content):
    def swapped(part):
        return part.swapcase() if part.startswith("<") and "id=" not in part else part

    other = "".join(swapped(part) for part in re.split(r"(<[^<>]*>)", content))
    assert other != content
    assert read(other) == read(content)


@pytest.mark.parametrize("chunk", [1, 2, 7, 50])
def test_result_does_not_depend_on_where_the_reader_cuts(monkeypatch, chunk):
    content = NORTH_AMERICAN_NEWS + REUTERS + GIGAWORD
    whole = read(content)
    monkeypatch.setattr(sgml, "CHUNK", chunk)
    assert read(content) == whole


def test_documents_and_texts_without_end_go_on_to_the_next_document():
    content = "<DOC><TEXT>One.<DOC>\n<TEXT>Two.</TEXT>\n</DOC> stray words <DOC><BODY>Three."
    documents, left_out = read(content)
    assert documents == [["One."], ["Two."], ["Three."]]
    assert left_out == {"documents_without_end": 2, "words_outside_documents": 2}


def test_a_document_without_text_is_counted():
    documents, left_out = read("<DOC><HL>Only this</HL><TEXT> \n</TEXT></DOC>" + TDT)
    assert documents == [["The text."]]
    assert left_out["documents_without_text"] == 1


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("a &amp; b &AMP; &Amp; c &lt;d&gt; &quot;", 'a & b & & c <d> "'),
        ("caf&eacute; &EACUTE; &Eacute; &#233; &#xE9; &#146;", "café é É é é ’"),
        ("a&MD;b &hyph; &blank; &QC;c&QR;", "a--b - c"),
        ("AT&T R&D; &nosuch; & &;", "AT&T R&D; &nosuch; & &;"),
        ("a&#31;b\x05c&#0;d", "a b c\ufffdd"),
        ("a&#xFEFF;b", "a b"),
        ("AT&amp;AMP;T &amp;lt;b&#38;gt; &amp;amp;amp; &amp;QC; &amp;#233;", "AT&T <b> & é"),
        ("R&amp;D; &amp;nosuch;", "R&D; &nosuch;"),
        ("a <!-- b", "a <!-- b"),
        ("a <!--b--> c <!-- d", "a c <!-- d"),
        ("a <HI>b</HI> c <F P=1>d</F> <IMG SRC=x> e <!-- no --> f", "a b c d e f"),
        ("profits <GM> up, 3 < 4 > 2, <the company said>", "profits <GM> up, 3 < 4 > 2, <the company said>"),
    ],
)
def test_entities_tags_and_what_only_looks_like_them(text, taken):
    ((paragraph,),), _ = read(f"<DOC><TEXT>{text}</TEXT></DOC>")
    assert " ".join(paragraph.split()) == taken


@pytest.mark.parametrize(
    ("sign_off", "left"),
    [
        (" Reuter\n \x03", []),
        ("REUTERS", []),
        ("-0-", []),
        ("(END)", []),
        ("AP-NY-02-12-88 2344EST", []),
        ("   The end", ["The end"]),
        ("   -0- and more", ["-0- and more"]),
        ("   Reuters said so.", ["Reuters said so."]),
    ],
)
def test_a_last_line_that_signs_off_is_left_out(sign_off, left):
    documents, left_out = read(f"<DOC><TEXT>\nA line\nof text.\n{sign_off}\n</TEXT></DOC>")
    assert documents == [["A line of text.", *left]]
    assert left_out["sign_offs_left_out"] == (not left)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("just text", "wire: holds no <DOC> or <REUTERS>"),
        ("<DOCNO>1</DOCNO><TEXT>a</TEXT>", "wire: holds no <DOC>"),
        ("<DOC><TEXT></TEXT></DOC>\n" * 2, "wire: none of its 2 documents holds text"),
    ],
)
def test_a_file_that_is_no_newswire_is_refused(content, message):
    with pytest.raises(InputError, match=message):
        read(content)


def test_a_document_that_never_ends_is_refused_with_its_line(monkeypatch):
    monkeypatch.setattr(sgml, "LONGEST", 1000)
    monkeypatch.setattr(sgml, "CHUNK", 100)
    with pytest.raises(InputError, match=r"wire:2: over 1000 characters"):
        read("\n<DOC><TEXT>" + "word\n" * 1000)


MARKUP = st.sampled_from(
    [
        "<DOC>",
        "</DOC>",
        "<TEXT>",
        "</TEXT>",
        "<BODY>",
        "</BODY>",
        "<TITLE>",
        "</TITLE>",
        "<P>",
        "<LP>",
        "</LP>",
        "<GM>",
        "<",
        ">",
        "&",
        ";",
        "&#5;",
        "<!--",
        "-->",
        "\n",
        "  ",
    ]
)


def test_doubly_escaped_entities_are_counted():
    _, left_out = read("<DOC><TEXT>AT&amp;AMP;T &amp;#60; &amp;UR; R&amp;D; a &amp; b &nosuch;</TEXT></DOC>")
    assert left_out == {"doubly_escaped_entities": 2, "typesetting_codes": 1, "unknown_entities_kept": 1}


def test_what_never_ends_takes_no_quadratic_time():
    nested = 50_000
    for part in ("<!-- ", "<TEXT>a", "<LP>a", "<P", "&amp;", "<!", "<?"):
        read(f"<DOC><TEXT>first {part * nested}</TEXT></DOC>")
    read("<DOC><TEXT>first\nReuter" + nested * " " + "x</TEXT></DOC>")


@settings(deadline=None)
@given(st.lists(st.one_of(MARKUP, st.text("abc é", max_size=5)), max_size=30).map("".join))
def test_no_word_is_lost_uncounted_whatever_the_markup(content):
    content = "<DOC><TEXT>first</TEXT></DOC>" + content
    documents, left_out = read(content)
    taken = len(" ".join(text for document in documents for text in document).split())
    words = [word for word in sgml.TAG.sub(" ", sgml.ENTITY.sub("", content)).split() if word.strip("<>&;!-")]
    kept = sum(left_out[name] for name in left_out if "words" in name)
    assert taken + kept + left_out["angle_brackets_kept"] >= len(words)  # a<GM>b is one word
