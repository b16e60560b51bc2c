"""What can make a printed rate differ from work over time, each with the factor that it makes.

Comes in: the rows and what is known of the run. Goes out: causes. Nothing is compared here. Those of the FLOPs are in
``causes_of_flops``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import prod

import polars as pl

from analysis.hardware.devices import DevicePeak
from logparse.context.run_context import RunContext
from logparse.findings import Note, info
from logparse.light_dataclass import dataclass

MODEL_PARALLEL = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
# TFLOP/s for bf16 that trainers divide by whatever the device.
TAKEN_FOR_ALL = {"A100": 312.0, "H100": 989.0}
# What ``of_time`` adds to the rows: rates over a start, as parts of the row's own.
RATIO = "_ratio"
RESUMED, MEAN, RUNNING = "_resumed", "_mean", "_running"


@dataclass(frozen=True)
class Cause:
    """``factor`` is what the printed rate would be of ours; ``last`` is asked for where nothing else explains it."""

    note: Note
    factor: float | pl.Expr
    last: bool = False


def of_sizes(context: RunContext, total: bool, steps_of_row: int) -> Iterator[Cause]:
    """Sizes of the run that were multiplied in or divided out once too often.

    Where no log interval is printed it is ``steps_of_row``: PaddleNLP 2.4 counts one step of each row.
    """
    yield from of_devices(context, total)
    interval = context.get("log_interval") or steps_of_row
    for name, size in {"num_microbatches": context.get("num_microbatches") or 1, "log_interval": interval}.items():
        if size > 1:
            yield from _both_ways(name, {name: size})


def of_devices(context: RunContext, total: bool) -> Iterator[Cause]:
    """Parallel sizes, and all devices."""
    sizes = {name: size for name in MODEL_PARALLEL if (size := context.get(name) or 1) > 1}
    for count in range(1, len(sizes) + 1):
        for names in combinations(sizes, count):
            yield from _both_ways("model_parallel", {name: sizes[name] for name in names})
    world, replicas = context.get("world_size") or 1, context.get("data_parallel_size") or 1
    if 1 < replicas < world:
        yield from _both_ways("data_parallel", {"data_parallel_size": replicas})
    if world > 1:
        many = info("rate_times_devices" if total else "rate_of_all_devices", n=world)
        one = info("rate_of_one_device" if total else "rate_divided_again", n=world)
        yield from (Cause(many, float(world)), Cause(one, 1 / world))


def _both_ways(what: str, sizes: dict[str, int]) -> Iterator[Cause]:
    values = [info("named_value", name=name, value=size) for name, size in sizes.items()]
    product = float(prod(sizes.values()))
    yield Cause(info(f"{what}_counted", sizes=values), product)
    yield Cause(info(f"{what}_left_out", sizes=values), 1 / product)


def of_units() -> Iterator[Cause]:
    """Units of time taken for one another."""
    yield Cause(info("seconds_for_ms"), 0.001)
    yield Cause(info("ms_for_seconds"), 1000.0)


def of_spans(rows: pl.DataFrame) -> Iterator[Cause]:
    """Rates over more than the row."""
    if rows[RESUMED].count():
        yield Cause(info("rate_of_all_steps_since_resume"), pl.col(RESUMED))
    yield Cause(info("mean_of_rates"), pl.col(MEAN))
    yield Cause(info("rate_since_start"), pl.col(RUNNING))


def of_time(steps: pl.DataFrame) -> pl.DataFrame:
    """Add to each row what three rates over its start would be of the row's own.

    ``RESUMED``: all samples of the training over the time since the resume, null where nothing was done before;
    ``MEAN``: the arithmetic mean of the rates so far; ``RUNNING``: work so far over time so far.
    """
    batch, ms, count = pl.col("global_batch_size"), pl.col("step_time_ms"), pl.col("iterations")
    rate = batch / ms
    so_far = [part.fill_null(0).cum_sum().over("segment") for part in (batch * count, ms * count)]
    done, time = so_far
    all_done = pl.coalesce("consumed_samples", pl.col("step") * batch)
    resumed = pl.when(all_done > done * 1.05).then(all_done / time / rate)
    rates = rate.fill_null(0).cum_sum().over("segment") / rate.is_not_null().cum_sum().over("segment")
    uncopied = steps.filter(~pl.col("copied"))
    return uncopied.with_columns(
        resumed.alias(RESUMED), (rates / rate).alias(MEAN), (done / time / rate).alias(RUNNING)
    )


def of_samples() -> Iterator[Cause]:
    """What samples/s alone can be."""
    yield Cause(info("tokens_for_samples"), pl.col("seq_length").cast(pl.Float64))


def of_lengths(rows: pl.DataFrame, ratio: float) -> Iterator[Cause]:
    """Tokens of another length, where the samples/s of the same rows are right."""
    ours = rows["seq_length"].drop_nulls()
    if ours.n_unique() == 1:
        yield Cause(info("counts_other_length", length=round(ratio * ours[0]), ours=ours[0]), ratio)


def of_peaks(peak: DevicePeak) -> Iterator[Cause]:
    """Peaks that an MFU may have been divided by, where no printed TFLOP/s shows it."""
    ours = peak.peak_tflops_per_second
    yield Cause(info("divided_by_own_other", peak=2 * ours, ours=ours, kinds=[f"{peak.dtype} sparse"]), 0.5)
    for name, other in TAKEN_FOR_ALL.items():
        yield Cause(info("divided_by_peak_of", peak=other, ours=ours, devices=[name]), ours / other)
