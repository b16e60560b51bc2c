"""The index of many runs in a real browser: it sorts, filters, is a plain table without JavaScript, asks no network."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
import pytest
from browser import chromium, hostile, opened, run_of
from helpers import SETTINGS, arguments_dump, megatron_line

from analysis.commands._index_files import LINKED, write_index
from analysis.files.run_tables import tables_of
from analysis.report import render_index
from analysis.report.index_page import MAIN
from analysis.run.run import Run
from logparse.language import use_language

HOSTILE = [
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 2</script>",
    '"><img src=x onerror="window.pwned = 3">',
    "javascript:window.pwned=4",
    "'-window.pwned-'",
    "{{ 7 * 7 }}",
    "<!--",
    "a b/../c%2f#?",
]
OUT_OF_MEMORY = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


def log_of(folder: Path, name: str, ms: float, stalls: int = 0, **settings: object) -> Path:
    """A run of 30 steps of ``ms``, of which the first takes twice as long and ``stalls`` take ten times as long."""
    lines = [arguments_dump(SETTINGS | settings)]
    for step in range(1, 31):
        times = 2 if step == 1 else 10 if 10 <= step < 10 + stalls else 1
        lines.append(megatron_line(step, ms * times + step % 7) + "\n")
    path = folder / f"{name}.log"
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Four on eight devices, a slow one that failed, one with stalls; one of another model; one hardly known."""
    folder = tmp_path_factory.mktemp("logs")
    larger = {"num_layers": 40, "hidden_size": 5120, "ffn_hidden_size": 13824, "num_attention_heads": 40}
    logs = [
        log_of(folder, "usual", 5000.0),
        log_of(folder, "slow", 9000.0),
        log_of(folder, "stalled", 5050.0, stalls=3),
        log_of(folder, "quick", 4900.0),
        log_of(folder, "larger", 9000.0, **larger),
    ]
    logs[1].write_text(logs[1].read_text() + OUT_OF_MEMORY)
    bare = folder / "bare.log"
    bare.write_text("".join(megatron_line(step, pairs={"global batch size": None}) + "\n" for step in range(1, 9)))
    return [run_of(log) for log in (*logs, bare)]


def write(folder: Path, runs: Sequence[Run], failed: Sequence[str] = ()) -> Path:
    write_index(folder, tables_of(runs), failed, pages=True)
    return folder / "index.html"


@pytest.fixture(scope="module")
def index(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("index"), runs, ["no step line found\n  where: crashed.log"])


SHOWN = "[...document.querySelectorAll('#runs tbody tr:not([hidden]) th')].map(th => th.textContent)"
GIVEN = ["usual", "slow", "stalled", "quick", "larger", "bare"]


def head(page: Any, column: str) -> Any:
    return page.page.locator(f"#runs th[data-column={column}]")


def test_a_heading_sorts_with_what_to_look_at_first_on_top(browser, index):
    with opened(browser, index, leaves_as_found=True) as page:
        assert page.evaluate(SHOWN) == GIVEN
        head(page, "mfu").locator("button").click()
        worst_first = page.evaluate(SHOWN)
        assert (worst_first[0], worst_first[-1]) == ("slow", "bare")
        assert head(page, "mfu").get_attribute("aria-sort") == "ascending"
        head(page, "mfu").locator("button").click()
        assert page.evaluate(SHOWN) == [*reversed(worst_first[:-1]), "bare"]
        head(page, "largest_overhead_ratio").locator("button").click()
        assert page.evaluate(SHOWN)[0] == "stalled"
        assert head(page, "largest_overhead_ratio").get_attribute("aria-sort") == "descending"
        assert head(page, "mfu").get_attribute("aria-sort") is None
        head(page, "run").locator("button").click()
        assert page.evaluate(SHOWN) == sorted(GIVEN)
        page.page.locator("#reset").click()
        assert page.evaluate(SHOWN) == GIVEN
        assert page.page.locator("#runs [aria-sort]").count() == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("STALL", ["stalled"]),
        ("mfu<30%", ["slow"]),
        ("mfu < 0.3 llama2", ["slow"]),
        ("with_stalls_tokens_per_second_per_device>=3000", ["usual", "quick"]),
        ("world_size>=8, goodput<.7", ["stalled"]),
        ("mfu>0 llama2-13b", ["larger"]),
        ("device memory", ["slow"]),
        ("no such run", []),
    ],
)
def test_words_and_conditions_filter(browser, index, text, shown):
    with opened(browser, index, leaves_as_found=True) as page:
        page.page.locator("#filter").fill(text)
        assert page.evaluate(SHOWN) == shown
        assert page.page.locator("#count").inner_text() == f"{len(shown)} / 6"
        head(page, "mfu").locator("button").click()
        assert sorted(page.evaluate(SHOWN)) == sorted(shown)
        page.page.locator("#reset").click()
        assert page.evaluate(SHOWN) == GIVEN
        assert page.page.locator("#filter").input_value() == ""


