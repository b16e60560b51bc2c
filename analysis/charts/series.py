"""Charts of one value along the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.charts.along import ALONG, DASHED
from analysis.charts.drawn_rows import DIGITS, EVALUATIONS, Rows, chart_rows, evaluation_rows
from analysis.charts.plot import HEIGHT, MANY_EXCLUDED, WIDTH, Ends, Plot, Rule, Series
from analysis.charts.unchecked import layered, unchecked
from analysis.metrics import BY_COLUMN, Metric
from analysis.run.rows.exclusion_reasons import COPY
from logparse.language import msg, tr

if TYPE_CHECKING:
    import altair as alt


# Between the parts of a subtitle.
SEPARATOR = " | "


def time_chart(steps: pl.DataFrame, x: str = "step", rows: Rows | None = None) -> alt.LayerChart:
    """Time of every step, with the median of those that count."""
    medians = steps.filter("counted").group_by("run", maintain_order=True).agg(pl.col("step_time_ms").median())
    words = msg("dashed: median {value} ms")
    rules = [Rule(ms, tr(words, value=f"{ms:,.1f}"), run, on_top=True) for run, ms in medians.drop_nulls().rows()]
    series = _series("time_per_iteration", "ms", ",.1~f", clip=True)
    return draw_series(series, steps, x, rows, rules)


def metric_chart(metric: Metric, steps: pl.DataFrame, x: str = "step", rows: Rows | None = None) -> alt.LayerChart:
    """A metric of the registry that is drawn."""
    return draw_series(_of_metric(metric), steps, x, rows)


def tokens_chart(steps: pl.DataFrame, x: str = "step", rows: Rows | None = None) -> alt.LayerChart:
    """Tokens per second and device."""
    return metric_chart(BY_COLUMN["tokens_per_second_per_device"], steps, x, rows)


def tflops_chart(
    steps: pl.DataFrame,
    peaks: Sequence[float] = (),
    formula: str | None = None,
    x: str = "step",
    rows: Rows | None = None,
) -> alt.LayerChart:
    """TFLOP/s per device, with the devices' peaks where they are known."""
    series = _of_metric(BY_COLUMN["tflops_per_second_per_device"])
    if formula:
        series = replace(series, title=tr("TFLOP/s per device, formula {formula}", formula=formula))
    rules = [Rule(peak, tr("peak {value} TFLOP/s", value=f"{peak:g}")) for peak in sorted(set(peaks))]
    return draw_series(series, steps, x, rows, rules)


def mfu_chart(steps: pl.DataFrame, x: str = "step", rows: Rows | None = None) -> alt.LayerChart:
    """MFU, and HFU as a dashed line where activations are recomputed."""
    differ = steps.select(((pl.col("hfu") - pl.col("mfu")).abs() > 1e-9).any()).item()
    series = replace(_of_metric(BY_COLUMN["mfu"]), unit=tr("share of the peak"))
    if differ:
        series = replace(series, title=tr("MFU; dashed: HFU"))
    return draw_series(series, steps, x, rows, dashed=DASHED["mfu"] if differ else None)


def loss_chart(
    steps: pl.DataFrame, evaluations: pl.DataFrame | None = None, x: str = "step", rows: Rows | None = None
) -> alt.LayerChart:
    """Training loss, with the loss of evaluations where there are any."""
    placed = None if evaluations is None or evaluations.is_empty() else evaluation_rows(steps, evaluations)
    series = _series("loss", tr("loss"), ".5~g", from_zero=False, of_time=False)
    return draw_series(series, steps, x, rows, evaluations=placed)


def learning_rate_chart(steps: pl.DataFrame, x: str = "step", rows: Rows | None = None) -> alt.LayerChart:
    """Learning rate of every step."""
    series = _series("learning_rate", tr("learning rate"), ".3~g", from_zero=False, of_time=False)
    return draw_series(series, steps, x, rows)


def grad_norm_chart(steps: pl.DataFrame, x: str = "step", rows: Rows | None = None) -> alt.LayerChart:
    """Norm of the gradients; on a logarithmic scale where the greatest would flatten all others."""
    base = 10 if wide(steps["grad_norm"]) else None
    return draw_series(_series("grad_norm", tr("norm"), ".4~g", base=base, of_time=False), steps, x, rows)


