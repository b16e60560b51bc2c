"""The index over all jobs: a small chart of each, and a link to its page."""

from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl
import pytest
import regex
from helpers import run_logparse
from releases import fill

from analysis.files.own_files import LIST, list_of
from analysis.metrics import JUDGED
from analysis.nightly.trend import follow
from analysis.report.trend_page import HEIGHT, small_chart, trends_page

METRIC = JUDGED["steady_step_time_ms"]


def job(name, values, begun=datetime(2026, 3, 1)):
    """A job whose runs are of one night each."""
    nights = [begun + timedelta(days=night) for night in range(len(values))]
    runs = {"run_id": [f"{name}{night}" for night in range(len(values))], "begun_at": nights, "recorded_at": nights}
    frame = pl.DataFrame({**runs, "name": name, "release": "r", METRIC.column: values})
    return replace(follow(frame, METRIC), name=name)


def noisy(*levels):
    return [level * (1 + (night * 7 % 5 - 2) / 1000) for night, level in enumerate(levels)]


def names(page):
    return regex.findall(r"<h2>(.*?)</h2>", page)


def test_the_newest_change_is_first():
    quiet = job("quiet", noisy(*[100.0] * 30))
    early = job("early", noisy(*[100.0] * 10, *[120.0] * 20))
    late = job("late", noisy(*[100.0] * 25, *[90.0] * 5))
    off = job("off", noisy(*[100.0] * 29, 130.0))
    page = trends_page([quiet, early, off, late], ["a", "b", "c", "d"])
    assert names(page) == ["late", "early", "off", "quiet"]
    assert regex.findall(r'class="job (\w*)"', page) == ["", "worse", "worse", ""]
    assert "4 jobs, 2 changed" in page
    assert "-10." in page
    assert "the newest run is +" in page


def test_noise_looks_like_noise_and_one_bad_night_does_not_hide_it():
    """The heights of the line: a spread of 0.4 % takes less than a tenth, a change of 20 % nearly all."""

    def heights(trend):
        (line,) = regex.findall(r'points="([^"]*)"', small_chart(trend))
        return [float(point.split(",")[1]) for point in line.split()]

    quiet = heights(job("a", noisy(*[100.0] * 14, 150.0, *[100.0] * 15)))
    assert max(quiet) - min(quiet) < HEIGHT / 10
    changed = heights(job("b", noisy(*[100.0] * 15, *[120.0] * 15)))
    assert max(changed) - min(changed) > HEIGHT * 0.8
    assert "NaN" not in small_chart(job("c", [5.0]))
    assert len(heights(job("d", noisy(*[100.0] * 1000)))) <= 150


def test_a_name_is_no_html():
    assert names(trends_page([job("<b>x</b>", [1.0, 1.0])], ["a"])) == ["&lt;b&gt;x&lt;/b&gt;"]


@pytest.mark.usefixtures("analysed_once")
def test_every_job_has_its_page(tmp_path):
    fill(tmp_path, {"r1": (1000.0, 2, {}), "r2": (900.0, 2, {"seq_length": 8192})})
    old = tmp_path / "out" / "jobs" / "gone.html"
    old.parent.mkdir(parents=True)
    for path in (old, old.with_name("mine.txt")):
        path.write_text("old")
    (tmp_path / "out" / LIST).write_bytes(list_of({"jobs/gone.html": "trend"}))
    assert run_logparse("trend", "--history", "h", "-o", "out", "--force", cwd=tmp_path).returncode == 0
    page = (tmp_path / "out" / "report.html").read_text()
    links = regex.findall(r'href="(jobs/[^"]*)"', page)
    assert len(set(links)) == 2
    assert {path.name for path in old.parent.glob("[!.]*")} == {
        "mine.txt",
        *(link.removeprefix("jobs/") for link in links),
    }
    for link in links:
        assert 'href="../report.html"' in (tmp_path / "out" / link).read_text()
