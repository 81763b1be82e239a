"""Tables in LaTeX for inclusion in a paper, with the rules of the package booktabs."""

from collections.abc import Sequence

_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "[": "{[}",  # first in a row, it would be an option of the line's end before it, and so would an asterisk
        "*": "{*}",
        **{character: "\\" + character for character in "&%$#_{}"},
    }
)


def escape(text: str) -> str:
    """Text in which LaTeX sees no command."""
    return text.translate(_ESCAPES)


def latex_table(
    groups: Sequence[tuple[str, int]],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str,
    label: str,
) -> str:
    """A table environment, of already escaped cells; the first column is flush left, the others right.

    groups: (title, number of columns) of each run of columns from left to right; an untitled run gets no rule.
    """
    titles, rules, first = [], [], 1
    for title, width in groups:
        titles.append(rf"\multicolumn{{{width}}}{{c}}{{{title}}}")
        if title:
            rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
        first += width
    body = [" & ".join(row) + r" \\" for row in rows]
    return (
        "\n".join(
            [
                r"% needs \usepackage{booktabs}",
                r"\begin{table}",
                r"\footnotesize\setlength{\tabcolsep}{3pt}",
                rf"\caption{{{caption}}}",
                rf"\label{{{label}}}",
                r"\makebox[\linewidth]{%",  # centred on the text even where it is wider
                rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
                r"\toprule",
                " & ".join(titles) + r" \\",
                " ".join(rules),
                " & ".join(header) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}}",
                r"\end{table}",
            ]
        )
        + "\n"
    )
