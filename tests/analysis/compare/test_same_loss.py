"""Pairs of curves whose answer is worked out by hand: equal digits, means, where they part, what has no partner."""

import math

import numpy as np
import pytest
from releases import as_steps

from analysis.compare.loss_targets import FIGURES, gather_tolerances, judge_losses
from analysis.compare.same_loss import compare_losses

# Noise by rule, which no generator changes: cubes modulo 101 are all of 0 to 100, mixed. Here they are from -1 to 1.
MIXED = np.array([(k**3 % 101 - 50) / 50 for k in range(101)])
DEVIATION = math.sqrt((101**2 - 1) / 12) / 50


def noise(steps, size):
    return size * np.resize(MIXED, steps)


def run(losses, steps=None, **columns):
    """The steps of a run, from step 1 on."""
    known = {"step": list(steps or range(1, len(losses) + 1)), "loss": [float(loss) for loss in losses]}
    rest = {"segment": 0, "iterations": 1} | columns
    return as_steps(**known, **{n: v if isinstance(v, list) else [v] * len(losses) for n, v in rest.items()})


def pair(one, two, column="loss"):
    return compare_losses([one], [two]).of(column)


def falling(steps=200):
    """A loss from 4 to 2."""
    return [4 - 2 * k / steps for k in range(steps)]


def apart(difference):
    """Two curves of which the second is farther by a relative ``difference`` at each step, printed in full."""
    ones = falling(len(difference))
    return run(ones), run([one * math.exp(d) for one, d in zip(ones, difference, strict=True)])


def jumped(steps, at, size, spread=0.001):
    """Noise, and ``size`` more from step ``at`` on."""
    return apart(noise(steps, spread) + np.where(np.arange(1, steps + 1) < at, 0.0, size))


def test_equal_losses_are_equal_to_the_last_digit():
    found = pair(run(falling()), run(falling()))
    assert (found.identical, found.equal_until, found.mean_relative, found.largest) == (True, 200, 0.0, 0.0)
    assert found.parting.shape == "within_noise"


def test_of_logs_with_other_digits_those_of_the_coarser_one_count():
    fine = [2.34567, 2.30449, 2.25551, 2.19992, 2.10008, 2.05544]
    coarse = [2.346, 2.304, 2.256, 2.2, 2.1, 2.055]
    found = pair(run(fine), run(coarse))
    assert found.identical
    # Two units of the last digit of the coarser log.
    assert not pair(run(fine), run([*coarse[:5], 2.057])).identical


def test_a_last_digit_that_differs_ends_the_equal_steps():
    found = pair(run([2.5, 2.4, 2.3, 2.2, 2.1, 2.0]), run([2.5, 2.4, 2.3, 2.1, 2.1, 2.0]))
    assert (found.equal_until, found.equal_places, found.identical) == (3, 5, False)


def test_the_means_and_the_largest_difference():
    """Differences 0.2 of 2, 0 of 4, 0 of 5 and 1 of 10: 10, 0, 0 and 10 %."""
    found = pair(run([2, 4, 5, 10]), run([2.2, 4, 5, 9]))
    assert found.mean_relative == pytest.approx(0.05)
    assert found.mean_absolute == pytest.approx(0.3)
    assert (found.largest, found.largest_at) == (pytest.approx(0.1), 1)
    assert (found.final, found.final_at) == (pytest.approx(0.1), 4)


def test_what_is_relative_to_0_is_left_out_of_the_relative_mean():
    found = pair(run([0, 2, 4]), run([1, 3, 4]))
    assert (found.mean_relative, found.undefined) == (pytest.approx(0.25), 1)
    assert found.mean_absolute == pytest.approx(2 / 3)


def test_a_loss_that_only_the_candidate_loses_meets_no_tolerance():
    same = compare_losses([run([3.0] * 6)], [run([3.0, 3.0, math.nan, 3.0, math.inf, 3.0])])
    found = same.of("loss")
    assert (found.lost_from, found.lost_places, found.places) == (3, 2, 4)
    (judgement,) = judge_losses(same, gather_tolerances([(["loss_mre<=0.02"], None)]))
    assert (judgement.outcome, judgement.findings[0].code) == ("fail", "value_lost")


def test_a_loss_that_the_baseline_loses_too_is_no_difference():
    found = pair(run([3.0, math.nan, 2.0]), run([3.0, math.nan, 2.0]))
    assert (found.places, found.lost_from) == (2, None)


def remarks(one, two):
    return [(r.code, r.side, r.fields) for r in compare_losses([one], [two]).remarks]


