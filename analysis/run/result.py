"""What the analysis of one run ends in: frames, numbers, and the notes that must be read with them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import polars as pl

from analysis.metrics import BY_COLUMN, OF_ROWS, RATED
from analysis.run.clock.interruptions import Pauses
from analysis.run.rates.throughput import Computation
from analysis.run.rows.streams import MixedRun
from analysis.run.rows.warm_up import FROM_THE_DATA, WarmUpRule
from analysis.run.useful.goodput import Reliability
from logparse.errors import unknown_name
from logparse.findings import Note
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass

STATISTICS = ("median", "mean", "p10", "p90", "n")


@dataclass(frozen=True)
class Analysis:
    """What one run achieved: all rows with their rates, one row per metric, what it was computed with, what to know.

    ``computation`` is of the first start, ``latest`` of the last one, which may have had other settings; ``in_force``
    are those of the rows that the metrics are of.
    ``reliability`` is goodput by the field's terms. ``time_to_train_seconds``: from the line that says that training
    starts to the one that says that it ended; None where one is not there. ``pauses`` are saves and evaluations.
    ``sizes`` are the batches, lengths and numbers of devices that differ, the longest run first, see
    ``rates_by_size``.
    ``warm_up`` is the rule by which rows were left out. ``streams`` are runs that write to one file at the same time.
    """

    steps: pl.DataFrame
    summary: pl.DataFrame
    segments: pl.DataFrame
    rates: pl.DataFrame
    time_breakdown: pl.DataFrame
    ranks: pl.DataFrame
    goodput: float | None
    computation: Computation
    flops_per_iteration: float | None
    notes: tuple[Note, ...]
    latest: Computation
    in_force: tuple[Computation, ...]
    reliability: Reliability
    sizes: pl.DataFrame
    pauses: Pauses
    warm_up: WarmUpRule = FROM_THE_DATA
    time_to_train_seconds: float | None = None
    streams: tuple[MixedRun, ...] = ()

    @property
    def impossible(self) -> tuple[str, ...]:
        """Metrics of which the median, one of the named rates or, of goodput, the run is more than can be."""
        rated = {metric.column: [self.value(metric.column), *self.rates[metric.column]] for metric in RATED}
        values = rated | {"goodput": [self.goodput]}
        return tuple(name for name, all_of in values.items() if any(map(BY_COLUMN[name].impossible, all_of)))

    @property
    def has_clock(self) -> bool:
        """Whether time stamps show how long the whole run took."""
        return self.rate("wall_clock")["step_time_ms"] is not None

    @property
    def seconds(self) -> float | None:
        """Seconds of the run: by the clock, or all step lines where there is none; None if no step has a time."""
        return float(self.time_breakdown["seconds"].sum()) if len(self.time_breakdown) else None

    @property
    def devices(self) -> int | None:
        """Devices of the run; None if they are unknown, or a restart changed them."""
        devices = self.computation.world_size
        return devices if devices == self.latest.world_size else None

    @property
    def device_hours(self) -> float | None:
        """Devices times the hours of the run; None if either is unknown."""
        seconds, devices = self.seconds, self.devices
        return None if seconds is None or devices is None else seconds * devices / 3600

    def value(self, metric: str, statistic: str = "median") -> float | None:
        """One number of the summary; None where it could not be computed.

        Raises UsageError for a metric or a statistic that does not exist, with those that do.
        """
        names = [known.column for known in OF_ROWS]
        if metric not in names:
            raise unknown_name(msg("metric"), metric, names, tr("use one of {names}", names=", ".join(names)))
        if statistic not in STATISTICS:
            remedy = tr("use one of {names}", names=", ".join(STATISTICS))
            raise unknown_name(msg("statistic"), statistic, STATISTICS, remedy)
        number: float | None = self._statistics[metric][statistic]
        return number

    def computed_with(self, metric: str) -> tuple[Computation, ...]:
        """The computation of the first start; of an unknown ``metric`` those that may say why it is unknown."""
        return self.in_force if self.value(metric) is None else (self.computation,)

    def rate(self, name: str) -> dict[str, Any]:
        """The row of ``rates`` called ``name``."""
        return self._rates[name]

    @cached_property
    def _rates(self) -> dict[str, dict[str, Any]]:
        return {row["rate"]: row for row in self.rates.iter_rows(named=True)}

    @cached_property
    def _statistics(self) -> dict[str, dict[str, Any]]:
        """The rows of ``summary`` by their metric."""
        return {row["metric"]: row for row in self.summary.iter_rows(named=True)}
