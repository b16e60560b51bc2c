"""The page as text: what it says, that its numbers are the run's, that it escapes."""

import gzip
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest
import vl_convert
from browser import hostile, run_of
from fixture_runs import FOLDERS, name_of, run_of_fixture
from helpers import ROOT, megatron_line, megatron_log

from analysis.charts import Rows, axes_of, chart_rows, same_curves, series_charts
from analysis.charts.look import PARTS
from analysis.flops import all_formulas, find_formula
from analysis.flops._formula import FORWARD_SHARE
from analysis.present.parts import Sentence
from analysis.present.views.first_screen import rows
from analysis.present.views.overheads import overheads_tables
from analysis.present.views.title import extent, who
from analysis.present.views.warnings import warning_sentences
from analysis.present.words import say
from analysis.present.words import words as words_of_codes
from analysis.present.words.forms import ordinal
from analysis.published.match import PublishedComparison, place_among
from analysis.report import render_page
from analysis.report.against import against_tables
from analysis.report.answer import cards, gauge, rate_of
from analysis.report.layers import along
from analysis.report.page_frame import vega
from analysis.report.payload import as_json, payload, specification
from analysis.report.settings import ONLY_WITH, OPTIONAL, context_tables
from analysis.report.several import incomparable
from analysis.report.shown_numbers import difference, engineering, level_of, number, percent
from analysis.report.time_breakdown import time_breakdown_bar
from analysis.report.worked_formula import write_out
from analysis.run.checks.targets import parse_requirement
from analysis.run.clock.interruptions import Pauses
from analysis.run.clock.pause_times import BETWEEN
from analysis.run.clock.step_time_patterns import explain_stalls
from analysis.run.run import Run
from logparse import __version__
from logparse.context.run_context import Fact, RunContext
from logparse.findings import Origin, info, warning
from logparse.language import use_language
from logparse.schema import QUANTITIES

pytestmark = pytest.mark.usefixtures("analysed_once")

LLAMA = ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log"
RESUMED = ROOT / "fixtures/megatron/rampup-resumed/run.log"


