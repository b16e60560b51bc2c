"""The newest run of every job, judged in one call."""

import json
import math
from dataclasses import replace
from datetime import datetime, timedelta
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from helpers import run_logparse
from releases import as_steps, record, write_run

from analysis.history.events import Acceptance
from analysis.history.folder import Folder
from analysis.history.run_records import run_frame
from analysis.history.store import History
from analysis.nightly.exports import junit
from analysis.nightly.gate_jobs import judge_jobs
from analysis.nightly.job_facts import HistoryOfJobs
from analysis.nightly.policy import read_policy
from analysis.nightly.run_verdicts import verdicts_of_runs
from analysis.present.markdown import markdown
from analysis.present.views.jobs import compose_jobs, judged_jobs, refusal
from analysis.present.views.jobs import document as jobs_document
from logparse.errors import UsageError

pytestmark = pytest.mark.usefixtures("analysed_once")

BEGIN = datetime(2026, 3, 1, 20)
SHAPE = {"num_layers": 32, "hidden_size": 4096, "global_batch_size": 32, "seq_length": 4096, "world_size": 8}


def rows(*off, job="a", before=20, tail=None, seed=3, **told):
    """Nights of one job, the last ones ``off``; of those in ``tail`` the delivered time alone."""
    rng = np.random.default_rng([seed, *map(ord, job)])
    level = [*[0.0] * before, *off]
    made = []
    for night, by in enumerate(level):
        ms = 1000 * math.exp(rng.normal(0, 0.004) + by)
        slow = 1 + (tail or {}).get(night - before, 0.0)
        made.append(
            {
                **SHAPE,
                "run_id": f"{job}{night:030}",
                "begins": f"{job}{night}",
                "name": f"{job}-{night}",
                "landmarks": [],
                "labels": [],
                "versions": [{"name": "cann", "value": "2" if by or slow > 1 else "1", "origin": None}],
                "settings": [],
                "recorded_at": BEGIN + timedelta(days=night),
                "begun_at": BEGIN + timedelta(days=night),
                "step_lines": 100,
                "counted_rows": 90,
                "steady_step_time_ms": ms,
                "with_stalls_step_time_ms": ms * slow * math.exp(rng.normal(0, 0.001)),
                "goodput": 0.9 / slow * math.exp(rng.normal(0, 0.001)),
                **{name: value[night] if isinstance(value, list) else value for name, value in told.items()},
            }
        )
    return made


def judge(made, gate=None, **kept):
    runs = run_frame(made).with_columns(release=pl.lit("r1"))
    told = HistoryOfJobs(
        settings=lambda ids: runs.filter(pl.col("run_id").is_in(list(ids))),
        steps=lambda _: as_steps(),
    )
    return judge_jobs(runs, read_policy(gate or {}), replace(told, **kept))


def reasons(job):
    return {found.metric.column: found.reason for found in job.metrics}


def test_alike_nights_are_as_expected():
    (job,) = judge(rows(0.0))
    assert (job.verdict, set(reasons(job).values())) == ("no regression", {"as_expected"})


def test_one_night_is_suspicious_two_are_a_regression():
    (one,), (two,) = judge(rows(0.05)), judge(rows(0.05, 0.05))
    assert (one.verdict, reasons(one)["steady_step_time_ms"]) == ("suspicious", "one_night")
    assert (two.verdict, reasons(two)["steady_step_time_ms"]) == ("regression", "confirmed")
    found = two.metrics[0]
    assert found.began == two.runs["run_id"][-2]
    assert found.night.low < found.night.level < found.night.high < found.value
    assert [change.name for change in two.changes] == ["cann"]


def test_an_open_regression_is_cleared_as_it_was_confirmed_and_that_is_said_once():
    still, cleared, after = (judge(rows(*[0.05] * 6, *[0.0] * nights))[0] for nights in (1, 2, 3))
    found = [(job.verdict, reasons(job)["steady_step_time_ms"]) for job in (still, cleared, after)]
    assert found == [("regression", "still_open"), ("no regression", "cleared"), ("no regression", "as_expected")]
    assert "no longer worse" in markdown(compose_jobs([cleared]))


