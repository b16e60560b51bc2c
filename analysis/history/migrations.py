"""Old stores stay readable: one small function from each version of a table to the next.

A new column needs no function: older rows are null there. To change a name or a meaning, raise ``STORE_VERSION`` and
add a step here. Files are never rewritten; ``history compact`` writes a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from analysis.flops import Recomputation, all_formulas, real_model_formula
from analysis.history.run_records import RUN_COLUMNS, STORE_VERSION
from analysis.model.shape import ModelShape
from analysis.run.rates.throughput import read_recomputation
from logparse.context.recomputed_layers import recomputed_layers
from logparse.context.relations import Fact
from logparse.context.run_context import RunContext
from logparse.errors import InputError
from logparse.findings import Origin, flag
from logparse.language import tr
from logparse.lazy_regex import lazy_regex
from logparse.package_tables import read_table

Migration = Callable[[pl.DataFrame], pl.DataFrame]

_PAIR_1 = pl.Struct({"name": pl.String, "value": pl.String})
_TRACED_1 = pl.Struct({"name": pl.String, "value": pl.String, "origin": pl.String})
# Of each version that is read in one scan, the types of its columns that are others now.
TYPES: Mapping[int, Mapping[str, pl.DataType]] = {
    1: {"versions": pl.List(_TRACED_1), "origins": pl.List(_PAIR_1)},
    2: {},
    STORE_VERSION: {},
}
# Until version 2: other names of two rates, and a column of its own for the MFU of the real model.
_ENDS = ("step_time_ms", "step_time_low_ms", "step_time_high_ms", "steps")
RENAMED_2 = {
    f"{old}_{end}": f"{new}_{end}"
    for old, new in {"delivered": "with_stalls", "all_in": "wall_clock"}.items()
    for end in _ENDS
}
MFU_2 = "mfu_as_built"
_LAST_OF_OLD_NAMES = 2
# The texts of version 1 for a line of a log, a flag or a file, in either language.
LOG_LINES_1 = (
    lazy_regex(r"log line (?P<line>\d+)(?: of (?P<file>.+?))?(?:: (?P<rule>.+))?"),
    lazy_regex(r"日志第 (?P<line>\d+) 行(?:：(?P<rule>.+))?"),
    lazy_regex(r"(?P<file>.+) 第 (?P<line>\d+) 行(?:：(?P<rule>.+))?"),
)
MODEL_1, FLAG_1 = lazy_regex(r"--model (.+)"), lazy_regex(r"--[\w-]+")
CONFIG_1 = lazy_regex(r"(?:config file|配置文件) (.+)")


def migrate_runs(runs: pl.DataFrame, version: int) -> pl.DataFrame:
    """Bring summary rows of ``version`` to the present one. Raises InputError for a version of the future."""
    return _migrate(runs, version, {0: _runs_from_0, 1: _runs_from_1, 2: _runs_from_2})


def columns_of(version: int, schema: Mapping[str, pl.DataType]) -> pl.Schema | None:
    """The columns of ``schema`` as files of ``version`` name and type them, for one scan of many files.

    None where each file has to be read by itself.
    """
    if version not in TYPES:
        return None
    old_names = {new: old for old, new in RENAMED_2.items()} if version <= _LAST_OF_OLD_NAMES else {}
    old = {MFU_2: pl.Float64()} if version <= _LAST_OF_OLD_NAMES else {}
    schema_now = {old_names.get(name, name): TYPES[version].get(name, dtype) for name, dtype in schema.items()}
    return pl.Schema({**schema_now, **old})


def migrate_steps(steps: pl.DataFrame, version: int) -> pl.DataFrame:
    """Bring the steps of a run to the present version. Raises InputError for a version of the future."""
    return _migrate(steps, version, {1: _steps_from_1, 2: _steps_from_2})


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


# Figures of the chosen formula, which version 2 at first took for those of all layers where some were recomputed.
OF_ALL_LAYERS = ("tflops_per_second_per_device", "flops_per_iteration")
# Shares of the peak, which have other meanings since version 3.
SHARES = ("peak_utilization", "mfu", "hfu")


def _runs_from_2(runs: pl.DataFrame) -> pl.DataFrame:
    """Version 2: MFU and HFU were by the chosen formula, and a part of the layers once counted as all.

    The shares of the peak are computed again from what a run kept: shape, median rate, peak and settings.
    """
    old = runs.rename({name: now for name, now in RENAMED_2.items() if name in runs.columns})
    rows = [{**row, **_recounted(row)} for row in old.iter_rows(named=True)]
    changed = [name for name in (*OF_ALL_LAYERS, *SHARES) if name in old.columns or name in SHARES]
    return old.with_columns(pl.Series(name, [row.get(name) for row in rows], pl.Float64) for name in changed)


def _recounted(row: Mapping[str, Any]) -> dict[str, float | None]:
    length, shape = row.get("seq_length"), ModelShape.from_quantities(row)
    formula_figures = _in_part(row, shape.all_trained, length) if length and row.get(MFU_2) is None else {}
    tflops = {**row, **formula_figures}.get("tflops_per_second_per_device")
    peak, rate = row.get("peak_tflops_per_second"), row.get("tokens_per_second_per_device")
    shares: dict[str, float | None] = dict.fromkeys(SHARES)
    if peak:
        shares["peak_utilization"] = None if tflops is None else tflops / peak
    if peak and length and rate is not None:
        shares |= _of_real_model(row, shape, length, rate / (peak * 1e12))
    return {**formula_figures, **shares}


def _of_real_model(row: Mapping[str, Any], shape: ModelShape, length: int, per_flop: float) -> dict[str, float | None]:
    """MFU and HFU: FLOPs per token times ``per_flop``, the rate over the peak."""
    formula = real_model_formula()
    model = formula.model_flops_per_token(shape, length)
    if model is None:
        return {"mfu": None, "hfu": None}
    facts = {name: Fact(value, Origin("text")) for name, value in row.items() if value is not None}
    ends = read_recomputation(RunContext(facts))
    least = ends and formula.least_per_token(shape, length, ends.least)
    most = ends and formula.most_per_token(shape, length, ends.most)
    recorded = row.get(MFU_2)
    mfu = model * per_flop if recorded is None else recorded
    return {"mfu": mfu, "hfu": mfu * least / model if least and least == most else None}


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
    names = OF_ALL_LAYERS if formula.quotes_recompute else ()
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


def _steps_from_2(steps: pl.DataFrame) -> pl.DataFrame:
    """Version 2: the MFU of the real model had a column of its own; its HFU was not kept."""
    unknown = pl.lit(None, pl.Float64)
    mfu = pl.col(MFU_2) if MFU_2 in steps.columns else unknown
    return steps.with_columns(mfu=mfu, hfu=unknown).drop(MFU_2, strict=False)


@cache
def _words_1() -> dict[str, dict[str, Any]]:
    """The fixed texts of version 1, in both languages, by kind, with the code of each."""
    return read_table(Path(__file__).parent / "version_1.toml")
