"""Which recorded runs are meant: ``release=CANN 8.0.RC2,device=910b3,nightly=yes``.

Comes in: the runs of a history and what the user wrote. Goes out: the runs it names. A key is a column of the run, the
name of a software version, or a label, looked for in this order; several must all hold. A value ends at the next comma
that is followed by a key and ``=``.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import regex

from logparse.errors import UsageError, unknown_name
from logparse.language import msg, tr

PAIR = regex.compile(r"\s*(?P<key>[\w.-]+)\s*=\s*(?P<value>.*?)\s*(?:,(?=\s*[\w.-]+\s*=)|,?$)")
PLAIN = (pl.String, pl.Int64, pl.Float64, pl.Boolean)


def is_selector(text: str) -> bool:
    """Whether ``text`` is of the form key=value."""
    return PAIR.match(text) is not None


def parse_selector(text: str) -> dict[str, str]:
    """The pairs of a selector. Raises UsageError where it is none."""
    pairs: dict[str, str] = {}
    at = 0
    while at < len(text) or not pairs:
        found = PAIR.match(text, at)
        if found is None or found.end() == at:
            remedy = tr("write key=value, as in release=CANN 8.0.RC2")
            raise UsageError(tr("{text!r} selects nothing", text=text), remedy=remedy)
        pairs[found["key"]] = found["value"]
        at = found.end()
    return pairs


def select_runs(runs: pl.DataFrame, text: str) -> pl.DataFrame:
    """The rows of ``runs`` that the selector names; none where none fits.

    Raises UsageError where it is no selector or has a key that no run knows.
    """
    for key, value in parse_selector(text).items():
        runs = runs.filter(_holds(runs, key, value))
    return runs


def selectable(runs: pl.DataFrame) -> list[str]:
    """The keys that a selector may have."""
    columns = [name for name, dtype in runs.schema.items() if dtype in PLAIN]
    return [*columns, *_names(runs, "versions"), *_names(runs, "labels")]


def _holds(runs: pl.DataFrame, key: str, value: str) -> pl.Expr:
    if key in runs.columns and runs.schema[key] in PLAIN:
        return _equals(runs.schema[key], key, value)
    for column in ("versions", "labels"):
        if key in _names(runs, column):
            pair = (pl.element().struct.field("name") == key) & (pl.element().struct.field("value") == value)
            return pl.col(column).list.eval(pair).list.any()
    if runs.is_empty():
        return pl.lit(False)
    remedy = tr("a key is a column, a version or a label: logparse history list")
    raise unknown_name(msg("key"), key, selectable(runs), remedy)


def _equals(dtype: pl.DataType, key: str, value: str) -> pl.Expr:
    if dtype == pl.String:
        return pl.col(key) == value
    if dtype == pl.Boolean:
        return pl.col(key) == (value.lower() in ("true", "1", "yes"))
    try:
        return pl.col(key) == float(value)
    except ValueError as error:
        problem = tr("{name} is {value!r}", name=key, value=value)
        raise UsageError(problem, remedy=tr("give a number, as in {name}=8", name=key)) from error


def _names(runs: pl.DataFrame, column: str) -> list[str]:
    """Names that stand in a column of pairs."""
    found = runs.select(pl.col(column).explode(empty_as_null=False).struct.field("name")).to_series()
    return sorted(set(found.drop_nulls()))


def drop_beginnings(runs: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Leave out records of a job that a longer record holds too: they are no evidence of their own.

    Returns the runs and a name for each that was left out.
    """
    longest = runs.sort("step_lines", descending=True, nulls_last=True).unique("begins", keep="first")
    left = runs.filter(~pl.col("run_id").is_in(longest["run_id"].to_list()))
    return runs.filter(pl.col("run_id").is_in(longest["run_id"].to_list())), list(_called(left))


def _called(runs: pl.DataFrame) -> Iterator[str]:
    for name, run_id in runs.select("name", "run_id").iter_rows():
        yield f"{name} ({run_id[:12]})"
