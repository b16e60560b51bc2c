"""Verdicts: what is called a regression, and how often wrongly."""

import math
from typing import get_args

import numpy as np
import pytest
from gate_power import verdicts
from mlperf_repeats import SLOWER, allows, by_sides, called, systems

from analysis.compare.verdict import DEFAULT_METRIC, Reason, doubt, estimate, insufficient, judge, worst_of
from analysis.metrics import JUDGED
from analysis.stats.mann_whitney import _ways, fisher_p, interval_cut, mann_whitney
from analysis.stats.noise import Noise, noise_floor

pytestmark = pytest.mark.usefixtures("analysed_once")

METRIC = JUDGED[DEFAULT_METRIC]
# Spread 0.4 % or so, in ms.
BASE = [1000.0, 1003.0, 998.0, 1005.0, 1001.0]


def times(factor: float) -> list[float]:
    return [value * factor + 0.1 * index for index, value in enumerate(BASE)]


CASES = {
    "proven": (BASE, times(1.06), 0.03, "regression"),
    "excluded": (BASE, times(1.001), 0.03, "no regression"),
    "faster": (BASE, times(0.90), 0.03, "suspicious"),
    "not_proven": ([1000, 1100, 900], [1090, 1150, 980], 0.03, "suspicious"),
    "small_but_there": (BASE, [1029, 1033, 1026, 1035, 1027], 0.03, "suspicious"),
    "too_noisy": ([1000, 1100, 900], [1010, 1110, 890], 0.03, "insufficient data"),
    "declared_beyond": (BASE[:2], times(1.06)[:2], 0.03, "regression"),
    "declared_within": (BASE[:1], times(1.01)[:1], 0.03, "no regression"),
    "declared_faster": (BASE[:3], times(0.9)[:2], 0.03, "suspicious"),
    # One bad run of five hides that all of the candidate are 30 % slower.
    "proven_without": ([*BASE[:4], 1600.0], times(1.3), 0.03, "regression"),
    "no_values": (BASE, [], 0.03, "insufficient data"),
    # Two of twelve runs 20 % slower than every run of the baseline: the ranks do not show it.
    "some_worse": (BASE, [*BASE, *BASE, 1206.0, 1206.0], 0.03, "suspicious"),
}
# What is known beside the numbers of the metric.
DOUBTS = {
    "no_rows": ([], "insufficient data"),
    "loss_lost": (times(1.001), "suspicious"),
}


@pytest.mark.parametrize(("old", "new"), [(2, 5), (5, 2), (1, 19), (19, 1)])
def test_so_many_orders_prove_something(old, new):
    """One order of 20 or more is 5 % of all."""
    usual = [1000.0 + i for i in range(old)], [1060.0 + i for i in range(new)]
    found = judge(METRIC, *usual, 0.03)
    assert (found.verdict, found.reason, insufficient(found)) == ("regression", "proven", False)
    assert found.effect.p_worse == pytest.approx(1 / math.comb(old + new, old))


@pytest.mark.parametrize(("old", "new"), [(5, 1), (10, 1), (1, 10)])
@pytest.mark.parametrize(("factor", "verdict"), [(1.06, "regression"), (1.001, "no regression"), (0.9, "suspicious")])
def test_one_run_against_several(old, new, factor, verdict):
    """Its orders prove nothing, what the others tell of the next does."""
    runs = [1000.0, 1003.0, 998.0, 1005.0, 1001.0, 999.0, 1002.0, 1004.0, 997.0, 1001.5]
    found = judge(METRIC, runs[:old], [value * factor for value in runs[:new]], 0.03)
    assert (found.verdict, found.effect.method, insufficient(found)) == (verdict, "prediction", False)
    assert found.effect.low < found.effect.change < found.effect.high


def test_a_prediction_is_student_s_t():
    """Hand-worked: mean 0, deviation 1 of five, a run at 3: t = 3 / sqrt(1 + 1/5) with 4 degrees of freedom."""
    from scipy.special import stdtr, stdtrit

    old = [math.exp(value) for value in (-1.2649, -0.6325, 0.0, 0.6325, 1.2649)]
    effect = estimate(old, [math.exp(3.0)])
    assert effect.p_worse == pytest.approx(stdtr(4, -3 / math.sqrt(1.2)), rel=1e-3)
    assert math.log1p(effect.low) == pytest.approx(3 - stdtrit(4, 0.95) * math.sqrt(1.2), rel=1e-3)


