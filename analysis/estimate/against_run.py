"""Measured against planned: what a run should have needed and given, beside what it did.

Comes in: an analysed run, its context, the memory lines of its log. Goes out: rows with a plan, a measurement and a
sentence, and the gap to the peak by cause. A setting that the log does not tell is assumed, and the sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from analysis.estimate.against_memory import ASSUMED, Planned, assumptions, memory_against, setting
from analysis.estimate.step import bubble_share
from analysis.estimate.work import DAY, USUAL_UTILISATION
from analysis.run.analyze import Analysis
from logparse.context.run_context import RunContext
from logparse.language import msg, tr

HOUR = 3600
# For clusters of more devices the usual utilisation is published.
MANY_DEVICES = 100
# Shares of the peak are rounded to a tenth of a percent.
NOTHING = -0.0005


@dataclass(frozen=True)
class GapPart:
    """A part of the peak, as a share of it; the parts add up to 1."""

    part: str
    share: float


@dataclass(frozen=True)
class Left:
    """What is still to be done: ``tokens`` None where the batch is unknown, ``ends_at`` where no clock is printed."""

    steps: int
    tokens: int | None
    ends_at: datetime | None


@dataclass(frozen=True)
class Plan:
    """Everything that can be said of a run against its plan. ``mfu_ceiling`` is what the bubble leaves of MFU."""

    rows: tuple[Planned, ...]
    gap: tuple[GapPart, ...]
    mfu_ceiling: float | None
    assumed: tuple[str, ...]
    left: Left | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything in words: a sentence for each row, one for the gap, one for what was assumed."""
        told = [row.sentence for row in self.rows]
        if self.gap:
            parts = ", ".join(f"{tr(part.part)} {part.share:.1%}" for part in self.gap)
            told.append(tr("where the peak went in settled steps: {parts}", parts=parts))
            if self.gap[-1].share < NOTHING:
                told.append(tr("nothing is left for the rest, so the peak or a setting of the pipeline is wrong"))
        if self.mfu_ceiling is not None and self.mfu_ceiling < 1:
            most = f"{self.mfu_ceiling:.1%}"
            told.append(tr("with this pipeline and recomputation MFU could be {most} at most", most=most))
        if self.assumed:
            taken = ", ".join(f"{name} {ASSUMED[name]}" for name in self.assumed)
            told.append(tr("the log does not tell, so for the memory it is assumed: {taken}", taken=taken))
        return tuple(told)


def plan_against(
    analysis: Analysis, context: RunContext, records: Mapping[str, pl.DataFrame], utilisation: float | None = None
) -> Plan:
    """Put ``analysis`` beside what its own settings let expect.

    ``utilisation`` is the planned share of the peak (HFU); without one both ends of the usual range stand for it.
    """
    memory = tuple(memory_against(analysis, context, records["memory"]))
    left = work_left(analysis)
    time = _time_left(analysis, left, _shares(context, utilisation)) if left else ()
    rows = (*memory, *time, *_utilisation(analysis, utilisation))
    assumed = assumptions(context) if any(row.planned is not None for row in memory) else ()
    return Plan(rows, split_gap(analysis, context), mfu_ceiling(analysis, context), assumed, left)


# Time left.


def work_left(analysis: Analysis) -> Left | None:
    """What is left of the steps asked for, at the delivered rate; None where nothing is, or either is unknown."""
    steps, how = steps_left(analysis.steps), analysis.computation
    delivered = _rate(analysis, "delivered", "step_time_ms")
    if not steps or delivered is None:
        return None
    known = how.global_batch_size is not None and how.seq_length is not None
    tokens = steps * how.global_batch_size * how.seq_length if known else None  # type: ignore[operator]
    return Left(steps, tokens, finished_at(analysis.steps, steps * delivered / 1000))


def _shares(context: RunContext, utilisation: float | None) -> tuple[float, ...]:
    """The planned share of the peak, or both ends of what is usual, as far as the bubble of the pipeline leaves it."""
    if utilisation is not None:
        return (utilisation,)
    most = 1 - (pipeline_bubble(context) or 0.0)
    return USUAL_UTILISATION if most >= max(USUAL_UTILISATION) else (most,)


def _time_left(analysis: Analysis, left: Left, shares: tuple[float, ...]) -> Iterator[Planned]:
    """Time for the steps that are still to be done: at the delivered rate, and at the planned share of the peak."""
    seconds = left.steps * (_rate(analysis, "delivered", "step_time_ms") or 0.0) / 1000
    planned = [_planned_seconds(analysis, left.steps, share) for share in shares]
    said = tr("{steps} steps are left", steps=f"{left.steps:,}")
    if left.tokens is not None:
        said = tr("{steps} steps, {tokens} tokens are left", steps=f"{left.steps:,}", tokens=f"{left.tokens:,.0f}")
    said += tr("; at the delivered rate {time}", time=_span(seconds))
    if left.ends_at is not None:
        said += tr(", until {date} by the log's clock", date=f"{left.ends_at:%Y-%m-%d %H:%M}")
    low, high = planned[-1], planned[0]
    if low is not None and high is not None:
        said += "; " + _planned_span(low, high, shares)
    yield Planned("time_left", msg("time left"), "s", low, seconds, said, high if len(planned) > 1 else None)


