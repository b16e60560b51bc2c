"""One night against those before it: what is expected, what is off, what is confirmed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma, norm

from analysis.stats.prediction import (
    FEWEST,
    KEPT,
    LEAST_CHANGE,
    NOT_EXCLUDED,
    Expectation,
    expect,
    lasting_of,
    most_accidents,
    watch,
)

USUAL = 1000.0


def nights(*off, before=20, seed=0, spread=0.01):
    """Nights of noise of 1 %, then those that are ``off`` by so much."""
    rng = np.random.default_rng(seed)
    level = [*[0.0] * before, *off]
    return (USUAL * np.exp(rng.normal(0, spread, len(level)) + np.array(level))).tolist()


def after_noise(*off):
    """Twenty nights of noise of 0.25 %, then those that are ``off`` by exactly so much."""
    return [*nights(spread=0.0025), *(USUAL * np.exp(off)).tolist()]


def states(values, worse=1, **how):
    return [night.state for night in watch(values, worse, **how)]


def test_the_first_nights_tell_nothing():
    assert states(nights(before=FEWEST + 1)) == ["learning"] * FEWEST + ["expected"]


def test_one_night_is_off_and_the_next_confirms_it():
    found = watch(nights(0.08, 0.08), 1)
    assert [night.state for night in found[-2:]] == ["off", "confirmed"]
    assert [night.nights for night in found[-2:]] == [1, 2]
    assert found[-1].change == pytest.approx(math.expm1(0.08), abs=0.02)
    assert found[-1].p < found[-2].p < 0.001


def test_one_night_that_is_off_stays_alone():
    """It neither makes the next one look better nor hides a regression later."""
    found = states(nights(0.2, 0, 0, 0, 0.08, 0.08, 0.08))
    assert found[-7:] == ["off", "expected", "expected", "expected", "off", "off", "confirmed"]


def test_nights_off_to_both_sides_confirm_nothing():
    assert states(nights(0.1, -0.1, 0.1, -0.1))[-4:] == ["off"] * 4


@pytest.mark.parametrize("confirm", [1, 2, 3])
def test_as_many_nights_as_were_asked_for(confirm):
    found = states(nights(*[0.1] * 6), confirm=confirm)[-6:]
    assert found == ["off"] * (confirm - 1) + ["confirmed"] * (7 - confirm)
    assert "confirmed" not in states(nights(*[0.1] * 3), confirm=5)
    assert "confirmed" in states(nights(*[0.1] * 6), confirm=5)


def test_a_regression_stays_one_until_it_ends():
    """The nights that are worse are no baseline of those after them, however many they are."""
    found = states(nights(*[0.08] * 40, 0, 0))
    assert found[21:60] == ["confirmed"] * 39
    assert found[60:] == ["confirmed", "cleared"]


def test_one_night_at_the_bound_clears_nothing():
    """Twelve nights 1 % slower, the fifth just inside the range: it stays open, and no night joins the baseline."""
    slow = [0.01] * 12
    slow[4] = 0.0055
    found = watch(nights(*slow, 0, 0, 0, 0, spread=0.0025), 1)
    assert {night.state for night in found[21:32]} == {"confirmed"}
    assert [night.confirmed_for for night in found[21:32]] == list(range(1, 12))
    assert len({night.level for night in found[22:32]}) == 1
    assert [night.state for night in found[32:]].count("cleared") == 1
    assert [night.state for night in found[-2:]] != ["confirmed"] * 2


def test_a_better_level_that_does_not_last_makes_no_regression():
    """Two fast nights and then the level before: it is cleared, and the old level is the baseline."""
    found = states(nights(-0.08, -0.08, 0, 0, 0, 0, 0))
    assert found[21] == "confirmed"
    assert "confirmed" not in found[22:]
    assert found[22:].count("cleared") == 1


def test_what_is_better_is_the_level_from_then_on():
    found = watch(nights(*[-0.08] * 12, 0, 0), 1)
    assert [night.state for night in found[20:22]] == ["off", "confirmed"]
    assert found[21].change < 0
    assert {night.state for night in found[23:32]} == {"expected"}
    assert [night.state for night in found[32:]] == ["off", "confirmed"]
    assert found[-1].change == pytest.approx(math.expm1(0.08), abs=0.02)


def test_less_may_be_worse():
    found = watch(nights(*[-0.08] * 30), -1)
    assert found[-1].state == "confirmed"


def test_what_is_accepted_is_the_level_from_then_on():
    values = nights(*[0.08] * 12)
    assert states(values, accepted=[21])[20:24] == ["off", "accepted", "expected", "expected"]


def test_two_bad_nights_before_do_not_hide_what_stays():
    """At 3 of 28 nights it takes one night more: three in a row are off by accident in 1 of 800 cases."""
    values = nights(0.2, 0, 0, 0.2, 0, 0, *[0.19] * 5)
    assert states(values)[-5:] == ["off"] * 2 + ["confirmed"] * 3


def test_pauses_of_different_length_are_seldom_confirmed():
    """Every fifth night of a short run has a pause of 2 % on average, and no regression."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 7])
        logs = rng.normal(0, 0.003, 120) + (rng.random(120) < 0.2) * rng.exponential(0.02, 120)
        found = states(np.exp(logs).tolist())[30:]
        alarms += sum(new == "confirmed" != old for old, new in zip(["", *found], found, strict=False))
    assert alarms / 60 < 0.55


