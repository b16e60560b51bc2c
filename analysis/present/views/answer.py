"""The answer to one run, as every screen begins: who ran, what it reached, what cost most, whether to trust it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from analysis.metrics import BY_COLUMN, Metric
from analysis.present.metric_names import counting, rated_of
from analysis.present.parts import Cell, Heading, Part, Sentence, Sentences, Sparkline, Table
from analysis.present.places import places_of
from analysis.present.views.reached import GOODPUT, TIME, rate_in, reached_table
from analysis.present.views.who import who
from analysis.present.words import say, word
from analysis.present.words.forms import range_of, span
from analysis.published.match import Against
from analysis.run.exclusion_reasons import COPY
from analysis.run.overheads import PUBLISHED, Overhead
from analysis.run.run import Run
from logparse.language import msg, tr

# What says why a number cannot be; first of all that it is measured against another vendor's peak; then that it failed.
CANNOT_BE, FAILED = {"above_peak"}, {"ended_early_with_errors", "ended_with_errors"}
FIRST = ("device_contradicts_log", "trainings_in_one_file", *CANNOT_BE, *sorted(FAILED))
# On the first screen: the number of overheads, the largest first, of warnings, and of lines of a warning.
OVERHEADS_SHOWN, WARNINGS_SHOWN, WARNING_LINES = 5, 2, 2


def list_answer(run: Run, whole: bool = False, price: float | None = None) -> list[Part]:
    """The first screen: at most 30 lines of 100 columns, or ``whole`` with every warning.

    ``price`` of a device-hour gives the losses a cost.
    """
    return [
        Heading(who(run), "title"),
        reached_table(run),
        summed_up(run),
        Sentences(list_warnings(run) if whole else list(_first_warnings(run))),
        *losses_tables(run, price),
        assessment_table(run, tr("-v shows every input with its origin")),
        *trace(run),
    ]


def quiet_line(run: Run) -> str:
    """The answer in one line, for scripts that read by eye; ``--json`` is for programs."""
    rates = {row["rate"]: row for row in run.rates.iter_rows(named=True)}
    known = [metric for metric in rated_of(run.analysis) if rate_in(metric, rates["steady"]) is not None]
    shown = (TIME, *known)
    values = [_delivered_and_steady(metric, run, rates) for metric in shown]
    if run.analysis.goodput is not None:
        values.append(f"{counting(GOODPUT, run.analysis)} {GOODPUT.text(run.analysis.goodput)}")
    if run.overheads:
        values.append(say(run.overhead_summary))
    values += [f"! {warning.text}" for warning in _first_warnings(run)]
    return tr("{name}: {values}", name=run.name, values=tr("; ").join([who(run), *values]))


def _delivered_and_steady(metric: Metric, run: Run, rates: Mapping[str, Mapping[str, Any]]) -> str:
    delivered, steady = (metric.text(rate_in(metric, rates[name])) for name in ("delivered", "steady"))
    return tr(
        "{metric} {delivered} (steady {steady})",
        metric=counting(metric, run.analysis),
        delivered=delivered,
        steady=steady,
    )


# Summary, warnings and losses.


def summed_up(run: Run) -> Sentence:
    """One plain sentence."""
    return Sentence(say(run.overhead_summary))


def list_warnings(run: Run) -> list[Sentence]:
    """Every warning: first that of a number that cannot be, then that of a run that failed."""
    warnings = [note for note in run.notes if note.level == "warning"]
    ordered = sorted(warnings, key=lambda note: FIRST.index(note.code) if note.code in FIRST else len(FIRST))
    sentences = [Sentence(say(note), "warning", places=places_of(note, run.log.sources)) for note in ordered]
    if run.analysis.impossible and not any(note.code in CANNOT_BE for note in warnings):
        names = tr(", ").join(tr(BY_COLUMN[name].label) for name in run.analysis.impossible)
        sentences.insert(0, Sentence(tr("{metrics}: more than can be", metrics=names), "warning"))
    return sentences


def _first_warnings(run: Run) -> Iterator[Sentence]:
    warnings = list_warnings(run)
    yield from (replace(warning, cut=WARNING_LINES) for warning in warnings[:WARNINGS_SHOWN])
    if len(warnings) > WARNINGS_SHOWN:
        yield Sentence(tr("more warnings: {n}; see -v", n=len(warnings) - WARNINGS_SHOWN), "warning")


def losses_tables(run: Run, price: float | None = None) -> Iterator[Table]:
    """The largest overheads, with what the run would be without each; nothing where none is known."""
    if not run.overheads:
        return
    shown = run.overheads if len(run.overheads) <= OVERHEADS_SHOWN else run.overheads[: OVERHEADS_SHOWN - 1]
    rows = [_overhead_row(overhead, price, run.overheads[0].share) for overhead in shown]
    if others := run.overheads[len(shown) :]:
        below = tr("each below {share}", share=f"{shown[-1].share:.1%}")
        rows.append((tr("{n} others", n=len(others)), *[""] * (len(rows[0]) - 2), below))
    costs = () if price is None else (tr("cost"),)
    headings = (tr("lost to"), tr("share"), tr("time"), tr("device-h"), *costs, tr("without it"))
    yield Table(headings, rows, prose={len(headings) - 1}, headed=True)


def _overhead_row(overhead: Overhead, price: float | None, most: float) -> tuple[Cell | str, ...]:
    hours = overhead.device_hours
    costs = () if price is None else (_amount(hours and hours * price),)
    share = Cell(f"{overhead.share:.1%}", bar=overhead.share / most)
    name = word("losses", overhead.cause)
    inside = overhead.in_steps and overhead.cause != PUBLISHED
    return (
        tr("{cause} (inside steps)", cause=name) if inside else name,
        share,
        span(overhead.seconds),
        _amount(hours),
        *costs,
        without(overhead),
    )


def _amount(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"


def without(overhead: Overhead) -> str:
    """What the run would have been without an overhead, and how to come nearer to that."""
    would = (
        [tr("{share} useful", share=f"{overhead.useful_without:.1%}")] if overhead.useful_without is not None else []
    )
    would += (
        [tr("{rate} tokens/s/p", rate=f"{overhead.rate_without:,.0f}")] if overhead.rate_without is not None else []
    )
    return tr("; ").join([*would, *([say(overhead.advice)] if overhead.advice else [])])


# Comparisons, and how far to trust the numbers.


def assessment_table(run: Run, hint: str = "") -> Table:
    """The plan, the best published rate, and how far to trust the numbers; ``hint`` says where there is more."""
    rows = [(tr("plan"), _plan(run)), (tr("against"), _against(run)), (tr("trust"), _trust(run, hint))]
    return Table(("", ""), [row for row in rows if row[1]], prose={1})


def _plan(run: Run) -> str:
    left = run.expectations.plan.left
    if left is None or left.seconds is None or left.seconds_low is None or left.seconds_high is None:
        return ""
    failed = any(note.code in FAILED for note in run.notes)
    steps = tr(msg("{n} steps left if resumed") if failed else msg("{n} steps left"), n=f"{left.steps:,}")
    ends = tr("until {time}", time=f"{left.ends_at:%Y-%m-%d %H:%M}") if left.ends_at else ""
    took = tr(
        "{time} ({low} to {high})", time=span(left.seconds), low=span(left.seconds_low), high=span(left.seconds_high)
    )
    unseen = _unseen(left.unseen_batches.batches) if left.unseen_batches else ""
    return tr(", ").join(part for part in (steps, took, ends, unseen) if part)


def _unseen(batches: tuple[int, int]) -> str:
    return tr("batch {batches} has not run", batches=range_of(batches))


def _against(run: Run) -> str:
    matches = run.expectations.published.matches
    if not matches:
        return ""
    nearest, best = matches[0], min(matches, key=lambda match: match.share)
    of_best = [] if best is nearest else [tr("{share} of the best", share=f"{best.share:.0%}")]
    return tr("; ").join([_share_of(nearest), *of_best])


def _share_of(match: Against) -> str:
    published = msg("{share} of {publisher}'s published {rate} tokens/s/p ({row})")
    return tr(
        msg("{share} of the {rate} tokens/s/p recorded for {publisher} ({row})") if match.row.recorded else published,
        share=f"{match.share:.0%}",
        publisher=match.row.publisher or match.row.name,
        rate=f"{match.row.tokens_per_second_per_device:,.0f}",
        row=match.row.name,
    )


def _trust(run: Run, hint: str) -> str:
    coverage, steps = run.log.coverage, run.steps
    reasons = Counter(steps["excluded_reason"].drop_nulls())
    copies = reasons.pop(COPY, 0)
    counted, lines = int(steps["counted"].sum()), coverage.step_lines - copies
    parts = [tr("{n} of {lines} step lines count", n=f"{counted:,}", lines=f"{lines:,}")]
    if reasons:
        parts.append(tr(", ").join(f"{n:,} {word('reasons', reason)}" for reason, n in reasons.most_common()))
    if copies:
        parts.append(tr("{n} more are copies by other ranks", n=f"{copies:,}"))
    parts.append(tr("{n} labels unread", n=len(coverage.unread_labels)))
    return tr("; ").join([*parts, *([hint] if hint else [])])


def trace(run: Run) -> Iterator[Sparkline]:
    """The time of each step, where there is more than one."""
    time, shown = pl.col("step_time_ms"), pl.col("excluded_reason").ne_missing(COPY)
    times = run.steps.select(time.filter(shown & time.is_finite())).to_series()
    if len(times) > 1:
        yield Sparkline(tr("time of each step"), tuple(times.to_list()), "ms")
