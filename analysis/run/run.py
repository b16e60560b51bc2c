"""One run, read and computed: what ``logparse.analyze`` returns and every command works with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import inf, isfinite
from typing import Any

import polars as pl

from analysis.identify import Identification
from analysis.metrics import HEADLINE, RATES
from analysis.model.shape import ROLLOUTS
from analysis.run.checks.expectations import Expectations
from analysis.run.checks.self_checks import GOODPUT, CheckResult, is_withheld
from analysis.run.checks.targets import Requirement
from analysis.run.losses import Losses, losses_of
from analysis.run.rates.printed_rates import DeviceMfu, LoggedRate, mfu_of_device, printed_rates
from analysis.run.result import Analysis
from analysis.run.rows.exclusion_reasons import OF_THE_RUN
from analysis.run.rows.unprinted_steps import MISSING_LINES
from analysis.run.title import Title, title_of
from analysis.run.useful.overheads import Overhead
from logparse.context.dialects import Framework
from logparse.context.run_context import RunContext
from logparse.decode.read_run import ParsedLog
from logparse.errors import unknown_name
from logparse.failures.ending import Ending
from logparse.findings import Note
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass

# A run of less is short: what it lost, and what is left, says nothing of a whole training.
FEWEST_STEPS, SHORTEST_SECONDS = 20, 300.0


@dataclass(frozen=True)
class Run:
    """Everything known about one run, from its text to its numbers.

    ``log`` is what was read, ``framework`` who printed it, ``context`` every fact of the run with its origin;
    ``analysis`` holds the frames and numbers, ``identified`` by which formula the log's own TFLOP/s was printed,
    ``expectations`` what its plan and published rates let expect, ``overheads`` what cost time, the largest first.
    ``notes`` must be read with the numbers, warnings first. ``requirements`` are what it must reach, see
    ``target_verdicts``. ``checks`` are self-checks; a failed one withholds figures. Rates are per device and second,
    times in ms, ratios from 0 to 1.

    The figures, from ``step_time_ms`` to ``hfu``, are those of the steady rate: the median of the steady steps. Use
    ``rate`` for the other rates. A figure is None if an input is unknown; a note says which.
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
    checks: tuple[CheckResult, ...] = ()

    @property
    def name(self) -> str:
        """The name of the run: that of its first log."""
        return self.log.name

    @property
    def model(self) -> str | None:
        """The model: what the log calls it, else the names of models of its shape; None if both are unknown."""
        return self.title.printed_model or " or ".join(self.title.models) or None

    @property
    def device(self) -> str | None:
        """The device of one rank, such as "Ascend910B3"; None if it is unknown."""
        return self.title.device

    @property
    def ending(self) -> Ending | None:
        """How the run ended: its state, cause, line and rank; None for one of several runs whose lines mix."""
        return self.log.ending

    @cached_property
    def title(self) -> Title:
        """Model, devices, when, how long and how far."""
        return title_of(
            self.log.sources, self.records["events"], self.log.settings, self.analysis, self.context, self.notes
        )

    @property
    def short(self) -> bool:
        """Whether the run is too short for a goodput, a plan or an interval: below 20 counted steps or 5 minutes."""
        counted, seconds = self._length
        return counted < FEWEST_STEPS or seconds < SHORTEST_SECONDS

    @property
    def has_few_counted(self) -> bool:
        """Whether the run is short by its counted steps; where none has a time of its own, by its time first."""
        counted, seconds = self._length
        return counted < FEWEST_STEPS and (counted > 0 or seconds >= SHORTEST_SECONDS)

    @property
    def is_excerpt(self) -> bool:
        """Whether many steps between the first line and the last have none."""
        return any(note.code == MISSING_LINES for note in self.notes)

    @cached_property
    def _length(self) -> tuple[int, float]:
        """The counted steps and the seconds of the run; of a withheld duration no limit is known."""
        iterations = self.steps["iterations"].filter(self.steps["counted"])
        # Of an excerpt the lines alone are known.
        counted = len(iterations) if self.is_excerpt else int(iterations.sum())
        seconds = self.title.seconds or 0.0
        # Where no step has a time, the phases of the steps show how long the run is at least.
        if phases := next((note.fields for note in self.notes if note.code == "phases_without_total"), None):
            counted, seconds = phases["steps"], phases["seconds"]
        return counted, inf if is_withheld(self.checks, GOODPUT) else seconds

    @property
    def has_few_steps(self) -> bool:
        """Whether the run is short by its steps alone, whatever their times."""
        return bool(self.steps.filter(OF_THE_RUN)["iterations"].sum() < FEWEST_STEPS)

    @property
    def has_times(self) -> bool:
        """Whether steps have a time, useful or not."""
        return bool(self.steps.filter(pl.col("iterations").is_not_null())["step_time_ms"].count())

    @property
    def trainings(self) -> int:
        """How many trainings, each begun at its beginning, the log has."""
        return self.segments["lineage"].n_unique() if len(self.segments) else 0

    @property
    def generates(self) -> bool:
        """Whether a step generates text too, as in reinforcement learning."""
        return self.analysis.computation.shape.mixed_step == ROLLOUTS

    @property
    def counts_full_samples(self) -> bool:
        """Whether tokens are counted as if the batch and each of its samples were full, though they may not be."""
        counted = any(note.code == "tokens_counted" for note in self.notes)
        return self.batch_beyond_epoch or (bool(self.context.get("variable_seq_lengths")) and not counted)

    @property
    def batch_beyond_epoch(self) -> bool:
        """Whether an epoch has fewer samples than the batch, so that a step has fewer than it."""
        return any(note.code == "batch_beyond_epoch" for note in self.notes)

    @property
    def steps(self) -> pl.DataFrame:
        """One row per step line, the columns of ``analysis.run.tables.STEP_COLUMNS``."""
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

    @cached_property
    def printed(self) -> Mapping[str, LoggedRate]:
        """The rates that the log itself prints, by the names of the metrics; never mixed with ours."""
        return printed_rates(self.steps, self.log.settings)

    @cached_property
    def device_mfu(self) -> DeviceMfu | None:
        """The MFU that the log prints, by the peak of the run's device; None where the log divides by that peak."""
        return mfu_of_device(self.steps, self.context, self.analysis.computation.peak)

    def shown(self, column: str) -> float | None:
        """The steady figure; where it is unknown, the one that the log prints, MFU by the peak of the device."""
        ours = self._steady(column)
        if ours is not None:
            return ours
        if column == "mfu" and self.device_mfu is not None:
            return self.device_mfu.value
        return self.printed[column].median if column in self.printed else None

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

    @property
    def step_time_ms(self) -> float | None:
        """Steady step time: milliseconds per optimizer step."""
        return self._steady("step_time_ms")

    @property
    def step_time_seconds(self) -> float | None:
        """Steady step time: seconds per optimizer step."""
        milliseconds = self.step_time_ms
        return None if milliseconds is None else milliseconds / 1000

    @property
    def samples_per_second(self) -> float | None:
        """Steady samples per second and device: global batch size / step time / devices."""
        return self._steady("samples_per_second_per_device")

    @property
    def tokens_per_second(self) -> float | None:
        """Steady tokens per second and device: samples per second and device times sequence length."""
        return self._steady("tokens_per_second_per_device")

    @property
    def tflops(self) -> float | None:
        """Steady TFLOP/s of one device, FLOPs by the chosen formula."""
        return self._steady("tflops_per_second_per_device")

    @property
    def peak_utilization(self) -> float | None:
        """``tflops`` over the peak of the device: a ratio, 0.5 is 50 %."""
        return self._steady("peak_utilization")

    @property
    def mfu(self) -> float | None:
        """Steady MFU, FLOPs of the real model over the peak of the device: a ratio, 0.5 is 50 %."""
        return self._steady("mfu")

    @property
    def hfu(self) -> float | None:
        """Steady HFU, as ``mfu`` but with the FLOPs of recomputation: a ratio, 0.5 is 50 %."""
        return self._steady("hfu")

    @cached_property
    def loss(self) -> Losses | None:
        """The first, the last and the lowest loss; None where none is printed."""
        return losses_of(self.steps, self.records["losses"])

    @property
    def goodput(self) -> float | None:
        """Useful time over the time of the whole run: a ratio, 0.9 is 90 %."""
        return _finite(self.analysis.goodput)

    @property
    def time_to_train_seconds(self) -> float | None:
        """Seconds from the line that training starts to the line that it ended."""
        return _finite(self.analysis.time_to_train_seconds)

    def rate(self, name: str = "steady") -> dict[str, Any]:
        """The figures of one rate by the columns of ``rates``: steady, with_stalls, all_steps or wall_clock.

        Raises UsageError for any other name.
        """
        if name not in RATES:
            raise unknown_name(msg("rate"), name, RATES, tr("use one of {names}", names=", ".join(RATES)))
        return dict(self.analysis.rate(name))

    def _steady(self, column: str) -> float | None:
        return _finite(self.analysis.rate("steady")[column])

    def value(self, metric: str, statistic: str = "median") -> float | None:
        """One number of ``metric``; None where it could not be computed, and a note says why.

        Raises UsageError for a metric or a statistic that does not exist, with those that do.
        """
        return self.analysis.value(metric, statistic)

    @property
    def crashed_at(self) -> int | None:
        """The last step of a run that failed, by its ending; None if its log shows no failure."""
        ending = self.log.ending
        return (ending.step or 0) if ending is not None and ending.failed else None

    def __repr__(self) -> str:
        """One line: name, framework, steps, and the headline metrics that are known."""
        framework = " ".join(part for part in (self.framework.name, self.framework.version) if part)
        numbers = [
            f"{metric.label} {metric.text(value)} {metric.shown_unit}".removesuffix(f" {metric.label}")
            for metric in HEADLINE
            if (value := self.value(metric.column)) is not None
        ]
        parts = [framework, f"{len(self.steps)} step lines", *numbers]
        return f"<Run {self.name!r}: {', '.join(part for part in parts if part)}>"


def _finite(value: float | None) -> float | None:
    """``value``, or None for NaN and infinity, as in the JSON document."""
    return value if value is not None and isfinite(value) else None
