"""Rows to draw: few enough for a page, and with the extremes of the run."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_charts import steps

from analysis.charts import AXES, axes_of, chart_rows, loss_chart, run_charts
from analysis.charts.drawn_rows import EXCLUDED_PART, MOST_POINTS, SPANNED, _buckets
from analysis.charts.run import MOST_DRAWN
from analysis.run.rows.exclusion_reasons import COPY


def spread(count: int) -> pl.DataFrame:
    return steps(count, loss=[float(i * 7919 % count) for i in range(count)])


def test_a_run_of_as_many_rows_as_fit_stays_as_it_is():
    rows = chart_rows(steps(MOST_POINTS))
    assert len(rows) == MOST_POINTS
    assert rows["rows"].unique().to_list() == [1]


def test_a_long_run_becomes_few_points_that_hold_every_row_and_the_extremes():
    long = spread(3 * MOST_POINTS)
    rows = chart_rows(long)
    assert len(rows) * 2 <= MOST_POINTS
    assert rows["rows"].sum() == len(long)
    assert rows["loss_low"].min() == long.filter("counted")["loss"].min()
    assert rows["loss_high"].max() == long.filter("counted")["loss"].max()
    assert rows["step"].is_sorted()


def test_the_chart_of_a_long_run_says_what_its_points_are():
    said = " ".join(loss_chart(spread(3 * MOST_POINTS)).to_dict()["title"]["subtitle"])
    assert f"{3 * MOST_POINTS:,} rows in" in said
    assert "groups of neighbours" not in str(loss_chart(spread(100)).to_dict()["title"])


def test_a_picture_has_no_more_points_than_pixels():
    drawn = run_charts(spread(3 * MOST_DRAWN))["loss"].to_dict()
    (rows,) = drawn["datasets"].values()
    assert MOST_DRAWN / 4 < len(rows) <= MOST_DRAWN / 2
    assert drawn["width"] == MOST_DRAWN / 2


def test_several_runs_share_the_points():
    runs = [spread(2 * MOST_POINTS).with_columns(run=pl.lit(name)) for name in "abcd"]
    rows = chart_rows(pl.concat(runs))
    assert len(rows) * 2 <= MOST_POINTS
    assert rows["run"].unique(maintain_order=True).to_list() == list("abcd")


def test_of_many_rows_that_do_not_count_the_slowest_stay():
    count = 2 * MOST_POINTS
    out = [i % 2 == 0 for i in range(count)]
    long = steps(
        count,
        step_time_ms=[float(i) for i in range(1, count + 1)],
        counted=[not x for x in out],
        excluded_reason=["stall" if x else None for x in out],
    )
    excluded = chart_rows(long).filter(~pl.col("counted"))
    assert len(excluded) == MOST_POINTS // EXCLUDED_PART
    assert excluded["step"].min() == count - 1 - 2 * (len(excluded) - 1)


def test_the_mean_of_a_bucket_is_that_of_its_rows():
    made = _buckets(chart_rows(spread(100)).filter("counted"), 3)
    whole = chart_rows(spread(100)).filter("counted")
    total = (made["loss"] * made["rows"]).sum()
    assert total == pytest.approx(whole["loss"].sum())


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(float("nan"))), min_size=1, max_size=300),
    st.sampled_from([1, 5, 25]),
)
def test_buckets_keep_the_extremes_the_order_and_the_limit(values, most):
    frame = steps(len(values), loss=values, counted=[True] * len(values), excluded_reason=[None] * len(values))
    whole = chart_rows(frame)
    made = _buckets(whole, most)
    assert len(made) <= max(most, 0)
    assert made["rows"].sum() == len(values)
    assert made["step"].is_sorted()
    if len(values) > most:
        assert made["loss_low"].min() == whole["loss"].min()
        assert made["loss_high"].max() == whole["loss"].max()
        means, lows, highs = made["loss"].drop_nulls(), made["loss_low"].drop_nulls(), made["loss_high"].drop_nulls()
        assert ((means >= lows - 1e-6) & (means <= highs + 1e-6)).all()


def test_what_is_no_number_is_not_drawn():
    rows = chart_rows(steps(4, loss=[1.0, None, float("nan"), float("inf")]))
    assert rows["loss"].to_list() == [1.0, None, None, None]


def test_copies_are_left_out():
    assert len(chart_rows(steps(3, excluded_reason=[COPY, None, None]))) == 2


def test_the_axes_are_those_every_run_has():
    assert axes_of(steps()) == list(AXES)
    without = steps().with_columns(timestamp=pl.lit(None, pl.Datetime("us")), run=pl.lit("other"))
    assert axes_of(pl.concat([steps(), without])) == ["step", "consumed_tokens"]


def test_samples_become_tokens_only_where_they_are_of_one_length():
    mixed = steps(4, seq_length=[4096, 4096, 8192, 8192])
    assert axes_of(mixed) == ["step", "hours"]


def test_printed_tokens_win():
    rows = chart_rows(steps(2, consumed_tokens=[7, 8]))
    assert rows["consumed_tokens"].to_list() == [7, 8]


def test_only_what_is_drawn_with_a_span_has_one():
    rows = chart_rows(steps())
    assert {c.removesuffix("_low") for c in rows.columns if c.endswith("_low")} == set(SPANNED)
