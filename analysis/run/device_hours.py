"""Device-hours of a run, and of many runs by how they ended. Needs the devices and the time of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from analysis.run.result import Analysis


def run_seconds(analysis: Analysis) -> float | None:
    """Seconds of the run: by the clock, or all step lines where there is none; None if no step has a time."""
    return float(analysis.time_breakdown["seconds"].sum()) if len(analysis.time_breakdown) else None


def counted_devices(analysis: Analysis) -> int | None:
    """Devices of the run; None if they are unknown, or a restart changed them."""
    devices = analysis.computation.world_size
    return devices if devices == analysis.latest.world_size else None


def device_hours(analysis: Analysis) -> float | None:
    """Devices times the hours of the run; None if either is unknown."""
    seconds, devices = run_seconds(analysis), counted_devices(analysis)
    return None if seconds is None or devices is None else seconds * devices / 3600


def hours_by_ending(runs: pl.DataFrame) -> pl.DataFrame:
    """``state``, ``family``, ``runs``, ``device_hours`` and ``runs_without_device_hours`` of each kind of ending.

    ``runs`` has ``ending_state``, ``ending_family`` and ``device_hours``. The most device-hours come first.
    """
    ending = {name: pl.col(f"ending_{name}").fill_null("unknown") for name in ("state", "family")}
    groups = runs.group_by(**ending, maintain_order=True).agg(
        runs=pl.len(),
        device_hours=pl.col("device_hours").sum(),
        runs_without_device_hours=pl.col("device_hours").null_count(),
    )
    return groups.sort("device_hours", descending=True, maintain_order=True)
