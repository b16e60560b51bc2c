"""OpenMetrics: gauges of a run for the node exporter, and its stamped series for a backfill of Prometheus.

The node exporter refuses a file with time stamps, and without them the samples of a series are one sample. So there are
two files: the figures and the last values, and the whole series where the log has a clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from analysis.export.exported_run import ExportedRun, meaning
from analysis.export.libraries import library

EXTRA = "openmetrics"
# The node exporter reads the files that end so.
LAST, HISTORY = "{name}.prom", "{name}.openmetrics.txt"
PREFIX = "logparse_"
STEP = "optimizer step"
# Labels of a run, next to its name.
LABELS = ("framework", "model", "device", "ending_state")


def prepare() -> None:
    """Raises UsageError where the client of Prometheus is not installed."""
    library("prometheus_client.openmetrics.exposition", EXTRA)


def names(run: str) -> tuple[str, ...]:
    """The file that a run of that name has in any case."""
    return (LAST.format(name=run),)


def place_of(run: ExportedRun) -> str:
    """The file that the node exporter reads."""
    return LAST.format(name=run.name)


def write(run: ExportedRun, folder: Path) -> None:
    """Write the files of ``run`` into ``folder``."""
    (folder / LAST.format(name=run.name)).write_bytes(_text([*_of_run(run), *_last_values(run)]))
    if run.steps["wall_time"].count():
        (folder / HISTORY.format(name=run.name)).write_bytes(_text(list(_histories(run))))


def _text(families: list[Any]) -> bytes:
    class Collected:
        def collect(self) -> list[Any]:
            return families

    text: bytes = library("prometheus_client.openmetrics.exposition", EXTRA).generate_latest(Collected())
    return text


def _gauge(name: str, text: str, labels: Sequence[str] = ("run",)) -> Any:
    return library("prometheus_client.core", EXTRA).GaugeMetricFamily(f"{PREFIX}{name}", text, labels=labels)


def _of_run(run: ExportedRun) -> Iterator[Any]:
    """What the run was, as labels of the number 1, and each of its figures."""
    known = {name: str(run.facts[name]) for name in LABELS if name in run.facts}
    about = _gauge("run_info", "facts of a run", ["run", *known])
    about.add_metric([run.name, *known.values()], 1)
    yield about
    for name, value in run.figures.items():
        figure = _gauge(f"run_{name}", run.meanings[name])
        figure.add_metric([run.name], value)
        yield figure


def _last_values(run: ExportedRun) -> Iterator[Any]:
    """The step and the last value of each series."""
    step = _gauge("step", STEP)
    step.add_metric([run.name], run.last_step)
    yield step
    for one in run.series:
        gauge = _gauge(one.column, meaning(one.meaning, one.unit))
        gauge.add_metric([run.name], run.steps[one.column].drop_nulls()[-1])
        yield gauge


def _histories(run: ExportedRun) -> Iterator[Any]:
    """Each series with its time stamps. A series has one value at a time: of equal stamps the last row."""
    stamped = run.steps.drop_nulls("wall_time").unique("wall_time", keep="last").sort("wall_time")
    series = {one.column: meaning(one.meaning, one.unit) for one in run.series}
    for name, text in {"step": STEP, **series}.items():
        gauge = _gauge(name, text)
        for time, value in stamped.select("wall_time", name).drop_nulls().iter_rows():
            gauge.add_metric([run.name], value, timestamp=time)
        yield gauge