def test_a_regression_of_a_few_nights_is_withdrawn_on_the_next_one_that_is_as_before():
    new, withdrawn, after = (judge(rows(0.05, 0.05, *[0.0] * nights))[0] for nights in (0, 1, 2))
    assert [job.news for job in (new, withdrawn, after)] == ["new", "cleared", None]


def test_news_are_new_still_open_or_cleared():
    found = [judge(rows(0.05, *[0.05] * more, *[0.0] * after))[0] for more, after in ((0, 0), (1, 0), (2, 0), (1, 1))]
    assert [job.news for job in found] == [None, "new", "still_open", "cleared"]
    text = markdown(compose_jobs(found[1:]))
    assert "new tonight: 1; still open: 1; cleared: 1" in text
    for job, failures in zip(found, (0, 2, 0, 0), strict=True):
        judged = judged_jobs([job], False, frozenset({"regression"}), only_new=True)
        assert len(list(ElementTree.fromstring(junit(judged)).iter("failure"))) == failures


def test_slow_steps_that_leave_the_median_alone():
    """Every tenth step three times as long: + 20 % delivered, within two nights."""
    (job,) = judge(rows(0.0, 0.0, tail={0: 0.2, 1: 0.2}))
    told = reasons(job)
    assert job.verdict == "regression"
    assert (told["steady_step_time_ms"], told["with_stalls_step_time_ms"], told["goodput"]) == (
        "as_expected",
        "confirmed",
        "confirmed",
    )


def test_faster_is_suspicious_once_and_then_what_is_expected():
    (two,), (four,) = judge(rows(-0.05, -0.05)), judge(rows(-0.05, -0.05, -0.05, -0.05))
    assert (two.verdict, reasons(two)["steady_step_time_ms"]) == ("suspicious", "confirmed_faster")
    assert four.verdict == "no regression"


def test_few_runs_tell_nothing():
    (job,) = judge(rows(0.05, before=4))
    assert (job.verdict, reasons(job)["steady_step_time_ms"]) == ("insufficient data", "learning")


def test_runs_without_a_time_are_not_judged():
    """As the first stores kept them: of such nobody knows which is the newest."""
    timeless = rows(0.05, recorded_at=[None] * 21, begun_at=[None] * 21)
    with pytest.raises(UsageError, match="no run to judge"):
        judge(timeless)
    (job,) = judge([*timeless[:1], *rows(0.0, job="b")])
    assert job.newest["name"] == "b-20"


def test_a_job_that_no_longer_runs_has_no_verdict():
    """Its last nights were a regression, 15 days before the newest of another."""
    made = [*rows(0.05, 0.05, job="a"), *rows(*[0.0] * 17, job="b", world_size=16)]
    found = {len(job.runs): job for job in judge(made)}
    assert (found[22].verdict, found[22].idle_days, found[37].verdict) == (None, 15, "no regression")
    assert "no run for more than 14 days" in markdown(compose_jobs(list(found.values())))
    assert judge(made[:22])[0].verdict == "regression"
    for strict, ends in ((False, "skipped"), (True, "error")):
        cases = ElementTree.fromstring(junit(judged_jobs(list(found.values()), strict, frozenset({"regression"}))))
        assert [case.get("message") for case in cases.iter(ends)] == ["no run for 15 days"]


def test_a_history_without_a_run_that_counts():
    for made in (rows(0.0, counted_rows=3), []):
        with pytest.raises(UsageError, match="no run to judge"):
            judge(made)


