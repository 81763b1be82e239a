"""Libraries that split English text into sentences and tokens: their speed, and how well they find Brown's boundaries.

    python benchmarks/tokenizers.py --text F --brown DIR --output benchmarks/results/tokenizers.csv

Needs the libraries compared, most of which nplm does not use: pip install blingfire pysbd sacremoses spacy syntok.
`--text` has a paragraph a line; its first `--words` words are tokenised by each library in one process, and all of it
by the chosen tokeniser as tokenize-corpus does it, with one process and with two. `cpu_seconds` is what to compare
where other work shares the machine.

Every fourth paragraph of Brown (word/tag files) is put together again: spaces between words, none before . , ; : ? ! )
and after (, and " for its quotation marks. Precision, recall and F1 are those of the places, counted in characters that
are no white space, where sentences and tokens end inside a paragraph. Brown leaves clitics (n't, 's) in their words,
so a boundary before one counts neither for nor against a tokeniser that splits them.
"""

import argparse
import os
import platform
import re
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path

from nplm.corpus.paths import brown_files
from nplm.corpus.text import read_pieces
from nplm.corpus.tokenize import split_brown, tokenize
from nplm.files import write_csv
from nplm.report.provenance import processor

Split = Callable[[list[str]], Iterator[list[list[str]]]]
"""Paragraphs -> of each, its sentences as lists of tokens"""
CLITIC = re.compile(r"(?:n't|'(?:s|re|ve|ll|d|m)?)", re.IGNORECASE)


def treebank() -> Split:
    from nplm.corpus.treebank import split_sentences

    def split(paragraphs: list[str]) -> Iterator[list[list[str]]]:
        for first in range(0, len(paragraphs), 2000):
            for sentences in split_sentences(paragraphs[first : first + 2000]):
                yield [sentence.split(" ") for sentence in sentences]

    return split


def nupunkt_nltk() -> Split:
    from nltk.tokenize import NLTKWordTokenizer
    from nupunkt import sent_tokenize

    return each(lambda text: [NLTKWordTokenizer().tokenize(sentence) for sentence in sent_tokenize(text)])


def nupunkt_sacremoses() -> Split:
    from nupunkt import sent_tokenize
    from sacremoses import MosesTokenizer

    words = MosesTokenizer("en")
    return each(lambda text: [words.tokenize(sentence, escape=False) for sentence in sent_tokenize(text)])


def pysbd_nltk() -> Split:
    from nltk.tokenize import NLTKWordTokenizer
    from pysbd import Segmenter

    sentences = Segmenter(language="en", clean=False)
    return each(lambda text: [NLTKWordTokenizer().tokenize(sentence) for sentence in sentences.segment(text)])


def syntok() -> Split:
    from syntok.segmenter import process

    return each(lambda text: [[t.value for t in sentence] for part in process(text) for sentence in part])


def spacy() -> Split:
    from spacy import blank

    pipeline = blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 1 << 30
    return each(lambda text: [[t.text for t in s if not t.is_space] for s in pipeline(text).sents])


def blingfire() -> Split:
    from blingfire import text_to_sentences, text_to_words

    return each(lambda text: [text_to_words(s).split(" ") for s in text_to_sentences(text).split("\n")])


def each(split: Callable[[str], list[list[str]]]) -> Split:
    return lambda paragraphs: map(split, paragraphs)


LIBRARIES = {
    "treebank (nupunkt, NLTK remembered)": (treebank, ("nupunkt", "nltk")),
    "nupunkt, NLTK": (nupunkt_nltk, ("nupunkt", "nltk")),
    "nupunkt, sacremoses": (nupunkt_sacremoses, ("nupunkt", "sacremoses")),
    "pysbd, NLTK": (pysbd_nltk, ("pysbd", "nltk")),
    "syntok": (syntok, ("syntok",)),
    "spaCy (blank, sentencizer)": (spacy, ("spacy",)),
    "blingfire": (blingfire, ("blingfire",)),
}


def compare(name: str, paragraphs: list[str], brown: list[list[list[str]]]) -> dict[str, object]:
    """One row: speed on the paragraphs, quality on Brown's."""
    make, packages = LIBRARIES[name]
    split = make()
    list(split(paragraphs[:10]))  # loads what is loaded at first use
    measure = measurement(1)
    tokens = sentences = 0
    for text in split(paragraphs):
        sentences += len(text)
        tokens += sum(map(len, text))
    versions = " ".join(f"{package} {version(package)}" for package in packages)
    return {"tokenizer": name, "versions": versions, **measure(tokens, sentences), **quality(split, brown)}


def whole(processes: int, text: Path, output: Path) -> dict[str, object]:
    """One row: all of the text as tokenize-corpus does it, reading and writing included."""
    measure = measurement(processes)
    counts, _ = tokenize([text], output, tokenizer="treebank", documents="blank_line", processes=processes)
    output.unlink()
    return {"tokenizer": "tokenize-corpus", **measure(counts.tokens, counts.sentences)}


