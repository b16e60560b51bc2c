"""Text to numbers, as columns: what a value must look like, and what its column can hold."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl
import regex

from logparse.formats._base import BEFORE_STAMP, MULTIPLES, NUMBER, TIMESTAMP, YEARLESS, Reading
from logparse.inputs.literals import WORTH_POLARS, literals_in
from logparse.inputs.stamps import moment
from logparse.schema import BOOL, DECODED_COLUMNS, INT, TIME, UNITS

DTYPE = {c.name: c.dtype for c in DECODED_COLUMNS}
# What a measured value can be: nothing negative, and what a float holds exactly. No step takes ten years, or less than
# a microsecond. What is printed closer to zero than TINY is damaged, and would make other values infinite.
_LEAST = {"elapsed_time_per_iteration_ms": 1e-3, "global_batch_size": 1.0, "seq_length": 1.0}
_MOST = {"elapsed_time_per_iteration_ms": 10 * 365.25 * 86_400_000}
_EXACT, TINY = 2.0**53 - 1, 1e-9
# Stamps with the month first, as rich prints them, with a year of two digits, and a clock without a day.
OTHER_STAMPS = ("%m/%d/%y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%y-%m-%d %H:%M:%S%.f", "%H:%M:%S")
# The end of the last year of a training.
_LAST_MILLISECOND = 7_258_118_400_000
# Columns without a unit that count something.
COUNTED = frozenset({"epochs_done"})
# Columns of time that is written as a clock or in words too; seconds of a day, an hour, a minute and a second.
DURATIONS = frozenset({"runtime_seconds", "logged_seconds_per_step"})
_UNITS = (86400.0, 3600.0, 60.0, 1.0)
# A count of a line that some print as a word: one step, or none.
FLAGGED = ("skipped_iterations",)


def collected(plan: pl.LazyFrame) -> pl.DataFrame:
    """The rows of ``plan`` as it is written: to look for a better one takes longer than to read a small log."""
    return plan.collect(optimizations=pl.QueryOptFlags.none())


def group_names(pattern: str) -> list[str]:
    """The names of the groups of ``pattern``, in order. To compile it would take longer than to use it."""
    return regex.findall(r"\(\?P<(\w+)>", pattern)


def there(text: pl.Series, literals: Iterable[str]) -> set[str]:
    """Those of ``literals`` that are in any of the texts."""
    wanted = list(literals)
    if not (wanted and len(text)):
        return set()
    if text.str.len_bytes().sum() <= WORTH_POLARS:
        return set(literals_in(text.to_list(), wanted))
    marks = text.to_frame().select(pl.first().str.extract_many(wanted, overlapping=True).explode().unique())
    return set(marks.to_series()) - {None}


def holds(text: pl.Expr, *literals: str) -> pl.Expr:
    """Whether a text holds one of ``literals``.

    Not by ``contains``, which makes a regex of each: polars keeps 32 of them, and to build those of the formats again
    for each log would take longer than to read a small one.
    """
    return text.str.contains_any(list(literals))


# A number at the end of a text, and a clock, which is whole where it has its seconds.
_LAST_NUMBER, _WHOLE_CLOCK = r"[-+]?\d[\d.,eE+-]*$", r"\d\d:\d\d:\d\d(?:[.,]\d+)?$"


def sure_text(lines: pl.DataFrame) -> pl.Expr:
    """The text of ``lines``; of a last line that was cut off without a number that may have lost digits."""
    text = pl.col("text")
    if "complete" not in lines.columns or lines["complete"].all():
        return text
    is_sure = pl.col("complete") | text.str.contains(_WHOLE_CLOCK)
    return pl.when(is_sure).then(text).otherwise(text.str.replace(_LAST_NUMBER, ""))


def bare(text: pl.Expr) -> pl.Expr:
    """The value without numpy's brackets and spaces."""
    return text.str.strip_chars(" []")