class Text(HTMLParser):
    """The words of a page outside its scripts and styles, and the tags that could load or run something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.risky: list[str] = []
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.inside = tag if tag in ("script", "style") else self.inside
        risky = [name for name, value in attrs if name in ("src", "onerror") or name.startswith("on")]
        links = [value for name, value in attrs if name == "href" and not (value or "").startswith(("#", "data:"))]
        self.risky += [*risky, *(str(link) for link in links)] + ([tag] if tag in ("img", "iframe", "object") else [])

    def handle_endtag(self, tag):
        self.inside = "" if tag == self.inside else self.inside

    def handle_data(self, data):
        if not self.inside and data.strip():
            self.words.append(data.strip())


@pytest.fixture(scope="module")
def llama():
    return run_of(LLAMA, hw="910b")


_pages: dict[tuple[int, ...], tuple[tuple[Run, ...], str]] = {}


def page_of(*runs: Run) -> str:
    """The page about ``runs``, which is made once of the same ones."""
    key = tuple(map(id, runs))
    if key not in _pages:
        # A run that is kept here shares its number with no other.
        _pages[key] = (runs, render_page(runs))
    return _pages[key][1]


def words(*runs: Run) -> str:
    return " ".join(" ".join(Text(page_of(*runs)).words).split())


# The first fixture of each trainer; those of its other versions are a sweep.
FIRST = {folder.parent: folder for folder in reversed(FOLDERS)}
PAGES = [
    pytest.param(folder, id=name_of(folder), marks=[pytest.mark.sweep] * (FIRST[folder.parent] != folder))
    for folder in FOLDERS
]


@pytest.mark.parametrize("folder", PAGES)
def test_every_fixture_makes_a_page_of_known_words(folder):
    page = Text(render_page((run_of_fixture(folder),)))
    said = " ".join(" ".join(page.words).split())
    assert "Calculation of TFLOP/s" in said
    assert not re.search(r"\b(nan|NaN ms|inf|None ms|undefined)\b", said)
    assert page.risky == []


def test_the_tiles_are_those_of_the_terminal_and_mfu_is_first(llama):
    facts = {fact.label: fact for fact in rows(llama)}
    tiles = cards(llama, llama)
    assert [tile.label for tile in tiles] == ["MFU", "step time", "throughput", "loss", "TFLOP/s", "goodput"]
    shown = [facts[tile.label] for tile in tiles]
    assert [tile.value for tile in tiles] == [row.value or row.clauses[0] for row in shown]
    assert [tile.level for tile in tiles] == ["middle", "", "", "", "", "low"]
    assert tiles[0].limits == "low: below 30 %, middle: 30 % to 45 %, high: 45 % or more"


def test_a_short_run_has_no_tile_of_goodput():
    run = run_of(ROOT / "fixtures/megatron/core-v0.16-row2/run.log")
    assert [card.label for card in cards(run, run)] == ["MFU", "step time", "throughput", "loss", "TFLOP/s"] + [
        "goodput"
    ] * (not run.short)


@pytest.mark.parametrize(("share", "level"), [(0.29, "low"), (0.30, "middle"), (0.45, "high"), (1.2, ""), (None, "")])
def test_levels_of_mfu(share, level):
    assert level_of("mfu", share) == level


def test_curves_in_proportion_are_drawn_once(llama):
    charts = payload([llama], chart_rows(llama.steps))["charts"]
    assert "tokens_per_second_per_device" in charts
    assert not {"mfu", "tflops_per_second_per_device"} & set(charts)
    assert "same curve: TFLOP/s per device" in words(llama)
    half = pl.when(pl.col("step") > 30).then(pl.col("mfu") / 2).otherwise("mfu").alias("mfu")
    assert same_curves(llama.steps.with_columns(half)) == ["tflops_per_second_per_device"]


def test_the_page_begins_as_the_terminal_does(llama):
    page = words(llama)
    for text in (who(llama), extent(llama), *(sentence.text for sentence in warning_sentences(llama))):
        assert " ".join(text.split()) in page
    for table in overheads_tables(llama):
        if isinstance(table, Sentence):
            assert table.text in page
            continue
        for row in table.cells:
            assert " ".join(cell.text for cell in row if cell.text) in page
    assert page.index(who(llama)) < page.index(extent(llama)) < page.index("goodput without it") < page.index("x axis")


def test_parts_of_the_time_add_up_and_have_colours_of_their_own(llama):
    time = time_breakdown_bar(llama)
    assert sum(part.share for part in time) == pytest.approx(1)
    assert len({part.color for part in time}) == len(time)
    assert time[0].name == "useful steps"
    assert [part.share for part in time[1:]] == sorted((part.share for part in time[1:]), reverse=True)


def test_every_part_of_an_account_has_a_colour():
    codes = {code.removesuffix(BETWEEN) for code in words_of_codes("en")["parts"]}
    assert codes == set(PARTS)
    assert len(set(PARTS.values())) == len(PARTS)


def test_the_foot_names_version_command_and_sources(llama):
    page = render_page([llama], command="logparse analyze <b> --hw 910b")
    said = " ".join(Text(page).words)
    assert f"logparse {__version__}" in said
    assert "logparse analyze <b> --hw 910b" in said
    assert f"read from {LLAMA}" in said


def test_a_place_in_the_log_can_be_copied_from_setting_start_and_warning(llama):
    fact = llama.context.facts["world_size"]
    assert f'data-copy="{LLAMA}:{fact.origin.line}"' in page_of(llama)
    resumed = run_of(RESUMED)
    assert f'data-copy="{RESUMED}:{resumed.segments["line_number"][1]}"' in page_of(resumed)
    note = warning("stamp_damaged", value="then", source="a.log", line=7)
    assert 'data-copy="a.log:7"' in render_page([replace(llama, notes=(note,))])


def test_a_price_gives_the_losses_of_the_page_a_cost(llama):
    assert "device-hours cost goodput without it" not in words(llama)
    priced = " ".join(Text(render_page([llama], price=2.5)).words)
    assert "device-hours cost goodput without it" in " ".join(priced.split())


def test_what_was_required_stands_on_the_first_screen(llama):
    judged = replace(llama, requirements=(parse_requirement("mfu>=0.9"), parse_requirement("goodput>=0.1")))
    said = words(judged)
    assert "fail: mfu>=0.9, found 0.39" in said
    assert "pass: goodput>=0.1, found 0.77" in said


def test_the_warnings_are_under_the_headline_and_the_rest_is_folded(llama):
    notes = tuple(warning("file_damaged", path=f"file-{n}", reason="rotten") for n in range(5))
    page = render_page([replace(llama, notes=(*notes, info("file_damaged", path="remark", reason="none")))])
    shown, folded = page[page.index('class="notes') :].split("<details>", 1)
    assert [f"file-{n}" in shown for n in range(5)] == [True, True, False, False, False]
    assert all(f"file-{n}" in folded for n in (2, 3, 4))
    assert "3 more warnings, 1 note" in folded


def test_runs_that_did_other_work_are_said_not_to_be_comparable(tmp_path, llama):
    one, other = megatron_log(20), megatron_log(20).replace("4096", "2048")
    for name, text in (("one", one), ("other", other)):
        (tmp_path / name).write_text(text)
    first, same, second = (
        run_of(tmp_path / name, name=as_) for name, as_ in (("one", "a"), ("one", "b"), ("other", "c"))
    )
    assert list(incomparable([first, same])) == []
    (said,) = incomparable([first, second])
    assert said.startswith("c is not comparable with a: ")
    assert said in words(first, second)


def test_the_bar_ends_at_the_peak_and_has_the_band_of_the_family(llama):
    bar = gauge(llama)
    assert bar is not None
    assert bar.mfu / bar.peak == pytest.approx(llama.analysis.value("mfu"), abs=1e-3)
    assert bar.band is not None
    assert bar.band[0] < bar.peak <= bar.band[1] == 100
    assert "38.6 % to 57.1 %" in bar.words
    assert gauge(run_of(LLAMA, hw=None)) is None
    assert gauge(run_of(LLAMA, hw="910b3")).band is None


@pytest.mark.parametrize("name", all_formulas())
def test_the_formula_written_out_gives_the_figure_of_its_step(name):
    run = run_of(LLAMA, formula=name)
    written = write_out(run.analysis)
    assert written is not None
    row = run.analysis.steps.row(by_predicate=pl.col("step") == written.step, named=True)
    assert written.tflops_per_second_per_device == pytest.approx(row["tflops_per_second_per_device"], rel=1e-12)
    assert row["step_time_ms"] == pytest.approx(run.analysis.rates["step_time_ms"][0], rel=1e-3)
    assert f"{written.tflops_per_second_per_device:.2f} TFLOP/s/p" in words(run)


def test_full_recomputation_is_written_as_another_forward_pass():
    plain, again = (write_out(run_of(LLAMA, recompute=how).analysis) for how in ("none", "full"))
    assert [term.times for term in again.terms] == pytest.approx([1 + FORWARD_SHARE] * 4)
    assert again.flops_per_token == pytest.approx(plain.flops_per_token * 4 / 3)


@pytest.mark.parametrize(
    ("formula", "term"), [(name, term) for name in ("ascendspeed", "palm") for term in find_formula(name).symbols]
)
def test_the_symbols_of_a_term_are_its_value(formula, term):
    written = write_out(run_of(LLAMA, formula=formula).analysis)
    letters = {letter: value for letter, _, value in written.sizes}
    found = next(t for t in written.terms if t.name == term)
    expression = found.symbols.replace(" ", "").replace("·", "*").replace("²", "**2")
    if "N" not in expression:
        assert eval(expression, {}, letters) == pytest.approx(found.flops_per_token)


def test_where_settings_change_the_formula_is_worked_for_the_first_start():
    written = write_out(run_of(RESUMED).analysis)
    assert written is None or written.tflops_per_second_per_device > 0


def test_stalls_starts_and_reasons_are_listed(llama):
    said = words(llama)
    assert "Stalls" in said
    # 9,418.0 ms beside the median of its neighbours, 5,008.0 ms.
    assert "37 run.log:237 1 2025-06-17 09:16:22 9.4 s +4.4 s not in the log" in said
    assert "One start, no restart." in said
    resumed = run_of(RESUMED)
    assert ("Starts" in words(resumed)) == (len(resumed.analysis.segments) > 1)


def test_the_context_names_origin_and_what_is_missing(llama):
    said = words(llama)
    assert "world_size number of devices (ranks) of the job 8 log line 153" in said
    bare = words(run_of(LLAMA, hw=None, world_size=16))
    assert "--world-size" in bare


def test_almost_nothing_known_is_said_with_the_flags(tmp_path):
    pairs = {"consumed samples": None, "global batch size": None, "grad norm": None}
    log = tmp_path / "bare.log"
    log.write_text("".join(megatron_line(step, pairs=pairs) + "\n" for step in (1, 2, 3)))
    said = words(run_of(log, hw=None))
    for text in (
        "--world-size",
        "--global-batch-size",
        "--seq-length",
        "--hw",
        "no timestamps",
        "Not in the log",
        "not computed",
    ):
        assert text in said


def test_a_run_in_which_nothing_counts_still_has_a_page(tmp_path):
    log = tmp_path / "one.log"
    log.write_text(megatron_log(1))
    said = words(run_of(log))
    assert "no usable step times" in said
    assert "all steps" in said


def test_a_long_run_says_that_it_is_thinned_and_how(tmp_path):
    log = tmp_path / "long.log"
    log.write_text(megatron_log(9000))
    run = run_of(log)
    assert "9,000 rows in" in words(run)
    given = payload([run], chart_rows(run.analysis.steps))
    assert sum(given["rows"]["rows"]) == 9000
    assert len(given["rows"]["rows"]) <= 2000


def test_a_chart_has_a_specification_for_every_axis_and_no_data_of_its_own(llama):
    given = payload([llama], chart_rows(llama.analysis.steps))
    assert given["axes"] == ["step", "consumed_tokens", "hours"]
    for name, specs in given["charts"].items():
        assert list(specs) in (["none"], given["axes"])
        assert "none" in specs or all(
            spec["layer"][0].get("data", spec.get("data")) == {"name": "rows"} for spec in specs.values()
        ), name


@pytest.mark.parametrize("log", [LLAMA, RESUMED], ids=lambda path: path.parent.name)
def test_a_chart_along_another_axis_is_the_one_that_is_drawn_for_it(log):
    run = run_of(log)
    drawn_rows = Rows(chart_rows(run.steps), "rows")

    def drawn(axis):
        charts = series_charts(run.steps, run.records["evaluations"], [300.0], "palm", axis, drawn_rows)
        return {name: specification(chart) for name, chart in charts.items()}

    axes = axes_of(run.steps)
    assert len(axes) > 1
    for axis in axes:
        assert {name: along(spec, axis) for name, spec in drawn("step").items()} == drawn(axis)


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!--", "\u2028", '"\\', "{{ 7 * 7 }}"])
def test_what_a_log_says_cannot_leave_its_place(llama, text):
    page = render_page([hostile(llama, text)])
    assert text not in re.sub(r"<script>.*?</script>", "", page, flags=re.S) or text in ("\u2028", "{{ 7 * 7 }}", '"\\')
    assert page.count("<script") == 3
    assert Text(page).risky == []
    assert text in " ".join(Text(page).words)


def test_json_in_a_page_reads_back():
    value = {"</script>": ["<!--", "\u2028", "吞吐", None, 1.5]}
    assert json.loads(as_json(value)) == value
    assert "<" not in as_json(value)


def test_the_policy_lets_only_our_scripts_run(llama):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page_of(llama)).group(1)
    assert "default-src 'none'" in policy
    script = next(part for part in policy.split(";") if "script-src" in part)
    assert "'unsafe-inline'" not in script
    assert script.count("sha256-") == 2


def test_the_program_that_draws_can_stand_in_a_page():
    """It is not escaped: it must not end its own script, nor hold what the parser of a page would change."""
    program = vega()
    assert not re.search(r"</script|<!--|\r", program, flags=re.I)
    assert "vegaEmbed" in program


@pytest.mark.slow
def test_the_program_that_draws_is_that_of_the_pinned_library(update_goldens):
    program = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if update_goldens:
        (ROOT / "analysis/report/vega.js.gz").write_bytes(gzip.compress(program.encode(), mtime=0))
        vega.cache_clear()
    assert vega() == program


def test_a_stall_has_its_cause_where_the_log_tells_it():
    pauses = Pauses(saved=(10, 20, 30), evaluated=(44,))
    assert explain_stalls([11, 45], pauses) == [("behind_save", None), ("behind_evaluation", None)]
    assert explain_stalls([47], pauses) == [("not_told", None)]
    assert explain_stalls([15, 25, 35], Pauses(saved=(10, 20, 30, 40))) == [("as_often_as_saves", 10)] * 3
    assert explain_stalls([15, 25, 35], Pauses()) == [("periodic", 10)] * 3


def test_settings_are_grouped_and_hold_only_what_applies(llama):
    tables = {table.caption: [row[0].text for row in table.cells] for table in context_tables([llama])}
    assert list(tables)[:3] == ["Layout", "Batch", "Model shape"]
    assert "world_size" in tables["Layout"]
    names = {name for group in tables.values() for name in group}
    assert not names & {"num_experts", "moe_router_topk", "q_lora_rank", "kv_lora_rank", "expert_model_parallel_size"}
    moe = run_of(LLAMA, num_experts=8, moe_router_topk=2)
    names = {row[0].text for table in context_tables([llama, moe]) for row in table.cells}
    assert {"num_experts", "moe_router_topk"} <= names
    assert set(llama.context.facts) - names <= {name for group in ONLY_WITH.values() for name in group} | set(OPTIONAL)


def test_every_quantity_is_in_one_group():
    everything = RunContext({q.name: Fact(1, Origin("not set")) for q in QUANTITIES})
    run = replace(run_of(LLAMA), context=everything)
    names = [row[0].text for table in context_tables([run]) for row in table.cells]
    assert sorted(names) == sorted(q.name for q in QUANTITIES)


def test_gap_and_published_rates_are_bars_from_the_longest_down(llama):
    tables = {table.caption: table for table in against_tables(llama)}
    for caption in ("Peak breakdown of steady steps", "Compared with published rates"):
        bars = [row[1].bar for row in tables[caption].cells]
        assert bars == sorted(bars, reverse=True)
    assert "run" in [row[0].text for row in tables["Compared with published rates"].cells]


def test_among_ten_published_rates_and_more_the_run_has_a_place(llama):
    def compared(*shares: float) -> PublishedComparison:
        row = llama.expectations.published.matches[0]
        return PublishedComparison(tuple(replace(row, share=share) for share in shares))

    assert place_among(compared(*[1.2] * 9)) is None
    assert say(place_among(compared(*[1.2] * 26, *[0.9] * 15))) == "63rd percentile of 41 comparable rates"
    expectations = replace(llama.expectations, published=compared(*[1.2] * 6, *[0.9] * 6))
    assert "50th percentile of 12" in words(replace(llama, expectations=expectations))


@pytest.mark.parametrize(
    ("number", "said"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (63, "63rd"), (100, "100th")]
)
def test_a_place_in_a_row_is_said_as_people_say_it(number, said):
    assert ordinal(number) == said


def test_without_a_script_there_are_pictures(llama):
    page = page_of(llama)
    pictures = re.findall(r'id="chart-(\w+)"[^>]*><p class="of">[^<]*</p><svg class="picture"', page)
    assert {"time_per_iteration", "tokens_per_second_per_device", "learning_rate", "loss"} <= set(pictures)
    assert page.count('class="spent"') == 1


def test_two_runs_stand_side_by_side(tmp_path, llama):
    log = tmp_path / "other.log"
    log.write_text(megatron_log(20))
    said = words(llama, run_of(log, name="other"))
    assert "run other" in said
    other = run_of(log, name="other")
    times = [rate_of(run, "steady")["mfu"] for run in (other, llama)]
    assert cards(other, llama)[0].difference == difference(*times)
    assert cards(llama, llama)[0].difference == ""


def test_the_page_speaks_chinese(llama):
    use_language("zh")
    try:
        page = render_page([llama])
    finally:
        use_language("en")
    said = " ".join(Text(page).words)
    assert '<html lang="zh-CN">' in page
    for text in ("步耗时", "算力利用率", "预热", "停顿", "并行布局"):
        assert text in said


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (number(None), "–"),
        (number(float("nan")), "–"),
        (number(-0.04), "0.0"),
        (number(1234.56), "1,234.6"),
        (percent(0.42228), "42.2 %"),
        (percent(-0.0001), "0.0 %"),
        (difference(90.0, 100.0), "-10.0 %"),
        (difference(99.99, 100.0), "+0.0 %"),
        (difference(None, 100.0), ""),
        (difference(90.0, 0.0), ""),
        (engineering(4.5687e10), "4.5687 × 10¹⁰"),
    ],
)
def test_numbers_as_people_read_them(shown, expected):
    assert shown == expected
