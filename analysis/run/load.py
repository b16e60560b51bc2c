"""What every command that reads a log does first: the log, what its numbers mean, what is known of the run.

Here it is also asked whether the files of a run are of one run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.hardware.devices import CPU, is_cpu
from analysis.model.catalogue import catalogued, is_family
from analysis.run.options import RunOptions
from analysis.run.rows.streams import MixedRun
from logparse.context.dialects import Interpretation, interpret
from logparse.context.printed_sizes import sizes_of_lines
from logparse.context.restarted_settings import list_printings
from logparse.context.run_context import (
    Fact,
    Given,
    RunContext,
    SettingsChange,
    build_changes,
    build_context,
    facts_of_other_formats,
    without_noop_layers,
)
from logparse.context.split_log import split_log
from logparse.context.step_times import KnownRun
from logparse.decode.read_run import ParsedLog, Watch, read_run
from logparse.errors import NoStepLineError, SeveralRunsError
from logparse.findings import Note, Origin, warning
from logparse.inputs.ranks import place_of
from logparse.language import msg, some, tr
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
    given, notes = without_other_model(how.given, without_noop_layers(printed))
    context = build(given.layers, weaker=given.weaker)
    sizes, disagreements = sizes_of_lines(log.steps, context, log.settings, log.format.rate_covers)
    if more := {**sizes, **_shape_of_name(context)}:
        context = build(given.layers, weaker={**more, **given.weaker})
    context = replace(context, notes=(*notes, *context.notes, *disagreements))
    changes = build_changes(context, printings, log.format, several)
    return Loaded(log, interpret(log, how.dialect, KnownRun(context, changes)), context, tuple(changes))


def _shape_of_name(context: RunContext) -> dict[str, Fact]:
    """The shape of the model that the log names, where the catalogue has it and the log prints no size."""
    model_name = context.facts.get("model_name")
    if model_name is None or context.get("num_layers") is not None or context.get("hidden_size") is not None:
        return {}
    model = None if is_family(model_name.value) else catalogued(model_name.value)
    origin = replace(model_name.origin, rule=f"model_name {model_name.value}")
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


# What no restart changes. The padded vocabulary is not among it, because it follows the parallelism.
SHAPE = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_experts")
# Ranks of one job reach a step together, by clocks that differ less than this; zones differ by quarters of an hour.
APART_S, QUARTER_S, NEAR_S = 60.0, 900.0, 30.0
# Ranks of one job wait for each other: their paces differ by less than this. They print the same settings.
PACE_APART, OF_JOB = 0.1, ("global_batch_size", "seq_length")
# Two files print the same steps where at least this share has the same loss and time.
SAME_STEPS = 0.5
# Files that are named; the others are counted.
MOST_NAMED = 3
_PRINTED = ("step", "timestamp", "loss", "elapsed_time_per_iteration_ms")

Contexts = Mapping[str, RunContext]


def check_one_run(run: Loaded, steps: pl.DataFrame) -> None:
    """Refuse files that are not one run. Raises InputError with the values that differ, and the files of each."""
    if steps["source"].n_unique() < 2:
        return
    heads = steps.group_by("source", maintain_order=True).agg(pl.col("line_number").min(), pl.col("step").min())
    contexts = _contexts(run, heads)
    for name in SHAPE:
        _check_values(name, contexts)
    # A restart on other devices goes on after the first steps of the run; a file that does these again is no restart.
    begun = heads.filter(pl.col("step") <= pl.col("step").min())["source"]
    _check_values("world_size", {file: contexts[file] for file in begun})
    _check_ranks(steps, contexts)
    _check_clocks(steps)
    _check_finished(steps)


def _refusal(reason: str, files: Sequence[str]) -> SeveralRunsError:
    remedy = tr("add --each to analyze every file as a run, or name the files of one run")
    if len(files) > MOST_NAMED:
        problem = tr("these {n} files are not one run: {reason}", n=len(files), reason=reason)
        return SeveralRunsError(problem, remedy=remedy)
    problem = tr("these files are not one run: {reason}", reason=reason)
    return SeveralRunsError(problem, where=some(files, MOST_NAMED), remedy=remedy)


def _check_finished(steps: pl.DataFrame) -> None:
    """Refuse files that repeat a run which did all its planned steps. Raises InputError."""
    files = steps["source"].unique(maintain_order=True).to_list()
    if _one_job(files):
        return
    order = steps.group_by("source", maintain_order=True).agg(
        first=pl.col("step").min(),
        last=pl.col("step").max(),
        planned=pl.col("train_steps").max(),
        begun=pl.col("timestamp").min(),
        ended=pl.col("timestamp").max(),
    )
    done = order.filter(pl.col("last") == pl.col("planned")).sort("begun")
    again = done.filter((pl.col("first") == pl.col("first").shift(1)) & (pl.col("begun") > pl.col("ended").shift(1)))
    if len(again):
        first, last = done.select("first", "last").row(0)
        reason = tr("{n} of them run all steps {first} to {last}", n=len(done), first=first, last=last)
        raise _refusal(reason, files)


def _one_job(files: Sequence[str]) -> bool:
    """Whether the names of ``files`` are those of the ranks of one job."""
    jobs = {place.job if (place := place_of(file)) else None for file in files}
    return None not in jobs and len(jobs) == 1


def _contexts(run: Loaded, heads: pl.DataFrame) -> dict[str, RunContext]:
    """What holds at the first step line of each file."""
    lines = dict(heads.select("source", "line_number").iter_rows())
    changed = {c.source: c.context for c in run.changes if c.line_number <= lines.get(c.source, 0)}
    return {file: changed.get(file, run.context) for file in lines}


def _check_values(name: str, contexts: Contexts) -> None:
    """Refuse files that say several things of ``name``. Raises InputError."""
    groups: dict[Any, list[str]] = {}
    for file, context in contexts.items():
        if (value := context.get(name)) is not None:
            groups.setdefault(value, []).append(file)
    if len(groups) > 1:
        values = (tr("{value} in {files}", value=v, files=some(files, 1)) for v, files in list(groups.items())[:2])
        raise _refusal(tr("{name} is {values}", name=name, values=tr(", ").join(values)), list(contexts))


def _check_ranks(steps: pl.DataFrame, contexts: Contexts) -> None:
    """Refuse files taken for ranks of one job that have other losses, and another pace or batch. Raises InputError."""
    if not steps["copied"].any():
        return
    parts = {str(name[0]): rows for name, rows in steps.group_by("source", maintain_order=True)}
    first_file = next(file for file, rows in parts.items() if not rows["copied"].all())
    for file, rows in parts.items():
        if not rows["copied"].all() or not _other_losses(parts[first_file], rows):
            continue
        for name in OF_JOB:
            _check_values(name, {one: contexts[one] for one in (first_file, file)})
        paces = [float(part["step_time_ms"].median() or 0) for part in (parts[first_file], rows)]  # type: ignore[arg-type]
        if min(paces) > 0 and max(paces) / min(paces) > 1 + PACE_APART:
            one, other = (f"{ms:,.0f} ms" for ms in paces)
            names = {"file": some([first_file], 1), "second": some([file], 1)}
            text = msg("a step takes {one} in {file} and {other} in {second}, and the losses differ")
            raise _refusal(tr(text, one=one, other=other, **names), list(parts))


def _other_losses(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether the steps that both hold have other losses, where both print one."""
    read = [part.select("step", "loss").drop_nulls().unique("step") for part in (one, other)]
    both = read[0].join(read[1], on="step", suffix="_there")
    same = both.select((pl.col("loss") == pl.col("loss_there")).mean()).item()
    return len(both) > 1 and same is not None and same < SAME_STEPS