def test_what_gets_worse_than_was_accepted_is_a_regression():
    """Also where the baseline stays; the level is that of the accepted run on, not between both."""
    for fixed in (0, 20):
        values = nights(*[0.05] * 3, *[0.4] * 4)
        assert states(values, fixed=fixed, accepted=[20])[-2:] == ["confirmed"] * 2
        found = watch(values, 1, fixed=fixed, accepted=[23])
        assert found[-1].state == "expected"
        assert found[-1].level == pytest.approx(USUAL * math.exp(0.4), rel=0.02)


def test_a_slow_drift_is_found_and_can_be_accepted():
    """0.02 % a night: no night is off, and the level of the first thirty nights is not forgotten."""
    values = nights(*(0.0002 * night for night in range(1, 121)), before=30, seed=2, spread=0.001)
    found = watch(values, 1)
    first = [night.state for night in found].index("drifted")
    assert 0.007 < 0.0002 * (first - 29) < 0.0105
    assert found[first].drift > 0.008
    assert {night.state for night in found[first:]} <= {"drifted", "confirmed"}
    accepted = states(values, accepted=[first])
    assert accepted[first : first + 39].count("drifted") == 0
    assert "drifted" not in states(nights(*[0.0] * 70, before=30, spread=0.003))
    assert "drifted" not in states(values, worse=-1)


def test_one_slow_night_of_ten_is_no_drift():
    values = nights(*[0.0] * 20, 0.2, *[0.0] * 3, before=30, spread=0.002)
    assert "drifted" not in states(values)


def test_a_night_far_away_confirms_no_other():
    """A night on a slow node next to one at the bound is an accident: it is no evidence for the others."""
    assert states(after_noise(0.02, 0.008, 0))[20:] == ["off", "off", "expected"]
    assert states(after_noise(0.02, 0.008, 0.008, 0.008))[20:] == ["off", "off", "off", "confirmed"]


def test_a_night_nearer_to_the_level_begins_a_new_row():
    """The night before it was an accident, which joins the level."""
    found = watch(after_noise(0.012, -0.001, 0.012), 1)
    assert [night.state for night in found[20:]] == ["off", "expected", "off"]
    assert [night.nights for night in found[20:]] == [1, 0, 1]
    assert found[22].runs == found[20].runs + 2


def test_nights_just_inside_the_range_are_judged_together():
    """None of three is off by itself, but chance does not take their mean so far; one that is closer ends the row."""
    found = watch(after_noise(0, *[0.0047] * 3), 1)
    assert [night.state for night in found[21:]] == ["expected"] * 2 + ["confirmed"]
    assert [night.nights for night in found[21:]] == [0, 0, 3]
    assert "confirmed" not in states(after_noise(0, 0.0047, 0.0047, 0, 0.0047, 0.0047))


def test_three_nights_need_less_than_two_and_only_where_they_are_worse():
    """2.4 deviations each: two nights may be chance, three are a change, and three better ones are none yet."""
    assert states(after_noise(0, *[0.0065] * 3))[21:] == ["off", "off", "confirmed"]
    assert "confirmed" not in states(after_noise(0, *[-0.0065] * 3))


def test_two_large_changes_with_a_small_night_between_are_one():
    """+ 1 % of which noise takes half on one night."""
    assert states(after_noise(0.01, 0.0055, 0.01))[20:] == ["off", "expected", "confirmed"]


def test_runs_of_one_night_are_one_night():
    """They share its accidents: also where the first run of the next night is as expected."""
    values, one = after_noise(0.04, 0.04, 0.04, 0, 0.04, 0.04), [*range(20), 20, 20, 20, 21, 21, 21]
    assert "confirmed" not in states(values, nights=one)
    assert states(values[:23])[-2:] == ["confirmed"] * 2
    later = [*range(20), 20, 20, 20, 21, 22, 22]
    assert states(after_noise(*[0.04] * 6), nights=later)[20:] == ["off"] * 3 + ["confirmed"] * 3


def test_nights_on_which_most_jobs_are_slow_need_a_third():
    slow = {20, 21}
    assert states(after_noise(0.04, 0.04, 0), together=slow)[20:] == ["off", "off", "expected"]
    assert states(after_noise(0.04, 0.04, 0.04), together=slow)[20:] == ["off", "off", "confirmed"]


