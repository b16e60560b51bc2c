"""What a training job should need and give, before it runs: size, memory, operations, time, devices.

Comes in: a model's shape, a layout, a device. Goes out: figures, each with its formula and the numbers in it.
Nothing here is measured; ``analysis.estimate.against_run`` puts it beside what was.
"""

from __future__ import annotations

from analysis.estimate.job import Estimate, Job, Section, Smallest, estimate
from analysis.estimate.layout import Layout, Training
from analysis.estimate.layout_search import Fit, Fixed
from analysis.estimate.stages import Stage
from analysis.estimate.worked_figure import Figure

__all__ = [
    "Estimate",
    "Figure",
    "Fit",
    "Fixed",
    "Job",
    "Layout",
    "Section",
    "Smallest",
    "Stage",
    "Training",
    "estimate",
]
