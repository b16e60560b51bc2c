"""Nights on which most jobs are slow together have one line, and unstable series say what they can detect."""

import numpy as np
import pytest
from test_gate_jobs import judge, rows

from analysis.nightly.cluster_nights import find_slow_night, find_unstable
from analysis.present.markdown import markdown
from analysis.present.views.jobs import compose_jobs, document
from logparse.language import speaking


def jobs_of(slow, *, of=8, nights=1):
    """So many jobs of ``of`` that are 5 % slower on the last nights."""
    shapes = [{"hidden_size": [1024 + 128 * place] * (20 + nights)} for place in range(of)]
    each = [rows(*[0.05 * (at < slow)] * nights, job=chr(97 + at), **shape) for at, shape in enumerate(shapes)]
    return judge([row for made in each for row in made])


def test_jobs_that_are_slow_together_have_one_line():
    jobs = jobs_of(7)
    night = find_slow_night(jobs)
    assert (len(night.names), night.jobs, night.nights) == (7, 8, 1)
    assert night.change == pytest.approx(0.05, abs=0.005)
    assert night.p < 1e-10
    text = markdown(compose_jobs(jobs))
    assert "7 of 8 jobs are slower together (median +5" in text
    assert "watch" not in text.partition("jobs: 8")[0].replace("to watch: 7", "")
    assert document(jobs)["slow_night"] == {
        "names": list(night.names),
        "jobs": 8,
        "change": night.change,
        "p": night.p,
        "nights": 1,
    }
    with speaking("zh"):
        assert "8 个作业中有 7 个同时变慢" in markdown(compose_jobs(jobs))


def test_two_slow_nights_of_a_cluster_are_one_line_and_no_regression_of_each_job():
    """A third one is: it lasts."""
    jobs = jobs_of(7, nights=2)
    assert {job.verdict for job in jobs} == {"suspicious", "no regression"}
    text = markdown(compose_jobs(jobs))
    assert "7 of 8 jobs are slower together (median +5" in text
    assert "verdict: no regression; jobs to watch: 7; " in text
    assert [job.news for job in jobs_of(7, nights=3)].count("new") == 7
    assert [job.news for job in jobs_of(2, nights=2)].count("new") == 2


@pytest.mark.parametrize(("slow", "of"), [(0, 8), (2, 8), (3, 8), (2, 2)])
def test_some_slow_jobs_are_no_slow_night(slow, of):
    jobs = jobs_of(slow, of=of)
    assert find_slow_night(jobs) is None
    assert document(jobs)["slow_night"] is None


def test_an_old_slowdown_of_all_jobs_is_no_night():
    """After the third night each job has its own open change."""
    assert find_slow_night(jobs_of(8, nights=3)).nights == 3
    assert find_slow_night(jobs_of(8, nights=5)) is None


def test_an_unstable_series_says_what_it_can_detect():
    noise = np.random.default_rng(2).normal(0, 0.04, 31)
    (job,) = judge(rows(*noise, before=0))
    found = {one.metric.column: one.detectable for one in find_unstable([job])}
    assert 0.08 < found["steady_step_time_ms"] < 0.2
    assert "unstable, smaller changes are not reported: " in markdown(compose_jobs([job]))
    (quiet,) = judge(rows(0.0))
    assert not list(find_unstable([quiet]))
    assert "unstable" not in markdown(compose_jobs([quiet]))