def test_a_drift_that_is_accepted_on_a_night_that_is_off_is_the_level():
    """The night joins the level only when the next is closer; the level begins with it all the same."""
    values = nights(*(0.0002 * night for night in range(1, 121)), before=30, seed=2, spread=0.001)
    found = watch(values, 1)
    alone = [at for at, night in enumerate(found) if night.state == "drifted" and night.own_change > 0.0052]
    assert alone
    for at in alone:
        later = states(values, accepted=[at])[at : at + 20]
        assert later[0] == "accepted"
        assert "drifted" not in later


def test_a_baseline_that_stays_does_not_follow_a_creep():
    creep = nights(*np.linspace(0, 0.024, 60))
    assert "confirmed" not in states(creep)[-3:]
    assert states(creep, fixed=20)[-1] == "confirmed"


def test_runs_of_a_node_are_expected_to_be_as_those_before_on_it():
    """A node 3 % slower than the other: no night is off, and a regression on both is."""
    slow = [0.03 * (place % 2) for place in range(40)]
    blocks = ["a", "b"] * 23
    values = nights(*slow, before=0, spread=0.002) + nights(*[0.02 + s for s in slow[:6]], before=0, spread=0.002)
    assert set(states(values[:40], blocks=blocks[:40])) == {"learning", "expected"}
    assert states(values, blocks=blocks)[-1] == "confirmed"
    assert states(values)[-1] != "confirmed"


def test_a_small_change_is_none_however_certain():
    values = nights(*[LEAST_CHANGE * 0.8] * 4, spread=1e-5)
    assert set(states(values)) == {"learning", "expected"}
    assert states(values, least=LEAST_CHANGE / 2)[-1] == "confirmed"


def test_an_unstable_series_alarms_only_beyond_what_it_can_detect():
    """Noise of 3 % that lasts for nights: a change of 8 % is none, one of 40 % is, and each night says so."""
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.03, 46)
    for at in range(1, 46):
        noise[at] = 0.6 * noise[at - 1] + 0.8 * noise[at]
    for by, alarmed in ((0.08, False), (0.4, True)):
        found = watch(np.exp(noise + by * (np.arange(46) >= 40)).tolist(), 1)
        assert found[39].is_unstable
        assert 0.08 < found[39].detectable < 0.25
        assert any(night.state == "confirmed" for night in found[40:]) is alarmed
    assert not watch(nights(), 1)[-1].is_unstable


def test_a_change_that_ended_counts_as_an_accident():
    """Two slow nights are confirmed once; after they ended, two more are not enough."""
    found = states(nights(0.08, 0.08, 0, 0, 0, 0.08, 0.08, 0, 0, before=30, spread=0.0025))
    assert found[31] == "confirmed"
    assert "confirmed" not in found[34:]


def test_the_correlation_that_counts_is_the_one_that_is_certain():
    rng = np.random.default_rng(1)
    assert expect(rng.normal(0, 1, 30).tolist()).correlation == 0.0
    slow = np.sin(np.arange(60) / 5)
    found = expect(slow.tolist())
    assert 0.6 < found.correlation < 0.9
    assert found.reach(0.01, 3) > expect(rng.permutation(slow).tolist()).reach(0.01, 3)


def test_nights_without_noise():
    assert states([USUAL] * 20 + [USUAL * 1.02] * 2)[-2:] == ["off", "confirmed"]


def test_a_young_series_needs_a_third_night():
    """Nineteen nights without an accident do not show that a job has none."""
    assert states([USUAL] * 19 + [USUAL * 1.02] * 3)[-3:] == ["off", "off", "confirmed"]


@pytest.mark.parametrize("seen", [0, 1, 5, 20])
def test_the_most_accidents_are_the_limit_of_a_count(seen):
    """So many are the quantile of a gamma distribution whose shape is one more."""
    confidence = norm.cdf(NOT_EXCLUDED)
    assert most_accidents(seen) == pytest.approx(gamma.ppf(confidence, seen + 1), rel=0.01)


@pytest.mark.parametrize(("accidents", "times"), [(0.0, 36), (1 / 60, 36), (0.08, 6.25), (0.1, 3.2), (0.2, 1)])
def test_three_nights_need_less_proof_the_rarer_accidents_are(accidents, times):
    """0.0032 over the chance of three accidents in a row, from 1 to 36 times."""
    assert lasting_of(accidents) == pytest.approx(times)


def distance_of(expectation: Expectation, p: float) -> float:
    """The distance that the mean of three nights exceeds with the chance ``p``."""
    return expectation.level + expectation.reach(p, 3)


