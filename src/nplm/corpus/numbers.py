"""Numeric forms: which tokens are numbers of what kind, and the symbol that stands for each kind.

The paper maps "numeric forms" to special symbols (section 4.2) and does not list them; these are ours. A token is
decided on by itself, without its neighbours: `9/11` is a fraction, `1200` a year, and number words (twelve) stay.
"""

import unicodedata
from typing import NamedTuple

import regex

from nplm.corpus.characters import ascii_digit
from nplm.corpus.vocabulary import NUMBER


class Form(NamedTuple):
    """A numeric form: `pattern` matches the whole token, once its digits are ASCII (`with_ascii_digits`)."""

    name: str
    what: str
    pattern: str
    examples: tuple[str, ...]

    @property
    def symbol(self) -> str:
        return f"<{self.name}>"


SIGN = r"[-+−–#№±~≈<>]?"
WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
NUMBER_PATTERN = rf"(?:{WHOLE}(?:\.\d*)?|\d+,\d+|\.\d+)"
CURRENCY = r"(?:(?:US|A|C|HK|NZ|S|R)?\p{Sc}|Rs\.?|DM|USD|GBP|EUR)"

FORMS = (
    Form(
        "money",
        "a currency sign with a number",
        rf"[-+−–]?(?:{CURRENCY}{NUMBER_PATTERN}(?:bn|[mkbMKB])?|{NUMBER_PATTERN}(?:\p{{Sc}}|p))",
        ("$12m", "US$12", "£3.99", "€5", "$1,234.56", "$1.5bn", "5¢", "50p"),
    ),
    Form("percent", "a number with % or ‰", rf"{SIGN}{NUMBER_PATTERN}[%‰٪％]", ("3.5%", "100%", "-2%", "7‰")),
    Form(
        "time",
        "a time of the day",
        r"(?i:(?:[01]?\d|2[0-4])[:.][0-5]\d(?:[:.][0-5]\d)?[ap]\.?m\.?|(?:0?\d|1[0-2])[ap]\.?m\.?"
        r"|(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?)",
        ("10:30", "23:59:59", "9am", "10.30pm", "7p.m."),
    ),
    Form(
        "date",
        "day, month and year, in any order",
        r"(?:\d{1,2}([/.-])\d{1,2}\1(?:\d{4}|\d{2}|['’]\d\d)|\d{4}([/.-])\d{1,2}\2\d{1,2})",
        ("11/29/2026", "29.11.2026", "2026-11-29", "1/2/95"),
    ),
    Form(
        "year",
        "four digits from 1100 to 2099, or a decade",
        r"(?:(?:1[1-9]|20)\d\d|(?:(?:1[1-9]|20)\d0|['’‘`]\d0|[2-9]0)['’]?s|['’‘`]\d\d)",
        ("1995", "2026", "1990s", "1980's", "'80s", "60s", "'95"),
    ),
    Form(
        "ordinal",
        "a number with the ending of an ordinal",
        rf"(?i:{WHOLE}(?:st|nd|rd|th|[ºª])|\d*[23]d)",
        ("1st", "2nd", "3rd", "21st", "100th", "1,000th", "22d"),
    ),
    Form(
        "fraction",
        "two numbers with a slash, or a fraction sign",
        rf"{SIGN}(?:{WHOLE}[-–]?)?(?:(?<!\d)\d+[/⁄]\d+|\p{{No}}(?<=[¼-¾⅐-⅞↉]))",
        ("1/2", "2/3", "9/11", "10½", "½", "2-1/2"),
    ),
    Form("integer", "digits alone, with commas between thousands", rf"{SIGN}{WHOLE}", ("7", "1,000,000", "-5", "007")),
    Form(
        "decimal",
        "a number with a decimal point, also with an exponent",
        rf"{SIGN}(?:{NUMBER_PATTERN}|{NUMBER_PATTERN}[eE][-+−]?\d+)",
        ("1,234.56", "3.5", ".5", "5.", "-5.2", "1e-5", "0,5"),
    ),
    Form(
        "roman",
        "a Roman numeral of capitals from II to LXXXIX (C, D and M are left out: CD, MIX)",
        r"(?=[IVXL]{2})(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})\.?",
        ("II", "XIV", "XLII", "LXXX"),
    ),
    Form(
        "alphanumeric",
        "letters with digits",
        r".*\p{L}.*",
        ("F-16s", "A320", "MP3", "4x4", "10-year-old", "3-D", "0x1F", "x²", "25°C", "1.5bn"),
    ),
    Form(
        "other_number",
        "several numbers, or digits with other signs: scores, ranges, telephone numbers, versions",
        r".*",
        ("6-4", "1914-18", "555-1234", "10.0.0.1", "25°", "7-6,"),
    ),
)
"""In the order in which they are tried: the first that matches names the form"""

_PATTERNS = [(form.symbol, regex.compile(form.pattern, regex.DOTALL)) for form in FORMS]
_IS_NUMBER = regex.compile(rf".*\p{{N}}.*|{next(form.pattern for form in FORMS if form.name == 'roman')}", regex.DOTALL)
_SIGNS = str.maketrans("٫٬／：，．", ".,/:,.")
_FRACTION_SIGNS = {chr(code) for code in (*range(0xBC, 0xBF), *range(0x2150, 0x215F), 0x2189)}


def number_symbol(token: str, numbers: str) -> str | None:
    """The symbol that a token becomes under the option `numbers` ("one" or "forms"); None for what is no number."""
    if not _IS_NUMBER.fullmatch(token):
        return None
    if numbers == "one":
        return NUMBER
    plain = with_ascii_digits(token)
    return next(symbol for symbol, pattern in _PATTERNS if pattern.fullmatch(plain))


def with_ascii_digits(token: str) -> str:
    """The token with digits of every script, in circles, raised, full-width and so on, as 0 ... 9.

    Signs for Roman numerals become capitals (Ⅷ: VIII); signs for fractions stay.
    """
    if token.isascii():
        return token
    return "".join(map(_ascii_number, token)).translate(_SIGNS)


def _ascii_number(character: str) -> str:
    if regex.match(r"\p{Nd}", character):
        return ascii_digit(character)
    category = unicodedata.category(character)
    if category == "Nl":
        return unicodedata.normalize("NFKC", character).upper()
    if category == "No" and character not in _FRACTION_SIGNS:
        value = unicodedata.numeric(character)
        return str(int(value)) if value.is_integer() else character
    return character
