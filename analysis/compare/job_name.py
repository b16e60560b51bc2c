"""The name of a job in a list of several: model, devices, hardware, layout, batch.

Comes in: the runs of a job, or of several. Goes out: names, the same in every language, which other tools keep as keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import polars as pl

from analysis.compare.comparability import FIELDS, fill_implied
from analysis.model.catalogue import models_of
from analysis.model.shape import ModelShape

# Parts of the layout as people abbreviate them; those of 1 are not named.
LAYOUT = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
    "dp": "data_parallel_size",
}
SHAPE = tuple(field.name for field in fields(ModelShape))
UNKNOWN_MODEL = "unknown model"
# Models of one shape that are named.
MODELS_NAMED = 2


def job_name(runs: pl.DataFrame) -> str:
    """The name of the job of ``runs``, from the most frequent value of each field."""
    values = {
        name: _most(runs[name]) for name in dict.fromkeys((*SHAPE, *FIELDS, "model_name")) if name in runs.columns
    }
    parts = (_model(values), _devices(values), _layout(values), _batch(values))
    return ", ".join(part for part in parts if part)


def series_names(series: Sequence[pl.DataFrame]) -> list[str]:
    """A name for each of several jobs; jobs of equal names get the fields in which they differ."""
    names = [job_name(runs) for runs in series]
    places_by_name = {name: [i for i, other in enumerate(names) if other == name] for name in names}
    for name, places in places_by_name.items():
        if len(places) > 1:
            for place, apart in zip(places, _apart([fill_implied(series[i]) for i in places]), strict=True):
                names[place] = ", ".join([name, *apart])
    return [f"{name} ({names[:i].count(name) + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def model_and_devices(run: Mapping[str, Any]) -> tuple[str, str]:
    """The model of one run, and how many of which device, as the names of jobs have them; empty where unknown."""
    model = _model(run)
    return "" if model == UNKNOWN_MODEL else model, _devices(run)


def _apart(jobs: Sequence[pl.DataFrame]) -> list[list[str]]:
    """Of each job its values of the fields in which they differ."""
    values = {name: [_most(runs[name]) for runs in jobs] for name in FIELDS}
    names = [name for name, by_job in values.items() if len(set(by_job)) > 1]
    return [[f"{n} {'unknown' if values[n][i] is None else values[n][i]}" for n in names] for i in range(len(jobs))]


def _most(values: pl.Series) -> Any:
    """The most frequent known value; the first of several."""
    counts = Counter(value for value in values.to_list() if value is not None)
    return next((value for value, _ in counts.most_common(1)), None)


def _model(values: Mapping[str, Any]) -> str:
    shape = ModelShape.from_quantities(values)
    models = [model.name for model in models_of(shape)]
    if 0 < len(models) <= MODELS_NAMED:
        return " or ".join(models)
    layers, width = values["num_layers"], values["hidden_size"]
    return str(values.get("model_name") or (f"{layers} layers of {width}" if layers and width else UNKNOWN_MODEL))


def _devices(values: Mapping[str, Any]) -> str:
    number, device = values["world_size"], values["device"]
    if number is None:
        return str(device or "")
    return f"{number} x {device}" if device else f"{number} devices"


def _layout(values: Mapping[str, Any]) -> str:
    return " ".join(f"{short}{values[name]}" for short, name in LAYOUT.items() if (values[name] or 1) > 1)


def _batch(values: Mapping[str, Any]) -> str:
    batch, length = values["global_batch_size"], values["seq_length"]
    return " ".join([f"batch {batch}"] * bool(batch) + [f"sequence {length}"] * bool(length))
