"""Which change of a metric matters: the one that is given, or whatever is beyond the noise between runs.

Of the runs of one release 95 in 100 lie within ``SPREADS`` standard deviations of their mean, so that a release which
is farther away is one that single runs show. No metric is judged more strictly than by its least change, since nobody
looks for less, and none less strictly than by ``DECLARED``, since one bad run alone makes a spread.
"""

from __future__ import annotations

from analysis.metrics import Metric
from analysis.stats.noise import Noise
from analysis.stats.prediction import LEAST_CHANGE
from logparse.errors import UsageError
from logparse.language import tr

# A threshold that is no number: whatever is beyond the job's own noise.
NOISE = "noise"
SPREADS, DECLARED = 2.0, 0.03
# Changes of a metric that nobody looks for, where they are not LEAST_CHANGE: clocks of whole seconds move a goodput,
# few slow steps a high quantile, and fragmentation the memory.
LEAST = {"goodput": 0.01, "step_time_p95_ms": 0.02, "max_memory_allocated_bytes": 0.02}


def parse_threshold(text: str) -> float:
    """``3%`` as 0.03. Raises UsageError for anything that is no percentage from 0 to 100."""
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = -1.0
    if not text.endswith("%") or not 0 <= value < 1:
        problem = tr("{name} is {value!r}", name="--threshold", value=text)
        remedy = tr("write a percentage, as in --threshold 3%, or --threshold {noise}", noise=NOISE)
        raise UsageError(problem, remedy=remedy)
    return value


def given_threshold(text: str | None) -> float | None:
    """As ``parse_threshold``; None for ``NOISE``, and if none is given."""
    return None if text in (None, NOISE) else parse_threshold(text)


def least_change(metric: str) -> float:
    """The least change of the metric of that name that anybody looks for."""
    return LEAST.get(metric, LEAST_CHANGE)


def threshold_by_noise(metric: Metric, noise: Noise | None) -> float:
    """The change of ``metric`` that matters if runs differ by ``noise``; DECLARED if the noise is unknown."""
    if noise is None:
        return DECLARED
    return max(least_change(metric.column), min(DECLARED, SPREADS * noise.spread))
