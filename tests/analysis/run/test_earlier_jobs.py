"""A trial of a few steps in one file with the run that follows it."""

import polars as pl
import pytest
from helpers import megatron_line, run_logparse
from runs import analyze_text, parts_of, rows, stamped_log

from analysis.run.rows.exclusion_reasons import OTHER_JOB
from analysis.run.rows.restarts import mark_other_jobs


@pytest.mark.parametrize(
    ("steps", "asked", "of_others"),
    [
        ([1, 2, 1, 2, 3], [2, 2, 9, 9, 9], 2),
        ([1, 1, 2, 1, 2], [1, 2, 2, 9, 9], 3),  # two trials
        ([1, 2, 1, 2, 3], [9, 9, 9, 9, 9], 0),  # it began again
        ([1, 2, 1, 2, 3], [3, 3, 9, 9, 9], 0),  # it did not end: what it did was lost
        ([1, 2, 3, 4, 5], [2, 2, 9, 9, 9], 0),  # it went on
        ([1, 2, 3, 1, 2], [3, 3, 3, 2, 2], 0),  # a shorter one behind it
    ],
)
def test_a_job_that_ended_before_a_longer_one_began_is_another(steps, asked, of_others):
    no = [False] * len(steps)
    frame = rows(steps, train_steps=asked).with_columns(copied=pl.Series(no), damaged=pl.Series(no))
    assert mark_other_jobs(frame)["other_job"].to_list() == [True] * of_others + [False] * (len(steps) - of_others)


@pytest.fixture(scope="module")
def with_a_trial() -> str:
    """Two steps of another job, of which the first ends 111 s before the run begins; then 40 steps of 7 s."""
    trial = [megatron_line(s, 9000, f"2026-03-01 07:58:{s * 9:02d}").replace("/     500", "/       2") for s in (1, 2)]
    assert "/       2 |" in trial[1]
    return "\n".join([*trial, *stamped_log([(1, 40)], lambda step, place: 7000.0)]) + "\n"


def test_its_steps_are_no_work_of_the_run_and_its_time_is_start_up(tmp_path, with_a_trial):
    found = analyze_text(tmp_path, with_a_trial)
    assert found.steps["excluded_reason"].head(3).to_list()[:2] == [OTHER_JOB] * 2
    assert found.steps["iterations"].sum() == 40
    assert (len(found.segments), found.segments["lost_steps"].sum()) == (1, 0)
    parts = parts_of(found.time_breakdown)
    assert (parts["start_up"], parts["useful"]) == (pytest.approx(111), pytest.approx(280))
    assert "restarts" not in parts


def test_it_is_told(tmp_path, with_a_trial):
    (tmp_path / "run.log").write_text(with_a_trial)
    done = run_logparse("analyze", "run.log", "-v", cwd=tmp_path)
    assert "start-up includes an earlier job" in done.stdout
    assert "2 excluded: step of an earlier job" in done.stdout
    assert "run.log, lines 1 to 2: 2 steps of a job that ended before this one" in done.stdout.replace("\n", " ")
