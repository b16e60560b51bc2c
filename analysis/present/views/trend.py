"""What people are shown of a trend: the groups, and where the metric changed. Parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import polars as pl

from analysis.history.annotations import ANNOTATION_COLUMNS
from analysis.metrics import Metric
from analysis.nightly.trend import ChangePoint, Trend
from analysis.present.as_json import pick
from analysis.present.metric_names import titled
from analysis.present.numbers import signed_percent
from analysis.present.parts import Heading, Part, Sentence, Table
from analysis.present.views.compare import named_changes
from analysis.present.views.history import run_documents
from analysis.present.views.remarks import remark_sentences
from logparse.findings import Note, info
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION

# Series without a change that are shown: a history may hold hundreds of jobs that ran once.
MOST_SERIES = 5
NOTHING: Mapping[str, list[str]] = MappingProxyType({})
# On a short screen the newest changes and groups of a series, and of its runs that have a remark.
MOST_POINTS, MOST_GROUPS, MOST_REMARKS = 3, 10, 3


def compose_trend(trend: Trend, remarks: Mapping[str, list[str]] = NOTHING, details: bool = True) -> list[Part]:
    """One series: its title, its changes, the newest first, its groups, and the ``remarks``, which are by run id.

    Without ``details`` only the newest of each.
    """
    form = trend.metric
    groups = trend.groups if details else trend.groups.tail(MOST_GROUPS)
    rows = tuple(
        (g["group"], *(form.text(g[k]) for k in ("median", "p10", "p90")), str(g["runs"]))
        for g in groups.iter_rows(named=True)
    )
    run_ids = [run_id for run_id in trend.runs["run_id"] if run_id in remarks]
    return [
        Heading(_title(trend), "title"),
        *_changes(trend, form, details),
        *_unknown(trend),
        Table(("", tr("median"), "p10", "p90", tr("runs")), rows),
        *_earlier(len(trend.groups) - len(rows)),
        *remark_sentences(run_ids if details else run_ids[-MOST_REMARKS:], remarks),
    ]


def _earlier(groups: int) -> Iterator[Sentence]:
    if groups:
        yield Sentence(tr("{n} earlier groups; -v shows all", n=groups), "info")


def _title(trend: Trend) -> str:
    fields = {"metric": titled(trend.metric), "runs": len(trend.runs), "job": trend.name}
    return tr("{metric}: {runs} runs of {job}", **fields)


def shown(trends: Sequence[Trend]) -> list[Trend]:
    """The series to show: all that changed or whose newest run is off, and the first of the others."""
    quiet = [trend for trend in trends if _is_quiet(trend)]
    return [trend for trend in trends if not _is_quiet(trend)] + quiet[:MOST_SERIES]


def _is_quiet(trend: Trend) -> bool:
    return not trend.changes and trend.drift is None and trend.newest_off is None


def left_out(trends: Sequence[Trend], printed: int | None = None) -> list[Note]:
    """The number of series that are not shown; only ``printed`` ones are, where not all had room."""
    fitting = len(shown(trends))
    if printed is not None and printed < fitting:
        return [info("series_no_room", n=len(trends) - printed)]
    return [info("series_left_out", n=len(trends) - fitting)] if len(trends) > fitting else []


def page_title() -> str:
    """What a page of trends is called."""
    return tr("Trend over recorded runs")


def _unknown(trend: Trend) -> Iterator[Sentence]:
    if trend.unknown:
        names = tr(", ").join(trend.unknown)
        yield Sentence(tr("not known for all runs, so some may be of a different job: {names}", names=names), "warning")


def _changes(trend: Trend, form: Metric, details: bool) -> Iterator[Sentence]:
    if trend.drift is not None:
        since = trend.runs.row(0, named=True)
        text = tr(
            "{change} in a straight line since run {run} ({day})",
            change=signed_percent(trend.drift),
            run=since["run_id"][:12],
            day=f"{since['when']:%Y-%m-%d}" if since["when"] else "-",
        )
        yield Sentence(text, "warning" if trend.drift * trend.metric.direction > 0 else "plain")
    elif not trend.changes:
        yield Sentence(tr("no change found"))
    if (away := trend.newest_off) is not None:
        text = tr(
            "the newest run, {run}, is {change} from the earlier runs; the next run must confirm it",
            run=trend.runs["run_id"][-1][:12],
            change=signed_percent(away),
        )
        yield Sentence(text, "warning" if away * trend.metric.direction > 0 else "plain")
    newest = trend.changes[::-1]
    listed = newest if details else newest[:MOST_POINTS]
    for change in listed:
        yield Sentence(_sentence(change, form), "warning" if change.change * trend.metric.direction > 0 else "plain")
    if len(listed) < len(newest):
        yield Sentence(tr("{n} earlier changes; -v shows all", n=len(newest) - len(listed)), "info")


def _sentence(change: ChangePoint, form: Metric) -> str:
    old, new = change.groups
    where = tr("within {group}", group=new) if old == new else tr("from {old} to {new}", old=old, new=new)
    text = tr(
        "{change} at run {run} ({where}): {before} to {after} {unit}, p {p}",
        change=signed_percent(change.change),
        run=change.run_id[:12],
        where=where,
        before=form.text(change.before),
        after=form.text(change.after),
        unit=form.unit,
        p=f"{change.p:.1g}",
    )
    names = named_changes(change.changes)
    return tr("{text}; changed: {names}", text=text, names=names) if names else text


def document(trends: Sequence[Trend], runs: pl.DataFrame | None = None) -> dict[str, Any]:
    """The JSON document; it holds no sentence. ``runs`` are those of the trends, with their annotations."""
    rows = [] if runs is None else run_documents(runs.select("run_id", *ANNOTATION_COLUMNS))
    annotations = {run["run_id"]: run for run in rows}
    return {"schema_version": SCHEMA_VERSION, "series": [_trend(trend, annotations) for trend in trends]}


def _trend(trend: Trend, annotations: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    runs = trend.runs.with_columns(pl.col("when").dt.to_string("iso"))
    return pick(
        trend,
        "name metric unknown_fields unit runs off newest_off drift groups changes",
        metric=trend.metric.column,
        unknown_fields=trend.unknown,
        unit=trend.metric.unit,
        runs=[run | annotations.get(run["run_id"], {}) for run in runs.to_dicts()],
        off=[trend.runs["run_id"][place] for place in trend.off],
        groups=trend.groups.to_dicts(),
        changes=[{**asdict(change), "change": change.change} for change in trend.changes],
    )
