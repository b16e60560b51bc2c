"""What the noise of a night means for its verdicts, in words: a slow night of all jobs, and unstable series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.nightly.cluster_nights import SlowNight, find_unstable
from analysis.nightly.job_verdict import JobVerdict
from analysis.present.numbers import percent, signed_percent
from logparse.language import tr

# Unstable series that are named.
MOST_NAMED = 3


def slow_night_text(night: SlowNight) -> str:
    """One line for all jobs that are slow together: it points to the cluster, not to the jobs."""
    return tr(
        "{n} of {jobs} jobs are slower together (median {change}): check the cluster first",
        n=len(night.names),
        jobs=night.jobs,
        change=signed_percent(night.change),
    )


def unstable_lines(jobs: Sequence[JobVerdict]) -> Iterator[str]:
    """One line that names the series whose noise hides a change, with what they can detect."""
    series = list(find_unstable(jobs))
    names = [
        tr("{job}, {metric}: {change}", job=one.job, metric=tr(one.metric.label), change=percent(one.detectable))
        for one in series[:MOST_NAMED]
    ]
    if len(series) > MOST_NAMED:
        names.append(tr("{n} more", n=len(series) - MOST_NAMED))
    if names:
        yield tr("unstable, smaller changes are not reported: {names}", names=tr("; ").join(names))
