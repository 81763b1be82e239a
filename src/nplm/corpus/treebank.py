"""English text to sentences and Penn-Treebank-like tokens: nupunkt finds the sentences, NLTK the tokens.

docs/corpora.md says why these two, and what their tokens are. The same text gives the same tokens, whatever was
tokenised before.

NLTK's tokeniser looks no further than the white space around a chunk of characters, with one exception: a sentence's
last full stop. So that stop is dealt with first, and then the tokens of a chunk are found once, however often it comes.
"""

import re
from functools import lru_cache

from nltk.tokenize import NLTKWordTokenizer
from nupunkt import sent_tokenize

CLOSING = "])}>\"'»”’"
"""what may stand between the last full stop of a sentence and its end; as in NLTK's pattern"""
FINAL_STOP = re.compile(rf"(.*[^.])?(\.[{re.escape(CLOSING)} ]*)", re.DOTALL)
BORDER = "\ue000"
"""stands between chunks that are tokenised together: a character of private use, so nothing is split off or joined"""
REMEMBERED = 1 << 19
"""chunks whose tokens are kept, so that memory stays bounded"""

_tokenizer = NLTKWordTokenizer()
_tokens: dict[str, str] = {}
"""chunk -> its tokens where a sentence goes on after it, with single spaces between"""


def split_sentences(texts: list[str]) -> list[list[str]]:
    """The sentences of each text (a paragraph, say), each sentence as its tokens with single spaces between.

    The tokens of a sentence are those of NLTK: do n't, `` quoted '', a full stop at the end. They differ only where
    quotation marks stand apart: '' opens a quotation at the start of a sentence as at the start of any other chunk, and
    the last full stop is split off before a " that stands alone.
    """
    sentences = [[_without_final_stop(s.split()) for s in sent_tokenize(text) if not s.isspace()] for text in texts]
    _learn({chunk for text in sentences for chunks, _ in text for chunk in chunks})
    return [[" ".join([*map(_tokens.__getitem__, chunks), *stop]) for chunks, stop in text] for text in sentences]


def _without_final_stop(chunks: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The chunks of a sentence without its last full stop, and the tokens of that stop and what closes after it."""
    last = len(chunks) - 1
    while last > 0 and not chunks[last].strip(CLOSING):
        last -= 1
    if end := FINAL_STOP.fullmatch(" ".join(chunks[last:])):
        return [*chunks[:last], end[1]] if end[1] else chunks[:last], _stop_tokens(end[2])
    return chunks, ()


@lru_cache(1024)
def _stop_tokens(stop: str) -> tuple[str, ...]:
    return tuple(_tokenizer.tokenize(f"x{stop}")[1:])


def _learn(chunks: set[str]) -> None:
    """See to it that `_tokens` has all these chunks."""
    if len(_tokens) > REMEMBERED:
        _tokens.clear()
    together = [chunk for chunk in chunks if chunk not in _tokens and BORDER not in chunk]
    tokens = " ".join(_tokenizer.tokenize(BORDER + "".join(f" {chunk} {BORDER}" for chunk in together)))
    _tokens.update(zip(together, map(str.strip, tokens.split(BORDER)[1:-1]), strict=True))
    for chunk in chunks:
        if BORDER in chunk:
            _tokens[chunk] = " ".join(_tokenizer.tokenize(f"x {chunk} x")[1:-1])
