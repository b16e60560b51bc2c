"""Each step of a series is a change of its own: new once, with its size, date and cause, until it ends."""

import math
from datetime import timedelta

import numpy as np
import pytest
from test_accepted_and_excluded import accepted_at
from test_gate_jobs import BEGIN, judge, rows

from analysis.commands._job_gate import fail
from analysis.history.run_records import run_frame
from analysis.metrics import JUDGED
from analysis.nightly.job_runs import ids_of_tonight, in_time
from analysis.nightly.regressions import find_regressions
from analysis.nightly.trend import follow
from analysis.present.markdown import markdown
from analysis.present.views.jobs import compose_jobs, document
from analysis.present.views.news import has_news, news_text
from analysis.present.views.regressions import compose_regressions

STEADY = "steady_step_time_ms"
NEW = frozenset({"crashed", "regression"})


def with_releases(made, *nights):
    """``made`` with a new version of CANN on each of ``nights``, and no other."""
    for at, row in enumerate(made):
        row["versions"] = [{"name": "cann", "value": f"RC{1 + sum(at >= night for night in nights)}", "origin": None}]
    return made


def at(job, run_id):
    return job.runs["run_id"].to_list().index(run_id)


def steps_of(job, state=None):
    """Of each step: state, place of its first run, size of the median."""
    found = [(one.state, at(job, one.began), one.changes.get(STEADY)) for one in job.steps]
    return [one for one in found if state in (None, one[0])]


def text_of(jobs):
    return markdown(compose_jobs(jobs)).replace("\\", "")


def two_steps(nights):
    """+3 % from night 20, and +5 % more with another CANN from night 29."""
    return judge(with_releases(rows(*[0.03] * 9, *[0.08] * 4), 20, 29)[:nights])[0]


def test_a_second_slowdown_on_an_open_one_is_new_with_its_own_size_and_cause():
    first, before, second, after = map(two_steps, (22, 30, 31, 32))
    assert [job.news for job in (first, before, second, after)] == ["new", "still_open", "new", "still_open"]
    assert [fail([job], NEW, only_new=True) for job in (first, before, second, after)] == [True, False, True, False]
    (old, new) = second.steps
    assert [(one.state, at(second, one.began)) for one in second.steps] == [("open", 20), ("new", 29)]
    assert old.changes[STEADY] == pytest.approx(math.expm1(0.03), abs=0.005)
    assert new.changes[STEADY] == pytest.approx(math.expm1(0.05), abs=0.006)
    assert [[(one.name, one.candidate) for one in step.causes] for step in second.steps] == [
        [("cann", ("RC2",))],
        [("cann", ("RC3",))],
    ]
    text = text_of([second])
    assert "new tonight: 1; still open: 1; cleared: 0" in text
    assert f"since run {new.began[:12]} (r1, 2026-03-30)" in text
    assert "probable cause: cann: RC2 -> RC3" in text
    assert "open since 2026-03-21: " in text
    told = document([second])["jobs"][0]["steps"]
    assert [(one["state"], one["since"]["run_id"], one["metrics"][STEADY]) for one in told] == [
        (one.state, one.began, one.changes[STEADY]) for one in second.steps
    ]


def test_an_open_tail_hides_no_slowdown_of_the_median():
    slow = {"tail": dict.fromkeys(range(20), 0.2), "step_time_p95_ms": [1050.0] * 20 + [1250.0] * 20}
    made = with_releases(rows(*[0.0] * 10, *[0.05] * 10, **slow), 30)
    open_tail, new = (judge(made[:nights])[0] for nights in (30, 32))
    assert (open_tail.news, new.news) == ("still_open", "new")
    assert steps_of(new, "new") == [("new", 30, pytest.approx(math.expm1(0.05), abs=0.006))]
    assert [one.name for one in new.changes] == ["cann"]


def test_one_accepted_step_leaves_the_other_open():
    made = with_releases(rows(*[0.03] * 9, *[0.08] * 4), 20, 29)
    for accepted, states in ((20, ["accepted", "open"]), (29, ["open", "accepted"])):
        run_id = made[accepted]["run_id"]
        (job,) = judge(made, acceptances={run_id: (accepted_at(run_id),)})
        assert [one.state for one in job.steps] == states
        assert job.verdict == "regression"
        assert [one.acceptance is not None for one in job.steps] == [state == "accepted" for state in states]


HOURS = (20, 23, 26)


def three_a_night(nights, *off):
    """Three runs a night: at 20:00, 23:00 and 2:00."""
    made = rows(*[by for by in off for _ in HOURS], before=len(HOURS) * nights)
    for place, row in enumerate(made):
        night, run = divmod(place, len(HOURS))
        row["begun_at"] = row["recorded_at"] = BEGIN.replace(hour=0) + timedelta(days=night, hours=HOURS[run])
    return made


