"""Subcommands about what becomes of a token: map-tokens, explain."""

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from nplm.cli import app

if TYPE_CHECKING:
    from rich.table import Table

    from nplm.corpus.explain import Explanation

Numbers = StrEnum("Numbers", ["keep", "one", "forms"])
ProperNouns = StrEnum("ProperNouns", ["keep", "one"])


@app.command("map-tokens")
def map_tokens(
    tokens: Annotated[Path, Option(help="Tokens made by tokenize-corpus.")],
    output: Annotated[Path, Option(help="Mapped tokens to write.")],
    record: Annotated[Path, Option(help="Record to write (JSON): what each step changed, with examples.")],
    proper_noun_table: Annotated[Path, Option(help="Words with capitals to write (TSV), and which are proper nouns.")],
    lower_case: Annotated[bool, Option(help="Lower-case what no other step changes.")] = False,
    numbers: Annotated[Numbers, Option(help="Numbers: keep, one symbol, or a symbol for each form.")] = "keep",
    proper_nouns: Annotated[ProperNouns, Option(help="Proper nouns: keep, or one symbol.")] = "keep",
    inside_share: Annotated[float, Option(min=0, max=1, help="Share of capitals, inside a sentence.")] = 0.85,
    start_share: Annotated[float, Option(min=0, max=1, help="The same, at a sentence start.")] = 0.8,
    inside_count: Annotated[int, Option(min=1, help="Capitals inside sentences, at least.")] = 1,
    headline_share: Annotated[float, Option(min=0, help="A line with this share of capitals is a headline.")] = 0.9,
) -> None:
    """Map tokens to fewer: numbers and proper nouns to symbols, the rest to lower case."""
    from nplm.corpus import mapping
    from nplm.corpus.proper_nouns import Thresholds, write_proper_nouns
    from nplm.files import write_json

    thresholds = Thresholds(inside_share, start_share, inside_count, headline_share)
    wanted = mapping.Mapping(lower_case, numbers, proper_nouns, thresholds)
    table, counts, found = mapping.fit_proper_nouns(tokens, wanted)
    made = mapping.map_tokens(tokens, output, wanted, table, found)
    write_proper_nouns(proper_noun_table, counts, found)
    write_json(record, made)
    steps = ", ".join(f"{step} {counts['tokens_changed']}" for step, counts in made["steps"].items())
    print(f"{output}: {made['tokens']} tokens, {made['distinct']} distinct before; changed: {steps}")


@app.command("explain")
def explain(
    text: Annotated[str, Argument(help="A sentence, or several.")],
    experiment: Annotated[
        Path | None, Option(help="Folder of an experiment's results (results/brown): its rules, unless given below.")
    ] = None,
    tokens_record: Annotated[
        Path | None, Option(help="tokens.json: the tokenizer, and whether text is cleaned.")
    ] = None,
    mapping_record: Annotated[Path | None, Option(help="mapped.json: what is mapped.")] = None,
    proper_noun_table: Annotated[Path | None, Option(help="proper_nouns.tsv: the proper nouns.")] = None,
    vocabulary: Annotated[Path | None, Option(help="vocabulary.tsv: the words that are not rare.")] = None,
) -> None:
    """Show what each step, from the characters to the word's id, makes of a text."""
    from rich.console import Console

    from nplm.corpus.explain import FILES, explain_text, files_of_experiment, read_rules
    from nplm.corpus.vocabulary import RARE

    given = dict(zip(FILES, (tokens_record, mapping_record, proper_noun_table, vocabulary), strict=True))
    files = files_of_experiment(experiment) if experiment else {}
    explanation = explain_text(text, read_rules(**{**files, **{name: path for name, path in given.items() if path}}))
    if explanation.rules.characters == "clean":
        what = ", ".join(f"{name} {count}" for name, count in explanation.changes.items() if count)
        print(f"characters: {what or 'nothing to clean'}\n  {explanation.cleaned}")
    print(f"tokens: {explanation.rules.tokenizer}, {len(explanation.sentences)} sentence(s)")
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False, markup=False)
    for table in _tables(explanation):
        console.print(table)
    words = (token.after for sentence in explanation.sentences for token in sentence)
    if explanation.rules.vocabulary:
        words = (word if word in explanation.rules.vocabulary.index else RARE for word in words)
    print("becomes:", " ".join(words))


def _tables(explanation: "Explanation") -> Iterator["Table"]:
    """A table for each sentence: a token a row, a column for each step that is on."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    from nplm.corpus.mapping import STEPS
    from nplm.corpus.vocabulary import RARE

    rules = explanation.rules
    steps = [step for step in STEPS if rules.mapping and getattr(rules.mapping, step) not in ("keep", False)]
    for sentence in explanation.sentences:
        table = Table("token", *(["place"] if "proper_nouns" in steps else []), box=SIMPLE)
        for step in steps:
            table.add_column(step.replace("_", " "))
        if rules.vocabulary:
            table.add_column("rare")
            table.add_column("id", justify="right")
            table.add_column("count", justify="right")
        for token in sentence:
            cells = [token.token, *([token.place] if "proper_nouns" in steps else [])]
            cells += [token.after if token.step == step else "" for step in steps]
            if rules.vocabulary:
                id = explanation.id(token)
                cells += ["" if id else RARE, str(id), f"{rules.vocabulary.counts[id]:,}"]
            table.add_row(*(Text(cell) for cell in cells))
        yield table
