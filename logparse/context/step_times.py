"""How long a step took where no line prints it: by a rate, by the stamps of two lines, by a runtime that adds up.

Comes in: steps without a time, what is known of the run, what the dialect says of a rate. Goes out: the steps with
times and with what rounding leaves open of them, and a note that says where they are from. The first source that gives
times is taken for the whole run. A clock runs on through evaluation and saving; what a rate covers is in the dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any, Literal

import polars as pl

from logparse.context.corrections import with_begins
from logparse.context.relations import OF_STEPS, PACES, TIME, TOKENS, Pace
from logparse.context.run_context import RunContext, SettingsChange
from logparse.decode.read_run import ParsedLog
from logparse.findings import Note, info, warning
from logparse.formats._base import Covers
from logparse.light_dataclass import dataclass
from logparse.schema import flag_of

RESOLUTION = "time_resolution_ms"
# The time itself is none of them. The tokens that lines count for a step are no batch times length.
RATES = tuple(pace for pace in PACES if pace.column != TIME and TOKENS not in pace.sizes)
COUNTED = tuple(pace for pace in PACES if TOKENS in pace.sizes)
# A span is at least this many clock resolutions long, or rows share one: so a time is off by 5 % at most.
FINE = 20
# A log that is shorter than that, but as long as this, has one span: its mean time is off by a tenth at most.
COARSE = 10
MOST_DECIMALS = 6
# Rates that give way to a clock, and those in whose mean pauses are spread.
CLOCK_FIRST, SPREAD = frozenset({"recent", "window", "run"}), frozenset({"recent", "run", "start"})
# A clock with a larger rounding of a step time gives way to a rate whose rounding is smaller.
COARSE_CLOCK = 0.01
# Where a clock is 0: at the start of a process, or of each epoch.
Zero = Literal["start", "epoch"]
# A first row that is so many intervals ahead is not the first of the training.
AHEAD = 1.5
# A distance between two lines that is so many times the typical one is a pause.
PAUSE = 5
# Steps between two lines, in intervals, from which on lines between them are missing.
MISSING = 10
# Seconds between two lines of one run at most: beyond it one of the two clocks is another's.
LONGEST = 86_400.0


@dataclass(frozen=True)
class KnownRun:
    """What the run is known to be: ``context``, and ``changes`` of it at later starts."""

    context: RunContext
    changes: Sequence[SettingsChange] = ()


@dataclass(frozen=True)
class FoundTimes:
    """``times`` has, in the order of the steps, TIME and RESOLUTION; ``origin`` says where they are from.

    ``by_clock``: they hold all that happened between two lines. ``shared``: rows with one time have the mean of them.
    """

    times: pl.DataFrame
    origin: Note
    by_clock: bool = False
    shared: bool = False

    @property
    def rounding(self) -> float:
        """The share of a time that rounding leaves open, at the median row."""
        share = self.times.select((pl.col(RESOLUTION) / pl.col(TIME)).median()).item()
        return 0.0 if share is None else float(share)


def find_times(log: ParsedLog, steps: pl.DataFrame, known: KnownRun, covers: Covers | None) -> FoundTimes | None:
    """The times of ``steps`` where no line prints one; None where one does or no source gives times."""
    if steps.is_empty() or steps[TIME].is_not_null().any():
        return None
    rows, covers = _with_shares(log, _with_starts(log, steps), covers)
    exact = _rates_cover_steps(rows, covers)
    whole = covers in {"recent", "interval"} and log.format.clock_of_epoch and _has_means_of_epochs(rows)
    # A rate that leaves out what passes between two steps gives no time of them, one of unknown steps only its own.
    paces = [pace for pace in RATES if exact or not (pace.sizes or log.format.rate_of_passes)]
    by_rates = partial(_by_rates, rows, known, "interval" if whole else covers)
    rates, counted = list(by_rates(paces)), by_rates(COUNTED if exact else ())
    clocks = (_by_stamps(rows), _by_runtime(rows, _unit_of_runtime(log), log.format.clock_of_epoch))
    clock_first = covers in CLOCK_FIRST or not exact
    candidates = (*clocks, *rates, *counted) if clock_first else (*rates, *clocks, *counted)
    found = filter(None, candidates)
    first = next(found, None)
    if first is None or first.rounding <= COARSE_CLOCK:
        return first
    if whole or covers == "window":
        return min((first, *found), key=lambda times: times.rounding)
    of_clock = any(first is clock for clock in clocks)
    finer = (_with_clock(rate, first, rows) for rate in rates if of_clock)
    return next(filter(None, finer), first)


def why_no_times(log: ParsedLog, steps: pl.DataFrame, known: KnownRun, covers: Covers | None) -> Note | None:
    """Which sizes of the run a printed rate needs to give the times of ``steps``; None where none would help.

    Or that the rate of a training counts steps of earlier processes, and no line prints how many.
    """
    printed = [pace for pace in RATES if steps[pace.column].is_not_null().any()]
    rows, covers = _with_shares(log, _with_starts(log, steps), covers)
    if not printed or not _rates_cover_steps(rows, covers):
        return None
    # The number of devices comes first, the work of a step after it.
    needed = sorted(printed[0].sizes, key=lambda name: -printed[0].sizes[name])
    if names := [name for name in needed if _size(name, steps, known).is_null().all()]:
        return warning("rate_lacks_sizes", rate=printed[0].column, names=names, flags=[flag_of(n) for n in names])
    if covers == "run" and rows[OF_STEPS].is_not_null().any() and rows["share"].is_null().all():
        return warning("rate_of_resumed_run", rate=OF_STEPS, first=steps["step"].min())
    return None


def _with_shares(log: ParsedLog, rows: pl.DataFrame, covers: Covers | None) -> tuple[pl.DataFrame, Covers | None]:
    """``rows`` with the ``share`` of the steps of a rate that its time covers; the rate of a run unrounded.

    Where no line prints that of the run, the pace next to the rows is a mean of recent steps, and so ``covers``.
    """
    of_run = rows["training_seconds"].is_not_null()
    if covers != "run" or not of_run.any():
        return rows.with_columns(share=pl.lit(1.0)), "recent" if covers == "run" else covers
    rows = rows.with_columns(pl.when(of_run).then(OF_STEPS))
    exact = _unrounded_rate(rows[OF_STEPS], resolution(rows[OF_STEPS]), rows["train_steps"], rows["training_seconds"])
    return rows.with_columns(_share_of_process(rows, log.records.get("events")), exact), covers


def _share_of_process(rows: pl.DataFrame, events: pl.DataFrame | None) -> pl.Series:
    """The share of the planned steps that the process of each row did, in the order of ``rows``.

    Null where the process went on from an unknown step, and where the rate is that of a later process.
    """
    starts = rows.partition_by("start", maintain_order=True)
    begun = [_begun_after(start, before, events) for before, start in zip([None, *starts], starts, strict=False)]
    shares: list[float | None] = []
    for n, (start, first) in enumerate(zip(starts, begun, strict=True)):
        # The process after it in the file went on from it: then the rate is of that one.
        resumed = n + 1 < len(starts) and begun[n + 1] != 0 and starts[n + 1]["source"][0] == start["source"][0]
        planned: Any = start["train_steps"].max() or start["step"].max()
        counted = first is not None and first < planned and not resumed
        shares += [(planned - first) / planned if counted else None] * len(start)
    return pl.Series("share", shares, pl.Float64)


def _begun_after(start: pl.DataFrame, before: pl.DataFrame | None, events: pl.DataFrame | None) -> int | None:
    """The step after which a process began: 0, or that of the checkpoint; None where no line prints it."""
    line, source = start["line_number"].min(), start["source"][0]
    if events is not None:
        loads = events.filter((pl.col("kind") == "checkpoint loaded") & (pl.col("source") == source))
        own = loads.filter(pl.col("line_number") < line).drop_nulls("step")
        if before is not None and before["source"][0] == source:
            own = own.filter(pl.col("line_number") > before["line_number"].max())
        if len(own):
            return int(own["step"][-1])
    steps = start["step"].unique().sort()
    between = steps.diff().median()
    return None if isinstance(between, float) and steps[0] > AHEAD * between else 0


def _unrounded_rate(printed: pl.Series, unit: float, planned: pl.Series, seconds: pl.Series) -> pl.Series:
    """The ``printed`` steps per second by the planned steps and the time of the training, where these agree with it.

    A slow step has a rate of one digit, such as 0.1. ``unit``: that of its last decimal. ``seconds``: of the training.
    """
    exact = planned.cast(pl.Float64) / seconds
    agrees = ((exact - printed).abs() <= unit / 2).fill_null(value=False)
    return exact.zip_with(agrees, printed).alias(printed.name)


def _with_starts(log: ParsedLog, steps: pl.DataFrame) -> pl.DataFrame:
    """``steps`` with the number of the ``start`` each row belongs to; a repeated step is another rank's."""
    begins = pl.col("begins") & (pl.col("step").diff() != 0).fill_null(value=True)
    return with_begins(log, steps).with_columns(start=begins.cum_sum())


