"""TensorBoard: one file of events for a run, with its scalars, and its facts and first screen as text.

Values are those of ``Summary.Value.simple_value``, 32-bit floats, which TensorBoard and all who import its files read.
SwanLab cannot import a file with the hyperparameters of TensorBoard's plugin, so these are a text too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysis.export.exported_run import ExportedRun
from analysis.export.libraries import library

EXTRA = "tensorboard"
# TensorBoard looks for "tfevents" in the name. One name for all, so that a second export is not a second run.
FILE = "events.out.tfevents.logparse"


def prepare() -> None:
    """Raises UsageError where TensorBoard is not installed."""
    library("tensorboard.compat.proto.event_pb2", EXTRA)


def names(run: str) -> tuple[str, ...]:
    """The files of the run of that name."""
    return (f"{run}/{FILE}",)


def place_of(run: ExportedRun) -> str:
    """The file of ``run``."""
    return f"{run.name}/{FILE}"


def write(run: ExportedRun, folder: Path) -> None:
    """Write the file of ``run`` into ``folder``."""
    event = library("tensorboard.compat.proto.event_pb2", EXTRA).Event
    records = library("tensorboard.summary.writer.record_writer", EXTRA)
    times = run.filled_wall_times()
    first, last = (times[0], times[-1]) if times else (0.0, 0.0)
    (folder / run.name).mkdir()
    with (folder / run.name / FILE).open("wb") as file:
        writer = records.RecordWriter(file)
        writer.write(event(file_version="brain.Event:2", wall_time=first).SerializeToString())
        for tag, text in (("run/page", run.page), ("run/facts", _facts(run))):
            writer.write(event(summary=_text(tag, text), wall_time=first).SerializeToString())
        for (step, values), time in zip(run.rows(), times, strict=True):
            scalars = {one.tag: value for one, value in values.items()}
            writer.write(event(step=step, wall_time=time, summary=_summary(scalars)).SerializeToString())
        figures = {f"run/{name}": value for name, value in run.figures.items()}
        writer.write(event(step=run.last_step, wall_time=last, summary=_summary(figures)).SerializeToString())


def _summary(values: dict[str, float]) -> Any:
    summary = library("tensorboard.compat.proto.summary_pb2", EXTRA).Summary
    return summary(value=[summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])


def _text(tag: str, text: str) -> Any:
    return library("tensorboard.plugins.text.summary_v2", EXTRA).text_pb(tag, text)


def _facts(run: ExportedRun) -> str:
    """The facts as a table in Markdown."""
    rows = (f"| {name} | {str(value).replace('|', '&#124;')} |" for name, value in run.facts.items())
    return "\n".join(("| name | value |", "| --- | --- |", *rows))
