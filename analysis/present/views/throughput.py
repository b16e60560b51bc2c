"""The throughput of a run: per device, of all devices together, or as the log prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from analysis.present.numbers import three
from analysis.present.parts import ScreenRow
from analysis.present.views.printed_rates import PRINTED_RATES, TOKENS, printed_text
from analysis.present.views.title import of_tokens
from analysis.present.views.warnings import SHOWN, own_notes
from analysis.present.words.forms import big
from analysis.run.checks.self_checks import RATES, is_withheld
from analysis.run.rates.printed_rates import PREFIX, WHOLE, LoggedRate, spread_of
from analysis.run.rows.exclusion_reasons import STALL
from analysis.run.run import Run
from logparse.language import msg, tr

# A printed rate that differs by less than this is the computed one.
SAME_PRINTED = 0.01
# So near is the rate of a run without pauses.
SAME_RUN = 0.05
OF_ALL = "samples_per_second"
OF_LOG = msg("the log prints {value}")
# What the log prints besides tokens/s of a device, which has a clause of its own.
OTHER_RATES = ("samples_per_second_per_device", "samples_per_second", "tokens_per_second")
# Stalls are many above this share of the rows.
MANY_STALLS = 0.05


def throughput(run: Run, rate: Mapping[str, Any]) -> ScreenRow | None:
    """The row of the ``rate``; None where neither it nor the log has one."""
    samples = rate["samples_per_second_per_device"]
    if samples is None:
        return throughput_of_all(run, rate) or _printed_throughput(run)
    per_device = tr("{n} samples/s/p (per device)", n=three(samples))
    if run.batch_beyond_epoch:
        per_device = tr("at most {value}", value=per_device)
    printed = run.printed.get(TOKENS)
    stalled = _with_stalls(run, rate)
    if rate[TOKENS] is None:
        of_log = [tr(PRINTED_RATES[TOKENS], n=printed_text(run, TOKENS)), _of_log(printed)] if printed else []
        return ScreenRow(tr("throughput"), "", [*of_log, per_device, *stalled, *_unlike_ours(run, rate)])
    of_log = [tr("the log prints {value}", value=printed_text(run, TOKENS))] if printed else []
    if printed and _is_time_of(run, PREFIX + TOKENS):
        # The computed rate is the printed one again: no comparison.
        of_log = [tr("tokens/s/p printed by the log")]
    whole = [] if of_log else _whole_run_of_log(run, rate[TOKENS])
    of_log = [*of_log, *whole, *_unlike_ours(run, rate, shown=bool(whole))]
    tokens = of_tokens(run, tr("{n} tokens/s/p", n=three(rate[TOKENS])))
    return ScreenRow(tr("throughput"), "", [tokens, *stalled, per_device, *of_log])


def _whole_run_of_log(run: Run, ours: float) -> list[str]:
    """The tokens/s that the log prints of the whole run, per device, where pauses make them unlike ``ours``."""
    printed, devices = run.printed.get("tokens_per_second"), run.context.get("world_size")
    if printed is None or printed.covers != WHOLE or not devices or not ours:
        return []
    of_one = printed.median / devices
    same, value = abs(of_one / ours - 1) <= SAME_RUN, tr(PRINTED_RATES[TOKENS], n=three(of_one))
    return [] if same else [tr("the log prints {value} for the whole run, pauses included", value=value)]


def _unlike_ours(run: Run, rate: Mapping[str, Any], shown: bool = False) -> list[str]:
    """The rates of samples and of all devices that the log prints, where they are not ours.

    Of the whole run one, and none where one is ``shown``; with tokens none that a warning on the screen is of.
    """
    clauses, devices = [], run.context.get("world_size")
    warned = [note.fields.get("figure") for note in own_notes(run)[:SHOWN]] if rate[TOKENS] is not None else []
    for name in OTHER_RATES:
        printed, ours = run.printed.get(name), rate[TOKENS if "tokens" in name else "samples_per_second_per_device"]
        ours = ours if ours is None or name.endswith("per_device") else ours * (devices or 0)
        if printed is None or not ours or (shown and printed.covers == WHOLE) or PREFIX + name in warned:
            continue
        few = rate[TOKENS] is None and printed.covers != WHOLE
        if abs(printed.median / ours - 1) > (SAME_PRINTED if few else SAME_RUN):
            shown = shown or printed.covers == WHOLE
            clauses.append(_printed_clause(run, name, printed))
    return clauses


def _printed_clause(run: Run, name: str, printed: LoggedRate) -> str:
    value = tr(PRINTED_RATES[name], n=printed_text(run, name))
    return tr(msg("the log prints {value} over the whole run") if printed.covers == WHOLE else OF_LOG, value=value)


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
    sizes = run.analysis.sizes.head(1) if rate["rate"] == "steady" else run.analysis.sizes.clear()
    batch = (sizes if len(sizes) else run.steps.filter(~pl.col("copied")))["global_batch_size"].unique().to_list()
    known = len(batch) == 1 and batch[0] and rate["step_time_ms"]
    if not known or run.generates or TOKENS in run.printed or is_withheld(run.checks, RATES):
        return None
    samples = batch[0] * 1000 / rate["step_time_ms"]
    clauses = [tr(PRINTED_RATES[OF_ALL], n=three(samples))]
    if length := run.analysis.computation.seq_length:
        tokens = tr(PRINTED_RATES["tokens_per_second"], n=big(round(samples * length)))
        clauses = [of_tokens(run, tokens), tr("{n} samples/s", n=three(samples))]
    if (printed := run.printed.get(OF_ALL)) and abs(printed.median / samples - 1) > SAME_PRINTED:
        whole = msg("the log prints {value} for the whole run, start and end included")
        text = whole if printed.covers == WHOLE else msg("the log prints {value} (median)")
        clauses.append(tr(text, value=printed_text(run, OF_ALL)))
    return ScreenRow(tr("throughput"), "", clauses)


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
    batch, time = run.context.get("global_batch_size"), run.analysis.rate("steady")["step_time_ms"]
    if name != OF_ALL or not batch or not time or not is_withheld(run.checks, RATES):
        return []
    return [tr("but {n} by batch and step time", n=three(batch * 1000 / time))]


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
