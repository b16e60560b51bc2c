"""The first screen of a run: what it reached, what it lost, what is left, how it compares, whether to trust it.

A row that cannot be computed is left out; one row names the flags that would give what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.flops import NOTHING, real_model_formula
from analysis.hardware.devices import DevicePeak, nominal_peak
from analysis.present.numbers import about, about_range, at_least, percent, percent_of_peak, step_time, three
from analysis.present.parts import Part, ScreenRow, ScreenRows, Sentence
from analysis.present.views.ending import LONGEST, error_clauses, failure, short_ending
from analysis.present.views.missing import missing_clauses
from analysis.present.views.overheads import advice, inside_steps, named_overheads, outside_steps
from analysis.present.views.printed_rates import PRINTED_PACES, TFLOPS, TOKENS, printed_text, unlike_ours_text
from analysis.present.views.sizes import rows_of_sizes, size_shown
from analysis.present.views.throughput import many_stalls, throughput
from analysis.present.views.title import of_tokens, title_part
from analysis.present.views.warnings import own_warnings, printed_flops, ranked_warnings, warning_clauses
from analysis.present.words import clause, say, word
from analysis.present.words.forms import range_of, span
from analysis.published.match import Against
from analysis.run.checks.self_checks import broken_by
from analysis.run.rates.baseline_step_time import stalled
from analysis.run.rates.printed_rates import PREFIX
from analysis.run.rows.exclusion_reasons import HOLDS_EVALUATION, HOLDS_SAVE, OF_THE_RUN, STALL
from analysis.run.run import Run
from analysis.run.useful.useful_time import LostUpdates, count_lost_updates, skips_left_out
from logparse.formats._base import TEBI
from logparse.language import msg, tr

# Where a rate is unknown the next one is shown.
FALLBACKS = ("steady", "with_stalls", "all_steps", "wall_clock")
# A formula whose FLOPs are further from those of the real model gives TFLOP/s of another model.
FAR_FROM_MODEL = 0.2
# A published rate that differs less than this is probably that of the same run: two runs differ by more.
SAME_RUN = 0.003
# An unknown device so many times as fast or as slow as the published one is hardly the same.
SAME_DEVICE = 2
# Of a time with a range of this factor only the range is shown, and beyond the other factor none.
WIDE_RANGE, NO_ESTIMATE = 3, 30
# Phases of a step, the longest first.
PHASES_SHOWN = 3
# A part of a step that is shown.
LEAST_PART = 0.01
# A share of the peak that is shown of printed TFLOP/s.
LEAST_OF_PEAK = 0.01
# A clock is coarse that rounds a step by more than this share of it.
COARSE = 0.02
# Steps whose times are so far apart are not near one median; fewer show nothing.
TIME, FAR_APART, FEW_STEPS = "elapsed_time_per_iteration_ms", 1.5, 10


def first_screen(run: Run) -> list[Part]:
    """The title and the rows; first of all what a failed self-check found."""
    return [*failed_checks(run), title_part(run), ScreenRows(list(rows(run)))]


def failed_checks(run: Run) -> list[Sentence]:
    """A sentence for each self-check that failed and so withholds figures."""
    findings = broken_by(run.checks)
    notes = [note for note in ranked_warnings(run) if note.code in findings]
    return [Sentence(tr("doubtful: {finding}", finding=clause(note)), "warning") for note in notes]


def rows(run: Run) -> Iterator[ScreenRow]:
    """Every row that is known, in the order of reading."""
    rate = shown_rate(run)
    if clauses := error_clauses(run):
        yield ScreenRow(tr("error"), "", clauses)
    yield from rate_rows(run)
    yield from (row for row in (_tflops(run, rate), _mfu(run, rate)) if row)
    yield from _losses(run)
    yield from _lost(run)
    yield from (row for row in (remaining(run), compared(run)) if row)
    if clauses := missing_clauses(run):
        yield ScreenRow(tr("missing"), "", clauses, separator=" ")
    if clauses := warning_clauses(run):
        yield ScreenRow(tr("warnings"), "", clauses, separator="; ")


def quiet_line(run: Run) -> str:
    """The answer in one line of at most LONGEST columns, figures before the ending; ``--json`` is for programs."""
    rate, n = shown_rate(run), len(own_warnings(run))
    # Each with how early it is left out where the line is too long.
    values = (
        (0, _quiet_time(run, rate)),
        (2, of_tokens(run, tr("{n} tokens/s/p", n=three(rate[TOKENS]))) if rate[TOKENS] is not None else ""),
        (6, tr("{n} TFLOP/s/p", n=three(rate[TFLOPS])) if rate[TFLOPS] is not None else ""),
        (1, of_tokens(run, tr("MFU {share}", share=percent_of_peak(rate["mfu"]))) if rate["mfu"] is not None else ""),
        (4, tr("goodput {share}", share=percent(run.analysis.goodput or 0.0)) if _has_goodput(run) else ""),
        (3, tr("short log") if run.short else ""),
        (0, short_ending(run)),
        (5, (tr("1 warning") if n == 1 else tr("{n} warnings", n=n)) if n else ""),
    )
    return _within(run.name, [(dropped, text) for dropped, text in values if text])


def _quiet_time(run: Run, rate: Mapping[str, Any]) -> str:
    if rate["step_time_ms"] is not None:
        return tr("{time}/step", time=step_time(rate["step_time_ms"]))
    phases = _phases(run)
    return tr("at least {time}/step", time=phases.value) if phases else ""


def _within(name: str, values: Sequence[tuple[int, str]]) -> str:
    """The line with the whole name: what matters least is left out first. A name longer than that keeps its end."""
    from rich.cells import cell_len

    for limit in range(6, -1, -1):
        text = tr(", ").join(text for dropped, text in values if dropped <= limit)
        if cell_len(line := _line(name, text)) <= LONGEST:
            return line
    while cell_len(_line(f"…{name}", text)) > LONGEST and name:
        name = name[1:]
    return _line(f"…{name}", text)


def _line(name: str, text: str) -> str:
    return tr("{name}: {text}", name=name, text=text) if text else name


# Rates.


def shown_rate(run: Run) -> Mapping[str, Any]:
    """The steady rate; where no settled step is known, the first rate that is."""
    rates = [run.analysis.rate(name) for name in FALLBACKS]
    return next((rate for rate in rates if rate["step_time_ms"] is not None), rates[0])


def rate_rows(run: Run) -> list[ScreenRow]:
    """The step time and the throughput, as far as they are known."""
    rate = shown_rate(run)
    others = rows_of_sizes(run) if rate["rate"] == "steady" else []
    return [row for row in (_time(run, rate), *others, throughput(run, rate)) if row is not None]


def _time(run: Run, rate: Mapping[str, Any]) -> ScreenRow | None:
    if rate["step_time_ms"] is None:
        return _phases(run)
    value, clauses, lost = step_time(rate["step_time_ms"]), [], count_lost_updates(run.steps)
    with_stalls = run.analysis.rate("with_stalls")["step_time_ms"]
    if rate["rate"] != "steady":
        clauses = [_of_other_rows(run, rate)]
    elif size := size_shown(run):
        # A mean over several sizes is near none of them.
        clauses = [tr("median"), *size]
    elif with_stalls is not None and step_time(with_stalls) != value:
        clauses = _mean(run, with_stalls > rate["step_time_ms"], step_time(with_stalls), lost)
    if rate["rate"] == "steady" and (apart := _far_apart(run)):
        clauses.append(tr("{low} to {high} in 80 % of the steps", low=step_time(apart[0]), high=step_time(apart[1])))
    if any(note.code == "time_by_rate_of_run" for note in run.notes):
        clauses = [tr("mean of the training, with evaluations and saves")]
    elif rate["rate"] == "steady" and (unit := _clock_unit(run)) > COARSE * rate["step_time_ms"]:
        clauses.append(tr("exact to {unit}", unit=step_time(unit)))
    if lost.lost:
        clauses.append(_lost_updates(lost, run.generates))
    return ScreenRow(tr("step time"), value, [*clauses, *unlike_ours_text(run, rate, PRINTED_PACES)])


def _clock_unit(run: Run) -> float:
    """To how many milliseconds the clock of the log rounds a step of most lines; 0 where it prints the times."""
    return float(run.steps.filter("counted")["time_resolution_ms"].median() or 0.0)  # type: ignore[arg-type]


def _recomputation(run: Run) -> list[str]:
    """That the log names recomputation whose share of a step is unknown, as where a size is."""
    how = run.context.get("recompute")
    is_costed = any(overhead.name == "recomputation" for overhead in inside_steps(run))
    if is_costed or how in (None, NOTHING, "none") or run.analysis.rate("steady")["hfu"] is not None:
        return []
    return [tr("recomputation {how}, of unknown share", how=how)]


def _far_apart(run: Run) -> tuple[float, float] | None:
    """The times between which 80 % of the steps lie, if these are far apart; else None."""
    low, high = (run.analysis.value(TIME, name) for name in ("p10", "p90"))
    n = run.analysis.value(TIME, "n") or 0
    return (low, high) if low and high and n >= FEW_STEPS and high > FAR_APART * low else None


def _of_other_rows(run: Run, rate: Mapping[str, Any]) -> str:
    """What the step time is of where no settled step is known."""
    if len(run.steps.filter(OF_THE_RUN)) == 1:
        return tr("of the only step line")
    return tr("all steps, with evaluations and saves") if _holds_pauses(run) else word("rates", rate["rate"])


def _mean(run: Run, longer: bool, time: str, lost: LostUpdates) -> list[str]:
    """What the ``time`` of a step with stalls is, and how many stalls the median leaves out where they are many."""
    if lost.lost and not run.generates:
        if skips_left_out(run.steps):
            of_all = step_time(run.analysis.rate("all_steps")["step_time_ms"])
            return [tr("median; all steps {time} per useful step", time=of_all)]
        return [tr("median; {time} per useful step", time=time)]
    if lost.lost:
        # Of several models one alone may have skipped its update: the mean is that of all steps.
        mean, median = (step_time(run.analysis.value(TIME, name) or 0.0) for name in ("mean", "median"))
        has_stalls = (run.steps["excluded_reason"] == STALL).any()
        text = msg("median; mean without stalls {time}") if has_stalls else msg("median; mean {time}")
        return [tr(text, time=mean)] if mean != median else []
    if longer and many_stalls(run):
        mean, stalls = step_time(run.analysis.value(TIME, "mean") or 0.0), stalled(run.steps)
        several, one = msg("median without {n} stalls ({lost} in all)"), msg("median without {n} stall ({lost})")
        lost_time = span(float(stalls["longer_ms"].sum()) / 1000)
        without = tr(several if len(stalls) > 1 else one, n=len(stalls), lost=lost_time)
        return [without, tr("mean without stalls {mean}, with stalls {time}", mean=mean, time=time)]
    has_stalls = (run.steps["excluded_reason"] == STALL).any()
    return [tr(msg("median; mean including stalls {time}") if has_stalls else msg("median; mean {time}"), time=time)]


def _lost_updates(lost: LostUpdates, of_several: bool) -> str:
    """How many updates were lost, and whether by NaN; or steps, each of which updates ``of_several`` models."""
    how_sure = msg("about {n} of {of}") if lost.about else msg("at least {n} of {of}")
    some = tr(how_sure if lost.about or lost.at_least else msg("{n} of {of}"), n=f"{lost.lost:,}", of=f"{lost.steps:,}")
    if not lost.nan:
        return tr(msg("{some} steps skipped an update") if of_several else msg("{some} updates skipped"), some=some)
    return tr(msg("{some} updates NaN") if lost.nan == lost.lost else msg("{some} updates skipped or NaN"), some=some)


def _holds_pauses(run: Run) -> bool:
    """Whether the times of all steps have evaluations or saves in them."""
    return bool(run.steps["excluded_reason"].is_in([HOLDS_EVALUATION, HOLDS_SAVE]).any())


def _phases(run: Run) -> ScreenRow | None:
    """The sum of the printed phases of a step, a lower bound; None where none are printed."""
    note = next((note for note in run.notes if note.code == "phases_without_total"), None)
    if note is None:
        return None
    largest = [say(part) for part in note.fields["phases"][:PHASES_SHOWN]]
    rare = [part for one in run.notes if one.code == "phases_of_some_steps" for part in one.fields["phases"]]
    others = [tr("of the run {phase}", phase=say(part)) for part in rare[:1]]
    clauses = [tr("at least: sum of the printed phases"), *largest, *others]
    return ScreenRow(tr("step time"), step_time(note.fields["ms"]), clauses)


def _tflops(run: Run, rate: Mapping[str, Any]) -> ScreenRow | None:
    logged, how = printed_text(run, TFLOPS) if TFLOPS in run.printed else None, run.analysis.computation
    if rate[TFLOPS] is None:
        return None if logged is None else ScreenRow(tr("TFLOP/s"), logged, _printed_flops(run))
    formula = tr(how.formula.phrase)
    clauses = [tr("per device by {formula}", formula=formula)]
    if how.quoted.layers:
        clauses = [tr("per device"), tr("{formula} with recomputation", formula=formula)]
    if rate["peak_utilization"] is not None and how.peak:
        share = percent_of_peak(rate["peak_utilization"])
        clauses.append(_of_peak(share, how.peak))
    clauses += _far_from_model(run, rate[TOKENS])
    if logged is not None:
        clauses.append(tr(printed_flops(run), value=logged))
    return ScreenRow(tr("TFLOP/s"), of_tokens(run, three(rate[TFLOPS])), clauses)


def _printed_flops(run: Run) -> list[str]:
    """What the printed TFLOP/s are of, and their share of a known peak."""
    peak, median = run.analysis.computation.peak, run.printed[TFLOPS].median
    clauses = [tr("per device, printed by the log")]
    if any(r.column == PREFIX + TFLOPS and r.scale == TEBI for r in run.log.format.labels.values()):
        clauses = [tr("per device, printed by the log as {value} TiFLOP/s", value=three(median / TEBI))]
    if peak is None:
        return clauses
    if peak.range:
        low, high = (percent_of_peak(median / end) for end in reversed(peak.range))
        return [*clauses, tr("{low} to {high} of the peak", low=low, high=high)]
    share = median / peak.peak_tflops_per_second
    # So few digits are printed of a smaller one that its share would be of more.
    return clauses if share < LEAST_OF_PEAK else [*clauses, _of_peak(percent_of_peak(share), peak)]


def _far_from_model(run: Run, tokens: float | None) -> list[str]:
    """The TFLOP/s by the FLOPs of MFU, where the formula is too far from them to compare the two."""
    change = next((note.fields["change"] for note in run.notes if note.code == "formula_counts_other_work"), 0.0)
    how = run.analysis.computation
    if abs(change) < FAR_FROM_MODEL or not tokens or not how.seq_length:
        return []
    flops = how.flops_per_sample(how.seq_length, NOTHING, real_model_formula()) or 0.0
    text = msg("{value} by the real model's FLOPs without recomputation")
    text = text if how.quoted.layers else msg("{value} by the real model's FLOPs")
    return [tr(text, value=three(tokens * flops / how.seq_length / 1e12))]


def _of_peak(share: str, peak: DevicePeak) -> str:
    """The share of the peak, with the data sheet's peak where this one is derived from cores and clock."""
    value, nominal = three(peak.peak_tflops_per_second), nominal_peak(peak)
    if nominal is None:
        return tr("{share} of the peak {peak}", share=share, peak=value)
    text = msg("{share} of peak {peak} (nominal {nominal})")
    return tr(text, share=share, peak=value, nominal=three(nominal))