def test_a_condition_on_nothing_hides_nothing_and_is_told(browser, index):
    with opened(browser, index, leaves_as_found=True) as page:
        page.page.locator("#filter").fill("mfuu<0.3")
        assert page.evaluate(SHOWN) == GIVEN
        assert page.page.locator("#count").inner_text() == "mfuu?"
        page.page.locator("#reset").click()
        assert page.page.locator("#count").inner_text() == "6 / 6"


def test_it_sorts_by_what_is_not_rounded(browser, runs, tmp_path):
    """Rows that read alike are in the order of their numbers."""
    near = [replace(runs[0], log=replace(runs[0].log, name=name)) for name in ("second", "first")]
    tables = tables_of(near)
    losses = tables["overheads"]
    mfu = pl.Series("mfu", [0.500002, 0.500001])
    path = tmp_path / "index.html"
    path.write_text(render_index(tables["runs"].with_columns(mfu), losses, [], pages=False), encoding="utf-8")
    with opened(browser, path) as page:
        head(page, "mfu").locator("button").click()
        assert page.evaluate(SHOWN) == ["first", "second"]
        assert page.page.locator("#runs a").count() == 0


def test_low_and_high_are_marked_by_more_than_a_colour(browser, index):
    with opened(browser, index, leaves_as_found=True) as page:
        cell = "[...document.querySelectorAll('#runs tbody tr')].find(r => r.cells[0].textContent === '{}').cells[{}]"
        place = page.evaluate(
            "[...document.querySelectorAll('#runs thead th')].findIndex(h => h.dataset.column === 'mfu')"
        )
        slow, quick = (cell.format(name, place) for name in ("slow", "quick"))
        assert page.evaluate(f"{slow}.classList.contains('low')")
        assert page.evaluate(f"{quick}.classList.contains('high')")
        assert "▾" in page.evaluate(f"getComputedStyle({slow}, '::before').content")
        assert page.evaluate(f"getComputedStyle({slow}).fontWeight") == "650"
        widths = [float(page.evaluate(f"{one}.style.getPropertyValue('--w')")[:-1]) for one in (slow, quick)]
        assert widths[0] < widths[1] <= 100
        legend = page.page.locator(".legend").inner_text()
        assert "MFU and HFU below 30 %, goodput below 80 %" in legend
        assert "median" not in legend


def low_cells(page: Any) -> dict[str, list[str]]:
    """Of each run with a mark: the columns that are marked low."""
    marked = page.evaluate(
        "[...document.querySelectorAll('#runs tbody tr')].map(row => [row.cells[0].textContent, "
        "[...row.cells].map((cell, at) => [cell, at]).filter(([cell]) => cell.classList.contains('low'))"
        ".map(([, at]) => document.querySelectorAll('#runs thead th')[at].dataset.column)])"
    )
    return {name: columns for name, columns in marked if columns}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    """Six alike of MFU below every limit, one slower and one with stalls; the larger model is alike to none."""
    folder = tmp_path_factory.mktemp("alike")
    larger = {"num_layers": 40, "hidden_size": 5120, "ffn_hidden_size": 13824, "num_attention_heads": 40}
    logs = [log_of(folder, f"usual{at}", 9000.0 + 20 * at) for at in range(4)]
    logs += [log_of(folder, "slow", 10_600.0), log_of(folder, "stalled", 9000.0, stalls=3)]
    return tables_of([run_of(log) for log in (*logs, log_of(folder, "larger", 18_000.0, **larger))])