def steps_left(steps: pl.DataFrame) -> int | None:
    """Steps asked for that are not done; None where the log does not say how many were asked for."""
    asked, done = steps["train_steps"].drop_nulls(), steps.filter(~pl.col("copied"))["step"].drop_nulls()
    return max(int(asked[-1]) - int(done[-1]), 0) if len(asked) and len(done) else None


def finished_at(steps: pl.DataFrame, seconds: float) -> datetime | None:
    """When the last step will be done if ``seconds`` pass after the last time stamp.

    None without time stamps, and beyond the year 9999.
    """
    stamps = steps["timestamp"].drop_nulls()
    last: Any = stamps[-1] if len(stamps) else None
    try:
        return None if last is None else last + timedelta(seconds=seconds)
    except OverflowError:
        return None


def _planned_seconds(analysis: Analysis, left: int, share: float) -> float | None:
    """FLOPs of the steps, recomputed ones in, over what the devices give at that share of their peak."""
    how = analysis.computation
    work = how.flops_per_sample(how.seq_length, how.recompute) if how.seq_length else None
    if work is None or how.peak is None or how.world_size is None or how.global_batch_size is None:
        return None
    return left * work * how.global_batch_size / (how.world_size * how.peak.peak_tflops_per_second * 1e12 * share)


def _planned_span(low: float, high: float, shares: tuple[float, ...]) -> str:
    if len(shares) == 1:
        return tr("at {share} of the peak: {time}", share=f"{shares[0]:.1%}", time=_span(low))
    return tr(
        "at {most} to {least} of the peak, which is usual: {low} to {high}",
        most=f"{shares[-1]:.0%}",
        least=f"{shares[0]:.0%}",
        low=_span(low),
        high=_span(high),
    )


def _span(seconds: float) -> str:
    if seconds >= DAY:
        return tr("{n} days", n=f"{seconds / DAY:,.1f}")
    return tr("{n} h", n=f"{seconds / HOUR:,.1f}") if seconds >= HOUR else tr("{n} s", n=f"{seconds:,.0f}")


# Utilisation and the gap to the peak.


def _utilisation(analysis: Analysis, utilisation: float | None) -> Iterator[Planned]:
    """Delivered HFU beside the plan, or beside what is usual for clusters of over 100 devices."""
    hfu = _rate(analysis, "delivered", "hfu")
    if hfu is None:
        return
    label, reached = msg("utilisation (HFU)"), {"hfu": f"{hfu:.1%}", "formula": analysis.computation.formula.name}
    if utilisation is not None:
        said = tr(
            "{hfu} of the peak delivered (HFU by {formula}), {plan} planned", plan=f"{utilisation:.1%}", **reached
        )
        yield Planned("utilisation", label, "ratio", utilisation, hfu, said)
        return
    low, high = USUAL_UTILISATION
    usual = {"low": f"{low:.0%}", "high": f"{high:.0%}"}
    said = tr(
        "{hfu} of the peak delivered (HFU by {formula}); over 100 devices {low} to {high} is usual", **reached, **usual
    )
    if (analysis.computation.world_size or 0) > MANY_DEVICES:
        where = msg("below it") if hfu < low else msg("above it") if hfu > high else msg("within it")
        said = tr("{said}: {where}", said=said, where=tr(where))
    yield Planned("utilisation", label, "ratio", low, hfu, said, high)


def pipeline_bubble(context: RunContext) -> float | None:
    """Share of a step that the pipeline waits, from its stages, micro-batches and chunks; None where one is unknown."""
    pp, micro_batches = context.get("pipeline_model_parallel_size"), context.get("num_microbatches")
    if pp == 1:
        return 0.0
    if pp is None or not micro_batches:
        return None
    return bubble_share(pp, micro_batches, setting(context, "virtual_pipeline_model_parallel_size"))


def mfu_ceiling(analysis: Analysis, context: RunContext) -> float | None:
    """What MFU could be with this pipeline and recomputation: the share not waited, less its recomputed part."""
    bubble, mfu, hfu = pipeline_bubble(context), _rate(analysis, "steady", "mfu"), _rate(analysis, "steady", "hfu")
    return None if bubble is None or mfu is None or not hfu else (1 - bubble) * mfu / hfu


def split_gap(analysis: Analysis, context: RunContext) -> tuple[GapPart, ...]:
    """The peak by where it went in settled steps: the model, recomputation, the bubble, and the rest.

    The rest is slow kernels, communication, waiting for data; it is below zero where the run is faster than its bubble
    allows, and then a setting or the peak is wrong. Empty where MFU, HFU or the bubble is unknown.
    """
    bubble, mfu, hfu = pipeline_bubble(context), _rate(analysis, "steady", "mfu"), _rate(analysis, "steady", "hfu")
    if bubble is None or mfu is None or hfu is None:
        return ()
    return (
        GapPart(msg("the model's own work (MFU)"), mfu),
        GapPart(msg("recomputation"), hfu - mfu),
        GapPart(msg("pipeline bubble"), bubble),
        GapPart(msg("the rest: communication, slow kernels, waiting"), 1 - hfu - bubble),
    )


def _rate(analysis: Analysis, rate: str, column: str) -> float | None:
    found: float | None = analysis.rates.row(by_predicate=pl.col("rate") == rate, named=True)[column]
    return found