def _mfu(run: Run, rate: Mapping[str, Any]) -> ScreenRow | None:
    mfu = rate["mfu"]
    if mfu is None:
        return _printed_mfu(run)
    # The range of MFU comes before HFU.
    clauses = []
    fields = {note.code: note.fields for note in run.notes}
    packed = fields.get("attention_within_documents")
    if packed and percent(packed["low"]) != percent_of_peak(mfu):
        clauses.append(tr("{low} at least: document lengths unknown", low=percent(packed["low"])))
    skus = fields.get("several_skus")
    if skus and skus["metric"] == "mfu":
        low, high = percent(skus["low"]), percent_of_peak(skus["high"])
        clauses.append(tr("{low} to {high}: device variant unknown", low=low, high=high))
    clauses += [*_hfu(run, rate), *_unlike_formula(rate), *_mfu_of_log(run)]
    return ScreenRow(tr("MFU"), of_tokens(run, percent_of_peak(mfu)), clauses)


def _printed_mfu(run: Run) -> ScreenRow | None:
    """The MFU that the log prints, by the peak of the run's device; None where it prints none, or only by another."""
    printed, of_device = run.printed.get("mfu"), run.device_mfu
    if printed is None:
        return None
    if of_device is None:
        of_update = [tr("of the policy update alone")] if run.generates else []
        return ScreenRow(tr("MFU"), percent(printed.median), [tr("printed by the log"), *of_update])
    by_other = tr("by a peak of {peak}", peak=three(of_device.printed_peak))
    if of_device.value is None or of_device.peak is None:
        return ScreenRow(tr("MFU"), percent(printed.median), [tr("printed by the log"), by_other])
    share = tr("the printed TFLOP/s over the peak {peak}", peak=three(of_device.peak))
    of_log = tr("the log prints {value}", value=percent(printed.median))
    return ScreenRow(tr("MFU"), percent_of_peak(of_device.value), [share, f"{of_log} {by_other}"])


