"""MLflow: a run with its facts as parameters, its series and figures as metrics, and its report.

A run is found again by a tag. MLflow cannot change a parameter or take a metric back, so a run that changed is written
anew and the old one goes into MLflow's trash.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from math import isinf
from pathlib import Path
from typing import Any

from analysis.export.exported_run import ExportedRun
from analysis.export.libraries import library
from logparse.errors import InputError, LogparseError, UsageError
from logparse.inputs.stores import is_url, shown
from logparse.language import tr
from logparse.light_dataclass import dataclass

EXTRA = "mlflow"
# Places of runs other than folders: a server, and a database, for which the whole of MLflow must be installed.
DATABASE = "sqlite:///"
SCHEMES = ("http://", "https://", DATABASE)
# A folder is MLflow's file store, which the small client has; a server that does not answer must not take minutes;
# stdout is for our own lines.
SETTINGS = {
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
# Tags: which run it is, and what it holds, set when all of it is there.
IDENTITY, CONTENT = "logparse.identity", "logparse.fingerprint"
# MLflow shows this tag as the description of the run.
NOTE = "mlflow.note.content"
# The most that a server takes at once, and the longest tag.
MOST_METRICS, MOST_PARAMETERS, LONGEST_TAG = 1000, 100, 5000
STATES = {
    "failed": "FAILED",
    **dict.fromkeys(("killed", "cancelled", "preempted", "time_limit", "cut_off"), "KILLED"),
}


@dataclass(frozen=True)
class MlflowRun:
    """Where MLflow has a run; ``is_new`` unless all of it was there before."""

    run_id: str
    is_new: bool


def prepare() -> None:
    """Raises UsageError where MLflow is not installed."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    library("mlflow.tracking", EXTRA)


def tracking_uri(place: str) -> str:
    """The URI of a server, a database or a folder. Raises UsageError for another URL, or one that needs a package."""
    if place.startswith(DATABASE) and find_spec("sqlalchemy") is None:
        problem = tr("{place} needs the whole of MLflow", place=shown(place))
        raise UsageError(problem, remedy=tr("pip install mlflow"))
    if place.startswith(SCHEMES):
        return place
    if is_url(place):
        problem = tr("{place} is no place for MLflow runs", place=shown(place))
        raise UsageError(
            problem, remedy=tr("give a folder, or a URL that begins with {schemes}", schemes=", ".join(SCHEMES))
        )
    return Path(place).absolute().as_uri()


def write(run: ExportedRun, place: str, experiment: str, report: str, force: bool) -> MlflowRun:
    """Keep ``run`` in the ``experiment`` at ``place``, with its ``report`` as an artifact.

    A run whose log became longer, or whose figures changed, replaces the one that is there with ``force``. Raises
    UsageError without it, InputError where MLflow cannot keep the run.
    """
    exceptions = library("mlflow.exceptions", EXTRA)
    try:
        client = library("mlflow.tracking", EXTRA).MlflowClient(tracking_uri(place))
        return _write(client, run, _experiment(client, experiment), report, force)
    except LogparseError:
        raise
    except (exceptions.MlflowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        problem = tr("MLflow at {place} did not keep the run: {reason}", place=shown(place), reason=reason)
        raise InputError(problem, remedy=tr("check that the server runs, and your rights there")) from error


def _experiment(client: Any, name: str) -> str:
    there = client.get_experiment_by_name(name)
    return str(there.experiment_id if there else client.create_experiment(name))


def _write(client: Any, run: ExportedRun, experiment: str, report: str, force: bool) -> MlflowRun:
    earlier = client.search_runs([experiment], f"tags.`{IDENTITY}` = '{run.identity}'")
    for one in earlier:
        if one.data.tags.get(CONTENT) == run.fingerprint:
            return MlflowRun(one.info.run_id, is_new=False)
    if earlier and not force:
        problem = tr("MLflow has {run} with other content: run {id}", run=run.name, id=earlier[0].info.run_id)
        raise UsageError(problem, remedy=tr("replace it with --force, or give another --experiment"))
    run_id = _new(client, run, experiment, report)
    for one in earlier:
        client.delete_run(one.info.run_id)
    return MlflowRun(run_id, is_new=True)


def _new(client: Any, run: ExportedRun, experiment: str, report: str) -> str:
    times = [round(1000 * time) for time in run.filled_wall_times()]
    # MLflow takes the time of the export where the log has no clock.
    begin, end = (times[0] or None, times[-1] or None) if times else (None, None)
    tags = {IDENTITY: run.identity, NOTE: run.page[:LONGEST_TAG]}
    run_id = str(client.create_run(experiment, begin, tags, run.name).info.run_id)
    try:
        entities = library("mlflow.entities", EXTRA)
        parameters = [entities.Param(name, str(value)) for name, value in run.facts.items()]
        for part in _parts(parameters, MOST_PARAMETERS):
            client.log_batch(run_id, params=part, synchronous=True)
        for part in _parts(list(_metrics(run, times, entities.Metric)), MOST_METRICS):
            client.log_batch(run_id, metrics=part, synchronous=True)
        client.log_text(run_id, report, "report.html")
        client.set_tag(run_id, CONTENT, run.fingerprint)
        client.set_terminated(run_id, STATES.get(run.ending or "", "FINISHED"), end)
    except BaseException:
        client.delete_run(run_id)
        raise
    return run_id


def _metrics(run: ExportedRun, times: list[int], metric: Any) -> Iterator[Any]:
    """Every number with its time and step; a server cannot hold an infinite one."""
    for (step, values), time in zip(run.rows(), times, strict=True):
        yield from (metric(one.tag, value, time, step) for one, value in values.items() if not isinf(value))
    last = times[-1] if times else 0
    yield from (metric(f"run/{name}", value, last, run.last_step) for name, value in run.figures.items())


def _parts(values: list[Any], most: int) -> Iterator[list[Any]]:
    return (values[at : at + most] for at in range(0, len(values), most))
