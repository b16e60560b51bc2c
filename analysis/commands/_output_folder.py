"""What ``analyze`` leaves in the folder of ``-o``."""

from __future__ import annotations

from collections.abc import Sequence
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


def prepare(out: ResultFolder, force: bool, formats: Sequence[str] | None) -> None:
    """Refuse a folder that holds files, unless ``force``; who draws gets ready while the logs are read.

    Raises UsageError.
    """
    out.check(force)
    if formats is not None:
        from analysis.pictures import studio

        studio()


def write_results(
    results: Sequence[Run],
    out: ResultFolder,
    formats: Sequence[str] | None,
    theme: str | None = None,
    quiet: bool = False,
) -> None:
    """Write the tables of all runs and, unless ``formats`` is None, the page and the charts in those forms.

    What an earlier run left there and this one does not write is deleted.
    """
    with out.opened() as folder:
        written = [write_parquet(frame, folder / f"{name}.parquet") for name, frame in _frames(results).items()]
        if formats is not None:
            written += _write_pictures(results, folder, formats, theme, quiet)
        clear_stale(folder, OUTPUTS, written)


def _frames(results: Sequence[Run]) -> dict[str, pl.DataFrame]:
    import polars as pl

    tables = {
        name: pl.concat(getattr(r.analysis, name) for r in results)
        for name in ("steps", "summary", "segments", "rates", "account")
    }
    records = {name: pl.concat(r.log.records[name] for r in results) for name in RECORD_COLUMNS}
    where_there = {"ranks": pl.concat(r.ranks for r in results)} | records
    return tables | {name: frame for name, frame in where_there.items() if len(frame)}


def _write_pictures(
    results: Sequence[Run], out: Path, formats: Sequence[str], theme: str | None, quiet: bool
) -> list[Path]:
    """The page, made while the charts are drawn beside it."""
    from altair.utils.schemapi import debug_mode

    from analysis.charts import with_data
    from analysis.report import render_page

    total = 1 + sum(len(with_data(r.steps, r.account, r.ranks)) for r in results)
    # Altair's check of every part takes as long as all else; the tests let it check what we make.
    with debug_mode(False), drawing_bar(quiet, total) as tell:
        charts = ChartWriter(formats, theme, tell)
        for result in results:
            folder = out / "charts" / result.log.name if len(results) > 1 else out / "charts"
            for name, chart in _charts(result).items():
                charts.add(chart, folder / name)
        page = write_page(render_page(results), out / PAGE)
        tell()
        return [page, *charts.finish()]


def _charts(result: Run) -> dict[str, alt.LayerChart]:
    from analysis.charts import run_charts

    how = result.analysis.computation
    peaks = [how.peak.peak_tflops_per_second] if how.peak else []
    reasons, parts = partial(word, "reasons"), partial(word, "parts")
    evaluations = result.records["evaluations"]
    return run_charts(result.steps, result.account, evaluations, peaks, how.formula.name, reasons, parts, result.ranks)
