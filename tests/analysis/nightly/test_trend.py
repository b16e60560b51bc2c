"""The course over the runs: groups, series, and where it changed."""

import json
from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from helpers import run_logparse
from releases import fill, record, write_run

from analysis.charts.trend import trend_chart
from analysis.compare.comparability import REQUIRED
from analysis.compare.job_name import series_names
from analysis.compare.verdict import DEFAULT_METRIC
from analysis.history.folder import Folder
from analysis.history.run_records import run_frame
from analysis.history.store import History
from analysis.metrics import JUDGED
from analysis.nightly.trend import follow, follow_all, split_series
from analysis.present.parts import Sentence, Table
from analysis.present.views.trend import compose_trend, document, left_out, shown
from logparse.errors import UsageError

pytestmark = pytest.mark.usefixtures("analysed_once")


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trend")
    releases = {
        "r1": (1000.0, 5, {"overlap": True}),
        "r2": (1040.0, 5, {"overlap": False}),
        "other job": (500.0, 2, {"seq_length": 8192}),
    }
    return folder, fill(folder, releases)


def test_jobs_that_differ_are_series_of_their_own(history):
    assert [len(runs) for runs in split_series(history[1].runs())] == [10, 2]


def test_groups_have_medians_and_bands(history):
    trend = follow(split_series(history[1].runs())[0], JUDGED[DEFAULT_METRIC])
    assert trend.groups["group"].to_list() == ["r1", "r2"]
    assert trend.groups["median"].to_list() == pytest.approx([1000, 1040], rel=0.01)
    assert (trend.groups["p10"] < trend.groups["p90"]).all()
    assert [(c.at, c.groups) for c in trend.changes] == [(5, ("r1", "r2"))]


@pytest.mark.parametrize("by", ["day", "week", "month"])
def test_groups_of_time(history, by):
    trend = follow(split_series(history[1].runs())[0], JUDGED[DEFAULT_METRIC], by)
    assert trend.groups["group"][0].startswith("2026-0")


def test_unknown_groups(history):
    with pytest.raises(UsageError, match="no run has a colour"):
        follow(history[1].runs(), JUDGED[DEFAULT_METRIC], "colour")


def test_the_chart_draws_every_run(history):
    trend = follow(split_series(history[1].runs())[0], JUDGED[DEFAULT_METRIC])
    spec = trend_chart(trend).to_dict()
    points = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "point")
    assert len(spec["datasets"][points["data"]["name"]]) == 10


def test_command(history, tmp_path):
    folder, _ = history
    out = tmp_path / "out"
    done = run_logparse("trend", "--history", "h", "-o", str(out), cwd=folder)
    assert done.returncode == 0
    assert "changed: overlap: True -> False" in " ".join(done.stdout.split())
    names = {path.name for path in out.glob("[!.]*")}
    assert {"trend.png", "report.html", "trend.json", "trend.svg", "trend-2.png"} <= names
    told = json.loads(run_logparse("trend", "--history", "h", "--json", cwd=folder).stdout)
    assert [len(s["runs"]) for s in told["series"]] == [10, 2]
    assert told["series"][0]["changes"][0]["changes"][0]["name"] == "overlap"


def many_jobs(changed, count=8, runs=12):
    """A history of jobs that differ in their global batch; those of the numbers ``changed`` are slower at the end."""
    rows = [
        {
            **dict.fromkeys(REQUIRED, 8),
            "device": "Ascend 910B3",
            "tensor_model_parallel_size": 2,
            "global_batch_size": 8 + job,
            "run_id": f"{job:04}{run:04}",
            "name": f"{job}-{run}",
            "begun_at": datetime(2026, 3, 1) + timedelta(days=run),
            "step_lines": 20,
            "counted_rows": 19,
            DEFAULT_METRIC: (1000.0 + job) * (1.1 if job in changed and 2 * run >= runs else 1.0) + run % 3,
        }
        for job in range(count)
        for run in range(runs - job % 2)
    ]
    return run_frame(rows).with_columns(release=pl.lit("r1"))


def follow_jobs(changed):
    found = many_jobs(changed)
    return follow_all(found, JUDGED[DEFAULT_METRIC], "release", lambda ids: found.filter(pl.col("run_id").is_in(ids)))