def test_a_later_run_that_failed_is_told():
    made = rows(0.0, 0.0, counted_rows=[90] * 21 + [3])
    (job,) = judge(made)
    assert (job.verdict, [run.name for run in job.left_out]) == ("no regression", ["a-21"])
    assert "a later run, a-21, is not used" in markdown(compose_jobs([job]))
    with pytest.raises(UsageError, match="has no run with enough counted rows"):
        judge(rows(0.0, counted_rows=3), {"jobs": {"a": {"select": "world_size=8"}}})


FAILURES = {
    "crashed": {"crashed_at": 40},
    "half_run": {"last_step": 30, "planned_steps": 100, "step_lines": 30},
    "too_few_steps": {"step_lines": 45},
}


@pytest.mark.parametrize("reason", FAILURES)
def test_a_run_that_failed_is_not_judged_and_fails_the_gate(reason):
    """It is also no baseline of the next night: one at twice the speed would be."""
    usual = {"last_step": 100, "planned_steps": 100}
    made = [row | usual for row in rows(-0.7, -0.7, 0.0)]
    failed = [*made[:20], *(row | FAILURES[reason] for row in made[20:22])]
    (job,) = judge(failed, {"min_steps": 50} if reason == "too_few_steps" else None)
    assert (job.verdict, job.failed.reason, job.newest["name"]) == ("crashed", reason, "a-19")
    judged = judged_jobs([job], False, frozenset({"crashed"}))
    (case,) = ElementTree.fromstring(junit(judged)).iter("failure")
    assert "the newest run, a-21" in case.get("message")
    (after,) = judge([*failed, made[22]], {"min_steps": 50})
    assert (after.verdict, after.failed) == ("no regression", None)
    runs = run_frame(failed).with_columns(release=pl.lit("r1"))
    found = verdicts_of_runs(runs, runs["run_id"], read_policy({"min_steps": 50}), {})
    assert found[runs["run_id"][21]] == "crashed"


COMPLETED = {"last_step": 30, "planned_steps": 100, "step_lines": 30, "ending_state": "completed"}
UNRELATED = {"last_step": 40, "planned_steps": 100, "step_lines": 40, "world_size": 64, "name": "b-0"}


@pytest.mark.parametrize("extra", [COMPLETED, UNRELATED])
def test_only_a_run_that_did_not_complete_is_called_crashed_and_only_by_runs_of_its_kind(extra):
    *made, last = [row | {"last_step": 100, "planned_steps": 100} for row in rows(0.0, 0.0, 0.0)]
    runs = run_frame([*made, last | extra])
    assert "crashed" not in verdicts_of_runs(runs, runs["run_id"], read_policy({"min_steps": 35}), {}).values()


def test_a_job_without_a_run_tonight_is_missing():
    """A weekly job is not."""
    weekly = [BEGIN + timedelta(days=7 * night - 120) for night in range(21)]
    made = [*rows(job="a"), *rows(0.0, 0.0, job="b", world_size=16)]
    made += rows(0.0, job="c", world_size=32, begun_at=weekly)
    found = {job.newest["name"][0]: job.missing for job in judge(made)}
    assert found == {"a": True, "b": False, "c": False}
    assert "missing tonight" in markdown(compose_jobs(judge(made)))


def test_every_job_is_judged_and_named():
    made = [*rows(0.0, job="a"), *rows(0.05, 0.05, job="b", world_size=16)]
    found = judge(made)
    assert sorted((job.verdict, len(job.runs)) for job in found) == [("no regression", 21), ("regression", 22)]
    assert len({job.name for job in found}) == 2


def test_many_jobs_are_one_family():
    """p of one of forty jobs is worth forty times as much."""
    made = [row for at in range(40) for row in rows(0.0, 0.0, job=chr(97 + at), seq_length=1024 + at)]
    found = judge(made)
    ps = [metric.p for job in found for metric in job.metrics]
    least = min((metric for job in found for metric in job.metrics), key=lambda metric: metric.p)
    assert least.p_family == pytest.approx(min(1.0, least.p * len(ps)))


