"""Whether a condition of a selector holds of each run.

A key is a column of the run, the name of a software version, or a label, in any case of its letters; a device is known
by any of its names. A run without a value of the key meets no condition, not even ``!=``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial, reduce
from typing import Literal

import polars as pl

from analysis.hardware.devices import find_device
from analysis.history.selector import RunCondition
from logparse.errors import UsageError, unknown_name
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass

NUMBERS = (pl.Int64, pl.Float64)
PLAIN = (pl.String, pl.Boolean, *NUMBERS)
# The clock by which runs are ordered.
CLOCK = pl.coalesce("begun_at", "recorded_at")
CLOCKS = {
    **dict.fromkeys(("began", "begun_at"), pl.col("begun_at")),
    **dict.fromkeys(("recorded", "recorded_at"), pl.col("recorded_at")),
    **dict.fromkeys(("since", "until"), CLOCK),
}
# Forms of a date, and how long what each names lasts.
DATES = {"%Y-%m": "1mo", "%Y-%m-%d": "1d", "%Y-%m-%d %H:%M": "1m", "%Y-%m-%d %H:%M:%S": "1s"}
ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
TRUE = ("true", "1", "yes")

# Of values, whether each is what a condition asks for.
Test = Callable[[pl.Expr], pl.Expr]
Kind = pl.DataType | Literal["versions", "labels"]


@dataclass(frozen=True)
class KeyValues:
    """The source of the values of a key: a column of a type, or pairs. ``passing`` are the runs that pass a test."""

    kind: Kind
    passing: Callable[[Test], pl.Expr]


def holds(runs: pl.DataFrame, condition: RunCondition) -> pl.Expr:
    """Whether a column of a run, one of its versions or one of its labels is called by the key and is as asked for.

    Raises UsageError for a key that no run knows, or a value that it cannot have.
    """
    sources = list(_sources(runs, _column_of(condition)))
    if sources:
        asked = pl.any_horizontal(source.passing(_test(runs, condition, source.kind)) for source in sources)
        known = pl.any_horizontal(source.passing(lambda value: value.is_not_null()) for source in sources)
        return known & ~asked if condition.operator == "!=" else asked
    if condition.key == "id":
        return _begins(condition)
    if condition.key in CLOCKS:
        return _at(condition)
    if runs.is_empty():
        return pl.lit(False)
    remedy = tr(
        "a key is a column, a version or a label (`logparse history list`); quote a value that contains a comma"
    )
    raise unknown_name(msg("key"), condition.key, selectable(runs), remedy)


def _column_of(condition: RunCondition) -> str:
    """The key; where an ending is compared, the column of states, which lists call ending: the other is JSON."""
    is_state = condition.key == "ending" and condition.operator in ("=", "!=", "in")
    return "ending_state" if is_state else condition.key


def _sources(runs: pl.DataFrame, key: str) -> Iterator[KeyValues]:
    """What is called ``key``, in any case of its letters where it is none of the columns."""
    if (kind := runs.schema.get(key)) in PLAIN:
        yield KeyValues(kind, lambda test: test(pl.col(key)).fill_null(value=False))
    for pairs in ("versions", "labels"):
        if key in map(str.lower, _names(runs, pairs)):
            yield KeyValues(pairs, partial(_of_pairs, pairs, key))


def _of_pairs(pairs: str, key: str, test: Test) -> pl.Expr:
    name, value = (pl.element().struct.field(part) for part in ("name", "value"))
    held = (name.str.to_lowercase() == key) & test(value)
    return pl.col(pairs).list.eval(held).list.any().fill_null(value=False)


def _test(runs: pl.DataFrame, condition: RunCondition, kind: Kind) -> Test:
    key, text = condition.key, condition.values[0]
    if condition.operator == "~":
        return _like(key, kind, text)
    if condition.operator in ORDERS:
        _check_ordered(runs, key, kind)
        compare, limit = ORDERS[condition.operator], _number(key, text)
        return lambda value: compare(value.cast(pl.Float64, strict=False), limit)
    equal = [_equal(runs, key, kind, value) for value in condition.values]
    return lambda value: reduce(operator.or_, (value == one for one in equal))


def _equal(runs: pl.DataFrame, key: str, kind: Kind, text: str) -> str | bool | float:
    """What a value is that equals ``text``."""
    if key == "device" and isinstance(kind, pl.DataType) and text not in runs[key]:
        return find_device(text).name
    if kind == pl.Boolean:
        return text.lower() in TRUE
    return _number(key, text) if kind in NUMBERS else text


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        problem = tr("{name} is {value!r}", name=key, value=text)
        raise UsageError(problem, remedy=tr("give a number, as in {name}=8", name=key)) from error


def _like(key: str, kind: Kind, glob: str) -> Test:
    if kind in NUMBERS or kind == pl.Boolean:
        remedy = tr("use =, !=, <, <=, > or >=; ~ is for text")
        raise UsageError(tr("{key} is not text", key=key), remedy=remedy)
    parts = {"*": ".*", "?": "."}
    pattern = "".join(parts.get(sign) or pl.escape_regex(sign) for sign in glob)
    return lambda value: value.str.contains(f"(?is)^{pattern}$")


def _check_ordered(runs: pl.DataFrame, key: str, kind: Kind) -> None:
    """Labels are text, but may all the same be numbers."""
    if kind in NUMBERS:
        return
    pair = pl.col("labels").explode(empty_as_null=False).struct
    values = runs.select(pair.field("value").filter(pair.field("name").str.to_lowercase() == key)).to_series()
    if kind != "labels" or values.cast(pl.Float64, strict=False).is_null().all():
        problem = tr("{key} is not a number or date, so it cannot be ordered", key=key)
        raise UsageError(problem, remedy=tr("use =, != or ~, as in {key}~8.*", key=key))


def _begins(condition: RunCondition) -> pl.Expr:
    """Whether the id of a run begins with one of the values."""
    begins = pl.any_horizontal(pl.col("run_id").str.starts_with(value.lower()) for value in condition.values)
    if condition.operator in ("=", "!=", "in") and all(condition.values):
        return ~begins if condition.operator == "!=" else begins
    remedy = tr("write {key}=VALUE", key=condition.key)
    raise UsageError(tr("{said!r} is not a condition", said=condition.text), remedy=remedy)


def _at(condition: RunCondition) -> pl.Expr:
    """Whether a clock of a run is when a date says, which lasts as long as it names: a month, a day, a minute."""
    key, clock = condition.key, CLOCKS[condition.key]
    sign: str = condition.operator
    if sign == "~" or (key in ("since", "until") and sign != "="):
        remedy = tr("write {key}=2026-03-01", key=key)
        raise UsageError(tr("{said!r} is not a condition", said=condition.text), remedy=remedy)
    sign = {"since": ">=", "until": "<="}.get(key, sign)
    ends = [_lasting(key, text) for text in condition.values]
    begin, end = ends[0]
    orders = {"<": clock < begin, "<=": clock < end, ">": clock >= end, ">=": clock >= begin}
    within = pl.any_horizontal((clock >= begin) & (clock < end) for begin, end in ends)
    return orders.get(sign, ~within if sign == "!=" else within)


def _lasting(key: str, text: str) -> tuple[pl.Expr, pl.Expr]:
    """When what a date names begins, and when what follows it."""
    for form, span in DATES.items():
        with suppress(ValueError):
            begin = pl.lit(datetime.strptime(text.replace("T", " "), form), pl.Datetime("us"))
            return begin, begin.dt.offset_by(span)
    remedy = tr("give a date such as 2026-03-01, 2026-03 or 2026-03-01 18:30")
    raise UsageError(tr("{name} is {value!r}", name=key, value=text), remedy=remedy)


def selectable(runs: pl.DataFrame) -> list[str]:
    """The keys that a selector may have."""
    columns = [name for name, dtype in runs.schema.items() if dtype in PLAIN]
    return [*columns, *_names(runs, "versions"), *_names(runs, "labels"), "id", *CLOCKS]


def _names(runs: pl.DataFrame, column: str) -> list[str]:
    """The names in a column of pairs."""
    names = runs.select(pl.col(column).explode(empty_as_null=False).struct.field("name")).to_series()
    return sorted(set(names.drop_nulls()))