def test_of_three_runs_a_night_a_change_is_new_once_on_the_night_that_confirms_it():
    """The first run of its second night confirms it, the third is the newest; a night ends after midnight."""
    made = three_a_night(8, *[0.04] * 4)
    found = [judge(made[: len(HOURS) * night])[0] for night in range(8, 13)]
    assert [job.news for job in found] == [None, None, "new", "still_open", "still_open"]
    assert [has_news([job]) for job in found] == [False, False, True, False, False]


@pytest.mark.parametrize("shift", range(3))
def test_news_are_those_of_the_night_whichever_run_confirms(shift):
    """The change begins with the first, second or third run of a night."""
    made = three_a_night(8, *[0.0] * 4)
    for row in made[24 + shift :]:
        row["steady_step_time_ms"] *= 1.04
        row["with_stalls_step_time_ms"] *= 1.04
    found = [judge(made[: len(HOURS) * night])[0].news for night in range(8, 13)]
    assert found.count("new") == 1
    assert found.index("new") == 2


def test_three_runs_of_one_slow_night_are_no_regression():
    """They share its accidents, such as a slow node."""
    made = three_a_night(8, 0.04, 0.0, 0.0)
    found = [judge(made[: len(HOURS) * night])[0].verdict for night in (9, 10, 11)]
    assert found == ["suspicious", "no regression", "no regression"]


def test_each_testbed_that_ran_tonight_is_judged():
    """Two nodes run every night, and one of them is 4 % slower; the newest run is on the other."""
    made = three_a_night(12, *[0.0] * 4)
    for place, row in enumerate(made):
        node = ("a", "b", "b")[place % 3]
        row["labels"] = [{"name": "node", "value": node}]
        if place >= 36 and node == "a":
            row["steady_step_time_ms"] *= 1.04
            row["with_stalls_step_time_ms"] *= 1.04
    found = [judge(made[: len(HOURS) * night], {"block_by": "node"})[0] for night in range(12, 16)]
    assert [job.verdict for job in found] == ["no regression", "suspicious", "suspicious", "regression"]
    assert [job.news for job in found] == [None, None, None, "new"]
    (step,) = found[3].steps
    assert (step.block, step.changes[STEADY]) == ("a", pytest.approx(0.04, abs=0.01))
    assert ", node a: step time, steady +" in text_of(found[3:])
    beds = document(found[3:])["jobs"][0]["testbeds"]
    assert [beds[node][STEADY]["verdict"] for node in "ab"] == ["regression", "no regression"]


def test_a_change_of_all_testbeds_is_one():
    made = rows(*[0.04] * 4, before=30)
    for place, row in enumerate(made):
        row["labels"] = [{"name": "cluster", "value": "ab"[place % 2]}]
    (job,) = judge(made, {"block_by": "cluster"})
    assert [(one.state, one.block) for one in job.steps] == [("open", None)]


def test_a_release_that_is_reverted_did_not_come_slowly():
    """5 % faster for eight nights, then as before: the release is the cause on the night of the news."""
    made = with_releases(rows(*[-0.05] * 8, *[0.0] * 3), 20, 28)
    for nights in (30, 31):
        (job,) = judge(made[:nights])
        (step,) = job.steps
        assert (step.is_slow, at(job, step.began)) == (False, 28)
        assert [one.candidate for one in step.causes] == [("RC3",)]
    text = news_text(judge(made[:30]), None)
    assert "slowly" not in text
    assert "probable cause: cann: RC2 -> RC3" in text


@pytest.mark.parametrize("by", [0.01, 0.02, 0.05])
def test_one_date_of_the_beginning_in_all_that_is_said(by):
    """Also where the noise of nights makes a metric seem to begin before."""
    right = 0
    for seed in range(10):
        (job,) = judge(with_releases(rows(*[by] * 4, before=30, seed=seed), 30))
        if job.verdict != "regression":
            continue
        days = {line.split("2026-")[1][:5] for line in text_of([job]).splitlines() if "since " in line}
        assert len(days) == 1
        right += at(job, job.began) == 30
    assert right >= (3 if by == 0.01 else 10)


def test_a_drift_says_its_rate_its_total_and_since_when():
    """0.02 % a night from night 40 on; a faster one is found as a step before."""
    rng = np.random.default_rng(5)
    times = [1000 * math.exp(0.0002 * max(0, night - 39) + rng.normal(0, 0.001)) for night in range(100)]
    made = rows(*[0.0] * 60, before=40, steady_step_time_ms=times, with_stalls_step_time_ms=times)
    found = [judge(made[:nights])[0] for nights in range(75, 100)]
    (new,) = [job for job in found if job.news == "new"]
    (step,) = new.steps
    assert (step.is_drift, step.is_slow) == (True, True)
    (total,) = {one.night.drift for one in new.new_metrics}
    assert {total} == set(step.changes.values())
    assert 0.008 < total < 0.011
    assert 40 <= at(new, step.began) <= 65
    assert step.a_day == pytest.approx(total / (len(new.runs) - 1 - at(new, step.began)), rel=0.02)
    text = text_of([new])
    assert f"since run {step.began[:12]}" in text
    assert ", slowly: +0.0" in text


