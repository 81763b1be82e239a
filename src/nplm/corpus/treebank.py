"""English text to sentences and Penn-Treebank-like tokens: nupunkt finds the sentences, NLTK the tokens.

docs/corpora.md says why these two, and what their tokens are. The same text gives the same tokens, whatever was
tokenised before.

NLTK's tokeniser looks no further than the white space around a chunk of characters, with one exception: a sentence's
last full stop. So that stop is dealt with first, and then the tokens of a chunk are found once, however often it comes.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, groupby

from nltk.tokenize import NLTKWordTokenizer
from nupunkt import sent_tokenize

CLOSING = "])}>\"'»”’"
"""what may stand between the last full stop of a sentence and its end; as in NLTK's pattern"""
FINAL_STOP = re.compile(rf"(.*[^.])?(\.[{re.escape(CLOSING)}]*)", re.DOTALL)
LONGEST_CHUNK = 1000
"""a longer chunk is a sentence of its own: it is no language, and nupunkt takes quadratic time on some of them"""
BORDER = "\ue000"
"""stands between chunks that are tokenised together: a character of private use, so nothing is split off or joined"""
REMEMBERED = 1 << 22
"""characters of chunks whose tokens are kept, so that memory stays bounded"""

_tokenizer = NLTKWordTokenizer()


def split_sentences(texts: list[str]) -> list[list[str]]:
    """The sentences of each text (a paragraph, say), each sentence as its tokens with single spaces between.

    The tokens of a sentence are those of NLTK: do n't, `` quoted '', a full stop at the end. They differ only in some
    quotation marks: at the start of a sentence they are as at the start of any other chunk, so that '' opens a
    quotation and the second mark of "" or "'' closes one, and a " that stands alone after the last full stop closes.
    """
    sentences = [[_without_final_stop(chunks) for chunks in _sentences(text)] for text in texts]
    tokens = _known.learn(set(chain.from_iterable(chunks for text in sentences for chunks, _ in text)))
    return [[" ".join([*map(tokens.__getitem__, chunks), *stop]) for chunks, stop in text] for text in sentences]


def _sentences(text: str) -> Iterable[list[str]]:
    """The sentences of a text as chunks: what stands between white space."""
    all_chunks = text.split()
    if max(map(len, all_chunks), default=0) <= LONGEST_CHUNK:
        return map(str.split, sent_tokenize(" ".join(all_chunks)))
    sentences: list[list[str]] = []
    for is_long, chunks in groupby(all_chunks, key=lambda chunk: len(chunk) > LONGEST_CHUNK):
        if is_long:
            sentences += ([chunk] for chunk in chunks)
        else:
            sentences += map(str.split, sent_tokenize(" ".join(chunks)))
    return sentences


def _without_final_stop(chunks: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The chunks of a sentence without its last full stop, and the tokens of that stop and what closes after it."""
    last = len(chunks) - 1
    while last > 0 and not chunks[last].strip(CLOSING):
        last -= 1
    if end := FINAL_STOP.fullmatch("".join(chunks[last:])):
        return [*chunks[:last], end[1]] if end[1] else chunks[:last], _stop_tokens(end[2])
    return chunks, ()


@lru_cache(1024)
def _stop_tokens(stop: str) -> tuple[str, ...]:
    return tuple(_tokenizer.tokenize(f"x{stop}")[1:])


class _KnownChunks:
    """The tokens of chunks after which a sentence goes on."""

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}
        self._characters = 0

    def learn(self, chunks: set[str]) -> dict[str, str]:
        """Chunk -> its tokens with single spaces between, for these chunks at least."""
        if self._characters > REMEMBERED:
            self._tokens, self._characters = {}, 0
        new = [chunk for chunk in chunks if chunk not in self._tokens]
        together = [chunk for chunk in new if BORDER not in chunk]
        tokens = " ".join(_tokenizer.tokenize(BORDER + "".join(f" {chunk} {BORDER}" for chunk in together)))
        self._tokens.update(zip(together, map(str.strip, tokens.split(BORDER)[1:-1]), strict=True))
        for chunk in new:
            if BORDER in chunk:
                self._tokens[chunk] = " ".join(_tokenizer.tokenize(f"x {chunk} x")[1:-1])
        self._characters += sum(map(len, new))
        return self._tokens


_known = _KnownChunks()
