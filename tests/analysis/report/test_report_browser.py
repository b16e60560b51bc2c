"""The page in a real browser: it draws, moves together, speaks Chinese, asks no network and runs nothing of a log."""

import math
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, hostile, opened, run_of, write_page
from helpers import ROOT, SETTINGS, arguments_dump, megatron_line

from logparse.language import use_language

LLAMA = ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log"
TIME = "time_per_iteration"
PHONE = {"viewport": {"width": 375, "height": 800}, "has_touch": True}
WIDE_PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


def log_of(folder: Path, name: str, ms: float, count: int = 40, stall: int = 20, **pairs: str) -> Path:
    """A run of ``count`` steps near ``ms``, one of them stalled."""
    lines, clock = [arguments_dump(SETTINGS)], datetime(2026, 3, 1, 8)
    for step in range(1, count + 1):
        time_ms = ms * (4 if step == stall else 1) + step % 7
        clock += timedelta(milliseconds=time_ms)
        given = {"lm loss": f"{2 + 8 * math.exp(-step / count):.6E}", **pairs}
        lines.append(megatron_line(step, time_ms, f"{clock:%Y-%m-%d %H:%M:%S}", given) + "\n")
    path = folder / f"{name}.log"
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def llama(folder: Path) -> Path:
    return write_page(folder, run_of(LLAMA, hw="910b"))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("two")
    runs = [run_of(log_of(place, name, ms), name=name) for name, ms in (("before", 1000.0), ("after", 800.0))]
    return write_page(place, *runs)


def test_every_chart_is_drawn_without_an_error_or_a_request(browser, llama):
    with opened(browser, llama, leaves_as_found=True) as page:
        drawn = page.evaluate("[...logparse.views.keys()]")
        assert drawn == page.evaluate("[...document.querySelectorAll('.chart')].map(c => c.dataset.chart)")
        assert len(drawn) == 8
        assert page.evaluate("[...document.querySelectorAll('.chart svg.marks')].every(s => s.clientWidth > 200)")


@pytest.mark.parametrize("width", [375, 1180])
def test_no_word_of_a_chart_is_cut_off(browser, llama, width):
    with opened(browser, llama, viewport={"width": width, "height": 900}, leaves_as_found=True) as page:
        cut = page.evaluate(
            """[...document.querySelectorAll('svg.marks')].flatMap((svg) => {
                const frame = svg.getBoundingClientRect();
                const texts = [...svg.querySelectorAll("text")].filter((text) => text.getBoundingClientRect().width);
                return texts.filter((text) => {
                    const box = text.getBoundingClientRect();
                    return box.top < frame.top - 2 || box.bottom > frame.bottom + 2 || box.left < frame.left - 2;
                }).map((text) => text.textContent);
            })"""
        )
        assert cut == []


def test_the_first_screen_needs_no_scrolling(browser, llama):
    with opened(browser, llama, viewport={"width": 1280, "height": 900}, leaves_as_found=True) as page:
        for part in (".cards", ".gauge", ".facts", ".notes", ".spent"):
            box = page.page.locator(part).first.bounding_box()
            assert box["y"] + box["height"] <= 900, part
        assert page.page.locator(".contents").bounding_box()["x"] < page.page.locator("main").bounding_box()["x"]


def test_contents_stay_beside_the_page_and_lead_to_its_sections(browser, llama):
    with opened(browser, llama, viewport={"width": 1280, "height": 900}, leaves_as_found=True) as page:
        for link in page.page.locator(".contents a").all():
            assert page.page.locator(f"section{link.get_attribute('href')}").count() == 1
        page.page.locator(".contents a").last.click()
        assert page.evaluate("document.querySelector('.contents').getBoundingClientRect().top") == 0
        assert page.page.locator("#how").bounding_box()["y"] < 900


