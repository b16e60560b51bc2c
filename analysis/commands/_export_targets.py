"""Where ``logparse export`` writes: each target with the function that writes one run or all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from types import ModuleType

import polars as pl

from analysis.batch.run_table import RUNS_COLUMNS, runs_table
from analysis.export import TABLES, TARGETS, TRACKERS, mlflow, swanlab
from analysis.export.exported_run import ExportedRun, exported_run
from analysis.export.exported_tables import tables_of
from analysis.files.outputs import write_table
from analysis.files.result_folder import ResultFolder
from analysis.present.markdown import markdown
from analysis.present.views.analyze import compose
from analysis.run.run import Run
from logparse.errors import UsageError, unknown_name
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass

MODULES: Mapping[str, ModuleType] = {name: import_module(f"analysis.export.{name}") for name in TRACKERS}


@dataclass(frozen=True)
class Export:
    """What ``--to``, ``-o`` and the other options ask for.

    ``experiment`` is the one of MLflow or the project of SwanLab, ``report`` writes the page of a run.
    """

    to: str
    out: str
    force: bool
    experiment: str
    time_zone: str
    report: Callable[[Run], str]

    def check(self, runs: Sequence[str], inputs: Sequence[str]) -> None:
        """Refuse what cannot be written before a log is read: a target, a library, a zone, a file that is there.

        ``runs`` are the names of the runs. Raises UsageError.
        """
        if self.to not in TARGETS:
            raise unknown_name(msg("target"), self.to, TARGETS, tr("use one of {names}", names=", ".join(TARGETS)))
        check_time_zone(self.time_zone)
        if self.to == "mlflow":
            mlflow.tracking_uri(self.out)
        if self.to in MODULES:
            MODULES[self.to].prepare()
        if self.to != "mlflow":
            ResultFolder(self.out).check_files(self.force, self._names(runs), inputs)

    def _names(self, runs: Sequence[str]) -> list[str]:
        """The names of files that are known before the logs are read."""
        if self.to in TABLES:
            return [f"{name}.{self.to}" for name in ("steps", "runs")]
        return [name for run in runs for name in MODULES[self.to].names(run)]

    def write(self, runs: Iterable[Run]) -> Iterator[str]:
        """Write each of ``runs`` as it comes, and say where it is."""
        if self.to in TABLES:
            yield from self._into_tables(runs)
        elif self.to == "mlflow":
            yield from map(self._into_mlflow, runs)
        else:
            yield from map(self._into_files, runs)

    def _exported(self, run: Run) -> ExportedRun:
        row = dict(zip(RUNS_COLUMNS, runs_table([run]).row(0), strict=True))
        return exported_run(run, row, markdown(compose(run)), self.time_zone)

    def _into_files(self, run: Run) -> str:
        exported, folder = self._exported(run), ResultFolder(self.out)
        one = partial(swanlab.write, project=self.experiment) if self.to == "swanlab" else MODULES[self.to].write
        with folder.opened(f"export {self.to} {run.name}", self.force) as temporary:
            one(exported, temporary)
        return _sentence(exported, f"{folder}/{MODULES[self.to].place_of(exported)}")

    def _into_mlflow(self, run: Run) -> str:
        exported = self._exported(run)
        kept = mlflow.write(exported, self.out, self.experiment, self.report(run), self.force)
        if kept.is_new:
            return _sentence(exported, tr("run {id}", id=kept.run_id))
        return tr("{name}: run {id} has all of it; nothing changed", name=run.name, id=kept.run_id)

    def _into_tables(self, runs: Iterable[Run]) -> Iterator[str]:
        exported, folder = [self._exported(run) for run in runs], ResultFolder(self.out)
        if not exported:
            return
        with folder.opened(f"export {self.to}", self.force) as temporary:
            for name, frame in tables_of(exported).items():
                write_table(frame, temporary / name, self.to)
        for one in exported:
            yield _sentence(one, f"{folder}/steps.{self.to}")


def _sentence(run: ExportedRun, place: str) -> str:
    fields = {"name": run.name, "steps": len(run.steps), "series": len(run.series), "place": place}
    return tr("{name}: {steps} steps, {series} series in {place}", **fields)


def check_time_zone(name: str) -> None:
    """Raises UsageError for a time zone that does not exist."""
    try:
        pl.Series([datetime(2000, 1, 1)]).dt.replace_time_zone(name)
    except pl.exceptions.PolarsError as error:
        problem = tr("{name!r} is no time zone", name=name)
        raise UsageError(problem, remedy=tr("give a name such as UTC or Asia/Shanghai")) from error
