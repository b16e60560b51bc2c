"""What is kept of a run after it was read: rows, tables to write, and what is printed of it.

It is made where the run is read, so that a worker sends no more than that. Of thousands of runs little is held in
memory.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from io import SEEK_END
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from analysis.batch.run_table import overhead_rows, run_row
from analysis.files.run_tables import tables_of_run
from analysis.present.parts import Part
from analysis.present.views.analyze import compose
from analysis.present.views.analyze_json import run_document
from analysis.present.views.first_screen import quiet_line
from analysis.run.build import analyze_parts
from analysis.run.checks.target_verdicts import Judgement, judge
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.decode.read_run import Watch
from logparse.light_dataclass import dataclass, replace

if TYPE_CHECKING:
    import polars as pl

# Runs whose output is held in memory; that of more lies in a file until it is wanted.
MOST_HELD = 12


@dataclass(frozen=True)
class WantedOfRun:
    """What is wanted of each run: its ``tables``, the ``run`` itself for its page, and what is printed of it.

    That is its ``document`` of JSON, its ``line``, or its ``parts``, all where ``verbose``. ``price`` is that of a
    device-hour.
    """

    tables: bool = False
    run: bool = False
    document: bool = False
    line: bool = False
    parts: bool = False
    verbose: bool = False
    price: float | None = None


@dataclass(frozen=True)
class RunOutput:
    """What is large of a run; what was not wanted is empty. ``document`` is text of JSON."""

    run: Run | None = None
    document: str = ""
    parts: Sequence[Part] = ()


@dataclass(frozen=True)
class Held:
    """An output that is held in memory."""

    held: RunOutput

    def __call__(self) -> RunOutput:
        return self.held


@dataclass(frozen=True)
class RunResult:
    """What is kept of a run. ``first_line`` is that of its first step. ``charts`` are those that its page has."""

    name: str
    row: tuple[Any, ...]
    overheads: tuple[tuple[Any, ...], ...]
    judgements: tuple[Judgement, ...]
    first_line: int
    charts: int
    line: str
    tables: dict[str, pl.DataFrame]
    output: Callable[[], RunOutput]

    @property
    def run(self) -> Run:
        """The run itself, where it was wanted."""
        run = self.output().run
        if run is None:
            raise ValueError(self.name)
        return run


def result_of(run: Run, wanted: WantedOfRun) -> RunResult:
    """What is ``wanted`` of ``run``."""
    output = RunOutput(
        run=run if wanted.run else None,
        document=json.dumps(run_document(run, wanted.price), allow_nan=False) if wanted.document else "",
        parts=compose(run, wanted.verbose, wanted.price) if wanted.parts else (),
    )
    return RunResult(
        name=run.name,
        row=run_row(run),
        overheads=overhead_rows(run),
        judgements=judge(run),
        first_line=run.steps["line_number"][0],
        charts=_count_charts(run) if wanted.run else 0,
        line=quiet_line(run) if wanted.line else "",
        tables=tables_of_run(run) if wanted.tables else {},
        output=Held(output),
    )


def read_results(
    logs: Sequence[str], how: RunOptions, name: str, watch: Watch | None = None, *, wanted: WantedOfRun, split: bool
) -> list[RunResult]:
    """What is ``wanted`` of each run in ``logs``. Raises as ``analyze_parts``."""
    return [result_of(run, wanted) for run in analyze_parts(logs, how, name, watch, split)]


def _count_charts(run: Run) -> int:
    from analysis.charts import with_data

    return len(with_data(run.steps, run.time_breakdown, run.ranks, run.analysis.reliability.curve))


class OutputStore:
    """Outputs of runs in a temporary file, but for the first ones, which are held."""

    def __init__(self) -> None:
        self._file, self._held = TemporaryFile(), 0  # noqa: SIM115

    def __enter__(self) -> OutputStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def keep(self, result: RunResult) -> RunResult:
        """``result`` without its tables, and with its output where it needs little memory."""
        output = result.output()
        if self._held < MOST_HELD or output == RunOutput():
            self._held += 1
            return replace(result, tables={})
        data, place = pickle.dumps(output), self._file.seek(0, SEEK_END)
        self._file.write(data)
        return replace(result, tables={}, output=partial(self._load, place, len(data)))

    def _load(self, place: int, size: int) -> RunOutput:
        self._file.seek(place)
        output: RunOutput = pickle.loads(self._file.read(size))
        return output
