"""The pages are in plain technical English, and a Chinese page has no English sentence of ours."""

from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl
import pytest
import regex
from helpers import ROOT, run_logparse
from plain_words import phrases, texts_of_page

from analysis.batch.run_table import overheads_table, runs_table
from analysis.charts.trend import trend_chart
from analysis.metrics import JUDGED
from analysis.nightly.trend import follow
from analysis.report import render_index, render_page
from analysis.report.trend_page import trend_page, trends_page
from logparse import analyze
from logparse.language import LANGUAGES, speaking

# A run with every row of the first screen; restarts and a growing batch; damaged lines; nearly nothing known;
# reinforcement learning; many warnings.
CASES = (
    *("megatron/core-v0.12-llama2-7b", "megatron/rampup-resumed", "megatron/messy", "torchtune/lora-1gpu"),
    *("verl/grpo", "levanter/rounded", "mindformers/family-b-1.5", "fairseq/lm-8gpu"),
)
RELEASES = [f"fixtures/releases/8.0.{name}.log" for name in ("RC1-1", "RC2-1")]
METRIC = JUDGED["steady_step_time_ms"]
# Five words of lower case in a row; a name of a log or of a framework has fewer.
ENGLISH = regex.compile(r"(?<![\w/.-])(?:[a-z]+[,:;]? ){4,}[a-z]+(?![\w/.-])")


@pytest.fixture(scope="module")
def runs():
    return [analyze(str(ROOT / "fixtures" / case), hw="910b3") for case in CASES]


@pytest.fixture(scope="module", params=LANGUAGES)
def pages(request, runs, tmp_path_factory):
    """Every kind of page in one language, by its name."""
    with speaking(request.param):
        changed = _trend("job", [100.0] * 10 + [120.0] * 10)
        tables = runs_table(runs), overheads_table(runs)
        made = {case: render_page([run]) for case, run in zip(CASES, runs, strict=True)}
        made["overlay"] = render_page(runs[:2])
        made["index"] = render_index(*tables, ["no step line found"], pages=True)
        made["trend"] = trend_page(changed, trend_chart(changed), index="index.html")
        made["trends"] = trends_page([changed, _trend("quiet", [100.0] * 20)], ["a", "b"])
    folder = tmp_path_factory.mktemp("compared")
    run_logparse("compare", *RELEASES, "--hw", "910b3", "-o", str(folder), "--force", "--lang", request.param, cwd=ROOT)
    made["compare"] = (folder / "report.html").read_text(encoding="utf-8")
    return request.param, made


def _trend(name, values):
    nights = [datetime(2026, 3, 1) + timedelta(days=night) for night in range(len(values))]
    run_ids = [f"{name}{night}" for night in range(len(values))]
    fields = {"run_id": run_ids, "begun_at": nights, "recorded_at": nights, "name": name, "release": "r"}
    noisy = [value * (1 + (night * 7 % 5 - 2) / 1000) for night, value in enumerate(values)]
    return replace(follow(pl.DataFrame({**fields, METRIC.column: noisy}), METRIC), name=name)


def test_pages_use_plain_words(pages):
    _, made = pages
    found = {name: {phrase for text in texts_of_page(page) for phrase in phrases(text)} for name, page in made.items()}
    assert {name: those for name, those in found.items() if those} == {}


def test_a_chinese_page_has_no_english_sentence(pages):
    language, made = pages
    found = {name: {t for t in texts_of_page(page) if ENGLISH.search(t)} for name, page in made.items()}
    assert all(found.values()) if language == "en" else {name: those for name, those in found.items() if those} == {}


def test_the_texts_of_a_page_are_those_that_a_person_reads():
    page = (
        '<style>.odd {}</style><h1 title="behind">A <b>title</b></h1><script>const odd = 1;</script>'
        '<script type="application/json" id="page-data">{"charts": {"title": "the usual step", "at": "datum.odd == 1"}}'
        "</script>"
    )
    assert texts_of_page(page) == ["behind", "A", "title", "the usual step"]
