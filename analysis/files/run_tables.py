"""The tables of runs: frames by their names, and files that grow as the runs come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from analysis.batch.run_table import overhead_rows, overheads_of, run_row, runs_of
from analysis.files.outputs import GrowingTable
from analysis.run.run import Run
from logparse.schema import RECORD_COLUMNS

# Tables of every run, and those of lines that a run may not have.
OF_EVERY_RUN = ("steps", "summary", "segments", "rates", "time_breakdown")
WHERE_THERE = ("ranks", *RECORD_COLUMNS)
# The tables that a run writes into its folder.
TABLES = ("runs", "overheads", *OF_EVERY_RUN, *WHERE_THERE)


def tables_of_run(run: Run) -> dict[str, pl.DataFrame]:
    """The tables of ``run`` by their names, but for those that have a row for each run or overhead."""
    every = {name: getattr(run.analysis, name) for name in OF_EVERY_RUN}
    return {**every, "ranks": run.ranks, **{name: run.log.records[name] for name in RECORD_COLUMNS}}


def tables_of(results: Sequence[Run]) -> dict[str, pl.DataFrame]:
    """The tables of all ``results`` by their names; those of lines that no run has are left out."""
    if not results:
        return {}
    tables = {
        "runs": runs_of([run_row(run) for run in results]),
        "overheads": overheads_of([row for run in results for row in overhead_rows(run)]),
    }
    each = [tables_of_run(run) for run in results]
    joined = {name: pl.concat(one[name] for one in each) for name in TABLES if name in each[0]}
    return tables | {name: frame for name, frame in joined.items() if name in OF_EVERY_RUN or len(frame)}


class TableFiles:
    """The tables of many runs in ``folder``, in their ``formats``, written as the runs come."""

    def __init__(self, folder: Path, formats: Sequence[str]) -> None:
        self._folder, self._formats = folder, formats
        self._tables: dict[str, GrowingTable] = {}

    def add(self, tables: Mapping[str, pl.DataFrame]) -> None:
        """Add the rows of a run."""
        for name, frame in tables.items():
            if name in OF_EVERY_RUN or len(frame):
                if name not in self._tables:
                    self._tables[name] = GrowingTable(self._folder / name, self._formats)
                self._tables[name].add(frame)

    @property
    def names(self) -> list[str]:
        """The tables that have been begun."""
        return [name for name in TABLES if name in self._tables]

    def finish(self) -> None:
        """Write what waits, so that the files are whole."""
        for table in self._tables.values():
            table.finish()

    def __enter__(self) -> TableFiles:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files, whole or not."""
        for table in self._tables.values():
            table.close()
