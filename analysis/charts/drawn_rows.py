"""Steps to the rows that charts draw: each with its place on every axis, its values, and why it does not count.

Up to MOST_POINTS rows stay as they are, or as many as whoever draws asks for. Of more, rows that count are put into
buckets of neighbours, each with the mean, the least and the greatest of its values; of the others the slowest stay.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from analysis.charts.along import ALONG, DASHED
from analysis.run.rows.exclusion_reasons import COPY
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass

# The text of a code. This layer has no texts, so the caller gives them; without texts the codes are drawn.
NameOf = Callable[[str], str]
AXES = ("step", "consumed_tokens", "hours")
# Drawn with the span of each bucket; the others as a line only.
SPANNED = tuple(chart.column for chart in ALONG.values())
SERIES = (*SPANNED, *DASHED.values())
# Digits that a chart can show.
DIGITS = 6
COUNTS, EVALUATION = msg("counted"), msg("evaluation")
# Name of the rows of evaluations in a page.
EVALUATIONS = "evaluations"
# A bucket gives two points, its least and its greatest value; rows that do not count get this part of the points.
MOST_POINTS = 4000
EXCLUDED_PART = 10


@dataclass(frozen=True)
class Rows:
    """Rows to draw and, where a page holds them once for all its charts, the name it gives them.

    Such a page holds the rows of evaluations too, under the name EVALUATIONS.
    """

    frame: pl.DataFrame
    name: str | None = None


def chart_rows(steps: pl.DataFrame, name_of: NameOf = str, most: int = MOST_POINTS) -> pl.DataFrame:
    """The rows to draw; ``rows`` counts the log's rows in one of them, ``..._low`` and ``..._high`` are their span.

    ``why`` a row does not count is in the words of ``name_of``, by the codes of ``exclusion_reasons``.
    """
    placed = place_rows(steps.filter(pl.col("excluded_reason").ne_missing(COPY)), name_of)
    runs = placed.partition_by("run", maintain_order=True)
    return pl.concat([_shrink(run, most // len(runs)) for run in runs]) if runs else _shrink(placed, most)


def axes_of(steps: pl.DataFrame) -> list[str]:
    """The axes along which every run has values."""
    placed = place_rows(steps)
    has_axes = placed.group_by("run").agg(pl.col(axis).is_not_null().any() for axis in AXES)
    return [axis for axis in AXES if has_axes[axis].all()]


def evaluation_rows(steps: pl.DataFrame, evaluations: pl.DataFrame) -> pl.DataFrame:
    """Evaluations with a loss, placed on the axes by the last row at or before their step."""
    places = place_rows(steps).select("run", *AXES).drop_nulls("step").sort("step")
    finite = evaluations.filter(pl.col("loss").is_finite()).drop_nulls("step").sort("step")
    placed = finite.join_asof(places, on="step", by="run", strategy="backward", check_sortedness=False)
    return placed.select("run", *AXES, "loss", "dataset", why=pl.lit(tr(EVALUATION))).head(MOST_POINTS)


def place_rows(steps: pl.DataFrame, name_of: NameOf = str) -> pl.DataFrame:
    """Give each row its place on the axes. Samples become tokens only where all samples are of one length."""
    length = pl.when(pl.col("seq_length").n_unique().over("run") == 1).then("seq_length")
    since = pl.col("timestamp") - pl.col("timestamp").min().over("run")
    reason = pl.col("excluded_reason")
    names = {code: name_of(code) for code in steps["excluded_reason"].drop_nulls().unique()}
    return steps.select(
        "run",
        "segment",
        "counted",
        "step",
        pl.coalesce("consumed_tokens", pl.col("consumed_samples") * length).alias("consumed_tokens"),
        (since.dt.total_microseconds() / 3.6e9).alias("hours"),
        *(pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in SERIES),
        why=reason.replace(names).fill_null(tr(COUNTS)),
    )


def _shrink(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    whole = rows.with_columns(
        pl.lit(1, pl.Int64).alias("rows"),
        *(pl.lit(None, pl.Float64).alias(f"{name}_{end}") for name in SPANNED for end in ("low", "high")),
    )
    if len(rows) <= most:
        return whole
    excluded = whole.filter(~pl.col("counted"))
    slowest = excluded.top_k(most // EXCLUDED_PART, by=pl.col("step_time_ms").fill_null(0))
    counted = _buckets(whole.filter("counted"), (most - len(slowest)) // 2)
    return pl.concat([counted, slowest]).sort("segment", "step")


def _buckets(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """At most ``most`` rows, each for a run of neighbours; a bucket of few starts may span two of them."""
    if len(rows) <= most:
        return rows
    spans = [
        end
        for name in SPANNED
        for end in (pl.col(name).min().alias(f"{name}_low"), pl.col(name).max().alias(f"{name}_high"))
    ]
    made = (
        rows.with_columns(bucket=pl.int_range(pl.len()) * most // pl.len())
        .group_by("bucket", maintain_order=True)
        .agg(
            pl.col("run", "segment", "counted", "why").first(),
            *(pl.col(axis).mean().cast(rows.schema[axis]) for axis in AXES),
            pl.col("rows").sum(),
            *(pl.col(name).mean() for name in SERIES),
            *spans,
        )
    )
    return made.select(rows.columns)
