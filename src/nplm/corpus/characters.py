"""The characters that `characters: clean` changes before text is tokenised, a rule each; docs/corpora.md has the table.

White space stays: tokens end at any of it, and only line ends separate lines. Case stays, ALL-CAPS headlines with it:
the mapping of tokens deals with case.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache
from unicodedata import is_normalized, normalize

import regex

ASCII_UNCHANGED = regex.compile(r"[\t\n\r\x20-\x7e]*+")
"""text that no rule changes, and most text is"""
EMOJI = (
    r"(?:\p{Regional_Indicator}{2}"
    r"|[0-9#*]\ufe0f?\u20e3"
    r"|(?:\p{Emoji_Presentation}|\p{Emoji}\ufe0f)[\p{Emoji_Modifier}\U000e0020-\U000e007f]*"
    r"(?:\u200d(?:\p{Emoji_Presentation}|\p{Emoji}\ufe0f?)\p{Emoji_Modifier}?)*)"
)
"""one emoji as seen, of however many characters"""
SHAPES_LETTERS = r"[^\s\p{Latin}\p{P}\p{N}[\p{Zinh}--\ufe0f]]"
"""next to it, a joiner or non-joiner says how letters or emoji are drawn, as in Persian and the languages of India"""

CURLY = str.maketrans("‘’‚‛“”„‟", "''''\"\"\"\"")
DASHES = str.maketrans({**dict.fromkeys("‐‑‒–−", "-"), **dict.fromkeys("—―", "--")})


def _set_off(match: regex.Match) -> str:
    """What was matched with white space on both sides."""
    text, start, end = match.string, match.start(), match.end()
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    return f"{'' if before.isspace() else ' '}{match[0]}{'' if after.isspace() else ' '}"


@cache
def ascii_digit(character: str) -> str:
    """0-9 for a decimal digit of any script: as `regex` knows them, whatever Unicode the interpreter knows."""
    return next(digit for digit in "0123456789" if regex.match(rf"\p{{Numeric_Value={digit}}}", character))


Replacement = str | Callable[[regex.Match], str]
RULES: dict[str, tuple[str, Replacement]] = {
    "line_separators": (r"[\v\f\x85\u2028\u2029]", " "),
    "windows_1252_characters": (
        r"[\x80\x82-\x84\x86-\x8c\x8e\x91-\x9c\x9e\x9f]",
        lambda match: match[0].encode("latin-1").decode("cp1252"),
    ),
    "control_characters": (r"[\x00-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d]", " "),
    "soft_hyphens": (r"\xad", ""),
    "zero_width_characters": (
        rf"[\u200b\u2060\ufeff]|(?<!{SHAPES_LETTERS})[\u200c\u200d]|[\u200c\u200d](?!{SHAPES_LETTERS})",
        "",
    ),
    "format_characters": (
        rf"{EMOJI}(*SKIP)(*FAIL)|[\p{{Cf}}--\p{{Prepended_Concatenation_Mark}}--[\xad\u200b-\u200d\u2060\ufeff]]",
        "",
    ),
    "curly_quotes": (r"[‘’‚‛“”„‟]", lambda match: match[0].translate(CURLY)),
    "dashes": (r"[‐‑‒–−—―]", lambda match: match[0].translate(DASHES)),
    "ellipses": ("…", "..."),
    "full_width_characters": (r"[\uff01-\uff5e]", lambda match: chr(ord(match[0]) - 0xFF00 + 0x20)),
    "ligatures": (r"[\ufb00-\ufb06]", lambda match: normalize("NFKC", match[0])),
    "digits": (r"[\p{Nd}--0-9]", lambda match: ascii_digit(match[0])),
    "emoji": (EMOJI, _set_off),
}
"""What is changed -> its pattern, and what takes its place; applied in this order, then canonical composition (NFC)"""
_RULES = {name: (regex.compile(pattern, regex.VERSION1), new) for name, (pattern, new) in RULES.items()}
COMPOSED = "characters_composed"


def clean(text: str, changes: Counter[str]) -> str:
    """Text with every rule applied; what was changed is counted by the rule's name. Cleaning again changes nothing."""
    if ASCII_UNCHANGED.fullmatch(text):
        return text
    for name, (pattern, replacement) in _RULES.items():
        text, number = pattern.subn(replacement, text)
        changes[name] += number
    if not is_normalized("NFC", text):
        changes[COMPOSED] += sum(not is_normalized("NFC", cluster) for cluster in regex.findall(r"\X", text))
        text = normalize("NFC", text)
    return text