def test_all_series_that_changed_are_shown_first():
    """Seven of eight changed, the smallest among them; of one without a change nothing is lost."""
    trends = follow_jobs(changed=range(1, 8))
    told = shown(trends)
    assert [bool(trend.changes) for trend in told] == [True] * 7 + [False]
    assert left_out(trends) == []


def test_a_drift_is_reported_with_its_first_run():
    """3 % over 60 runs, in a straight line."""
    logs = np.linspace(0, 0.03, 60) + np.random.default_rng(3).normal(0, 0.002, 60)
    runs = many_jobs((), count=1, runs=60).with_columns(pl.Series(DEFAULT_METRIC, 1000 * np.exp(logs)))
    trend = follow(runs, JUDGED[DEFAULT_METRIC])
    texts = [part.text for part in compose_trend(trend) if isinstance(part, Sentence)]
    assert trend.drift == pytest.approx(0.03, abs=0.003)
    assert f"+{100 * trend.drift:.2f} % in a straight line since run {trend.runs['run_id'][0][:12]}" in texts[0]
    assert document([trend])["series"][0]["drift"] == trend.drift


def test_five_series_without_a_change_are_shown():
    trends = follow_jobs(changed=[7])
    assert [bool(trend.changes) for trend in shown(trends)] == [True] + [False] * 5
    assert [note.fields["n"] for note in left_out(trends)] == [2]


def test_a_label_that_one_job_has_groups_that_one():
    found = many_jobs((), count=2)
    labels = [[{"name": "team", "value": "ours"}] if name.startswith("0") else [] for name in found["name"]]
    told = found.with_columns(labels=pl.Series(labels, dtype=found.schema["labels"]))
    trends = follow_all(told, JUDGED[DEFAULT_METRIC], "team", lambda ids: told.filter(pl.col("run_id").is_in(ids)))
    assert sorted(trend.groups["group"].to_list() for trend in trends) == [["-"], ["ours"]]
    with pytest.raises(UsageError, match="no run has a team"):
        follow_all(found, JUDGED[DEFAULT_METRIC], "team", lambda ids: found)


def test_each_series_has_the_name_of_its_job():
    trends = follow_jobs(changed=[5])
    names = [series["name"] for series in document(trends)["series"]]
    assert names[0] == "8 layers of 8, 8 x Ascend 910B3, tp2, batch 13 sequence 8"
    assert len(set(names)) == 8
    assert all(trend.name in compose_trend(trend)[0].text for trend in trends)
    assert trends[0].name in str(trend_chart(trends[0]).to_dict()["title"])


def test_jobs_of_one_name_are_told_apart():
    one, two = many_jobs((), count=1), many_jobs((), count=1).with_columns(precision=pl.lit("fp16"))
    base = "8 layers of 8, 8 x Ascend 910B3, tp2, batch 8 sequence 8"
    assert series_names([one, two]) == [f"{base}, precision unknown", f"{base}, precision fp16"]
    assert series_names([one, one]) == [f"{base} (1)", f"{base} (2)"]


def test_the_page_names_each_series(history, tmp_path):
    folder, _ = history
    out = tmp_path / "out"
    done = run_logparse("trend", "--history", "h", "-o", str(out), cwd=folder)
    names = ["8 devices, tp2 dp4, batch 32 sequence 4096", "8 devices, tp2 dp4, batch 32 sequence 8192"]
    told = (" ".join(done.stdout.split()), " ".join((out / "report.html").read_text().split()))
    assert [name in text for text in told for name in names] == [True] * 4


def test_a_reader_that_goes_away_costs_no_folder(history, tmp_path):
    folder, _ = history
    run_logparse("trend", "--history", "h", "-o", f"{tmp_path}/out", cwd=folder, unread=True)
    assert {"report.html", "trend.png"} <= {path.name for path in (tmp_path / "out").iterdir()}


def test_nothing_to_follow(history):
    folder, _ = history
    done = run_logparse("trend", "--history", "h", "--select", "release=none", cwd=folder)
    assert (done.returncode, "try:" in done.stderr) == (2, True)
    lacking = run_logparse("trend", "--history", "h", "--metric", "max_memory_allocated_bytes", cwd=folder)
    assert lacking.returncode == 2