def test_a_click_copies_file_and_line(browser, llama):
    with opened(browser, llama, permissions=["clipboard-read", "clipboard-write"]) as page:
        place = page.page.locator("#context .place").first
        place.evaluate(
            "(e) => { for (let d = e.closest('details'); d; d = d.parentElement.closest('details')) d.open = true; }"
        )
        place.click()
        page.settled("document.querySelector('.place.copied')")
        assert re.fullmatch(rf"{re.escape(str(LLAMA))}:\d+", page.evaluate("navigator.clipboard.readText()"))


def test_a_drag_on_one_chart_moves_those_that_share_the_axis(browser, llama):
    with opened(browser, llama, leaves_as_found=True) as page:
        before = page.domain("loss")
        page.drag(TIME, 0.25, 0.5)
        page.settled("logparse.state.domain !== null")
        low, high = page.evaluate("logparse.state.domain")
        assert low == pytest.approx(15, abs=1.5)
        assert high == pytest.approx(30, abs=1.5)
        for chart in ("loss", "learning_rate", "tokens_per_second_per_device", "grad_norm"):
            signals = page.evaluate(f"['x_min', 'x_max'].map(s => logparse.views.get('{chart}').signal(s))")
            assert signals == [low, high]
            # The frame leaves a few pixels beside the first and the last point.
            assert page.domain(chart) == pytest.approx([low, high], abs=0.5)
            assert page.domain(chart)[0] > before[0]
        page.page.locator("#reset").click()
        page.settled("logparse.state.domain === null")
        assert page.domain("loss") == before


def test_the_zoom_is_in_the_address_and_is_restored(browser, llama):
    with opened(browser, llama) as page:
        page.evaluate("logparse.zoom([10, 20])")
        page.settled("location.hash === '#from=10&to=20'")
        page.page.locator("#log").check()
        page.settled("location.hash.endsWith('&log=1') && logparse.views.get('loss').scale('y').type === 'log'")
        page.page.reload()
        page.evaluate("logparse.ready.then(() => true)")
        assert page.evaluate("logparse.state.domain") == [10, 20]
        assert page.page.locator("#log").is_checked()
        page.requests.clear()
        page.page.locator("#log").uncheck()
        page.page.locator("#reset").click()
        page.settled("location.hash === ''")


def test_a_double_click_shows_the_whole_run_again(browser, llama):
    with opened(browser, llama, leaves_as_found=True) as page:
        whole = page.domain("loss")
        page.evaluate("logparse.zoom([10, 20])")
        frame = page.frame("tokens_per_second_per_device")
        page.page.mouse.dblclick(frame["x"] + 100, frame["y"] + 100)
        page.settled("logparse.state.domain === null")
        assert page.domain("loss") == whole
        assert page.page.locator("#reset").is_disabled()


def test_keys_zoom_move_and_reset(browser, llama):
    with opened(browser, llama, leaves_as_found=True) as page:
        page.page.locator("#chart-loss").focus()
        page.page.keyboard.press("+")
        low, high = page.evaluate("logparse.state.domain")
        assert high - low == pytest.approx(59 / 2)
        page.page.keyboard.press("ArrowRight")
        assert page.evaluate("logparse.state.domain")[0] == pytest.approx(low + (high - low) / 5)
        page.page.keyboard.press("-")
        page.page.keyboard.press("-")
        assert page.evaluate("logparse.state.domain") is None
        page.page.keyboard.press("+")
        page.page.keyboard.press("0")
        assert page.evaluate("logparse.state.domain") is None


def test_the_axis_switches_for_all_charts(browser, llama):
    with opened(browser, llama, leaves_as_found=True) as page:
        page.page.locator("input[name=axis][value=hours]").check(force=True)
        page.settled("logparse.state.axis === 'hours' && logparse.views.get('loss').scale('x').domain()[1] < 1")
        page.page.locator("input[name=axis][value=consumed_tokens]").check(force=True)
        page.settled("logparse.views.get('grad_norm').scale('x').domain()[1] > 1e6")
        page.page.locator("input[name=axis][value=step]").check(force=True)
        page.settled("logparse.state.axis === 'step'")