def test_jobs_of_the_policy():
    made = [*rows(0.0, job="a"), *rows(0.05, 0.05, job="b", world_size=16)]
    gate = {"jobs": {"small": {"select": "world_size=8"}, "large": {"select": "world_size=16", "owners": ["ann"]}}}
    assert [(job.name, job.verdict, job.owners) for job in judge(made, gate)] == [
        ("small", "no regression", ()),
        ("large", "regression", ("ann",)),
    ]
    one = judge(made, {"jobs": {"small": gate["jobs"]["small"]}})
    assert [(job.verdict, len(job.runs)) for job in one] == [("no regression", 21), ("regression", 22)]
    with pytest.raises(UsageError, match="job none selects no run"):
        judge(made, {"jobs": {"none": {"select": "world_size=32"}}})


def test_a_label_names_the_job_and_folds_no_nights():
    """Two jobs of one model and layout, one of them slower."""
    named = {job: [{"name": "job", "value": name}] for job, name in (("a", "steady"), ("b", "slow"))}
    made = [*rows(0.0, job="a"), *rows(0.05, 0.05, job="b")]
    made = [row | {"labels": named[row["run_id"][0]]} for row in made]
    expected = [("slow", "regression", 22), ("steady", "no regression", 21)]
    assert [(job.name, job.verdict, len(job.runs)) for job in judge(made)] == expected
    runs = run_frame(made).with_columns(release=pl.lit("r1"))
    assert verdicts_of_runs(runs, runs["run_id"], read_policy({}), {})[made[-1]["run_id"]] == "regression"


def test_a_newest_run_of_another_job_is_refused():
    made = [*rows(0.0), *rows(0.0, job="z", before=0, global_batch_size=64, begun_at=BEGIN + timedelta(days=40))]
    (job,) = judge(made, {"jobs": {"a": {}}})
    assert job.verdict is None
    assert [field.name for field in job.refused] == ["global_batch_size"]
    assert "global_batch_size 32 -> 64" in refusal(job)
    assert "no verdict" in markdown(compose_jobs([job]))


@pytest.mark.parametrize(("text", "reason"), [("last 30", "drift"), ("release=old", "still_open")])
def test_a_creep_is_a_regression_whatever_the_baseline(text, reason):
    """A creep of 2.4 % over 160 nights."""
    made = rows(*np.linspace(0, 0.024, 160))
    runs = run_frame(made).with_columns(
        release=pl.when(pl.int_range(pl.len()) < 20).then(pl.lit("old")).otherwise(pl.lit("new"))
    )

    def told(ids):
        return runs.filter(pl.col("run_id").is_in(list(ids)))

    kept = HistoryOfJobs(settings=told, steps=lambda _: as_steps())
    gate = {"baseline": text, "metrics": {"final_loss": "off"}}
    (job,) = judge_jobs(runs, read_policy(gate), kept)
    assert (job.verdict, reasons(job)["steady_step_time_ms"]) == ("regression", reason)
    assert reason != "drift" or "from the oldest runs to the last 10" in markdown(compose_jobs([job]))
    assert judge_jobs(runs, read_policy(gate | {"baseline": "best"}), kept)[0].verdict == "regression"
    with pytest.raises(UsageError, match="has no run of its baseline"):
        judge_jobs(runs, read_policy(gate | {"baseline": "release=none"}), kept)


def test_a_loss_that_is_lost_is_a_regression_at_once():
    lost = [None] * 20
    (job,) = judge(rows(0.0, loss_lost_at=[*lost, 50]))
    assert (job.verdict, reasons(job)["final_loss"]) == ("regression", "loss_lost")
    (always,) = judge(rows(0.0, loss_lost_at=[50] * 21))
    assert (always.verdict, reasons(always)["final_loss"]) == ("suspicious", "loss_lost_before")