def test_a_newest_run_that_is_off_is_told_and_blames_no_other(tmp_path):
    runs = fill(tmp_path, {"r1": (1000.0, 12, {}), "r2": (1200.0, 1, {})}).runs()
    (trend,) = follow_all(runs, JUDGED[DEFAULT_METRIC], "release", lambda ids: runs)
    assert trend.changes == ()
    assert trend.newest_off == pytest.approx(0.2, abs=0.02)
    told = [part.text for part in compose_trend(trend) if hasattr(part, "text")]
    newest = trend.runs["run_id"][-1][:12]
    assert any(
        text.startswith(f"the newest run, {newest}, is +") and "the next run must confirm it" in text for text in told
    )
    assert document([trend])["series"][0]["off"] == [trend.runs["run_id"][-1]]
    assert shown([trend]) == [trend]


@pytest.mark.parametrize(("day", "code"), [("2026-01-01", 1), ("2026-05-13", 1), ("2026-05-14", 0)])
def test_an_alarm_since_a_day(history, day, code):
    """r2 began on 13 May, 4 % slower."""
    (changed,) = follow(split_series(history[1].runs())[0], JUDGED[DEFAULT_METRIC]).worse_since(date(2026, 1, 1))
    assert changed.groups == ("r1", "r2")
    for form in ((), ("--json",), ("--markdown",)):
        assert run_logparse("trend", "--history", "h", "--since", day, *form, cwd=history[0]).returncode == code


def test_a_day_that_is_none(history):
    done = run_logparse("trend", "--history", "h", "--since", "May", cwd=history[0])
    assert (done.returncode, "give a date such as 2026-03-01" in done.stderr) == (2, True)


def of_nights(levels):
    """A job of one run and one release a night, with these levels of the step time."""
    noise = np.random.default_rng(4).normal(0, 0.002, len(levels))
    made = many_jobs((), count=1, runs=len(levels))
    releases = pl.Series([f"night{n:02}" for n in range(len(levels))])
    days = pl.Series([datetime(2026, 3, 1) + timedelta(days=n) for n in range(len(levels))])
    ms = pl.Series(DEFAULT_METRIC, 1000 * np.exp(np.array(levels) + noise))
    return made.with_columns(ms, release=releases, begun_at=days)


def test_the_newest_change_comes_first_and_a_short_screen_is_short():
    trend = follow(of_nights([0.0] * 15 + [0.05] * 15 + [0.1] * 15 + [0.05] * 15 + [0.0] * 15), JUDGED[DEFAULT_METRIC])
    assert len(trend.changes) == 4
    texts = [part.text for part in compose_trend(trend, details=False) if isinstance(part, Sentence)]
    assert texts[0].startswith("-")
    assert trend.changes[-1].run_id[:12] in texts[0]
    assert texts[-2:] == ["1 earlier changes; -v shows all", "65 earlier groups; -v shows all"]
    (table,) = [part for part in compose_trend(trend, details=False) if isinstance(part, Table)]
    assert table.rows[-1][0] == "night74"
    assert len(next(part for part in compose_trend(trend) if isinstance(part, Table)).rows) == 75


def test_the_axis_shows_days_and_colours_show_levels_of_many_groups():
    trend = follow(of_nights([0.0] * 15 + [0.05] * 15), JUDGED[DEFAULT_METRIC])
    points = next(layer for layer in trend_chart(trend).to_dict()["layer"] if layer["mark"]["type"] == "point")
    assert '"2026-03-01"' in points["encoding"]["x"]["axis"]["labelExpr"]
    color = points["encoding"]["color"]
    assert (color["field"], color["scale"]["domain"]) == ("level", ["first level", "worse than the level before"])


def test_forty_lines_without_v(tmp_path):
    releases = {f"r{n}": (1000.0 * (1.05 if n > 5 else 1.0), 1, {"seq_length": 4096}) for n in range(12)}
    fill(tmp_path, releases)
    for job in range(10):
        for n in range(10, 12):
            log = write_run(tmp_path / f"{job}-{n}.log", 1000 + 20 * job + n, 500.0, seq_length=1024 + job)
            History(Folder(tmp_path / "h")).add(record(log, f"r{n}"))
    short, long = (run_logparse("trend", "--history", "h", *more, cwd=tmp_path) for more in ([], ["-v"]))
    assert len(short.stdout.splitlines()) <= 40
    assert "more series; -v shows all" in short.stderr
    assert short.stdout.splitlines()[1].startswith("! +")
    assert len(long.stdout.splitlines()) > 80
