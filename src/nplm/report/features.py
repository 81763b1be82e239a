"""What a network has learned of words: neighbours in the space of its features C, and a map of it in two dimensions."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nplm.arrays import read_arrays, read_header, require_same_vocabulary
from nplm.corpus.vocabulary import SPECIAL_SYMBOLS, Vocabulary
from nplm.errors import InputError
from nplm.files import read_csv
from nplm.report.markdown import bullets, escape, markdown_table, write_csv_and_markdown

COLUMNS = ("model", "word", "count", "rank", "neighbour", "neighbour_count", "cosine")
LEAST_COUNT = 50
"""words counted less often are no neighbours: their features have hardly moved from where chance put them"""


def read_features(path: str | Path, vocabulary: Vocabulary) -> np.ndarray:
    """C float32 [|V|, m] of a network's model file.

    Raises InputError when it has no such features, or belongs to another vocabulary.
    """
    arrays, header = read_arrays(path, read_header(path)["kind"])
    if "C" not in arrays:
        raise InputError(f"{path}: a model of kind {header['kind']} has no features of words (C); give a network's")
    require_same_vocabulary((path, header["vocabulary"]), ("the vocabulary given", vocabulary.hash))
    return arrays["C"]


def chosen_words(vocabulary: Vocabulary, number: int, of: int = 2000) -> list[str]:
    """Words that show the vocabulary: `number` at equal steps down the `of` most frequent ones made of letters.

    Of all words, where none is made of letters.
    """
    regular = [vocabulary.words[i] for i in frequent_words(vocabulary, len(vocabulary))]
    words = ([word for word in regular if _is_of_letters(word)] or regular)[:of]
    return words[:: max(1, len(words) // number)][:number]


def _is_of_letters(word: str) -> bool:
    """Whether a word has nothing but letters and what marks them, such as the vowel signs of Hindi."""
    return all(unicodedata.category(character)[0] in "LM" for character in word)


def nearest_neighbours(
    C: np.ndarray, vocabulary: Vocabulary, words: Sequence[str], number: int, least_count: int = LEAST_COUNT
) -> list[dict[str, object]]:
    """The `number` words whose features have the largest cosine with those of each word, without the word itself.

    Only words counted `least_count` times or more are neighbours, or all where no word is. One row per neighbour,
    without the column model. Raises InputError for a word that the vocabulary lacks.
    """
    id_of = vocabulary.index
    for word in words:
        if word not in id_of:
            raise InputError(f"the vocabulary has no word '{word}'; correct or remove it (config: words)")
    candidates = np.flatnonzero(vocabulary.counts >= least_count)
    if len(candidates) < 2:
        candidates = np.arange(len(vocabulary))
    candidates = candidates[~_special(vocabulary)[candidates]]
    unit = C / np.maximum(np.linalg.norm(C, axis=1, keepdims=True), np.finfo(C.dtype).tiny)
    rows = []
    for word in words:
        cosine = unit[candidates] @ unit[id_of[word]]
        order = [i for i in np.argsort(-cosine, kind="stable") if candidates[i] != id_of[word]][:number]
        rows += [
            {
                "word": word,
                "count": int(vocabulary.counts[id_of[word]]),
                "rank": rank,
                "neighbour": vocabulary.words[candidates[i]],
                "neighbour_count": int(vocabulary.counts[candidates[i]]),
                "cosine": f"{cosine[i]:.4f}",
            }
            for rank, i in enumerate(order, start=1)
        ]
    return rows


def plane(C: np.ndarray, seed: int) -> np.ndarray:
    """The rows of C [N, m] as points [N, 2]: as they are when m = 2, else by t-SNE (van der Maaten & Hinton 2008).

    t-SNE keeps neighbours (by cosine) together; distances between far points on it mean nothing. One row has no
    neighbour: it is at the origin.
    """
    if C.shape[1] == 2:
        return C.astype(np.float64)
    if len(C) < 2:
        return np.zeros((len(C), 2))
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(C) - 1) / 3)
    tsne = TSNE(metric="cosine", perplexity=perplexity, init="random", random_state=seed, n_jobs=1)
    return tsne.fit_transform(C.astype(np.float64))


def frequent_words(vocabulary: Vocabulary, number: int) -> np.ndarray:
    """Ids of the most frequent words, special symbols aside; fewer when the vocabulary has fewer."""
    return np.flatnonzero(~_special(vocabulary))[:number]


def _special(vocabulary: Vocabulary) -> np.ndarray:
    """Which ids are of symbols that are no words: bool [|V|]."""
    return np.isin(vocabulary.words, SPECIAL_SYMBOLS)


def write_neighbours(directory: str | Path, rows: list[dict[str, object]]) -> None:
    """Write neighbours.csv and neighbours.md."""
    write_csv_and_markdown(
        Path(directory) / "neighbours", "Words with similar features", rows, COLUMNS, neighbours_markdown
    )


def read_neighbours(path: str | Path) -> list[dict[str, str]]:
    """A table written by `write_neighbours`, every cell as text."""
    return read_csv(path, COLUMNS)


def neighbours_markdown(rows: Sequence[dict[str, str]]) -> str:
    """One line per word, its neighbours in order, each with its cosine."""
    if not rows:
        return ""
    lines: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        lines.setdefault(row["word"], []).append(row)
    cells = [
        [
            escape(word),
            f"{int(group[0]['count']):,}",
            ", ".join(f"{escape(row['neighbour'])} {float(row['cosine']):.2f}" for row in group),
        ]
        for word, group in lines.items()
    ]
    note = (
        f"Of {rows[0]['model']}, on validation the best network that was trained here: the words whose features C have "
        "the largest cosine with the word's."
    )
    if all(int(row["neighbour_count"]) >= LEAST_COUNT for row in rows):
        note += f" Only words counted {LEAST_COUNT} times or more are listed as neighbours."
    return markdown_table(["word", "count", "nearest words"], cells, left=3) + "\n" + bullets([note])
