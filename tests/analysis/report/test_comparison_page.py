"""The pages of ``compare`` and ``trend``: what they show, in a real browser, of logs and of a history."""

import json
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from browser import chromium, opened
from helpers import run_logparse
from releases import fill, record, write_run
from runs import as_computed, rows

from analysis.charts.comparison import MOST_DRAWN, overlay_runs
from analysis.charts.trend import trend_chart
from analysis.compare.comparison import Side, compare
from analysis.compare.verdict import DEFAULT_METRIC
from analysis.files.own_files import LIST, list_of
from analysis.metrics import FINAL_LOSS, JUDGED
from analysis.nightly.trend import follow
from analysis.present.views.compare import compose_drawn
from analysis.report import Text, render_document
from analysis.report.comparison_page import comparison_page

pytestmark = pytest.mark.usefixtures("analysed_once")

HOSTILE = "<img src=x onerror=alert(1)>"
RELEASE = "</script><script>alert(1)</script>"
CHARTS = ["time_per_iteration", "loss", "loss_difference", "tflops_per_second_per_device"]
OF_LOGS = ("compare", "old", "new")
OF_HISTORY = ("compare", "release=r1", f"release={RELEASE}", "--history", "h")
PHONE = {"viewport": {"width": 375, "height": 800}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two folders of three logs and a history ``h`` of the same, the second side 5 % slower by a setting."""
    place = tmp_path_factory.mktemp("sides")
    for side, ms, seed in (("old", 1000.0, 0), ("new", 1050.0, 50)):
        (place / side).mkdir()
        for number in range(3):
            name = f"{HOSTILE}{number}.log"
            write_run(place / side / name, seed + number, ms, overlap=side == "old")
    history = {"r1": (1000.0, 3, {"overlap": True}), RELEASE: (1050.0, 3, {"overlap": False})}
    fill(place, history)
    return place


@pytest.fixture(scope="module", params=[OF_LOGS, OF_HISTORY], ids=["logs", "history"])
def compared(request, folder):
    out = folder / f"out-{len(request.param)}"
    done = run_logparse(*request.param, "-o", str(out), cwd=folder)
    assert (done.returncode, f"wrote {out}/report.html" in done.stderr.replace("\n", "")) == (0, True)
    assert [path.name for path in out.iterdir() if not path.name.startswith(".")] == ["report.html"]
    return out / "report.html"


@pytest.fixture(scope="module")
def followed(folder):
    out = folder / "course"
    done = run_logparse("trend", "--history", "h", "-o", str(out), cwd=folder)
    assert done.returncode == 0
    return out


def words(page) -> str:
    return " ".join(page.page.locator("body").inner_text().split())


def test_the_comparison_says_what_the_terminal_says(browser, compared):
    with opened(browser, compared, leaves_as_found=True) as page:
        said = words(page)
        for sentence in (
            "Verdict: regression",
            "fields are equal",
            "Loss: equal to the last printed digit at all 20 common steps",
            "Noise between",
        ):
            assert sentence in said
        cells = page.page.locator("tr", has_text="setting overlap").locator("td").all_inner_texts()
        assert cells == ["True", "False"]
        times = page.page.locator("tr", has_text="step time, steady").first.locator("td").all_inner_texts()
        assert float(times[2].rstrip(" %")) == pytest.approx(5, abs=0.6)
        assert times[-1] == "regression"
        assert page.page.locator("td.regression").count() >= 1
        assert page.page.locator("thead").first.inner_text().split() == [
            "baseline",
            "candidate",
            "change",
            "interval",
            "verdict",
        ]
        assert page.page.locator("h2", has_text="runs in the charts").count() == 1
        assert page.page.locator("table").last.locator("tbody tr").count() == 6


def test_both_sides_are_drawn_over_each_other_and_zoom_together(browser, compared):
    with opened(browser, compared, leaves_as_found=True) as page:
        drawn = page.evaluate("[...logparse.views.keys()]")
        assert drawn == [name for name in CHARTS if name in drawn]
        assert set(CHARTS[:2]) <= set(drawn)
        data = "logparse.views.get('loss').data('rows')"
        assert page.evaluate(f"[...new Set({data}.map(row => row.run))].sort()") == [
            "baseline",
            "candidate",
            "difference",
        ]
        # A line for each run, and one of the differences; the three of a side have its colour.
        assert page.evaluate(f"new Set({data}.map(row => row.segment)).size") == 7
        lines = "[...document.querySelectorAll('#chart-loss .mark-line path')].filter(line => line.getAttribute('d'))"
        found = page.evaluate(f"{lines}.map(line => line.getAttribute('stroke'))")
        assert sorted(found.count(color) for color in set(found)) == [3, 3]
        page.evaluate("logparse.zoom([5, 10])")
        assert [page.domain(name) for name in drawn] == [pytest.approx([5, 10], abs=0.5)] * len(drawn)
        page.evaluate("logparse.zoom(null)")


def test_a_side_can_be_hidden(browser, compared):
    with opened(browser, compared, leaves_as_found=True) as page:
        page.page.locator("button.run", has_text="candidate").click()
        page.settled("logparse.views.get('loss').data('rows').every(row => row.run !== 'candidate')")
        page.page.locator("button.run", has_text="candidate").click()
        page.settled("logparse.views.get('loss').data('rows').some(row => row.run === 'candidate')")


@pytest.mark.parametrize("context", [{}, PHONE, {"color_scheme": "dark"}], ids=["wide", "phone", "dark"])
def test_pages_fit_their_window(browser, compared, followed, context):
    for path in (compared, followed / "report.html"):
        with opened(browser, path, **context) as page:
            room = "document.documentElement.clientWidth - document.documentElement.scrollWidth"
            assert page.evaluate(room) == 0
            assert page.evaluate("[...document.querySelectorAll('.chart svg.marks')].every(s => s.clientWidth > 200)")


def test_what_a_log_says_stays_text(browser, compared, followed):
    for path in (compared, followed / "report.html"):
        with opened(browser, path, leaves_as_found=True) as page:
            assert page.evaluate("document.querySelectorAll('img, main script').length") == 0
            assert (RELEASE in words(page)) or (HOSTILE in words(page))


def long_steps(ms: float, count: int) -> pl.DataFrame:
    """Rows that all count, no two values alike."""
    numbers = list(range(1, count + 1))
    times: list[object] = [ms * (1 + 0.01 * ((7919 * n) % 1013) / 1013) for n in numbers]
    losses: list[object] = [10 / n**0.3 + times[n - 1] / 7e5 for n in numbers]  # type: ignore[operator]
    made = as_computed(rows(numbers, step_time_ms=times, loss=losses))
    return made.with_columns(
        counted=pl.lit(True), segment=pl.lit(0, pl.Int64), tflops_per_second_per_device=150000 / pl.col("step_time_ms")
    )


def many(tmp_path, runs, steps, left_out=0):
    """A comparison of two sides of so many runs of so many steps, of which some at the beginning do not count."""
    pattern = record(write_run(tmp_path / "pattern.log", 3)).summary
    sides = []
    for name, ms in (("a", 1000.0), ("b", 1020.0)):
        frame = long_steps(ms, steps).with_columns(counted=pl.col("step") > left_out)
        ids = [f"{name}{number}" for number in range(runs)]
        own = pl.concat(pattern.with_columns(run_id=pl.lit(i), begins=pl.lit(i)) for i in ids).with_columns(
            release=pl.lit(None, pl.String), landmarks=pl.lit(None, pattern.schema["landmarks"])
        )
        sides.append(Side(name, own, own, lambda _, frame=frame: frame))
    return compare(*sides, [JUDGED[DEFAULT_METRIC]], 0.03)


def test_rows_that_do_not_count_are_not_drawn(tmp_path):
    drawn = overlay_runs(many(tmp_path, 2, 50, left_out=7))
    assert drawn.rows["step"].min() == drawn.steps["step"].min() == 8
    assert len(drawn.rows) == 4 * 43


def test_a_page_of_many_long_runs_is_thinned_and_says_so(browser, tmp_path):
    result = many(tmp_path, MOST_DRAWN + 3, 2000)
    drawn = overlay_runs(result)
    assert [len(runs) for runs in drawn.runs.values()] == [MOST_DRAWN, MOST_DRAWN]
    assert drawn.merged == 40
    text = comparison_page(result)
    assert len(text.encode()) < 2_000_000
    path = tmp_path / "report.html"
    path.write_text(text, encoding="utf-8")
    with opened(browser, path) as page:
        said = words(page)
        assert "Candidate: the charts show the last 20 readable runs of 23" in said
        assert "A point is the mean of up to 40 adjacent rows" in said
        assert page.page.locator("#smoothing").is_hidden()


def test_one_run_a_side_is_drawn_with_spans_and_can_be_smoothed(browser, tmp_path):
    result = many(tmp_path, 1, 9000)
    drawn = overlay_runs(result)
    assert (drawn.merged, drawn.single) == (1, True)
    assert drawn.rows["step_time_ms_high"].is_not_null().all()
    path = tmp_path / "report.html"
    path.write_text(comparison_page(result), encoding="utf-8")
    with opened(browser, path) as page:
        assert "18,000 rows in" in words(page)
        page.page.locator("#smoothing").fill("8")
        page.settled("logparse.views.get('loss').data('smoothed').length > 50")


def test_the_runs_in_the_charts_have_the_final_loss_that_is_judged(tmp_path):
    """That of a record is the last loss of the run; the one above is taken at the common steps."""
    sides = many(tmp_path, 2, 50)
    result = compare(sides.baseline, sides.candidate, [FINAL_LOSS], 0.03)
    *_, table = compose_drawn(result, overlay_runs(result))
    losses = [loss for side in (result.baseline, result.candidate) for loss in side.runs["final_loss"]]
    assert [row[3] for row in table.rows] == [FINAL_LOSS.text(loss) for loss in losses]
    assert losses[0] != sides.baseline.details["final_loss"][0]


def test_colours_are_those_of_the_sides_that_are_drawn(tmp_path):
    result = many(tmp_path, 1, 50)
    nothing = long_steps(1000.0, 50).with_columns(counted=pl.lit(False))
    old = Side("a", result.baseline.runs, result.baseline.details, lambda _: nothing)
    drawn = overlay_runs(compare(old, result.candidate, [JUDGED[DEFAULT_METRIC]], 0.03))
    assert drawn.names == ["candidate"] == drawn.steps["run"].unique().to_list()


@pytest.mark.parametrize("spoilt", [1, 2], ids=["one", "all"])
def test_runs_whose_steps_are_damaged_are_left_out(tmp_path, spoilt):
    """Losses and charts are of the others; each file is named once on stderr."""
    runs = fill(tmp_path, {"r1": (1000.0, 2, {}), "r2": (1000.0, 2, {})}).runs()
    files = sorted((tmp_path / "h/steps/release=r1").iterdir())[:spoilt]
    for path in files:
        path.write_bytes(b"PAR1")
    done = run_logparse("compare", "release=r1", "release=r2", "--history", "h", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0
    losses = (
        "equal to the last printed digit at all 20 common steps"
        if spoilt == 1
        else "no step has a finite loss on both sides"
    )
    assert losses in " ".join(done.stdout.split())
    assert [done.stderr.count(path.name) for path in files] == [1] * spoilt
    page = (tmp_path / "out/report.html").read_text()
    heads = [f"{name} ({run_id[:12]})" for run_id, name in runs.select("run_id", "name").iter_rows()]
    assert [head for head in heads if f'<th scope="row">{head}</th>' not in page] == [
        head for head in heads if any(path.name[:12] in head for path in files)
    ]


def test_where_nothing_can_be_drawn_there_is_no_script(browser, tmp_path):
    for name, seed in (("a", 1), ("b", 2)):
        write_run(tmp_path / f"{name}.log", seed, steps=1)
    assert run_logparse("compare", "a.log", "b.log", "-o", "out", cwd=tmp_path).returncode == 0
    text = (tmp_path / "out/report.html").read_text()
    assert "insufficient data" in text
    assert "<script" not in text


def test_sides_that_cannot_be_compared_have_a_page_too(tmp_path):
    write_run(tmp_path / "a.log", 1)
    write_run(tmp_path / "b.log", 2, seq_length=8192)
    assert run_logparse("compare", "a.log", "b.log", "-o", "out", cwd=tmp_path).returncode == 2
    text = (tmp_path / "out/report.html").read_text()
    assert "no verdict: not comparable" in text
    assert '<th scope="row">seq_length</th><td>4096</td><td>8192</td>' in text


@pytest.mark.parametrize("command", [OF_LOGS, ("trend", "--history", "h")], ids=["compare", "trend"])
def test_nothing_is_overwritten_without_force(folder, tmp_path, command):
    out = tmp_path / "out"
    out.mkdir()
    for name in ("report.html", "mine.txt"):
        (out / name).write_text("mine")
    refused = run_logparse(*command, "-o", str(out), cwd=folder)
    assert (refused.returncode, refused.stdout, "--force" in refused.stderr) == (2, "", True)
    assert {path.name: path.read_text() for path in out.glob("[!.]*")} == {"report.html": "mine", "mine.txt": "mine"}
    in_the_way = run_logparse(*command, "-o", str(out), "--force", cwd=folder)
    assert (in_the_way.returncode, "report.html is in the way" in in_the_way.stderr) == (2, True)
    assert (out / "report.html").read_text() == "mine"
    (out / "report.html").unlink()
    assert run_logparse(*command, "-o", str(out), "--force", cwd=folder).returncode == 0
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    assert (out / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("command", [OF_LOGS, ("trend", "--history", "h")], ids=["compare", "trend"])
def test_a_folder_without_a_name_is_refused(folder, command):
    done = run_logparse(*command, "-o", "", cwd=folder)
    assert (done.returncode, "-o has an empty folder name" in done.stderr) == (2, True)


def test_the_trend_has_a_chart_a_table_and_the_changes(browser, followed):
    names = {path.name for path in followed.glob("[!.]*")}
    assert names == {"report.html", "trend.json", "trend.png", "trend.svg"}
    with opened(browser, followed / "report.html", leaves_as_found=True) as page:
        assert page.evaluate("[...logparse.views.keys()]") == ["trend"]
        assert page.page.locator("#controls").is_hidden()
        releases = page.page.locator("tbody tr th").all_inner_texts()
        assert releases == ["r1", RELEASE]
        said = page.page.locator("p.warning").inner_text()
        assert float(said.removeprefix("! ").split("%")[0]) == pytest.approx(5, abs=0.6)
        assert "overlap: True -> False" in said


def test_the_trend_clears_what_it_no_longer_writes(folder, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for name in ("trend.html", "trend-2.png", "trend-of-mine.png"):
        (out / name).write_text("old")
    (out / LIST).write_bytes(list_of({"trend.html": "trend", "trend-2.png": "trend"}))
    assert run_logparse("trend", "--history", "h", "-o", str(out), "--force", cwd=folder).returncode == 0
    names = {path.name for path in out.glob("[!.]*")}
    assert names == {"report.html", "trend.json", "trend.png", "trend.svg", "trend-of-mine.png"}


def test_the_trend_is_drawn_in_the_unit_of_the_table():
    series = pl.DataFrame(
        {
            "run_id": [f"{n:032x}" for n in range(8)],
            "name": ["run"] * 8,
            "release": ["r"] * 8,
            "begun_at": [None] * 8,
            "recorded_at": pl.datetime_range(
                pl.datetime(2026, 1, 1), pl.datetime(2026, 1, 8), interval="1d", eager=True
            ),
            "max_memory_allocated_bytes": [2.0**35] * 8,
        }
    )
    spec = trend_chart(follow(series, JUDGED["max_memory_allocated_bytes"])).to_dict()
    points = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "point")
    assert points["encoding"]["y"]["title"] == "GB"
    assert {row["value"] for row in spec["datasets"][points["data"]["name"]]} == {34.359738368}


def test_pages_speak_chinese(browser, folder, tmp_path):
    for command in (OF_HISTORY, ("trend", "--history", "h")):
        out = tmp_path / command[0]
        assert run_logparse(*command, "-o", str(out), "--lang", "zh", cwd=folder).returncode == 0
        with opened(browser, out / "report.html") as page:
            assert page.evaluate("document.documentElement.lang") == "zh-CN"
            headings = page.page.locator("h2, h3").all_inner_texts()
            assert headings
            assert all(any("\u4e00" <= sign <= "\u9fff" for sign in heading) for heading in headings)
            assert "candidate" not in page.evaluate("document.querySelector('svg.marks').textContent")


def test_a_page_may_be_words_alone():
    text = render_document("<b>", [Text("<p>told</p>")])
    assert "<h1>&lt;b&gt;</h1>" in text
    assert "<p>told</p>" in text


def test_markdown_and_json_stay_as_they_are_beside_a_page(folder, tmp_path):
    done = run_logparse(*OF_LOGS, "--json", "-o", str(tmp_path / "out"), cwd=folder)
    assert json.loads(done.stdout)["verdict"] == "regression"


def test_several_candidates_have_a_page_each(folder, tmp_path):
    out = tmp_path / "out"
    command = ("compare", "release=r1", f"release={RELEASE}", "new", "--history", "h")
    told = json.loads(run_logparse(*command, "--json", "-o", str(out), cwd=folder).stdout)
    assert [one["candidate"]["asked"] for one in told["comparisons"]] == [f"release={RELEASE}", "new"]
    assert sorted(path.name for path in out.glob("*.html")) == ["report-2.html", "report.html"]
    assert run_logparse(*command[:3], *command[4:], "-o", str(out), "--force", cwd=folder).returncode == 0
    assert [path.name for path in out.iterdir() if not path.name.startswith(".")] == ["report.html"]
