"""Notes on the numbers of a run: what is missing and which flag gives it, what contradicts what.

Comes in: an Analysis, the rows as decoded, the run's context. Goes out: notes. No number changes here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import polars as pl

from analysis.flops import Ignorable, real_model_formula
from analysis.hardware.devices import BY_HAND, DevicePeak, faster_types, is_cpu
from analysis.model.parameters import count_parameters
from analysis.run.rates.throughput import Computation
from analysis.run.result import Analysis
from analysis.run.rows.frame_filters import known
from analysis.run.rows.updates import printed_skips
from logparse.context.run_context import RunContext
from logparse.findings import Note, info, warning
from logparse.schema import flag_of

# Codes that say that files given as one run may be several.
PERHAPS_ANOTHER_RUN = {"training_begun_again", "file_at_another_pace", "copy_ahead", "copy_behind"}
SAMPLES, TFLOPS = "samples_per_second_per_device", "tflops_per_second_per_device"
# Shares of the peak, the first of which is shown over the SKUs of a family.
OF_PEAK = ("mfu", "hfu", "peak_utilization")
# Frameworks count what small parts we leave out, and pad the vocabulary.
SAME_MODEL = 0.03
# No training in our table of published rates reaches this MFU.
HIGHEST_PUBLISHED = 0.7
# A higher one is doubted, as of another device or of other sizes: the highest one of our table is 69 %.
HIGHEST_BELIEVED = 0.75
# TFLOP/s that no training of ours reaches on a CPU, whose matrix units are those of few and recent models.
HIGHEST_OF_CPU = 20.0
# The finding on a device that the log calls a CPU, and that is faster.
FAST_FOR_CPU = "fast_for_cpu"
# Relative difference in pace that two ranks of one job can show.
PACE_AGREES = 0.1
# Codes of the notes on a model that has what the formula ignores.
IGNORED: Mapping[Ignorable, str] = {
    "num_experts": "formula_ignores_experts",
    "multi_latent_attention": "formula_ignores_latent_attention",
    "mtp_num_layers": "formula_ignores_multi_token_prediction",
    "num_window_layers": "formula_ignores_windows",
}


def describe_run(result: Analysis, steps: pl.DataFrame, context: RunContext) -> tuple[Note, ...]:
    """All notes on what an analysis of the rows ``steps`` could not compute, and on what contradicts what."""
    return (
        *_overruled(steps, result.computation, context),
        *_missing(result, context),
        *_surprises(result, context),
        *_begun_anew(result),
        *_trained_in(result),
    )


def _trained_in(result: Analysis) -> Iterator[Note]:
    """How long the whole training took, without start-up before it and teardown after it."""
    if result.time_to_train_seconds is not None:
        yield info("time_to_train", seconds=result.time_to_train_seconds)


def _begun_anew(result: Analysis) -> Iterator[Note]:
    """Files that begin the training again, which may be another run, and several trainings in one file.

    Where runs mix in a file, their own warning says so.
    """
    if len(result.segments) < 2 or result.streams:
        return
    heads = result.segments.unique("lineage", keep="first", maintain_order=True)
    within = heads.filter((pl.col("source") == pl.col("source").shift(1)).fill_null(value=False))
    pace = dict(result.steps.filter("counted").group_by("lineage").agg(pl.col("step_time_ms").median()).iter_rows())
    for source, lines in within.group_by("source", maintain_order=True).agg("line_number").iter_rows():
        every = heads.filter(pl.col("source") == source)["lineage"]
        ms = [f"{pace[lineage]:,.1f}" for lineage in every if lineage in pace]
        yield warning("trainings_in_one_file", n=len(lines) + 1, source=source, lines=lines, ms=ms)
    for source, step in (
        heads.filter(pl.col("source") != pl.col("source").first()).select("source", "first_step").rows()
    ):
        yield warning("training_begun_again", source=source, step=step)


def _overruled(steps: pl.DataFrame, how: Computation, context: RunContext) -> Iterator[Note]:
    """Where the step lines print another batch or sequence length than the user gave."""
    for name in sorted(how.overrules):
        printed = steps[name].drop_nulls().unique().sort().to_list()
        if printed and printed != [context.get(name)]:
            ends = [printed[0], printed[-1]]
            value, origin = context.get(name), context.origin(name)
            yield warning("lines_overruled", name=name, value=value, origin=origin, printed=ends)


def _missing(result: Analysis, context: RunContext) -> Iterator[Note]:
    """Say what was not computed, for want of what, and which flag gives it."""
    steps = result.steps
    if not steps["counted"].any():
        counts = Counter(steps["excluded_reason"]).most_common()
        reasons = [info("rows_of_reason", n=n, reason=reason) for reason, n in counts]
        yield warning("no_row_counts", reasons=reasons, instead=_rates_there_are(result.rates))
    yield from _of_skipped_updates(steps)
    if not steps["step_time_ms"].count():
        yield warning("no_step_time")
    missing = []
    counted = steps.filter("counted") if steps["counted"].any() else steps
    if any(how.world_size is None for how in result.computed_with(SAMPLES)):
        missing.append("world_size")
    if not counted["global_batch_size"].count():
        missing.append("global_batch_size")
    if missing:
        tokens = bool(counted["tokens_per_second_per_device"].count())
        yield (
            info("samples_not_computed", unknown=unknown(missing))
            if tokens
            else warning("samples_rate_not_computed", unknown=unknown(missing))
        )
    if context.without_tokens and not steps["seq_length"].count():
        yield info("no_tokens", data=context.get("training_data"))
    else:
        yield from _missing_of_tokens(counted, result)


def _missing_of_tokens(rows: pl.DataFrame, result: Analysis) -> Iterator[Note]:
    """The same of what needs a length of sequence, of the ``rows`` that count."""
    no_length = not rows["seq_length"].count()
    no_tokens = no_length and not rows["tokens_per_second_per_device"].count()
    if no_tokens:
        yield warning("tokens_rate_not_computed", unknown=unknown(["seq_length"]))
    # Printed tokens say nothing of the work of attention.
    missing = ["seq_length"] if no_length and not no_tokens else []
    yield from islice((note for how in result.computed_with(TFLOPS) for note in _no_work(how, missing)), 1)
    if any(how.recompute is None for how in result.computed_with("hfu")):
        yield info("hfu_not_computed")


def _no_work(how: Computation, missing: Sequence[str]) -> Iterator[Note]:
    """Why the formula gives no FLOPs, which also need what is ``missing`` of the rows."""
    if layers := how.formula.not_counted(how.shape):
        yield warning("layers_not_counted", formula=how.formula.name, layers=layers)
    elif sizes := [*how.formula.missing(how.shape), *missing]:
        yield warning("flops_rate_not_computed", formula=how.formula.name, unknown=unknown(sizes))


def _of_skipped_updates(steps: pl.DataFrame) -> Iterator[Note]:
    """A warning where only rows with skipped updates count."""
    skipped, done = steps.select(
        printed_skips().filter("counted").sum(), pl.col("iterations").filter("counted").sum()
    ).row(0)
    if skipped:
        yield warning("counted_updates_skipped", n=int(skipped), of=int(done))


def _rates_there_are(rates: pl.DataFrame) -> list[Note]:
    """The first rate that is known, for a run of which no row counts."""
    timed = rates.filter(pl.col("step_time_ms").is_not_null()).head(1)
    read = timed.select("rate", "step_time_ms", "tokens_per_second_per_device").iter_rows()
    return [
        info("rate_there_is", rate=rate, ms=ms)
        if tokens is None
        else info("rate_and_tokens_there_are", rate=rate, ms=ms, tokens=tokens)
        for rate, ms, tokens in read
    ]


def unknown(names: Sequence[str]) -> Note:
    """That ``names`` are unknown, which flags give them, and which of them only a file can give."""
    flags = [flag for name in names if (flag := flag_of(name))]
    without_flag = [name for name in names if not flag_of(name)]
    code = "unknown_but_flags" if not without_flag else "unknown_but_config" if not flags else "unknown_but_both"
    return info(code, names=list(names), flags=flags, others=without_flag)


def describe_rounded(context: RunContext) -> Iterator[Note]:
    """A warning where steps are too rounded to be distinguished, so that no figure is of the whole log."""
    if rounded := context.get("rounded_step"):
        yield warning("steps_rounded", step=rounded)


def _surprises(result: Analysis, context: RunContext) -> Iterator[Note]:
    how = result.computation
    yield from _against_peak(result, context)
    yield from _of_cpu(result, context)
    yield from _not_in_formula(how)
    yield from _of_parameters(how, context)
    yield from _strangers(result.steps)
    yield from _unprinted_ramp(result.steps, context)
    if how.shape.adapter_parameters is not None:
        yield info("adapters_trained", n=how.shape.adapter_parameters)
    elif how.shape.lora:
        yield info("adapters_not_counted")
    if context.get("packed_documents"):
        yield info("samples_are_windows")
    if context.get("variable_seq_lengths"):
        yield warning("lengths_vary")
    if (factor := how.shape.moe_capacity_factor) is not None:
        yield warning("experts_drop_tokens", factor=factor)
    yield from _not_understood(result)


def _not_understood(result: Analysis) -> Iterator[Note]:
    """Where a setting of the recomputation is not understood: between what HFU lies."""
    how = result.computation
    times = how.executed_times()
    if how.recomputed is None or times is None or times[0] == times[1]:
        return
    setting = how.recomputed.setting or real_model_formula().name
    low, high = times
    mfu = result.value("mfu")
    if mfu is None:
        yield warning("recompute_not_understood", setting=setting, least=low - 1, most=high - 1)
    else:
        yield warning("hfu_is_a_range", setting=setting, low=mfu * low, high=mfu * high)


def _of_cpu(result: Analysis, context: RunContext) -> Iterator[Note]:
    """A warning where a device that the log calls a CPU is too fast for one."""
    if is_cpu(context.get("device_name")) and result.computation.peak is None and too_fast_for_cpu(result):
        yield warning(FAST_FOR_CPU, reached=result.value("tflops_per_second_per_device"))


def too_fast_for_cpu(result: Analysis) -> bool:
    """Whether the run reaches more TFLOP/s than a CPU does."""
    return (result.value("tflops_per_second_per_device") or 0.0) > HIGHEST_OF_CPU


def _against_peak(result: Analysis, context: RunContext) -> Iterator[Note]:
    """Shares of the peak that are impossible or doubtful, and what the SKUs of a family make of them.

    Where no one gave the number type, another one may explain them.
    """
    assumed = context.get("precision") is None
    is_upper_bound = context.get("variable_seq_lengths") or context.get("packed_documents")
    peak = result.computation.peak
    if peak is None:
        return
    shares = {name: share for name in OF_PEAK if (share := result.value(name)) is not None}
    for metric, share in [pair for pair in shares.items() if pair[1] > 1][:1]:
        fields = {"metric": metric, "share": share, "peak_tflops_per_second": peak.peak_tflops_per_second}
        if assumed and (types := faster_types(peak, max(shares.values()))):
            yield warning("above_assumed_peak", dtype=peak.dtype, types=types, **fields)
        else:
            yield warning("above_peak", flags=_flags_of_peak(peak, context), **fields)
    mfu = shares.get("mfu", 0.0)
    if assumed and HIGHEST_PUBLISHED < mfu <= 1 and (types := faster_types(peak, mfu / HIGHEST_PUBLISHED)):
        yield warning("high_for_assumed_peak", share=mfu, dtype=peak.dtype, types=types)
    elif not peak.range and not is_upper_bound and HIGHEST_BELIEVED < mfu <= max(shares.values()) <= 1:
        yield warning("high_mfu", share=mfu, most=HIGHEST_BELIEVED, flags=_flags_of_peak(peak, context))
    if peak.range and shares:
        metric, share = next(iter(shares.items()))
        low, high = (share * peak.peak_tflops_per_second / p for p in reversed(peak.range))
        least, greatest = peak.range
        fields = {"device": peak.name, "least": least, "most": greatest, "low": low, "high": high}
        yield warning("several_skus", metric=metric, **fields)


def _flags_of_peak(peak: DevicePeak, context: RunContext) -> list[str]:
    """The flags that set the peak; that of the number type only where the log does not print it."""
    if peak.name == BY_HAND:
        return ["--peak-tflops"]
    origin = context.origin("precision")
    return ["--hw"] if origin and origin.kind == "log" else ["--dtype", "--hw"]


def _of_parameters(how: Computation, context: RunContext) -> Iterator[Note]:
    """A warning where the log counts another number of parameters than the sizes give: they are of another model."""
    printed, counted = context.get("model_parameters"), count_parameters(how.shape, include_mtp=True)
    if printed is None or counted is None or (how.shape.num_experts and context.get("expert_model_parallel_size") != 1):
        return
    if abs(printed / counted.total - 1) > SAME_MODEL:
        yield warning("parameters_differ", printed=printed, counted=counted.total, apart=printed / counted.total - 1)


def _not_in_formula(how: Computation) -> Iterator[Note]:
    """What the model has and the formula does not count, where the count as built does not show how much it is."""
    built = real_model_formula()
    if not how.formula.real_model and not built.missing(how.shape) and not built.not_counted(how.shape):
        return
    names = {"formula": how.formula.name, "other": real_model_formula().name}
    for size in how.formula.ignores:
        if n := getattr(how.shape, size):
            yield warning(IGNORED[size], n=n, **names)
    if how.formula.plain_layers and how.shape.special_layers:
        yield warning("formula_ignores_special_layers", formula=how.formula.name, layers=how.shape.special_layers)


def _unprinted_ramp(steps: pl.DataFrame, context: RunContext) -> Iterator[Note]:
    """Where the settings say that the batch grows and no line shows how far it has come."""
    ramp = context.get("rampup_batch_size")
    if ramp and not steps["consumed_samples"].count() and known(steps["global_batch_size"]).n_unique() == 1:
        yield warning("ramp_not_printed", ramp=ramp)


def _strangers(steps: pl.DataFrame) -> Iterator[Note]:
    """Files that were taken for ranks of one job although their pace differs."""
    if not steps["copied"].any():
        return
    pace = steps.group_by("source", "copied", maintain_order=True).agg(pl.col("step_time_ms").median().alias("ms"))
    uncopied = pace.filter(~pl.col("copied"))
    for source, ms in pace.filter("copied").select("source", "ms").iter_rows():
        of_other_files = uncopied.filter(pl.col("source") != source)["ms"].drop_nulls()
        if ms and len(of_other_files) and all(abs(ms / other - 1) > PACE_AGREES for other in of_other_files):
            yield warning("file_at_another_pace", source=source)
