"""Newswire in SGML, as the Linguistic Data Consortium and Reuters-21578 ship it; docs/corpora.md says what is taken.

A file holds documents one after the other, elements DOC or REUTERS, and in each of them the text, an element TEXT or
BODY. Real files break every rule of SGML, so nothing here needs a document type, an end tag or the right case: the few
tags that matter are looked for, and anything else in angle brackets is a tag if it looks like one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import unescape
from html.entities import html5
from pathlib import Path

from nplm.corpus.documents import End, Passage
from nplm.corpus.text import Piece
from nplm.errors import InputError

CHUNK = 1 << 16
"""characters that are searched for documents at a time"""
LONGEST = 1 << 26
"""characters of a document at most"""
DOCUMENT_TAG = re.compile(r"<(/?)(?:DOC|REUTERS)(?:\s[^<>]*)?>", re.IGNORECASE)
TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9._:-]*)((?:\s[^<>]*)?)/?>")
DECLARATION = re.compile(r"<(?:!(?!--)|\?)[^<>]*>")
"""also processing instructions"""
COMMENT = re.compile(rf"<!--.*?-->|{DECLARATION.pattern}", re.DOTALL)

TEXT = {"text", "body"}
"""elements that hold the text; the inner one where one holds the other, which both ways occur"""
LEAD = {"lp", "leadpara"}
"""the text's first paragraph, which some newspapers have in an element before the text"""
HEADINGS = {"title", "headline", "head", "hl", "author", "byline", "dateline"}
"""elements that are not text, even inside it"""
BREAKS = {"p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "li", "table", "tr", "row", "turn"}
"""tags between paragraphs; many files never end what these begin"""

ENTITY = re.compile(r"&((?:(?:(?i:amp)|#38);)*)(#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]*);")
"""(what escaped its ampersand once more, "" where nothing did; its name or number)"""
TYPESETTING = {"LR", "UR", "QL", "QC", "QR"}
"""codes of the wire, not characters: lower and upper rail, quad left, centre and right"""
NEWSWIRE_ENTITIES = {"MD": "--", "HYPH": "-", "BLANK": " ", "TAB": "\t"}
"""named entities that HTML lacks"""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
SIGN_OFF = re.compile(
    r"""reuters? [\s.]* | -+\ *(?:0|30)\ *-+ | \#{3,} | \(\ *(?:end|more)\ *\)
    | (?:AP|NYT|LATWP|UPI|AFP)-[A-Z]{0,3}-?\d\d-\d\d-\d\d.*""",
    re.IGNORECASE | re.VERBOSE,
)
"""a last line, without white space around it, that is the agency's and not the story's"""


def newswire_passages(file: Path, pieces: Iterable[Piece], counts: Counter[str]) -> Iterator[Passage]:
    """A passage for every paragraph of the text of every document; what is left out is added to `counts`.

    Raises InputError, with the file's name, where it holds no document or no text, or a document is far too long.
    """
    documents = with_text = 0
    for line, document in _documents(file, pieces, counts):
        documents += 1
        paragraphs = [paragraph for text in _texts(document, counts) for paragraph in _paragraphs(text, counts)]
        with_text += bool(paragraphs)
        for number, paragraph in enumerate(paragraphs, 1):
            yield Passage(line, paragraph, End.DOCUMENT if number == len(paragraphs) else End.PARAGRAPH)
    if not documents:
        raise InputError(f"{file}: holds no <DOC> or <REUTERS>, so it is no newswire SGML; give it as source: text")
    if not with_text:
        raise InputError(f"{file}: none of its {documents} documents holds text in TEXT or BODY; leave the file out")
    counts["documents_without_text"] += documents - with_text


def _documents(file: Path, pieces: Iterable[Piece], counts: Counter[str]) -> Iterator[tuple[int, str]]:
    """(line of its first tag, all between its tags) of every document; one without end goes on to the next one."""
    buffer = ""
    line = 1
    inside = False
    for chunk in _chunks(pieces):
        searched = buffer.rfind("<") if buffer.rfind("<") > buffer.rfind(">") else len(buffer)  # a tag cut in two
        buffer += chunk
        start = 0
        while tag := DOCUMENT_TAG.search(buffer, max(start, searched)):
            if inside:
                counts["documents_without_end"] += not tag[1]
                yield line, buffer[start : tag.start()]
            else:
                counts["words_outside_documents"] += _words(_without_comments(buffer[start : tag.start()], counts))
            line += buffer.count("\n", start, tag.end())
            inside, start = not tag[1], tag.end()
        buffer = buffer[start:]
        if len(buffer) > LONGEST:
            raise InputError(f"{file}:{line}: over {LONGEST} characters without a document's end; split the file")
    if inside:
        counts["documents_without_end"] += 1
        yield line, buffer
    else:
        counts["words_outside_documents"] += _words(_without_comments(buffer, counts))


def _chunks(pieces: Iterable[Piece]) -> Iterator[str]:
    parts: list[str] = []
    length = 0
    for _, text, ends_line in pieces:
        parts += [text, "\n" if ends_line else " "]
        length += len(text) + 1
        if length > CHUNK:
            yield "".join(parts)
            parts, length = [], 0
    yield "".join(parts)


def _words(text: str) -> int:
    return len(TAG.sub(" ", text).split())


def _without_comments(text: str, counts: Counter[str]) -> str:
    """Text with a space for every comment and declaration; a comment that never ends is text."""

    def left_out(comment: re.Match) -> str:
        counts["comment_words_left_out"] += _words(comment[0].strip("<>!?-"))
        return " "

    last = text.rfind("-->") + len("-->") if "-->" in text else 0
    # Behind it no comment ends: to look for an end from every "<!--" there would take quadratic time.
    return COMMENT.sub(left_out, text[:last]) + DECLARATION.sub(left_out, text[last:])


@dataclass
class _Element:
    """An element of a document that matters, with what stands in it and in none further inside."""

    name: str
    outer: "_Element | None" = None
    parts: list[str] = field(default_factory=list)
    has_text_inside: bool = False


def _texts(document: str, counts: Counter[str]) -> list[str]:
    """The content of every element that holds text, without tags, entities and control characters."""
    texts = []
    elements = _elements(_without_comments(document, counts), counts)
    for element in elements:
        if element.name in TEXT and "".join(element.parts).strip():
            outer = element.outer
            while outer and not outer.has_text_inside:
                outer.has_text_inside = True
                outer = outer.outer
    for element in elements:
        content = "".join(element.parts)
        if element.name in TEXT | LEAD and not element.has_text_inside:
            texts.append(_characters(content, counts))
        else:
            counts["heading_words_left_out" if element.name in HEADINGS else "other_words_left_out"] += _words(content)
    return texts


def _elements(document: str, counts: Counter[str]) -> list[_Element]:
    """The document itself and the elements of text and headings in it, in order."""
    ended = {tag[2].lower() for tag in TAG.finditer(document) if tag[1]}
    within = [_Element("")]
    open_names: Counter[str] = Counter()
    elements = within[:]
    start = 0
    for tag in TAG.finditer(document):
        is_end, name = bool(tag[1]), tag[2].lower()
        if not (is_end or "=" in tag[3] or name in ended or name in TEXT | BREAKS):
            counts["angle_brackets_kept"] += 1  # <GM>, say: a ticker, not a tag
            continue
        within[-1].parts += [document[start : tag.start()], "\n\n" if name in BREAKS else " "]
        start = tag.end()
        if is_end and open_names[name]:
            closed = ""
            while closed != name:
                closed = within.pop().name
                open_names[closed] -= 1
        elif not is_end and (
            name in TEXT
            or (name in HEADINGS and name in ended)
            or (name in LEAD and not any(open_names[text] for text in TEXT))
        ):
            within.append(_Element(name, within[-1]))
            open_names[name] += 1
            elements.append(within[-1])
    within[-1].parts.append(document[start:])
    return elements


def _characters(text: str, counts: Counter[str]) -> str:
    """Text with characters in place of entities, and spaces in place of control characters and typesetting codes."""

    def character(entity: re.Match) -> str:
        escaped, name = entity.groups()
        if name.startswith("#"):
            counts["doubly_escaped_entities"] += bool(escaped)
            return unescape(f"&{name};") or "\1"  # HTML has no control characters
        if name.upper() in TYPESETTING:
            counts["typesetting_codes"] += 1
            return " "
        known = NEWSWIRE_ENTITIES.get(name.upper()) or html5.get(f"{name};") or html5.get(f"{name.lower()};")
        counts["doubly_escaped_entities"] += bool(escaped and known)
        counts["unknown_entities_kept"] += not (escaped or known)
        return known or f"&{name};"  # where its ampersand was escaped, that was meant: R&amp;D;

    text, controls = CONTROL.subn(" ", ENTITY.sub(character, text))
    counts["control_characters"] += controls
    return text.replace("\ufeff", " ")  # as `read_pieces` does with those that are in the file


def _paragraphs(text: str, counts: Counter[str]) -> list[str]:
    """The paragraphs, each on one line: they begin after a blank line or with a line that is set in."""
    lines = [line.expandtabs().rstrip() for line in text.split("\n")]
    while lines and (not lines[-1] or SIGN_OFF.fullmatch(lines[-1].strip())):
        counts["sign_offs_left_out"] += bool(lines.pop())
    margin = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if not line or line.startswith("  ", margin):
            paragraphs.append([])
        paragraphs[-1].append(line.strip())
    return [joined for paragraph in paragraphs if (joined := " ".join(paragraph).strip())]
