"""The word classes that the report lists: of the best class-based model, and what is said of them."""

import numpy as np
import pytest

from nplm.errors import InputError
from nplm.ngram.classes import WordClasses
from nplm.report.word_classes import (
    best_number_of_classes,
    class_rows,
    read_word_classes,
    word_classes_markdown,
    write_word_classes,
)

EXPERIMENT = {
    "models": {
        "kn3": {"kind": "kneser_ney", "n": 3},
        "few": {"kind": "class_ngram", "classes": 2, "n": 3},
        "many": {"kind": "class_ngram", "classes": 5, "n": 3},
    }
}


def rows(**perplexities: str) -> list[dict[str, str]]:
    return [{"scores": name, "valid_ppl": perplexity} for name, perplexity in perplexities.items()]


def test_the_classes_are_those_of_the_best_class_based_model_on_validation():
    assert best_number_of_classes(EXPERIMENT, rows(kn3="90", few="120", many="110")) == 5
    assert best_number_of_classes(EXPERIMENT, rows(kn3="90", few="120", many="not run")) == 2


def test_without_a_class_based_row_that_was_run_it_says_so():
    with pytest.raises(InputError, match="no class-based row"):
        best_number_of_classes(EXPERIMENT, rows(kn3="90", few="not run"))


def test_rows_tell_size_tokens_and_words_and_survive_the_file(tmp_path):
    table = WordClasses(
        ["<rare>", "the", "a", "of", "in"], np.array([1, 0, 0, 1, 1], dtype=np.int32), np.array([1, 9, 4, 5, 7])
    )
    listed = class_rows(table, 12)
    assert [(row["class"], row["size"], row["tokens"]) for row in listed] == [(0, 2, 13), (1, 3, 13)]
    assert [row["words"] for row in listed] == ["the a", "in of <rare>"]
    write_word_classes(tmp_path, listed)
    read = read_word_classes(tmp_path / "word_classes.csv")
    assert [row["words"] for row in read] == ["the a", "in of <rare>"]
    assert r"| in of \<rare>" in word_classes_markdown(read), "an HTML tag is not shown"
    assert (tmp_path / "word_classes.md").read_text().startswith("# Word classes")
