"""The charts of one run by short names, for notebooks: ``run.charts.time()``."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from analysis.charts.drawn_rows import AXES, NameOf, Rows, axes_of, chart_rows
from analysis.charts.goodput import goodput_chart
from analysis.charts.histogram import time_histogram
from analysis.charts.ranks import ranks_chart
from analysis.charts.run import MOST_DRAWN, with_data
from analysis.charts.series import (
    grad_norm_chart,
    learning_rate_chart,
    loss_chart,
    loss_scale_chart,
    mfu_chart,
    tflops_chart,
    time_chart,
    tokens_chart,
)
from analysis.charts.time_breakdown import time_breakdown_chart
from analysis.run.run import Run
from logparse.errors import InsufficientDataError, unknown_name
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    import altair as alt

# The method of each chart, and the name of its file in the folder of -o.
FILES = {
    "time": "time_per_iteration",
    "throughput": "tokens_per_second_per_device",
    "tflops": "tflops_per_second_per_device",
    "mfu": "mfu",
    "loss": "loss",
    "learning_rate": "learning_rate",
    "grad_norm": "grad_norm",
    "loss_scale": "loss_scale",
    "histogram": "time_histogram",
    "time_breakdown": "time_breakdown",
    "goodput": "goodput",
    "ranks": "ranks",
}


@dataclass(frozen=True)
class RunCharts:
    """The charts of ``run`` as Altair charts; each carries its data.

    A chart along the run takes the axis ``x``: step, consumed_tokens or hours. ``reasons`` and ``parts`` give the texts
    of codes. Every method raises InsufficientDataError if the log has no data for the chart or for the axis, and
    UsageError for an axis that does not exist.
    """

    run: Run
    reasons: NameOf = str
    parts: NameOf = str

    @property
    def names(self) -> list[str]:
        """The methods whose charts have data."""
        return [name for name, file in FILES.items() if file in self._with_data]

    def time(self, x: str = "step") -> alt.LayerChart:
        """Step time in ms, with the median of the counted steps."""
        return time_chart(self.run.steps, x, self._rows("time", x))

    def throughput(self, x: str = "step") -> alt.LayerChart:
        """Tokens per second and device."""
        return tokens_chart(self.run.steps, x, self._rows("throughput", x))

    def tflops(self, x: str = "step") -> alt.LayerChart:
        """TFLOP/s per device by the chosen formula, with the peak of the device."""
        rows, how = self._rows("tflops", x), self.run.analysis.computation
        peaks = [how.peak.peak_tflops_per_second] if how.peak else []
        return tflops_chart(self.run.steps, peaks, how.formula.name, x, rows)

    def mfu(self, x: str = "step") -> alt.LayerChart:
        """MFU, and HFU as a dashed line if activations are recomputed."""
        return mfu_chart(self.run.steps, x, self._rows("mfu", x))

    def loss(self, x: str = "step") -> alt.LayerChart:
        """Training loss, with the loss of evaluations."""
        rows = self._rows("loss", x)
        return loss_chart(self.run.steps, self.run.records["evaluations"], x, rows)

    def learning_rate(self, x: str = "step") -> alt.LayerChart:
        """Learning rate; without data if it never changes."""
        return learning_rate_chart(self.run.steps, x, self._rows("learning_rate", x))

    def grad_norm(self, x: str = "step") -> alt.LayerChart:
        """Gradient norm."""
        return grad_norm_chart(self.run.steps, x, self._rows("grad_norm", x))

    def loss_scale(self, x: str = "step") -> alt.LayerChart:
        """Loss scale of fp16 training; without data if it never changes."""
        return loss_scale_chart(self.run.steps, x, self._rows("loss_scale", x))

    def histogram(self) -> alt.LayerChart:
        """Distribution of the step times that count."""
        self._check("histogram")
        return time_histogram(self.run.steps)

    def time_breakdown(self) -> alt.LayerChart:
        """Where the time of the run went: the share of each part."""
        self._check("time_breakdown")
        return time_breakdown_chart(self.run.time_breakdown, self.parts)

    def goodput(self) -> alt.LayerChart:
        """Goodput over the wall clock."""
        self._check("goodput")
        return goodput_chart(self.run.analysis.reliability.curve)

    def ranks(self) -> alt.LayerChart:
        """By how much each rank is slower than the median of all ranks."""
        self._check("ranks")
        return ranks_chart(self.run.steps, self.run.ranks)

    @cached_property
    def _with_data(self) -> list[str]:
        run = self.run
        return with_data(run.steps, run.time_breakdown, run.ranks, run.analysis.reliability.curve)

    @cached_property
    def _drawn(self) -> Rows:
        return Rows(chart_rows(self.run.steps, self.reasons, MOST_DRAWN))

    def _rows(self, name: str, x: str) -> Rows:
        """The rows of a chart along the axis ``x``."""
        self._check(name)
        if x not in AXES:
            raise unknown_name(msg("axis"), x, AXES, _use(AXES))
        if x not in (axes := axes_of(self.run.steps)):
            raise _no_data(tr("axis"), x, axes)
        return self._drawn

    def _check(self, name: str) -> None:
        if FILES[name] not in self._with_data:
            raise _no_data(tr("chart"), name, self.names)


def _no_data(kind: str, name: str, others: Sequence[str]) -> InsufficientDataError:
    problem = tr("no data in the log for the {kind} {name!r}", kind=kind, name=name)
    return InsufficientDataError(problem, remedy=_use(others) if others else None)


def _use(names: Sequence[str]) -> str:
    return tr("use one of {names}", names=", ".join(names))
