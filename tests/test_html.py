"""The report's page in HTML: what it holds, and how a browser shows it."""

import re
from html.parser import HTMLParser

import browser
import pytest

from nplm.errors import InputError
from nplm.report.html import html_page
from nplm.report.markdown import markdown_table
from nplm.report.style import drawn

WIDTHS = {390: True, 1280: False}


def figure(path, title):
    with drawn(path, 3) as (_, (ax,)):
        ax.plot([1, 2, 3], "o-", label="perplexity")
        ax.set_title(title)


SECTIONS = {
    "Does the paper hold?": markdown_table(
        ["claim", "says", "verdict"],
        [["1", "holds", "does not hold"], ["2", "a < b", "holds"], ["3", "long " * 60, "not run"]],
        left=3,
    ),
    "Empty": "",
    "A wide table": markdown_table(
        [f"column {i}" for i in range(40)], [[f"{10 * i + j}.5 ± 1" for i in range(40)] for j in (3, 1, 2)], left=0
    ),
    "Words": markdown_table(["word", "count"], [["holds", "3"]]),
    "Figures": "![first figure](first.svg)\n\nIts caption with `code_" + "x" * 200 + "`.\n\n![second](second.svg)\n",
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    directory = tmp_path_factory.mktemp("page")
    for name in ("first", "second"):
        figure(directory / f"{name}.svg", f"Figure {name}")
    (directory / "index.html").write_text(html_page("Results: a < b", SECTIONS, directory), encoding="utf-8")
    return directory / "index.html"


def test_the_page_is_whole_and_holds_everything(page):
    text = page.read_text(encoding="utf-8")

    class Balanced(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open = []

        def handle_starttag(self, tag, attributes):
            if tag not in ("meta", "link", "img", "br"):
                self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    parser = Balanced()
    parser.feed(text)
    assert not parser.open
    assert "<h2>Empty</h2>" not in text and text.count("<h2>") == 4
    assert "<title>Results: a &lt; b</title>" in text
    assert text.count("<svg") == 2 and "<img" not in text
    assert not re.findall(r'(?:src|href)="(?!#|data:|[^":]*\.csv)[^"]*"', text), "something is fetched from elsewhere"


def test_verdicts_are_marked_by_name(page):
    text = page.read_text(encoding="utf-8")
    assert re.search(r'<td[^>]* class="verdict does-not-hold">does not hold</td>', text)
    assert re.search(r'<td[^>]* class="verdict not-run">not run</td>', text)
    [words] = re.findall(r"<table>\s*<thead>\s*<tr>\s*<th[^>]*>word<.*?</table>", text, flags=re.DOTALL)
    assert "class" not in words, "a word that looks like a verdict is none"


def test_no_two_figures_share_a_name_and_every_reference_is_met(page):
    text = page.read_text(encoding="utf-8")
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names))
    references = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)
    assert references and {a or b for a, b in references} <= set(names)


def test_a_missing_figure_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gone\.svg: no such file"):
        html_page("Page", {"Figures": "![gone](gone.svg)\n"}, tmp_path)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if browser.find() is None:
        pytest.skip("no Chromium or Chrome is installed")
    with browser.started(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.mark.parametrize("width", WIDTHS)
def test_a_browser_shows_the_page_without_complaint_or_overflow(chromium, page, tmp_path, width):
    chromium.complaints.clear()
    chromium.requests.clear()
    chromium.open(page, width, mobile=WIDTHS[width])
    assert chromium.evaluate("innerWidth") == width
    assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    beyond = """[...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll") && !e.closest("svg"))
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"""
    assert chromium.evaluate(beyond) == []
    assert chromium.evaluate("document.querySelector('svg').getBoundingClientRect().height") > 100
    assert [url for url in chromium.requests if not url.startswith(("file:", "data:"))] == []
    assert chromium.complaints == []
    chromium.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")


def test_a_click_on_a_head_sorts_the_table_and_another_turns_it_round(chromium, page):
    chromium.open(page, 1280)
    first_column = "[...document.querySelectorAll('table')[1].tBodies[0].rows].map(row => row.cells[0].textContent)"
    click = "document.querySelectorAll('table')[1].querySelector('th').click()"
    chromium.evaluate(click)
    assert chromium.evaluate(first_column) == ["1.5 ± 1", "2.5 ± 1", "3.5 ± 1"]
    chromium.evaluate(click)
    assert chromium.evaluate(first_column) == ["3.5 ± 1", "2.5 ± 1", "1.5 ± 1"]


def test_the_browser_test_would_notice_a_complaint_and_an_overflow(chromium, tmp_path):
    (tmp_path / "bad.html").write_text(
        '<meta name="viewport" content="width=device-width"><p style="width: 900px">x</p><script>undefined.x</script>'
    )
    chromium.complaints.clear()
    chromium.open(tmp_path / "bad.html", 390, mobile=True)
    assert chromium.evaluate("document.documentElement.scrollWidth") >= 900
    assert chromium.complaints
    chromium.complaints.clear()