def test_steps_that_one_side_does_not_print_are_counted_not_made_up():
    every, second = run([3.0] * 10), run([3.0] * 5, steps=range(2, 11, 2))
    assert pair(every, second).places == 5
    # Between the common steps 2 and 10 lie 3, 5, 7 and 9; step 1 is outside of them.
    assert remarks(every, second) == [
        ("missing", "candidate", {"n": 4, "first": 3, "last": 9}),
        ("longer", "baseline", {"n": 1, "first": 1, "last": 1}),
    ]


def test_a_longer_run_is_compared_where_both_are():
    one, two = run([3.0] * 10), run([3.0] * 14)
    assert (pair(one, two).places, pair(one, two).last_at) == (10, 10)
    assert remarks(one, two) == [("longer", "candidate", {"n": 4, "first": 11, "last": 14})]


def test_a_step_that_was_done_again_has_its_last_loss():
    again = run([3.0, 9.0, 9.0, 2.0, 1.0], steps=[1, 2, 3, 2, 3], segment=[0, 0, 0, 1, 1])
    found = pair(run([3.0, 2.0, 1.0]), again)
    assert (found.identical, found.places) == (True, 3)
    assert remarks(run([3.0, 2.0, 1.0]), again) == [("restarted", "candidate", {"steps": [2]})]


@pytest.mark.parametrize(("at", "size"), [(101, 0.01), (150, -0.003), (181, 0.004), (61, 0.5)])
def test_a_jump_is_found_at_its_step(at, size):
    parting = pair(*jumped(200, at, size)).parting
    assert parting.shape == "jump"
    assert abs(parting.at - at) <= 3
    assert parting.level == pytest.approx(math.expm1(size), abs=0.001)


def test_a_difference_from_the_first_step_on_is_an_offset():
    parting = pair(*jumped(200, 1, 0.004)).parting
    assert (parting.shape, parting.at) == ("offset", 1)


@pytest.mark.parametrize("begin", [0, 100])
def test_a_slope_parts_where_it_exceeds_three_deviations(begin):
    """0.02 per mille a step over noise with a deviation of 0.583 per mille: three deviations after 87 steps."""
    ramp = np.maximum(np.arange(400) - begin, 0) * 2e-5
    parting = pair(*apart(noise(400, 0.001) + ramp)).parting
    way = 3 * DEVIATION * 0.001 / 2e-5
    assert parting.shape == "growing"
    assert parting.at == pytest.approx(begin + way, abs=0.1 * way)


def test_a_slope_that_stays_within_the_noise_has_no_step():
    """It ends at two deviations."""
    found = pair(*apart(noise(400, 0.001) + np.arange(400) * 2 * DEVIATION * 0.001 / 400))
    assert (found.parting.shape, found.parting.at) == ("growing", None)
    assert found.drift.is_significant


def test_curves_that_meet_again_do_not_part_for_good():
    bump = np.where((np.arange(400) > 100) & (np.arange(400) < 200), 0.01, 0.0)
    assert pair(*apart(noise(400, 0.001) + bump)).parting.shape == "within_noise"


def test_a_difference_that_crosses_zero_does_not_end_there():
    line = np.linspace(0.05, -0.03, 400)
    assert pair(*apart(noise(400, 0.001) + line)).parting.at == 1


def test_noise_alone_does_not_part():
    found = pair(*apart(noise(400, 0.001)))
    assert (found.parting.shape, found.parting.at) == ("within_noise", None)
    assert found.parting.spread == pytest.approx(DEVIATION * 0.001, rel=0.3)
    assert not found.drift.is_significant


def test_a_lost_sample_makes_noise_without_a_lasting_difference():
    at = np.arange(1, 301)
    found = pair(*apart(np.where(at < 121, noise(300, 1e-7), noise(300, 0.002))))
    assert found.parting.shape == "scatter"
    assert abs(found.parting.at - 121) <= 3


def test_too_few_steps_show_no_noise():
    found = pair(run(falling(10)), run([one * 1.01 for one in falling(10)]))
    assert found.parting is None
    assert found.mean_relative == pytest.approx(0.01)


def with_batch(losses, batch, tokens=True):
    steps = range(1, len(losses) + 1)
    length = {"seq_length": 1024} if tokens else {}
    return run(losses, global_batch_size=batch, consumed_samples=[batch * step for step in steps], **length)