def test_faster_because_it_does_less_is_no_good_news():
    """Tokens are dropped since two nights; the change is named with what is less."""
    free, limited = ([{"name": "moe_expert_capacity_factor", "value": value}] for value in ("None", "1.0"))
    made = rows(-0.1, -0.1, settings=[free] * 20 + [limited] * 2, num_experts=8)
    (job,) = judge(made)
    assert (job.verdict, reasons(job)["steady_step_time_ms"]) == ("less work", "confirmed_by_less")
    assert [(one.kind, one.candidate) for one in job.less_work] == [("experts", 1.0)]
    assert "expert capacity 1, tokens beyond it are dropped" in markdown(compose_jobs([job]))
    (alike,) = judge(rows(-0.1, -0.1, settings=[limited] * 22, num_experts=8))
    assert (alike.verdict, alike.less_work) == ("suspicious", ())


def test_losses_are_compared_at_equal_steps():
    rng = np.random.default_rng(5)

    def steps(run_id):
        level = 3.0 if int(run_id[1:]) < 20 else 3.3
        loss = level + rng.normal(0, 0.001, 30)
        return as_steps(step=range(1, 31), loss=loss)

    (job,) = judge(rows(0.0, 0.0), steps=steps)
    assert reasons(job)["final_loss"] == "confirmed"


ACCEPTANCES = {
    "all": ({}, "no regression"),
    "another metric": ({"metric": "goodput"}, "regression"),
    "till the day of the newest": ({"until": (BEGIN + timedelta(days=22)).date()}, "no regression"),
    "till the day before": ({"until": (BEGIN + timedelta(days=21)).date()}, "regression"),
    "till another release": ({"until_release": "r2"}, "no regression"),
    "till this release": ({"until_release": "r1"}, "regression"),
}


@pytest.mark.parametrize("night", [20, 21, 22])
@pytest.mark.parametrize("case", ACCEPTANCES)
def test_what_is_accepted_fails_no_longer(case, night):
    """Whichever of its nights is named, as long as it holds."""
    limits, verdict = ACCEPTANCES[case]
    made = rows(0.05, 0.05, 0.05)
    run_id = made[night]["run_id"]
    usual = {"metric": None, "reason": "new driver", "issue": None, "until": None, "until_release": None}
    accepted = Acceptance(run_id, at=BEGIN, user=None, **usual | limits)
    (job,) = judge(made, {"metrics": {"goodput": "off"}}, acceptances={run_id: (accepted,)})
    newest_ends_nothing = case == "till this release" and night == 22
    assert job.verdict == ("no regression" if newest_ends_nothing else verdict)


def test_an_accepted_change_is_listed_while_it_is_accepted():
    made = rows(*[0.03] * 8)
    run_id, until = made[20]["run_id"], (BEGIN + timedelta(days=60)).date()
    known = Acceptance(run_id, None, "new driver", "#7", until, None, BEGIN, None)
    (job,) = judge(made, acceptances={run_id: (known,)})
    assert (job.verdict, len(job.accepted)) == ("no regression", 1)
    assert job.accepted[0].change == pytest.approx(0.03, abs=0.005)
    assert f"accepted until {until} (new driver, \\#7)" in markdown(compose_jobs([job]))
    assert jobs_document([job])["jobs"][0]["accepted"][0]["issue"] == "#7"
    assert judge(made, acceptances={run_id: (replace(known, until=BEGIN.date()),)})[0].accepted == ()


def test_a_night_and_a_lost_loss_are_accepted_too():
    night, lost = rows(0.05), rows(0.0, loss_lost_at=[*[None] * 20, 50])
    for made in (night, lost):
        run_id = made[-1]["run_id"]
        accepted = Acceptance(run_id, None, "known", None, None, None, BEGIN, None)
        assert (
            judge(made, {"metrics": {"goodput": "off"}}, acceptances={run_id: (accepted,)})[0].verdict
            == "no regression"
        )


