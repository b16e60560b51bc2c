"""What concerns the noise of a night: jobs that are slow together, and series whose noise hides a change.

Comes in: the runs of all jobs, or the verdicts on them. Goes out: the nights on which most jobs were slower, a
SlowNight where that is tonight, and UnstableSeries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from statistics import median

import polars as pl

from analysis.compare.verdict import DEFAULT_METRIC
from analysis.metrics import Metric
from analysis.nightly.job_verdict import JobVerdict
from analysis.nightly.nights import nights_of
from analysis.stats.incomplete_beta import binomial_tail
from analysis.stats.prediction import CONFIRMED, FEWEST, KEPT, LEAST_CHANGE, OFF, THIRD, TO_DEVIATIONS
from logparse.light_dataclass import dataclass

# Of fewer jobs none shows that the others are slow for the same reason.
FEWEST_JOBS = 3
# A run is slow that is so many deviations above the median of those before it; noise makes it so in about OFF of runs.
SLOW = 2.5


@dataclass(frozen=True)
class SlowNight:
    """Most jobs became slower together: the ``names`` of those, of so many ``jobs``, by the median ``change``.

    ``p`` is the chance that as many jobs are off on the same night, each for itself. ``nights`` is since how many.
    """

    names: tuple[str, ...]
    jobs: int
    change: float
    p: float
    nights: int


@dataclass(frozen=True)
class UnstableSeries:
    """A metric of a job whose noise hides changes below ``detectable``, relative: they are no alarm."""

    job: str
    metric: Metric
    detectable: float


def nights_slow_together(jobs: Iterable[pl.DataFrame]) -> frozenset[date]:
    """The nights on which at least half of ``jobs`` that ran were slow, more than chance explains.

    Each job has its runs in the order of time, with the column ``when``.
    """
    slow = [_slow_nights(runs) for runs in jobs if len(runs) > FEWEST]
    if len(slow) < FEWEST_JOBS:
        return frozenset()
    nights = pl.concat(slow).group_by("night").agg(slow=pl.col("slow").sum(), ran=pl.len())
    most = nights.filter(pl.col("slow") >= FEWEST_JOBS, 2 * pl.col("slow") >= pl.col("ran"))
    return frozenset(night for night, count, ran in most.iter_rows() if _by_chance(count, ran) <= CONFIRMED)


def _slow_nights(runs: pl.DataFrame) -> pl.DataFrame:
    """Each night of a job, and whether a run of it was slow."""
    level = pl.col(DEFAULT_METRIC).rolling_median(KEPT, min_samples=FEWEST).shift(1)
    away = runs.select(night=nights_of(runs["when"]), away=pl.col(DEFAULT_METRIC) / level - 1)
    spread = TO_DEVIATIONS * pl.col("away").abs().rolling_median(KEPT, min_samples=1).shift(1)
    is_slow = (pl.col("away") > LEAST_CHANGE) & (pl.col("away") > SLOW * spread)
    return away.with_columns(slow=is_slow.fill_null(False)).group_by("night").agg(pl.col("slow").any())


def _by_chance(slow: int, ran: int) -> float:
    """The chance that as many jobs are off on one night, each for itself."""
    return binomial_tail(slow, ran, OFF)


def find_slow_night(jobs: Sequence[JobVerdict]) -> SlowNight | None:
    """The slow night of a whole cluster; None where fewer than half of the jobs are slower, or chance explains it."""
    ran = [job for job in jobs if job.verdict is not None and not job.failed and not job.missing]
    slow = {job.name: night for job in ran if (night := _slow_since(job)) is not None}
    began = median(nights for _, nights in slow.values()) if slow else 0
    # Noise may hide the first night of one of them.
    slow = {name: night for name, night in slow.items() if abs(night[1] - began) <= 1}
    p = _by_chance(len(slow), len(ran)) if slow else 1.0
    if len(slow) < FEWEST_JOBS or 2 * len(slow) < len(ran) or p > CONFIRMED:
        return None
    return SlowNight(tuple(slow), len(ran), median(change for change, _ in slow.values()), p, int(began))


def _slow_since(job: JobVerdict) -> tuple[float, int] | None:
    """How much slower the newest run of a job is, if it became so in the last nights, and in how many."""
    for metric in job.metrics:
        night = metric.night
        if metric.metric.is_speed and night is not None and night.own_change is not None:
            is_slow = night.state in ("off", "confirmed") and night.own_change * metric.metric.direction > 0
            return (night.own_change, night.nights) if is_slow and 0 < night.nights <= THIRD else None
    return None


def find_unstable(jobs: Sequence[JobVerdict]) -> Iterator[UnstableSeries]:
    """The unstable series, those that hide most first."""
    found = [
        UnstableSeries(job.name, metric.metric, metric.night.detectable or 0.0)
        for job in jobs
        if not job.is_idle
        for metric in job.metrics
        if metric.night is not None and metric.night.is_unstable
    ]
    yield from sorted(found, key=lambda one: -one.detectable)