@pytest.mark.parametrize("good", [3, 4, 6])
def test_a_change_after_a_few_good_runs_is_found_as_by_the_trend(good):
    (job,) = judge(rows(*[0.04] * 5, before=good))
    assert job.verdict == "regression"
    assert steps_of(job)[0][:2] in {("new", good), ("open", good)}


def test_a_night_without_a_verdict_is_not_called_quiet():
    text = text_of(judge(rows(0.0, before=3)))
    assert "nothing to do tonight" not in text
    assert "jobs with too few runs for a verdict: 1" in text


def test_a_batch_that_changed_is_said_and_no_run_is_missing():
    """Nobody named the job. The old series goes on where the batch comes back."""
    made = [row | {"global_batch_size": 64 if 20 <= night < 28 else 32} for night, row in enumerate(rows(*[0.0] * 10))]
    beside = rows(*[0.0] * 10, job="b", hidden_size=8192)
    for nights, news in ((21, True), (22, False), (26, False), (28, False)):
        found = judge([*made[:nights], *beside[:nights]])
        assert len(found) == 2
        (job,) = [one for one in found if one.runs["hidden_size"][0] == 4096]
        assert (job.missing, job.refused, has_news([job])) == (False, (), news)
        assert ("global_batch_size 32 -> 64" in text_of([job])) == (nights < 26)
    (job,) = judge(made)
    assert (len(job.runs), job.verdict) == (22, "no regression")


def test_a_batch_that_changed_is_refused_on_one_night_and_can_be_accepted():
    made = [row | {"global_batch_size": 64 if night >= 20 else 32} for night, row in enumerate(rows(*[0.0] * 4))]
    first, second = (judge(made[:nights], {"jobs": {"a": {}}})[0] for nights in (21, 22))
    assert (bool(first.refused), bool(second.refused)) == (True, False)
    assert second.verdict == "insufficient data"
    run_id = made[20]["run_id"]
    assert f"global_batch_size 32 -> 64; if intended: logparse history accept {run_id[:12]} --reason TEXT" in (
        text_of([first])
    )
    known = {run_id: (accepted_at(run_id),)}
    (accepted,) = judge(made[:21], {"jobs": {"a": {}}}, acceptances=known)
    assert (accepted.refused, accepted.verdict) == ((), "insufficient data")
    assert "global_batch_size 32 -> 64, accepted until 2026-12-01" in text_of([accepted])


@pytest.mark.parametrize("after", [0.0, -0.03])
def test_a_repaired_regression_leaves_a_cleared_entry(after):
    """Also where it is faster than before since, and in the list for a time."""
    found = [judge(rows(*[0.04] * 6, *[after] * nights))[0] for nights in range(1, 9)]
    news = [job.news for job in found]
    assert news.count("cleared") == 1
    (job,) = [job for job in found if job.cleared]
    assert "cleared: " in text_of([job])
    assert [one["state"] for one in document([job])["jobs"][0]["steps"]] == ["cleared"]
    for later in found[news.index("cleared") :]:
        (known,) = find_regressions([later], {})
        assert (known.state, known.first_bad["run_id"]) == ("cleared", later.runs["run_id"][20])
        assert "cleared by run " in markdown(compose_regressions([known], None))


def test_a_repair_is_news_next_to_another_open_change():
    made = rows(*[0.04] * 6, *[0.0] * 4, nan_share=[0.0] * 24 + [0.02] * 6)
    found = [judge(made[:nights])[0] for nights in range(27, 31)]
    assert {job.verdict for job in found} == {"regression"}
    (job,) = [job for job in found if job.cleared]
    assert "new tonight: 0; still open: 1; cleared: 1" in text_of([job])
    assert has_news([job])


@pytest.mark.parametrize("hours", [[20], [0], [23, 1], [1, 9, 17], list(range(24))])
def test_a_night_parts_no_runs_that_belong_together(hours):

    made = rows(*[0.0] * (5 * len(hours)), before=0)
    for place, row in enumerate(made):
        night, run = divmod(place, len(hours))
        late = 24 if hours[run] < hours[0] else 0
        row["begun_at"] = BEGIN.replace(hour=0) + timedelta(days=night, hours=hours[run] + late)
    assert len(ids_of_tonight(in_time(run_frame(made)))) == len(hours)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [0.008, 0.02])
def test_the_trend_has_the_changes_of_the_gate(seed, size):
    """On the third night of the second step, and later; of a slow growth both say that it is one."""
    made = rows(*[size] * 9, *[2 * size] * 12, before=30, seed=seed)
    for nights in (42, 51):
        (job,) = judge(made[:nights])
        opened = [one.began for one in job.steps if one.is_open and not one.is_slow and STEADY in one.changes]
        trend = follow(job.runs, JUDGED[STEADY])
        assert opened == [change.run_id for change in trend.changes if change.run_id in opened]
        assert size < 0.02 or len(opened) == len(trend.changes) == 2
