"""Lines that a terminal cut at its width: a message goes on at the beginning of the next line."""

from __future__ import annotations

from collections.abc import Iterator

from logparse.inputs.blocks import TextBlock

# Columns of terminals. No line of a text that one wrapped is longer than its width, and several are as long.
NARROWEST, WIDEST, FEWEST_FULL = 60, 400, 2
# Lines of one message that are joined, at most, and lines below it that are read.
MOST_PARTS, LINES_BELOW = 8, 3


def wrap_width(block: TextBlock) -> int | None:
    """The width at which a terminal wrapped ``block``; None where nothing shows that one did."""
    lengths = block.texts.str.len_chars()
    longest = lengths.max()
    if not isinstance(longest, int) or not NARROWEST <= longest <= WIDEST:
        return None
    return longest if (lengths == longest).sum() >= FEWEST_FULL else None


def joined_lines(block: TextBlock, pattern: str, width: int) -> Iterator[tuple[int, str, str]]:
    """Lines of full width with what follows, where ``pattern`` is found: number, line, the rest of the message."""
    texts = block.texts
    places = (texts.str.len_chars() == width).arg_true()
    places = places.filter(places < len(texts) - 1)
    pairs = texts.gather(places) + texts.gather(places + 1)
    for place in places.filter(pairs.str.contains(pattern)):
        yield block.first + place, texts[place], texts[place + 1]


def message_at(block: TextBlock, number: int, width: int | None) -> tuple[str, str]:
    """The whole message that begins on line ``number`` of ``block``, and the lines below it."""
    texts = block.texts[number - block.first : number - block.first + MOST_PARTS + LINES_BELOW].to_list()
    n = 1
    while n < min(len(texts), MOST_PARTS) and len(texts[n - 1]) == width:
        n += 1
    return "".join(texts[:n]), "\n".join(texts[n : n + LINES_BELOW])
