"""What concerns the noise of a night: jobs that are slow together, and series whose noise hides a change.

Comes in: the verdicts on all jobs. Goes out: a SlowNight, where most jobs are slower tonight, and UnstableSeries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from analysis.metrics import Metric
from analysis.nightly.job_verdict import JobVerdict
from analysis.stats.prediction import CONFIRMED, OFF, THIRD
from logparse.light_dataclass import dataclass

# Of fewer jobs none shows that the others are slow for the same reason.
FEWEST_JOBS = 3


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


def find_slow_night(jobs: Sequence[JobVerdict]) -> SlowNight | None:
    """The slow night of a whole cluster; None where fewer than half of the jobs are slower, or chance explains it."""
    from scipy.special import bdtrc

    ran = [job for job in jobs if job.verdict is not None and not job.failed and not job.missing]
    slow = {job.name: night for job in ran if (night := _slow_since(job)) is not None}
    began = median(nights for _, nights in slow.values()) if slow else 0
    # Noise may hide the first night of one of them.
    slow = {name: night for name, night in slow.items() if abs(night[1] - began) <= 1}
    p = float(bdtrc(len(slow) - 1, len(ran), OFF)) if slow else 1.0
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
