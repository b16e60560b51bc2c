"""The frames of an analysed run: names are unique, units are what the names say, and users can rely on them."""

import polars as pl
import pytest
from helpers import named_unit, unit_endings

from analysis.metrics import OF_ROWS
from analysis.run.result import STATISTICS
from analysis.run.tables import (
    COMPUTED_COLUMNS,
    RANK_COLUMNS,
    RATE_COLUMNS,
    SEGMENT_COLUMNS,
    STEP_COLUMNS,
    SUMMARY_COLUMNS,
    TIME_BREAKDOWN_COLUMNS,
    UNITS,
)
from logparse.schema import DECODED_COLUMNS, QUANTITIES, conform

FRAMES = {
    "steps": STEP_COLUMNS,
    "rates": RATE_COLUMNS,
    "time_breakdown": TIME_BREAKDOWN_COLUMNS,
    "segments": SEGMENT_COLUMNS,
    "ranks": RANK_COLUMNS,
    "summary": SUMMARY_COLUMNS,
}
COLUMNS = {f"{frame}.{c.name}": c for frame, columns in FRAMES.items() for c in columns}
# Users script against these names: adding is free, renaming is not.
CONTRACT = {
    *("step_time_ms", "segment", "counted", "excluded_reason", "mfu", "hfu", "peak_utilization"),
    *("samples_per_second_per_device", "tokens_per_second_per_device", "tflops_per_second_per_device"),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_column_names_are_unique(frame):
    names = [c.name for c in FRAMES[frame]]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("frame", FRAMES)
def test_every_column_says_what_it_means(frame):
    assert [c.name for c in FRAMES[frame] if not c.meaning.strip()] == []


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_unit_in_the_name_is_the_unit(column):
    assert column.unit == named_unit(column.name, otherwise=column.unit)


@pytest.mark.parametrize("unit", ["ms", "bytes", "s", "/s", "/s/p"])
def test_a_column_with_a_unit_says_so_in_its_name(unit):
    mine, ending = unit_endings(COLUMNS.values(), unit)
    assert mine
    assert [name for name in mine if not name.endswith(ending)] == []


def test_a_step_has_what_the_log_says_and_then_what_is_computed():
    assert (*DECODED_COLUMNS, *COMPUTED_COLUMNS) == STEP_COLUMNS
    assert {c.name: c.unit for c in STEP_COLUMNS} == UNITS


def test_the_columns_users_script_against_are_there():
    assert {c.name for c in COMPUTED_COLUMNS} >= CONTRACT


def test_every_metric_of_rows_is_a_column_of_the_steps_in_its_unit():
    assert {metric.column: metric.unit for metric in OF_ROWS}.items() <= UNITS.items()


def test_a_summary_has_every_statistic():
    assert {c.name for c in SUMMARY_COLUMNS} == {"run", "metric", "unit", *STATISTICS}


def test_quantities_that_are_columns_have_the_column_kind():
    kinds = {"int": pl.Int64(), "float": pl.Float64(), "bool": pl.Boolean(), "text": pl.String()}
    columns = {c.name: c.dtype for c in STEP_COLUMNS}
    shared = [q for q in QUANTITIES if q.name in columns]
    assert shared
    assert [q.name for q in shared if kinds[q.kind] != columns[q.name]] == []


def test_conform_of_conformed_steps_changes_nothing():
    frame = conform(pl.DataFrame({"step": [1, 2], "mfu": [0.5, None]}), STEP_COLUMNS)
    assert conform(frame, STEP_COLUMNS).equals(frame)
