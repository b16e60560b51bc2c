"""When the run did not train: the steps after which it saved a checkpoint or made an evaluation.

Also the phases of a step, where a log prints them and no time of the whole step: a lower bound of the step time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import polars as pl

from analysis.run.rates.baseline_step_time import longer, stalled
from analysis.run.rows.exclusion_reasons import HOLDS_PAUSE
from analysis.run.useful.useful_time import PAUSED
from logparse.context.timers import EVALUATION_TIMERS, SAVE_TIMERS, STEP_TIMERS, WITHIN_STEP
from logparse.findings import Note, info, warning
from logparse.light_dataclass import dataclass, field, replace

# The parts of a step add up to so much of it at most, with their rounding.
TIME, MOST_OF_STEP = "elapsed_time_per_iteration_ms", 1.01
# The share of a step that no timer is of, from which on it is named.
LEAST_LEFT = 0.05


@dataclass(frozen=True)
class Pauses:
    """Steps after which a pause lies, sorted; and how long it was, where a block of its own prints its timer.

    ``alone`` are the median seconds of one save, and of one evaluation, of those between lines without the other.
    """

    saved: tuple[int, ...] = ()
    evaluated: tuple[int, ...] = ()
    save_seconds: Mapping[int, float] = field(default_factory=dict, compare=False)
    evaluation_seconds: Mapping[int, float] = field(default_factory=dict, compare=False)
    alone: tuple[float | None, float | None] = field(default=(None, None), compare=False)


NO_PAUSES = Pauses()


def count_between(steps: Sequence[int], after: pl.Expr | pl.Series, to: pl.Expr | pl.Series) -> pl.Expr:
    """How many of ``steps``, sorted, are ``after`` or a later one, and before ``to``."""
    if not steps:
        return pl.lit(0)
    marks = pl.lit(pl.Series(steps, dtype=pl.Int64))
    return marks.search_sorted(to, "left").cast(pl.Int64) - marks.search_sorted(after, "left")


def seconds_between(seconds: Mapping[int, float], after: pl.Expr, to: pl.Expr) -> pl.Expr:
    """The sum of the ``seconds`` of pauses, by their step, ``after`` a step or a later one and before ``to``."""
    if not seconds:
        return pl.lit(0.0)
    marks = pl.Series(sorted(seconds), dtype=pl.Int64)
    before = pl.lit(pl.Series([0.0, *accumulate(seconds[mark] for mark in marks)]))
    first, last = (pl.lit(marks).search_sorted(step, "left") for step in (after, to))
    return before.gather(last) - before.gather(first)


def find_pauses(records: Mapping[str, pl.DataFrame]) -> Pauses:
    """Read pauses off the events, the evaluations, and the timers of those that print no line of their own."""
    events, evaluated = records["events"], records["evaluations"]["step"]
    begun = events.filter(pl.col("kind") == "save starts")
    if records["timers"].is_empty():
        return Pauses(_sorted(begun["step"]), _sorted(evaluated))
    timers = _with_place(records["timers"])
    saves, evaluations = (_timed(timers, names) for names in (SAVE_TIMERS, EVALUATION_TIMERS))
    return Pauses(
        _sorted(_before_their_line(begun, saves), saves["after_step"]),
        _sorted(evaluated, evaluations["after_step"]),
        _seconds(saves),
        _seconds(evaluations),
    )


def describe_pauses(
    steps: pl.DataFrame, pauses: Pauses, time_holds_pauses: bool, pauses_are_printed: bool = False
) -> Iterator[Note]:
    """What delivered leaves out of rows whose time holds pauses; a warning where no line reports the pauses."""
    reason = steps["excluded_reason"]
    if (reason == HOLDS_PAUSE).any():
        periodic = steps.filter(pl.col("excluded_reason") == HOLDS_PAUSE)
        places = periodic["step"]
        longer_ms = periodic.select(longer().median()).item()
        yield info("pauses_periodic", n=len(places), longer_ms=longer_ms, period=places.diff().mode().min())
        return
    if not time_holds_pauses:
        return
    if n := sum((reason == paused).sum() for paused in PAUSED):
        yield info("pauses_left_out", n=n)
    elif not pauses_are_printed and pauses == Pauses() and (stalls := len(stalled(steps))):
        yield warning("pauses_not_told", n=stalls)


def _with_place(timers: pl.DataFrame) -> pl.DataFrame:
    """Add ``after_step``: the step after which the time of a timer lies.

    The block of all timers follows its step line and covers the interval before it; a block of its own covers the time
    since.
    """
    rise, one_line = pl.col("line_number").diff(), pl.col("min_ms").is_null()
    apart = (rise > 1) | (one_line & (rise != 0)) | (pl.col("source") != pl.col("source").shift(1))
    block = apart.fill_null(value=True).cum_sum()
    of_interval = pl.col("name").is_in(STEP_TIMERS).any().over(block) | pl.col("name").is_in(WITHIN_STEP)
    return timers.with_columns(after_step=pl.col("step") - of_interval.cast(pl.Int64), of_interval=of_interval)


def _before_their_line(begun: pl.DataFrame, saves: pl.DataFrame) -> list[int | None]:
    """The steps of the saves that are ``begun``, but for those that the timers of the same step show afterwards."""
    read = ("source", "step", "line_number")
    if begun.is_empty():
        return []
    timed = {(source, step): line for source, step, line in saves.filter("of_interval")[read].rows()[::-1]}
    return [step for source, step, line in begun[read].iter_rows() if timed.get((source, step), -1) < line]


def _timed(timers: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    return timers.filter(pl.col("name").is_in(names) & (pl.col("max_ms") > 0))


def _seconds(timers: pl.DataFrame) -> dict[int, float]:
    """Seconds by step; a timer in the block of a step line is a mean over its interval and gives no sum."""
    if timers["of_interval"].all():
        return {}
    seconds = timers.group_by("after_step").agg(pl.col("max_ms").filter(~pl.col("of_interval")).mean() / 1000)
    return {step: mean for step, mean in seconds.iter_rows() if step is not None and mean is not None}


def _sorted(*steps: Iterable[int | None]) -> tuple[int, ...]:
    return tuple(sorted({step for some in steps for step in some if step is not None}))


def describe_phases(timers: pl.DataFrame, phases: Sequence[str]) -> Iterator[Note]:
    """A warning with the median sum of ``phases`` over the steps that print all of them, and the share of each.

    The number of these steps and the seconds of all phases show how long the run is at least.
    """
    read = timers.filter(pl.col("name").is_in(phases)).select("source", "step", "name", "max_ms").drop_nulls()
    if read.is_empty():
        return
    sums = read.group_by("source", "step", maintain_order=True).agg(
        pl.col("max_ms").sum(), names=pl.col("name").n_unique()
    )
    whole = sums.filter(pl.col("names") == pl.col("names").max())
    total: Any = whole["max_ms"].sum()
    if total <= 0:
        return
    of_whole = read.join(whole.select("source", "step"), on=["source", "step"], how="semi")
    notes = list(_shares(of_whole, total))
    # Of some steps only, such as a validation: in the run, not in the median step.
    of_some_steps = timers.filter(pl.col("name").is_in(WITHIN_STEP) & (pl.col("max_ms") > 0))
    printed = pl.concat([read["max_ms"], of_some_steps["max_ms"]])
    seconds = float(printed.sum()) / 1000
    yield warning("phases_without_total", ms=whole["max_ms"].median(), phases=notes, steps=len(whole), seconds=seconds)
    if len(of_some_steps):
        yield info("phases_of_some_steps", phases=list(_shares(of_some_steps, seconds * 1000)))


def describe_parts(timers: pl.DataFrame, steps: pl.DataFrame, parts: Mapping[str, str]) -> Iterator[Note]:
    """The share of each part of the steps of reinforcement learning, by the timers that are of ``parts``."""
    place = ["source", "step"]
    # In the order of the log: the same sum has the same digits each time.
    last = partial(pl.DataFrame.unique, keep="last", maintain_order=True)
    of_parts = last(timers.filter(pl.col("name").is_in([*parts])), [*place, "name"]) if parts else timers
    if not parts or of_parts.is_empty():
        return
    named = of_parts.with_columns(pl.col("name").replace_strict(parts, return_dtype=pl.String))
    timed = last(steps.filter(pl.col(TIME) > 0), place).join(named, on=place, how="semi")
    shares = list(_shares(named.join(timed, on=place, how="semi"), float(timed[TIME].sum())))
    # Timers of work that overlaps add up to more than the step.
    shown = sum(note.fields["share"] for note in shares)
    if shown <= MOST_OF_STEP and len(shares) > 1:
        left = [info("part_of_step", name="other", share=1 - shown)] if 1 - shown >= LEAST_LEFT else []
        yield info("parts_of_step", parts=[*(replace(note, code="part_of_step") for note in shares), *left])


def _shares(timers: pl.DataFrame, total: float) -> Iterator[Note]:
    """The share of each timer in ``total`` ms, the largest first."""
    sums = (
        timers.group_by("name", maintain_order=True)
        .agg(pl.col("max_ms").sum())
        .sort("max_ms", "name", descending=[True, False])
    )
    return (info("phase_of_step", name=name, share=ms / total) for name, ms in sums.iter_rows())
