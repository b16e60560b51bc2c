"""An accepted regression leaves a trace in every form, and an exclusion hides none unsaid."""

from dataclasses import replace

import polars as pl
import pytest
from test_gate_jobs import BEGIN, judge, rows

from analysis.history.events import Acceptance
from analysis.history.run_records import run_frame
from analysis.nightly.exports import junit
from analysis.nightly.policy import read_policy
from analysis.present.markdown import markdown
from analysis.present.parts import Table
from analysis.present.views.jobs import compose_jobs, document, judged_jobs
from logparse.errors import UsageError


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


def test_the_first_ten_lines_show_what_since_when_why_and_what_to_do():
    jobs = [*judge(rows(0.05, 0.05)), *judge(rows(0.0, job="b"))]
    run_id = jobs[0].began[:12]
    lines = markdown(compose_jobs(jobs)).replace("\\", "").splitlines()[:14]
    text = "\n".join(lines)
    assert "new tonight: 1; still open: 0; cleared: 0" in text
    assert f"since run {run_id} (r1, 2026-03-21)" in text
    assert "probable cause: cann: 1 -> 2" in text
    assert f"if intended: logparse history accept {run_id} --reason TEXT" in text


def test_a_suspicious_metric_is_visible_in_junit_and_skipped_by_choice():
    judged = judged_jobs(judge(rows(0.05)), strict=False, failing=frozenset({"regression"}))
    shown, skipped = (junit(replace(judged, suspicious=how)) for how in ("system-out", "skipped"))
    assert (shown.count("<skipped"), skipped.count("<skipped") > 0) == (0, True)
    assert "suspicious (worse than expected" in shown
    assert "suspicious (worse than expected" in skipped
    assert read_policy({"junit_suspicious": "skipped"}).junit_suspicious == "skipped"
    with pytest.raises(UsageError, match="junit_suspicious is 'red'"):
        read_policy({"junit_suspicious": "red"})
