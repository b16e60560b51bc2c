"""The glossary: names are unique, units are what the names say, and frames take its shape."""

import polars as pl
import pytest
from helpers import named_unit, unit_endings

from logparse.schema import (
    DECODED_COLUMNS,
    FLOAT,
    QUANTITIES,
    RECORD_COLUMNS,
    SETTING_COLUMNS,
    Column,
    conform,
)

FRAMES = {"steps": DECODED_COLUMNS, "settings": SETTING_COLUMNS, **RECORD_COLUMNS}
COLUMNS = {f"{frame}.{c.name}": c for frame, columns in FRAMES.items() for c in columns}
# Users script against these names: adding is free, renaming is not.
CONTRACT = {
    *("run", "source", "line_number", "timestamp", "step", "train_steps", "epoch", "step_in_epoch"),
    *("elapsed_time_per_iteration_ms", "global_batch_size", "consumed_samples", "loss"),
    *("learning_rate", "loss_scale", "grad_norm", "logged_tflops_per_second_per_device"),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_column_names_are_unique(frame):
    names = [c.name for c in FRAMES[frame]]
    assert sorted(names) == sorted(set(names))


def test_quantity_names_are_unique():
    names = [q.name for q in QUANTITIES]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("frame", FRAMES)
def test_every_column_says_what_it_means(frame):
    assert [c.name for c in FRAMES[frame] if not c.meaning.strip()] == []


def test_every_quantity_says_what_it_means():
    assert [q.name for q in QUANTITIES if not q.meaning.strip()] == []


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_unit_in_the_name_is_the_unit(column):
    assert column.unit == named_unit(column.name, otherwise=column.unit)


@pytest.mark.parametrize("unit", ["ms", "bytes", "s", "/s", "/s/p"])
def test_a_column_with_a_unit_says_so_in_its_name(unit):
    mine, ending = unit_endings(COLUMNS.values(), unit)
    assert mine
    assert [name for name in mine if not name.endswith(ending)] == []


def test_quantities_that_are_columns_have_the_column_kind():
    kinds = {"int": pl.Int64(), "float": pl.Float64(), "bool": pl.Boolean(), "text": pl.String()}
    columns = {c.name: c.dtype for c in DECODED_COLUMNS}
    shared = [q for q in QUANTITIES if q.name in columns]
    assert shared
    assert [q.name for q in shared if kinds[q.kind] != columns[q.name]] == []


def test_the_columns_users_script_against_are_there():
    assert {c.name for c in DECODED_COLUMNS} >= CONTRACT


def test_conform_orders_casts_fills_and_drops():
    wanted = (Column("b", pl.Int64(), "", "b"), Column("a", FLOAT, "", "a"), Column("missing", pl.String(), "", "m"))
    frame = conform(pl.DataFrame({"a": [1, 2], "extra": [0, 0], "b": [3.0, None]}), wanted)
    assert frame.schema == {"b": pl.Int64, "a": pl.Float64, "missing": pl.String}
    assert frame.rows() == [(3, 1.0, None), (None, 2.0, None)]


def test_conform_keeps_an_empty_frame_empty():
    frame = conform(pl.DataFrame({"step": []}, schema={"step": pl.Int64}), DECODED_COLUMNS)
    assert frame.shape == (0, len(DECODED_COLUMNS))


def test_conform_of_a_conformed_frame_changes_nothing():
    frame = conform(pl.DataFrame({"step": [1, 2], "loss": [0.5, None]}), DECODED_COLUMNS)
    assert conform(frame, DECODED_COLUMNS).equals(frame)


def test_conform_refuses_a_text_that_is_no_number():
    with pytest.raises(pl.exceptions.InvalidOperationError):
        conform(pl.DataFrame({"loss": ["much"]}), DECODED_COLUMNS)
