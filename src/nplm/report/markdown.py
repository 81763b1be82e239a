"""Tables in Markdown that read well as plain text too."""

from collections.abc import Sequence


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A pipe table with columns padded to one width; the first `left` columns are flush left, the others right."""
    cells = [[cell.replace("|", "\\|") for cell in line] for line in (header, *rows)]
    widths = [max(3, *(len(line[column]) for line in cells)) for column in range(len(header))]

    def padded(line: Sequence[str]) -> str:
        sides = (
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "| " + " | ".join(sides) + " |"

    rule = ("-" * width if column < left else "-" * (width - 1) + ":" for column, width in enumerate(widths))
    return "\n".join([padded(cells[0]), "| " + " | ".join(rule) + " |", *map(padded, cells[1:])]) + "\n"


def bullets(notes: Sequence[str]) -> str:
    """A bulleted list, one note a line."""
    return "".join(f"- {note}\n" for note in notes)
