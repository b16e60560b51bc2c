"""The throughput of a run: per device, of all devices together, or as the log prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.present.numbers import three
from analysis.present.parts import ScreenRow
from analysis.present.views.printed_rates import PRINTED_RATES, TOKENS, printed_text, unlike_ours_text
from analysis.present.views.title import of_tokens
from analysis.present.words.forms import big
from analysis.run.checks.self_checks import RATES, is_withheld
from analysis.run.rates.printed_rates import (
    PREFIX,
    SAMPLES,
    TOKENS_OF_ALL,
    WHOLE,
    LoggedRate,
    rates_of_all,
    spread_of,
)
from analysis.run.rows.exclusion_reasons import STALL
from analysis.run.run import Run
from logparse.language import tr

# Stalls are many above this share of the rows.
MANY_STALLS = 0.05


def throughput(run: Run, rate: Mapping[str, Any]) -> ScreenRow | None:
    """The row of the ``rate``; None where neither it nor the log has one."""
    samples, printed = rate["samples_per_second_per_device"], run.printed.get(TOKENS)
    if samples is None:
        return throughput_of_all(run, rate) or _printed_throughput(run)
    per_device = tr("{n} samples/s/p (per device)", n=three(samples))
    if run.batch_beyond_epoch:
        per_device = tr("at most {value}", value=per_device)
    stalled, unlike = _with_stalls(run, rate), unlike_ours_text(run, rate, PRINTED_RATES)
    if rate[TOKENS] is None:
        of_log = [tr(PRINTED_RATES[TOKENS], n=printed_text(run, TOKENS)), _of_log(printed)] if printed else []
        return ScreenRow(tr("throughput"), "", [*of_log, per_device, *stalled, *unlike])
    of_log = [tr("the log prints {value}", value=printed_text(run, TOKENS))] if printed else []
    if printed and _is_time_of(run, PREFIX + TOKENS):
        # The computed rate is the printed one again: no comparison.
        of_log = [tr("tokens/s/p printed by the log")]
    tokens = of_tokens(run, tr("{n} tokens/s/p", n=three(rate[TOKENS])))
    return ScreenRow(tr("throughput"), "", [tokens, *stalled, per_device, *of_log, *unlike])


def _is_time_of(run: Run, column: str) -> bool:
    """Whether the times of the steps follow from the rate of ``column``."""
    return any(note.code.startswith("time_by_") and note.fields.get("rate") == column for note in run.notes)


def _with_stalls(run: Run, rate: Mapping[str, Any]) -> list[str]:
    """The rate that many stalls leave; empty where the shown one has them, or they are few."""
    figure = "samples_per_second_per_device" if rate[TOKENS] is None else TOKENS
    stalled = run.analysis.rate("with_stalls")[figure]
    if rate["rate"] != "steady" or stalled is None or stalled >= rate[figure] or not many_stalls(run):
        return []
    return [of_tokens(run, tr("{n} with stalls", n=three(stalled)))]


def throughput_of_all(run: Run, rate: Mapping[str, Any]) -> ScreenRow | None:
    """The rates of all devices, of unknown number; None where the batch is unknown or not always the same."""
    ours = rates_of_all(run.analysis, rate)
    if not ours or run.generates or TOKENS in run.printed or is_withheld(run.checks, RATES):
        return None
    clauses = [tr(PRINTED_RATES[SAMPLES], n=three(ours[SAMPLES]))]
    if tokens := ours.get(TOKENS_OF_ALL):
        shown = tr(PRINTED_RATES[TOKENS_OF_ALL], n=big(round(tokens)))
        clauses = [of_tokens(run, shown), tr("{n} samples/s", n=three(ours[SAMPLES]))]
    return ScreenRow(tr("throughput"), "", [*clauses, *unlike_ours_text(run, rate, PRINTED_RATES)])


def _printed_throughput(run: Run) -> ScreenRow | None:
    """The first rate that the log prints; None where it prints none."""
    for name, text in PRINTED_RATES.items():
        if rate := run.printed.get(name):
            spread = None if rate.covers == WHOLE else spread_of(name, run.steps)
            clauses = [tr(text, n=printed_text(run, name)), _of_log(rate, spread), *_refuted(run, name)]
            return ScreenRow(tr("throughput"), "", clauses)
    return None


def _refuted(run: Run, name: str) -> list[str]:
    """The withheld rate of samples, which the printed one contradicts; empty where nothing is withheld."""
    ours = rates_of_all(run.analysis, run.analysis.rate("steady")).get(SAMPLES)
    if name != SAMPLES or ours is None or not is_withheld(run.checks, RATES):
        return []
    return [tr("but {n} by batch and step time", n=three(ours))]


def _of_log(rate: LoggedRate, spread: tuple[float, float] | None = None) -> str:
    """That the log prints a figure, and what it is of; of several values the median is shown, and a wide ``spread``."""
    if rate.covers == WHOLE:
        return tr("printed by the log for the whole run, pauses included")
    if spread:
        low, high = map(three, spread)
        return tr("printed by the log (median; {low} to {high} in 80 % of the lines)", low=low, high=high)
    return tr("printed by the log (median)") if rate.n > 1 else tr("printed by the log")


def many_stalls(run: Run) -> bool:
    """Whether so many rows are stalls that the steady rate is not that of the run."""
    reasons = run.steps["excluded_reason"]
    return int((reasons == STALL).sum()) > MANY_STALLS * len(reasons)
