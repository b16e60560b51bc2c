"""What every command that reads a log does first: the log, what its numbers mean, what is known of the run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from analysis.hardware.devices import CPU, is_cpu
from analysis.model.catalogue import catalogued
from analysis.run.options import RunOptions
from analysis.run.other_model import without_other_model
from analysis.run.streams import MixedRun
from logparse.context.dialects import Interpretation, interpret
from logparse.context.printed_sizes import sizes_of_lines
from logparse.context.restarted_settings import list_printings
from logparse.context.run_context import (
    Fact,
    RunContext,
    SettingsChange,
    build_changes,
    build_context,
    facts_of_other_formats,
)
from logparse.context.split_log import split_log
from logparse.context.step_times import KnownRun
from logparse.decode.read_run import ParsedLog, Watch, read_run
from logparse.errors import NoStepLineError
from logparse.findings import Origin
from logparse.light_dataclass import dataclass, replace

if TYPE_CHECKING:
    from logparse.formats._base import LogFormat


@dataclass(frozen=True)
class Loaded:
    """One run, read and understood."""

    log: ParsedLog
    meaning: Interpretation
    context: RunContext
    changes: tuple[SettingsChange, ...]


def load(logs: Sequence[str], how: RunOptions, name: str | None = None, watch: Watch | None = None) -> Loaded:
    """Read ``logs`` as one run; with ``drafts`` one of an unknown format by a format drafted from it."""

    def read(fmt: LogFormat | str | None) -> ParsedLog:
        return read_run(logs, fmt, how.strict, name, watch, how.jobs, how.all_files)

    try:
        log = read(how.log_format)
    except NoStepLineError as refusal:
        if not how.drafts or how.log_format is not None:
            raise
        from logparse.draft.read_unknown import read_drafted

        log = read_drafted(logs, refusal, read)
    return understand(log, how)


def split(log: ParsedLog, runs: Sequence[MixedRun], how: RunOptions, in_turn: bool) -> list[Loaded]:
    """Each of the ``runs`` that ``log`` holds, ``in_turn`` or mixed."""
    return [understand(part, how) for part in split_log(log, [run.at for run in runs], in_turn)]


def understand(log: ParsedLog, how: RunOptions) -> Loaded:
    """Find what the numbers of ``log`` mean and what is known of its run."""
    several = len(log.sources) > 1
    lines = {**facts_of_other_formats(log.other_settings, several), **_facts_of_lines(log)}
    printings = list_printings(log.settings, log.steps)
    build = partial(
        build_context, log.settings, log.format, several=several, lines=lines, places=log.steps, printings=printings
    )
    printed = {name: fact for name, fact in build().facts.items() if fact.origin.kind == "log"}
    given, notes = without_other_model(how.given, printed)
    context = build(given.layers, weaker=given.weaker)
    sizes, disagreements = sizes_of_lines(log.steps, context, log.settings, log.format.rate_covers)
    if more := {**sizes, **_shape_of_name(context)}:
        context = build(given.layers, weaker={**more, **given.weaker})
    context = replace(context, notes=(*notes, *context.notes, *disagreements))
    changes = build_changes(context, printings, log.format, several)
    return Loaded(log, interpret(log, how.dialect, KnownRun(context, changes)), context, tuple(changes))


def _shape_of_name(context: RunContext) -> dict[str, Fact]:
    """The shape of the model that the log names, where the catalogue has it and the log prints no size."""
    named = context.facts.get("model_name")
    if named is None or context.get("num_layers") is not None or context.get("hidden_size") is not None:
        return {}
    model = catalogued(named.value)
    origin = replace(named.origin, rule=f"model_name {named.value}")
    return {} if model is None else {name: Fact(value, origin) for name, value in model.quantities().items()}


def _facts_of_lines(log: ParsedLog) -> dict[str, Fact]:
    """Facts for which every step line prints the same value, and the device that the log names."""
    facts = {}
    if log.device is not None:
        name = CPU if is_cpu(log.device.value) else log.device.value
        facts["device_name"] = Fact(name, log.device.origin(len(log.sources) > 1))
    for name in ("global_batch_size", "seq_length"):
        printed = log.steps[name]
        if printed.n_unique() == 1 and printed[0] is not None:
            facts[name] = Fact(printed[0], _of_step_lines(log, name))
    if tokens := _tokens_of_each_step(log.steps):
        facts["tokens_per_step"] = Fact(tokens, _of_step_lines(log, "consumed_tokens"))
    return facts


def _tokens_of_each_step(steps: pl.DataFrame) -> int | None:
    """Tokens that a step consumes, where the lines count them and it is the same for all."""
    if not steps["consumed_tokens"].count():
        return None
    counts = steps["source", "step", "consumed_tokens"].drop_nulls()
    n, tokens = (pl.col(name).diff().over("source") for name in ("step", "consumed_tokens"))
    of_one = counts.select((tokens / n).filter(n > 0).unique()).to_series()
    return int(of_one[0]) if len(of_one) == 1 and of_one[0] > 0 and of_one[0] == int(of_one[0]) else None


def _of_step_lines(log: ParsedLog, column: str) -> Origin:
    """Where what every step line prints is from: where another format gave it, the first of its lines."""
    for completion in log.completions:
        if column in completion.columns:
            return Origin(
                "log", completion.source if len(log.sources) > 1 else None, completion.line_number, completion.format
            )
    return Origin("step lines")