def with_releases(made, *releases):
    """``made`` as nights of each of ``releases`` in turn: its name, and how many."""
    names = [name for name, nights in releases for _ in range(nights)]
    runs = run_frame(made).with_columns(release=pl.Series(names))

    def told(ids):
        return runs.filter(pl.col("run_id").is_in(list(ids)))

    return runs, HistoryOfJobs(settings=told, steps=lambda _: as_steps())


def test_a_baseline_holds_no_run_that_is_judged():
    """Else last night would excuse tonight."""
    runs, kept = with_releases(rows(*[0.2] * 3, before=22), ("old", 10), ("new", 15))
    gate = {"metrics": {"final_loss": "off"}}
    with pytest.raises(UsageError, match="contains the run to judge"):
        judge_jobs(runs, read_policy(gate | {"baseline": "release=new"}), kept)
    assert judge_jobs(runs, read_policy(gate | {"baseline": "best"}), kept)[0].verdict == "regression"
    runs, kept = with_releases(rows(*[0.2] * 3, before=22), ("old", 4), ("new", 21))
    with pytest.raises(UsageError, match="has 4 runs"):
        judge_jobs(runs, read_policy(gate | {"baseline": "release=old"}), kept)


def test_the_best_of_nightly_releases_stops_no_job():
    """Each night is a release of its own: the newest runs are the baseline, and the other job is judged."""
    made = [*rows(0.05, 0.05), *rows(0.0, job="b", world_size=16)]
    runs = run_frame(made).with_columns(release=pl.col("name"))
    kept = HistoryOfJobs(lambda ids: runs.filter(pl.col("run_id").is_in(list(ids))), lambda _: as_steps())
    found = judge_jobs(runs, read_policy({"baseline": "best"}), kept)
    assert sorted((job.verdict, job.baseline) for job in found) == [
        ("no regression", "last 30"),
        ("regression", "last 30"),
    ]


def test_a_job_of_several_series_is_as_many_rows():
    made = [*rows(0.0, job="a"), *rows(0.2, 0.2, job="b", world_size=16)]
    found = judge(made, {"jobs": {"all": {"owners": ["ann"]}}})
    assert sorted((job.verdict, job.name.startswith("all: ")) for job in found) == [
        ("no regression", True),
        ("regression", True),
    ]


def test_a_clock_that_is_ahead_makes_no_job_idle():
    future = datetime.now() + timedelta(days=300)
    begins = [BEGIN + timedelta(days=n) for n in range(21)]
    now = [datetime.now() - timedelta(days=21 - n) for n in range(22)]
    made = [*rows(0.05, 0.05, begun_at=now), *rows(0.0, job="b", world_size=16, begun_at=[*begins[:-1], future])]
    assert sorted(str(job.verdict) for job in judge(made))[-1] == "regression"


