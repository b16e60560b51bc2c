"""Whether files can be one run. Ranks of one job and its restarts are, on other devices too; other files are refused.

Comes in: a run that was read and its rows as analysed. Goes out: nothing, or the error. Files whose names show ranks of
one job, and those that print the same losses and times, are never refused for their clocks; such names are refuted by
losses together with the pace or the settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from analysis.run.load import Loaded
from logparse.context.run_context import RunContext
from logparse.errors import SeveralRunsError
from logparse.inputs.ranks import place_of
from logparse.language import msg, some, tr

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
    kept = next(file for file, rows in parts.items() if not rows["copied"].all())
    for file, rows in parts.items():
        if not rows["copied"].all() or not _other_losses(parts[kept], rows):
            continue
        for name in OF_JOB:
            _check_values(name, {one: contexts[one] for one in (kept, file)})
        paces = [float(part["step_time_ms"].median() or 0) for part in (parts[kept], rows)]  # type: ignore[arg-type]
        if min(paces) > 0 and max(paces) / min(paces) > 1 + PACE_APART:
            one, other = (f"{ms:,.0f} ms" for ms in paces)
            names = {"file": some([kept], 1), "second": some([file], 1)}
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