def _rates_cover_steps(rows: pl.DataFrame, covers: Covers | None) -> bool:
    """Whether a printed rate covers all steps since the previous row; a rate of one step does if each is printed."""
    if covers == "step":
        return rows.select((pl.col("step").diff().over("start").drop_nulls() == 1).all()).item() is True
    return covers in {"interval", *CLOCK_FIRST}


def _by_rates(
    rows: pl.DataFrame, known: KnownRun, covers: Covers | None, paces: Iterable[Pace]
) -> Iterator[FoundTimes]:
    """By each rate of ``paces``; a pause between two steps is spread over those of a moving mean, or of a whole run."""
    codes = {"recent": "time_by_recent_rate", "run": "time_by_rate_of_run", "start": "time_by_rate_since_start"}
    code = codes.get(covers or "", "time_by_rate" if _rates_cover_steps(rows, covers) else "time_by_lone_rate")
    for pace in paces:
        column, rate = pace.column, pl.col(pace.column)
        if rows[column].is_null().all() or (covers == "run" and column != OF_STEPS):
            continue
        work = pl.lit(1.0)
        for size, power in pace.sizes.items():
            work = work / _size(size, rows, known) if power > 0 else work * _size(size, rows, known)
        unit = resolution(rows[column])
        time = 1000 * rate if pace.time else 1000 * work / (rate * pl.col("share"))
        times = rows.select(pl.when(rate > 0).then(time).alias(TIME))
        if times[TIME].is_null().all():
            continue
        times = times.with_columns((pl.col(TIME) * unit / 2 / rows[column]).alias(RESOLUTION))
        times = _with_fast_steps(times, rows) if pace.time else times
        share = times.select((pl.col(RESOLUTION) / pl.col(TIME)).median()).item()
        yield FoundTimes(times, info(code, rate=column, share=share), by_clock=covers in SPREAD)


