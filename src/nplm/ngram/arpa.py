"""Back-off models as ARPA files: text that other toolkits read; its logarithms are to base 10.

A line holds log10 P(last word | the words before it), the n-gram, and log10 of the weight that multiplies P(w | h') of
a word not seen after this n-gram as history h. `<rare>` is written as `<unk>`, the symbol to which other toolkits map
every word outside the vocabulary. KenLM refuses models of order 1 and files without `<s>` and `</s>`; the stream has no
sentence marks, so these two have log10 P = -99, the format's zero, and are no words of the model.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from nplm.corpus.vocabulary import RARE
from nplm.errors import InputError
from nplm.files import complete_file, read_text
from nplm.ngram.backoff import Backoff

UNKNOWN = "<unk>"
SENTENCE_MARKS = ("<s>", "</s>")
LOG10_ZERO = -99.0
LINES = 1 << 16
"""n-grams formatted at a time"""


def write_arpa(path: str | Path, model: Backoff, words: Sequence[str]) -> list[int]:
    """Write a model in the words of its vocabulary, [|V|]; return the number of n-grams of each order, marks included.

    Raises InputError when the vocabulary holds a symbol that has a meaning of its own in ARPA files.
    """
    for symbol in (UNKNOWN, *SENTENCE_MARKS):
        if symbol in words:
            raise InputError(
                f"the vocabulary holds '{symbol}', which is reserved in ARPA files; replace it in the text"
            )
    names = np.array([UNKNOWN if word == RARE else word for word in words], dtype=object)
    sizes = [len(keys) for keys in model.keys]
    sizes[0] += len(SENTENCE_MARKS)
    with complete_file(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
        file.write("\\data\\\n" + "".join(f"ngram {k}={size}\n" for k, size in enumerate(sizes, start=1)))
        ngrams = np.empty((1, 0), dtype=np.int32)  # word ids [U, k], oldest first
        for k in range(1, model.n + 1):
            suffixes, first_words = np.divmod(model.keys[k - 1], model.vocabulary_size)
            ngrams = np.column_stack([first_words.astype(np.int32), ngrams[suffixes]])
            file.write(f"\n\\{k}-grams:\n")
            if k == 1:
                file.writelines(f"{LOG10_ZERO:.0f}\t{mark}\t0\n" for mark in SENTENCE_MARKS)
            log10_gamma = model.ln_gamma[k - 1] / np.log(10) if k < model.n else None
            _write_ngrams(file, names, ngrams, model.ngram_ln_prob[k - 1] / np.log(10), log10_gamma)
        file.write("\n\\end\\\n")
    return sizes


def _write_ngrams(
    file: TextIO, names: np.ndarray, ngrams: np.ndarray, log10_prob: np.ndarray, log10_gamma: np.ndarray | None
) -> None:
    for start in range(0, len(ngrams), LINES):
        part = slice(start, start + LINES)
        texts = map(" ".join, names[ngrams[part]].tolist())
        if log10_gamma is None:
            lines = (f"{p:.7f}\t{text}\n" for p, text in zip(log10_prob[part].tolist(), texts, strict=True))
        else:
            columns = (log10_prob[part].tolist(), texts, log10_gamma[part].tolist())
            lines = (f"{p:.7f}\t{text}\t{g:.7f}\n" for p, text, g in zip(*columns, strict=True))
        file.writelines(lines)


Table = dict[tuple[str, ...], tuple[float, float]]
"""n-gram -> log10 P, log10 of its weight as a history (0 where none is written)"""


def read_arpa(path: str | Path) -> list[Table]:
    """The tables of orders 1 … n of an ARPA file. Raises InputError, with the line, for anything else."""
    sizes: list[int] = []
    tables: list[Table] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line or line == "\\data\\":
            continue
        if line == "\\end\\":
            break
        try:
            if line.startswith("ngram "):
                sizes.append(int(line.split("=")[1]))
            elif line.startswith("\\"):
                tables.append({})
            else:
                log10_prob, ngram, *log10_gamma = line.split("\t")
                words = tuple(ngram.split(" "))
                if len(words) != len(tables):
                    raise ValueError(f"{len(words)} words among the {len(tables)}-grams")
                tables[-1][words] = float(log10_prob), float(*log10_gamma)
        except (ValueError, TypeError, IndexError) as error:
            raise InputError(f"{path}:{number}: no line of an ARPA file ({error}); export the model anew") from None
    if not tables or [len(table) for table in tables] != sizes:
        raise InputError(f"{path}: holds {[len(t) for t in tables]} n-grams, announces {sizes}; export the model anew")
    return tables


def log10_prob(tables: list[Table], context: Sequence[str], word: str) -> float:
    """log10 P(word | context) by the definition of the format; context holds n-1 words or fewer, oldest first."""
    context = tuple(context)
    ngram = (*context, word)
    if ngram in tables[len(context)]:
        return tables[len(context)][ngram][0]
    gamma = tables[len(context) - 1].get(context, (0.0, 0.0))[1]
    return gamma + log10_prob(tables, context[1:], word)
