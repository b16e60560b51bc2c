"""The kind of a line: its text without the values of its digits. What fits it is looked for once for all its lines."""

from __future__ import annotations

import regex

from logparse.lazy_regex import lazy_regex

# Kinds, and lines of at most so many characters, that are remembered.
MOST_KINDS, LONGEST_REMEMBERED = 2**12, 2**9
# Parts of a pattern that name a digit, or only seem to: escapes and counts, what must not follow, sets, and digits.
_OF_DIGITS = lazy_regex(
    r"(?P<kept>\\x[0-9a-f]{2}|\\.|\{[\d,]+\})|(?P<never>\(\?<?!(?P<what>(?:\\.|[^()\\])*)\))"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|[0-9]"
)
_DIGIT, _ANY_DIGIT = lazy_regex("[0-9]"), str.maketrans("123456789", "000000000")


def kind_of(text: str) -> str:
    """The kind of ``text``: lines of 64 ranks are of one or two kinds, since a kind keeps how many digits there are."""
    return text.translate(_ANY_DIGIT)


def blurred(pattern: str) -> str:
    """A pattern that fits the kind of each text that ``pattern`` fits: it takes any digit for one that is named.

    It is ``pattern`` itself where that names no digit: then it fits a text exactly where it fits its kind.
    """

    def any_digit(found: regex.Match[str]) -> str:
        if found["kept"]:
            return found[0]
        if found["never"]:
            return found[0] if blurred(found["what"]) == found["what"] else ""
        if found["set"]:
            return rf"(?:{found[0]}|\d)" if _DIGIT.search(found[0].replace("0-9", "")) else found[0]
        return r"\d"

    return _OF_DIGITS.sub(any_digit, pattern) if _DIGIT.search(pattern) else pattern


def names_digit(text: str) -> bool:
    """Whether a literal ``text`` holds a digit."""
    return _DIGIT.search(text) is not None
