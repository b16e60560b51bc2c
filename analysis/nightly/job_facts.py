"""Facts of a night: what a history holds of a job next to its rows, the runs that failed, changes that are accepted.

Comes in: runs of a job and its HistoryOfJobs. Goes out: facts; nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import takewhile

import polars as pl

from analysis.compare.comparability import Field
from analysis.compare.comparison import measured
from analysis.compare.final_loss import LAST, final_losses
from analysis.compare.independent_records import LeftOut, Observations
from analysis.compare.loss_targets import judge_losses
from analysis.compare.same_loss import MOST_REPEATS, compare_losses
from analysis.compare.verdict import find_metric
from analysis.compare.work_difference import Less, compared_work
from analysis.history.events import Acceptance
from analysis.metrics import Metric
from analysis.nightly.job_runs import FAILED
from analysis.nightly.policy import JobRule
from analysis.run.checks.target_verdicts import Judgement
from analysis.stats.prediction import KEPT
from logparse.errors import InputError
from logparse.light_dataclass import dataclass, field

# Runs whose losses are read: those that give the expectation, and as many that may be off.
LOSSES_READ = 2 * KEPT


@dataclass(frozen=True)
class AcceptedChange:
    """A change that is accepted today: that of ``metric`` from the runs before the accepted one to those since.

    At the first run of a series these are ``fields``, in which it differs from the one before: work changed, not speed.
    """

    metric: Metric
    change: float | None
    acceptance: Acceptance
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True)
class HistoryOfJobs:
    """The data of a history other than the rows: whole rows by ids, the steps of a run, its acceptances.

    ``excluded`` are rows of runs that do not count, because somebody excluded them.
    """

    settings: Callable[[Sequence[str]], pl.DataFrame]
    steps: Callable[[str], pl.DataFrame]
    acceptances: Mapping[str, Sequence[Acceptance]] = field(default_factory=dict)
    excluded: pl.DataFrame | None = None


def failed_since(records: pl.DataFrame, sample: Observations, when: datetime) -> tuple[LeftOut, ...]:
    """Runs after the newest that counts that failed, or of which too few rows count."""
    later = set(records.filter(pl.col("when") >= when)["run_id"])
    return tuple(run for run in sample.left_out if run.run_id in later and run.reason != "same_job")


def failed_nights(records: pl.DataFrame, sample: Observations) -> tuple[int, datetime | None]:
    """How many of the newest runs failed in a row, and when the first of them began."""
    reasons = {run.run_id: run.reason for run in sample.left_out if run.reason != "same_job"}
    known = reasons.keys() | set(sample.runs["run_id"])
    rows = [row for row in records.select("run_id", "when").iter_rows() if row[0] in known]
    failed = list(takewhile(lambda row: reasons.get(row[0]) in FAILED, reversed(rows)))
    return len(failed), failed[-1][1] if failed else None


def does_count(run_id: str, sample: Observations) -> bool:
    """Whether a run of the sample counts."""
    return run_id in sample.runs["run_id"]


def accepted_changes(
    runs: pl.DataFrame, rule: JobRule, acceptances: Mapping[str, Sequence[Acceptance]], changed: tuple[Field, ...]
) -> Iterator[AcceptedChange]:
    """The changes of ``runs`` that are accepted on the day of the newest, one for each acceptance.

    ``changed`` are the fields in which they differ from the series before, while they are few.
    """
    for at, run_id in enumerate(runs["run_id"]):
        for one in acceptances.get(run_id, ()):
            name = one.metric or next(iter(rule.metrics))
            if is_known({run_id: [one]}, runs, name, run_id):
                yield AcceptedChange(find_metric(name), _change_at(runs, at, find_metric(name)), one, changed)


def by_effect(
    runs: pl.DataFrame, rule: JobRule, acceptances: Mapping[str, Sequence[Acceptance]]
) -> tuple[dict[str, list[Acceptance]], dict[str, list[Acceptance]]]:
    """The acceptances of ``runs`` by run id: those in effect on the day of the newest, and those that expired."""
    effect: dict[str, list[Acceptance]] = {}
    expired: dict[str, list[Acceptance]] = {}
    for run_id in runs["run_id"]:
        for one in acceptances.get(run_id, ()):
            holds = is_known({run_id: [one]}, runs, one.metric or next(iter(rule.metrics)), run_id)
            (effect if holds else expired).setdefault(run_id, []).append(one)
    return effect, expired


def _change_at(runs: pl.DataFrame, at: int, metric: Metric) -> float | None:
    """The relative change of the median, from the runs before one to those since."""
    sides = (runs[max(0, at - KEPT) : at], runs[at : at + KEPT])
    old, new = (measured(side, metric)[metric.column].median() for side in sides)
    return new / old - 1 if isinstance(old, float) and isinstance(new, float) and old else None


def is_known(acceptances: Mapping[str, Sequence[Acceptance]], runs: pl.DataFrame, metric: str, run_id: str) -> bool:
    """Whether what became worse at a run is accepted on the day of the newest, and no release since ends that."""
    day, accepted = runs["when"][-1].date(), acceptances.get(run_id, ())
    if not accepted:
        return False
    releases = set(runs["release"][runs["run_id"].to_list().index(run_id) + 1 :])
    return any(one.is_of(metric, day) and one.until_release not in releases for one in accepted)


def losses_at_the_end(runs: pl.DataFrame, history: HistoryOfJobs) -> dict[str, float | None]:
    """Losses at equal steps of the runs that did the last ones of the newest, such as none that ended earlier."""
    runs_with_steps = list(_readable(runs["run_id"].to_list(), history))
    last = {run_id: set(steps["step"].filter(steps["loss"].is_not_null())) for run_id, steps in runs_with_steps}
    wanted = set(sorted(last.get(runs["run_id"][-1], set()))[-LAST:])
    return final_losses((run_id, steps) for run_id, steps in runs_with_steps if wanted and wanted <= last[run_id])


def judge_newest_losses(runs: pl.DataFrame, rule: JobRule, history: HistoryOfJobs) -> tuple[Judgement, ...]:
    """What the rule requires of the losses of the newest of ``runs``, compared with those before it."""
    if not rule.tolerances:
        return ()
    before, newest = (
        [steps for _, steps in _readable(ids["run_id"].to_list(), history)]
        for ids in (runs[:-1].tail(MOST_REPEATS), runs[-1:])
    )
    return judge_losses(compare_losses(before, newest), rule.tolerances)


def _readable(run_ids: Sequence[str], history: HistoryOfJobs) -> Iterator[tuple[str, pl.DataFrame]]:
    for run_id in run_ids:
        with suppress(InputError):
            yield run_id, history.steps(run_id)


def work_of_sides(sides: tuple[list[str], list[str]], history: HistoryOfJobs) -> tuple[Less, ...]:
    """The kinds of work of which the runs of the second side do less."""
    rows = history.settings([*sides[0], *sides[1]])
    done = [(rows.filter(pl.col("run_id").is_in(side)), _readable(side, history)) for side in sides]
    return compared_work(done[0], done[1])
