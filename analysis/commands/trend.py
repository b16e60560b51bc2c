"""``logparse trend``: a metric over all recorded runs, and where it changed. Reads options, calls, prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from analysis.charts.trend import trend_chart
from analysis.commands import _completion
from analysis.commands import _options as options
from analysis.commands._forms import Form, print_json
from analysis.commands._index_files import PAGE
from analysis.commands._release_options import HistoryDir, parse_day, teller
from analysis.compare.verdict import DEFAULT_METRIC, find_metric
from analysis.files.outputs import write_charts, write_page
from analysis.files.result_folder import ResultFolder
from analysis.history.open_history import open_history
from analysis.history.selection import select_evidence
from analysis.metrics import FOLLOWED
from analysis.nightly.trend import Trend, follow_all
from analysis.present.console import make_console
from analysis.present.markdown import markdown
from analysis.present.terminal import print_parts
from analysis.present.views.remarks import remarks
from analysis.present.views.trend import compose_trend, document, left_out, shown
from analysis.project.project_file import history_place
from logparse.findings import Note, info
from logparse.lazy_regex import lazy_regex

# Forms of the chart next to the page.
FORMS = ("json", "png", "svg")
# The folder of the pages of jobs, next to the index of all; the most characters of a page's name.
JOBS, LONGEST_NAME = "jobs", 80
# Lines of a screen without -v.
MOST_LINES = 40
NO_WORD = lazy_regex(r"[^\w.]+")
By = Annotated[
    str, typer.Option("--by", metavar="NAME", help="Group by release, day, week, month, a version or a label.")
]
Select = Annotated[
    str | None, typer.Option("--select", metavar="SEL", help="Only these runs, selected as in `logparse history list`.")
]
MetricName = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="NAME",
        autocompletion=_completion.metrics,
        help="Metric to show, such as mfu.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="DATE", help="Exit with 1 if the metric became worse on or after this day."),
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Show all series, changes and groups.")]
Out = Annotated[
    ResultFolder | None,
    options.result_folder(
        help="Folder for report.html and charts (PNG, SVG, JSON); with several jobs, one page per job in jobs/."
    ),
]


def trend(
    history: HistoryDir = None,
    by: By = "release",
    select: Select = None,
    metric: MetricName = DEFAULT_METRIC,
    since: Since = None,
    out: Out = None,
    force: options.Force = False,
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
    verbose: Verbose = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Show the trend of a metric over recorded runs, and where it changed.

    Exit code: 0 done, 1 with --since if a job became worse, 2 wrong usage.
    """
    Form(as_json, as_markdown)
    if out is not None:
        out.check(force, [PAGE])
    day = None if since is None else parse_day("--since", since)
    report = teller()
    store = open_history(history_place(history), report)
    chosen = select_evidence(store.runs(), select or None)
    for note in chosen.notes:
        report(note)
    trends = follow_all(chosen.runs, find_metric(metric, FOLLOWED), by, store.settings)
    annotations = remarks(chosen.runs)
    # Files first: a reader that closes the pipe must not cost the folder.
    if out is not None:
        _write(trends, annotations, out, force, report)
    try:
        if as_json:
            print_json(document(trends, chosen.runs))
        elif as_markdown:
            typer.echo("\n".join(markdown(compose_trend(trend, annotations)) for trend in trends))
        else:
            printed = _print(trends, annotations, verbose, no_color)
            for note in () if verbose else left_out(trends, printed):
                report(note)
    finally:
        # The exit code follows the alarm, even where the reader closed the pipe.
        if day is not None and any(one.worse_since(day) for one in trends):
            raise typer.Exit(1)


def _print(trends: Sequence[Trend], annotations: Mapping[str, list[str]], verbose: bool, no_color: bool) -> int:
    """Print series, those with news first; without ``verbose`` as many as have room. Returns how many."""
    console, room = make_console(no_color=no_color), MOST_LINES
    series = trends if verbose else shown(trends)
    for at, one in enumerate(series):
        with console.capture() as captured:
            print_parts(console, compose_trend(one, annotations, verbose))
        text = captured.get()
        room -= text.count("\n")
        if at and room < 0 and not verbose:
            return at
        typer.echo(text, nl=False)
    return len(series)


def _write(
    trends: Sequence[Trend],
    annotations: Mapping[str, list[str]],
    out: ResultFolder,
    force: bool,
    report: Callable[[Note], object],
) -> None:
    """Write the charts of the trends that are shown, and the page of a single job, or a page of each and the index."""
    charted = shown(trends)
    names = [f"trend-{number}" if number > 1 else "trend" for number in range(1, len(charted) + 1)]
    charts = {name: trend_chart(one) for name, one in zip(names, charted, strict=True)}
    with out.opened("trend", force) as folder:
        write_charts(charts, folder, FORMS)
        _write_pages(trends, annotations, folder)
    report(info("wrote", path=f"{out}/{PAGE}"))


def _write_pages(trends: Sequence[Trend], annotations: Mapping[str, list[str]], folder: Path) -> None:
    from analysis.report.trend_page import trend_page, trends_page

    if len(trends) == 1:
        write_page(trend_page(trends[0], trend_chart(trends[0]), annotations), folder / PAGE)
        return
    (folder / JOBS).mkdir(exist_ok=True)
    links = _links(trends)
    pages = (trend_page(trend, trend_chart(trend), annotations, f"../{PAGE}") for trend in trends)
    for page, link in zip(pages, links, strict=True):
        write_page(page, folder / link)
    write_page(trends_page(trends, links), folder / PAGE)


def _links(trends: Sequence[Trend]) -> list[str]:
    """The page of each job, by its name, so that it stays where it is as long as the job is called so."""
    stems = [NO_WORD.sub("-", trend.name).strip("-").lower()[:LONGEST_NAME] or "job" for trend in trends]
    numbered = [f"{stem}-{stems[:at].count(stem) + 1}" if stem in stems[:at] else stem for at, stem in enumerate(stems)]
    return [f"{JOBS}/{stem}.html" for stem in numbered]
