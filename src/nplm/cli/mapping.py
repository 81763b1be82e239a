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
    share: Annotated[float, Option(min=0, max=1, help="Proper nouns: least share of capitals.")] = 0.85,
    count: Annotated[int, Option(min=1, help="Proper nouns: least number of capitals inside sentences.")] = 1,
    headline_share: Annotated[float, Option(min=0, help="A line with this share of capitals is a headline.")] = 0.9,
) -> None:
    """Map tokens to fewer: numbers and proper nouns to symbols, the rest to lower case."""
    from nplm.corpus import mapping
    from nplm.corpus.proper_nouns import Thresholds, decide, write_proper_nouns
    from nplm.files import require_writable, write_json

    require_writable((output, record, proper_noun_table), [tokens])
    wanted = mapping.Mapping(lower_case, numbers, proper_nouns, Thresholds(share, count, headline_share))
    counts = mapping.count_tokens(tokens, wanted.thresholds)
    made = mapping.map_tokens(tokens, output, wanted, counts)
    write_proper_nouns(proper_noun_table, counts.cases, decide(counts.cases, wanted.thresholds))
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
    """Show what each step, from the characters to the word's id, makes of a text.

    A row for each token. Columns: what a step of the mapping that changes the token makes of it; capitals: of the uses
    of the word that tell, how many have a capital; rare: <rare>, if it becomes that; id and count: in the vocabulary,
    of the word or of <rare>. What is not mapped, or has no file, has no column.
    """
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
    words = (RARE if token.id == 0 else token.mapped for sentence in explanation.sentences for token in sentence)
    print("becomes:", " ".join(words))


def _tables(explanation: "Explanation") -> Iterator["Table"]:
    """A table for each sentence: a token a row, a column for each step that is on."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    from nplm.corpus.vocabulary import RARE

    rules = explanation.rules
    steps = rules.mapping.steps()
    for sentence in explanation.sentences:
        table = Table("token", box=SIMPLE)
        for step in steps:
            table.add_column(step.replace("_", " "))
        if "proper_nouns" in steps:
            table.add_column("capitals", justify="right")
        if rules.vocabulary:
            table.add_column("rare")
            table.add_column("id", justify="right")
            table.add_column("count", justify="right")
        for token in sentence:
            cells = [token.token, *(token.mapped if token.step == step else "" for step in steps)]
            cells += [token.evidence] if "proper_nouns" in steps else []
            if rules.vocabulary:
                cells += ["" if token.id else RARE, str(token.id), f"{rules.vocabulary.counts[token.id]:,}"]
            table.add_row(*map(Text, cells))
        yield table
