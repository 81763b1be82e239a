"""The report's page as one HTML file that needs nothing else: figures inside, tables that sort, no network."""

import re
from html import unescape
from pathlib import Path

from nplm.errors import InputError
from nplm.files import read_text
from nplm.report.claims import VERDICTS

TEMPLATE = "index.html.jinja"


def html_page(title: str, sections: dict[str, str], directory: str | Path) -> str:
    """The page of nplm.report.page as HTML; images (SVG) are read from `directory` and put in place.

    Raises InputError when an image is missing.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    parts = [
        {"title": heading, "anchor": _anchor(heading), "html": _finished(markdown.render(text), Path(directory))}
        for heading, text in sections.items()
        if text
    ]
    return environment.get_template(TEMPLATE).render(title=title, sections=parts)


def _finished(html: str, directory: Path) -> str:
    """Rendered Markdown with its figures in place, tables in boxes of their own that scroll, and verdicts marked."""
    html = re.sub(r'<p><img src="([^"]+)" alt="([^"]*)" /></p>', lambda image: _figure(image, directory), html)
    html = html.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    return re.sub(r"<table>.*?</table>", _with_verdicts_marked, html, flags=re.DOTALL)


def _with_verdicts_marked(table: re.Match) -> str:
    """A table with a column of verdicts; in any other one, a word that looks like a verdict is none."""
    if ">verdict</th>" not in table[0]:
        return table[0]
    verdicts = "|".join(map(re.escape, VERDICTS))
    return re.sub(
        rf"<td([^>]*)>({verdicts})</td>",
        lambda cell: f'<td{cell[1]} class="verdict {_anchor(cell[2])}">{cell[2]}</td>',
        table[0],
    )


def _figure(image: re.Match, directory: Path) -> str:
    """An image as SVG in place; the names inside are made its own, since other figures have the same."""
    path = directory / unescape(image[1])
    svg = read_text(path)
    if "<svg" not in svg:
        raise InputError(f"{path}: is no SVG file; make it anew")
    svg = svg[svg.index("<svg") :]
    name = _anchor(path.stem)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{image[2]}"', 1)
    return f'<figure id="figure-{name}">{svg}</figure>'


def _anchor(heading: str) -> str:
    """What a heading is called in a link."""
    return re.sub(r"\W+", "-", heading.lower()).strip("-")