@pytest.mark.parametrize("reason", CASES)
def test_each_reason(reason):
    old, new, threshold, verdict = CASES[reason]
    found = judge(METRIC, old, new, threshold)
    assert (found.verdict, found.reason) == (verdict, reason)


@pytest.mark.parametrize("reason", DOUBTS)
def test_each_doubt(reason):
    new, verdict = DOUBTS[reason]
    found = doubt(judge(METRIC, BASE, new, 0.03), reason)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_a_doubt_takes_nothing_from_a_regression():
    worse = judge(METRIC, BASE, times(1.06), 0.03)
    assert doubt(worse, "loss_lost") == worse
    assert doubt(worse, "no_rows") == worse


def test_there_is_a_case_of_every_reason():
    # Several metrics: test_guards.py. What is done: test_same_work.py.
    assert {*CASES, *DOUBTS, "one_of_many", "faster_by_less", "less_not_faster"} == set(get_args(Reason))


def test_runs_that_are_off_are_named_by_their_place():
    """The worst of the baseline is 1005: 3 % more is 1035.15."""
    assert judge(METRIC, BASE, [1000.0, 1036.0, 1001.0, 999.0, 1035.0], 0.03).worse_runs == (1,)
    tokens = JUDGED["tokens_per_second_per_device"]
    assert judge(tokens, BASE, [1000.0, 900.0, 1001.0, 1002.0, 1100.0], 0.03).worse_runs == (1,)
    assert judge(METRIC, BASE, times(1.06), 0.03).worse_runs == ()


def test_one_run_that_is_off_is_no_suspicion():
    found = judge(METRIC, BASE, [*BASE, *BASE, 1206.0], 0.03)
    assert (found.verdict, found.worse_runs) == ("no regression", (10,))


@pytest.mark.parametrize(
    ("runs", "tied", "method"), [(5, 0, "exact"), (5, 1, "exact"), (10, 1, "permutation"), (60, 0, "normal")]
)
def test_how_p_was_found_is_told(runs, tied, method):
    """Ten against ten have 184,756 orders, five against five 252."""
    values = [1000.0 + i for i in range(2 * runs)]
    old, new = values[::2], values[1::2]
    assert estimate(old, [old[0], *new[1:]] if tied else new).method == method


@pytest.mark.parametrize(
    ("runs", "verdict"), [(3, "suspicious"), (4, "regression"), (5, "regression"), (10, "regression")]
)
def test_one_bad_run_of_the_baseline_hides_no_regression(runs, verdict):
    """Where three runs a side are left; of fewer nobody knows which is off, and that is no verdict with --strict."""
    old = [*BASE, *(value + 0.5 for value in BASE)][: runs - 1]
    found = judge(METRIC, [*old, 1600.0], [1.3 * value for value in [*old, 1002.2]], 0.03)
    assert (found.verdict, found.before or found.verdict) == (verdict, "regression" if runs == 10 else "suspicious")
    (outlier,) = found.outliers
    assert (outlier.side, outlier.place, round(outlier.off, 2)) == ("baseline", runs - 1, 0.6)
    assert found.rest.verdict == "regression"
    assert found.rest.effect.change == pytest.approx(0.3, abs=0.01)
    assert insufficient(found) == (runs == 3)


def test_a_good_run_of_the_candidate_hides_no_regression():
    found = judge(METRIC, BASE, [*times(1.3)[:4], 500.0], 0.03)
    assert (found.verdict, found.outliers[0].side) == ("regression", "candidate")


def test_a_bad_run_makes_no_verdict_better():
    """One of the candidate is off; the others are alike."""
    found = judge(METRIC, BASE, [1600.0, *times(1.0)[1:]], 0.03)
    assert (found.verdict, found.rest.verdict) == ("insufficient data", "no regression")
    slow = judge(METRIC, BASE[:3], [1600.0, *times(1.05)[1:3]], 0.03)
    assert (slow.verdict, slow.rest.reason) == ("regression", "declared_beyond")


