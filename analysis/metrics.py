"""The registry of metrics: every number of a run that is summarized, shown, drawn, kept, judged or exported.

Summary, screens, charts, report, history, verdict, exports and docs iterate this registry. To add a metric, add it here
and a word for its label in each language. A metric of rows has an ``expression`` and is a column of the steps; one of
runs is computed elsewhere and kept in the history.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import polars as pl

from logparse.language import msg
from logparse.light_dataclass import dataclass, field

# By the unit of a column: the unit that people read.
READ_AS = {"ratio": "%", "bytes": "GB"}
# The mark after an impossible number.
IMPOSSIBLE = "!"


@dataclass(frozen=True)
class Inputs:
    """What the rates of a row are computed with: expressions over the steps, null where unknown.

    The FLOPs are of one sample of the row's length: ``formula_flops`` by the chosen formula, ``model_flops`` of the
    real model, ``executed_flops`` the same with recomputation. ``peak`` is that of one device in TFLOP/s.
    ``tokens_per_step`` is what the log counts, for rows whose batch or length is unknown. ``computed`` are the metrics
    before this one.
    """

    devices: pl.Expr
    peak: pl.Expr
    formula_flops: pl.Expr
    model_flops: pl.Expr
    executed_flops: pl.Expr
    tokens_per_step: pl.Expr = field(default_factory=lambda: pl.lit(None, pl.Float64))
    computed: dict[str, pl.Expr] = field(default_factory=dict)


Expression = Callable[[Inputs], pl.Expr]


@dataclass(frozen=True)
class Metric:
    """One metric. ``scale`` times a value is in ``shown_unit``, with ``digits`` decimals.

    ``worse`` is +1 where more of it is worse, -1 where less is, None where it is not judged: another metric says the
    same. ``needs`` names the quantities without which it is unknown. ``row_column`` is the column of the steps it is
    summarized from; ``expression`` computes it there. ``rated`` metrics are given for each named rate, ``headline``
    ones are first on the page; ``chart`` is the title of its chart along the run. Above ``most`` a value cannot be.
    ``offset`` is added to a share that may be 0 before two of them are compared: 3 % more are 3 % of the steps.
    """

    column: str
    unit: str
    label: str
    meaning: str
    scale: float = 1.0
    digits: int = 1
    worse: Literal[1, -1] | None = None
    needs: tuple[str, ...] = ()
    row_column: str | None = None
    expression: Expression | None = None
    rated: bool = False
    headline: bool = False
    chart: str | None = None
    most: float | None = None
    offset: float = 0.0

    @property
    def is_speed(self) -> bool:
        """Whether it is a time of steps or a rate: less work makes it look better."""
        return self.unit == "ms" or self.rated

    @property
    def shown_unit(self) -> str:
        """The unit people read it in."""
        return READ_AS.get(self.unit, self.unit)

    @property
    def direction(self) -> Literal[1, -1]:
        """``worse`` of a metric that is judged. Raises ValueError for one that is not."""
        if self.worse is None:
            raise ValueError(f"{self.column} is not judged")
        return self.worse

    def text(self, value: float | None) -> str:
        """``value`` of the column as people read it, without its unit; a hyphen where it is unknown.

        One that cannot be is marked.
        """
        return "-" if value is None else f"{value * self.scale:,.{self.digits}f}{self.mark(value)}"

    def mark(self, value: float | None) -> str:
        """The mark to print after ``value``: empty unless the value is impossible."""
        return IMPOSSIBLE if self.impossible(value) else ""

    def impossible(self, value: float | None) -> bool:
        """Whether no device or clock gives ``value``."""
        return value is not None and self.most is not None and value > self.most


_COUNT = ("world_size", "global_batch_size")
_TOKENS = (*_COUNT, "seq_length")
_FLOPS = (*_TOKENS, "num_layers", "hidden_size", "padded_vocab_size")
_SECONDS = pl.col("step_time_ms") / 1000


def _rate(column: str, unit: str, label: str, meaning: str, needs: tuple[str, ...], **more: object) -> Metric:
    return Metric(column, unit, label, meaning, needs=needs, row_column=column, **more)  # type: ignore[arg-type]


def _time(column: str, label: str, meaning: str) -> Metric:
    return Metric(column, "ms", label, meaning, worse=1)


def _tflops(flops: Expression) -> Expression:
    return lambda inputs: inputs.computed["samples_per_second_per_device"] * flops(inputs) / 1e12


METRICS = (
    Metric(
        "elapsed_time_per_iteration_ms",
        "ms",
        msg("step time"),
        "time of one optimizer step",
        row_column="step_time_ms",
        headline=True,
    ),
    _time("steady_step_time_ms", msg("step time, steady"), "median over the rows that count"),
    _time("with_stalls_step_time_ms", msg("step time, including stalls"), "stalls in, warm-up and replay out"),
    _time("all_steps_step_time_ms", msg("step time, all steps"), "the time of all step lines"),
    _time("wall_clock_step_time_ms", msg("step time, wall clock"), "the clock from the first stamp to the last"),
    _rate(
        "samples_per_second_per_device",
        "samples/s/p",
        msg("samples/s/p"),
        "global_batch_size / step time / devices",
        _COUNT,
        digits=4,
        expression=lambda inputs: pl.when(pl.col("step_time_ms") > 0).then(
            pl.col("global_batch_size") / (_SECONDS * inputs.devices)
        ),
        rated=True,
    ),
    _rate(
        "tokens_per_second_per_device",
        "tokens/s/p",
        msg("tokens/s/p"),
        "samples/s/p times sequence length",
        _TOKENS,
        worse=-1,
        expression=lambda inputs: pl.coalesce(
            inputs.computed["samples_per_second_per_device"] * pl.col("seq_length"),
            pl.when(pl.col("step_time_ms") > 0).then(inputs.tokens_per_step / (_SECONDS * inputs.devices)),
        ),
        rated=True,
        headline=True,
        chart=msg("Tokens per second per device"),
    ),
    _rate(
        "tflops_per_second_per_device",
        "TFLOP/s/p",
        msg("TFLOP/s/p"),
        "FLOPs by the chosen formula per second and device",
        _FLOPS,
        digits=2,
        worse=-1,
        expression=_tflops(lambda inputs: inputs.formula_flops),
        rated=True,
        headline=True,
        chart=msg("TFLOP/s per device"),
    ),
    _rate(
        "peak_utilization",
        "ratio",
        msg("peak utilization"),
        "TFLOP/s by the chosen formula over the device's peak",
        (*_FLOPS, "peak"),
        scale=100.0,
        most=1.0,
        digits=2,
        expression=lambda inputs: inputs.computed["tflops_per_second_per_device"] / inputs.peak,
        rated=True,
    ),
    _rate(
        "mfu",
        "ratio",
        msg("MFU"),
        "FLOPs of the real model over the device's peak",
        (*_TOKENS, "the shape", "peak"),
        scale=100.0,
        most=1.0,
        digits=2,
        worse=-1,
        expression=lambda inputs: _tflops(lambda _: inputs.model_flops)(inputs) / inputs.peak,
        rated=True,
        headline=True,
        chart=msg("MFU"),
    ),
    _rate(
        "hfu",
        "ratio",
        msg("HFU"),
        "FLOPs of the real model and of what is recomputed over the device's peak",
        (*_TOKENS, "the shape", "recompute", "peak"),
        scale=100.0,
        most=1.0,
        digits=2,
        expression=lambda inputs: _tflops(lambda _: inputs.executed_flops)(inputs) / inputs.peak,
        rated=True,
    ),
    Metric("goodput", "ratio", msg("goodput"), "useful steps over the clock", 100.0, 2, -1, most=1.0),
    Metric(
        "max_memory_allocated_bytes",
        "bytes",
        msg("peak memory allocated"),
        "largest memory allocated on a device",
        1e-9,
        digits=2,
        worse=1,
    ),
    Metric(
        "max_memory_reserved_bytes",
        "bytes",
        msg("peak memory reserved"),
        "largest memory reserved on a device",
        1e-9,
        digits=2,
        worse=1,
    ),
)
FINAL_LOSS = Metric(
    "final_loss", "", msg("final loss"), "mean of the last 10 losses at steps that all runs did", digits=4, worse=1
)
# Metrics that show whether a run still trains. They are kept of recorded runs, and judged.
HEALTH = (
    FINAL_LOSS,
    Metric(
        "time_to_train_seconds",
        "s",
        msg("time to train"),
        "from the line that training starts to the one that it ended",
        worse=1,
    ),
    _time("step_time_p95_ms", msg("step time, 95th percentile"), "95th percentile, stalls in"),
    Metric("grad_norm", "", msg("gradient norm"), "median of the rows that count", digits=3, worse=1),
    Metric("skipped_share", "ratio", msg("skipped updates"), "share of the steps", 100.0, 2, worse=1, offset=1.0),
    Metric("nan_share", "ratio", msg("steps with a NaN"), "share of the steps", 100.0, 2, worse=1, offset=1.0),
)
BY_COLUMN = {metric.column: metric for metric in METRICS}
# Metrics of rows: one number per step, summarized over the rows that count.
OF_ROWS = tuple(metric for metric in METRICS if metric.row_column)
# Metrics that are columns of the steps, each computed from those before it.
COMPUTED = tuple(metric for metric in METRICS if metric.expression)
RATED = tuple(metric for metric in METRICS if metric.rated)
HEADLINE = tuple(metric for metric in METRICS if metric.headline)
DRAWN = tuple(metric for metric in METRICS if metric.chart)
# Metrics that a release is judged by.
JUDGED = {metric.column: metric for metric in (*METRICS, *HEALTH) if metric.worse}
# Those that are judged where none is named: the first, and those that guard what it does not see, where both sides have
# them. A median does not move where a tenth of the steps take four times as long.
GUARDED = (
    "steady_step_time_ms",
    "with_stalls_step_time_ms",
    "step_time_p95_ms",
    "goodput",
    "final_loss",
    "skipped_share",
    "nan_share",
    "max_memory_allocated_bytes",
)
# The losses that two sides may print, each compared by itself, and the norm of the gradients next to them.
LOSSES = {
    "loss": msg("loss"),
    "load_balancing_loss": msg("load balancing loss"),
    "mtp_loss": msg("MTP loss"),
    "grad_norm": msg("gradient norm"),
}
# How far each of them is apart over the common steps of two sides.
DISTANCES = {
    metric.column: metric
    for name, label in LOSSES.items()
    for metric in (
        Metric(f"{name}_mre", "ratio", label, "mean of the relative differences", 100.0, 3, 1),
        Metric(f"{name}_mae", "", label, "mean of the absolute differences", digits=6, worse=1),
        Metric(f"{name}_largest", "ratio", label, "largest relative difference", 100.0, 3, 1),
    )
}
# Further metrics of two sides with so many runs each: with fewer a larger family of tests hides a broken loss.
FROM_RUNS = {"step_time_p95_ms": 5, "max_memory_allocated_bytes": 5}
# Those whose course over runs is shown: relative changes of a share that may be 0 are none.
FOLLOWED = {name: metric for name, metric in JUDGED.items() if not metric.offset}

# The named rates: median of the steady steps, useful steps with their stalls, all step lines, first to last stamp.
RATES = ("steady", "with_stalls", "all_steps", "wall_clock")