def test_smoothing_draws_a_line_and_leaves_the_points(browser, llama):
    with opened(browser, llama, leaves_as_found=True) as page:
        count = "document.querySelectorAll('#chart-loss path[aria-label], #chart-loss .mark-symbol path').length"
        # A busy machine draws the axes some time before the points.
        page.settled(f"{count} > 50")
        points = page.evaluate(count)
        assert page.evaluate("logparse.views.get('loss').data('smoothed').length") == 0
        page.page.locator("#smoothing").fill("8")
        page.settled("logparse.views.get('loss').data('smoothed').length > 50")
        assert "mean of" in page.page.locator("#smoothed").inner_text()
        assert page.evaluate(count) == points
        page.page.locator("#smoothing").fill("0")
        page.settled("logparse.views.get('loss').data('smoothed').length === 0")


def test_a_smoothed_value_is_the_mean_of_its_neighbours(browser, llama):
    with opened(browser, llama, leaves_as_found=True) as page:
        page.evaluate("logparse.smooth(8)")
        rows = page.evaluate("logparse.rows.filter(r => r.counted).map(r => r.loss)")
        smooth = page.evaluate("logparse.views.get('loss').data('smoothed').map(r => r.loss)")
        reach = (int(re.sub(r"\D", "", page.page.locator("#smoothed").inner_text())) - 1) // 2
        assert reach >= 2
        assert smooth[20] == pytest.approx(sum(rows[20 - reach : 21 + reach]) / (2 * reach + 1))
        page.evaluate("logparse.smooth(0)")


def test_hovering_shows_the_value_and_the_reason(browser, llama):
    with opened(browser, llama, leaves_as_found=True) as page:
        frame = page.frame("tokens_per_second_per_device")
        place = page.evaluate(
            """(() => {
                const column = 'tokens_per_second_per_device', view = logparse.views.get(column);
                const row = logparse.rows.find(r => r.why === 'stall');
                return [view.scale('x')(row.step), view.scale('y')(row[column]), row[column]];
            })()"""
        )
        page.page.mouse.move(frame["x"] + place[0] - 30, frame["y"] + place[1])
        page.page.mouse.move(frame["x"] + place[0], frame["y"] + place[1])
        page.settled("document.querySelector('#vg-tooltip-element.visible')")
        said = page.page.locator("#vg-tooltip-element").inner_text()
        assert "stall" in said
        assert f"{place[2]:,.1f}".removesuffix(".0") in said
        widths = page.evaluate("[...document.querySelectorAll('#vg-tooltip-element td.key')].map(td => td.clientWidth)")
        assert min(widths) > 20, "the names of the values must be seen"


def test_a_cross_stands_in_all_charts_at_the_row_nearest_to_the_pointer(browser, llama):
    with opened(browser, llama, leaves_as_found=True) as page:
        frame = page.frame("loss")
        x, y, step = page.evaluate(
            """(() => { const view = logparse.views.get('loss'), row = logparse.rows[29];
            return [view.scale('x')(row.step), view.scale('y')(row.loss), row.step]; })()"""
        )
        # Not on the point, but beside it.
        page.page.mouse.move(frame["x"] + x + 3, frame["y"] + y + 25)
        page.settled("logparse.state.at")
        assert page.evaluate("logparse.state.at.step") == step
        crosses = "[...document.querySelectorAll('.cross')].filter((c) => !c.hidden)"
        said = page.evaluate(f"{crosses}.map((c) => c.querySelector('output').textContent)")
        assert len(said) == page.evaluate("Object.keys(logparse.page.reads).length")
        assert all(text.startswith(f"step {step} · ") for text in said)
        assert any(text.endswith(" ms") for text in said)
        places = page.evaluate(
            f"""{crosses}.map((c) => {{
                const chart = c.parentElement, view = logparse.views.get(chart.dataset.chart);
                const left = chart.querySelector('svg.marks, canvas').getBoundingClientRect().left;
                return c.getBoundingClientRect().left - left - view.origin()[0] - view.padding().left
                    - view.scale('x')({step});
            }})"""
        )
        assert places == pytest.approx([0] * len(places), abs=1)
        page.page.mouse.move(5, 5)
        page.settled(f"{crosses}.length === 0")


