"""The first lines of the gate: what is new, still open, cleared, missing or not comparable, since when, and why."""

from datetime import timedelta

import pytest
from test_accepted_and_excluded import accepted_at
from test_change_start import LESS_WORK
from test_gate_jobs import BEGIN, FAILURES, judge, reasons, rows
from test_pauses import STALLED, stalls, states

from analysis.present.console import make_console
from analysis.present.parts import Table
from analysis.present.terminal import print_parts
from analysis.present.views.jobs import compose_jobs
from analysis.present.views.news import has_news, news_document
from analysis.present.views.short_names import shorten_names


def first_lines(capsys, jobs, template=None):
    """What is above the first table on a terminal of 100 columns, wrapped lines joined."""
    console = make_console(no_color=True)
    console.width = 100
    print_parts(console, compose_jobs(jobs, template, details=False))
    lines = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert len(lines) <= 15
    return " ".join(line.strip() for line in lines)


def named(made, name):
    return [row | {"labels": [{"name": "job", "value": name}]} for row in made]


def test_an_open_regression_stays_in_the_first_lines_with_its_day_and_cause(capsys):
    (job,) = judge(named(rows(*[0.05] * 6), "big"))
    text = first_lines(capsys, [job])
    assert "new tonight: 0; still open: 1" in text
    assert "open since 2026-03-21: big: +5.13 % step time, steady - probable cause: cann: 1 -> 2" in text
    assert f"if intended: logparse history accept {job.began[:12]} --reason TEXT - for" in text
    assert "logparse history regressions" in text


def test_many_open_regressions_are_all_named(capsys):
    made = [row for n in range(7) for row in named(rows(*[0.05] * (n + 4), job=f"{n}", seq_length=2**n), f"job{n}")]
    text = first_lines(capsys, judge(made))
    assert all(f"open since 2026-03-21: job{n}: +5." in text for n in range(7))
    assert text.count("all 7: probable cause: cann: 1 -> 2") == 1
    assert "missing tonight: job0, job1, job2, job3, job4, job5" in text


def test_a_cleared_job_is_named(capsys):
    (job,) = judge(named(rows(0.05, 0.05, 0.0), "big"))
    assert "cleared: big: step time, steady" in first_lines(capsys, [job])


@pytest.mark.parametrize("nights", [1, 3])
def test_a_job_that_crashes_every_night_is_new_once(nights, capsys):
    made = named(rows(*[0.0] * nights), "big")
    made = [*made[:20], *(row | FAILURES["crashed"] for row in made[20:])]
    (job,) = judge(made)
    assert (job.verdict, job.news, job.failed_nights) == ("crashed", "new" if nights == 1 else "still_open", nights)
    assert has_news([job]) == (nights == 1)
    text = first_lines(capsys, [job])
    if nights == 1:
        assert f"to see how it failed: logparse history show {job.failed.run_id[:12]}" in text
    else:
        assert "open since 2026-03-21: big: it crashed, 3 nights in a row" in text
    (table,) = [part for part in compose_jobs([job]) if isinstance(part, Table)]
    assert table.rows[0][1:] == ("crashed", "-", "-", "-")


def test_a_job_is_missing_on_the_first_night_and_news_once(capsys):
    """The other job begins two hours later, and runs once by hand at noon."""
    late = [BEGIN + timedelta(days=night, hours=2) for night in range(23)]
    for last, missing, news in ((20, False, False), (21, True, True), (22, True, False)):
        made = [*named(rows(0.0), "gone"), *named(rows(*[0.0] * 3, job="b", begun_at=late)[: last + 1], "here")]
        found = {job.name: job for job in judge(made)}
        assert [found[name].missing for name in ("gone", "here")] == [missing, False]
        assert has_news(list(found.values())) is news
    (one,) = news_document(judge(made[:-1]), None)["news"]
    assert (one["job"], one["news"]) == ("gone", "missing")
    assert "missing tonight: gone: its newest run began 2026-03-21 20:00" in first_lines(capsys, list(found.values()))
    noon = [*late[:21], late[20] + timedelta(hours=14)]
    made = [*named(rows(0.0), "gone"), *named(rows(0.0, 0.0, job="b", begun_at=noon), "here")]
    assert not any(job.missing for job in judge(made))


def test_a_run_that_cannot_be_compared_is_refused_on_its_first_night(capsys):
    """From the second night on its series is learned, which the first lines say until it has a verdict."""
    made = named(rows(*[0.0] * 4), "big")
    for nights, news in ((21, True), (22, False)):
        changed = [row | ({"recompute": "full"} if at >= 20 else {"recompute": "none"}) for at, row in enumerate(made)]
        (job,) = judge(changed[:nights])
        assert (bool(job.refused), has_news([job])) == (news, news)
        assert ("not comparable: big: the newest run" if news else "changed: big: recompute none -> full") in (
            first_lines(capsys, [job])
        )


