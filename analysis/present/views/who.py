"""Who ran: the model on its devices, the framework, when, how long and how far."""

from __future__ import annotations

from typing import Any

import polars as pl

from analysis.hardware.devices import BY_HAND
from analysis.model.parameters import count_parameters
from analysis.present.words import framework_text
from analysis.present.words.forms import big, devices, span
from analysis.run.run import Run
from logparse.language import tr


def who(run: Run) -> str:
    """Model on devices, framework, number type, when, how long, how far."""
    facts = (
        _model_on_devices(run),
        framework_text(run.framework),
        run.context.get("precision"),
        _when(run),
        _how_far(run),
    )
    return " · ".join(str(fact) for fact in facts if fact)


def _model_on_devices(run: Run) -> str:
    return tr("{model} on {devices}", model=model_name(run), devices=_devices(run))


def model_name(run: Run) -> str:
    """The model by its shape: its name in the catalogue, else its size."""
    if names := run.model_names:
        return tr(" or ").join(names)
    counted = count_parameters(run.analysis.computation.shape)
    if counted is None:
        return str(run.context.get("model_name") or tr("a model of unknown size"))
    if counted.active == counted.total:
        return tr("{n} parameters", n=big(counted.total))
    return tr("{n} parameters, {active} active", n=big(counted.total), active=big(counted.active))


def _devices(run: Run) -> str:
    how = run.analysis.computation
    number = tr("devices of unknown number") if how.world_size is None else f"{how.world_size:,}"
    device = _device(run)
    if not device:
        return number if how.world_size is None else devices(number)
    return tr("{n} x {device}", n=number, device=tr(device))


def _device(run: Run) -> str | None:
    """The device, also one without a peak of the number type."""
    peak = run.analysis.computation.peak
    if peak is not None:
        return None if peak.name == BY_HAND else peak.name
    return next((note.fields["device"] for note in run.notes if note.code == "no_peak_of_type"), None)


def _when(run: Run) -> str:
    seconds: Any = run.account["seconds"].sum()
    begins = _begins(run)
    lasted = span(seconds) if seconds else ""
    if lasted and not run.analysis.has_clock:
        lasted = tr("{time} of steps", time=lasted)
    return tr(", ").join(part for part in (f"{begins:%Y-%m-%d %H:%M}" if begins else "", lasted) if part)


def _begins(run: Run) -> Any:
    """The first stamp of the log: only lines before the first step are by its clock, a restart may have another."""
    first = run.steps.select("source", "line_number", "timestamp").drop_nulls("timestamp").bottom_k(1, by="timestamp")
    lines = run.records["events"].join(first.select("source", before="line_number"), on="source")
    earlier: Any = lines.filter(pl.col("line_number") < pl.col("before"))["timestamp"].min()
    return first["timestamp"].min() if earlier is None else earlier


def _how_far(run: Run) -> str:
    own = run.steps.filter(~pl.col("copied"))
    done: Any = own["step"].max()
    asked = run.steps["train_steps"].drop_nulls()
    if done is None:
        return ""
    step = tr("step {done} of {asked}", done=f"{done:,}", asked=f"{asked[-1]:,}") if len(asked) else ""
    tokens = own.select((pl.col("iterations") * pl.col("global_batch_size") * pl.col("seq_length")).sum()).item()
    seen = tr("{n} tokens", n=big(tokens)) if tokens else ""
    return tr(", ").join(part for part in (step or tr("step {done}", done=f"{done:,}"), seen) if part)
