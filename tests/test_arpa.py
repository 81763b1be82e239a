from itertools import pairwise, product

import numpy as np
import pytest
from typer.testing import CliRunner

from nplm.cli import app
from nplm.corpus.vocabulary import RARE, Vocabulary, write_vocabulary
from nplm.errors import InputError
from nplm.ngram import class_ngram, katz
from nplm.ngram.arpa import log10_prob, read_arpa, write_arpa
from nplm.ngram.kneser_ney import fit, write_model

WORDS = [RARE, "the", "of", "naïve", "<text>", "\\end\\", "ngram", "seldom", "never"]
TOKENS = np.append(np.random.default_rng(2).zipf(1.7, 300) % 7, 7)
PRINTED = 0.5e-7
"""rounding of a number in the file"""


def fitted(n=3, smoothing="interpolated", **options):
    if smoothing == "katz":
        return katz.fit(TOKENS, len(WORDS), n, undefined_discounts="fallback", **options)
    return fit(TOKENS, len(WORDS), n, smoothing, undefined_discounts="fallback", **options)


@pytest.mark.parametrize("smoothing", ["backoff", "interpolated", "katz"])
@pytest.mark.parametrize("cutoffs", [None, (1, 1, 2), (1, 2, 3)])
def test_file_gives_the_models_probabilities(tmp_path, smoothing, cutoffs):
    model = fitted(smoothing=smoothing, cutoffs=cutoffs)
    write_arpa(tmp_path / "model.arpa", model, WORDS)
    tables = read_arpa(tmp_path / "model.arpa")
    names = ["<unk>", *WORDS[1:]]
    ngrams = np.array(list(product(range(len(WORDS)), repeat=3)))
    expected = model.ln_prob(ngrams[:, :2], ngrams[:, 2]) / np.log(10)
    from_file = [log10_prob(tables, (names[u], names[v]), names[w]) for u, v, w in ngrams]
    np.testing.assert_allclose(from_file, expected, rtol=0, atol=3 * PRINTED)


def test_every_prefix_and_suffix_of_an_ngram_is_in_the_file(tmp_path):
    write_arpa(tmp_path / "model.arpa", fitted(cutoffs=(1, 4, 2)), WORDS)
    tables = read_arpa(tmp_path / "model.arpa")
    for shorter, longer in pairwise(tables):
        assert longer
        assert all(ngram[:-1] in shorter and ngram[1:] in shorter for ngram in longer)


def test_file_holds_what_kenlm_asks_for(tmp_path):
    sizes = write_arpa(tmp_path / "model.arpa", fitted(), WORDS)
    text = (tmp_path / "model.arpa").read_text(encoding="utf-8")
    assert text.startswith(
        f"\\data\\\nngram 1={len(WORDS) + 2}\nngram 2={sizes[1]}\nngram 3={sizes[2]}\n\n\\1-grams:\n"
    )
    assert text.endswith("\n\n\\end\\\n")
    unigrams = read_arpa(tmp_path / "model.arpa")[0]
    assert unigrams["<s>",] == unigrams["</s>",] == (-99, 0)
    assert ("<unk>",) in unigrams
    assert (RARE,) not in unigrams
    assert max(p for p, _ in unigrams.values()) <= 0


def test_vocabulary_with_a_reserved_symbol_is_refused(tmp_path):
    with pytest.raises(InputError, match="'</s>', which is reserved"):
        write_arpa(tmp_path / "model.arpa", fitted(), [*WORDS[:-1], "</s>"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\\data\\\nngram 1=1\n\n\\1-grams:\n-1\ta b\t0\n\n\\end\\\n", "model.arpa:5: no line of an ARPA file"),
        ("\\data\\\nngram 1=2\n\n\\1-grams:\n-1\ta\t0\n\n\\end\\\n", "announces"),
        ("id\tword\n", "model.arpa:1: no line of an ARPA file"),
        ("\n", "announces"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    (tmp_path / "model.arpa").write_text(text)
    with pytest.raises(InputError, match=message):
        read_arpa(tmp_path / "model.arpa")


def test_command_refuses_the_vocabulary_of_another_corpus_and_models_of_another_form(tmp_path):
    words = Vocabulary(WORDS, np.zeros(len(WORDS), dtype=np.int64))
    write_vocabulary(tmp_path / "vocabulary.tsv", words)
    arguments = ["export-arpa", "--model", str(tmp_path / "model"), "--vocabulary", str(tmp_path / "vocabulary.tsv")]
    arguments += ["--output", str(tmp_path / "model.arpa")]
    write_model(tmp_path / "model", fitted(vocabulary="another"))
    with pytest.raises(InputError, match="another"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    write_model(tmp_path / "model", fitted(vocabulary=words.hash))
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert len(read_arpa(tmp_path / "model.arpa")) == 3
    class_ngram.write_model(tmp_path / "model", class_ngram.fit(TOKENS, np.arange(len(WORDS)), 2))
    with pytest.raises(InputError, match="model: no back-off model"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
