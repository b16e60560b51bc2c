"""One grammar names runs for every command; what named runs when there was only key=value names them still."""

from datetime import datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.history.run_records import run_frame
from analysis.history.selection import select_runs
from analysis.history.selector import Selector, is_equality, is_selector, parse_selector
from logparse.errors import UsageError

ROWS = (
    ("aaaa01", "CANN 8.0.RC1", 8, "night", {"team": "a", "nodes": "2"}, datetime(2026, 2, 27, 10)),
    ("aaaa02", "CANN 8.0.RC2", 16, "night-2", {"team": "b", "nodes": "10"}, datetime(2026, 3, 1, 23, 59)),
    ("bbbb03", "8, b>c", None, None, {}, datetime(2026, 3, 2)),
    ("cccc04", "x", 64, 'says "so"', {"Team": "it's, a"}, None),
)


def _row(run_id, release, devices, name, labels, begun):
    told = [{"name": key, "value": value} for key, value in labels.items()]
    recorded = datetime(2026, 3, 31)
    versions = [{"name": "cann", "value": release, "origin": None}] if release.startswith("CANN") else []
    told_of = {"world_size": devices, "lora": devices == 8, "labels": told, "versions": versions}
    return told_of | {"run_id": run_id, "release": release, "name": name, "begun_at": begun, "recorded_at": recorded}


def frame(rows):
    made = [_row(*row) for row in rows]
    return run_frame(made).with_columns(release=pl.Series([row["release"] for row in made], dtype=pl.String))


RUNS = frame(ROWS)


def selected(text, runs=RUNS):
    return "".join(run_id[-1] for run_id in select_runs(runs, text)["run_id"])


SELECTED = {
    "release!=x": "123",
    "world_size!=8": "24",
    "world_size<16": "1",
    "world_size<=16": "12",
    "world_size > 8": "24",
    "world_size>=8,world_size<64": "12",
    "lora!=yes": "234",
    "release~cann*": "12",
    "release~*RC?": "12",
    "release~rc": "",
    "release~*[R]*": "",
    "name~night": "1",
    "release in x|CANN 8.0.RC1": "14",
    'release in "x" | "8, b>c",world_size=64': "4",
    "world_size in 8|64": "14",
    "team!=a": "24",
    "team~*a": "14",
    "nodes>=3": "2",
    "nodes<3": "1",
    "cann!=CANN 8.0.RC1": "2",
    "began>=2026-03-01": "23",
    "began>2026-03-01": "3",
    "began<2026-03-01 23:59": "1",
    "began<=2026-03-01T23:59": "12",
    "began=2026-03": "23",
    "began!=2026-03": "1",
    "began in 2026-02-27|2026-03-02": "13",
    "begun_at=2026-03-01": "2",
    "recorded=2026-03-31": "1234",
    "since=2026-03-02": "34",
    "until=2026-03-01": "12",
    "since=2026-02,until=2026-03-01": "12",
    "last 2": "34",
    "last 1,release~CANN*": "2",
    "release~CANN*, last 1": "2",
    "last 9": "1234",
    "last 0": "",
    "id=aaaa": "12",
    "id!=aaaa": "34",
    "id in aaaa01|cccc": "14",
    "run_id=aaaa01": "1",
    "run_id=aaaa": "",
    "aaaa": "12",
    "cccc04": "4",
    "release=8, b>c": "3",
    'release="8, b>c"': "3",
    'name="says ""so"""': "4",
    'name=says "so"': "4",
    "team='it''s, a'": "4",
    "release=x,": "4",
}


@pytest.mark.parametrize("text", SELECTED)
def test_what_is_selected(text):
    assert selected(text) == SELECTED[text]