def test_a_series_that_another_one_replaced_is_no_row_and_not_missing():
    """Recomputation was switched off for good 8 nights ago."""
    made = [row | {"recompute": "full" if at >= 20 else "none"} for at, row in enumerate(rows(*[0.0] * 8))]
    (job,) = judge(named(made, "big"))
    assert (job.name, job.verdict, job.missing, len(job.runs)) == ("big", "no regression", False, 8)


def test_the_row_has_the_numbers_of_the_metric_that_decides_and_the_worst_job_is_first():
    jobs = judge([*named(rows(0.0, job="b", seq_length=8192), "a"), *named(rows(0.0, 0.0, tail={0: 0.2, 1: 0.2}), "z")])
    (table,) = [part for part in compose_jobs(jobs) if isinstance(part, Table)]
    assert [row[0] for row in table.rows] == ["z", "a"]
    assert table.rows[0][1] == "regression: step time, including stalls"
    assert table.rows[0][2].endswith(" ms")
    assert float(table.rows[0][4].split()[0]) > 15


def test_a_run_is_linked_where_its_regression_is_named(capsys):
    template = "https://ci.example.com/{name}"
    (job,) = judge(rows(0.05, 0.05))
    assert "https://ci.example.com/a-20" in first_lines(capsys, [job], template)
    assert (
        sum(getattr(part, "link", None) == "https://ci.example.com/a-20" for part in compose_jobs([job], template)) == 2
    )
    made = rows(0.0)
    (crashed,) = judge([*made[:20], made[20] | FAILURES["crashed"]])
    assert "https://ci.example.com/a-20" in first_lines(capsys, [crashed], template)


def test_a_node_that_ran_well_before_is_no_cause():
    nodes = ["node1" if night % 5 else "node2" for night in range(20)]
    for after, names in (("node2", ["cann"]), ("node9", ["cann", "node"])):
        labels = [[{"name": "node", "value": node}] for node in [*nodes, after, after]]
        (job,) = judge(rows(0.05, 0.05, labels=labels))
        assert [change.name for change in job.changes] == names


def test_a_setting_of_the_result_is_the_likely_cause_of_nan():
    before, after = ([{"name": "lr", "value": lr}, {"name": "use_flash", "value": lr}] for lr in ("1e-4", "1e-2"))
    changed = {"settings": [before] * 20 + [after], "versions": [[]] * 21}
    (job,) = judge(rows(0.0, nan_share=[0.0] * 20 + [0.02], **changed))
    assert [change.name for change in job.changes] == ["lr", "use_flash"]
    (job,) = judge(rows(0.05, 0.05, **{name: [*value, value[-1]] for name, value in changed.items()}))
    assert [change.name for change in job.changes] == ["use_flash", "lr"]


@pytest.mark.parametrize("kind", LESS_WORK)
def test_a_job_that_does_its_work_again_is_slower_and_no_regression(kind):
    """Reported once; a slowdown after that is a regression."""
    name, *values = LESS_WORK[kind]
    full, less = ([{"name": name, "value": value}] for value in values)
    made = [0.0] * 9 + [0.1] * 4 + [0.2] * 2
    settings = [full] * 10 + [less] * 19 + [full] * 6
    found = [
        judge(rows(*made[: nights - 20], settings=settings[:nights], versions=[[]] * nights))[0]
        for nights in (31, 32, 35)
    ]
    assert [job.verdict for job in found] == ["suspicious", "no regression", "regression"]
    assert reasons(found[0])["steady_step_time_ms"] == "confirmed_by_more"
    plain = judge(rows(*made[:11], settings=[less] * 31, versions=[[]] * 31))[0]
    assert plain.verdict == "regression"


def test_a_change_is_new_once_and_its_end_is_reported_whichever_series_proves_it():
    """The tail is found without the longest stall on night 2, with it on night 4, and cleared by the former."""
    made = stalls([0.0] * 25 + [4.0] * 6 + [0.0] * 4, [0.0] * 25 + [1.0] * 6 + [0.0] * 4)
    found = [reasons(judge(made[:nights])[0])[STALLED] for nights in range(26, 36)]
    assert found.count("confirmed") == 1
    assert found.count("cleared") == 1
    assert found.index("cleared") > found.index("still_open") > found.index("confirmed")
    assert states(made)[25:31] == ["off", *["confirmed"] * 5]


def test_a_metric_that_follows_an_open_one_is_not_new():
    """The 95th percentile is confirmed nights later, by less than the median is."""
    tails = [1050.0] * 24 + [1080.0] * 3
    (job,) = judge(rows(*[0.05] * 7, step_time_p95_ms=tails))
    late = next(metric for metric in job.metrics if metric.metric.column == "step_time_p95_ms")
    assert (late.verdict, job.news, job.new_metrics) == ("regression", "still_open", [])
    (worse,) = judge(rows(*[0.05] * 6, step_time_p95_ms=[1050.0] * 24 + [1250.0] * 2))
    assert [metric.metric.column for metric in worse.new_metrics] == ["step_time_p95_ms"]


def test_an_ended_change_is_cleared_although_a_night_between_was_slow():
    """The slow night must not make the change look so small that nothing ends it."""
    off = [0.02] * 6 + [0.0] * 3 + [0.012] + [0.0] * 5
    verdicts = [judge(rows(*off[:nights]))[0].verdict for nights in range(6, len(off) + 1)]
    assert verdicts[0] == "regression"
    assert verdicts[-1] == "no regression"