def test_the_time_fits_its_frame_and_may_begin_at_zero_or_hold_outliers(browser, llama):
    domain = f"logparse.views.get('{TIME}').scale('y').domain()"
    with opened(browser, llama, leaves_as_found=True) as page:
        low, high = page.evaluate(domain)
        assert 4900 < low < 4986
        assert 5053 < high < 9000
        page.page.locator("#zero").check()
        page.settled(f"{domain}[0] === 0")
        assert page.evaluate(domain)[1] == high
        page.page.locator("#outliers").check()
        page.settled(f"{domain}[1] > 9418")
        page.page.locator("#zero").uncheck()
        page.settled(f"{domain}[0] === {low}")
        page.page.locator("#outliers").uncheck()
        page.settled(f"{domain}[1] === {high}")


def test_marks_of_events_can_be_hidden(browser, llama):
    kinds = "logparse.views.get('loss').data('marks').map((m) => m.kind)"
    with opened(browser, llama, leaves_as_found=True) as page:
        assert sorted(page.evaluate(kinds)) == ["evaluation", *["saves"] * 3]
        page.page.locator("input.kind[value=saves]").uncheck()
        page.settled(f"{kinds}.length === 1")
        page.page.locator("input.kind[value=saves]").check()
        page.settled(f"{kinds}.length === 4")


def test_starts_are_bands(browser, tmp_path):
    resumed = write_page(tmp_path, run_of(ROOT / "fixtures/megatron/rampup-resumed/run.log"))
    with opened(browser, resumed) as page:
        starts = page.evaluate("logparse.views.get('loss').data('starts').length")
        assert starts == page.evaluate("new Set(logparse.rows.map((r) => r.segment)).size")
        assert starts > 1
        assert page.page.locator("#chart-loss .mark-rect path").count() == starts // 2
        page.evaluate("logparse.zoom([0, 3])")
        page.settled(f"logparse.views.get('loss').data('starts').length < {starts}")


def test_twelve_runs_have_looks_of_their_own(browser, tmp_path):
    runs = [run_of(log_of(tmp_path, f"run-{n}", 1000.0 + 20 * n, 12), name=f"run-{n}") for n in range(12)]
    with opened(browser, write_page(tmp_path, *runs)) as page:
        lines = page.page.locator("#chart-loss .mark-line path[stroke-width='1.2']")
        looks = {(line.get_attribute("stroke"), line.get_attribute("stroke-dasharray")) for line in lines.all()}
        assert len(looks) == len({color for color, _ in looks}) == 12
        assert page.page.locator("details.run[open]").count() == 0


def test_without_a_script_answer_and_pictures_are_there(browser, llama):
    inside = browser.window(java_script_enabled=False)
    page = inside.new_page()
    page.goto(llama.as_uri())
    for name in (TIME, "loss"):
        assert page.locator(f"#chart-{name} svg.picture").is_visible()
    assert page.locator(".spent").is_visible()
    assert not page.locator("#controls").is_visible()
    inside.close()


def test_the_menu_saves_pictures_and_leads_nowhere_else(browser, llama):
    with opened(browser, llama) as page:
        page.page.locator("#chart-loss summary").click()
        links = page.page.locator("#chart-loss .vega-actions a")
        assert links.all_inner_texts() == ["Save as SVG", "Save as PNG", "Save as CSV"]
        for at, ending in enumerate((b"<svg", b"\x89PNG", b"run,step,")):
            with page.page.expect_download() as download:
                links.nth(at).click()
            assert Path(download.value.path()).read_bytes().startswith(ending)
        assert (
            page.evaluate('[...document.querySelectorAll(\'a[href^="http"], link[href^="http"], [src]\')].length') == 0
        )


def test_the_legend_toggles_a_run_in_all_charts(browser, two):
    with opened(browser, two, leaves_as_found=True) as page:
        shown = "[...new Set(logparse.views.get('loss').data('rows').map(r => r.run))]"
        assert page.evaluate(shown) == ["before", "after"]
        page.page.locator("button.run", has_text="after").click()
        page.settled(f"{shown}.length === 1")
        assert page.page.locator("button.run", has_text="after").get_attribute("aria-pressed") == "false"
        page.page.locator("button.run", has_text="after").click()
        page.settled(f"{shown}.length === 2")