def reading_key(reading: Reading) -> tuple[object, ...]:
    """All that decides how a value is read. Readings with the same key differ only in the name of their column."""
    name = reading.column
    of_column = (DTYPE[name], name in DURATIONS, _is_measured(name), _LEAST.get(name), _MOST.get(name))
    return (*of_column, reading.scale, reading.suffix, reading.absent, reading.multiples)


def number(text: pl.Expr, reading: Reading) -> pl.Expr:
    """The number that ``text`` is in the unit of its column; null where it is none."""
    return possible(reading.column, written(text, reading))


def is_absent(text: pl.Expr, reading: Reading) -> pl.Expr:
    """Whether ``text`` says that there is no value."""
    return text.is_null() | bare(text).str.contains(f"^(?:{reading.absent})?$")


def written(text: pl.Expr, reading: Reading) -> pl.Expr:
    """The number that ``text`` is in the unit of its column, be it one that the column cannot hold."""
    value = _written(text, reading)
    # That the word None is no number needs no search.
    return value if reading.absent == "None" else pl.when(~is_absent(text, reading)).then(value)


def _written(text: pl.Expr, reading: Reading) -> pl.Expr:
    if DTYPE[reading.column] == BOOL:
        return _truth(text)
    if reading.column in DURATIONS:
        plain = bare(text).str.replace(rf"(?:{reading.suffix})$", "")
        return _seconds(plain) * reading.scale
    if reading.multiples:
        parts = bare(text).str.extract_groups(rf"^({NUMBER}) ?([{''.join(MULTIPLES)}]?)(?:{reading.suffix})?$")
        factor = parts.struct[1].replace_strict({"": 1.0, **MULTIPLES}, default=None, return_dtype=pl.Float64)
        value = parted_float(parts.struct[0]) * (factor * reading.scale)
        # A factor such as 1e9 leaves a fraction of the last bit: 1.2589B.
        return value.round() if DTYPE[reading.column] == INT else value
    digits = bare(text).str.extract(rf"^({NUMBER})(?:{reading.suffix})?$", 1)
    return parted_float(digits) * reading.scale


def _truth(text: pl.Expr) -> pl.Expr:
    """1 for the word True, 0 for False."""
    word = bare(text).str.to_lowercase()
    return pl.when(word == "true").then(1.0).when(word == "false").then(0.0)


def group(name: str) -> pl.Expr:
    """The number that the text of the column ``name`` is, or the time."""
    if DTYPE[name] == TIME:
        return stamped(pl.col(name)).alias(name)
    value = _seconds(pl.col(name)) if name in DURATIONS else parted_float(pl.col(name))
    if name in FLAGGED:
        value = pl.coalesce(value, _truth(pl.col(name)))
    return possible(name, value).alias(name)


def _seconds(text: pl.Expr) -> pl.Expr:
    """Seconds, plain or as ``1 day, 2:03:04``, ``03:04``, ``1d 2h 3m 4s``, ``350ms``; null for another text."""
    clock = text.str.extract_groups(r"^(?:(\d+) days?, )?(?:(\d+):)?(\d+):(\d\d(?:\.\d+)?)$")
    words = text.str.extract_groups(r"^(?:(\d+)d ?)?(?:(\d+)h ?)?(?:(\d+)m ?)?(?:(\d+(?:\.\d+)?)s)?$")
    spelled = [_in_seconds(parts) for parts in (clock, words)]
    has_digit = text.str.contains(r"\d")
    short = parted_float(text.str.extract(r"^([\d.]+)ms$")) / 1000
    return pl.coalesce(parted_float(text), short, *(pl.when(has_digit & known).then(value) for value, known in spelled))