def test_runs_that_vary_have_none_that_is_off():
    assert judge(METRIC, [1000, 1100, 900, 1060, 1200], [1010, 1110, 890, 1130, 940], 0.03).outliers == ()


@pytest.mark.parametrize("runs", [3, 4, 5])
def test_bad_runs_on_either_side_are_seldom_a_regression(runs):
    """One run in ten is up to 60 % slower, by chance alone: at most 5 % false alarms in 300 pairs."""
    rng = np.random.default_rng(runs)
    paces = np.exp(rng.normal(0, 0.005, (300, 2, runs)) + (rng.random((300, 2, runs)) < 0.1) * rng.uniform(0, 0.5))
    found = [judge(METRIC, *(1000 * pace).tolist(), 0.01).verdict for pace in paces]
    assert found.count("regression") <= 15


def test_less_is_worse_for_rates():
    tokens = JUDGED["tokens_per_second_per_device"]
    assert judge(tokens, BASE, times(0.9), 0.03).verdict == "regression"
    assert judge(tokens, BASE, times(1.1), 0.03).reason == "faster"


@pytest.mark.parametrize(("n", "m"), [(3, 3), (3, 7), (5, 5), (8, 4)])
def test_the_null_distribution_is_scipys(n, m):
    # Slow to import, which every worker would do to collect this file.
    from scipy.stats import mannwhitneyu

    ways = _ways(n, m)
    sides = np.arange(m), np.arange(n) + 0.5
    u = mannwhitneyu(sides[1], sides[0], alternative="less", method="exact")
    assert sum(ways[: int(u.statistic) + 1]) / sum(ways) == pytest.approx(u.pvalue)


@pytest.mark.parametrize("kinds", [5, 10**6], ids=["ties", "none"])
def test_p_is_scipys(kinds):
    from scipy.stats import PermutationMethod, mannwhitneyu

    rng = np.random.default_rng(kinds)
    for _ in range(5):
        old, new = (np.sort(rng.integers(0, kinds, n)).astype(float) for n in (5, 4))
        *found, how = mann_whitney(old, new)
        told = [mannwhitneyu(new, old, alternative=a, method=PermutationMethod()).pvalue for a in ("greater", "less")]
        assert (how, found) == ("exact", pytest.approx(told, rel=1e-12))


@pytest.mark.parametrize("kinds", [9, 10**6], ids=["ties", "none"])
def test_p_of_many_runs_is_scipys_normal_limit(kinds):
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(kinds)
    old, new = (np.sort(rng.integers(0, kinds, n)).astype(float) for n in (60, 55))
    *found, how = mann_whitney(old, new)
    by_scipy = [mannwhitneyu(new, old, alternative=a, method="asymptotic").pvalue for a in ("greater", "less")]
    assert (how, found) == ("normal", pytest.approx(by_scipy, rel=1e-9))


def test_p_of_tied_runs_by_permutation_is_near_that_of_all_orders():
    from scipy.stats import PermutationMethod, mannwhitneyu

    rng = np.random.default_rng(3)
    old, new = (np.sort(rng.integers(0, 6, n)).astype(float) for n in (12, 14))
    *found, how = mann_whitney(old, new)
    drawn = PermutationMethod(n_resamples=99_999, rng=np.random.default_rng(5))
    by_scipy = [mannwhitneyu(new, old, alternative=a, method=drawn).pvalue for a in ("greater", "less")]
    assert (how, found) == ("permutation", pytest.approx(by_scipy, abs=0.02))
    assert mann_whitney(old, new) == (*found, how)


def test_p_of_lost_runs_is_scipys():
    from scipy.stats import fisher_exact

    for hits, of, other_hits, other in ((3, 5, 0, 8), (2, 4, 1, 3), (5, 5, 0, 1), (0, 3, 2, 3)):
        table = [[hits, of - hits], [other_hits, other - other_hits]]
        assert fisher_p(hits, of, other_hits, other) == pytest.approx(fisher_exact(table, alternative="greater").pvalue)