def test_the_second_run_is_compared_with_the_first(browser, two):
    with opened(browser, two, leaves_as_found=True) as page:
        cards = page.page.locator(".card").all_inner_texts()
        assert len(cards) == 10
        assert any("+24.9 %" in text for text in cards[5:])
        heads = page.page.locator("#rates thead th").all_inner_texts()
        assert [text for text in heads if text] == ["before", "after"]


def test_chinese(browser, tmp_path):
    use_language("zh")
    try:
        path = write_page(tmp_path, run_of(LLAMA))
    finally:
        use_language("en")
    with opened(browser, path) as page:
        assert page.evaluate("document.documentElement.lang") == "zh-CN"
        assert page.page.locator("h2").first.inner_text() == "概要"
        titles = page.evaluate("[...document.querySelectorAll('#chart-loss svg text')].map(t => t.textContent)")
        assert "训练步" in titles
        assert "损失" in "".join(titles)


def test_dark_paper_and_back(browser, llama):
    with opened(browser, llama, color_scheme="dark") as page:
        assert page.evaluate("document.documentElement.dataset.drawn") == "dark"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 25, 30)"
        page.page.emulate_media(color_scheme="light")
        page.settled("document.documentElement.dataset.drawn === 'light'")


@pytest.mark.parametrize("pages", ["llama", "two"])
def test_a_phone_scrolls_down_only(browser, pages, request):
    with opened(browser, request.getfixturevalue(pages), **PHONE) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 375
        assert page.evaluate("[...document.querySelectorAll('svg.marks')].every(s => s.clientWidth <= 375)")
    with opened(browser, request.getfixturevalue(pages), **WIDE_PHONE) as page:
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.evaluate("[...document.querySelectorAll('.scroll')].some((s) => s.scrollWidth > s.clientWidth)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_marks_have_contrast(browser, two, scheme):
    with opened(browser, two, color_scheme=scheme) as page:
        weak = page.evaluate(CONTRAST)
        assert weak["texts"] > 100
        assert weak["weak"] == []


# Contrast by WCAG 2: text against the nearest opaque background, 4.5; marks of runs against the page, 3.
CONTRAST = """(() => {
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (rgb) => 0.2126 * channel(rgb[0]) + 0.7152 * channel(rgb[1]) + 0.0722 * channel(rgb[2]);
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const paint = document.createElement("canvas").getContext("2d");
  const rgb = (color) => { paint.fillStyle = color; const hex = paint.fillStyle;
    return hex[0] === "#" ? [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) : parse(hex); };
  const paper = (element) => { for (let e = element; e; e = e.parentElement) {
    const found = parse(getComputedStyle(e).backgroundColor); if (found.length === 3 || found[3] === 1) return found; }
    return [255, 255, 255]; };
  const weak = []; let texts = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    const seen = walk.currentNode.data.trim() && element.checkVisibility();
    if (!seen || element.closest("script, :disabled, .skip")) continue;
    const chart = element.closest("svg.marks"), style = getComputedStyle(element);
    const found = ratio(chart ? rgb(style.fill) : parse(style.color), paper(element));
    texts += 1;
    if (found < 4.5) weak.push([walk.currentNode.data, found]);
  }
  const page = parse(getComputedStyle(document.body).backgroundColor);
  for (const color of Object.values(logparse.page.looks[document.documentElement.dataset.drawn].range.category)) {
    if (ratio(rgb(color), page) < 3) weak.push([color, ratio(rgb(color), page)]);
  }
  return { texts, weak };
})()"""


def test_print_has_no_controls_and_cuts_no_chart(browser, llama):
    with opened(browser, llama, color_scheme="dark") as page:
        page.page.emulate_media(media="print")
        assert not page.page.locator("#controls").is_visible()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        inside = "[...document.querySelectorAll('figure')].map(f => getComputedStyle(f).breakInside)"
        assert set(page.evaluate(inside)) == {"avoid"}
        assert page.page.pdf(format="A4").startswith(b"%PDF")


def test_every_chart_has_a_text_and_headings_are_in_order(browser, llama):
    with opened(browser, llama) as page:
        labels = page.evaluate("[...document.querySelectorAll('.chart')].map(c => c.getAttribute('aria-label'))")
        assert all(len(label) > 10 for label in labels)
        assert any("median 5,008.6 ms" in label for label in labels)
        levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))")
        assert levels[0] == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))
        page.page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"


