"""A run against what it should have been: its own plan, and what others published.

Comes in: an analysed run and what was read with it. Goes out: both comparisons. Nothing is computed or printed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from analysis.estimate.step import bubble_share
from analysis.estimate.work import TYPICAL_UTILISATION
from analysis.hardware.devices import DevicePeak, find_device, is_cpu, known_name
from analysis.published.baselines import Baseline
from analysis.published.match import Achieved, PublishedComparison, compare_run
from analysis.run.checks.memory_comparison import Planned, assumptions, memory_against, setting
from analysis.run.result import Analysis
from analysis.run.useful.remaining_time import Left, is_end_printed, is_last_line, work_left
from logparse.context.run_context import RunContext
from logparse.errors import UsageError
from logparse.findings import Note, info
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Expectations:
    """A run against its plan and against published rates."""

    plan: Plan
    published: PublishedComparison


def measure_against(
    analysis: Analysis,
    context: RunContext,
    records: Mapping[str, pl.DataFrame],
    rows: Sequence[Baseline],
    baseline: str | None = None,
    utilisation: float | None = None,
    completed: bool = False,
) -> Expectations:
    """Compare a run with its plan and with ``rows``, or with the row called ``baseline`` alone.

    ``utilisation`` is the planned share of the peak, recomputation counted. ``completed`` says that the log shows the
    end of the training.
    Raises UsageError where no row goes by that name, or it publishes no tokens/s/p.
    """
    run = _measured(analysis, context)
    # A run that was recorded is in the history itself; no repeat has its rate to the last digit.
    recorded_here = (
        [] if baseline else [row for row in rows if row.recorded and row.tokens_per_second_per_device == run.rate]
    )
    others = [row for row in rows if row not in recorded_here]
    compared = compare_run(run, others, baseline)
    return Expectations(plan_against(analysis, context, records, utilisation, completed), compared)


def _measured(analysis: Analysis, context: RunContext) -> Achieved:
    how = analysis.computation
    return Achieved(
        rate=analysis.value("tokens_per_second_per_device"),
        shape=how.shape,
        devices=how.world_size,
        precision=context.get("precision"),
        device=_device(how.peak) or _named(context),
        seq_length=how.seq_length,
        lora=bool(context.get("lora")),
    )


def _named(context: RunContext) -> str | None:
    """The device that the log names, without a peak; a CPU is that of no published row. None where it is unknown."""
    device = context.get("device_name")
    return str(device) if is_cpu(device) else known_name(str(device))


def _device(peak: DevicePeak | None) -> str | None:
    """The device that the peak is of; None where the peak was given by hand and no device with it."""
    try:
        return None if peak is None else find_device(peak.name).name
    except UsageError:
        return None


# The typical utilisation is published for clusters of more devices than this.
MANY_DEVICES = 100


@dataclass(frozen=True)
class GapPart:
    """A part of the peak by its code, as a share of it; the parts add up to 1."""

    part: str
    share: float


@dataclass(frozen=True)
class Plan:
    """A run against its plan. ``mfu_ceiling`` is what the bubble leaves of MFU."""

    rows: tuple[Planned, ...]
    gap: tuple[GapPart, ...]
    mfu_ceiling: float | None
    assumed: tuple[str, ...]
    left: Left | None = None


def plan_against(
    analysis: Analysis,
    context: RunContext,
    records: Mapping[str, pl.DataFrame],
    utilisation: float | None = None,
    completed: bool = False,
) -> Plan:
    """Compare ``analysis`` with what its own settings let expect.

    ``utilisation`` is the planned share of the peak (HFU); without one, both ends of the typical range are planned.
    ``completed`` says that the log shows the end of the training.
    """
    memory = tuple(memory_against(analysis, context, records["memory"]))
    ended = completed or is_end_printed(analysis.steps, records["events"])
    finished = ended and is_last_line(analysis.steps)
    left = None if finished else work_left(analysis, context)
    time = _time_left(analysis, left, _shares(analysis, context, utilisation)) if left else ()
    rows = (*memory, *time, *_utilisation(analysis, utilisation))
    assumed = assumptions(context) if any(row.planned is not None for row in memory) else ()
    return Plan(rows, split_gap(analysis, context), mfu_ceiling(analysis, context), assumed, left)


# Time left.


def _shares(analysis: Analysis, context: RunContext, utilisation: float | None) -> tuple[float, ...]:
    """The planned share of the peak, or both ends of the typical range, as far as the bubble of the pipeline leaves it.

    Empty for few devices: the typical range is published for many.
    """
    if utilisation is not None:
        return (utilisation,)
    if not _many_devices(analysis):
        return ()
    most = 1 - (pipeline_bubble(context) or 0.0)
    return TYPICAL_UTILISATION if most >= max(TYPICAL_UTILISATION) else (most,)


def _time_left(analysis: Analysis, left: Left, shares: tuple[float, ...]) -> Iterator[Planned]:
    """Time for the steps that are still to be done: as the last start went, and at the planned share of the peak."""
    planned = [_planned_seconds(analysis, left, share) for share in shares]
    low, high = (planned[-1], planned[0]) if planned else (None, None)
    findings = [_left_to_do(left), _at_last_pace(left), *_unseen(left)]
    if low is not None and high is not None:
        findings.append(_at_planned_share(low, high, shares))
    yield Planned("time_left", "s", low, left.seconds, tuple(findings), high if len(planned) > 1 else None)


def _left_to_do(left: Left) -> Note:
    if left.tokens is None:
        return info("steps_left", steps=left.steps)
    return info("steps_and_tokens_left", steps=left.steps, tokens=left.tokens)


def _at_last_pace(left: Left) -> Note:
    if left.seconds is None:
        return info("left_at_least", seconds=left.seconds_low)
    ends = {"low": left.seconds_low, "high": left.seconds_high}
    shown = {} if _one_value(left) else ends
    if left.ends_at is None:
        code = "left_at_last_pace" if shown else "left_at_last_pace_alone"
        return info(code, seconds=left.seconds, **shown)
    code = "left_at_last_pace_until" if shown else "left_at_last_pace_alone_until"
    return info(code, seconds=left.seconds, ends_at=left.ends_at, **shown)


def _one_value(left: Left) -> bool:
    """Whether both ends are shown as one: in hours from a day on, in minutes from an hour on, else in seconds."""
    seconds, low, high = left.seconds or 0.0, left.seconds_low, left.seconds_high
    unit = 3600 if seconds >= 86_400 else 60 if seconds >= 3600 else 1
    return low is not None and high is not None and high - low < unit / 2


def _unseen(left: Left) -> Iterator[Note]:
    """What the time of batches that have not run rests on."""
    if left.unseen_batches is None:
        return
    batches, seen = left.unseen_batches.batches, left.unseen_batches.seen
    if len(seen) == 1:
        yield info("left_in_proportion", batches=batches, seen=seen[0])
    else:
        yield info("left_on_a_line", batches=batches, seen=seen)


def _at_planned_share(low: float, high: float, shares: tuple[float, ...]) -> Note:
    if len(shares) == 1:
        return info("left_at_planned_share", share=shares[0], seconds=low)
    return info("left_at_usual_shares", most=shares[-1], least=shares[0], low_seconds=low, high_seconds=high)


def _planned_seconds(analysis: Analysis, left: Left, share: float) -> float | None:
    """FLOPs of the steps, recomputed ones in, over what the devices of the last start give at that share."""
    how = analysis.latest
    work = how.executed_once(how.seq_length) if how.seq_length else None
    if work is None or how.peak is None or how.world_size is None or not left.tokens or not how.seq_length:
        return None
    samples = left.tokens / how.seq_length
    return samples * work / (how.world_size * how.peak.peak_tflops_per_second * 1e12 * share)


# Utilisation and the gap to the peak.


def _utilisation(analysis: Analysis, utilisation: float | None) -> Iterator[Planned]:
    """HFU including stalls against the plan, or against the typical range of clusters of over 100 devices."""
    hfu = _rate(analysis, "with_stalls", "hfu")
    if hfu is None:
        return
    fields = {"hfu": hfu}
    if utilisation is not None:
        finding = info("utilisation_beside_plan", **fields, planned=utilisation)
        yield Planned("utilisation", "ratio", utilisation, hfu, (finding,))
        return
    if not _many_devices(analysis):
        yield Planned("utilisation", "ratio", None, hfu, (info("utilisation_of_few_devices", **fields),))
        return
    low, high = TYPICAL_UTILISATION
    where = "below" if hfu < low else "above" if hfu > high else "within"
    finding = info(f"utilisation_{where}_usual", **fields, low=low, high=high)
    yield Planned("utilisation", "ratio", low, hfu, (finding,), high)


def _many_devices(analysis: Analysis) -> bool:
    """Whether the typical range is published for so many devices."""
    return (analysis.computation.world_size or 0) > MANY_DEVICES


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
    bubble = pipeline_bubble(context)
    mfu, hfu = (_rate(analysis, "steady", name) for name in ("mfu", "hfu"))
    return None if bubble is None or mfu is None or not hfu else (1 - bubble) * mfu / hfu


def split_gap(analysis: Analysis, context: RunContext) -> tuple[GapPart, ...]:
    """The peak by where it went in settled steps: the model, recomputation, the bubble, and the rest.

    The rest is slow kernels, communication, waiting for data; it is below zero where the run is faster than its bubble
    allows, and then a setting or the peak is wrong. Empty where MFU, HFU or the bubble is unknown.
    """
    bubble = pipeline_bubble(context)
    mfu, hfu = (_rate(analysis, "steady", name) for name in ("mfu", "hfu"))
    if bubble is None or mfu is None or hfu is None:
        return ()
    return (
        GapPart("model", mfu),
        GapPart("recomputation", hfu - mfu),
        GapPart("bubble", bubble),
        GapPart("rest", 1 - hfu - bubble),
    )


def _rate(analysis: Analysis, rate: str, column: str) -> float | None:
    value: float | None = analysis.rate(rate)[column]
    return value
