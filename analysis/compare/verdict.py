"""Did it get slower? Statistics over runs, not over steps: steps of one run share its luck.

Comes in: one number per run of each side. Goes out: a Finding. All work is on logarithms, because noise is relative.

Effect: Hodges-Lehmann, the median of all differences between a run of one side and a run of the other, with the
interval of the same rank test (Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, 3rd ed., 4.2-4.3).
Evidence: the exact one-sided Mann-Whitney test, by permutation where values are tied. At LEVEL 5 %, 3 runs against 3
can just reach it (1/20), where every run of one side is slower than every run of the other. The interval has 90 %, so
that its end and the one-sided test agree. One or two runs of a side have too few orders for that. They are compared
with the expectation from the other side (``analysis.stats.prediction``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from analysis.compare.threshold import DECLARED, threshold_by_noise
from analysis.metrics import GUARDED, JUDGED, Metric
from analysis.stats.mann_whitney import fisher_p, interval_cut, mann_whitney, thinned
from analysis.stats.noise import FEWEST_RUNS, LEVEL, Noise, Outlier, find_outliers, without
from analysis.stats.prediction import FEWEST, expect
from logparse.errors import unknown_name, use_one_of
from logparse.language import msg
from logparse.light_dataclass import dataclass, replace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Verdict = Literal["crashed", "regression", "less work", "suspicious", "no regression", "insufficient data"]
Method = Literal["exact", "permutation", "normal", "prediction"]
# Why a finding has its verdict.
Reason = Literal[
    "no_rows",
    "no_values",
    "declared_beyond",
    "declared_faster",
    "declared_within",
    "proven",
    "proven_without",
    "faster",
    "not_proven",
    "one_of_many",
    "small_but_there",
    "too_noisy",
    "excluded",
    "some_worse",
    "loss_lost",
    "faster_by_less",
    "less_not_faster",
]
UNPROVEN = ("not_proven", "one_of_many")
# From the worst to the best: several metrics have the verdict of the first that any of them has.
VERDICTS: tuple[Verdict, ...] = (
    *("crashed", "regression", "less work", "suspicious", "insufficient data", "no regression"),
)
# Those that report something wrong.
WRONG: tuple[Verdict, ...] = VERDICTS[: VERDICTS.index("suspicious") + 1]

CLOSE = 1e-9
# Three runs a side have so many orders, of which one is LEVEL of all; so have 2 and 5, or 1 and 19.
FEWEST_ORDERS = 20
# Runs of the candidate that are off, each beyond all of the baseline: one may be an accident.
MOST_OUTLIERS = 1
DEFAULT_METRIC = GUARDED[0]


def find_metric(name: str, known: Mapping[str, Metric] = JUDGED) -> Metric:
    """The metric of that name. Raises UsageError for one that is not among ``known``."""
    if name not in known:
        raise unknown_name(msg("metric"), name, known, use_one_of(known, "logparse analyze --help-all"))
    return known[name]


def guards_of(names: Sequence[str] | None) -> tuple[list[Metric], list[Metric]]:
    """The metrics of these names, and the further ones that are judged if none is named. Raises as ``find_metric``."""
    if names:
        return [find_metric(name) for name in names], []
    first, *further = (JUDGED[name] for name in GUARDED)
    return [first], further


@dataclass(frozen=True)
class Effect:
    """How much the candidate differs: ``change`` is candidate / baseline - 1, with its interval where runs allow one.

    ``p_worse`` and ``p_better`` are the chances of such a difference, in either direction, between two equal sides, and
    ``method`` is the test. All of these are None if the runs are too few to prove anything.
    """

    baseline: float
    candidate: float
    change: float
    low: float | None
    high: float | None
    confidence: float | None
    p_worse: float | None
    p_better: float | None
    method: Method | None = None

    def shifted(self, by: float) -> Effect:
        """With ``by`` added to both sides; the change is that of the values as they were compared."""
        return replace(self, baseline=self.baseline + by, candidate=self.candidate + by)


@dataclass(frozen=True)
class Finding:
    """The verdict on one metric. ``harm`` is the change in the worse direction.

    ``worse_runs`` are the places of the candidate's runs worse than all of the baseline by more than the threshold.
    ``outliers`` are runs far from all others of their side, ``rest`` is the finding without them, and ``before`` the
    verdict with them where that without them holds. ``p_lost`` is the chance that so many runs lose their loss,
    ``p_family`` what p is worth among those of several metrics.
    """

    metric: Metric
    runs: tuple[int, int]
    effect: Effect | None
    harm: float | None
    threshold: float
    verdict: Verdict
    reason: Reason
    worse_runs: tuple[int, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    rest: Finding | None = None
    before: Verdict | None = None
    p_lost: float | None = None
    p_family: float | None = None


def judge(
    metric: Metric,
    baseline: Sequence[float],
    candidate: Sequence[float],
    threshold: float | None,
    noise: Noise | None = None,
) -> Finding:
    """The verdict on ``metric`` from one number per run; ``threshold`` is a ratio, 0.03 for 3 %, None by ``noise``.

    One run that is off may hide a regression that all others prove; it cannot make a verdict better.
    """
    finding = _judge(metric, baseline, candidate, threshold, noise)
    outliers = find_outliers(baseline, candidate, finding.threshold) if finding.effect else ()
    if not outliers:
        return finding
    old, new = without(baseline, outliers, "baseline"), without(candidate, outliers, "candidate")
    rest = _judge(metric, old, new, threshold, noise)
    finding = replace(finding, outliers=outliers, rest=rest)
    hidden = finding.verdict != "regression" and rest.reason == "proven"
    if not hidden:
        return finding
    return replace(finding, verdict="regression", reason="proven_without", before=finding.verdict, worse_runs=())


def _judge(
    metric: Metric, baseline: Sequence[float], candidate: Sequence[float], given: float | None, noise: Noise | None
) -> Finding:
    runs = (len(baseline), len(candidate))
    threshold = threshold_by_noise(metric, noise) if given is None else given
    if not min(runs):
        return Finding(metric, runs, None, None, threshold, "insufficient data", "no_values")
    effect = estimate(baseline, candidate, metric.direction)
    if given is None and effect.p_worse is None:
        threshold = DECLARED
    verdict, reason = _decide(effect, metric.direction, threshold)
    worse_runs = _worse_runs(baseline, candidate, metric.direction, threshold) if verdict != "regression" else ()
    if verdict == "no regression" and len(worse_runs) > MOST_OUTLIERS:
        verdict, reason = "suspicious", "some_worse"
    return Finding(metric, runs, effect, metric.direction * effect.change, threshold, verdict, reason, worse_runs)


def insufficient(finding: Finding) -> bool:
    """Whether the data prove nothing: the threshold decides alone, the change may be chance, or there is no verdict."""
    declared = finding.effect is None or finding.effect.p_worse is None
    return declared or finding.verdict == "insufficient data" or finding.reason in UNPROVEN


def doubt(finding: Finding, reason: Literal["no_rows", "loss_lost"]) -> Finding:
    """``finding`` with facts other than its numbers: a side without rows, or a candidate that no longer trains."""
    if reason == "no_rows":
        return replace(finding, reason=reason) if finding.reason == "no_values" else finding
    if finding.verdict in WRONG:
        return finding
    return replace(finding, verdict="suspicious", reason=reason)


def lose(finding: Finding, lost: tuple[tuple[int, int], tuple[int, int]]) -> Finding:
    """The finding on a loss of which so many of so many runs a side have none, because it is not finite or 0.

    It is a regression where that is no chance (Fisher's exact test, one-sided), and of few runs where all of the
    candidate have lost it and none of the baseline.
    """
    (old, before), (new, after) = lost
    if not before or not after or new * before <= old * after:
        return finding
    p = fisher_p(new, after, old, before)
    few = min(before, after) < FEWEST_RUNS and new == after and not old
    if few or p <= LEVEL + CLOSE:
        return replace(finding, verdict="regression", reason="loss_lost", p_lost=p)
    return doubt(finding, "loss_lost")


def _worse_runs(
    baseline: Sequence[float], candidate: Sequence[float], worse: Literal[1, -1], threshold: float
) -> tuple[int, ...]:
    worst = max(baseline) if worse == 1 else min(baseline)
    return tuple(i for i, value in enumerate(candidate) if worse * (value / worst - 1) > threshold)


def _decide(effect: Effect, worse: Literal[1, -1], threshold: float) -> tuple[Verdict, Reason]:
    harm, worst = worse * effect.change, _worst(effect, worse)
    if effect.p_worse is None or effect.p_better is None or worst is None:
        return _declared(harm, threshold)
    if harm > threshold:
        return ("regression", "proven") if effect.p_worse <= LEVEL else ("suspicious", "not_proven")
    if -harm > threshold and effect.p_better <= LEVEL:
        return "suspicious", "faster"
    if worst <= threshold:
        return "no regression", "excluded"
    return ("suspicious", "small_but_there") if effect.p_worse <= LEVEL else ("insufficient data", "too_noisy")


def _declared(harm: float, threshold: float) -> tuple[Verdict, Reason]:
    if harm > threshold:
        return "regression", "declared_beyond"
    return ("suspicious", "declared_faster") if -harm > threshold else ("no regression", "declared_within")


def _worst(effect: Effect, worse: Literal[1, -1]) -> float | None:
    """The end of the interval that is worse."""
    end = effect.high if worse == 1 else effect.low
    return None if end is None else worse * end


def estimate(baseline: Sequence[float], candidate: Sequence[float], worse: Literal[1, -1] = 1) -> Effect:
    """Effect and evidence of positive numbers, one per run and at least one a side."""
    import numpy as np

    old, new = (thinned(np.sort(np.log(np.asarray(side, np.float64)))) for side in (baseline, candidate))
    differences = np.sort(np.subtract.outer(new, old), axis=None)
    middle = [math.exp(float(np.median(side))) for side in (old, new)]
    change = math.expm1(float(np.median(differences)))
    if min(len(old), len(new)) < FEWEST_RUNS and math.comb(len(old) + len(new), len(new)) < FEWEST_ORDERS:
        declared = Effect(middle[0], middle[1], change, None, None, None, None, None)
        return _predicted(declared, old, new, worse) if max(len(old), len(new)) >= FEWEST else declared
    cut, confidence = interval_cut(len(old), len(new))
    low, high = (math.expm1(float(differences[i])) for i in (cut, -1 - cut))
    slower, faster, method = mann_whitney(old, new)
    p_worse, p_better = (slower, faster) if worse == 1 else (faster, slower)
    return Effect(middle[0], middle[1], change, low, high, confidence, p_worse, p_better, method)


def _predicted(effect: Effect, old: NDArray[np.float64], new: NDArray[np.float64], worse: int) -> Effect:
    """``effect``, with the few runs of the smaller side compared with the expectation from the larger side."""
    few, many = sorted((old, new), key=len)
    expectation, nights = expect(many.tolist()), len(few)
    distance = (float(few.mean()) - expectation.level) * (1 if few is new else -1)
    reach = expectation.reach(LEVEL, nights)
    low, high = math.expm1(distance - reach), math.expm1(distance + reach)
    p_worse, p_better = (expectation.p(sign * worse * distance, nights) for sign in (1, -1))
    change = math.expm1(distance)
    return Effect(effect.baseline, effect.candidate, change, low, high, 1 - 2 * LEVEL, p_worse, p_better, "prediction")


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on all of several metrics."""
    return min(verdicts, key=VERDICTS.index)
