"""Lines of a pasted log that a terminal or a document cut inside a word, put together.

Comes in: the lines of a whole short log. Goes out: the same number of lines; the rest of a cut line is empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import polars as pl
import regex

from logparse.inputs.writers import read_prefixes
from logparse.lazy_regex import lazy_regex

# Columns at which lines are cut, at least; characters of a first word; the share of the lines of a width that is cut.
NARROWEST, LONGEST_WORD, MOST = 60, 40, 0.5
# The first word of a line, and a pair of a label and its value: of a line of pairs the rest has some too.
_IN_A_WORD = lazy_regex(r"[a-z_]{2}|[\d.]{2}")
_FIRST_WORD, _PAIR = lazy_regex(r"\w[^\s:=|,]*"), lazy_regex(r"[\w/)]\s*[:=]\s*-?[\d.]+\S* *(?:[-|,]|$)")


def joined_where_cut(texts: pl.Series) -> pl.Series:
    """A pasted log whose lines were cut inside a word, put together; the rest of a line leaves an empty one.

    Most lines of one width are cut. A rest begins with a word that begins no other line, and not two lines in a row.
    """
    lines = texts.to_list()
    cut = _cut_lines(lines)
    if not cut:
        return texts
    for at in reversed(cut):
        lines[at], lines[at + 1] = lines[at] + lines[at + 1], ""
    return pl.Series(texts.name, lines, pl.String)


def _cut_lines(lines: Sequence[str]) -> list[int]:
    """The places of the lines that go on in the next one."""
    widths = Counter(len(line) for line in lines if len(line) >= NARROWEST)
    longest = max(widths, default=0)
    full = [at for at, line in enumerate(lines[:-1]) if widths[len(line)] > (len(line) != longest)]
    inside = [at for at in full if _is_in_a_word(lines[at], lines[at + 1])]
    if not inside:
        return []
    after_full, words = {at + 1 for at in full}, list(map(_begin, lines))
    begins = {word for at, word in enumerate(words) if at not in after_full or word == words[at - 1]}
    rests = [at for at in inside if words[at + 1] not in begins]
    if not rests:
        return []
    ((width, n),) = Counter(len(lines[at]) for at in rests).most_common(1)
    if n < MOST * max(len(rests), widths[width]):
        return []
    at_width = [at for at in rests if len(lines[at]) == width]
    return at_width if n > 1 or _has_pairs(*lines[at_width[0] : at_width[0] + 2]) else []


def _is_in_a_word(line: str, rest: str) -> bool:
    """Whether a line ends within letters, or within digits, with which ``rest`` goes on."""
    return bool(_IN_A_WORD.fullmatch(line[-1] + rest[:1])) and read_prefixes(rest).bare == rest


def _begin(line: str) -> str:
    """The kind of the first word of a line: its digits do not matter."""
    word = _FIRST_WORD.match(line[:LONGEST_WORD])
    return regex.sub(r"\d+", "0", word[0]) if word else ""


def _has_pairs(*lines: str) -> bool:
    """Whether each of ``lines`` holds several pairs of a label and a value."""
    return all(len(_PAIR.findall(line)) > 1 for line in lines)
