"""The charts along a run: what each of them draws, and what it is called. Metrics are those of the registry."""

from __future__ import annotations

from analysis.metrics import DRAWN
from logparse.language import msg
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Along:
    """A chart along the run: the column it cannot be without, its title, and its numbers as people read them.

    ``scale`` times a value is in ``unit``, with ``digits`` decimals, or in ``significant`` digits where that is given.
    """

    column: str
    title: str
    unit: str = ""
    digits: int = 1
    scale: float = 1.0
    significant: int | None = None


# By the name of the chart's file, in the order of the page.
ALONG = {
    "loss": Along("loss", msg("Loss"), digits=4),
    "learning_rate": Along("learning_rate", msg("Learning rate"), significant=3),
    "time_per_iteration": Along("step_time_ms", msg("Step time"), "ms"),
    **{m.column: Along(m.column, str(m.chart), m.shown_unit, m.digits, m.scale) for m in DRAWN},
    "grad_norm": Along("grad_norm", msg("Gradient norm"), digits=3),
    "loss_scale": Along("loss_scale", msg("Loss scale"), digits=0),
}
# Drawn as a dashed line in the chart of another column.
DASHED = {"mfu": "hfu"}
TITLES = {
    **{name: chart.title for name, chart in ALONG.items()},
    "time_histogram": msg("Distribution of the step time"),
    "time_breakdown": msg("Time breakdown"),
    "goodput": msg("Goodput over time"),
    "ranks": msg("Comparison of ranks"),
}
CHART_NAMES = tuple(TITLES)
# One sentence for a reader who asks what a chart shows.
HELP = {
    "loss": msg("Training loss of every step; hollow circles are evaluations."),
    "learning_rate": msg("Learning rate of every step, as the log prints it."),
    "time_per_iteration": msg("Time of every optimizer step; saves and evaluations are marked at the bottom."),
    "tokens_per_second_per_device": msg("Tokens trained per second on each device, higher is better."),
    "tflops_per_second_per_device": msg("FLOPs of the formula per second on each device, higher is better."),
    "mfu": msg("FLOPs of the real model over the peak of the device, higher is better."),
    "grad_norm": msg("Norm of the gradients; a sudden rise often precedes a jump of the loss."),
    "loss_scale": msg("Factor that keeps fp16 gradients in range; it halves when a gradient overflows."),
    "time_histogram": msg("Share of the steps by their time; several peaks mean several speeds."),
    "time_breakdown": msg("Share of the wall clock by what the run did."),
    "goodput": msg("Productive time over the wall clock, since the start and over the last hour."),
    "ranks": msg("Step time of each rank relative to the others; a slow rank delays all."),
}
