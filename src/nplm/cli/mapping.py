"""Subcommands about what becomes of a token: map-tokens, explain."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

from nplm.cli import app

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
    print(f"{output}: {made['tokens']} tokens, {made['distinct_before_mapping']} distinct before; changed: {steps}")