@pytest.mark.parametrize(("n", "confidence"), [(3, 0.90), (4, 0.943), (5, 0.905), (10, 0.911)])
def test_the_interval_holds_the_truth_as_often_as_it_says(n, confidence):
    rng = np.random.default_rng(n)
    inside = 0
    for _ in range(1000):
        effect = estimate(np.exp(rng.normal(0, 0.01, n)), np.exp(rng.normal(0.02, 0.01, n)))
        inside += effect.low <= np.expm1(0.02) <= effect.high
    assert interval_cut(n, n)[1] == pytest.approx(confidence, abs=0.001)
    assert inside / 1000 == pytest.approx(confidence, abs=0.03)


def test_interval_and_test_agree():
    rng = np.random.default_rng(0)
    for _ in range(200):
        effect = estimate(np.exp(rng.normal(0, 0.01, 5)), np.exp(rng.normal(0.01, 0.01, 5)))
        assert (effect.low > 0) == (effect.p_worse <= 0.05)


def test_ties_are_permuted():
    effect = estimate([1000, 1000, 1000, 1000], [1000, 1000, 1000, 1000])
    assert (effect.change, effect.p_worse) == (0.0, 1.0)


def test_ten_thousand_runs_a_side_are_judged_by_their_quantiles():
    rng = np.random.default_rng(0)
    effect = estimate(np.exp(rng.normal(0, 0.01, 10_000)), np.exp(rng.normal(0.02, 0.01, 10_000)))
    assert effect.change == pytest.approx(0.0202, abs=0.0005)
    assert effect.low == pytest.approx(0.0195, abs=0.001)


def test_noise_is_that_within_releases():
    rng = np.random.default_rng(0)
    groups = [np.exp(rng.normal(level, 0.005, 40)) for level in (0, 1, 2)]
    noise = noise_floor(groups)
    assert noise.spread == pytest.approx(0.005, rel=0.15)
    assert (noise.runs, noise.releases) == (120, 3)
    assert noise_floor([[1.0], [2.0]]) is None


def test_the_worst_verdict_wins():
    assert worst_of(["no regression", "suspicious"]) == "suspicious"
    assert worst_of(["insufficient data", "no regression"]) == "insufficient data"


@pytest.mark.parametrize("runs", [3, 5, 10])
@pytest.mark.parametrize("threshold", [None, 0.01, 0.03])
def test_the_same_release_is_seldom_a_regression(runs, threshold):
    """benchmarks/gate_power.py, short: at most 5 %."""
    assert verdicts(runs, 0.005, 0.0, threshold, trials=200)["regression"] <= 10


@pytest.mark.parametrize(
    ("spread", "slow", "threshold", "least"),
    [(0.005, 0.02, None, 90), (0.005, 0.03, 0.01, 80), (0.01, 0.03, 0.01, 80), (0.01, 0.06, 0.03, 90)],
)
def test_a_slower_release_is_found(spread, slow, threshold, least):
    assert verdicts(5, spread, slow, threshold, trials=100)["regression"] >= least


def test_one_percent_is_found_in_real_repeats_and_nothing_where_nothing_changed():
    """benchmarks/mlperf_repeats.py: at most 1 % of the systems called, 90 % found of those whose spread allows it."""
    every = list(systems())
    able = [sides for sides in every if allows(*sides)]
    assert called(by_sides, every) <= len(every) / 100
    assert called(by_sides, able, SLOWER) >= 0.9 * len(able) > 80


@pytest.mark.parametrize(
    ("name", "spread", "threshold"),
    [
        ("steady_step_time_ms", 0.0, 0.005),
        ("steady_step_time_ms", 0.004, 0.008),
        ("steady_step_time_ms", 0.2, 0.03),
        ("goodput", 0.004, 0.01),
        ("goodput", None, 0.03),
    ],
)
def test_the_noise_tells_which_change_matters(name, spread, threshold):
    noise = None if spread is None else Noise(spread, 10, 2)
    assert judge(JUDGED[name], [100.0] * 5, [101.0] * 5, None, noise).threshold == pytest.approx(threshold)
    # Runs that are too few to prove anything are not held to a change that one of them may show by chance.
    assert judge(JUDGED[name], [100.0], [101.0], None, noise).threshold == 0.03
