"""Lines near a failure that no signature knows, the newest first: they are quoted, and decide nothing.

Most lines at the end of a failed log were printed before, or by ranks that live on: few are left (L4, FSE 2025).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logparse.failures.trainers import FileEnds
from logparse.inputs.writers import read_prefixes
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

# Lines that are quoted, lines around the cause that are looked at, and the shortest that says anything.
MOST_NOVEL, AROUND, SHORTEST = 2, 100, 16
# From so many lines on the same warning is printed often.
OFTEN = 10
# Characters by which lines are the same, without their numbers.
_SAME = 80
_NUMBERS = lazy_regex(r"0x[0-9a-f]+|[0-9a-f]{12,}|\d+")
_SPEAKS = lazy_regex(r"(?i)error|fail|fatal|warn|abort|cannot|unable|invalid|refused|denied|lost|timed? ?out|exceed")
_LOUD = lazy_regex(r"\b(?:WARN(?:ING)?|ERROR|CRITICAL)\b|(?i:^(?:error|failed|warning)\b)")
# Frames of tracebacks, the code below them, rules of signs, and what LSF puts around its report.
_FRAME = lazy_regex(r"^(?:\s|frame #|\W*$|\^)|File \".*, line \d|Traceback|Sender: LSF|Job <")


@dataclass(frozen=True)
class NovelLine:
    """A line that the run did not print before."""

    line: int
    text: str
    rank: int | None


def novel_lines(ends: FileEnds, source: str, cause: int, since: int, known: Sequence[int]) -> list[NovelLine]:
    """Lines of ``source`` around the line ``cause`` and after ``since``, the last that shows progress.

    Not those in ``known``, nor any that the run printed before, or that several ranks print.
    """
    shapes = _new_shapes(ends, source, cause, since)
    printed = [lines for lines in shapes.values() if len(_ranks(lines)) < 2]
    found = [NovelLine(*lines[0], read_prefixes(lines[0][1]).rank) for lines in printed]
    ranked = sorted(
        _worth(found, known),
        key=lambda one: (len(shapes[_shape(one.text)]), not _SPEAKS.search(one.text), abs(one.line - cause)),
    )
    return sorted(ranked[:MOST_NOVEL], key=lambda one: one.line)


def repeated_line(ends: FileEnds, source: str, cause: int, since: int) -> NovelLine | None:
    """The warning or error of ``source`` that is printed OFTEN before the line ``cause``, and not before ``since``.

    It may be about every sample that the program then has not got.
    """
    shapes = _new_shapes(ends, source, cause, since)
    often = [
        lines for lines in shapes.values() if len(lines) >= OFTEN and lines[0][0] < cause and len(_ranks(lines)) < 2
    ]
    loud = (NovelLine(*lines[0], None) for lines in often if _LOUD.search(lines[0][1]))
    return next(_worth(list(loud), ()), None)


def _new_shapes(ends: FileEnds, source: str, cause: int, since: int) -> dict[str, list[tuple[int, str]]]:
    """The lines around ``cause`` that are new after ``since``, by what they say without numbers."""
    tail = next((tail for tail in ends.tails if tail.source == source), None)
    if tail is None:
        return {}
    rows = list(tail.lines.select("line_number", "text").iter_rows())
    heads = (
        text
        for head in ends.heads
        if head.source == source
        for text in head.lines["text"]
        if head.first + head.count <= since
    )
    before = {_shape(text) for text in heads} | {_shape(text) for number, text in rows if number <= since}
    shapes: dict[str, list[tuple[int, str]]] = {}
    for number, text in rows:
        if number > since and abs(number - cause) <= AROUND and _shape(text) not in before:
            shapes.setdefault(_shape(text), []).append((number, text))
    return shapes


def _worth(lines: Sequence[NovelLine], known: Sequence[int]) -> Iterator[NovelLine]:
    taken = set(known)
    for one in lines:
        bare = read_prefixes(one.text).bare
        if one.line not in taken and len(bare) >= SHORTEST and not _FRAME.match(bare) and not one.text.startswith("  "):
            yield one


def _ranks(lines: Sequence[tuple[int, str]]) -> set[int]:
    return {rank for _, text in lines if (rank := read_prefixes(text).rank) is not None}


def _shape(text: str) -> str:
    return _NUMBERS.sub("#", read_prefixes(text).bare)[:_SAME]
