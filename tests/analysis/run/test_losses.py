"""The loss of a run: first, last and lowest, of rows that need not count for time."""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.run.losses import losses_of

NAN = math.nan


def steps_of(rows):
    schema = {"step": pl.Int64, "loss": pl.Float64, "excluded_reason": pl.String}
    frame = pl.DataFrame([(*row, None)[:3] for row in rows], schema=schema, orient="row")
    return frame.with_columns(source=pl.lit("run.log"), line_number=pl.int_range(1, pl.len() + 1))


NO_LINES = steps_of([])


@pytest.mark.parametrize(
    ("rows", "expected"),
    {
        "each step": ([(1, 9.0), (2, 3.0), (3, 4.0)], (9.0, 4.0, 3.0, 2, 3, 0)),
        "a row that does not count for time": ([(1, 9.0, "warm_up"), (2, 8.0)], (9.0, 8.0, 8.0, 2, 2, 0)),
        "a copy": ([(1, 9.0), (1, 1.0, "copy"), (2, 8.0)], (9.0, 8.0, 8.0, 2, 2, 0)),
        "steps done again": ([(1, 9.0), (2, 1.0), (2, 8.0), (3, 7.0)], (9.0, 7.0, 7.0, 3, 3, 0)),
        "NaN": ([(1, NAN), (2, 8.0), (3, math.inf)], (8.0, 8.0, 8.0, 2, 1, 2)),
        "no step": ([(None, 9.0), (None, 8.0)], (9.0, 8.0, 8.0, None, 2, 0)),
        "lines without a loss": ([(1, None), (2, 8.0)], (8.0, 8.0, 8.0, 2, 1, 0)),
    }.values(),
)
def test_losses(rows, expected):
    found = losses_of(steps_of(rows), NO_LINES)
    assert (found.first, found.last, found.lowest, found.lowest_step, found.steps, found.infinite) == expected


@pytest.mark.parametrize("rows", [[], [(1, None)], [(1, NAN)]])
def test_no_finite_loss(rows):
    assert losses_of(steps_of(rows), NO_LINES) is None


@settings(max_examples=40)
@given(lines=st.lists(st.tuples(st.integers(1, 999), st.booleans()), min_size=1, max_size=12))
def test_lines_without_a_step_are_where_they_are_printed(lines):
    """Of lines in turn some are rows; each has its place among them, as if all were."""
    every = steps_of([(10 * n + 10, float(loss)) for n, (loss, _) in enumerate(lines)])
    is_row = pl.Series([row for _, row in lines])
    rows, others = every.filter(is_row), every.filter(~is_row).drop("step")
    found, whole = losses_of(rows, others), losses_of(every, NO_LINES)
    if rows.is_empty():
        assert found is None
    else:
        values = [float(loss) for loss, _ in lines]
        assert (found.first, found.last, found.lowest, found.steps) == (
            *(values[n] for n in (0, -1)),
            min(values),
            len(lines),
        )
        assert found.lowest_step in (whole.lowest_step, None)
