"""Old stores stay readable: one small function from each version of the table to the next.

A column that is only added needs none: rows that lack it are null there. To change a name or a meaning, raise
``STORE_VERSION`` and add a step here; files are never rewritten but by ``history compact``, which writes a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from analysis.history.records import STORE_VERSION
from logparse.errors import InputError
from logparse.language import tr


def _from_0(runs: pl.DataFrame) -> pl.DataFrame:
    """Version 0, never released: one name for the steady time, and labels as a text ``key=value;key=value``."""
    pair = pl.element().str.splitn("=", 2).struct.rename_fields(["name", "value"])
    labels = (
        pl.when(pl.col("labels") == "").then(pl.lit([], pl.List(pl.String))).otherwise(pl.col("labels").str.split(";"))
    )
    return runs.rename({"step_time_ms": "steady_step_time_ms"}).with_columns(labels=labels.list.eval(pair))


STEPS: Mapping[int, Callable[[pl.DataFrame], pl.DataFrame]] = {0: _from_0}


def migrate(runs: pl.DataFrame, version: int) -> pl.DataFrame:
    """Bring ``runs`` of ``version`` to the present one. Raises InputError for a version of the future."""
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
        runs = STEPS[number](runs)
    return runs
