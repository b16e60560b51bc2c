"""What a run must hold to be believed: each self-check, the findings that break it, and what it then withholds.

Comes in: an analysis and the notes on it. Goes out: the checks with their results, and the analysis without the figures
that a failed one contradicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from analysis.metrics import COMPUTED
from analysis.run.result import Analysis
from logparse.findings import Note
from logparse.light_dataclass import dataclass, replace

# What a check can withhold: figures of lost time, what a run has still to do, rates of work, and figures by the clock
# alone, which are never computed where the clock is unknown.
GOODPUT, PLAN, RATES, BY_CLOCK = "goodput", "plan", "rates", "by_clock"


@dataclass(frozen=True)
class SelfCheck:
    """A check ``code``; it fails where one of the ``findings`` was made, and ``forbids`` figures then."""

    code: str
    findings: tuple[str, ...]
    forbids: frozenset[str] = frozenset({GOODPUT, PLAN})


SELF_CHECKS = (
    # One run writes to a file at a time.
    SelfCheck("one_run_writes_a_file", ("runs_mixed",)),
    # Step times add up to no more than the clock allows, and to no small part of every gap.
    SelfCheck("steps_fit_the_clock", ("clock_shorter_than_steps", "clock_longer_than_steps")),
    # The clock runs forward, or by how much it was set is known.
    SelfCheck("clock_runs_forward", ("clock_unknown",), frozenset({BY_CLOCK})),
    # The file was read to its end: what is after the damage is unknown.
    SelfCheck("file_is_whole", ("file_damaged", "damage_not_located"), frozenset({PLAN})),
    # No rate is above what the device can do.
    SelfCheck("rates_are_possible", ("above_peak", "above_assumed_peak", "printed_above_peak"), frozenset({PLAN})),
    # The log's own samples/s and tokens/s are those of its times and sizes, or the cause of the difference is known.
    SelfCheck("printed_rates_agree", ("printed_rate_unexplained",), frozenset({GOODPUT, PLAN, RATES})),
)


@dataclass(frozen=True)
class CheckResult:
    """The result of a self-check; ``fields`` are those of the finding that broke it."""

    code: str
    passed: bool
    fields: Mapping[str, Any]
    forbids: frozenset[str] = frozenset()


def check_run(notes: Iterable[Note]) -> tuple[CheckResult, ...]:
    """The result of every self-check of a run with these ``notes``."""
    found: dict[str, Note] = {}
    for note in notes:
        found.setdefault(note.code, note)
    results = []
    for check in SELF_CHECKS:
        broken = next((found[code] for code in check.findings if code in found), None)
        fields = {} if broken is None else dict(broken.fields)
        results.append(CheckResult(check.code, broken is None, fields, check.forbids))
    return tuple(results)


def broken_by(checks: Sequence[CheckResult]) -> frozenset[str]:
    """The codes of the findings that can have broken the failed ones of ``checks``."""
    failed = {check.code for check in checks if not check.passed}
    return frozenset(code for check in SELF_CHECKS if check.code in failed for code in check.findings)


def is_withheld(checks: Sequence[CheckResult], what: str) -> bool:
    """Whether a failed check forbids ``what``."""
    return any(not check.passed and what in check.forbids for check in checks)


def without_rates(analysis: Analysis) -> Analysis:
    """``analysis`` without the rates of work, which have a batch, a length or a time that the log contradicts."""
    computed = [metric.column for metric in COMPUTED]

    def emptied(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.lit(None, frame[name].dtype).alias(name) for name in computed if name in frame)

    of_metric = pl.col("metric").is_in(computed)
    statistics = [pl.when(~of_metric).then(name).alias(name) for name in ("median", "mean", "p10", "p90")]
    summary = analysis.summary.with_columns(*statistics, n=pl.when(of_metric).then(0).otherwise("n"))
    return replace(analysis, steps=emptied(analysis.steps), rates=emptied(analysis.rates), summary=summary)


def without_goodput(analysis: Analysis) -> Analysis:
    """``analysis`` without goodput, the time breakdown and the rate by the clock."""
    by_clock = pl.col("rate") == "wall_clock"
    figures = [name for name in analysis.rates.columns if name not in ("run", "rate")]
    rates = analysis.rates.with_columns(pl.when(~by_clock).then(pl.col(name)).alias(name) for name in figures)
    reliability = analysis.reliability
    return replace(
        analysis,
        goodput=None,
        time_breakdown=analysis.time_breakdown.clear(),
        rates=rates,
        time_to_train_seconds=None,
        reliability=replace(
            reliability,
            ettr=None,
            worst_hour=None,
            seconds_between=None,
            longest_dead=None,
            badput=reliability.badput.clear(),
            curve=reliability.curve.clear(),
        ),
    )
