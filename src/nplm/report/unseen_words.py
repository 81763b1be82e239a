"""How words that a network was trained without fare once they have features (paper, section 5.1)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nplm.arrays import read_arrays, read_header
from nplm.errors import InputError
from nplm.files import read_csv
from nplm.report.markdown import bullets, escape, markdown_table, write_csv_and_markdown

COLUMNS = ("model", "words", "tokens", "perplexity", "perplexity_other_tokens", "ln_gain", "ln_gain_standard_error")
NOTES = (
    "Perplexity of the test tokens that are held-out words, whose number is `tokens`, and of all other test tokens. "
    "Each P is normalised over the whole vocabulary, held-out words included.",
    "Gain: mean over the held-out tokens of ln P − ln P of the first row, in nats, ± its standard error.",
)

Row = dict[str, str]


def read_held_out(path: str | Path) -> np.ndarray:
    """Ids of the words that a model's network was trained without. Raises InputError where the file has none."""
    arrays, _ = read_arrays(path, read_header(path)["kind"])
    if "held_out" not in arrays:
        raise InputError(f"{path}: names no held-out words; give models of kind unseen_words")
    return arrays["held_out"]


def tabulate_unseen_words(
    held_out: Mapping[str, np.ndarray], ln_prob: Mapping[str, np.ndarray], tokens: np.ndarray
) -> list[Row]:
    """One row a model, the first of which is what the others gain over.

    held_out: model -> word ids; ln_prob: model -> nats [T]; tokens [T], the split's word ids. The gain is empty where a
    model holds out other words than the first. Raises InputError where no token is a held-out word.
    """
    rows = []
    first = next(iter(held_out))
    for model, words in held_out.items():
        unseen = np.isin(tokens, words)
        if not unseen.any():
            raise InputError(f"{model}: none of the {len(words)} held-out words is in the split; hold out more")
        values = ln_prob[model]
        row = {
            "model": model,
            "words": str(len(words)),
            "tokens": str(int(unseen.sum())),
            "perplexity": f"{np.exp(-values[unseen].mean()):.2f}",
            "perplexity_other_tokens": f"{np.exp(-values[~unseen].mean()):.2f}" if not unseen.all() else "",
            "ln_gain": "",
            "ln_gain_standard_error": "",
        }
        if np.array_equal(words, held_out[first]) and model != first:
            gain = (values - ln_prob[first])[unseen]
            row["ln_gain"] = f"{gain.mean():.4f}"
            row["ln_gain_standard_error"] = f"{gain.std() / np.sqrt(len(gain)):.4f}"
        rows.append(row)
    return rows


def write_unseen_words(directory: str | Path, rows: Sequence[Row]) -> None:
    """Write unseen_words.csv and unseen_words.md."""
    write_csv_and_markdown(
        Path(directory) / "unseen_words", "Words never seen in training", rows, COLUMNS, unseen_words_markdown
    )


def read_unseen_words(path: str | Path) -> list[Row]:
    """A table written by `write_unseen_words`."""
    return read_csv(path, COLUMNS)


def unseen_words_markdown(rows: Sequence[Row]) -> str:
    """The table for the reader."""
    header = ["model", "words", "tokens", "perplexity", "other tokens", "gain, nats"]
    cells = [
        [
            escape(row["model"]),
            *(row[column] for column in COLUMNS[1:5]),
            f"{row['ln_gain']} ± {row['ln_gain_standard_error']}" if row["ln_gain"] else "",
        ]
        for row in rows
    ]
    return markdown_table(header, cells) + "\n" + bullets(NOTES)
