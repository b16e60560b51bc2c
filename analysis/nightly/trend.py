"""The course of a metric over the recorded runs: medians per release, and where it changed.

Comes in: runs of a history that can be compared with each other. Goes out: a Trend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import polars as pl

from analysis.compare.comparability import FIELDS, REQUIRED, Change, fill_implied, list_changes
from analysis.compare.independent_records import find_jobs, sample_of
from analysis.compare.job_name import series_names
from analysis.metrics import Metric
from analysis.nightly.job_steps import find_open_steps
from analysis.stats.series_changes import find_changes_or_drift, find_off
from logparse.errors import UsageError
from logparse.language import tr
from logparse.light_dataclass import dataclass, replace

# Runs on each side of a change whose versions and settings are compared.
RUNS_PER_SIDE = 5
# A step of the gate is a change of the trend that is so near.
AROUND = 3
SPANS = {"day": "1d", "week": "1w", "month": "1mo"}


@dataclass(frozen=True)
class ChangePoint:
    """Between two neighbouring runs of the series the metric changed. ``at`` counts the runs before it.

    ``before`` and ``after`` are medians of the two stretches; ``changes`` the versions and settings that differ.
    """

    at: int
    run_id: str
    groups: tuple[str, str]
    before: float
    after: float
    p: float
    changes: tuple[Change, ...] = ()

    @property
    def change(self) -> float:
        """Relative change."""
        return self.after / self.before - 1


@dataclass(frozen=True)
class Trend:
    """One series: ``runs`` (at, run_id, name, release, group, when, value), ``groups`` with their medians and bands.

    ``unknown`` are fields that some of its runs do not print, so that they may be of another job. ``name`` is that of
    its job. ``off`` are places of runs far from their neighbours, which are no change.
    ``drift`` is the relative change along a straight line, where that explains the runs better than changes do.
    """

    metric: Metric
    runs: pl.DataFrame
    groups: pl.DataFrame
    changes: tuple[ChangePoint, ...]
    unknown: tuple[str, ...] = ()
    name: str = ""
    off: tuple[int, ...] = ()
    drift: float | None = None

    @property
    def newest_off(self) -> float | None:
        """How far the newest run is from the others since the last change, if it is off: the next run decides."""
        last = len(self.runs) - 1
        if last not in self.off:
            return None
        begin = self.changes[-1].at if self.changes else 0
        steady = self.runs[begin:last].filter(~pl.col("at").is_in(self.off))["value"]
        return float(self.runs["value"][last] / steady.median()) - 1

    def worse_since(self, day: date) -> list[ChangePoint]:
        """The changes for the worse on ``day`` or later, by the run from which on they are."""
        worse = (change for change in self.changes if change.change * self.metric.direction > 0)
        return [change for change in worse if self.runs["when"][change.at].date() >= day]


def follow_all(
    runs: pl.DataFrame, metric: Metric, by: str, settings: Callable[[Sequence[str]], pl.DataFrame]
) -> list[Trend]:
    """The trend of every series of ``runs`` that has the metric, with what differs at each change.

    Those that changed come first, the newest change before others, then those that drift, then those whose newest run
    is off, then the others, the largest first.
    ``settings`` gives all columns of the runs of some ids.

    Raises UsageError where no run has the metric.
    """
    series = split_series(sample_of(runs, find_jobs(runs)).runs)
    _group(runs, by)
    trends = [
        replace(follow(one, metric, by, elsewhere=True), unknown=unknown_fields(one), name=name)
        for one, name in zip(series, series_names(series), strict=True)
    ]
    with_runs = [trend for trend in trends if len(trend.runs)]
    if not with_runs:
        problem = tr("no recorded run has this metric") if len(runs) else tr("no run is selected")
        raise UsageError(problem, remedy=tr("`logparse history list` lists the recorded runs"))
    heavy = settings([run_id for trend in with_runs for run_id in explaining_runs(trend)])
    explained = [explain(trend, heavy) for trend in with_runs]
    return sorted(explained, key=_news, reverse=True)


def _news(trend: Trend) -> tuple[datetime, bool, bool]:
    """By what series are ordered: when each last changed, whether it drifts, whether its newest run is off."""
    changed = trend.runs["when"][trend.changes[-1].at] if trend.changes else None
    return changed or datetime.min, trend.drift is not None, trend.newest_off is not None


def split_series(runs: pl.DataFrame) -> list[pl.DataFrame]:
    """Runs that can be compared with each other, the largest series first: those equal in all of FIELDS.

    Runs with an unknown field join the runs that are equal in the rest, if these are one series and no field of
    REQUIRED is unknown; else they are a series of their own.
    """
    parts = fill_implied(runs).partition_by(FIELDS, maintain_order=True, as_dict=True) if len(runs) else {}
    series: dict[tuple[Any, ...], list[pl.DataFrame]] = {}
    for key, home in _homes(list(parts)).items():
        series.setdefault(home, []).append(parts[key])
    return sorted((pl.concat(one) for one in series.values()), key=len, reverse=True)


def _homes(keys: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """By the values of FIELDS the key of their series: their own, or that of the one series they fit."""
    filled = {key: tuple(i for i, value in enumerate(key) if value is not None) for key in keys}
    required = {FIELDS.index(name) for name in REQUIRED}
    homes: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    # By the known fields and their values: the series of the keys that know more fields.
    fitting: dict[tuple[int, ...], dict[tuple[Any, ...], set[tuple[Any, ...]]]] = {t: {} for t in filled.values()}
    for key in sorted(keys, key=lambda k: len(filled[k]), reverse=True):
        fits = fitting[filled[key]].get(tuple(key[i] for i in filled[key]), set())
        homes[key] = next(iter(fits)) if len(fits) == 1 and required <= set(filled[key]) else key
        for fields, series in fitting.items():
            if set(fields) < set(filled[key]):
                series.setdefault(tuple(key[i] for i in fields), set()).add(homes[key])
    return homes


def unknown_fields(runs: pl.DataFrame) -> tuple[str, ...]:
    """Fields that are unknown for some of the runs but not all, and those of REQUIRED unknown for all."""
    null_counts = fill_implied(runs).select(FIELDS).null_count().row(0, named=True)
    return tuple(n for n, nulls in null_counts.items() if 0 < nulls < len(runs) or (nulls and n in REQUIRED))


def follow(runs: pl.DataFrame, metric: Metric, by: str = "release", elsewhere: bool = False) -> Trend:
    """The trend of ``metric`` over ``runs``, which must be of one series.

    Its changes are those of the whole series, and the open steps of the gate, at the places of the gate.

    Raises UsageError for a ``by`` that no run has, unless runs ``elsewhere`` have it.
    """
    value = pl.col(metric.column)
    measured = runs.filter(value.is_finite() & (value > 0))
    when = pl.coalesce("begun_at", "recorded_at")
    placed = measured.select(
        "run_id", "name", "release", when.alias("when"), _group(measured, by, elsewhere).alias("group"), value=value
    )
    ordered = placed.sort(pl.col("when").min().over("group"), "group", "when", "run_id").with_row_index("at")
    values = ordered["value"].to_list()
    (points, drift), off = find_changes_or_drift(values), tuple(find_off(values))
    steps = find_open_steps(measured.sort(when, "run_id"), metric) if ordered["when"].is_sorted() else []
    points = with_open_steps(points, ordered["run_id"].to_list(), steps)
    drift = None if points else drift
    changes = tuple(_change(ordered, points, index, off) for index in range(len(points)))
    return Trend(metric, ordered, _groups(ordered), changes, off=off, drift=drift)


def with_open_steps(
    points: Sequence[tuple[int, float]], ids: Sequence[str], steps: Sequence[tuple[str, float]]
) -> list[tuple[int, float]]:
    """``points`` with the open ``steps`` of the gate, in the place of those near them: both say the same date."""
    found = dict(points)
    for run_id, p in steps:
        at = ids.index(run_id)
        near = min((one for one in found if abs(one - at) <= AROUND), key=lambda one: abs(one - at), default=None)
        found[at] = p if near is None else found.pop(near)
    return sorted(found.items())


def _group(runs: pl.DataFrame, by: str, elsewhere: bool = False) -> pl.Expr:
    """The release, a stretch of time, a version or a label of each run."""
    if by == "release":
        return pl.col("release")
    if by in SPANS:
        return pl.coalesce("begun_at", "recorded_at").dt.truncate(SPANS[by]).dt.date().cast(pl.String)
    for column in ("versions", "labels"):
        label = pl.element().filter(pl.element().struct.field("name") == by).struct.field("value").first()
        values = pl.col(column).list.eval(label).list.first()
        if runs.select(values.is_not_null().any()).item():
            return values.fill_null("-")
    if elsewhere:
        return pl.lit("-")
    remedy = tr("use release, {spans}, a version or a label; see `logparse history show RUN`", spans=", ".join(SPANS))
    raise UsageError(tr("no run has a {name}", name=by), remedy=remedy)


def _groups(ordered: pl.DataFrame) -> pl.DataFrame:
    """Per group: runs, median, 10th and 90th percentile, first and last place."""
    value = pl.col("value")
    return ordered.group_by("group", maintain_order=True).agg(
        pl.len().alias("runs"),
        value.median().alias("median"),
        value.quantile(0.1, "linear").alias("p10"),
        value.quantile(0.9, "linear").alias("p90"),
        pl.col("at").min().alias("first"),
        pl.col("at").max().alias("last"),
    )


def _change(ordered: pl.DataFrame, points: Sequence[tuple[int, float]], index: int, off: Sequence[int]) -> ChangePoint:
    at, p = points[index]
    begin = points[index - 1][0] if index else 0
    end = points[index + 1][0] if index + 1 < len(points) else len(ordered)
    regular = ordered.filter(~pl.col("at").is_in(off))
    levels = (
        regular.filter(pl.col("at").is_between(*ends, closed="left"))["value"] for ends in ((begin, at), (at, end))
    )
    before, after = (float(level.median()) for level in levels)  # type: ignore[arg-type]
    groups = (ordered["group"][at - 1], ordered["group"][at])
    return ChangePoint(at, ordered["run_id"][at], groups, before, after, p)


def explain(trend: Trend, heavy: pl.DataFrame) -> Trend:
    """``trend`` with what differs at each change; ``heavy`` holds all columns of ``explaining_runs``."""

    def explained(index: int) -> ChangePoint:
        sides = [heavy.filter(pl.col("run_id").is_in(ids)) for ids in _sides_of(trend, index)]
        return replace(trend.changes[index], changes=tuple(c for c in list_changes(*sides) if c.is_candidate))

    return replace(trend, changes=tuple(explained(index) for index in range(len(trend.changes))))


def explaining_runs(trend: Trend) -> list[str]:
    """The ids of the runs on both sides of each change."""
    return [run_id for index in range(len(trend.changes)) for ids in _sides_of(trend, index) for run_id in ids]


def _sides_of(trend: Trend, index: int) -> tuple[list[str], list[str]]:
    """Ids of the last runs before a change and of the first ones after it, none beyond another change."""
    places = [0, *(change.at for change in trend.changes), len(trend.runs)]
    before, at, after = places[index : index + 3]
    ids = trend.runs["run_id"]
    return ids[max(before, at - RUNS_PER_SIDE) : at].to_list(), ids[at : min(after, at + RUNS_PER_SIDE)].to_list()
