"""Messages of failures that a terminal cut at its width: they go on at the beginning of the next line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

import polars as pl

from logparse.inputs.blocks import TextBlock
from logparse.inputs.cut_lines import NARROWEST
from logparse.inputs.literals import any_of
from logparse.inputs.writers import read_prefixes

# Columns of a terminal, at most. No line of a text that one wrapped is longer than its width, and several are as long.
WIDEST, FEWEST_FULL = 400, 2
# Lines of one message that are joined, at most, and lines below it that are read.
MOST_PARTS, LINES_BELOW = 8, 14
# Characters at each side of a place where a pasted log may be wrapped.
LONGEST_CUT = 64


def wrap_width(block: TextBlock) -> int | None:
    """The width at which a terminal wrapped ``block``; None where nothing shows that one did."""
    lengths = block.texts.str.len_chars()
    longest = lengths.max()
    if not isinstance(longest, int) or not NARROWEST <= longest <= WIDEST:
        return None
    return longest if (lengths == longest).sum() >= FEWEST_FULL else None


def joined_lines(
    block: TextBlock, pattern: str, literals: tuple[str, ...], width: int
) -> Iterator[tuple[int, str, str]]:
    """Lines of full width with what follows, where ``pattern`` or one of ``literals`` is found.

    The number, the line, and the rest of the message.
    """
    texts = block.texts
    places = (texts.str.len_chars() == width).arg_true()
    places = places.filter(places < len(texts) - 1)
    pairs = texts.gather(places) + texts.gather(places + 1)
    found = pairs.str.contains(pattern) | any_of(literals, pairs, len(block.text))
    for place in places.filter(found):
        if not _is_of_another(texts[place + 1]):
            yield block.first + place, texts[place], texts[place + 1]


def _is_of_another(text: str) -> bool:
    """Whether ``text`` begins with the prefix of a process: it is no rest of the line before."""
    return read_prefixes(text).bare != text.lstrip()


def message_at(block: TextBlock, number: int, width: int | None) -> tuple[str, str]:
    """The whole message that begins on line ``number`` of ``block``, and the lines below it."""
    texts = block.texts[number - block.first : number - block.first + MOST_PARTS + LINES_BELOW].to_list()
    n = 1
    while n < min(len(texts), MOST_PARTS) and len(texts[n - 1]) == width:
        n += 1
    return "".join(texts[:n]), "\n".join(texts[n : n + LINES_BELOW])


def cut_lines(block: TextBlock, literals: tuple[str, ...]) -> list[int]:
    """Numbers of lines whose end has one of ``literals`` only with the beginning of the next one, at any width."""
    ends = block.texts.str.slice(-LONGEST_CUT)
    heads = block.texts.str.head(LONGEST_CUT).shift(-1).fill_null("")
    # All are searched at once: to get ready for so many literals takes longer than to look for them.
    parts = pl.concat([ends + heads, ends.str.strip_chars_end() + " " + heads, ends, heads])
    found = any_of(literals, parts, len(block.text))
    joined, spaced, in_end, in_head = (found.slice(at * len(ends), len(ends)) for at in range(4))
    cut = (joined | spaced) & ~in_end & ~in_head
    return [block.first + at for at in cut.arg_true().to_list()]


def whole_messages(block: TextBlock, number: int) -> tuple[str, str]:
    """Line ``number`` with the lines after it as one message, put together in both ways in which a line is wrapped.

    What another process prints, after a prefix of its own, is no part of it.
    """
    at = number - block.first
    first, *rest = block.texts[at : at + 1 + MOST_PARTS].to_list()
    own = list(takewhile(lambda text: not _is_of_another(text), rest))
    return "".join((first, *own)), " ".join((first, *own))
