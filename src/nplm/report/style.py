"""One look for every figure: readable in black and white, on a telephone, and the same bytes on every run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nplm.files import complete_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 6.0
"""inches: with text of 12 points, what still reads when a telephone shrinks the figure to its width"""

LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "D", "s", "^", "v", "P", "X", "*")
COLORS = ("black", "#0072b2", "#d55e00", "#009e73", "#7f7f7f")
"""told apart by colour-blind readers (Okabe & Ito 2008); markers and lines tell them apart without colour"""

SHADES = (
    "#ffffff",
    "#d9d9d9",
    "#a6a6a6",
    "#56b4e9",
    "#e69f00",
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#f0e442",
    "#7f7f7f",
    "#cc79a7",
)
HATCHES = ("", "///", "...", "xxx", "---", "", "++", "ooo", "\\\\\\", "||", "**")
"""of areas side by side, told apart with or without colour"""

_SETTINGS = {
    "font.family": "sans-serif",
    "font.size": 12,
    "axes.labelsize": 12,
    "axes.titlesize": 13,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "lines.linewidth": 1.6,
    "lines.markersize": 6,
    "legend.frameon": False,
    "legend.fontsize": 12,
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "white",
    "text.parse_math": False,  # words, and names of rows and corpora, may hold dollar signs
    "svg.fonttype": "none",  # text stays text: small files that can be searched
    "svg.hashsalt": "nplm",  # identifiers do not depend on the run
}


@contextmanager
def drawn(path: str | Path, height: float, rows: int = 1, **subplots: object) -> Iterator[tuple["Figure", list]]:
    """Yield a figure of `height` inches and its list of axes, one below the other; write it as SVG at the end."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    with matplotlib.rc_context(_SETTINGS):
        figure, axes = pyplot.subplots(rows, 1, figsize=(WIDTH, height), squeeze=False, **subplots)
        try:
            yield figure, list(axes[:, 0])
            with complete_file(path) as partial:
                figure.savefig(partial, format="svg", metadata={"Date": None, "Creator": None})
        finally:
            pyplot.close(figure)


def plain_logarithmic(axis) -> None:
    """Give a matplotlib axis (x or y) a logarithmic scale with ticks such as 200, 300, 500, not powers of ten.

    To be called when all is drawn: where that spans less than a factor of two, the ticks are at equal steps.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    lowest, highest = axis.get_view_interval()
    axis.set_major_locator(
        LogLocator(subs=(1, 1.5, 2, 3, 5, 7)) if highest > 2 * lowest else MaxNLocator(5, steps=[1, 2, 5, 10])
    )
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
