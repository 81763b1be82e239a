from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nplm.corpus.numbers import FORMS, number_symbol, with_ascii_digits
from nplm.corpus.vocabulary import NUMBER_FORMS


def test_every_form_has_a_reserved_symbol_and_every_symbol_a_form():
    assert sorted(form.symbol for form in FORMS) == sorted(NUMBER_FORMS)


@pytest.mark.parametrize(("form", "example"), [(form, example) for form in FORMS for example in form.examples])
def test_documented_examples(form, example):
    assert number_symbol(example, "forms") == form.symbol
    assert number_symbol(example, "one") == "<number>"


def test_the_page_lists_the_forms_in_the_order_in_which_they_are_tried():
    page = (Path(__file__).parents[1] / "docs" / "mapping.md").read_text(encoding="utf-8")
    rows = [f"| `{f.symbol}` | {f.what} | {' '.join(f'`{example}`' for example in f.examples)} |" for f in FORMS]
    assert "\n".join(rows) in page


@pytest.mark.parametrize(
    ("token", "symbol"),
    [
        ("١٢٣", "<integer>"),  # Arabic-Indic
        ("१२३", "<integer>"),  # Devanagari
        ("１２３", "<integer>"),  # full-width
        ("𝟘𝟙", "<integer>"),
        ("①", "<integer>"),
        ("١٩٩٥", "<year>"),
        ("٣٫٥", "<decimal>"),
        ("５０％", "<percent>"),
        ("Ⅷ", "<roman>"),
        ("1,23,456", "<other_number>"),
        ("1,234", "<integer>"),
        ("1099", "<integer>"),
        ("2100", "<integer>"),
        ("25:61", "<other_number>"),
        ("10s", "<alphanumeric>"),
        ("23d", "<ordinal>"),
        ("5d", "<alphanumeric>"),
        ("CO₂", "<alphanumeric>"),
    ],
)
def test_borders_between_forms_and_other_digits(token, symbol):
    assert number_symbol(token, "forms") == symbol


@pytest.mark.parametrize("token", ["ten", "I", "ILL", "IIII", "CD", "MIX", "ii", "U.S.", "%", "$", "-", "a.m.", "三"])
def test_no_numbers(token):
    assert number_symbol(token, "forms") is None
    assert number_symbol(token, "one") is None


@given(st.text(min_size=1).filter(lambda text: any(c.isdecimal() for c in text)))
def test_whatever_has_a_digit_has_a_form(text):
    assert number_symbol(text, "forms") in NUMBER_FORMS


@given(st.integers(0, 10**9))
def test_digits_of_every_script_have_the_form_of_the_ascii_digits(number):
    ascii_digits = str(number)
    for zero in "٠०０𝟘\U0001e4f0\U00010d40":
        other = "".join(chr(ord(zero) + int(digit)) for digit in ascii_digits)
        assert with_ascii_digits(other) == ascii_digits
        assert number_symbol(other, "forms") == number_symbol(ascii_digits, "forms")
