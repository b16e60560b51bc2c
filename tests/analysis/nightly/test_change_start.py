"""Where a change begins, by all metrics together, and what is named there."""

import pytest
from test_gate_jobs import judge, reasons, rows

from analysis.nightly.change_start import AROUND
from analysis.present.markdown import markdown
from analysis.present.views.jobs import compose_jobs, document


def upgraded(made, night, name="cann"):
    """``made`` with a new version from the run ``night`` on, and no other."""
    for at, row in enumerate(made):
        row["versions"] = [{"name": name, "value": "2" if at >= night else "1", "origin": None}]
    return made


def test_the_beginning_is_placed_by_all_metrics_together():
    """The median alone is off since the night before: by chance, as the other metrics show."""
    made = upgraded(rows(0.0, 0.0, 0.05, 0.05), 22)
    for row in made[21:22]:
        row["steady_step_time_ms"] *= 1.02
    (job,) = judge(made)
    (step,) = job.steps
    assert min(job.runs["run_id"].to_list().index(one.began) for one in step.steps) < 22
    assert job.began == made[22]["run_id"]
    assert [change.name for change in job.changes] == ["cann"]
    assert document([job])["jobs"][0]["since"] == job.began


@pytest.mark.parametrize("shift", range(-AROUND, AROUND + 1))
def test_the_nights_around_are_looked_at(shift):
    (job,) = judge(upgraded(rows(0.05, 0.05, 0.05), 20 + shift))
    assert [change.name for change in job.changes] == ["cann"]


@pytest.mark.parametrize("seed", [0, 4])
def test_an_upgrade_in_the_middle_of_a_drift_is_not_the_cause(seed):
    """0.15 % a night for 20 nights, and a new version after the twelfth; then the same version with a step there."""
    drift = [0.0015 * night for night in range(1, 21)]
    (slow,) = judge(upgraded(rows(*drift, seed=seed), 32))
    assert (slow.verdict, [change.name for change in slow.changes]) == ("regression", ["cann"])
    assert document([slow])["jobs"][0]["worse_before"]
    shown = markdown(compose_jobs([slow]))
    assert "no probable cause: the job had slowly become worse before this changed: cann" in shown
    assert "probable cause: cann" not in shown
    (step,) = judge(upgraded(rows(*[0.0] * 12, *[0.015] * 8, seed=seed), 32))
    assert (step.worse_before, [change.name for change in step.changes]) == (False, ["cann"])
    assert "probable cause: cann" in markdown(compose_jobs([step]))


def test_a_job_that_is_as_expected_began_nowhere():
    (job,) = judge(rows(0.0))
    assert (job.began, job.steps) == (None, ())


def test_the_framework_is_a_setting_as_others():
    names = ["ModelLink"] * 20 + ["MindSpeed-LLM"] * 2
    (job,) = judge(rows(0.05, 0.05, versions=[[]] * 22, framework=names, format="megatron"))
    (change,) = job.changes
    assert (change.kind, change.name, change.candidate) == ("setting", "framework", ("MindSpeed-LLM",))


def test_likely_causes_come_first_and_the_rest_is_counted():
    before = [{"name": f"a{n}", "value": "1"} for n in range(12)] + [{"name": "use_flash_attn", "value": "True"}]
    after = [{"name": f"a{n}", "value": "2"} for n in range(12)] + [{"name": "use_flash_attn", "value": "False"}]
    (job,) = judge(rows(0.05, 0.05, settings=[before] * 20 + [after] * 2))
    assert [change.name for change in job.changes][:3] == ["cann", "use_flash_attn", "a0"]
    assert "; and 6 more" in markdown(compose_jobs([job])).replace("\\", "")


LESS_WORK = {
    "attention": ("reset_attention_mask", "False", "True"),
    "window": ("window_size", "None", "(1024, 0)"),
    "layers": ("layerdrop", "0.0", "0.2"),
}


@pytest.mark.parametrize("kind", LESS_WORK)
def test_less_work_by_a_setting_is_named_on_the_first_confirmed_night(kind):
    name, *values = LESS_WORK[kind]
    before, after = ([{"name": name, "value": value}] for value in values)
    (job,) = judge(rows(-0.1, -0.1, settings=[before] * 20 + [after] * 2))
    assert (job.verdict, reasons(job)["steady_step_time_ms"]) == ("less work", "confirmed_by_less")
    assert [one.kind for one in job.less_work] == [kind]
    # Before the version that changed on the same night.
    assert [change.name for change in job.changes] == [name, "cann"]
    assert "less work: " in markdown(compose_jobs([job]))
    (more,) = judge(rows(-0.1, -0.1, settings=[after] * 20 + [before] * 2))
    assert more.less_work == ()
