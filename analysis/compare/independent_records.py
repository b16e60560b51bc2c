"""Which records are independent observations: one of each job, and only those with enough rows.

Comes in: rows of RUN_COLUMNS. Goes out: which of them are of one job, and those that count. The parts of one log, the
log of a job while it grew, and the files of its ranks are one job: they share its machines and its hour, so that more
of them prove nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import polars as pl

from analysis.compare.comparability import FIELDS
from analysis.metrics import JUDGED
from logparse.failures.ending import Ending
from logparse.light_dataclass import dataclass

# Clocks of ranks that did the same step are no farther apart: logs may print whole seconds, and clocks differ a little.
SAME_CLOCK_S = 2.0
# Ranks wait for each other in every step, so once settled they print one time: four ranks of a MindFormers job 3,774 ms
# give or take 1. Two jobs of one seed that began in the same second do not.
SAME_TIME, SAME_TIME_MS = 0.002, 1.0
# Of the landmarks that two records of one job share, at least so many are equal: a value may be damaged.
SAME_SHARE = 0.5
# A record that has so much of the rows of the longest of its job is about as good.
ABOUT_AS_LONG = 0.9
# Rows that count, below which a run's median says little; or fewer that are each the mean of many steps.
FEWEST_ROWS, FEWEST_MEANS, STEPS_OF_MEANS = 8, 3, 100
# The columns that show how long a record is.
LENGTHS = ("step_lines", "counted_rows", "steady_steps")
# The text in a landmark for a value that the log does not print.
UNKNOWN = "-"
KEYS = ("run_id", "name", "begins", "landmarks", "labels")
PAIR = {"first": pl.String(), "other": pl.String()}
# The label by which users name the job of a run.
JOB_LABEL = "job"


@dataclass(frozen=True)
class Jobs:
    """``of`` is the job of each run by its id, by the id of one of its records; a run of a job of its own is not there.

    ``unclear`` are the ids of two records that print the same losses and nearly the same times for the same steps, and
    not both a clock: one job, or two with one seed.
    """

    of: Mapping[str, str]
    unclear: tuple[tuple[str, str], ...]

    def named(self) -> pl.Expr:
        """The job of each run, for frames that have ``run_id``."""
        return pl.col("run_id").replace(dict(self.of))


@dataclass(frozen=True)
class LeftOut:
    """A run that does not count; of one that failed also how it ended."""

    run_id: str
    name: str
    reason: Literal["same_job", "too_few_rows", "crashed", "too_few_steps", "half_run"]
    ending: Ending | None = None


@dataclass(frozen=True)
class Observations:
    """The runs that count, each an observation of its own, and those that do not."""

    runs: pl.DataFrame
    left_out: tuple[LeftOut, ...]


def find_jobs(runs: pl.DataFrame) -> Jobs:
    """Which of ``runs``, rows with KEYS, are records of one job.

    Two records are of one job if most of their shared landmarks have one loss, one clock and nearly one time; without
    a clock the times must be equal. Records without a shared landmark, such as those of old stores, are of one job if
    their first rows are equal. Different values of JOB_LABEL keep two records apart. Equal ones join nothing: it names
    the job of every night.
    """
    marks, labels = _marks(runs), job_labels(runs)
    clockless = marks.filter(pl.col("clock") == UNKNOWN)
    begun = _not_apart(_stars(runs.drop_nulls("begins"), ["begins"]), labels)
    copied, same_loss = _stars(marks, ["step", "loss", "ms"]), _stars(clockless, ["step", "loss"])
    met = _compared(marks, _not_apart(pl.concat([begun, _meeting(marks), copied, same_loss]).unique(), labels))
    same = met.filter("same").select("first", "other")
    jobs = _joined(pl.concat([same, begun.join(met, on=("first", "other"), how="anti")]).iter_rows())
    doubted = met.filter(pl.col("unclear") & ~pl.col("same")).select("first", "other").iter_rows()
    return Jobs(jobs, tuple((a, b) for a, b in doubted if jobs.get(a, a) != jobs.get(b, b)))


def sample_of(runs: pl.DataFrame, jobs: Jobs) -> Observations:
    """One record of each job, if it has enough rows.

    Among those about as long as the longest it is the one with the most known values, because the arguments may be in
    one rank's file only.
    """
    filled = pl.sum_horizontal(pl.col(name).is_not_null() for name in (*FIELDS, *JUDGED))
    length = pl.col("step_lines").fill_null(0)
    long = runs.with_columns(job=jobs.named()).with_columns(long=length >= ABOUT_AS_LONG * length.max().over("job"))
    ranked = long.with_columns(known=filled).sort(
        "long", "known", "step_lines", "run_id", descending=[True, True, True, False], nulls_last=True
    )
    one_each = pl.col("run_id").is_in(ranked.unique("job", keep="first", maintain_order=True)["run_id"].to_list())
    enough = has_enough_rows()
    same, short = (_named(runs.filter(rows)) for rows in (~one_each, one_each & ~enough))
    left_out = [LeftOut(*run, "same_job") for run in same] + [LeftOut(*run, "too_few_rows") for run in short]
    return Observations(fill_from_job(runs, jobs).filter(one_each & enough), tuple(left_out))


def has_enough_rows() -> pl.Expr:
    """Whether a run has so many rows that count, or rows of so many steps, that its median says something."""
    rows, steps = pl.col("counted_rows"), pl.col("steady_steps")
    means = (rows >= FEWEST_MEANS) & (steps >= STEPS_OF_MEANS)
    return (rows.fill_null(FEWEST_ROWS) >= FEWEST_ROWS) | means.fill_null(value=False)


def fill_from_job(runs: pl.DataFrame, jobs: Jobs) -> pl.DataFrame:
    """``runs`` with missing values of FIELDS filled from another record of the same job."""
    if not jobs.of:
        return runs
    others = ((name, pl.col(name).drop_nulls().first().over(jobs.named())) for name in FIELDS)
    return runs.with_columns(pl.col(name).fill_null(other) for name, other in others)


def job_labels(runs: pl.DataFrame) -> pl.DataFrame:
    """The value of JOB_LABEL of each run that has it: run_id, label."""
    label = pl.element().filter(pl.element().struct.field("name") == JOB_LABEL).struct.field("value").first()
    return runs.select("run_id", label=pl.col("labels").list.eval(label).list.first()).drop_nulls()


def _not_apart(pairs: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """``pairs`` without those whose labels name different jobs."""
    jobs = dict(labels.iter_rows())
    first, other = (
        pl.col(name).replace_strict(jobs, default=None, return_dtype=pl.String) for name in ("first", "other")
    )
    return pairs.filter((first == other).fill_null(value=True)) if jobs else pairs


def _marks(runs: pl.DataFrame) -> pl.DataFrame:
    """The landmarks, one row each: run_id, step, clock, loss and ms, all as text."""
    one = runs.select("run_id", "landmarks").explode("landmarks").drop_nulls().unnest("landmarks")
    parts = pl.col("value").str.splitn(" ", 3).struct.rename_fields(["clock", "loss", "ms"])
    return one.select("run_id", pl.col("name").alias("step"), parts).unnest("value")


def _second(clock: pl.Expr) -> pl.Expr:
    """Seconds since 1970; null where there is no clock."""
    return clock.str.to_datetime(strict=False, time_unit="us").dt.epoch("us") / 1e6


def _meeting(marks: pl.DataFrame) -> pl.DataFrame:
    """Pairs that did a step with one loss at about one time; clocks in neighbouring stretches meet in the second."""
    timed = _shared(marks, ["step", "loss"]).with_columns(second=_second(pl.col("clock"))).drop_nulls("second")
    stretch = pl.col("second") / (2 * SAME_CLOCK_S)
    ways = (timed.with_columns(stretch=(stretch + shift).floor()) for shift in (0.0, 0.5))
    return pl.concat(_stars(way, ["step", "loss", "stretch"]) for way in ways)


def _shared(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Those whose keys another row has too, nearly all others are gone: a hash is quicker than the keys."""
    return rows.filter(pl.struct(keys).hash().is_duplicated())