@pytest.mark.parametrize(("accidents", "p", "is_found"), [(0, 2e-3, True), (3, 2e-3, False), (3, 1e-4, True)])
def test_three_nights_are_a_change_by_how_many_accidents_there_were(accidents, p, is_found):
    before = nights(before=30)
    before[5 : 5 + 3 * accidents : 3] = [USUAL * 1.08] * accidents
    far = distance_of(expect(np.log(before)), p)
    found = states([*before, *[math.exp(far)] * 3])
    assert "confirmed" not in found[:-1]
    assert (found[-1] == "confirmed") is is_found


@pytest.mark.parametrize("accidents", [0, 3])
def test_nights_of_a_change_differ_more_in_a_job_without_accidents(accidents):
    before = nights(before=30)
    before[5 : 5 + 3 * accidents : 3] = [USUAL * 1.08] * accidents
    known = expect(np.log(before))
    found = states([*before, *np.exp(known.level + known.spread * np.array([2.2, 2.2, 4.6]))])
    assert (found[-1] == "confirmed") is (accidents == 0)


@pytest.mark.parametrize(("nights_of_it", "state"), [(3, "cleared"), (8, "confirmed")])
def test_a_young_change_ends_with_one_night_that_may_be_of_the_level(nights_of_it, state):
    """At 0.7 spreads it is 11 times likelier at the level than at a change of 3 spreads: 3 x (1.5 - 0.7) = ln 11."""
    before = nights(before=30)
    known = expect(np.log(before))
    found = states([*before, *np.exp(known.level + known.spread * np.array([3.0] * nights_of_it + [0.7]))])
    assert found[-2:] == ["confirmed", state]


@pytest.mark.parametrize(("first", "is_found"), [(0.0044, True), (0.0040, False)])
def test_a_night_of_a_change_may_be_a_little_below_the_smallest_change(first, is_found):
    level = expect(np.log(np.array(nights(spread=0.0025)) / USUAL)).level
    found = states(after_noise(*[level + off for off in (first, 0.006, 0.0065)]))
    assert (found[-1] == "confirmed") is is_found


def test_many_nights_a_little_below_the_smallest_change_are_of_the_level():
    level = expect(np.log(np.array(nights(spread=0.0025)) / USUAL)).level
    found = watch(after_noise(*[level + 0.0044] * 8), 1)
    assert {night.state for night in found[20:]} == {"expected"}
    assert found[-1].runs > 20


def test_the_expectation_is_hand_worked():
    """Median 0, median deviation 1 x 1.4826 x 5 / 4.2 = 1.765: 100 is taken for 3.5 x 1.765; no value is farther than
    2.5 of the deviations that this leaves.
    """
    found = expect([-2.0, -1.0, 0.0, 1.0, 100.0])
    values = np.array([-2.0, -1.0, 0.0, 1.0, 3.5 * 1.4826 * 5 / 4.2])
    assert (found.level, found.spread) == pytest.approx((values.mean(), values.std(ddof=1)))
    assert found.p(found.reach(0.01, 2), 2) == pytest.approx(0.01)


def test_a_far_value_is_bounded_twice():
    """Median 0, median deviation 0.5: 100 is taken for 3.5 x 0.5 x 1.4826 x 21 / 20.2, then for less."""
    near = [-1.0, 0.0, 1.0, 0.5, -0.5] * 4
    found = expect([*near, 100.0])
    once = np.array([*near, 3.5 * 0.5 * 1.4826 * 21 / 20.2])
    twice = np.minimum(once, once.mean() + 2.5 * once.std(ddof=1))
    assert once.max() > twice.max()
    assert (found.level, found.spread) == pytest.approx((twice.mean(), twice.std(ddof=1)))


def episodes(kind, seed):
    rng = np.random.default_rng([seed, 1])
    noise = rng.normal(0, 0.01, 110)
    if kind == "alike":
        for at in range(1, 110):
            noise[at] = 0.5 * noise[at - 1] + math.sqrt(0.75) * noise[at]
    if kind == "outliers":
        noise += (rng.random(110) < 0.05) * rng.uniform(0.05, 0.2, 110)
    found = states(np.exp(noise).tolist())
    return sum(new == "confirmed" != old for old, new in zip(found[KEPT - 1 :], found[KEPT:], strict=False))


@pytest.mark.parametrize("kind", ["independent", "alike", "outliers"])
def test_few_nights_of_noise_are_confirmed(kind):
    """At most one in 90 nights, better or worse; the benchmark counts them closer."""
    assert np.mean([episodes(kind, seed) for seed in range(20)]) < 1


@given(st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=40), st.sampled_from([1, -1]), st.integers(0, 10))
def test_any_positive_numbers_have_a_night_each(values, worse, fixed):
    found = watch(values, worse, fixed=fixed)
    assert len(found) == len(values)
    for night in found:
        assert (night.level is None) == (night.state == "learning")
        assert night.level is None or (night.low <= night.level <= night.high and 0 <= night.p <= 1)