def _mfu_of_log(run: Run) -> list[str]:
    """The MFU that the log prints; a warning names one that is by another peak."""
    printed = None if run.device_mfu else run.printed.get("mfu")
    return [tr("the log prints {value}", value=percent(printed.median))] if printed else []


def _unlike_formula(rate: Mapping[str, Any]) -> list[str]:
    """Why MFU is another share of the peak than TFLOP/s, where it is."""
    of_formula = rate["peak_utilization"]
    if of_formula is None or percent_of_peak(of_formula) == percent_of_peak(rate["mfu"]):
        return []
    return [tr("counts the real model, not the formula")]


def _hfu(run: Run, rate: Mapping[str, Any]) -> list[str]:
    """HFU, or both ends where the recomputation is not fully known."""
    if rate["hfu"] is not None:
        return [tr("HFU {share}", share=percent_of_peak(rate["hfu"]))]
    times = run.analysis.computation.executed_times()
    if times is None:
        return []
    low, high = (percent_of_peak(rate["mfu"] * end) for end in times)
    return [tr("HFU {low} to {high}", low=low, high=high)]


def _losses(run: Run) -> Iterator[ScreenRow]:
    """The last loss, the first and the lowest; a step of several models, or several runs, have several losses."""
    losses = run.loss
    if losses is None or run.generates or run.trainings > 1 or run.analysis.streams:
        return
    clauses = [tr("first {loss}", loss=three(losses.first))] if losses.steps > 1 else []
    if losses.lowest not in (losses.first, losses.last):
        step = None if losses.lowest_step is None else f"{losses.lowest_step:,}"
        lowest = msg("lowest {loss}") if step is None else msg("lowest {loss} at step {step}")
        clauses.append(tr(lowest, loss=three(losses.lowest), step=step))
    lines = msg("of {n} lines") if losses.steps > 1 else msg("of {n} line")
    clauses.append(tr(lines, n=f"{losses.steps:,}"))
    yield ScreenRow(tr("loss"), three(losses.last), clauses)


