"""``logparse compare``: sides beside the first of them. Reads options, calls, prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from analysis.commands import _options as options
from analysis.commands._output_folder import PAGE
from analysis.commands._quantity_flags import with_quantity_flags
from analysis.commands._release_options import (
    Allow,
    HistoryDir,
    Metrics,
    Threshold,
    check_allowed,
    parse_threshold,
    warn,
)
from analysis.compare.comparable import UNKNOWN, Field
from analysis.compare.comparison import Comparison
from analysis.compare.comparison import compare as compare_sides
from analysis.compare.verdict import DEFAULT_METRIC, find_metric
from analysis.outputs import check_folder, clear_stale, prepare_folder, write_page
from analysis.pipeline.load import gather
from analysis.pipeline.record import Reading
from analysis.pipeline.sides import find_side, open_history
from analysis.screens.compare import (
    compose_answer,
    compose_comparison,
    compose_drawn,
    compose_notes,
)
from analysis.screens.compare_json import comparison_document
from analysis.screens.console import make_console
from analysis.screens.html import html
from analysis.screens.markdown import markdown
from analysis.screens.terminal import print_parts
from logparse.errors import UsageError
from logparse.language import msg, tr
from logparse.schema import SCHEMA_VERSION

Baseline = Annotated[
    str,
    typer.Argument(
        metavar="A",
        help="The baseline. A log, a quoted glob (one run), a folder of logs (each entry is a run), or of a history: "
        "key=value, a run id.",
    ),
]
Candidates = Annotated[
    list[str], typer.Argument(metavar="B...", help="What is compared with it, each by itself, given in the same ways.")
]

Out = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--out",
        parser=options.folder_of,
        metavar="DIR",
        help="Folder for report.html: the comparison, and the runs of both sides in charts.",
    ),
]


@with_quantity_flags
def compare(
    baseline: Baseline,
    candidates: Candidates,
    given: dict[str, Any],
    history: HistoryDir = None,
    threshold: Threshold = "3%",
    metric: Metrics = None,
    allow: Allow = None,
    hw: options.Hardware = None,
    peak_tflops: options.PeakTflops = None,
    peak_basis: options.PeakBasis = None,
    model: options.Model = None,
    formula: options.FormulaName = None,
    config: options.Config = None,
    log_format: options.LogFormat = None,
    dialect: options.Dialect = None,
    warmup: options.Warmup = None,
    out: Out = None,
    force: options.Force = False,
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Say whether two runs, or two groups of runs, may be compared, how they differ, and what changed between them.

    The unit of evidence is the run: the steps of one run share its machines and its hour. Three runs a side are the
    fewest that can prove anything, five are good. Model shape, batch, sequence length, devices, layout, precision and
    recompute must be equal.

    Exit code 0 done, 2 wrong usage, unreadable input or sides that cannot be compared, 3 no step line found. A
    regression does not change the exit code here; `logparse gate` is for that.
    """
    if as_json and as_markdown:
        raise UsageError(tr("--json and --markdown exclude each other"), remedy=tr("give one of them"))
    if out is not None:
        check_folder(out, force)
    reading = Reading(gather(given, model, config), hw, peak_tflops, peak_basis, formula, log_format, dialect, warmup)
    chosen = [find_metric(name) for name in metric or [DEFAULT_METRIC]]
    allowed = check_allowed(allow)
    store = open_history(history) if history is not None else None
    runs = store.runs() if store else None
    found = (find_side(asked, store, runs, reading) for asked in (baseline, *candidates))
    # Losses and charts read the same steps: one warning is enough.
    first, *others = (replace(side, warn=cache(warn)) for side in found)
    limit = parse_threshold(threshold)
    results = [compare_sides(first, other, chosen, limit, allowed, runs) for other in others]
    if out is not None:
        _write(results, out)
    show(results, as_json, as_markdown, no_color)
    for result in results:
        refuse_incomparable(result)


