"""Old stores stay readable: one small function from each version of a table to the next.

A new column needs no function: older rows are null there. To change a name or a meaning, raise ``STORE_VERSION`` and
add a step here. Files are never rewritten; ``history compact`` writes a copy.
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

from analysis.flops import Recomputation, all_formulas, real_model_formula
from analysis.history.records import RUN_COLUMNS, STORE_VERSION
from analysis.model.shape import ModelShape
from logparse.context.recomputed_layers import recomputed_layers
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
# The texts of version 1 for a line of a log, a flag or a file, in either language.
LOG_LINES_1 = (
    regex.compile(r"log line (?P<line>\d+)(?: of (?P<file>.+?))?(?:: (?P<rule>.+))?"),
    regex.compile(r"日志第 (?P<line>\d+) 行(?:：(?P<rule>.+))?"),
    regex.compile(r"(?P<file>.+) 第 (?P<line>\d+) 行(?:：(?P<rule>.+))?"),
)
MODEL_1, FLAG_1 = regex.compile(r"--model (.+)"), regex.compile(r"--[\w-]+")
CONFIG_1 = regex.compile(r"(?:config file|配置文件) (.+)")


def migrate_runs(runs: pl.DataFrame, version: int) -> pl.DataFrame:
    """Bring summary rows of ``version`` to the present one. Raises InputError for a version of the future."""
    return recount(_migrate(runs, version, {0: _runs_from_0, 1: _runs_from_1}))


def migrate_steps(steps: pl.DataFrame, version: int) -> pl.DataFrame:
    """Bring the steps of a run to the present version. Raises InputError for a version of the future."""
    return _migrate(steps, version, {1: _steps_from_1})


def refuse_newer(version: int) -> None:
    """Raise InputError for a version of the future."""
    if version > STORE_VERSION:
        raise InputError(
            tr(
                "the history was written by a newer logparse (version {version} of the table, here {known})",
                version=version,
                known=STORE_VERSION,
            ),
            remedy=tr("upgrade logparse"),
        )


def _migrate(frame: pl.DataFrame, version: int, steps: Mapping[int, Migration]) -> pl.DataFrame:
    refuse_newer(version)
    for number in range(version, STORE_VERSION):
        frame = steps[number](frame) if number in steps else frame
    return frame


# Figures of work as executed, which version 2 at first took for that of all layers where only some were recomputed.
OF_ALL_LAYERS = ("tflops_per_second_per_device", "flops_per_iteration")
EXECUTED = ("hardware_tflops_per_second_per_device", "hfu")


def recount(runs: pl.DataFrame) -> pl.DataFrame:
    """Runs recorded before MFU as built was known, and when a part of the layers counted as all, as they are now.

    From what they kept: shape, rate, peak and settings. The rate is their median, so MFU as built is what a run of one
    sequence length would have been recorded with. Rows of the present are as they were.
    """
    name = "mfu_as_built"
    old = runs if name in runs.columns else runs.with_columns(pl.lit(None, pl.Float64).alias(name))
    if not old[name].null_count():
        return runs
    rows = [row if row[name] is not None else {**row, **_recounted(row)} for row in old.iter_rows(named=True)]
    changed = [n for n in (name, *OF_ALL_LAYERS, *EXECUTED) if n in old.columns]
    return old.with_columns(pl.Series(n, [row[n] for row in rows], pl.Float64) for n in changed)


def _recounted(row: Mapping[str, Any]) -> dict[str, float | None]:
    length, shape = row.get("seq_length"), ModelShape.from_quantities(row).all_trained
    rate, peak = row.get("tokens_per_second_per_device"), row.get("peak_tflops_per_second")
    if not length:
        return {}
    built = real_model_formula().model_flops_per_token(shape, length)
    known = built is not None and rate is not None and peak
    as_built = {"mfu_as_built": built * rate / (peak * 1e12)} if known else {}  # type: ignore[operator]
    return {**as_built, **_in_part(row, shape, length)}


def _in_part(row: Mapping[str, Any], shape: ModelShape, length: int) -> dict[str, float | None]:
    """The figures of work as executed, where only some of the layers were recomputed."""
    facts = {name: value for name, value in row.items() if value is not None}
    formula = all_formulas().get(row.get("formula") or "")
    if formula is None or row.get("recompute_method") != "block" or not {"recompute", "num_layers"} <= facts.keys():
        return {}
    layers = recomputed_layers(facts)
    if layers is None or row.get("recomputed_layers") is not None:
        return {}
    part = Recomputation(layers / row["num_layers"])
    full, now = (formula.hardware_flops_per_token(shape, length, what) for what in ("full", part))
    if not full or not now:
        return {}
    names = (*OF_ALL_LAYERS, *EXECUTED) if formula.quotes_recompute else EXECUTED
    return {name: None if row.get(name) is None else row[name] * now / full for name in names}


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
    if match := MODEL_1.fullmatch(text):
        return Origin("model", rule=match[1])
    if match := CONFIG_1.fullmatch(text):
        return Origin("config", file=match[1])
    for pattern in LOG_LINES_1:
        if match := pattern.fullmatch(text):
            return Origin("log", match.groupdict().get("file"), int(match["line"]), match["rule"])
    return flag(text) if FLAG_1.fullmatch(text) else Origin("text", rule=text)


def _steps_from_1(steps: pl.DataFrame) -> pl.DataFrame:
    """Version 1: why a row does not count stood in English, whoever recorded."""
    return steps.with_columns(pl.col("excluded_reason").replace(_words_1()["reasons"]))


@cache
def _words_1() -> dict[str, dict[str, Any]]:
    """The fixed texts of version 1, in both languages, by kind, with the code of each."""
    text = (files("analysis.history") / "version_1.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
