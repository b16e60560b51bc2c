"""Recorded runs as rows that a run is compared with, like published rates.

Comes in: the history of this folder. Goes out: rows, the fastest first. A history that does not exist yet gives none:
it is not an error, since the user did not ask for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl

from analysis.history.open_history import Report
from analysis.history.storage import open_storage
from analysis.history.store import History
from analysis.model.shape import ModelShape
from analysis.published.baselines import Baseline
from logparse.inputs.stores import is_url

RATE = "tokens_per_second_per_device"


def recorded_rows(place: str | None, report: Report) -> tuple[Baseline, ...]:
    """The runs of the history at ``place`` that have a rate and are not excluded.

    Raises InputError where it cannot be read.
    """
    if place is None or not (is_url(place) or Path(place).is_dir()):
        return ()
    recorded = History(open_storage(place), warn=report).runs()
    runs = recorded.filter(pl.col(RATE).is_not_null(), pl.col("excluded").is_null())
    return tuple(_row(run) for run in runs.sort(RATE, descending=True).iter_rows(named=True))


def _row(run: Mapping[str, Any]) -> Baseline:
    shape = {field.name: run[field.name] for field in fields(ModelShape) if run.get(field.name) is not None}
    return Baseline(
        name=run["run_id"][:12],
        model=run["name"],
        size="",
        nodes=None,
        devices=run["world_size"],
        device=run["device"],
        precision=run["precision"],
        mode="LoRA" if run["lora"] else None,
        seq_length=run["seq_length"],
        global_batch_size=run["global_batch_size"],
        tokens_per_second_per_device=run[RATE],
        reference_tokens_per_second_per_device=None,
        step_time_s=None,
        tflops_per_second_per_device=None,
        mfu=None,
        formula=None,
        parameters=None,
        sizes=shape,
        publisher=run["release"] or "",
        document="",
        date=None if run["begun_at"] is None else f"{run['begun_at']:%Y-%m-%d}",
        note=None,
        rounding={},
        recorded=True,
    )
