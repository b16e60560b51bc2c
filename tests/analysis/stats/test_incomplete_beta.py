"""Student's t and the binomial distribution are those of SciPy."""

import pytest

from analysis.stats.incomplete_beta import binomial_tail, t_quantile, t_tail

FREEDOMS = (1, 2, 3, 4, 9, 38, 1000)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_student_s_t_is_scipys(freedom):
    from scipy.special import stdtr, stdtrit

    places = [-40, -3, -0.5, 0, 1e-3, 0.3, 1, 2.1, 5, 40, 1e4]
    assert [t_tail(freedom, t) for t in places] == pytest.approx([stdtr(freedom, -t) for t in places], rel=1e-10)
    chances = [0.001, 0.025, 0.3, 0.6, 0.95, 0.9999, 1 - 1e-9]
    quantiles = [stdtrit(freedom, p) for p in chances]
    assert [t_quantile(freedom, p) for p in chances] == pytest.approx(quantiles, rel=1e-9)


def test_the_binomial_distribution_is_scipys():
    from scipy.special import bdtrc

    cases = [(count, trials, p) for trials in (1, 8, 100) for count in (1, trials // 2, trials) for p in (0.007, 0.3)]
    assert [binomial_tail(*case) for case in cases] == pytest.approx(
        [bdtrc(count - 1, trials, p) if count else 1 for count, trials, p in cases], rel=1e-10
    )


@pytest.mark.parametrize("t", [float("inf"), 1e300])
def test_what_is_too_far_has_no_chance(t):
    assert t_tail(5, t) == 0
    assert t_tail(5, -t) == 1
    assert t_tail(5, float("nan")) != t_tail(5, float("nan"))
