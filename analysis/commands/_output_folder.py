"""What ``analyze`` leaves in the folder of ``-o``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.commands._progress import drawing_bar
from analysis.outputs import ChartWriter, clear_stale, write_page, write_parquet
from analysis.pipeline.run import Run
from analysis.result_folder import ResultFolder
from analysis.screens.words import word
from logparse.schema import RECORD_COLUMNS

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

PAGE = "report.html"
# What a run writes into its folder; --force clears these, and nothing else, of an earlier run.
TABLES = ("steps", "summary", "segments", "rates", "account", "ranks", *RECORD_COLUMNS)
OUTPUTS = (*(f"{name}.parquet" for name in TABLES), "charts", PAGE)


@dataclass(frozen=True)
class DrawingOptions:
    """How results are drawn: the ``formats`` of the charts (None: nothing is drawn) and their ``theme``.

    Where it is ``quiet``, nobody is told how far it has come. ``command`` is what stands at the foot of the page.
    """

    formats: Sequence[str] | None
    theme: str | None = None
    quiet: bool = False
    command: str = ""

    def prepare(self) -> None:
        """Let the processes that draw start while the logs are read."""
        if self.formats is not None:
            from analysis.pictures import drawing_pool

            drawing_pool()


def write_results(results: Sequence[Run], out: ResultFolder, drawing: DrawingOptions) -> None:
    """Write the tables of all runs and, unless nothing is drawn, the page and the charts.

    What an earlier run left there and this one does not write is deleted.
    """
    with out.opened() as folder:
        write_into(folder, results, drawing, apart=len(results) > 1)


def write_into(folder: Path, results: Sequence[Run], drawing: DrawingOptions, apart: bool) -> None:
    """``write_results`` into ``folder``; charts of runs that stand ``apart`` have a folder for each run."""
    written = [write_parquet(frame, folder / f"{name}.parquet") for name, frame in tables_of(results).items()]
    if drawing.formats is not None and results:
        written += _write_pictures(results, folder, drawing.formats, drawing, apart)
    clear_stale(folder, OUTPUTS, written)


def tables_of(results: Sequence[Run]) -> dict[str, pl.DataFrame]:
    """The tables of all ``results`` by their names; those of lines that no run has are left out."""
    import polars as pl

    if not results:
        return {}
    tables = {
        name: pl.concat(getattr(r.analysis, name) for r in results)
        for name in ("steps", "summary", "segments", "rates", "account")
    }
    records = {name: pl.concat(r.log.records[name] for r in results) for name in RECORD_COLUMNS}
    where_there = {"ranks": pl.concat(r.ranks for r in results)} | records
    return tables | {name: frame for name, frame in where_there.items() if len(frame)}


def _write_pictures(
    results: Sequence[Run], out: Path, formats: Sequence[str], drawing: DrawingOptions, apart: bool
) -> list[Path]:
    """The page, made while the charts are drawn beside it."""
    from altair.utils.schemapi import debug_mode

    from analysis.charts import with_data
    from analysis.report import render_page

    total = 1 + sum(len(with_data(r.steps, r.account, r.ranks, r.analysis.field.curve)) for r in results)
    # Altair's check of every part takes as long as all else; the tests let it check what we make.
    with debug_mode(False), drawing_bar(drawing.quiet, total) as tell:
        charts = ChartWriter(formats, drawing.theme, tell)
        for result in results:
            folder = out / "charts" / result.log.name if apart else out / "charts"
            for name, chart in _charts(result).items():
                charts.add(chart, folder / name)
        page = write_page(render_page(results, command=drawing.command), out / PAGE)
        tell()
        return [page, *charts.finish()]


def _charts(result: Run) -> dict[str, alt.LayerChart]:
    from analysis.charts import run_charts

    how = result.analysis.computation
    peaks = [how.peak.peak_tflops_per_second] if how.peak else []
    reasons, parts = partial(word, "reasons"), partial(word, "parts")
    evaluations = result.records["evaluations"]
    curve = result.analysis.field.curve
    said = (peaks, how.formula.name, reasons, parts)
    return run_charts(result.steps, result.account, evaluations, *said, ranks=result.ranks, goodput=curve)
