"""A run against what it should have been: its own plan, and what others published.

Comes in: an analysed run and what was read with it. Goes out: both comparisons. Nothing is computed or printed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from analysis.hardware.devices import DevicePeak, find_device, is_cpu, known_name
from analysis.published.match import Achieved, PublishedComparison, compare_run
from analysis.published.rows import Baseline
from analysis.run.plan_comparison import Plan, plan_against
from analysis.run.result import Analysis
from logparse.context.run_context import RunContext
from logparse.errors import UsageError
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
    own = [] if baseline else [row for row in rows if row.recorded and row.tokens_per_second_per_device == run.rate]
    others = [row for row in rows if row not in own]
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
