"""One row per metric, against numbers worked by hand."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.metrics import OF_ROWS
from analysis.run.summary import summarize
from analysis.run.tables import STEP_COLUMNS, SUMMARY_COLUMNS
from logparse.schema import conform

TIME, SAMPLES = "elapsed_time_per_iteration_ms", "samples_per_second_per_device"
METRICS = [metric.column for metric in OF_ROWS]
RATES = [name for name in METRICS if name != TIME]


def steps(times: list[float | None], **columns: list[object]) -> pl.DataFrame:
    """Rows that all count and take ``times`` ms, with one sample of work each."""
    base = {
        "run": ["here"] * len(times),
        "step_time_ms": times,
        "counted": [True] * len(times),
        SAMPLES: [None if t is None else 1000 / t for t in times],
    }
    return conform(pl.DataFrame(base | columns, strict=False), STEP_COLUMNS)


def row(frame: pl.DataFrame, metric: str) -> dict[str, object]:
    return frame.row(by_predicate=pl.col("metric") == metric, named=True)


def test_the_mean_of_a_rate_is_work_over_time_and_not_the_mean_of_rates():
    # One sample in 1 s and one in 3 s are 2 samples in 4 s; the mean of 1 and 1/3 would be 0.667.
    summary = summarize(steps([1000.0, 3000.0]))
    assert row(summary, SAMPLES)["mean"] == pytest.approx(0.5)
    assert row(summary, TIME)["mean"] == 2000.0


def test_median_and_percentiles_are_of_the_rows_and_interpolated():
    summary = row(summarize(steps([10.0, 50.0, 30.0, 20.0, 40.0])), TIME)
    assert (summary["p10"], summary["median"], summary["p90"], summary["n"]) == (14.0, 30.0, 46.0, 5)


def test_a_step_that_is_fast_has_a_rate_that_is_high():
    summary = row(summarize(steps([1000.0, 2000.0, 4000.0])), SAMPLES)
    assert summary["p10"] == pytest.approx(0.3)  # between 0.25 and 0.5, a fifth of the way
    assert summary["median"] == 0.5
    assert summary["p90"] == pytest.approx(0.9)


def test_rows_that_do_not_count_do_not_enter():
    summary = summarize(steps([60_000.0, 1000.0, 3000.0], counted=[False, True, True]))
    assert row(summary, TIME)["mean"] == 2000.0
    assert row(summary, SAMPLES)["mean"] == pytest.approx(0.5)
    assert row(summary, SAMPLES)["n"] == 2


def test_a_row_without_the_rate_gives_neither_work_nor_time_to_its_mean():
    summary = summarize(steps([1000.0, 3000.0, 8000.0], **{SAMPLES: [1.0, 1 / 3, None]}))
    assert row(summary, SAMPLES)["mean"] == pytest.approx(0.5)
    assert row(summary, SAMPLES)["n"] == 2
    assert row(summary, TIME)["n"] == 3


def test_time_is_the_time_the_row_stands_for_and_not_the_printed_one():
    summary = summarize(steps([1000.0, 1000.0], elapsed_time_per_iteration_ms=[9000.0, 1000.0]))
    assert row(summary, TIME)["mean"] == 1000.0


def test_every_metric_has_one_row_with_its_unit():
    summary = summarize(steps([1000.0]))
    assert summary.columns == [c.name for c in SUMMARY_COLUMNS]
    assert summary["metric"].to_list() == list(METRICS)
    assert summary["unit"].to_list() == [metric.unit for metric in OF_ROWS]
    assert summary["run"].to_list() == ["here"] * len(METRICS)


@pytest.mark.parametrize("frame", [steps([]), steps([1000.0], counted=[False])], ids=["no row", "no row counts"])
def test_where_nothing_counts_every_statistic_is_null_and_n_is_0(frame):
    summary = summarize(frame)
    assert summary["metric"].to_list() == list(METRICS)
    assert summary.select("median", "mean", "p10", "p90").null_count().row(0) == (len(METRICS),) * 4
    assert summary["n"].to_list() == [0] * len(METRICS)


WORK_AND_TIME = st.lists(st.tuples(st.integers(1, 10_000), st.floats(1.0, 1e6)), min_size=1, max_size=20)


@given(WORK_AND_TIME, st.sampled_from(RATES))
def test_the_mean_rate_is_total_work_over_total_time(pairs, rate):
    frame = steps([t for _, t in pairs], **{rate: [w / t for w, t in pairs]})
    total = sum(w for w, _ in pairs) / sum(t for _, t in pairs)
    assert row(summarize(frame), rate)["mean"] == pytest.approx(total)


@given(WORK_AND_TIME)
def test_statistics_stand_in_order_and_within_the_rows(pairs):
    summary = row(summarize(steps([t for _, t in pairs])), TIME)
    times = [t for _, t in pairs]
    assert min(times) <= summary["p10"] <= summary["median"] <= summary["p90"] <= max(times)
    assert min(times) <= summary["mean"] * (1 + 1e-12)
    assert summary["mean"] <= max(times) * (1 + 1e-12)