def _check_clocks(steps: pl.DataFrame) -> None:
    """Refuse two files that did the same steps at the same time, each step at another one. Raises InputError."""
    files = steps["source"].unique(maintain_order=True).to_list()
    jobs = {file: place.job if (place := place_of(file)) else None for file in files}
    if None not in jobs.values() and len(set(jobs.values())) == 1:
        return
    stamped = steps.drop_nulls("timestamp").select("source", *_PRINTED).unique(["source", "step"], maintain_order=True)
    order = stamped.sort("timestamp", maintain_order=True).partition_by("source", maintain_order=True)
    for mine, theirs in pairwise(order):
        one, other = mine.item(0, "source"), theirs.item(0, "source")
        if (jobs[one] is None or jobs[one] != jobs[other]) and _apart(mine, theirs):
            reason = tr("{one} and {other} ran the same steps at the same time, independently", one=one, other=other)
            raise _refusal(reason, files)


def _apart(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two files do the same first step at the same time, and are not two ranks whose clocks are set apart."""
    if one["step"].min() != other["step"].min() or other.item(0, "timestamp") > one.item(-1, "timestamp"):
        return False
    both = one.join(other, on="step", suffix="_there")
    same = [pl.col(name) == pl.col(f"{name}_there") for name in ("loss", "elapsed_time_per_iteration_ms")]
    ahead = (pl.col("timestamp") - pl.col("timestamp_there")).dt.total_seconds()
    share, seconds = both.select(pl.all_horizontal(same).fill_null(value=False).mean(), ahead.abs().median()).row(0)
    from_quarter = abs(seconds - QUARTER_S * round(seconds / QUARTER_S))
    return bool(share < SAME_STEPS and seconds > APART_S and from_quarter > NEAR_S)


# Sizes by which two models differ beyond doubt. Vocabularies are padded, and other sizes can be derived.
SIZES = ("num_layers", "hidden_size", "num_attention_heads")


def contradicted(sizes: Mapping[str, Any], printed: Mapping[str, Any]) -> bool:
    """Whether a model of these ``sizes`` is another than that of the ``printed`` ones, as far as both are known."""
    return any(printed.get(name) is not None and sizes.get(name, printed[name]) != printed[name] for name in SIZES)


def without_other_model(given: Given, printed: Mapping[str, Fact]) -> tuple[Given, list[Note]]:
    """``given`` without the models of another shape than the log prints, and a warning for each of them.

    A size that a flag gives as well is no contradiction: it overrides both.
    """
    flags = {name for layer in given.layers for name, fact in layer.items() if fact.origin.kind == "flag"}
    compared = [name for name in SIZES if name in printed and name not in flags]
    others: dict[str, Note] = {}
    for facts in (*given.layers, given.weaker):
        for name in compared:
            fact = facts.get(name)
            if fact is not None and fact.origin.kind == "model" and fact.value != printed[name].value:
                others.setdefault(fact.origin.rule or "", _contradiction(name, fact, printed[name]))
    layers = tuple(_without(layer, others) for layer in given.layers)
    return replace(given, layers=layers, weaker=_without(given.weaker, others)), list(others.values())


def _without(facts: Mapping[str, Fact], models: Mapping[str, Note]) -> dict[str, Fact]:
    return {name: fact for name, fact in facts.items() if fact.origin.kind != "model" or fact.origin.rule not in models}


def _contradiction(name: str, fact: Fact, printed: Fact) -> Note:
    fields = {"name": name, "value": fact.value, "printed": printed.value, "origin": printed.origin}
    return warning("model_contradicts_log", model=fact.origin.rule, **fields)
