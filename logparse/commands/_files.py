"""What ``analyze`` leaves in the folder of ``-o``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.outputs import clear_stale, prepare_folder, write_charts, write_parquet
from logparse.commands._results import RunResult
from logparse.schema import RECORD_COLUMNS

if TYPE_CHECKING:
    import polars as pl

# What a run writes into its folder; --force clears these, and nothing else, of an earlier run.
TABLES = ("steps", "summary", "segments", "rates", "account", *RECORD_COLUMNS)
OUTPUTS = (*(f"{name}.parquet" for name in TABLES), "charts")


def write_results(results: Sequence[RunResult], out: Path, charts: bool) -> None:
    """Write the tables of all runs and, with ``charts``, their pictures; delete what an earlier run left."""
    prepare_folder(out)
    written = [write_parquet(frame, out / f"{name}.parquet") for name, frame in _frames(results).items()]
    for result in results if charts else ():
        folder = out / "charts" / result.log.name if len(results) > 1 else out / "charts"
        written += _write_charts(result, folder)
    clear_stale(out, OUTPUTS, written)


def _frames(results: Sequence[RunResult]) -> dict[str, pl.DataFrame]:
    import polars as pl

    tables = {
        name: pl.concat(getattr(r.analysis, name) for r in results)
        for name in ("steps", "summary", "segments", "rates", "account")
    }
    records = {name: pl.concat(r.log.records[name] for r in results) for name in RECORD_COLUMNS}
    return tables | {name: frame for name, frame in records.items() if len(frame)}


def _write_charts(result: RunResult, folder: Path) -> list[Path]:
    from analysis.charts import run_charts

    how = result.analysis.computation
    peak = how.peak.peak_tflops_per_second if how.peak else None
    return write_charts(run_charts(result.analysis.steps, peak, how.formula.name), folder)
