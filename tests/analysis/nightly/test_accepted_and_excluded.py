"""An accepted regression leaves a trace in every form, and an exclusion hides none unsaid."""

import polars as pl
import pytest
from test_gate_jobs import BEGIN, judge, rows

from analysis.history.events import Acceptance
from analysis.history.records import run_frame
from analysis.present.markdown import markdown
from analysis.present.parts import Table
from analysis.present.views.jobs import compose_jobs
from analysis.present.views.jobs_json import document


def accepted_at(run_id):
    return Acceptance(run_id, None, "new driver", "#7", BEGIN.replace(month=12, day=1).date(), None, BEGIN, None)


def test_the_row_of_each_job_shows_what_is_accepted():
    made = rows(*[0.03] * 8)
    run_id = made[20]["run_id"]
    (job,) = judge(made, acceptances={run_id: (accepted_at(run_id),)})
    text = "3.1 % slower, accepted until 2026-12-01 (new driver, #7)"
    (table,) = [part for part in compose_jobs([job]) if isinstance(part, Table)]
    assert table.rows[0][1] == f"no regression; {text}"
    assert text in markdown(compose_jobs([job])).replace("\\", "")
    assert document([job])["jobs"][0]["accepted"][0]["text"] == text


def excluded_of(made, *nights, reason="node 7"):
    """The rows that count, and those of some nights with the reason of their exclusion."""
    out = run_frame([made[night] for night in nights]).with_columns(release=pl.lit("r1"), excluded=pl.lit(reason))
    return [row for night, row in enumerate(made) if night not in nights], out


@pytest.mark.parametrize("nights", [[20], [20, 21], [21]])
def test_an_exclusion_that_hides_an_open_regression_is_reported(nights):
    left, out = excluded_of(rows(0.05, 0.05), *nights)
    (job,) = judge(left, excluded=out)
    assert job.verdict != "regression"
    found = job.hidden[0]
    assert (found.run_id, found.reason, found.accepted) == (out["run_id"][0], "node 7", False)
    text = f"is an open regression if run {found.run_id[:12]} counts; it is excluded (node 7)"
    assert text in markdown(compose_jobs([job]))
    assert document([job])["jobs"][0]["hidden"][0]["excluded"] == "node 7"


def test_an_exclusion_that_cancels_an_acceptance_is_reported():
    made = rows(*[0.05] * 5)
    run_id = made[20]["run_id"]
    left, out = excluded_of(made, 20)
    (job,) = judge(left, excluded=out, acceptances={run_id: (accepted_at(run_id),)})
    assert job.verdict == "regression"
    assert {found.accepted for found in job.hidden} == {True}
    assert f"was accepted at run {run_id[:12]}, which is now excluded (node 7)" in markdown(compose_jobs([job]))


def test_an_excluded_night_that_changes_nothing_is_not_reported():
    left, out = excluded_of(rows(0.05, 0.0, 0.0), 20)
    assert judge(left, excluded=out)[0].hidden == ()
    _, other = excluded_of(rows(0.05, 0.05, job="b", seq_length=8192), 20, 21)
    assert judge(rows(0.0), excluded=other)[0].hidden == ()