def show(results: Sequence[Comparison], as_json: bool, as_markdown: bool, no_color: bool) -> None:
    """Print comparisons in one of their forms; several are a list in JSON."""
    if as_json:
        documents = [comparison_document(result) for result in results]
        several = {"schema_version": SCHEMA_VERSION, "comparisons": documents}
        document = documents[0] if len(documents) == 1 else several
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
        return
    for result in results:
        if as_markdown:
            typer.echo(markdown(compose_comparison(result)))
        else:
            print_parts(make_console(no_color=no_color), compose_comparison(result))


def comparison_page(result: Comparison) -> str:
    """The report of a comparison: what the terminal shows, and the runs of both sides in charts."""
    from analysis.charts.comparison import comparison_charts, overlay_runs
    from analysis.report import ROWS, Drawing, Text, Tracks, render_document

    drawn = overlay_runs(result)
    charts = comparison_charts(drawn, ROWS)
    pieces: list[Text | Drawing] = [
        Text(html(compose_answer(result), 2)),
        Text(f'<div id="notes">{html(compose_notes(result))}</div>'),
        *(Drawing(name, chart, along=True) for name, chart in charts.items()),
        Text(html(compose_drawn(result, drawn), 2)),
    ]
    title = tr("{candidate} compared with {baseline}", candidate=result.candidate.asked, baseline=result.baseline.asked)
    return render_document(title, pieces, Tracks(drawn.names, drawn.rows, smoothing=drawn.single))


def _write(results: Sequence[Comparison], out: Path) -> None:
    """A page for each candidate; those that an earlier run left and this one does not write are deleted."""
    prepare_folder(out)
    pages = [out / (f"report-{number}.html" if number > 1 else PAGE) for number in range(1, len(results) + 1)]
    for path, result in zip(pages, results, strict=True):
        write_page(comparison_page(result), path)
        make_console(stderr=True).print(tr("wrote {path}", path=path))
    clear_stale(out, [PAGE, *(path.name for path in out.glob("report-*.html"))], pages)


def refuse_incomparable(result: Comparison) -> None:
    """Raise UsageError where fields differ that must be equal, or are unknown that must be known."""
    if not result.refused:
        return
    different = [field for field in result.refused if field.state == "different"]
    unknown = [field for field in result.refused if field.state == UNKNOWN]
    problems = []
    if different:
        told = msg("the two sides differ in {names}, so a difference in speed says nothing of the release")
        problems.append(tr(told, names=_names(different)))
    if unknown:
        told = msg("{names} are not known of both sides, so nobody knows whether they did the same work")
        problems.append(tr(told, names=_names(unknown)))
    raise UsageError(
        tr("; ").join(problems),
        where="; ".join(_both(field) for field in different[:4]) or None,
        remedy=tr("; ").join(_remedies(result, different, unknown)),
    )


def _remedies(result: Comparison, different: Sequence[Field], unknown: Sequence[Field]) -> Iterator[str]:
    if different:
        yield tr("compare runs of the same job")
    sides = (result.baseline, [field.baseline for field in unknown]), (result.candidate, [f.candidate for f in unknown])
    lacking = [side for side, fields in sides if any(not values or None in values for values in fields)]
    recorded = [side.told["release"].is_not_null().any() for side in lacking]
    if not all(recorded):
        yield tr("give what the log lacks (--model, --seq-length ...)")
    if any(recorded):
        yield tr("remove the recorded runs and record them again with what their logs lack (--model, --seq-length ...)")
    names = [*(field.name for field in different), *([UNKNOWN] if unknown else [])]
    yield tr("or accept it: {flags}", flags=" ".join(f"--allow {name}" for name in names))


def _names(fields: Sequence[Field]) -> str:
    return ", ".join(field.name for field in fields)


def _both(field: Field) -> str:
    old, new = (", ".join(map(str, side)) for side in (field.baseline, field.candidate))
    return tr("{name} {old} and {new}", name=field.name, old=old, new=new)
