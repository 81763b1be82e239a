from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm.corpus.characters import COMPOSED, RULES, clean

FAMILY, ENGLAND = "👨\u200d👩\u200d👧", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"


@pytest.mark.parametrize(
    ("text", "cleaned", "changes"),
    [
        ("co\u00adoperate", "cooperate", {"soft_hyphens": 1}),
        ("a\u200bb c\u2060d e\ufefff g\u200dh", "ab cd ef gh", {"zero_width_characters": 4}),
        ("می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष", {}),
        ("\u200eabc\u202c \u2066x\u2069 \U000e0041", "abc x ", {"format_characters": 5}),
        ("\u0600١٢", "\u060012", {"digits": 2}),
        ("‘a’ ‚b‛ “c” „d‟ «e»", "'a' 'b' \"c\" \"d\" «e»", {"curly_quotes": 8}),
        ("1990–95 non\u2011stop −5 no—yes", "1990-95 non-stop -5 no--yes", {"dashes": 4}),
        ("wait…", "wait...", {"ellipses": 1}),
        ("ＡＢ（１２）！", "AB(12)!", {"full_width_characters": 7}),
        ("ﬁne oﬃce", "fine office", {"ligatures": 2}),
        ("٣ ۴ ५ 𝟘 𝟡", "3 4 5 0 9", {"digits": 5}),
        ("\U0001e4f3\U00010d49", "39", {"digits": 2}),  # of Unicode 15 and 16: newer than Python 3.11
        ("① Ⅷ x² 10½", "① Ⅷ x² 10½", {}),
        ("e\u0301te\u0301 Å", "été Å", {COMPOSED: 2}),
        ("a\u2028b\u2029c\u0085d\x0be\x0cf", "a b c d e f", {"line_separators": 5}),
        ("a\x00b\x1bc\x7fd\x81e", "a b c d e", {"control_characters": 4}),
        ("don\x92t \x93so\x94 \x97", 'don\'t "so" --', {"windows_1252_characters": 4, "curly_quotes": 3, "dashes": 1}),
        ("hi👍🏽!", "hi 👍🏽 !", {"emoji": 1}),
        (f"{FAMILY}🇺🇸🇬🇧 {ENGLAND} ❤️\u200d🔥", f" {FAMILY}  🇺🇸  🇬🇧 {ENGLAND} ❤️\u200d🔥 ", {"emoji": 5}),
        ("© 5° AT&T™ #5 ☎", "© 5° AT&T™ #5 ☎", {}),
        ("STOCKS FALL\tAS\u00a0RATES RISE", "STOCKS FALL\tAS\u00a0RATES RISE", {}),
        ("naïve \ufffd \ue000", "naïve \ufffd \ue000", {}),
    ],
)
def test_every_rule_changes_what_it_says_and_counts_it(text, cleaned, changes):
    counts = Counter()
    assert clean(text, counts) == cleaned
    assert +counts == Counter(changes)


def test_every_rule_has_an_example_above():
    tested = {
        rule
        for mark in test_every_rule_changes_what_it_says_and_counts_it.pytestmark
        for case in mark.args[1]
        for rule in case[2]
    }
    assert tested == {*RULES, COMPOSED}


SPECIAL = st.sampled_from(
    "\u00ad\u200b\u200c\u200d\u0301\ufe0f\u20e3👍🏽🇺❤🔥٣１ﬁ“—…\x85\u2028\x92\x1f\u0600\u202eक्ष e#"
)


@settings(deadline=None)
@given(st.text(st.one_of(SPECIAL, st.characters(exclude_categories=["Cs"]))))
def test_cleaning_again_changes_nothing_and_no_letter_is_lost(text):
    once = clean(text, Counter())
    assert clean(once, Counter()) == once
    assert sum(character.isalnum() for character in once) >= sum(c.isalnum() for c in text if c.isascii())