WRONG = {
    "world_size>many": ("world_size is 'many'", "give a number"),
    "world_size~1*": ("world_size is not text", "~ is for text"),
    "release<8": ("release is not a number or date", "release~8"),
    "team>3": ("team is not a number or date", "team~8"),
    "cann>=8": ("cann is not a number", "cann~8"),
    "since=yesterday": ("since is 'yesterday'", "2026-03-01"),
    "began>=2026-13-01": ("began is '2026-13-01'", "2026-03-01"),
    "since>2026-03-01": ("is not a condition", "since=2026-03-01"),
    "began~2026*": ("is not a condition", "began=2026-03-01"),
    "id~a*": ("is not a condition", "id=VALUE"),
    "id=": ("is not a condition", "id=VALUE"),
    "relase~8*": ("unknown key 'relase'", "did you mean release"),
    "device=none": ("unknown device", "logparse hardware"),
    "release=a,Release in b": ("release is given twice", "release in A|B"),
    "last 1,last 2": ("last is given twice", "one value"),
    "=x": ("is not a selector", "write key=value"),
    "last x": ("is not a selector", "write key=value"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_its_place_and_a_remedy(text):
    problem, remedy = WRONG[text]
    for asked, place in ((text, text), (f"world_size=8,{text}", f"{text}, character 14 of world_size=8,{text}")):
        if asked != text and "is not a selector" in problem:
            continue
        with pytest.raises(UsageError) as told:
            select_runs(RUNS, asked)
        assert problem in told.value.problem
        assert remedy in told.value.remedy
        assert "is not a selector" in problem or "given twice" in problem or told.value.where == place


def test_a_label_is_meant_where_one_has_the_name():
    """Runs that were recorded with such a label go on to be found by it."""
    runs = frame([*ROWS, ("dddd05", "y", 8, "n", {"id": "7", "since": "May"}, None)])
    assert selected("id=7", runs) == "5"
    assert selected("since=May", runs) == "5"


def test_a_key_that_no_run_has_is_no_error_in_an_empty_history():
    assert select_runs(RUNS.clear(), "team=a,last 3").is_empty()


def test_a_selector_is_a_value():
    one = parse_selector("Release=a, b,world_size>=8,last 3")
    assert one == parse_selector("Release=a, b,world_size>=8,last 3")
    assert [(c.key, c.operator, c.values, c.at) for c in one.conditions] == [
        ("release", "=", ("a, b",), 1),
        ("world_size", ">=", ("8",), 14),
    ]
    assert (one.last, one.equalities, one.names_runs) == (3, {"release": "a, b"}, False)
    assert parse_selector("abc123").names_runs
    assert parse_selector("id in a|b").names_runs
    assert not parse_selector("id!=a").names_runs
    assert selected(Selector("", (), 1)) == "4"


@pytest.mark.parametrize(
    ("text", "forms"),
    [("release=x", (True, True)), ("run.log~", (True, False)), ("last 3", (True, False)), ("a.log", (False, False))],
)
def test_what_looks_like_a_selector(text, forms):
    assert (is_selector(text), is_equality(text)) == forms


@given(value=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), quote=st.sampled_from("\"'"))
def test_any_value_in_quotes_selects_exactly_the_runs_that_have_it(value, quote):
    rows = [
        ("aaaa01", value, 8, "n", {"key": value}, None),
        ("aaaa02", f"{value},x", 8, "n", {"key": f" {value}"}, None),
        ("aaaa03", "other" * 9, 8, "n", {}, None),
    ]
    runs = frame(rows)
    quoted = quote + value.replace(quote, quote * 2) + quote
    for key in ("release", "key"):
        assert selected(f"{key}={quoted}", runs) == "1"
        assert selected(f"world_size=8,{key} = {quoted},last 9", runs) == "1"
        assert selected(f"{key} in {quoted}|{quoted}", runs) == "1"
    assert selected(f"release!={quoted}", runs) == "23"
    assert selected(f"key!={quoted}", runs) == "2"


@given(
    values=st.lists(st.none() | st.integers(0, 4), min_size=1, max_size=6),
    limit=st.integers(0, 4),
    pair=st.sampled_from([("=", "!="), ("<", ">="), ("<=", ">")]),
)
def test_conditions_and_their_opposites_share_the_runs_that_tell_the_key(values, limit, pair):
    rows = [(f"{i:06}", "r", v, "n", {} if v is None else {"k": str(v)}, None) for i, v in enumerate(values)]
    runs = frame(rows)
    known = [f"{i:06}" for i, value in enumerate(values) if value is not None]
    for key in ("world_size", "k") if known else ("world_size",):
        found = [select_runs(runs, f"{key}{sign}{limit}")["run_id"].to_list() for sign in pair]
        assert sorted(found[0] + found[1]) == known


@pytest.mark.parametrize(
    ("text", "n"), [("ending=completed", 1), ("ending!=completed", 1), ("ending in failed|cut_off", 1)]
)
def test_an_ending_is_compared_by_its_state_as_lists_show_it(text, n):
    states = ["completed", "failed", *[None] * (len(RUNS) - 2)]
    endings = ['{"state": "completed"}', '{"state": "failed"}', *[None] * (len(RUNS) - 2)]
    runs = RUNS.with_columns(
        ending_state=pl.Series(states, dtype=pl.String), ending=pl.Series(endings, dtype=pl.String)
    )
    assert len(selected(text, runs)) == n
