"""How far a run got, and after which line nothing more was done: completed steps refute the errors before them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from logparse.failures.trainers import FileEnds
from logparse.inputs.blocks import TextBlock
from logparse.inputs.writers import OF_WORKER, comparable
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, field

if TYPE_CHECKING:
    from logparse.failures.scan import Hit

# A counter of steps in a log that no format reads, and words that are next to one.
BAR = lazy_regex(r"\b(\d+)/(\d+) \[\d+:\d\d(?::\d\d)?<")
_COUNTER = lazy_regex(r"(?i)\b(?:global_?|train_?)?(?:step|iter|iteration)s?\b[\"']?[ =:#\[]{0,4}(\d+)")
_MEASURED = lazy_regex(r"(?i)loss")
# Columns that only a training has.
_OF_TRAINING = ("loss", "grad_norm", "learning_rate", "consumed_samples", "logged_tokens_per_second")
# Lines of Ray's workers that their driver prints at most after it failed.
LAST_OF_WORKERS = 200
# Characters at the end of a line that are read: a bar is drawn again and again on one line.
LONGEST_END = 4096


@dataclass(frozen=True)
class Progress:
    """Lines with steps of each file, their steps, the last step of all, the last planned one, and the last clock.

    ``bars`` are the lines at the end of each file with a bar, and the planned steps that it shows. ``measured`` says
    whether any step has a loss, a norm or a learning rate. ``from_zero``: the last of N planned steps is number N - 1.
    """

    lines: Mapping[str, list[int]]
    steps: Mapping[str, list[int]]
    step: int | None
    planned: int | None
    last_clock: float | None
    bars: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    measured: bool = True
    from_zero: bool = False

    def last_in(self, source: str, first: int, after: int | None) -> tuple[int | None, int | None]:
        """The line on which a file got furthest between two lines, and the step there.

        A bar that is drawn once more while a process ends is no progress.
        """
        lines = self.lines.get(source, [])
        begin, end = bisect_left(lines, first), len(lines) if after is None else bisect_left(lines, after)
        if begin == end:
            return None, None
        steps = self.steps[source]
        at = end - 1
        while at > begin and steps[at - 1] == steps[at]:
            at -= 1
        # No step came before this one: the bar was at its beginning, perhaps without a time, when it was first drawn.
        drawn = self._first_bar(source, first, lines[at]) if at == begin else None
        # A bar that is first seen in the middle was drawn before: in what was cut off.
        midway = drawn is not None and at == begin == 0 and 1 < steps[at] < (self.planned or 0)
        return None if midway else drawn or lines[at], steps[at]

    def _first_bar(self, source: str, first: int, line: int) -> int | None:
        """The line, from ``first`` on, on which the bar of ``line`` is first drawn; None where ``line`` has no bar."""
        bars = self.bars.get(source, ())
        planned = next((total for number, total in bars if number == line), None)
        return next((number for number, total in bars if first <= number <= line and total == planned), None)

    def ends_with(self, step: int | None) -> bool:
        """Whether ``step`` is the last planned one. After it the plan is not that of these steps."""
        return step is not None and self.planned is not None and self.planned - self.from_zero <= step <= self.planned

    def ends_early(self) -> bool:
        """Whether more steps are left of the plan than a line is printed for."""
        steps = [0, *(step for of_file in self.steps.values() for step in of_file)]
        intervals = sorted(after - before for before, after in pairwise(steps) if after > before) or [1]
        after = None if self.step is None else self.step + intervals[len(intervals) // 2] + self.from_zero
        return after is not None and (self.planned is None or after < self.planned)

    def is_whole(self, tail: TextBlock) -> bool:
        """Whether ``tail`` is a whole file, and its steps, if it has any, begin with the first one."""
        first = [*self.steps.get(tail.source, ())[:1], *(counter[0][1] for counter in _counters(tail).values())]
        return tail.first == 1 and all(step <= 1 for step in first)

    def outlives(self, cause: Hit, ends: FileEnds) -> bool:
        """Whether no step of a log that no format reads was completed after the line ``cause``."""
        if self.step is not None:
            return True
        tail = next((tail for tail in ends.tails if tail.source == cause.source), None)
        return tail is None or not _goes_on(tail, cause.line)


def progress_of(steps: pl.DataFrame, ends: FileEnds, from_zero: bool | None = None) -> Progress:
    """How far the ``steps`` of the files with these ``ends`` go."""
    known = steps.filter(pl.col("step").is_not_null()) if len(steps) else steps
    if known.is_empty():
        return Progress({}, {}, None, None, None)
    thin = known.select("source", "line_number", "step").sort("source", "line_number")
    parts = {str(source): frame for (source,), frame in thin.group_by("source", maintain_order=True)}
    last: int = known["step"].to_list()[-1]
    planned = known["train_steps"].drop_nulls().to_list()[-1:] if "train_steps" in known.columns else []
    return Progress(
        {source: frame["line_number"].to_list() for source, frame in parts.items()},
        {source: frame["step"].to_list() for source, frame in parts.items()},
        int(last),
        int(planned[0]) if planned else None,
        _last_clock(known),
        {tail.source: _bars(tail) for tail in ends.tails},
        any(known[name].count() for name in _OF_TRAINING if name in known.columns),
        _begins_with_zero(known) if from_zero is None else from_zero,
    )


def _begins_with_zero(steps: pl.DataFrame) -> bool:
    """Whether a step that trains is number 0; an evaluation before the first step may be, too."""
    return "loss" in steps.columns and steps.filter(pl.col("loss").is_not_null())["step"].min() == 0


def _last_clock(steps: pl.DataFrame) -> float | None:
    """The latest stamp of a step, as ``clock_of`` counts."""
    last = steps["timestamp"].max() if "timestamp" in steps.columns else None
    return comparable(last) if isinstance(last, datetime) else None


def _bars(tail: TextBlock) -> list[tuple[int, int]]:
    """Lines with a bar, and the planned steps of the last one on each."""
    numbered = tail.matching(BAR.pattern).select("line_number", "text").iter_rows()
    drawn = ((number, BAR.findall(text[-LONGEST_END:])) for number, text in numbered)
    return [(number, int(bars[-1][1])) for number, bars in drawn if bars]


def last_progress(tail: TextBlock) -> int | None:
    """The last line of ``tail`` with a counter of steps, None where there is none that changes."""
    found = _counters(tail)
    changes = any(len({step for _, step in counter}) > 1 for counter in found.values())
    return max(counter[-1][0] for counter in found.values()) if changes else None


def last_rise(tail: TextBlock) -> int:
    """The last line of ``tail`` whose counter of steps is higher than the one before; 0 where none is."""
    pairs = (pair for counter in _counters(tail).values() for pair in pairwise(counter))
    return max((number for (_, before), (number, step) in pairs if step > before), default=0)


def _goes_on(tail: TextBlock, line: int) -> bool:
    """Whether a counter of steps is higher after ``line`` than before it.

    After the driver of Ray has failed, it prints what its workers printed until then.
    """
    counters = list(_counters(tail).values())
    texts = tail.texts[line - tail.first :] if line >= tail.first else tail.texts[:0]
    if 0 < len(texts) <= LAST_OF_WORKERS and not OF_WORKER.search(texts[0]):
        printed = {line + at for at, text in enumerate(texts) if OF_WORKER.search(text)}
        counters = [[one for one in counter if one[0] not in printed] for counter in counters]
    return any(_rises_after([one for one in counter if one[0] <= line], counter) for counter in counters)


def _rises_after(before: Sequence[tuple[int, int]], counter: Sequence[tuple[int, int]]) -> bool:
    after = [step for _, step in counter[len(before) :]]
    # One counter after an error may be a bar that is drawn once more, or a setting.
    if not before:
        return len(set(after)) > 1
    return bool(after) and max(after) > before[-1][1]


def _counters(tail: TextBlock) -> dict[str, list[tuple[int, int]]]:
    """Lines and steps of each counter of ``tail``; bars with different totals count different things."""
    found: dict[str, list[tuple[int, int]]] = {}
    numbered = tail.matching(r"\d+/\d+ \[|(?i)step|iter").select("line_number", "text").iter_rows()
    for number, text in numbered:
        text = text[-LONGEST_END:]
        bars = BAR.findall(text)
        counter = _COUNTER.search(text) if not bars and _MEASURED.search(text) else None
        for step, total in bars[-1:] or ([(counter[1], "")] if counter else []):
            found.setdefault(total, []).append((number, int(step)))
    return found