def test_what_is_accepted_is_not_open(capsys):
    made = rows(*[0.05] * 3)
    run_id = made[20]["run_id"]
    (job,) = judge(made, acceptances={run_id: (accepted_at(run_id),)})
    assert "open since" not in first_lines(capsys, [job])


def lines_at_80(capsys, jobs, history=None):
    console = make_console(no_color=True)
    console.width = 80
    print_parts(console, compose_jobs(jobs, None, history, details=False))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def of_width(width, *off, **values):
    """Runs of a job that has no name of its own."""
    return rows(*off, job=f"w{width}", hidden_size=width, device="Ascend910B3", **values)


def test_the_first_lines_name_the_worst_first_each_in_a_line_with_what_to_do(capsys):
    """A NaN is worse than any change of a speed; a slow night of another job is watched."""
    made = [
        *of_width(4096, *[0.05] * 4, versions=[[]] * 24),
        *of_width(4224, *[0.0] * 4, nan_share=[0.0] * 20 + [0.02] * 4, versions=[[]] * 24),
        *of_width(4352, *[0.2] * 4),
        *of_width(4480, 0.0, 0.0, 0.0, 0.1),
        *of_width(4608, *[0.04] * 4, versions=[[]] * 24),
    ]
    lines = lines_at_80(capsys, judge(made), "my nights")
    assert lines[:10] == [
        "verdict: regression; new tonight: 0; still open: 4; cleared: 0",
        "! open since 2026-03-21: 32 layers of 4224: 2.00 % steps with a NaN; no …",
        "! open since 2026-03-21: 32 layers of 4352: +21.89 % step time, steady; …",
        "! open since 2026-03-21: 32 layers of 4096: +4.90 % step time, steady",
        "! open since 2026-03-21: 32 layers of 4608: +4.67 % step time, steady",
        "- both: no recorded change that night",
        "- if intended: logparse history accept RUN --reason TEXT --history 'my nights'",
        "- for first bad runs and owners: logparse history regressions --history 'my",
        "nights'",
        "- watch 32 layers of 4480: +10.66 % step time, steady, one night, unconfirmed",
    ]
    (table,) = [part for part in compose_jobs(judge(made)) if isinstance(part, Table)]
    assert [row[0][-4:] for row in table.rows] == ["4224", "4352", "4096", "4608", "4480"]
    (table,) = [part for part in compose_jobs(judge(made), details=False) if isinstance(part, Table)]
    assert [row[0][-4:] for row in table.rows] == ["4480"]


def test_a_slow_night_is_no_alarm_and_a_short_history_is_named(capsys):
    made = [*of_width(4096, 0.1), *of_width(4224, 0.0)]
    lines = lines_at_80(capsys, judge(made))
    assert lines[0] == "verdict: no regression; jobs to watch: 1; the next nights confirm or clear them;"
    assert lines[1] == "nothing new, nothing open: nothing to do tonight"
    assert lines[2] == "- watch 32 layers of 4096: +10.09 % step time, steady, one night, unconfirmed"
    assert "nights of history" not in "\n".join(lines)
    (short,) = judge(made[13:21])
    assert "- only 8 nights of history; with fewer than 10 the expected range is rough" in lines_at_80(capsys, [short])
    (few,) = judge(made[18:21])
    assert "- only 3 nights of history; a verdict needs 6" in lines_at_80(capsys, [few])


def test_an_open_regression_that_is_back_says_so(capsys):
    for last, back in ((0.0, True), (0.05, False)):
        (job,) = judge(named(rows(*[0.05] * 6, last), "big"))
        assert job.news == "still_open"
        assert ("tonight as expected" in first_lines(capsys, [job])) is back


def test_a_job_that_crashed_and_runs_again_is_cleared_once(capsys):
    made = named(rows(*[0.0] * 4), "big")
    made = [*made[:20], *(row | FAILURES["crashed"] for row in made[20:22]), *made[22:]]
    found = [judge(made[:nights])[0] for nights in (22, 23, 24)]
    assert [job.news for job in found] == ["still_open", "cleared", None]
    assert "cleared: big: it runs again (failed nights before: 2)" in first_lines(capsys, [found[1]])


def test_a_name_is_as_short_as_tells_the_jobs_apart():
    made = [*of_width(4096, 0.0), *of_width(4224, 0.0, seq_length=8192), *named(rows(0.0, job="b"), "mine, big")]
    made += rows(0.0, job="c", hidden_size=4224, device="Ascend910B3", global_batch_size=64)
    short, shared = shorten_names(judge(made))
    assert shared == "8 x Ascend910B3"
    assert sorted(job.name for job in short) == [
        "32 layers of 4096",
        "32 layers of 4224, batch 32 sequence 8192",
        "32 layers of 4224, batch 64 sequence 4096",
        "mine, big",
    ]
    one = judge(of_width(4096, 0.0))
    assert shorten_names(one) == (one, "")