def _stars(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Each run with the first one that shares the keys: as many pairs as runs, not as many as there are pairs."""
    shared = _shared(rows, keys)
    if shared.is_empty():
        return pl.DataFrame(schema=PAIR)
    paired = shared.with_columns(first=pl.col("run_id").min().over(keys))
    return paired.filter(pl.col("first") != pl.col("run_id")).select("first", other="run_id").unique()


def _compared(marks: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """The pairs, with ``same``: they are one job, and ``unclear``: nothing shows that they are two."""
    both = pairs.join(marks, left_on="first", right_on="run_id").join(
        marks, left_on=("other", "step"), right_on=("run_id", "step"), suffix="_other"
    )
    losses, copied = (pl.col(n) == pl.col(f"{n}_other") for n in ("loss", "ms"))
    unprinted = pl.any_horizontal(pl.col("loss", "loss_other") == UNKNOWN)
    clockless = pl.any_horizontal(pl.col("clock", "clock_other") == UNKNOWN)
    apart = _second(pl.col("clock")) - _second(pl.col("clock_other"))
    together = (apart.abs() <= SAME_CLOCK_S).fill_null(False) & _one_time()
    equal = pl.when(unprinted).then(copied).otherwise(losses)
    same = equal & pl.when(clockless).then(copied).otherwise(together)
    return both.group_by("first", "other", maintain_order=True).agg(
        same=same.mean() > SAME_SHARE, unclear=(losses & ~unprinted & clockless & _one_time()).mean() > SAME_SHARE
    )


def _one_time() -> pl.Expr:
    """Whether both print one time for the step, or one of them none."""
    ms, other = (pl.col(name).cast(pl.Float64, strict=False) for name in ("ms", "ms_other"))
    return ((ms - other).abs() <= pl.max_horizontal(SAME_TIME * ms, pl.lit(SAME_TIME_MS))).fill_null(True)


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The least id of all that pairs link, by the id of each."""
    above: dict[str, str] = {}

    def top(run_id: str) -> str:
        while (higher := above.get(run_id, run_id)) != run_id:
            run_id = higher
        return run_id

    for pair in pairs:
        low, high = sorted(map(top, pair))
        if low != high:
            above[high] = low
    return {run_id: top(run_id) for run_id in above}


def _named(runs: pl.DataFrame) -> Iterable[tuple[str, str]]:
    return runs[["run_id", "name"]].iter_rows()