HOSTILE = [
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 2</script>",
    '"><img src=x onerror="window.pwned = 3">',
    "javascript:window.pwned=4",
    "'-window.pwned-'",
    "{{ 7 * 7 }}",
    "<!--",
    "\\u003c/script>",
]


def test_the_page_of_a_hostile_log_runs_nothing(browser, tmp_path):
    labels = {f"x{at}{text.replace('|', '').replace(':', '')}": "1.0" for at, text in enumerate(HOSTILE)}
    settings = {f"model_type{at}": text for at, text in enumerate(HOSTILE)} | {"model_name": HOSTILE[1]}
    log = log_of(tmp_path, "hostile", 1000.0, **labels)
    log.write_text(arguments_dump(SETTINGS | settings) + log.read_text())
    runs = [hostile(run_of(log), text) for text in HOSTILE]
    with opened(browser, write_page(tmp_path, *runs)) as page:
        page.evaluate("logparse.smooth(3)")
        page.page.locator("button.run").first.click()
        page.drag("loss", 0.2, 0.6)
        assert page.evaluate("window.pwned === undefined")
        said = page.page.locator("header").inner_text()
        assert all(text in said for text in HOSTILE)
        assert page.page.locator("img").count() == 0


def test_a_run_of_100_000_steps_is_a_small_page(browser, tmp_path):
    run = run_of(long_log(tmp_path, 100_000))
    path = write_page(tmp_path, run)
    assert path.stat().st_size <= 1_600_000
    with opened(browser, path) as page:
        assert page.evaluate("logparse.rows.length") <= 4000
        assert "100,000 rows in" in page.page.locator(".thinned").inner_text()
        slowest = page.evaluate("Math.max(...logparse.rows.map(r => r.step_time_ms_high ?? r.step_time_ms))")
        assert slowest == run.analysis.steps["step_time_ms"].max()


def long_log(folder: Path, count: int) -> Path:
    """A log of ``count`` steps, some of them stalled."""
    clock, lines = datetime(2026, 1, 1), [arguments_dump(SETTINGS)]
    for step in range(1, count + 1):
        ms = 5000.0 + (step * 7919) % 101 + (4000 if step % 997 == 0 else 0)
        clock += timedelta(milliseconds=ms)
        given = {"lm loss": f"{2 + (step * 31 % 17) / 100:.6E}", "grad norm": f"{1 + (step % 13) / 10:.3f}"}
        lines.append(megatron_line(step, ms, f"{clock:%Y-%m-%d %H:%M:%S}", given) + "\n")
    path = folder / "long.log"
    path.write_text("".join(lines))
    return path


def test_a_run_of_which_almost_nothing_is_known(browser, tmp_path):
    log = tmp_path / "bare.log"
    pairs = {"consumed samples": None, "global batch size": None, "grad norm": None, "loss scale": None}
    log.write_text("".join(megatron_line(step, 1000.0, pairs=pairs) + "\n" for step in (1, 2, 3)))
    with opened(browser, write_page(tmp_path, run_of(log, hw=None))) as page:
        said = page.page.locator("body").inner_text()
        for flag in ("--world-size", "--global-batch-size", "--seq-length", "--hw"):
            assert flag in said
        assert page.evaluate("[...logparse.views.keys()]") == ["loss", TIME, "time_histogram", "time_breakdown"]
        assert "Not computed" in said
        assert "NaN" not in said
        assert "None" not in said
