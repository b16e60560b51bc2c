"""A rate that the log prints of the whole training at its end, next to ours of its steps.

Comes in: the analysis, the settings of the log, what is known of the run. Goes out: a warning where the two differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analysis.identify.causes import of_devices
from analysis.identify.printed_precision import printed_unit
from analysis.run.printed_rates import WHOLE, printed_rates
from analysis.run.result import Analysis
from logparse.context.run_context import RunContext
from logparse.findings import Note, info, warning

SAMPLES, STEPS = "samples_per_second", "steps_per_second"
# Every training starts up, and most save: a rate within these shares of ours is that of the same steps.
LEAST, MOST = 0.8, 1.1
# Trainers round it to three decimals or fewer.
UNITS = (0.01, 0.001)
# How far the batch that follows from both rates may be from the known one: the last batch of an epoch may be smaller.
SAME_BATCH = 0.1


def describe_whole_run_rate(analysis: Analysis, settings: pl.DataFrame, context: RunContext) -> Iterator[Note]:
    """A warning where the samples/s of the whole training are not those of the steps, with the cause."""
    printed = printed_rates(analysis.steps, settings)
    whole, ours = printed.get(SAMPLES), _ours(analysis, context)
    if whole is None or whole.covers != WHOLE or not ours:
        return
    half = printed_unit(pl.Series([whole.median]), UNITS) / 2
    if whole.median - half <= MOST * ours and whole.median + half >= LEAST * ours:
        return
    ratio = whole.median / ours
    batch, steps = context.get("global_batch_size"), printed.get(STEPS)
    implied = None if steps is None else whole.median / steps.median
    if implied is None or not batch or abs(implied / batch - 1) <= SAME_BATCH:
        code, cause = "printed_rate_differs", info("rate_of_whole_run" if ratio < 1 else "rate_of_steps_before_resume")
    elif counted := _counted(implied / batch, context):
        code, cause = "printed_rate_differs", counted
    else:
        code, cause = "printed_rate_unexplained", info("no_known_cause_of_samples", ours=batch, implied=round(implied))
    yield warning(code, figure=f"logged_{SAMPLES}", printed=whole.median, ours=ours, ratio=ratio, cause=cause)


def _counted(times: float, context: RunContext) -> Note | None:
    """Which devices were counted once too often, if the printed batch is so many ``times`` ours by them."""
    for cause in of_devices(context, total=True):
        if isinstance(cause.factor, float) and abs(times / cause.factor - 1) <= SAME_BATCH:
            return cause.note
    return None


def _ours(analysis: Analysis, context: RunContext) -> float | None:
    """Our samples/s of all devices, at the steady pace."""
    each, devices = analysis.value(f"{SAMPLES}_per_device"), context.get("world_size")
    return None if each is None or devices is None else float(each * devices)
