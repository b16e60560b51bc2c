"""The charts along a run: what each of them draws, and what it is called. Metrics are those of the registry."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.metrics import DRAWN
from logparse.language import msg


@dataclass(frozen=True)
class Along:
    """A chart along the run: the column it cannot be without, its title, and its numbers as people read them.

    ``scale`` times a value is in ``unit``, with ``digits`` decimals.
    """

    column: str
    title: str
    unit: str = ""
    digits: int = 1
    scale: float = 1.0


# By the name of the chart's file, in the order of the page.
ALONG = {
    "time_per_iteration": Along("step_time_ms", msg("Time per iteration"), "ms"),
    **{m.column: Along(m.column, str(m.chart), m.shown_unit, m.digits, m.scale) for m in DRAWN},
    "loss": Along("loss", msg("Loss"), digits=4),
    "grad_norm": Along("grad_norm", msg("Gradient norm"), digits=3),
    "loss_scale": Along("loss_scale", msg("Loss scale"), digits=0),
}
# Drawn as a dashed line in the chart of another column.
DASHED = {"mfu": "hfu"}
TITLES = {
    **{name: chart.title for name, chart in ALONG.items()},
    "time_histogram": msg("Distribution"),
    "time_breakdown": msg("Where the time went"),
    "goodput": msg("Goodput over time"),
    "ranks": msg("Ranks against each other"),
}
CHART_NAMES = tuple(TITLES)
