"""What can make a printed rate differ from work over time, each with the factor that it makes.

Comes in: the rows and what is known of the run. Goes out: causes. Nothing is compared here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import cast

import polars as pl

from analysis.flops import Recompute, all_formulas
from analysis.flops.printed import PRINTED_FORMULAS
from analysis.hardware.devices import DevicePeak
from analysis.identify.formula import Identification, identify_formula
from analysis.model.shape import ModelShape
from logparse.context.run_context import RunContext
from logparse.findings import Note, info

MODEL_PARALLEL = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
# TFLOP/s for bf16 that trainers divide by whatever the device.
TAKEN_FOR_ALL = {"A100": 312.0, "H100": 989.0}
# A forward pass more, or less, beside forward and backward: 4 of 3 passes.
RECOMPUTED = 4 / 3
# Lengths that are tried for one another: packed and unpacked samples are often powers of two apart.
LENGTHS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)
# What ``of_time`` adds to the rows: rates over a start, as parts of the row's own.
RATIO = "_ratio"
RESUMED, MEAN, RUNNING = "_resumed", "_mean", "_running"


@dataclass(frozen=True)
class Cause:
    """``factor`` is what the printed rate would be of ours; ``last`` is asked for where nothing else explains it."""

    note: Note
    factor: float | pl.Expr
    last: bool = False


def of_sizes(context: RunContext, total: bool) -> Iterator[Cause]:
    """Sizes of the run that were multiplied in or divided out once too often."""
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
    for name in ("num_microbatches", "log_interval"):
        if (size := context.get(name) or 1) > 1:
            yield from _both_ways(name, {name: size})


def _both_ways(what: str, sizes: dict[str, int]) -> Iterator[Cause]:
    named = [info("named_value", name=name, value=size) for name, size in sizes.items()]
    product = float(prod(sizes.values()))
    yield Cause(info(f"{what}_counted", sizes=named), product)
    yield Cause(info(f"{what}_left_out", sizes=named), 1 / product)


def of_units() -> Iterator[Cause]:
    """Units of time taken for one another."""
    yield Cause(info("seconds_for_ms"), 0.001)
    yield Cause(info("ms_for_seconds"), 1000.0)


def of_spans(rows: pl.DataFrame) -> Iterator[Cause]:
    """Rates over more than the row."""
    if rows[RESUMED].is_not_null().any():
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
    kept = steps.filter(~pl.col("copied"))
    return kept.with_columns(resumed.alias(RESUMED), (rates / rate).alias(MEAN), (done / time / rate).alias(RUNNING))


def of_samples() -> Iterator[Cause]:
    """What samples/s alone can be."""
    yield Cause(info("tokens_for_samples"), pl.col("seq_length").cast(pl.Float64))


def of_lengths(rows: pl.DataFrame, ratio: float) -> Iterator[Cause]:
    """Tokens of another length, where samples/s is right beside them."""
    ours = rows["seq_length"].drop_nulls()
    if ours.n_unique() == 1:
        yield Cause(info("counts_other_length", length=round(ratio * ours[0]), ours=ours[0]), ratio)


def of_printed_flops(rows: pl.DataFrame, ours: str, context: RunContext, found: Identification) -> Iterator[Cause]:
    """What makes TFLOP/s differ; ``found`` compared them with every formula row by row."""
    if found.matches:
        yield Cause(_identified(context, found), pl.col(RATIO))
    else:
        yield from _recompute(rows, ours)
        yield from _other_lengths(rows, context)


def _identified(context: RunContext, found: Identification) -> Note:
    """The formula behind the log's TFLOP/s, and which of ours would give the same."""
    recompute = cast("Recompute | None", context.get("recompute"))
    ours = [f.name for f in all_formulas().values() if f.printed_as.get(f.quoted(recompute)) in found.matches]
    if not ours or found.scale != 1:
        return info("identified", findings=found.findings)
    return info("identified_as", formula=ours[0], findings=found.findings)


def of_flops(rows: pl.DataFrame, ours: str, context: RunContext, found: Identification) -> Iterator[Cause]:
    """What makes the FLOPs behind an MFU or HFU differ."""
    yield from _recompute(rows, ours)
    yield from _formulas(rows, ours, context, found.matches or tuple(PRINTED_FORMULAS))


def _recompute(rows: pl.DataFrame, ours: str) -> Iterator[Cause]:
    """Forward passes that one of the two counts."""
    per_share = "model_tflops_per_second_per_device" if ours == "mfu" else "hardware_tflops_per_second_per_device"
    base = ours if ours.startswith("tflops") else per_share
    model, executed = (
        rows.select((pl.col(f"{what}_tflops_per_second_per_device") / pl.col(base)).median()).item()
        for what in ("model", "hardware")
    )
    if executed and executed > 1.01:
        yield Cause(info("recompute_counted"), executed)
    elif ours != "hfu":
        yield Cause(info("recompute_counted"), RECOMPUTED)
    if model and model < 0.99:
        yield Cause(info("recompute_left_out"), model)


def _formulas(rows: pl.DataFrame, ours: str, context: RunContext, names: Sequence[str]) -> Iterator[Cause]:
    """Printed formulas by ``names``, as parts of ours."""
    base = {"mfu": "model", "hfu": "hardware"}[ours] + "_tflops_per_second_per_device"
    per_token = rows.select((pl.col(base) * 1e12 / pl.col("tokens_per_second_per_device")).median()).item()
    lengths = rows["seq_length"].drop_nulls()
    if not per_token or lengths.is_empty():
        return
    shape, length = ModelShape.from_quantities(context.values()), int(lengths[0])
    for name in names:
        if flops := PRINTED_FORMULAS[name].flops_per_token(shape, length):
            yield Cause(info("counts_by_formula", formulas=[name]), flops / per_token, last=True)


def _other_lengths(rows: pl.DataFrame, context: RunContext) -> Iterator[Cause]:
    """Lengths at which a formula gives the printed TFLOP/s of every row."""
    lengths = rows["seq_length"].drop_nulls()
    if lengths.n_unique() != 1:
        return
    shape, world = ModelShape.from_quantities(context.values()), context.get("world_size")
    for part in LENGTHS:
        length = int(lengths[0] * part)
        tried = rows.with_columns(seq_length=pl.lit(length, pl.Int64))
        if matches := identify_formula(tried, shape, length, world, None).matches:
            note = info("counts_other_length_by", length=length, ours=lengths[0], formulas=list(matches))
            yield Cause(note, pl.col(RATIO))


def of_peaks(peak: DevicePeak) -> Iterator[Cause]:
    """Peaks that an MFU may have been divided by where no TFLOP/s tells it."""
    ours = peak.peak_tflops_per_second
    yield Cause(info("divided_by_own_other", peak=2 * ours, ours=ours, kinds=[f"{peak.dtype} sparse"]), 0.5)
    for name, other in TAKEN_FOR_ALL.items():
        yield Cause(info("divided_by_peak_of", peak=other, ours=ours, devices=[name]), ours / other)
