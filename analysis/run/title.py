"""What a run is, in a line: model, devices, when, how long and how far. Values; words are chosen by the views."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import polars as pl

from analysis.hardware.devices import BY_HAND
from analysis.model.catalogue import catalogued, has_shape, models_of, named_in, same_model
from analysis.model.parameters import Parameters, count_parameters
from analysis.model.shape import ModelShape
from analysis.run.load import SIZES, contradicted
from analysis.run.notes import FAST_FOR_CPU
from analysis.run.rates.batch_sizes import mean_batch
from analysis.run.result import Analysis
from analysis.run.rows.unprinted_steps import MISSING_LINES
from analysis.run.useful.remaining_time import untimed_within
from logparse.context.relations import SUMMARY
from logparse.context.run_context import RunContext
from logparse.findings import Note
from logparse.light_dataclass import dataclass

# Findings of a known device without a peak.
WITHOUT_PEAK = ("no_peak_of_type", "number_type_unknown")


@dataclass(frozen=True)
class Title:
    """``models`` are named models of its shape, ``printed_model`` is what the log calls it, if it has its sizes.

    ``printed_parameters`` are as many as the log counts. ``width`` is the hidden size. ``device`` may be known without
    a peak. ``seconds`` are those of the time breakdown; with ``untimed`` it leaves out steps that print no time.
    ``tokens`` are those of its steps. None where a value is unknown.
    """

    models: Sequence[str]
    printed_model: str | None
    parameters: Parameters | None
    printed_parameters: int | None
    layers: int | None
    width: int | None
    devices: int | None
    device: str | None
    begins: datetime | None
    seconds: float | None
    first_step: int | None
    last_step: int | None
    planned_steps: int | None
    tokens: int | None
    untimed: bool = False


def title_of(
    sources: Sequence[str],
    events: pl.DataFrame,
    settings: pl.DataFrame,
    analysis: Analysis,
    context: RunContext,
    notes: Sequence[Note],
) -> Title:
    """The title of the run of these ``sources``, whose log has these ``events`` and ``settings``."""
    counted = next((note.fields["counted"] for note in notes if note.code == "tokens_counted"), None)
    of_a_sample = pl.col("seq_length") if counted is None else pl.lit(counted)
    own, step, iterations = ~pl.col("copied"), pl.col("step"), pl.col("iterations")
    first_line, first_step, last_step, tokens = analysis.steps.select(
        step.filter(own).min(),
        first=(step - iterations.fill_null(1) + 1).filter(own).min(),
        last=step.filter(own).max(),
        # While a batch ramps up, a row prints that of its last step.
        tokens=(iterations * mean_batch() * of_a_sample).filter(own).sum(),
    ).row(0)
    if any(note.code == MISSING_LINES for note in notes):
        first_step = first_line
    seconds: Any = analysis.time_breakdown["seconds"].sum()
    if not seconds and not analysis.streams:
        # Where the clock is not believed.
        seconds = analysis.segments["step_time_sum_ms"].sum() / 1000 or _between_stamps(analysis)
    if seconds and not analysis.has_clock and len(analysis.segments) == 1:
        seconds = max(seconds, printed_runtime(settings))
    return Title(
        models=names_of_model(analysis, context, sources),
        printed_model=printed_name(context, analysis.computation.shape),
        parameters=count_parameters(analysis.computation.shape),
        printed_parameters=context.get("model_parameters"),
        layers=analysis.computation.shape.num_layers,
        width=analysis.computation.shape.hidden_size,
        devices=analysis.computation.world_size,
        device=_device(analysis, notes) or _printed_device(context, notes),
        begins=_begins(analysis.steps, events),
        seconds=seconds or None,
        first_step=first_step,
        last_step=last_step,
        planned_steps=cast("int | None", analysis.steps["train_steps"].last(ignore_nulls=True)),
        tokens=round(tokens) or None,
        untimed=untimed_within(analysis.steps),
    )


def _between_stamps(analysis: Analysis) -> float:
    """Seconds from the first to the last line of the only start; 0 where lines without a time have no stamps."""
    stamps = analysis.steps["timestamp"]
    if len(analysis.segments) != 1 or not stamps.count():
        return 0.0
    ends: Any = (stamps.min(), stamps.max())
    return float((ends[1] - ends[0]).total_seconds())


def printed_runtime(settings: pl.DataFrame) -> float:
    """The seconds of the whole training that the log prints at its end; 0 where it prints none."""
    printed = settings["value"].filter((settings["kind"] == SUMMARY) & (settings["name"] == "train_runtime"))
    seconds: Any = printed.cast(pl.Float64, strict=False).last(ignore_nulls=True)
    return float(seconds) if seconds is not None and math.isfinite(seconds) else 0.0


def _device(analysis: Analysis, notes: Sequence[Note]) -> str | None:
    """The name of the device in our table; None where it is unknown, or a peak was given by hand."""
    peak = analysis.computation.peak
    if peak is not None:
        return None if peak.name == BY_HAND else peak.name
    return device_without_peak(notes)


def _printed_device(context: RunContext, notes: Sequence[Note]) -> str | None:
    """The device that the log names; None of a CPU that is too fast for one."""
    return None if any(note.code == FAST_FOR_CPU for note in notes) else context.get("device_name")


def device_without_peak(notes: Sequence[Note]) -> str | None:
    """The device of our table that ``notes`` say has no peak of the number type; None where they say no such thing."""
    return next((note.fields["device"] for note in notes if note.code in WITHOUT_PEAK), None)


def _begins(steps: pl.DataFrame, events: pl.DataFrame) -> Any:
    """The first stamp of the log: only lines before the first step are by its clock, a restart may have another."""
    at = steps["timestamp"].arg_min()
    if at is None:
        return None
    source, line, first = steps["source", "line_number", "timestamp"].row(at)
    earlier = (events["source"] == source) & (events["line_number"] < line)
    return events["timestamp"].filter(earlier).min() or first


# So many models of one shape are named.
MODELS_NAMED = 2


def names_of_model(analysis: Analysis, context: RunContext, sources: Sequence[str]) -> list[str]:
    """The name that the user gave; else those of its shape, of several only those that the log or its path says."""
    shape, origin = analysis.computation.shape, context.origin("num_layers")
    given = catalogued(str(origin.rule)) if origin and origin.kind == "model" else None
    # With flags that change its sizes it is another model.
    if given and same_model(given.shape, shape):
        return [given.name]
    name = str(context.get("model_name"))
    printed = catalogued(name) or named_in(name)
    # Models of several families have one shape: Code Llama has that of Llama 2.
    if printed and has_shape(printed, shape):
        return [printed.name]
    models = [model.name for model in models_of(shape)]
    text = " ".join((*sources, name)).lower().replace("_", "-")
    names = [name for name in models if _is_in(text, name)] or models
    return names if len(names) <= MODELS_NAMED else []


def _is_in(text: str, name: str) -> bool:
    """Whether ``name`` is in ``text``, and is no part of another one: llama-7b is one of codellama-7b."""
    return re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", text) is not None


def printed_name(context: RunContext, shape: ModelShape) -> str | None:
    """What the log calls its model; None where that is the name of a model of other sizes."""
    name = context.get("model_name")
    model = (catalogued(name) or named_in(name)) if isinstance(name, str) else None
    sizes = {key: getattr(shape, key) for key in SIZES}
    return None if model and contradicted(model.quantities(), sizes) else name
