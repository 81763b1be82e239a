"""Subcommands of the corpus: retrieve, tokenize, build the vocabulary, encode."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nplm.cli import app
from nplm.errors import InputError


class Source(StrEnum):
    """Kinds of corpus."""

    brown = "brown"
    text = "text"


class Tokenizer(StrEnum):
    """How plain text becomes tokens."""

    spaces = "spaces"
    raw = "raw"


class Marks(StrEnum):
    """Marks that enter the stream."""

    none = "none"
    paragraph = "paragraph"
    text_and_paragraph = "text+paragraph"


class Scope(StrEnum):
    """What words are counted over."""

    corpus = "corpus"
    train = "train"


@app.command()
def retrieve_corpus(
    output: Annotated[Path, typer.Option(help="Folder for the files and retrieved.json.")],
    source: Annotated[Source, typer.Option(help="The corpus; text needs no retrieving.")] = Source.brown,
    path: Annotated[Path | None, typer.Option(help="Folder of ca01 ... cr09; without it, downloaded.")] = None,
    sha256: Annotated[str | None, typer.Option(help="Of the files in name order; unchecked if not given.")] = None,
) -> None:
    """Get the files of the Brown corpus and verify them."""
    from nplm.corpus.retrieve import retrieve_brown

    if source is Source.text:
        raise InputError("--source text: nothing to retrieve; give the files to tokenize-corpus")
    record = retrieve_brown(output, path, sha256)
    verified = "verified" if sha256 else "not verified: no --sha256 given"
    print(f"{output}: {record['files']} files, {record['bytes']} bytes, from {record['source']}")
    print(f"sha256 {record['sha256']} ({verified})")


@app.command()
def tokenize_corpus(
    input: Annotated[list[Path], typer.Option(help="brown: the folder; text: a file or glob, repeatable.")],
    output: Annotated[Path, typer.Option(help="tokens.txt: one sentence a line.")],
    source: Annotated[Source, typer.Option(help="Format of the input.")] = Source.brown,
    tokenizer: Annotated[Tokenizer, typer.Option(help="text: tokens between spaces, or raw.")] = Tokenizer.spaces,
    marks: Annotated[Marks, typer.Option(help="Marks that enter the stream as tokens.")] = Marks.none,
) -> None:
    """Write the corpus as tokens, one sentence a line."""
    from nplm.corpus.tokenize import TOKENIZERS, brown_files, expand_paths, split_brown, tokenize

    if source is Source.brown:
        if len(input) != 1:
            raise InputError(f"--input: brown is one folder, not {len(input)}; give it once")
        files, split = brown_files(input[0]), split_brown
    else:
        files, split = expand_paths(input), TOKENIZERS[tokenizer.value]
    counts = tokenize(files, split, marks.value, output)
    print(
        f"{output}: {counts.tokens} tokens, {counts.sentences} sentences, {counts.paragraphs} paragraphs, "
        f"{counts.texts} texts"
    )


@app.command()
def build_vocabulary(
    tokens: Annotated[Path, typer.Option(help="tokens.txt of tokenize-corpus.")],
    output: Annotated[Path, typer.Option(help="vocabulary.tsv: id, word, count.")],
    scope: Annotated[Scope, typer.Option(help="Count words over the whole corpus, or over train.")] = Scope.corpus,
    train_size: Annotated[int | None, typer.Option(min=1, help="Tokens of train, for --scope train.")] = None,
    rare_threshold: Annotated[int, typer.Option(min=0, help="Words seen this often or less become <rare>.")] = 3,
) -> None:
    """List the words that get an id of their own."""
    from nplm.corpus import vocabulary

    if scope is Scope.train and train_size is None:
        raise InputError("--scope train: needs --train-size, the tokens of train")
    counts = vocabulary.count_words(tokens, train_size if scope is Scope.train else None)
    made = vocabulary.build_vocabulary(counts, rare_threshold, scope.value)
    vocabulary.write_vocabulary(output, made)
    print(
        f"{output}: {len(made)} entries of {len(counts)} distinct tokens, {made.counts[0]} of {counts.total()} tokens "
        f"rare; counted over {scope.value}, vocabulary {made.hash}"
    )


@app.command()
def encode_corpus(
    tokens: Annotated[Path, typer.Option(help="tokens.txt of tokenize-corpus.")],
    vocabulary: Annotated[Path, typer.Option(help="vocabulary.tsv of build-vocabulary.")],
    train_size: Annotated[int, typer.Option(min=1, help="Tokens of train, the first part of the stream.")],
    valid_size: Annotated[int, typer.Option(min=1, help="Tokens of valid, the next part; test is the rest.")],
    output_directory: Annotated[Path, typer.Option(help="Folder for the three splits and corpus.json.")],
) -> None:
    """Write the encoded splits and the corpus card."""
    from nplm.corpus.encode import corpus_card, encode_tokens, split_stream
    from nplm.corpus.vocabulary import read_vocabulary
    from nplm.files import write_json
    from nplm.streams import write_split

    words = read_vocabulary(vocabulary)
    stream = encode_tokens(tokens, words)
    splits = split_stream(stream.ids, train_size, valid_size, words)
    for split in splits:
        write_split(output_directory / f"{split.name}.safetensors", split)
    write_json(output_directory / "corpus.json", corpus_card(stream, splits, words))
    sizes = ", ".join(f"{split.name} {len(split)}" for split in splits)
    print(f"{output_directory}: {sizes} tokens; |V| = {len(words)}, ids are {stream.ids.dtype}")