def loss_scale_chart(steps: pl.DataFrame, x: str = "step", rows: Rows | None = None) -> alt.LayerChart:
    """Factor that keeps fp16 gradients in range: powers of two."""
    base = 2 if wide(steps["loss_scale"], 1) else None
    return draw_series(_series("loss_scale", tr("factor"), ",~r", base=base, of_time=False), steps, x, rows)


def _series(name: str, unit: str, style: str, **how: Any) -> Series:
    return Series(ALONG[name].column, tr(ALONG[name].title), unit, style, **how)


def _of_metric(metric: Metric) -> Series:
    if metric.unit == "ratio":
        return _series(metric.column, tr(metric.label), f".{metric.digits}~%")
    return _series(metric.column, metric.unit, f",.{metric.digits}~f")


@unchecked
def draw_series(
    series: Series,
    steps: pl.DataFrame,
    x: str,
    rows: Rows | None,
    rules: Sequence[Rule] = (),
    dashed: str | None = None,
    evaluations: pl.DataFrame | None = None,
) -> alt.LayerChart:
    """Put the layers together. ``rows`` are those of ``steps``, where the caller has them at hand."""
    import altair as alt

    rows = rows or Rows(chart_rows(steps))
    drawn = replace(rows, frame=rows.frame.filter(pl.col(series.column).is_not_null()))
    excluded = drawn.frame.filter(~pl.col("counted") & series.of_time)
    reasons = excluded["why"].unique(maintain_order=True).to_list()
    runs = steps["run"].unique(maintain_order=True).to_list()
    top = top_of(drawn.frame, series, rules, dashed)
    # Where a page sets the ends of the scale, they fit the rows that count.
    ends = fit(drawn.frame, series, top) if rows.name and series.clip and top is not None else None
    plot = Plot(series, x, runs, reasons, top, len(excluded) > MANY_EXCLUDED, evaluations is not None, ends)
    name = [runs[0]] if len(runs) == 1 and runs[0] else []
    subtitle = _lines([*name, *_account(steps, drawn.frame, plot)])
    more: dict[str, Any] = {"usermeta": {"ends": asdict(ends)}} if ends else {}
    return layered(
        # Data of the whole chart: Altair copies and hashes that of each layer.
        data=alt.NamedData(rows.name) if rows.name else _columns(drawn.frame, series, x),
        layer=_layers(plot, drawn, rules, dashed, evaluations),
        width=WIDTH,
        height=HEIGHT,
        title=alt.TitleParams(text=series.title, subtitle=subtitle),
        **more,
    )


def _layers(
    plot: Plot, drawn: Rows, rules: Sequence[Rule], dashed: str | None, evaluations: pl.DataFrame | None
) -> list[Any]:
    """The layers that the rows ``drawn`` ask for, the lowest first."""
    import altair as alt

    base, rows, high = plot.base(), drawn.frame, _highest_shown(plot)
    thinned = rows["rows"].max() != 1
    return [
        *([plot.band(base)] if thinned else []),
        *([plot.line(base, dashed, (5, 3))] if dashed else []),
        plot.line(base, plot.series.column),
        *([plot.spans(base)] if thinned else []),
        plot.points(base, len(rows)),
        *([plot.excluded(base)] if plot.reasons else []),
        *([plot.above(base)] if high is not None and (rows[plot.series.column] > high).any() else []),
        *([] if evaluations is None else [plot.evaluations(alt.NamedData(EVALUATIONS) if drawn.name else evaluations)]),
        *plot.rules(rules),
    ]


def _highest_shown(plot: Plot) -> float | None:
    return plot.top if plot.ends is None else plot.ends.high


def _lines(parts: Sequence[str]) -> list[str]:
    """A line of a subtitle holds three parts."""
    return [SEPARATOR.join(parts[i : i + 3]) for i in range(0, len(parts), 3)]


def _columns(drawn: pl.DataFrame, series: Series, x: str) -> pl.DataFrame:
    """The columns that a chart which carries its own data needs, in the digits that can be seen."""
    more = [name for name in (f"{series.column}_low", f"{series.column}_high") if drawn[name].is_not_null().any()]
    more += [DASHED[series.column]] if series.column in DASHED else []
    names = dict.fromkeys(("run", "segment", "counted", "why", "rows", "step", x, series.column, *more))
    return drawn.select(*names).with_columns(pl.selectors.float().round_sig_figs(DIGITS))


