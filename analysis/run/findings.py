"""What must be read with a run's numbers: what is lacking and which flag gives it, what contradicts what.

Comes in: an Analysis, the rows as decoded, the run's context. Goes out: sentences. No number changes here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from analysis.flops import Ignorable, as_built_formula
from analysis.run.throughput import Computation
from logparse.context.run_context import RunContext
from logparse.language import msg, tr
from logparse.schema import flag_of

if TYPE_CHECKING:
    from analysis.run.analyze import Analysis

# Relative difference that the rounding of printed samples/s can make.
SAMPLES_AGREE = 0.05
# Above this share of the clock useful steps cannot be; the rest is rounding of stamps.
MOST_GOODPUT = 1.02
# Relative difference in pace that two ranks of one job can show.
PACE_AGREES = 0.1
# What is said of a model that has what the formula ignores.
IGNORED: Mapping[Ignorable, str] = {
    "num_experts": msg(
        "the {formula} formula takes the model for dense and ignores its {n} experts; pass --formula {other}"
    ),
    "multi_latent_attention": msg("the {formula} formula ignores multi-latent attention; pass --formula {other}"),
    "mtp_num_layers": msg("the {formula} formula ignores multi-token prediction; pass --formula {other}"),
}


@dataclass(frozen=True)
class Note:
    """One sentence that must be read with the numbers."""

    level: Literal["info", "warning"]
    text: str


def describe_run(
    result: Analysis, steps: pl.DataFrame, context: RunContext, odd: Iterable[str], pace: Iterable[str]
) -> tuple[Note, ...]:
    """All notes of a run; ``odd`` is what was strange in its rows ``steps``, ``pace`` what its steps did."""
    return (
        *(Note("warning", text) for text in odd),
        *_overruled(steps, result.computation, context),
        *_missing(result, context),
        *_surprises(result, context),
        *_begun_anew(result.segments),
        *(Note("info", text) for text in pace),
    )


def _begun_anew(segments: pl.DataFrame) -> Iterator[Note]:
    """Files that begin the training again: they may be another run."""
    heads = segments.unique("lineage", keep="first", maintain_order=True)
    for source, step in (
        heads.filter(pl.col("source") != pl.col("source").first()).select("source", "first_step").rows()
    ):
        text = tr("{source} begins the training again, at step {step}", source=source, step=step)
        yield Note("warning", tr("{what}: if it is another run, pass --each", what=text))


def _overruled(steps: pl.DataFrame, how: Computation, context: RunContext) -> Iterator[Note]:
    """Where the step lines print another batch or sequence length than the user gave."""
    for name in sorted(how.overrules):
        printed = steps[name].drop_nulls().unique().sort().to_list()
        if printed and printed != [context.get(name)]:
            span = tr("{low} to {high}", low=printed[0], high=printed[-1])
            text = tr(
                "{name} {value} ({origin}) is used; the step lines print {printed}",
                name=name,
                value=context.get(name),
                origin=context.origin(name),
                printed=span if len(printed) > 1 else printed[0],
            )
            yield Note("warning", text)


def _missing(result: Analysis, context: RunContext) -> Iterator[Note]:
    """Say what was not computed, for want of what, and which flag gives it."""
    steps, how = result.steps, result.computation
    if not steps["counted"].any():
        found = steps["excluded_reason"].value_counts(sort=True).iter_rows()
        reasons = tr(", ").join(tr("{n} x {reason}", n=n, reason=tr(reason)) for reason, n in found)
        text = tr("no row counts, so there is no metric ({reasons}); the rows are in steps.parquet", reasons=reasons)
        yield Note("warning", text)
    if steps["step_time_ms"].is_null().all():
        yield Note("warning", tr("no rate computed: no line gives the time of a step"))
    lacking = []
    if how.world_size is None:
        lacking.append("world_size")
    if steps["global_batch_size"].is_null().all():
        lacking.append("global_batch_size")
    if lacking:
        text = tr("samples/s/p, tokens/s/p and TFLOP/s/p not computed: {unknown}", unknown=describe_unknown(lacking))
        yield Note("warning", text)
    if steps["seq_length"].is_null().all():
        text = tr("tokens/s/p and TFLOP/s/p not computed: {unknown}", unknown=describe_unknown(["seq_length"]))
        yield Note("warning", text)
    if sizes := how.formula.missing(how.shape):
        text = tr(
            "TFLOP/s/p by {formula} not computed: {unknown}, or name the --model",
            formula=how.formula.name,
            unknown=describe_unknown(sizes),
        )
        yield Note("warning", text)
    if how.recompute is None:
        text = tr("hfu not computed: no setting tells of recompute; pass --recompute full, selective or none")
        yield Note("info", text)


def describe_unknown(names: list[str] | tuple[str, ...]) -> str:
    """Say that ``names`` are unknown, which flags give them, and which of them only a file can give."""
    flags = " ".join(flag for name in names if (flag := flag_of(name)))
    others = ", ".join(name for name in names if not flag_of(name))
    listed = ", ".join(names)
    if not others:
        return tr("{names} unknown; pass {flags}", names=listed, flags=flags)
    if not flags:
        return tr("{names} unknown; set {others} in a file for --config", names=listed, others=others)
    return tr(
        "{names} unknown; pass {flags} and set {others} in a file for --config",
        names=listed,
        flags=flags,
        others=others,
    )


def _surprises(result: Analysis, context: RunContext) -> Iterator[Note]:
    how = result.computation
    mfu, hfu = result.value("mfu"), result.value("hfu")
    name, most = ("HFU", hfu) if hfu is not None and (mfu is None or mfu <= 1) else ("MFU", mfu)
    if most is not None and most > 1 and how.peak:
        text = tr(
            "{name} is {share:.1%} of {peak:g} TFLOP/s, above the peak: "
            "the device, the device count, the shape or the time on the line is wrong",
            name=name,
            share=most,
            peak=how.peak.peak_tflops_per_second,
        )
        yield Note("warning", text)
    if how.peak and how.peak.range and mfu is not None:
        low, high = (mfu * how.peak.peak_tflops_per_second / p for p in reversed(how.peak.range))
        text = tr(
            "{device}: over its SKUs ({least:g} to {most:g} TFLOP/s) MFU is {low:.1%} to {high:.1%}",
            device=how.peak.name,
            least=how.peak.range[0],
            most=how.peak.range[1],
            low=low,
            high=high,
        )
        yield Note("warning", text)
    yield from _not_in_formula(how)
    yield from _printed_samples(result, context)
    yield from _strangers(result.steps)
    if result.goodput is not None and result.goodput > MOST_GOODPUT:
        text = tr(
            "useful steps at the steady pace are {share:.0%} of the clock: ranks or runs are mixed, "
            "or stamps are wrong; do not trust all-in and the account",
            share=result.goodput,
        )
        yield Note("warning", text)
    batches = result.steps.filter("counted")["global_batch_size"].drop_nulls().n_unique()
    if batches > 1:
        text = tr(
            "{n} batch sizes among the rows that count: the median time is of mixed steps, rates are per row", n=batches
        )
        yield Note("info", text)
    yield from _unprinted_ramp(result.steps, context)
    if context.get("lora"):
        text = tr("low-rank adapters are trained: frozen weights take no gradient, so FLOPs and MFU are too high")
        yield Note("warning", text)
    if context.get("variable_seq_lengths"):
        text = tr("samples differ in length: real tokens differ from batch x seq_length, rates are upper bounds")
        yield Note("warning", text)
    if context.get("recompute_method") == "block" and context.get("recompute") == "full":
        text = tr(
            "only {n} layers per pipeline stage are recomputed (method block), so hfu is an upper bound",
            n=context.get("recompute_num_layers"),
        )
        yield Note("warning", text)


def _not_in_formula(how: Computation) -> Iterator[Note]:
    """What the model has and the formula does not count."""
    names = {"formula": how.formula.name, "other": as_built_formula().name}
    for size in how.formula.ignores:
        if n := getattr(how.shape, size):
            yield Note("warning", tr(IGNORED[size], n=n, **names))


def _unprinted_ramp(steps: pl.DataFrame, context: RunContext) -> Iterator[Note]:
    """Where the settings say that the batch grows and no line tells how far it has come."""
    ramp = context.get("rampup_batch_size")
    if ramp and steps["consumed_samples"].is_null().all() and steps["global_batch_size"].drop_nulls().n_unique() == 1:
        text = tr(
            "the batch grows (rampup_batch_size {ramp}) and the lines do not print it: rates of the ramp are too high",
            ramp=ramp,
        )
        yield Note("warning", text)


def _printed_samples(result: Analysis, context: RunContext) -> Iterator[Note]:
    """Where the samples/s that the log prints are not the batch over the time, say by how much and why."""
    how = result.computation
    cluster = pl.col("logged_samples_per_second") / pl.lit(how.world_size, pl.Float64)
    printed = pl.coalesce("logged_samples_per_second_per_device", cluster)
    ratio = result.steps.filter("counted").select((printed / pl.col("samples_per_second_per_device")).median()).item()
    if ratio is None or abs(ratio - 1) < SAMPLES_AGREE:
        return
    parallel = math.prod(
        context.get(f"{kind}_parallel_size") or 1 for kind in ("tensor_model", "pipeline_model", "context")
    )
    said = msg("samples/s as the log prints it is {ratio:.4g} times batch / time / devices")
    if parallel > 1 and abs(ratio / parallel - 1) < SAMPLES_AGREE:
        said = msg(
            "samples/s as the log prints it is {ratio:.4g} times batch / time / devices: it counts every device as "
            "data parallel, as MindFormers to 1.3.2 does without full batch"
        )
    if abs(ratio * 1000 - 1) < SAMPLES_AGREE:
        said = msg(
            "samples/s as the log prints it is {ratio:.4g} times batch / time / devices: seconds taken for "
            "milliseconds, as in BigScience's code of 2021-12 and 2022-01"
        )
    yield Note("warning", tr(said, ratio=ratio))


def _strangers(steps: pl.DataFrame) -> Iterator[Note]:
    """Files that were taken for ranks of one job although their pace differs."""
    pace = steps.group_by("source", "copied", maintain_order=True).agg(pl.col("step_time_ms").median().alias("ms"))
    kept = pace.filter(~pl.col("copied"))
    for source, ms in pace.filter("copied").select("source", "ms").iter_rows():
        others = kept.filter(pl.col("source") != source)["ms"].drop_nulls()
        if ms and len(others) and all(abs(ms / other - 1) > PACE_AGREES for other in others):
            text = tr(
                "{source} holds the steps of another file at another pace: if it is another run, pass --each",
                source=source,
            )
            yield Note("warning", text)