def measurement(processes: int) -> Callable[[int, int], dict[str, object]]:
    """Starts the clocks; what is returned stops them and gives the columns that tell of speed."""

    def usage() -> tuple[float, float]:
        own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return time.perf_counter(), own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime

    started = usage()

    def columns(tokens: int, sentences: int) -> dict[str, object]:
        seconds, cpu_seconds = (now - then for now, then in zip(usage(), started, strict=True))
        peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return {
            "processes": processes,
            "tokens": tokens,
            "sentences": sentences,
            "seconds": round(seconds, 2),
            "cpu_seconds": round(cpu_seconds, 2),
            "tokens_per_second": round(tokens / seconds),
            "tokens_per_cpu_second": round(tokens / cpu_seconds),
            "peak_megabytes": round((peaks[0] + (processes if processes > 1 else 0) * peaks[1]) / 1024),
        }

    return columns


def brown_paragraphs(folder: Path) -> list[list[list[str]]]:
    """Every fourth paragraph: its sentences as lists of tokens."""
    paragraphs: list[list[list[str]]] = [[]]
    for file in brown_files(folder):
        for _, text, _ in read_pieces(file):
            if words := split_brown(text):
                paragraphs[-1].append(words)
            elif paragraphs[-1]:
                paragraphs.append([])
        paragraphs.append([])
    return [paragraph for paragraph in paragraphs if paragraph][::4]


def put_together(words: list[str]) -> str:
    """The words of a sentence as they may have been printed."""
    text = ""
    after_opening = True
    for word in words:
        text += ("" if after_opening or word in {*".,;:?!)]%", "''"} else " ") + plain(word)
        after_opening = word in {"(", "[", "$", "``"}
    return text


def plain(token: str) -> str:
    """With one sign for every quotation mark: " which some tokenisers write as `` and ''."""
    return token.replace("``", '"').replace("''", '"')


def quality(split: Split, brown: list[list[list[str]]]) -> dict[str, object]:
    """The columns that tell how well the boundaries of Brown's sentences and tokens are found."""
    texts = [" ".join(map(put_together, sentences)) for sentences in brown]
    left_out = 0  # characters were changed
    hits = {"sentence": [0, 0, 0], "token": [0, 0, 0]}  # right, found, wanted
    for text, wanted, found in zip(texts, brown, split(texts), strict=True):
        characters = plain("".join(text.split()))
        wanted, found = ([[plain(token) for token in sentence] for sentence in side] for side in (wanted, found))
        if "".join(map("".join, found)) != characters:
            left_out += 1
            continue
        for kind, level in (("sentence", sentence_ends), ("token", token_ends)):
            right, theirs = level(wanted), level(found)
            if kind == "token":
                theirs -= {end for end in theirs - right if clitic_at(characters, end, right)}
            for number, ends in enumerate((right & theirs, theirs, right)):
                hits[kind][number] += len(ends - {len(characters)})
    columns = {"paragraphs_changed": left_out}
    for kind, (right, found, wanted) in hits.items():
        precision, recall = right / max(found, 1), right / wanted
        columns[f"{kind}_precision"] = round(precision, 4)
        columns[f"{kind}_recall"] = round(recall, 4)
        columns[f"{kind}_f1"] = round(2 * precision * recall / max(precision + recall, 1e-9), 4)
    return columns


def sentence_ends(sentences: list[list[str]]) -> set[int]:
    return set(accumulate(sum(map(len, words)) for words in sentences))


def token_ends(sentences: list[list[str]]) -> set[int]:
    return set(accumulate(len(word) for words in sentences for word in words))


def clitic_at(characters: str, start: int, ends: set[int]) -> bool:
    """Whether a clitic goes from there to the end of one of Brown's tokens."""
    clitic = CLITIC.match(characters, start)
    return bool(clitic) and clitic.end() in ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--brown", type=Path, required=True)
    parser.add_argument("--words", type=int, default=400_000)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    paragraphs: list[str] = []
    for _, text, _ in read_pieces(arguments.text):
        if text.strip():
            paragraphs.append(text)
            arguments.words -= len(text.split())
        if arguments.words < 0:
            break
    brown = brown_paragraphs(arguments.brown)
    scratch = arguments.output.with_suffix(".scratch")
    rows = []
    for function, *values in (
        *((compare, name, paragraphs, brown) for name in LIBRARIES),
        *((whole, processes, arguments.text, scratch) for processes in (1, 2)),
    ):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # a process each, so that the peaks are its own
            rows.append(pool.submit(function, *values).result())
        print(rows[-1], flush=True)
    machine = {
        "machine": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
    }
    write_csv(arguments.output, [{**dict.fromkeys(rows[0]), **row, **machine} for row in rows], [*rows[0], *machine])


if __name__ == "__main__":
    main()
