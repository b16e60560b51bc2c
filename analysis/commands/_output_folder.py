"""What ``analyze`` leaves in the folder of ``-o``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.batch.run_table import overheads_of, runs_of
from analysis.commands._index_files import PAGE, PAGES, links_of, write_index
from analysis.commands._progress import drawing_bar
from analysis.commands._run_results import RunResult, WantedOfRun, result_of
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
from analysis.files.run_tables import TABLES, TableFiles
from analysis.present.views import requirements
from analysis.present.words import word
from analysis.run.run import Run
from logparse.light_dataclass import dataclass, replace

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

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

    def wanted(self, printed: WantedOfRun) -> WantedOfRun:
        """What these options and what is ``printed`` need of each run."""
        return replace(printed, tables=True, run=self.formats is not None)

    def prepare(self) -> None:
        """Let the processes that draw start while the logs are read."""
        if self.formats is not None and drawn_formats(self.formats):
            from analysis.files.pictures import drawing_pool

            drawing_pool()


def write_results(results: Sequence[Run], out: ResultFolder, drawing: DrawingOptions, force: bool) -> None:
    """Write the tables of all runs and, unless nothing is drawn, the page and the charts.

    With ``force`` they replace the files of an earlier run.
    """
    wanted = WantedOfRun(tables=True, run=drawing.formats is not None)
    with out.opened("analyze", force) as folder, ResultFiles.open(folder, drawing) as files:
        kept = [files.add(result_of(run, wanted)) for run in results]
        files.finish(kept, failed=None)


class ResultFiles:
    """The files of runs in ``folder``: tables that grow as runs come, and at the end what is of all runs."""

    def __init__(self, folder: Path, drawing: DrawingOptions, tables: TableFiles) -> None:
        self._folder, self._drawing, self._tables = folder, drawing, tables

    @classmethod
    @contextmanager
    def open(cls, folder: Path, drawing: DrawingOptions) -> Iterator[ResultFiles]:
        """The files, which are closed after the block, whole or not."""
        with TableFiles(folder, drawing.tables) as tables:
            yield cls(folder, drawing, tables)

    def add(self, result: RunResult) -> RunResult:
        """Write the tables of ``result``, and return it."""
        self._tables.add(result.tables)
        return result

    def finish(self, results: Sequence[RunResult], failed: Sequence[str] | None, apart: bool = False) -> list[str]:
        """Write what is left and return the names of the tables.

        With ``apart`` the charts of each run have a folder of their own. Of many runs their index is written too;
        ``failed`` says why others could not be read, None where one run was asked for.
        """
        self._tables.finish()
        if not results:
            return []
        drawing, drawn = self._drawing, self._drawing.formats is not None
        of_all = tables_of_all(results)
        for name, frame in of_all.items():
            for form in drawing.tables:
                write_table(frame, self._folder / name, form)
        write_verdicts(self._folder, [judged(result) for result in results])
        if drawing.formats is not None:
            _write_pictures(results, self._folder, drawing.formats, drawing, apart, each=failed is not None)
        if failed is not None:
            overlay = drawn and has_overlay(len(results))
            write_index(self._folder, of_all, failed, drawn, drawing.order, drawing.tables, overlay)
        return [*of_all, *self._tables.names]


def tables_of_all(results: Sequence[RunResult]) -> dict[str, pl.DataFrame]:
    """The tables with a row for each of ``results``, and for each of their overheads."""
    overheads = [row for result in results for row in result.overheads]
    return {"runs": runs_of([result.row for result in results]), "overheads": overheads_of(overheads)}


def write_verdicts(folder: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """What CI reads of ``runs`` of the JSON document; nothing where nothing is required of them."""
    for name, text in requirements.requirement_files(runs).items():
        write_bytes(text.encode(), folder / name)


def judged(result: RunResult) -> dict[str, Any]:
    """The part of the run's document that says what was required of it."""
    return {"name": result.name, "requirements": requirements.judgement_documents(result.judgements)}


def _write_pictures(
    results: Sequence[RunResult], out: Path, formats: Sequence[str], drawing: DrawingOptions, apart: bool, each: bool
) -> None:
    """The pages, made while other processes draw the charts; one run after the other is held, but for an overlay."""
    from altair.utils.schemapi import debug_mode

    names = [result.name for result in results]
    with_page_of_all = len(results) <= MOST_ON_A_PAGE
    total = sum(result.charts for result in results) + len(results) * each + with_page_of_all

    def write(path: str, runs: Sequence[Run]) -> None:
        prepare_folder((out / path).parent)
        overlay = has_overlay(len(results)) and not drawing.part
        links = links_of(path, [run.name for run in runs], drawing.tables, each, overlay)
        write_page(render_page(runs, command=drawing.command, price=drawing.price, links=links), out / path)
        advance()

    from analysis.report import render_page

    # Altair's check of every part takes as long as all else; the tests let it check what we make.
    with debug_mode(False), drawing_bar(drawing.quiet, total) as advance:
        charts = ChartWriter(formats, drawing.theme, advance)
        for name, result in zip(names, results, strict=True):
            run = result.run
            for chart_name, chart in _charts(run).items():
                charts.add(chart, (out / "charts" / name if apart else out / "charts") / chart_name)
            if each:
                write(f"{PAGES}/{name}/{PAGE}", [run])
        if with_page_of_all:
            write(PAGE, [result.run for result in results])
        charts.finish()


def has_overlay(runs: int) -> bool:
    """Whether so many runs have a page on which they are drawn in the same charts."""
    return 1 < runs <= MOST_ON_A_PAGE


def _charts(result: Run) -> dict[str, alt.LayerChart]:
    from analysis.charts import run_charts

    how = result.analysis.computation
    peaks = [how.peak.peak_tflops_per_second] if how.peak else []
    reasons, parts = partial(word, "reasons"), partial(word, "parts")
    evaluations = result.records["evaluations"]
    curve = result.analysis.reliability.curve
    texts = (peaks, how.formula.name, reasons, parts)
    return run_charts(result.steps, result.time_breakdown, evaluations, *texts, ranks=result.ranks, goodput=curve)