def _in_seconds(parts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Seconds of days, hours, minutes and seconds, and whether any is there."""
    values = [parts.struct[i].cast(pl.Float64, strict=False) for i in range(4)]
    seconds = pl.sum_horizontal(value.fill_null(0) * unit for value, unit in zip(values, _UNITS, strict=True))
    return seconds, pl.any_horizontal(value.is_not_null() for value in values)


def parted_float(text: pl.Expr) -> pl.Expr:
    """Null unless a number; a comma that does not part thousands could be a decimal comma."""
    parted = text.str.contains(r"^[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:[.eE]|$)")
    plain = pl.when(parted).then(text.str.replace_all(",", "", literal=True)).otherwise(text)
    return plain.str.to_lowercase().cast(pl.Float64, strict=False)


def possible(column: str, value: pl.Expr) -> pl.Expr:
    """Null unless a number that the column can hold."""
    return pl.when(can_be(column, value)).then(value)


def can_be(column: str, value: pl.Expr) -> pl.Expr:
    """Whether the column can hold the number; what has no unit, such as a loss, may be negative and NaN too."""
    least, most = _LEAST.get(column, TINY), _MOST.get(column, _EXACT)
    measured = value.is_between(least, most) | (value == 0 if column not in _LEAST else False)
    fits = measured if _is_measured(column) else value.is_not_null()
    return fits & _is_whole(value) if DTYPE[column] == INT else fits


def _is_measured(column: str) -> bool:
    """Whether a value of the column cannot be negative, NaN or infinite."""
    return bool(UNITS[column]) or column in COUNTED


def whole(value: pl.Expr) -> pl.Expr:
    """Null unless a whole number that a float holds exactly."""
    return pl.when(_is_whole(value)).then(value)


def _is_whole(value: pl.Expr) -> pl.Expr:
    return (value == value.floor()) & (value.abs() <= _EXACT)


def finite(value: pl.Expr) -> pl.Expr:
    """Null for a number of hundreds of digits, which no clock or memory has."""
    return pl.when(value.abs() < 2**53).then(value)


def clock(text: pl.Expr) -> pl.Expr:
    """The last time stamp of a text, whatever the logger's layout around it; else one without a year in front."""
    stamp = text.str.extract(rf"^.*({TIMESTAMP})", 1)
    date = stamp.str.replace(r"^(\d\d)/(\d\d)/(\d{4}) ", "${3}-${1}-${2} ").str.replace(
        r"^(\d{4})[-/]?(\d\d)[-/]?(\d\d).", "${1}-${2}-${3} "
    )
    yearless = text.str.extract(rf"^{BEFORE_STAMP}({YEARLESS})", 1).str.replace(r"^(\d\d)[-/]?(\d\d)", "${1}-${2}")
    dated, undated = (
        moment(one.str.replace(",", ".", literal=True), layout)
        for one, layout in ((date, "%Y-%m-%d %H:%M:%S%.f"), (yearless, "%m-%d %H:%M:%S%.f"))
    )
    return pl.when(stamp.is_null()).then(undated).otherwise(dated)


def stamped(text: pl.Expr) -> pl.Expr:
    """The time that a text is: milliseconds since 1970, a logger's stamp, or one of OTHER_STAMPS."""
    return pl.coalesce(since_1970(text), clock(text), *(moment(text, layout) for layout in OTHER_STAMPS))


def since_1970(text: pl.Expr) -> pl.Expr:
    """The time that so many milliseconds since 1970 are, UTC; null for a year of no training."""
    milliseconds = text.cast(pl.Int64, strict=False)
    possible = pl.when(milliseconds.is_between(0, _LAST_MILLISECOND, closed="left")).then(milliseconds)
    return possible.cast(pl.Datetime("ms")).cast(pl.Datetime("us"))


def with_others(rows: pl.DataFrame, others: pl.DataFrame, name: str) -> pl.DataFrame:
    """``rows`` with the columns of ``others``, which have the index ``row``; what a row has of its own stays."""
    counted = rows.lazy().with_row_index("row")
    joined = counted.join(others.lazy(), on="row", how="left", maintain_order="left", suffix=f" of {name}")
    twice = [c for c in others.columns if c in rows.columns]
    whole = joined.with_columns(pl.coalesce(c, f"{c} of {name}") for c in twice)
    return collected(whole.drop("row", *(f"{c} of {name}" for c in twice)))