def _with_clock(rate: FoundTimes, clock: FoundTimes, rows: pl.DataFrame) -> FoundTimes | None:
    """The times by a ``rate`` that is finer than a coarse ``clock`` and agrees with it; None where it does not.

    They agree where the rows that share a time of the clock took as long by both, to the rounding of both, and so did
    the whole log. So the clock stays in force where the rate leaves out a pause, or spreads it.
    """
    unit_ms, apart = 1000 * clock.origin.fields["seconds"], pl.col("step").diff().over("start")
    steps, part = apart.fill_null(apart.median()).fill_null(1), pl.struct("start", "epoch").rle_id()
    both = rows.select("start", n=steps, part=part).hstack(clock.times.select(clock=TIME)).hstack(rate.times)
    spans = (
        both.drop_nulls("clock")
        .group_by(pl.struct("part", "clock").rle_id().alias("span"), "part")
        .agg(
            off=((pl.col(TIME) - pl.col("clock")) * pl.col("n")).sum(),
            rounding=(pl.col(RESOLUTION) * pl.col("n")).sum(),
            nulls=pl.col(TIME).has_nulls(),
        )
    )
    of_clock, of_rate = unit_ms * spans["part"].n_unique(), float(spans["rounding"].sum())
    agrees = (spans["off"].abs() <= unit_ms + spans["rounding"]).all()
    if not agrees or of_rate >= of_clock or abs(spans["off"].sum()) > of_clock + of_rate or spans["nulls"].any():
        return None
    return FoundTimes(
        rate.times, info("time_by_finer_rate", **rate.origin.fields, **clock.origin.fields), by_clock=True
    )