# What was lost.


def _has_goodput(run: Run) -> bool:
    """Not of a short run, nor of reinforcement learning, whose steps include generation."""
    return run.analysis.goodput is not None and not run.short and not run.generates


def _lost(run: Run) -> Iterator[ScreenRow]:
    if _has_goodput(run):
        overheads = named_overheads(outside_steps(run))
        if overheads:
            overheads[0] = tr("lost: {overheads}", overheads=overheads[0])
        earlier = [tr("start-up includes an earlier job")] if _follows_a_job(run) else []
        unsaved = [tr("no save in the log: its steps may be lost")] if _is_unsaved(run) else []
        clauses = [*_starts(run), *overheads, *earlier, *unsaved]
        yield ScreenRow(tr("goodput"), percent(run.analysis.goodput or 0.0), clauses)
        if text := advice(run):
            yield ScreenRow(tr("  advice"), "", [text])
    if parts := next((note.fields["parts"] for note in run.notes if note.code == "parts_of_step"), None):
        yield ScreenRow(tr("inside a step"), "", [say(part) for part in parts if part.fields["share"] >= LEAST_PART])
    elif inside := named_overheads(inside_steps(run)):
        inside[0] = tr("estimated: {overheads}", overheads=inside[0])
        yield ScreenRow(tr("inside a step"), "", [*inside, *_recomputation(run)])


