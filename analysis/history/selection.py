"""Which recorded runs are meant: ``release=CANN 8.0.RC2,device=910b3,nightly=yes``.

Comes in: the runs of a history and what the user wrote. Goes out: the runs it names. A key is a column of the run, the
name of a software version, or a label, in any case of its letters; several must all hold. A device is known by any of
its names. A value ends at the next comma that is followed by a key and ``=``, or stands in quotes.
"""

from __future__ import annotations

import polars as pl
import regex

from analysis.hardware.devices import find_device
from logparse.errors import UsageError, unknown_name
from logparse.language import msg, tr

KEY = regex.compile(r"[\w.-]+")
PAIR = regex.compile(
    rf"""\s*(?P<key>{KEY.pattern})\s*=\s*"""
    r"""(?:"(?P<value>[^"]*)"|'(?P<value>[^']*)'|(?P<value>.*?))"""
    rf"""\s*(?:,(?=\s*{KEY.pattern}\s*=)|,?$)"""
)
# Nobody can type these into a selector, and half a surrogate no file can hold.
UNTYPED = regex.compile(r"[\p{Cc}\p{Cs}]")
PLAIN = (pl.String, pl.Int64, pl.Float64, pl.Boolean)


def is_selector(text: str) -> bool:
    """Whether ``text`` is of the form key=value."""
    return PAIR.match(text) is not None


def parse_selector(text: str) -> dict[str, str]:
    """The pairs of a selector, keys in lower case. Raises UsageError where it is none, or a key stands in it twice."""
    pairs: dict[str, str] = {}
    at = 0
    while at < len(text) or not pairs:
        found = PAIR.match(text, at)
        if found is None or found.end() == at:
            remedy = tr("write key=value, as in release=CANN 8.0.RC2")
            raise UsageError(tr("{text!r} selects nothing", text=text), remedy=remedy)
        key = found["key"].lower()
        if key in pairs:
            problem = tr("{key} is given twice", key=key)
            raise UsageError(problem, where=text, remedy=tr("give one value for each key"))
        pairs[key] = found["value"]
        at = found.end()
    return pairs


def select_runs(runs: pl.DataFrame, text: str) -> pl.DataFrame:
    """The rows of ``runs`` that the selector names; none where none fits.

    Raises UsageError where it is no selector or has a key that no run knows.
    """
    return runs.filter(*(_holds(runs, key, value) for key, value in parse_selector(text).items()))


def selectable(runs: pl.DataFrame) -> list[str]:
    """The keys that a selector may have."""
    columns = [name for name, dtype in runs.schema.items() if dtype in PLAIN]
    return [*columns, *_names(runs, "versions"), *_names(runs, "labels")]


def _holds(runs: pl.DataFrame, key: str, value: str) -> pl.Expr:
    """Whether a column of a run, one of its versions or one of its labels is called ``key`` and is ``value``."""
    found = [_equals(runs, key, value)] if runs.schema.get(key) in PLAIN else []
    for column in ("versions", "labels"):
        if key in map(str.lower, _names(runs, column)):
            name, said = (pl.element().struct.field(part) for part in ("name", "value"))
            held = pl.col(column).list.eval((name.str.to_lowercase() == key) & (said == value)).list.any()
            found.append(held.fill_null(value=False))
    if found:
        return pl.any_horizontal(found)
    if runs.is_empty():
        return pl.lit(False)
    remedy = tr("a key is a column, a version or a label: logparse history list")
    raise unknown_name(msg("key"), key, selectable(runs), remedy)


def _equals(runs: pl.DataFrame, key: str, value: str) -> pl.Expr:
    dtype = runs.schema[key]
    if key == "device" and value not in runs[key]:
        return pl.col(key) == find_device(value).name
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