def describe_thinning(drawn: pl.DataFrame) -> str:
    """Say that rows were put together, and into how many points."""
    text = msg("{total} rows in {n} groups of adjacent rows: mean, min, max")
    return tr(text, total=f"{drawn['rows'].sum():,}", n=f"{len(drawn):,}")


def _outside(n: int, one: str, more: str) -> str:
    return tr(one) if n == 1 else tr(more, n=f"{n:,}")


def _account(steps: pl.DataFrame, drawn: pl.DataFrame, plot: Plot) -> list[str]:
    """What the chart shows of the run and what not."""
    column, top, bottom = plot.series.column, _highest_shown(plot), plot.ends.low if plot.ends else None
    uncopied = steps.filter(pl.col("excluded_reason").ne_missing(COPY))
    excluded, copies = int((~uncopied["counted"]).sum()) * plot.series.of_time, len(steps) - len(uncopied)
    unknown = len(uncopied) - int(uncopied[column].is_finite().sum())
    above = int((uncopied[column].is_finite() & (uncopied[column] > top)).sum()) if top is not None else 0
    below = int((uncopied[column].is_finite() & (uncopied[column] < bottom)).sum()) if bottom is not None else 0
    parts = {
        tr("hollow: excluded ({n} of {total})", n=f"{excluded:,}", total=f"{len(uncopied):,}"): excluded,
        tr("{n} rows of other ranks not shown", n=f"{copies:,}"): copies,
        tr("rows without a value: {n}", n=f"{unknown:,}"): unknown,
        describe_thinning(drawn): drawn["rows"].max() != 1,
        _outside(above, msg("1 point above the axis"), msg("{n} points above the axis")): above,
        _outside(below, msg("1 point below the axis"), msg("{n} points below the axis")): below,
    }
    return [text for text, applies in parts.items() if applies]


# The top of a scale over the typical value, where the first steps and stalls would flatten all other values.
CLIP = 1.5
# Room above and below the rows that count on a scale that fits them: of their span, and of their value at least.
FIT_ROOM, LEAST_ROOM = 0.12, 0.002
# A scale is logarithmic where the greatest value is more than this many times the typical one.
WIDE = 20


def wide(values: pl.Series, times: float = WIDE) -> bool:
    """Whether some value exceeds ``times`` the median, so that a linear scale would flatten all others."""
    finite = values.filter(values.is_finite())
    if not len(finite) or finite.le(0).any():
        return False
    return bool((finite > times * pl.Series([finite.median()])).any())


def top_of(drawn: pl.DataFrame, series: Series, rules: Sequence[Rule], dashed: str | None) -> float | None:
    """The upper end of the scale: room for the text of the rule and, with ``clip``, only for typical rows.

    None where the data sets the scale.
    """
    if not series.from_zero or series.base:
        return None
    typical = drawn.filter(pl.col("counted") | (not series.of_time)).select(pl.col(series.column).quantile(0.9)).item()
    most = highest(drawn, series.column, f"{series.column}_high", *([dashed] if dashed else []))
    top = min(most, typical * CLIP) if series.clip and typical else most
    return float(1.1 * max(top, *(rule.value for rule in rules), 0.0))


def highest(drawn: pl.DataFrame, *columns: str) -> float:
    """The greatest value of ``columns``; 1 where there is none."""
    greatest: float | None = drawn.select(pl.max_horizontal(columns).max()).item()
    return greatest or 1.0


def fit(drawn: pl.DataFrame, series: Series, top: float) -> Ends | None:
    """Ends of the scale that show the rows that count in full, with some room; None where none counts."""
    low, high = f"{series.column}_low", f"{series.column}_high"
    counted = drawn.filter("counted").select(
        low=pl.min_horizontal(series.column, low).min(), high=pl.max_horizontal(series.column, high).max()
    )
    least, most = counted.row(0)
    if least is None or most is None:
        return None
    most = min(most, top)
    room = max((most - least) * FIT_ROOM, most * LEAST_ROOM)
    return Ends(max(least - room, 0.0), most + room, highest(drawn, series.column, high))
