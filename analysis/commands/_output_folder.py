"""What ``analyze`` leaves in the folder of ``-o``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.batch.run_table import overheads_table, runs_table
from analysis.commands._index_files import PAGE, PAGES, links_of, write_index
from analysis.commands._progress import drawing_bar
from analysis.files.outputs import (
    DEFAULT_TABLES,
    ChartWriter,
    drawn_formats,
    prepare_folder,
    write_bytes,
    write_page,
    write_table,
)
from analysis.files.result_folder import ResultFolder
from analysis.present.views import requirements
from analysis.present.words import word
from analysis.run.run import Run
from logparse.light_dataclass import dataclass
from logparse.schema import RECORD_COLUMNS

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

# The tables that a run writes into its folder.
TABLES = ("runs", "overheads", "steps", "summary", "segments", "rates", "time_breakdown", "ranks", *RECORD_COLUMNS)
# The most runs that a reader can distinguish on one page.
MOST_ON_A_PAGE = 12


@dataclass(frozen=True)
class DrawingOptions:
    """How results are drawn: the ``formats`` of the charts (None: nothing is drawn) and their ``theme``.

    ``tables`` are the formats of the tables. ``quiet`` shows no progress. ``command`` is the command line at the foot
    of the page. ``price`` is that of a device-hour; with it the page shows the cost of losses. ``order`` is the column
    by which the rows of the index are sorted. ``part`` says that the runs are part of a whole without a page of all.
    """

    formats: Sequence[str] | None
    theme: str | None = None
    quiet: bool = False
    tables: Sequence[str] = DEFAULT_TABLES
    command: str = ""
    price: float | None = None
    order: str | None = None
    part: bool = False

    @property
    def sure(self) -> list[str]:
        """Names of tables that are written in any case."""
        return [f"{name}.{form}" for name in TABLES[:4] for form in self.tables]

    def prepare(self) -> None:
        """Let the processes that draw start while the logs are read."""
        if self.formats is not None and drawn_formats(self.formats):
            from analysis.files.pictures import drawing_pool

            drawing_pool()


def write_results(
    results: Sequence[Run],
    out: ResultFolder,
    drawing: DrawingOptions,
    force: bool,
    failed: Sequence[str] | None = None,
) -> None:
    """Write the tables of all runs and, unless nothing is drawn, the pages and the charts.

    Of many runs also their index; ``failed`` says why others could not be read, None where one run was asked for.
    With ``force`` they replace the files of an earlier run.
    """
    with out.opened("analyze", force) as folder:
        write_into(folder, results, drawing, apart=len(results) > 1, failed=failed)


def write_into(
    folder: Path, results: Sequence[Run], drawing: DrawingOptions, apart: bool, failed: Sequence[str] | None
) -> None:
    """``write_results`` into ``folder``; with ``apart`` the charts of each run have a folder of their own."""
    tables = tables_of(results)
    for name, frame in tables.items():
        for form in drawing.tables:
            write_table(frame, folder / name, form)
    write_verdicts(folder, [_judged(run) for run in results])
    if drawing.formats is not None and results:
        _write_pictures(results, folder, drawing.formats, drawing, apart, each=failed is not None)
    if failed is not None:
        drawn = drawing.formats is not None
        overlay = drawn and has_overlay(len(results))
        write_index(folder, tables, failed, drawn, drawing.order, drawing.tables, overlay)


def write_verdicts(folder: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """What CI reads of ``runs`` of the JSON document; nothing where nothing is required of them."""
    for name, text in requirements.requirement_files(runs).items():
        write_bytes(text.encode(), folder / name)


def _judged(run: Run) -> dict[str, Any]:
    return {"name": run.name, "requirements": requirements.requirement_documents(run)}


def tables_of(results: Sequence[Run]) -> dict[str, pl.DataFrame]:
    """The tables of all ``results`` by their names; those of lines that no run has are left out."""
    import polars as pl

    if not results:
        return {}
    tables = {"runs": runs_table(results), "overheads": overheads_table(results)} | {
        name: pl.concat(getattr(r.analysis, name) for r in results)
        for name in ("steps", "summary", "segments", "rates", "time_breakdown")
    }
    records = {name: pl.concat(r.log.records[name] for r in results) for name in RECORD_COLUMNS}
    where_there = {"ranks": pl.concat(r.ranks for r in results)} | records
    return tables | {name: frame for name, frame in where_there.items() if len(frame)}


def _write_pictures(
    results: Sequence[Run], out: Path, formats: Sequence[str], drawing: DrawingOptions, apart: bool, each: bool
) -> None:
    """The pages, made while other processes draw the charts."""
    from altair.utils.schemapi import debug_mode

    from analysis.charts import with_data
    from analysis.report import render_page

    pages = _pages(results, each)
    total = len(pages) + sum(
        len(with_data(r.steps, r.time_breakdown, r.ranks, r.analysis.reliability.curve)) for r in results
    )
    # Altair's check of every part takes as long as all else; the tests let it check what we make.
    with debug_mode(False), drawing_bar(drawing.quiet, total) as advance:
        charts = ChartWriter(formats, drawing.theme, advance)
        for result in results:
            folder = out / "charts" / result.log.name if apart else out / "charts"
            for name, chart in _charts(result).items():
                charts.add(chart, folder / name)
        for path, runs in pages.items():
            prepare_folder((out / path).parent)
            overlay = has_overlay(len(results)) and not drawing.part
            links = links_of(path, [run.name for run in runs], drawing.tables, each, overlay)
            page = render_page(runs, command=drawing.command, price=drawing.price, links=links)
            write_page(page, out / path)
            advance()
        charts.finish()


def has_overlay(runs: int) -> bool:
    """Whether so many runs have a page on which they are drawn in the same charts."""
    return 1 < runs <= MOST_ON_A_PAGE


def _pages(results: Sequence[Run], each: bool) -> dict[str, Sequence[Run]]:
    """The runs on each page: all on one, where there are few, and where ``each`` is one every run on its own."""
    pages = {f"{PAGES}/{run.name}/{PAGE}": [run] for run in results} if each else {}
    return pages | ({PAGE: results} if len(results) <= MOST_ON_A_PAGE else {})


def _charts(result: Run) -> dict[str, alt.LayerChart]:
    from analysis.charts import run_charts

    how = result.analysis.computation
    peaks = [how.peak.peak_tflops_per_second] if how.peak else []
    reasons, parts = partial(word, "reasons"), partial(word, "parts")
    evaluations = result.records["evaluations"]
    curve = result.analysis.reliability.curve
    texts = (peaks, how.formula.name, reasons, parts)
    return run_charts(result.steps, result.time_breakdown, evaluations, *texts, ranks=result.ranks, goodput=curve)