def test_a_label_that_no_run_has_blocks_nothing():
    with pytest.raises(UsageError, match="no run has the label nod"):
        judge(rows(0.0), {"block_by": "nod"})


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Nine nights of a job, the last three 10 % slower."""
    folder = tmp_path_factory.mktemp("nights")
    history = History(Folder(folder / "h"))
    for night in range(9):
        ms = 1000.0 * (1.1 if night > 5 else 1.0)
        history.add(record(write_run(folder / f"{night}.log", night, ms), "new" if night > 5 else "old"))
    return folder


def gate(place, *arguments):
    return run_logparse("gate", "--history", str(place / "h"), *arguments, cwd=place)


def test_the_command_judges_all_and_writes_its_files(place, tmp_path):
    done = gate(place, "-o", str(tmp_path / "g"))
    assert (done.returncode, "verdict: regression" in done.stdout) == (1, True)
    suite = ElementTree.parse(tmp_path / "g/junit.xml").getroot()
    assert int(suite.attrib["failures"]) >= 1
    assert (tmp_path / "g/openmetrics.txt").read_text().endswith("# EOF\n")
    assert "logparse_expected" in (tmp_path / "g/openmetrics.txt").read_text()
    assert json.loads((tmp_path / "g/benchmark-smaller-is-better.json").read_text())
    assert "verdict: regression" in (tmp_path / "g/summary.md").read_text()


def test_the_document_is_the_same_in_every_language(place):
    english, chinese = (gate(place, "--json", "--lang", lang) for lang in ("en", "zh"))
    assert json.loads(english.stdout) == json.loads(chinese.stdout)
    (job,) = json.loads(english.stdout)["jobs"]
    found = job["metrics"]["steady_step_time_ms"]
    assert (found["verdict"], found["reason_code"]) == ("regression", "confirmed")
    assert found["expected"]["nights"] == 3


def test_the_policy_of_the_project(place):
    (place / "logparse.toml").write_text('history = "h"\n[gate]\nconfirm = 4\n')
    try:
        assert run_logparse("gate", cwd=place).returncode == 0
        assert run_logparse("gate", "--fail-on", "suspicious", cwd=place).returncode == 1
        (place / "logparse.toml").write_text('history = "h"\n[gate]\nfail_on = "new"\n')
        assert run_logparse("gate", cwd=place).returncode == 1
        (place / "logparse.toml").write_text("[gate]\nconfirms = 3\n")
        wrong = gate(place)
        assert (wrong.returncode, "logparse.toml" in wrong.stderr) == (2, True)
    finally:
        (place / "logparse.toml").unlink()


REFUSED = {
    ("--baseline", "release=old"): "--candidate is missing",
    ("--candidate", "release=old"): "--baseline is missing",
    ("--threshold", "1%"): "use --threshold only with --baseline and --candidate",
    ("--metric", "mfu"): "use --metric only with --baseline and --candidate",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_flags_of_two_sides(place, arguments):
    done = gate(place, *arguments)
    assert done.returncode == 2
    assert REFUSED[arguments] in done.stderr


def test_every_run_has_the_verdict_of_its_night():
    """What a list says of the newest is what the gate says, and of a run before what it said then."""
    made = rows(*[0.05] * 6, -0.1, 0.0)
    runs = run_frame(made).with_columns(release=pl.lit("r1"))
    found = verdicts_of_runs(runs, runs["run_id"][:1], read_policy({}), {})
    told = [found[run_id] for run_id in runs["run_id"]]
    assert told[:5] == ["insufficient data"] * 5
    assert told[20:] == ["suspicious", *["regression"] * 6, "no regression"]
    for nights in (21, 22, 27):
        (job,) = judge(made[:nights])
        assert told[nights - 1] == job.verdict
    # Nobody asked for a run of this series, no job names it, and this one has no loss left.
    assert verdicts_of_runs(runs, pl.Series(["other"]), read_policy({}), {}) == {}
    assert verdicts_of_runs(runs, runs["run_id"], read_policy({"jobs": {"x": {"select": "name=none"}}}), {}) == found
    lost = run_frame(rows(loss_lost_at=[None] * 19 + [7])).with_columns(release=pl.lit("r1"))
    assert (
        verdicts_of_runs(lost, lost["run_id"], read_policy({"block_by": "node"}), {})[lost["run_id"][-1]]
        == "regression"
    )
    known = Acceptance(runs["run_id"][20], None, "known", None, None, None, BEGIN, None)
    accepted = verdicts_of_runs(runs, runs["run_id"], read_policy({}), {known.run_id: [known]})
    assert accepted[runs["run_id"][21]] == "no regression"
    ended = replace(known, until_release="r1")
    over = verdicts_of_runs(runs, runs["run_id"], read_policy({}), {known.run_id: [ended]})
    assert over[runs["run_id"][21]] == "regression"
    two = {"jobs": {"strict": {"select": "world_size=8"}, "loose": {"select": "world_size=8", "threshold": "50%"}}}
    assert verdicts_of_runs(runs, runs["run_id"], read_policy(two), {})[runs["run_id"][21]] == "regression"
