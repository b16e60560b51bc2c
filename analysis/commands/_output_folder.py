"""What ``analyze`` leaves in the folder of ``-o``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.outputs import clear_stale, write_charts, write_page, write_parquet
from analysis.pipeline.run import Run
from analysis.result_folder import ResultFolder
from analysis.screens.words import word
from logparse.schema import RECORD_COLUMNS

if TYPE_CHECKING:
    import polars as pl

PAGE = "report.html"
# What a run writes into its folder; --force clears these, and nothing else, of an earlier run.
TABLES = ("steps", "summary", "segments", "rates", "account", "ranks", *RECORD_COLUMNS)
OUTPUTS = (*(f"{name}.parquet" for name in TABLES), "charts", PAGE)


def write_results(
    results: Sequence[Run], out: ResultFolder, formats: Sequence[str] | None, theme: str | None = None
) -> None:
    """Write the tables of all runs and, unless ``formats`` is None, the page and the charts in those forms.

    What an earlier run left there and this one does not write is deleted.
    """
    with out.opened() as folder:
        write_into(folder, results, formats, theme, apart=len(results) > 1)


def write_into(
    folder: Path, results: Sequence[Run], formats: Sequence[str] | None, theme: str | None, apart: bool
) -> None:
    """``write_results`` into ``folder``; charts of runs that stand ``apart`` have a folder for each run."""
    written = [write_parquet(frame, folder / f"{name}.parquet") for name, frame in tables_of(results).items()]
    if formats is not None and results:
        written += _write_pictures(results, folder, formats, theme, apart)
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
    results: Sequence[Run], out: Path, formats: Sequence[str], theme: str | None, apart: bool
) -> list[Path]:
    from analysis.report import render_page

    written = [write_page(render_page(results), out / PAGE)]
    for result in results:
        folder = out / "charts" / result.log.name if apart else out / "charts"
        written += _write_charts(result, folder, formats, theme)
    return written


def _write_charts(result: Run, folder: Path, formats: Sequence[str], theme: str | None) -> list[Path]:
    from analysis.charts import run_charts

    how = result.analysis.computation
    peaks = [how.peak.peak_tflops_per_second] if how.peak else []
    reasons, parts = partial(word, "reasons"), partial(word, "parts")
    evaluations = result.records["evaluations"]
    charts = run_charts(
        result.steps, result.account, evaluations, peaks, how.formula.name, reasons, parts, result.ranks
    )
    return write_charts(charts, folder, formats, theme)
