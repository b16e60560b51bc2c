"""Old stores stay readable: one small function from each version of a table to the next.

A column that is only added needs none: rows that lack it are null there. To change a name or a meaning, raise
``STORE_VERSION`` and add a step here; files are never rewritten but by ``history compact``, which writes a copy.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

import polars as pl
import regex

from analysis.history.records import RUN_COLUMNS, STORE_VERSION
from logparse.errors import InputError
from logparse.findings import Origin, flag
from logparse.language import tr

Migration = Callable[[pl.DataFrame], pl.DataFrame]

_PAIR_1 = pl.Struct({"name": pl.String, "value": pl.String})
_TRACED_1 = pl.Struct({"name": pl.String, "value": pl.String, "origin": pl.String})
# Of each version that is read in one scan, the types of its columns that are others now.
TYPES: Mapping[int, Mapping[str, pl.DataType]] = {
    1: {"versions": pl.List(_TRACED_1), "origins": pl.List(_PAIR_1)},
    STORE_VERSION: {},
}
# How version 1 told of a line of a log, and of what a flag or a file gave, in either language.
LOG_LINES_1 = (
    regex.compile(r"log line (?P<line>\d+)(?: of (?P<file>.+?))?(?:: (?P<rule>.+))?"),
    regex.compile(r"日志第 (?P<line>\d+) 行(?:：(?P<rule>.+))?"),
    regex.compile(r"(?P<file>.+) 第 (?P<line>\d+) 行(?:：(?P<rule>.+))?"),
)
MODEL_1, FLAG_1 = regex.compile(r"--model (.+)"), regex.compile(r"--[\w-]+")
CONFIG_1 = regex.compile(r"(?:config file|配置文件) (.+)")


def migrate_runs(runs: pl.DataFrame, version: int) -> pl.DataFrame:
    """Bring summary rows of ``version`` to the present one. Raises InputError for a version of the future."""
    return _migrate(runs, version, {0: _runs_from_0, 1: _runs_from_1})


def migrate_steps(steps: pl.DataFrame, version: int) -> pl.DataFrame:
    """Bring the steps of a run to the present version. Raises InputError for a version of the future."""
    return _migrate(steps, version, {1: _steps_from_1})


def _migrate(frame: pl.DataFrame, version: int, steps: Mapping[int, Migration]) -> pl.DataFrame:
    if version > STORE_VERSION:
        raise InputError(
            tr(
                "the history was written by a newer logparse (version {version} of the table, here {known})",
                version=version,
                known=STORE_VERSION,
            ),
            remedy=tr("upgrade logparse"),
        )
    for number in range(version, STORE_VERSION):
        frame = steps[number](frame) if number in steps else frame
    return frame


def _runs_from_0(runs: pl.DataFrame) -> pl.DataFrame:
    """Version 0, never released: one name for the steady time, and labels as a text ``key=value;key=value``."""
    pair = pl.element().str.splitn("=", 2).struct.rename_fields(["name", "value"])
    labels = (
        pl.when(pl.col("labels") == "").then(pl.lit([], pl.List(pl.String))).otherwise(pl.col("labels").str.split(";"))
    )
    return runs.rename({"step_time_ms": "steady_step_time_ms"}).with_columns(labels=labels.list.eval(pair))


def _runs_from_1(runs: pl.DataFrame) -> pl.DataFrame:
    """Version 1: origins in words, in the language of who recorded."""
    now = {column.name: column.dtype for column in RUN_COLUMNS}
    old = runs.select(pl.col(name).cast(TYPES[1][name]) for name in TYPES[1] if name in runs.columns)
    return runs.with_columns(
        pl.Series(rows.name, [None if row is None else list(map(_traced, row)) for row in rows], now[rows.name])
        for rows in old
    )


def _traced(pair: Mapping[str, str | None]) -> dict[str, Any]:
    """A version, or the origin of a quantity, which stood as the pair's value."""
    if "origin" in pair:
        return {**pair, "origin": _origin_1(pair["origin"])}
    return {"name": pair["name"], "origin": _origin_1(pair["value"])}


@cache
def _origin_1(text: str | None) -> dict[str, Any] | None:
    return None if text is None else asdict(read_origin(text))


def read_origin(text: str) -> Origin:
    """The origin that version 1 called ``text``; of kind ``text`` where it is none of its words."""
    if text in _words_1()["derivations"]:
        return Origin("derived", rule=_words_1()["derivations"][text])
    if text in _words_1()["origins"]:
        return Origin(_words_1()["origins"][text])
    if found := MODEL_1.fullmatch(text):
        return Origin("model", rule=found[1])
    if found := CONFIG_1.fullmatch(text):
        return Origin("config", file=found[1])
    for pattern in LOG_LINES_1:
        if found := pattern.fullmatch(text):
            return Origin("log", found.groupdict().get("file"), int(found["line"]), found["rule"])
    return flag(text) if FLAG_1.fullmatch(text) else Origin("text", rule=text)


def _steps_from_1(steps: pl.DataFrame) -> pl.DataFrame:
    """Version 1: why a row does not count stood in English, whoever recorded."""
    return steps.with_columns(pl.col("excluded_reason").replace(_words_1()["reasons"]))


@cache
def _words_1() -> dict[str, dict[str, Any]]:
    """What version 1 said in fixed words, in both languages, by kind; and the codes of the same."""
    text = (files("analysis.history") / "version_1.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