def _is_unsaved(run: Run) -> bool:
    """Whether a run failed without a checkpoint, by a format that prints them."""
    saved = run.analysis.pauses.saved or run.records["events"]["kind"].str.starts_with("save ").any()
    return bool(failure(run)) and run.log.format.prints_saves and not saved


def _follows_a_job(run: Run) -> bool:
    """Whether another job ended in the same file before the run began."""
    return any(note.code == "other_job_before" for note in run.notes)


def _starts(run: Run) -> list[str]:
    starts, lost = len(run.segments), int(run.segments["lost_steps"].sum())
    return [tr("{n} starts, {lost} steps repeated", n=starts, lost=f"{lost:,}")] if starts > 1 else []


# What is left, and others.


def remaining(run: Run) -> ScreenRow | None:
    """The steps that are left and how long they take; None where that is unknown or the run is short."""
    left = run.expectations.plan.left
    if run.short or left is None or left.seconds_low is None:
        return None
    if _is_unsaved(run):
        # There is nothing to resume from.
        return None
    over = failure(run) or (run.log.ending is not None and run.log.ending.state == "completed")
    resumed = msg("{n} steps if resumed") if over else msg("{n} steps")
    took = time_left(left.seconds, left.seconds_low, left.seconds_high)
    unseen = [tr("batch {batches} not seen yet", batches=range_of(b.batches))] if (b := left.unseen_batches) else []
    return ScreenRow(tr("remaining"), "", [tr(resumed, n=f"{left.steps:,}"), took, *unseen])