def test_batches_that_differ_are_compared_at_equal_tokens():
    """A step of the candidate has the tokens of two; its loss is that of every second step."""
    losses = [5 - 0.01 * k for k in range(1, 101)]
    same = compare_losses([with_batch(losses, 128)], [with_batch(losses[1::2], 256)])
    found = same.of("loss")
    assert (same.axis, found.places, found.identical) == ("tokens", 50, True)
    assert (found.first_at, found.last_at) == (256 * 1024, 100 * 128 * 1024)
    assert [remark.code for remark in same.remarks] == ["by_tokens", "missing", "longer"]


def test_without_tokens_other_batches_are_compared_at_steps_and_that_is_said():
    same = compare_losses([with_batch([3.0] * 9, 128, False)], [with_batch([3.0] * 9, 256, False)])
    assert (same.axis, same.remarks[0].code) == ("step", "by_steps")
    assert same.remarks[0].fields == {"baseline": [128], "candidate": [256]}


def test_a_ramp_of_the_batch_is_said():
    batches = [64] * 5 + [128] * 5
    ramp = run([3.0] * 10, global_batch_size=batches)
    assert ("ramp", "candidate", {"batch": [64, 128]}) in remarks(run([3.0] * 10, global_batch_size=batches), ramp)


def test_lines_that_are_means_of_other_numbers_of_steps_are_said():
    tens = range(10, 101, 10)
    one, two = run([3.0] * 10, tens, iterations=10), run([3.0] * 100)
    assert ("mean_of_steps", None, {"baseline": 10.0, "candidate": 1.0}) in remarks(one, two)


def test_each_loss_is_compared_by_itself():
    routed, again = [0.5, 0.4, 0.3, 0.2, 0.1], [0.5, 0.4, 0.3, 0.2, 0.2]
    predicted = [9.0, 8.0, 7.0, 6.0, 5.0]
    one = run([5.0] * 5, load_balancing_loss=routed, mtp_loss=predicted, grad_norm=[1.0] * 5)
    two = run([5.0] * 5, load_balancing_loss=again, mtp_loss=predicted, grad_norm=[2.0] * 5)
    same = compare_losses([one], [two])
    assert [one.column for one in same.differences] == ["loss", "load_balancing_loss", "mtp_loss", "grad_norm"]
    assert [one.mean_relative for one in same.differences] == pytest.approx([0, 0.2, 0, 1])


def test_differences_of_negative_losses_are_absolute():
    one = [-1 + 0.01 * k for k in range(100)]
    found = pair(run(one), run([a + 0.5 for a in one]))
    assert (found.relative, found.parting.shape, found.parting.level) == (False, "offset", pytest.approx(0.5))


def test_a_parting_at_a_restart_names_it():
    ones = falling(200)
    twos = [one * math.exp(d) for one, d in zip(ones, noise(200, 0.001), strict=True)]
    twos[120:] = [two * 1.02 for two in twos[120:]]
    restarted = run(twos, segment=[0] * 120 + [1] * 80)
    parting = pair(run(ones), restarted).parting
    assert (parting.shape, parting.at, parting.restarted) == ("jump", 121, "candidate")


def test_a_difference_that_repeats_have_too_is_noise():
    """Two runs of the baseline are 1 % apart: 0.4 % from their median is none, 3 % is."""
    ones = falling(200)
    small, large = noise(200, 0.0005), noise(200, 0.0005) + 0.01
    repeats = [run([one * math.exp(d) for one, d in zip(ones, shift, strict=True)]) for shift in (small, large)]

    def compared(shift):
        other = run([one * math.exp(0.005 + shift + d) for one, d in zip(ones, noise(200, 0.0007)[::-1], strict=True)])
        return compare_losses(repeats, [other]).of("loss")

    assert (compared(0.004).parting.shape, compared(0.004).repeats) == ("within_noise", 2)
    assert compared(0.03).parting.shape == "offset"


def test_the_drift_is_the_slope_of_the_difference():
    drift = pair(*apart(np.arange(400) * 1e-5)).drift
    assert drift.slope == pytest.approx(1e-5)
    assert drift.low <= drift.slope <= drift.high


def test_every_tolerance_is_a_figure_of_the_registry():
    assert {"loss_mre", "loss_mae", "loss_largest", "grad_norm_mre", "mtp_loss_mre"} < FIGURES.keys()
    same = compare_losses([run([2.0, 4.0, 5.0])], [run([2.2, 4.0, 5.0])])
    texts = ["loss_mre<=4%", "loss_mre<=3%", "loss_mae<=0.07", "loss_largest<=0.05", "mtp_loss_mre<=1"]
    outcomes = [[j.outcome for j in judge_losses(same, gather_tolerances([([text], None)]))] for text in texts]
    assert outcomes == [["pass"], ["fail"], ["pass"], ["fail"], ["unknown"]]
