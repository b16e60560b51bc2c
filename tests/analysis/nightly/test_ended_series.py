"""An open regression whose series ends is reported: the job is another one since, or it no longer runs."""

from datetime import timedelta

import pytest
from test_gate_jobs import BEGIN, judge, rows

from analysis.history.events import Acceptance
from analysis.nightly.job_runs import MOST_IDLE_DAYS
from analysis.nightly.job_verdict import WEEK
from analysis.nightly.regressions import find_regressions
from analysis.present.markdown import markdown
from analysis.present.views.jobs import compose_jobs, document
from analysis.present.views.news import has_news, news_document
from analysis.present.views.regressions import compose_regressions
from analysis.present.views.regressions import document as regressions_document
from analysis.stats.prediction import FEWEST

NAMED = {"jobs": {"a": {"owners": ["ann"]}}}
SLOW = (0.05,) * 4
END = "open since 2026-03-21, its series ended on 2026-03-24 (changed: world_size 8 -> 16): "


def later(nights, after=24, **told):
    """Nights of the same job with 16 devices, from the day ``after`` on."""
    made = rows(*[0.0] * nights, before=0, job="b", **{"world_size": 16} | told)
    for night, row in enumerate(made):
        row["begun_at"] = row["recorded_at"] = BEGIN + timedelta(days=after + night)
    return made


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("nights", [1, FEWEST, FEWEST + 1])
def test_the_end_of_a_series_is_reported_until_the_next_one_has_a_verdict(nights, is_named):
    (job,) = judge([*rows(*SLOW), *later(nights)], NAMED if is_named else None)
    text = markdown(compose_jobs([job])).replace("\\", "")
    name = "a (owned by ann)" if is_named else job.name
    assert (f"{END}{name}: step time, steady +5." in text) == (nights <= FEWEST)
    news = "not_comparable" if is_named else "changed"
    assert [one["news"] for one in news_document([job], None)["news"]] == ([news] if nights == 1 else [])
    ended = document([job])["jobs"][0]["ended"]
    assert ended["changed"] == {"world_size": {"before": [8], "newest": [16]}}
    assert (ended["since"], ended["last_run"]) == (rows(*SLOW)[20]["run_id"], rows(*SLOW)[-1]["run_id"])
    (found,) = find_regressions([job], {})
    assert (found.state, found.first_bad["run_id"], found.last_good["run_id"]) == (
        "ended",
        ended["since"],
        rows(*SLOW)[19]["run_id"],
    )
    assert "its series ended on 2026-03-24: changed: world" in markdown(compose_regressions([found], None))
    assert regressions_document([found], None)["regressions"][0]["ended"]["changed"] == ended["changed"]


def test_a_series_that_ended_as_expected_or_accepted_is_not_reported():
    (job,) = judge([*rows(0.0), *later(2)], NAMED)
    assert (job.ended, find_regressions([job], {})) == (None, [])
    bad = rows(*SLOW)[20]["run_id"]
    accepted = {bad: [Acceptance(bad, None, "a slower disk", None, None, None, BEGIN, None)]}
    (job,) = judge([*rows(*SLOW), *later(2)], NAMED, acceptances=accepted)
    assert job.ended is None
    (old,) = judge([*rows(*SLOW), *later(2, after=200)], NAMED)
    assert old.ended is None


@pytest.mark.parametrize("idle", [MOST_IDLE_DAYS, MOST_IDLE_DAYS + 1, MOST_IDLE_DAYS + WEEK, MOST_IDLE_DAYS + WEEK + 1])
def test_an_idle_job_with_an_open_regression_is_reported_in_its_first_week(idle):
    """The series that runs since is of another model."""
    found = judge([*rows(*SLOW), *later(idle, num_layers=48, hidden_size=8192, seq_length=8192)])
    old = next(job for job in found if job.runs["world_size"][0] == 8)
    assert old.is_idle == (idle > MOST_IDLE_DAYS)
    text = markdown(compose_jobs(found)).replace("\\", "")
    is_shown = "its series ended on 2026-03-24 (no later run)" in text
    assert is_shown == (MOST_IDLE_DAYS < idle <= MOST_IDLE_DAYS + WEEK)
    assert has_news([old]) == (idle == MOST_IDLE_DAYS + 1)
    assert [one.state for one in find_regressions([old], {})] == ["ended" if old.is_idle else "open"]
