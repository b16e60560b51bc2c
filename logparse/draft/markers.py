"""The marker: a literal that is on all lines of a family and on few others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import regex

from logparse.draft.families import Occurrence
from logparse.formats._base import NUMBER
from logparse.lazy_regex import lazy_regex
from logparse.masked_frames import hide

LONGEST_MARKER = 30
_BAR_DRAWING = lazy_regex(r"\[[=>.#-]{3,}\]|%\|[^|]*\||[━╸╺█▏▎▍▌▋▊▉]+")


def find_markers(places: Sequence[Occurrence], texts: Sequence[str], secrets: Collection[str] = ()) -> list[str]:
    """A literal that is on all of the lines and on as few others as possible, with no part of ``secrets``."""
    lines = [place.text for place in places]
    open_words = (word for word in dict.fromkeys(_words(places[0])) if hide(word, secrets) == word)
    common = [word for word in open_words if all(word in line for line in lines)]
    if not common:
        return [next((sign for sign in ("  ", "\t", ",", " ") if all(sign in line for line in lines)), lines[0][:1])]
    elsewhere = {word: sum(word in text for text in texts) for word in common}
    return [min(common, key=lambda word: (elsewhere[word], -min(len(word), 12)))]


def _words(place: Occurrence) -> Iterator[str]:
    """The words between the numbers, from the word before the step on."""
    before = regex.search(r"\S*\s*$", place.text[: place.begin])
    text = place.text[before.start() if before else place.begin :]
    for part in regex.split(rf"\0|{NUMBER}", _BAR_DRAWING.sub("\0", text)):
        word = part if len(part) <= LONGEST_MARKER else part[: part.rfind(" ", 0, LONGEST_MARKER) + 1]
        if regex.search(r"[A-Za-z]{2}|[/|\[<]", word) and len(word.strip()) > 1:
            yield word