def time_left(seconds: float | None, low: float, high: float | None) -> str:
    """A time with its range; of a wide range only its ends, of a wider one nothing; without an upper end, the lower."""
    if seconds is None or high is None:
        return at_least(low)
    ends = about_range(low, high)
    if high > NO_ESTIMATE * low:
        return tr("time unknown")
    if high > WIDE_RANGE * low:
        return ends
    return (
        tr("about {time} ({ends})", time=about(seconds), ends=ends) if ends else tr("about {time}", time=about(seconds))
    )


def compared(run: Run) -> ScreenRow | None:
    """The nearest published rate, and the best one where that is another; None where no row matches."""
    matches = run.expectations.published.matches
    if not matches:
        return None
    nearest, best = matches[0], min(matches, key=lambda match: match.share)
    has_device = run.title.device is not None
    if not has_device and not 1 / SAME_DEVICE <= nearest.share <= SAME_DEVICE:
        return None
    # The best rate is of the best device: of an unknown one it says nothing.
    of_best = [_of_best(best)] if best is not nearest and has_device else []
    same = [tr("probably this run")] if is_equal(nearest) else []
    device = nearest.row.device
    of_device = [tr("measured on {device}", device=device.upper())] if device and not has_device else []
    return ScreenRow(tr("compared"), "", [_share_of(nearest), *of_device, *same, *of_best])


def _of_best(best: Against) -> str:
    rate = three(best.row.tokens_per_second_per_device or 0.0)
    return tr("{share} of the best ({best})", share=percent(best.share, 0), best=rate)


def is_equal(match: Against) -> bool:
    """Whether the run has the published rate, to its rounding."""
    return not match.row.recorded and abs(match.share - 1) < SAME_RUN


def _share_of(match: Against) -> str:
    rate = three(match.row.tokens_per_second_per_device or 0.0)
    published = msg("{share} of {publisher}'s published {rate} tokens/s/p")
    recorded = msg("{share} of the {rate} tokens/s/p recorded for {publisher}")
    publisher = match.row.publisher or match.row.name
    if is_equal(match):
        return tr("equal to {publisher}'s published {rate} tokens/s/p", publisher=publisher, rate=rate)
    share = percent(match.share, 0)
    return tr(recorded if match.row.recorded else published, share=share, publisher=publisher, rate=rate)