def _with_fast_steps(times: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """``times`` by seconds per step, and by the steps per second that a bar prints of steps below 1 s."""
    rate = rows[OF_STEPS]
    time = pl.when(rate > 0).then(1000 / rate)
    return times.select(pl.coalesce(TIME, time), pl.coalesce(RESOLUTION, time * resolution(rate) / 2 / rate))


def _size(name: str, rows: pl.DataFrame, known: KnownRun) -> pl.Series:
    """A size of the run for each row: the line's own, else that of the start; null where it is unknown."""
    later = pl.DataFrame(
        [(c.source, c.line_number, c.context.get(name), True) for c in known.changes],
        {"source": pl.String, "begin": pl.Int64, "later": pl.Float64, "changed": pl.Boolean},
        orient="row",
        strict=False,
    )
    joined = rows.select("source", "line_number").join_asof(
        later.sort("begin"), left_on="line_number", right_on="begin", by="source", check_sortedness=False
    )
    first = pl.lit(known.context.get(name), pl.Float64)
    of_start = joined.select(pl.when(pl.col("changed").is_null()).then(first).otherwise("later")).to_series()
    given = name in known.context.given
    return of_start if given or name not in rows.columns else rows[name].cast(pl.Float64).fill_null(of_start)


def _by_stamps(rows: pl.DataFrame) -> FoundTimes | None:
    stamps = rows["timestamp"].dt.epoch("us")
    unit = resolution((stamps % 1_000_000) / 1e6)
    return _by_clock(rows, (stamps - stamps.min()) / 1e6, unit, "time_by_stamps")


def _has_means_of_epochs(rows: pl.DataFrame) -> bool:
    """Whether each row is the full bar of an epoch with the mean pace of all its steps: its clock agrees."""
    n, per_step, per_second = (pl.col(name) for name in ("step_in_epoch", *(pace.column for pace in RATES[:2])))
    took = n * pl.coalesce(per_step, 1 / per_second)
    rounding = [resolution(rows[pace.column]) / 2 / pl.col(pace.column) for pace in RATES[:2]]
    # A bar prints the whole seconds that have passed, so that up to one more may have.
    agrees = (took - pl.col("runtime_seconds") - 0.5).abs() <= 0.5 + took * pl.coalesce(rounding)
    return rows.select(((n == pl.col("steps_per_epoch")) & agrees).fill_null(value=False).all()).item() is True


def _by_runtime(rows: pl.DataFrame, unit: float, of_epoch: bool) -> FoundTimes | None:
    """``unit``: seconds of the unit in which the runtime is printed. ``of_epoch``: it begins again with each epoch."""
    runtime = rows["runtime_seconds"]
    zero: Zero = "epoch" if of_epoch else "start"
    found = _by_clock(rows, runtime, resolution(runtime / unit) * unit, "time_by_runtime", zero)
    # The few epochs that are long enough for the clock are the slow ones.
    coarse = of_epoch and found is not None and found.times[TIME].is_null().sum() > len(rows) / 2
    return None if coarse else found


def _unit_of_runtime(log: ParsedLog) -> float:
    scales = (reading.scale for reading in log.format.labels.values() if reading.column == "runtime_seconds")
    # The resolution of a clock in milliseconds follows from its decimals of a second as well.
    return max((1.0, *scales))


def _by_clock(
    rows: pl.DataFrame, clock: pl.Series, unit: float, code: str, zero: Zero | None = None
) -> FoundTimes | None:
    """Times by a ``clock`` with a resolution of ``unit`` seconds; None where it gives none.

    Each step counts once, however many ranks print it. ``zero``: where the clock is 0. Rows without a clock share the
    mean of those around them.
    """
    names = ("start", "step", "epoch", "step_in_epoch")
    read = rows.select(*names, clock=clock.cast(pl.Float64)).with_row_index("at")
    first = pl.col("clock").drop_nulls().first().over("start", "step")
    known = read.drop_nulls("step").with_columns(clock=first)
    once = known.unique(["start", "step"], keep="first", maintain_order=True)
    if once["clock"].count() < 2:
        return None
    timed = _timed(_with_zeros(once, zero), unit)
    if timed[TIME].is_null().all():
        return None
    times = read.join(timed, on=("start", "step"), how="left", maintain_order="left").select(TIME, RESOLUTION)
    return FoundTimes(times, info(code, seconds=unit), by_clock=True, shared=bool(timed["shared"].any()))


def _with_zeros(rows: pl.DataFrame, zero: Zero | None) -> pl.DataFrame:
    """``rows`` with the ``part`` in which the clock runs on, and ``done``, the steps from its 0 to each row.

    ``done`` is null where the clock may have begun elsewhere, as in an epoch that a process resumed.
    """
    same, apart = pl.col("start") == pl.col("start").shift(1), pl.col("step").diff()
    same = same.fill_null(value=False)
    typical = pl.when(same).then(apart).median().over("start")
    counted = pl.col("step_in_epoch" if zero == "epoch" else "step")
    first = pl.when(pl.lit(zero is not None) & (counted <= typical)).then(counted)
    turns = same & pl.lit(zero == "epoch") & (pl.col("epoch") != pl.col("epoch").shift(1)).fill_null(value=False)
    # The bar of an epoch may count batches, of which a step is several.
    later = pl.min_horizontal("step_in_epoch", apart)
    # Where lines are missing the clock is of what they would show too; another interval would repeat its length.
    lone = (apart != apart.shift(1)).fill_null(value=True) & (apart != apart.shift(-1)).fill_null(value=True)
    cut = same & lone & (apart > MISSING * typical).fill_null(value=False)
    return rows.with_columns(part=(turns | cut | ~same).cum_sum(), done=pl.when(turns).then(later).otherwise(first))


def _timed(rows: pl.DataFrame, unit: float) -> pl.DataFrame:
    """The steps with their times; where the clock is coarse, rows of a part share the mean of a long enough span."""
    first = pl.col("part") != pl.col("part").shift(1, fill_value=0)
    # A part whose clock was 0 at a known step begins there.
    begun = rows.filter(first, pl.col("done").is_not_null()).with_columns(
        pl.col("step") - pl.col("done"), clock=pl.lit(0.0), printed=pl.lit(value=False)
    )
    marked = _with_ends(pl.concat([begun, rows.with_columns(printed=pl.lit(value=True))]), unit)
    spans = marked.filter("end").select("part", *(pl.col(name).diff().over("part") for name in ("clock", "step")))
    marked = marked.with_columns(span=pl.col("end").cum_sum().shift(1, fill_value=0))
    spanned = marked.join(
        spans.with_row_index("span"), on=("part", "span"), how="left", maintain_order="left", suffix="s"
    )
    possible = pl.col("clocks").is_between(0, LONGEST, closed="right") & (pl.col("steps") > 0)
    times = {TIME: 1000 * pl.col("clocks") / pl.col("steps"), RESOLUTION: 1000 * unit / pl.col("steps")}
    of_step = (pl.when(possible).then(e).alias(n) for n, e in times.items())
    return spanned.filter("printed").select("start", "step", *of_step, shared=~pl.col("end"))


def _with_ends(rows: pl.DataFrame, unit: float) -> pl.DataFrame:
    """``rows`` in the order of their parts, with ``end``: which of them end a span; none of those without a clock."""
    rows = rows.sort("part", maintain_order=True)
    ends = rows["clock"].is_not_null().to_numpy(writable=True)
    clocks = rows.drop_nulls("clock").group_by("part", maintain_order=True).agg("clock")["clock"]
    ends[ends] = [end for clock in clocks.to_list() for end in _ends(clock, _least_span(clock, unit))]
    return rows.with_columns(end=pl.lit(pl.Series(ends)))


def _least_span(clock: Sequence[float], unit: float) -> float:
    """Seconds of a span at least: FINE times the resolution, or all of a short log."""
    whole = clock[-1] - clock[0]
    return whole if COARSE * unit <= whole < FINE * unit else FINE * unit


def _ends(clock: Sequence[float], least: float) -> list[bool]:
    """Which rows end a span: the first, then each ``least`` seconds or more after the last end, or before it.

    The last row ends one too: its own where it is half as long, else the one before, so that no time is lost. So does
    a row before a pause, which is not to be spread over the steps before it.
    """
    ends, begun, before = [True], clock[0], clock[0]
    pause = max(least, PAUSE * median(now - then for then, now in pairwise(clock))) if len(clock) > 1 else least
    for now in clock[1:]:
        if now - before >= pause and not ends[-1]:
            begun = _end_before_pause(ends, before, begun, least)
        ends.append(not 0 <= now - begun < least)
        begun, before = (now if ends[-1] else begun), now
    last = _last_end(ends)
    if 0 < last < len(ends) - 1 and clock[-1] > begun:
        ends[last] = clock[-1] - begun >= least * COARSE / FINE
        ends[-1] = True
    return ends


def _end_before_pause(ends: list[bool], before: float, begun: float, least: float) -> float:
    """End a span at the last row of ``ends``, whose clock is ``before``; when the next span has begun.

    One of less than half of ``least`` is added to the span before it, and left open where there is none.
    """
    if before - begun < least * COARSE / FINE:
        last = _last_end(ends)
        if last == 0:
            return begun
        ends[last] = False
    ends[-1] = True
    return before


def _last_end(ends: list[bool]) -> int:
    return len(ends) - 1 - ends[::-1].index(True)


def resolution(values: pl.Series) -> float:
    """The unit of the last decimal of ``values``, at most MOST_DECIMALS after the point."""
    there = values.drop_nulls()
    for decimals in range(MOST_DECIMALS):
        if ((there - there.round(decimals)).abs() < 10**-MOST_DECIMALS).all():
            return float(10**-decimals)
    return float(10**-MOST_DECIMALS)
