"""``logparse trend``: a metric over all recorded runs, and where it changed. Reads options, calls, prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from analysis.charts.trend import trend_chart
from analysis.commands import _options as options
from analysis.commands._output_folder import PAGE
from analysis.commands._release_options import HistoryDir
from analysis.compare.same_job import find_jobs, weigh
from analysis.compare.trend import ChangePoint, Trend, explain, explaining_runs, follow, split_series, unknown_fields
from analysis.compare.verdict import DEFAULT_METRIC, find_metric
from analysis.history.selection import select_runs
from analysis.history.store import History
from analysis.metrics import JUDGED, Metric
from analysis.outputs import CHART_FORMATS, check_folder, clear_stale, prepare_folder, write_charts, write_page
from analysis.pipeline.sides import open_history
from analysis.screens.compare import describe_change
from analysis.screens.console import make_console
from analysis.screens.html import html
from analysis.screens.markdown import markdown
from analysis.screens.metric_names import titled
from analysis.screens.parts import Heading, Part, Sentence, Sentences, Table
from analysis.screens.terminal import print_parts
from logparse.errors import UsageError
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    import altair as alt

# Series that are shown: a history may hold hundreds of jobs that were run once.
MOST_SERIES = 5
# Settings that are named at a change.
MOST_CHANGES = 8
# Forms of the chart beside the page.
FORMS = ("json", "png", "svg")
By = Annotated[
    str, typer.Option("--by", metavar="NAME", help="Group by release, day, week, month, a version or a label.")
]
Select = Annotated[
    str | None, typer.Option("--select", metavar="SEL", help="Only these runs: key=value[,key=value ...].")
]
MetricName = Annotated[
    str, typer.Option("--metric", metavar="NAME", help=f"What is followed: one of {', '.join(JUDGED)}.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--out",
        parser=options.folder_of,
        metavar="DIR",
        help="Folder for report.html and the chart as PNG, SVG and JSON.",
    ),
]


def trend(
    history: HistoryDir = None,
    by: By = "release",
    select: Select = None,
    metric: MetricName = DEFAULT_METRIC,
    out: Out = None,
    force: options.Force = False,
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Show how a metric went over the recorded runs, and name the runs, releases and versions at which it changed.

    Runs of different jobs (another shape, batch, layout or device) are series of their own. Within a series the runs
    stand in the order of their releases, and of their clocks within a release.
    """
    if as_json and as_markdown:
        raise UsageError(tr("--json and --markdown exclude each other"), remedy=tr("give one of them"))
    if out is not None:
        check_folder(out, force)
    store = open_history(history)
    trends = _trends(store, select, metric, by)
    if as_json:
        document = {"schema_version": SCHEMA_VERSION, "series": [_document(t) for t in trends]}
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
    elif as_markdown:
        typer.echo("\n".join(markdown(list(_compose(t))) for t in trends))
    else:
        for one in trends[:MOST_SERIES]:
            print_parts(make_console(no_color=no_color), list(_compose(one)))
        for left in _not_shown(trends):
            make_console(stderr=True).print(left)
    if out is not None:
        _write(trends, out)


def _trends(store: History, select: str | None, metric: str, by: str) -> list[Trend]:
    runs = store.runs()
    chosen = select_runs(runs, select) if select else runs
    evidence = weigh(chosen, find_jobs(chosen)).runs
    found = find_metric(metric)
    series = split_series(evidence)
    trends = [replace(follow(runs, found, by), unknown=unknown_fields(runs)) for runs in series]
    known = [t for t in trends if len(t.runs)]
    if not known:
        problem = tr("no recorded run has this metric") if len(chosen) else tr("no run is selected")
        raise UsageError(problem, remedy=tr("`logparse history list` shows what there is"))
    ids = [run_id for one in known for run_id in explaining_runs(one)]
    heavy = store.settings(ids)
    return [explain(one, heavy) for one in known]


def _not_shown(trends: list[Trend]) -> Iterator[str]:
    if len(trends) > MOST_SERIES:
        yield tr("{n} smaller series are not shown; choose with --select", n=len(trends) - MOST_SERIES)


def _write(trends: list[Trend], out: Path) -> None:
    prepare_folder(out)
    names = [f"trend-{number}" if number > 1 else "trend" for number in range(1, MOST_SERIES + 1)]
    charts = {name: trend_chart(one) for name, one in zip(names, trends, strict=False)}
    written = write_charts(charts, out, FORMS)
    written.append(write_page(_page(trends, charts), out / PAGE))
    # Earlier versions wrote a page of each chart.
    clear_stale(out, [f"{name}.{form}" for name in names for form in CHART_FORMATS], written)
    make_console(stderr=True).print(tr("wrote {path}", path=f"{out}/"))


def _page(trends: list[Trend], charts: Mapping[str, alt.LayerChart]) -> str:
    from analysis.report import Drawing, Text, render_document

    pieces: list[Drawing | Text] = []
    for one, (name, chart) in zip(trends, charts.items(), strict=False):
        title, *told = _compose(one)
        pieces += [Text(html([title], 2)), Drawing(name, chart), Text(html(told, 2))]
    left = Sentences([Sentence(text, "info") for text in _not_shown(trends)])
    return render_document(tr("The course over the recorded runs"), [*pieces, Text(html([left]))])


def _compose(one: Trend) -> Iterator[Part]:
    shown = one.metric
    yield Heading(tr("{metric}: {runs} runs", metric=titled(one.metric), runs=len(one.runs)), "title")
    rows = tuple(
        (g["group"], *(shown.text(g[k]) for k in ("median", "p10", "p90")), str(g["runs"]))
        for g in one.groups.iter_rows(named=True)
    )
    yield Table(("", tr("median"), "p10", "p90", tr("runs")), rows)
    if one.unknown:
        names = ", ".join(one.unknown)
        yield Sentence(tr("not known of all its runs, so some may be of another job: {names}", names=names), "warning")
    if not one.changes:
        yield Sentence(tr("no change found"))
    for change in one.changes:
        yield Sentence(_sentence(change, shown), "warning" if change.change * one.metric.direction > 0 else "plain")


def _sentence(change: ChangePoint, shown: Metric) -> str:
    old, new = change.groups
    where = tr("within {group}", group=new) if old == new else tr("from {old} to {new}", old=old, new=new)
    told = tr(
        "{change} at run {run} ({where}): {before} to {after} {unit}, p {p}",
        change=f"{change.change:+.2%}",
        run=change.run_id[:12],
        where=where,
        before=shown.text(change.before),
        after=shown.text(change.after),
        unit=shown.shown_unit,
        p=f"{change.p:.1g}",
    )
    names = "; ".join(describe_change(c) for c in change.changes[:MOST_CHANGES])
    return tr("{told}; changed: {names}", told=told, names=names) if names else told


def _document(one: Trend) -> dict[str, Any]:
    runs = one.runs.with_columns(pl.col("when").dt.to_string("iso"))
    return {
        "metric": one.metric.column,
        "unknown_fields": list(one.unknown),
        "unit": one.metric.unit,
        "runs": runs.to_dicts(),
        "groups": one.groups.to_dicts(),
        "changes": [{**asdict(change), "change": change.change} for change in one.changes],
    }
