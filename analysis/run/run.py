"""One run, read and computed: what ``logparse.analyze`` returns and every command works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import polars as pl

from analysis.identify import Identification
from analysis.metrics import HEADLINE
from analysis.run.expectations import Expectations
from analysis.run.overheads import Overhead, sum_up
from analysis.run.result import Analysis
from analysis.run.targets import Requirement
from analysis.run.title import Title, title_of
from logparse.context.dialects import Framework
from logparse.context.run_context import RunContext
from logparse.decode.read_run import ParsedLog
from logparse.findings import Note

# A run of less is short: what it lost, and what is left, says nothing of a whole training.
FEWEST_STEPS, SHORTEST_SECONDS = 20, 300.0


def _escaped(text: str) -> str:
    from html import escape

    return escape(text)


@dataclass(frozen=True, repr=False)
class Run:
    """Everything known about one run, from its text to its numbers.

    ``log`` is what was read, ``framework`` who printed it, ``context`` every fact of the run with its origin;
    ``analysis`` holds the frames and numbers, ``identified`` by which formula the log's own TFLOP/s was printed,
    ``expectations`` what its plan and published rates let expect, ``overheads`` what cost time, the largest first.
    ``notes`` must be read with the numbers, warnings first. ``requirements`` are what it must reach, see
    ``target_verdicts``. Rates are per device and second, times in ms, ratios from 0 to 1.
    """

    log: ParsedLog
    framework: Framework
    context: RunContext
    analysis: Analysis
    identified: Identification
    notes: tuple[Note, ...]
    expectations: Expectations
    overheads: tuple[Overhead, ...] = ()
    requirements: tuple[Requirement, ...] = ()

    # How a notebook shows a run. Texts are in ``present``, so ``analysis.api`` sets it.
    shown_as_html: ClassVar[Callable[[Run], str]] = lambda run: _escaped(repr(run))

    @property
    def name(self) -> str:
        """The name of the run: that of its first log."""
        return self.log.name

    @cached_property
    def title(self) -> Title:
        """Model, devices, when, how long and how far."""
        return title_of(self.log.sources, self.records["events"], self.analysis, self.context, self.notes)

    @cached_property
    def short(self) -> bool:
        """Whether the run is too short for a goodput, a plan or an interval: below 20 counted steps or 5 minutes."""
        counted = self.steps.filter("counted")["iterations"].sum()
        return counted < FEWEST_STEPS or (self.title.seconds or 0.0) < SHORTEST_SECONDS

    @property
    def overhead_summary(self) -> Note:
        """Goodput and the largest overhead, as a finding."""
        return sum_up(self.analysis, self.overheads)

    @property
    def steps(self) -> pl.DataFrame:
        """One row per step line, the columns of ``analysis.tables.STEP_COLUMNS``."""
        return self.analysis.steps

    @property
    def summary(self) -> pl.DataFrame:
        """One row per metric over the rows that count: median, mean, p10, p90, n."""
        return self.analysis.summary

    @property
    def rates(self) -> pl.DataFrame:
        """The named rates: steady, with_stalls, all_steps, wall_clock."""
        return self.analysis.rates

    @property
    def time_breakdown(self) -> pl.DataFrame:
        """Where the time went: part, seconds, share."""
        return self.analysis.time_breakdown

    @property
    def ranks(self) -> pl.DataFrame:
        """One row per rank, the slowest first, where ranks print times of their own."""
        return self.analysis.ranks

    @property
    def segments(self) -> pl.DataFrame:
        """One row per start of the run."""
        return self.analysis.segments

    @property
    def records(self) -> Mapping[str, pl.DataFrame]:
        """The lines other than step lines: events, evaluations, memory, timers."""
        return self.log.records

    def value(self, metric: str, statistic: str = "median") -> float | None:
        """One number of ``metric``; None where it could not be computed, and a note says why.

        Raises UsageError for a metric or a statistic that does not exist, with those that do.
        """
        return self.analysis.value(metric, statistic)

    def __repr__(self) -> str:
        """One line: name, framework, steps, and the headline metrics that are known."""
        known = " ".join(part for part in (self.framework.name, self.framework.version) if part)
        numbers = [
            f"{metric.label} {metric.text(value)} {metric.shown_unit}".removesuffix(f" {metric.label}")
            for metric in HEADLINE
            if (value := self.value(metric.column)) is not None
        ]
        parts = [known, f"{len(self.steps)} step lines", *numbers]
        return f"<Run {self.name!r}: {', '.join(part for part in parts if part)}>"

    def _repr_html_(self) -> str:
        return type(self).shown_as_html(self)