@pytest.fixture(scope="module")
def alike(tables: dict[str, pl.DataFrame], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    write_index(folder, tables, [], pages=True)
    return folder / "index.html"


def test_runs_that_are_alike_are_marked_by_their_median(browser, alike):
    with opened(browser, alike, leaves_as_found=True) as page:
        marked = low_cells(page)
        assert set(marked) == {"slow", "stalled", "larger"}
        rates = [f"{rate}tokens_per_second_per_device" for rate in ("", "with_stalls_")]
        assert marked["slow"] == [*rates, "mfu", "hfu"]
        assert marked["stalled"] == [rates[1], "goodput"]
        # It has no run alike, so that the limits for all hold.
        assert marked["larger"] == ["mfu"]
        legend = page.page.locator(".legend").inner_text()
        assert "far below comparable runs: over 10 % below their median" in legend
        assert "fewer than 5 comparable runs: " in legend


def test_what_stands_out_is_told_above_the_table(browser, alike):
    with opened(browser, alike, leaves_as_found=True) as page:
        sentence = page.page.locator(".outliers").inner_text()
        assert sentence.startswith("2 of 7 runs are outliers: stalled (goodput ")
        assert sentence.endswith("slow (15 % fewer tokens/s/p than the median)")
        cards = page.page.locator(".card").all_inner_texts()
        assert ["stalled" in card for card in cards] == [False, True, False, True]
        assert "slow" in cards[2]
        assert set(page.evaluate(SHOWN)[:2]) == {"stalled", "slow"}, "those that stand out come first"
        assert page.evaluate(SHOWN)[2] == "usual0"
        below = "document.querySelector('.legend').getBoundingClientRect().bottom"
        assert page.evaluate(f"{below} <= document.querySelector('#runs').getBoundingClientRect().top")


def test_what_is_the_same_in_every_row_is_no_column(browser, tables, tmp_path):
    write_index(tmp_path, tables | {"runs": tables["runs"].with_columns(warnings=pl.lit(4))}, [], pages=True)
    with opened(browser, tmp_path / "index.html") as page:
        assert {head(page, name).count() for name in ("warnings", "steps", "world_size", "device")} == {0}
        assert head(page, "model").count() == 1
        told = page.page.locator("header .what").inner_text()
        assert "30 steps" in told
        assert "4 warnings each" in told


@pytest.mark.parametrize(
    ("order", "first", "way"), [("goodput", "stalled", "ascending"), ("-run", "usual3", "descending")]
)
def test_the_rows_stand_in_the_order_asked_for(browser, tables, tmp_path, order, first, way):
    write_index(tmp_path, tables, [], pages=True, order=order)
    with opened(browser, tmp_path / "index.html") as page:
        given = page.evaluate(SHOWN)
        assert given[0] == first
        assert head(page, order.removeprefix("-")).get_attribute("aria-sort") == way
        page.page.locator("#filter").fill("goodput<0.6")
        assert page.evaluate(SHOWN) == ["stalled"]
        head(page, "mfu").locator("button").click()
        page.page.locator("#reset").click()
        assert page.evaluate(SHOWN) == given
        assert page.page.locator("#runs [aria-sort]").count() == 1


def test_the_worst_runs_are_named_first(browser, index):
    with opened(browser, index, leaves_as_found=True) as page:
        cards = page.page.locator(".card").all_inner_texts()
        assert ["slow" in card for card in cards] == [False, True, False, False]
        assert ["stalled" in card for card in cards] == [False, False, True, True]
        (stalls,) = page.page.locator("#causes tbody tr", has_text="stalls").all_inner_texts()
        assert stalls.split()[0] == "stalls"
        assert stalls.split()[-2:] == ["1", "stalled"]
        assert page.page.locator("#failed pre").inner_text() == "no step line found\n  where: crashed.log"


def test_without_javascript_it_is_a_plain_table(browser, index):
    context = browser.window(java_script_enabled=False)
    page = context.new_page()
    page.goto(index.as_uri())
    assert page.locator("#runs tbody tr").count() == 6
    assert page.locator("#runs button").count() == 0
    assert not page.locator("#controls").is_visible()
    assert page.locator("#runs a").first.get_attribute("href") == "runs/usual/report.html"
    assert page.evaluate(VISIBLE) == SHOWN_FIRST
    context.close()


def test_the_page_of_hostile_names_runs_nothing(browser, runs, tmp_path):
    texts = [text.replace("/", "∕") for text in HOSTILE]
    path = write(tmp_path, [hostile(runs[0], text) for text in texts], [HOSTILE[0], HOSTILE[2]])
    with opened(browser, path) as page:
        assert page.evaluate(SHOWN) == texts
        page.page.locator("#filter").fill(texts[0].replace(" ", ""))
        page.page.locator("#filter").fill("<script>window.pwned")
        assert page.evaluate("window.pwned === undefined")
        assert page.page.locator("img").count() == 0
        links = page.page.locator("#runs a").evaluate_all("links => links.map(a => a.href)")
        assert all(link.startswith("file:///") for link in links)
        assert [unquote(link.split("/runs/")[1]) for link in links] == [f"{text}/report.html" for text in texts]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_down_only_and_keeps_the_names(browser, index, scheme):
    with opened(browser, index, color_scheme=scheme, **PHONE) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.evaluate("document.querySelector('.index').scrollLeft = 300")
        box = page.page.locator("#runs tbody th").first.bounding_box()
        assert 0 <= box["x"] < 30
        assert box["width"] < 200


@pytest.mark.parametrize("width", [1180, 1280, 1600])
def test_the_main_columns_fit_the_page(browser, index, width):
    with opened(browser, index, viewport={"width": width, "height": 900}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.index'))") == 0


VISIBLE = "[...document.querySelectorAll('#runs thead th:not([hidden])')].map(th => th.dataset.column)"
SHOWN_FIRST = ["run", *MAIN]


def test_the_reader_chooses_columns_and_the_address_remembers_them(browser, index):
    with opened(browser, index) as page:
        assert page.evaluate(VISIBLE) == SHOWN_FIRST
        menu = page.page.locator("#columns")
        menu.locator("summary").click()
        menu.locator("input[value=hfu]").check()
        menu.locator("input[value=final_loss]").check()
        menu.locator("input[value=model]").uncheck()
        chosen = ["run", *MAIN[1:6], "hfu", "goodput", "final_loss", *MAIN[7:]]
        assert page.evaluate(VISIBLE) == chosen
        hidden = "[...document.querySelectorAll('#runs tr')].map(row => [...row.cells].filter(c => c.hidden).length)"
        assert len(set(page.evaluate(hidden))) == 1
        address = page.evaluate("location.href")
        assert address.endswith(f"#columns={','.join(chosen[1:])}")
        page.page.locator("#reset").click()
        assert page.evaluate(VISIBLE) == SHOWN_FIRST
        assert "#" not in page.evaluate("location.href")
        page.evaluate(f"location.hash = '{address.partition('#')[2]}'")
        page.settled(f"JSON.stringify({VISIBLE}) === '{json.dumps(chosen, separators=(',', ':'))}'")


def test_the_index_links_to_the_tables_and_to_the_page_of_all_runs(browser, runs, tmp_path):
    write_index(tmp_path, tables_of(runs), [], pages=True, formats=["parquet"], overlay=True)
    with opened(browser, tmp_path / "index.html") as page:
        links = page.page.locator(".links a").evaluate_all("links => links.map(a => a.getAttribute('href'))")
        assert links == ["report.html", "runs.csv", *(f"{name}.parquet" for name in LINKED)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_have_contrast(browser, index, scheme):
    from test_report_browser import CONTRAST

    with opened(browser, index, color_scheme=scheme) as page:
        colors = "Object.values(logparse.page.looks[document.documentElement.dataset.drawn].range.category)"
        weak = page.evaluate(CONTRAST.replace(colors, "[]"))
        assert weak["texts"] > 60
        assert weak["weak"] == []


def test_print_has_no_controls_and_cuts_nothing(browser, index):
    with opened(browser, index, color_scheme="dark") as page:
        page.page.emulate_media(media="print")
        page.page.set_viewport_size({"width": 1047, "height": 700})
        assert not page.page.locator("#controls").is_visible()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("document.documentElement.scrollWidth") <= 1047
        assert page.page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_chinese(browser, runs, tmp_path):
    use_language("zh")
    try:
        path = write(tmp_path, runs)
    finally:
        use_language("en")
    with opened(browser, path) as page:
        assert page.evaluate("document.documentElement.lang") == "zh-CN"
        assert page.page.locator("h1").inner_text() == "6 次运行"
        assert "停顿" in page.page.locator("#causes").inner_text()


def test_200_runs_are_a_small_page_that_answers_at_once(browser, runs, tmp_path):
    """In the order of 200 different numbers, each row with a name of 60 characters."""
    names = [f"{at:03}-{'x' * 56}" for at in range(200)]
    tables = tables_of([runs[0]])
    many = {
        name: pl.concat([frame] * 200).with_columns(run=pl.Series(names).repeat_by(len(frame)).explode())
        for name, frame in tables.items()
        if name in ("runs", "overheads")
    }
    mfu = [(at * 7919 % 200) / 400 for at in range(200)]
    many["runs"] = many["runs"].with_columns(mfu=pl.Series(mfu))
    write_index(tmp_path, many, [], pages=True)
    path = tmp_path / "index.html"
    assert path.stat().st_size < 1_000_000
    with opened(browser, path) as page:
        head(page, "mfu").locator("button").click()
        expected = [name for _, name in sorted(zip(mfu, names, strict=True))]
        assert page.evaluate(SHOWN) == expected
        page.page.locator("#filter").fill("mfu<1%")
        assert page.evaluate(SHOWN) == expected[:4]
