"""Short JSON: what gives way where a document is too long, and the fields that are asked for."""

import json
from typing import Any

import pytest
from fixture_runs import FIXTURES, run_of_fixture
from helpers import ROOT, run_logparse

from analysis.present.document_parts import select, tree_of
from analysis.present.views.analyze_json import document
from analysis.present.views.compact import compact_comparisons, compact_runs
from analysis.present.views.fields import parse_fields, select_fields
from analysis.present.views.short_ending import compact_endings
from logparse.errors import UsageError

LLAMA = FIXTURES / "megatron/core-v0.12-llama2-7b"
OLMO = FIXTURES / "olmo/1b-8gpu"


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """The full document of two runs: one with all figures, one without MFU."""
    made: dict[str, Any] = json.loads(json.dumps(document([run_of_fixture(LLAMA), run_of_fixture(OLMO)])))
    return made


def fields(whole: dict[str, Any], text: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = select_fields(whole, parse_fields(text))["runs"]
    return runs


def test_a_path_keeps_what_is_below_it():
    value = {"a": {"b": 1, "c": [{"d": 2, "e": 3}]}, "f": {"x": {"g": 4, "h": 5}}, "i": 6}
    assert select(value, tree_of(["a.c.d", "f.*.g"])) == {"a": {"c": [{"d": 2}]}, "f": {"x": {"g": 4}}}
    for paths in (["a.b", "a"], ["a", "a.b"]):
        assert select(value, tree_of(paths)) == {"a": value["a"]}


def test_long_lists_are_cut_and_counted(whole):
    run = whole["runs"][0]
    names = [f"rank-{rank:04d}-of-a-job-with-a-long-name.log" for rank in range(1000)]
    warnings = [{"code": f"c{n}", "level": "warning", "fields": {}, "text": "x" * 400} for n in range(40)]
    labels = {f"a label that nobody knows {n}": n for n in range(500)}
    long = run | {"sources": names, "notes": warnings, "coverage": run["coverage"] | {"unread_labels": labels}}
    (short,) = compact_runs(whole | {"runs": [long]})["runs"]
    assert len(json.dumps(short, separators=(",", ":"))) < 6000
    assert short["notes"] == [
        select(note, tree_of(["code", "level", "text"])) for note in warnings[: len(short["notes"])]
    ]
    assert 0 < len(short["notes"]) == 40 - short["omitted"]["notes"]
    assert short["omitted"]["sources"] + len(short["sources"]) == 1000
    assert short["omitted"]["coverage.unread_labels"] == 500
    assert short["metrics"].keys() == run["metrics"].keys()


def test_a_comparison_and_an_ending_are_cut_too():
    texts = [{"kind": "setting", "name": "n" * 300, "baseline": [1], "candidate": [2], "counts": []}] * 50
    short = compact_comparisons({"schema_version": 2, "verdict": "regression", "fields": {}, "changes": texts})
    assert (short["verdict"], len(short["changes"]) + short["omitted"]["changes"]) == ("regression", 50)
    frames = [{"file": "f" * 300, "line": n} for n in range(50)]
    ending = compact_endings({"schema_version": 2, "ending": {"state": "failed", "frames": frames}})["ending"]
    assert (ending["state"], len(ending["frames"]) + ending["omitted"]["frames"]) == ("failed", 50)
    assert len(json.dumps(short)) < 6200
    assert len(json.dumps(ending)) < 6200


def test_fields_are_those_of_the_full_document(whole):
    first, second = fields(whole, "mfu, world_size,runs.rates.steady.step_time_ms,ending.state")
    run = whole["runs"][0]
    assert first == {
        "name": run["name"],
        "context": {"world_size": run["context"]["world_size"]},
        "metrics": {"mfu": run["metrics"]["mfu"]},
        "rates": {"steady": {"step_time_ms": run["rates"]["steady"]["step_time_ms"]}},
        "ending": {"state": "completed"},
    }
    assert second["metrics"] == {"mfu": None}


def test_a_null_keeps_its_reason(whole):
    _, second = fields(whole, "metrics.mfu.median,num_experts")
    assert second["metrics"] == {"mfu": None}
    assert second["context"] == {"num_experts": None}
    full = {note["code"]: note["text"] for note in whole["runs"][1]["notes"]}
    assert "flops_rate_not_computed" in [note["code"] for note in second["notes"]]
    assert all(full[note["code"]] == note["text"] for note in second["notes"])
    _, of_rate = fields(whole, "rates.steady")
    assert "hfu_not_computed" in [note["code"] for note in of_rate["notes"]]
    first, _ = fields(whole, "goodput")
    assert "notes" not in first


def test_what_is_asked_for_is_not_replaced(whole):
    first, second = fields(whole, "mfu,notes.code,coverage.unread_labels,published.matches.name")
    assert second["notes"] == [{"code": note["code"]} for note in whole["runs"][1]["notes"]]
    assert first["published"] == {
        "matches": [{"name": one["name"]} for one in whole["runs"][0]["published"]["matches"]]
    }


@pytest.mark.parametrize(
    ("text", "near"),
    [("mfuu", "mfu"), ("rates.steady.speed", "rates.steady.steps"), ("metrics.mfu.media", "metrics.mfu.median")],
)
def test_an_unknown_field_names_those_that_are_near(text, near):
    with pytest.raises(UsageError, match=f"unknown field '{text}'") as error:
        parse_fields(f"goodput,{text}")
    assert near in str(error.value)
    assert "--json prints all fields" in str(error.value)


def test_the_command_prints_one_line_for_all_runs():
    logs = [str(folder / "run.log") for folder in (LLAMA, OLMO)]
    done = run_logparse("analyze", "--each", *logs, "--fields", "mfu,stands_out", cwd=ROOT)
    assert done.stdout.count("\n") == 1
    printed = json.loads(done.stdout)
    assert ([run.keys() for run in printed["runs"]], printed["stands_out"]) == (
        [{"name", "metrics", "notes"}] * 2,
        None,
    )
    for wrong in (["--compact", "--fields", "mfu"], ["--fields", ","], ["--fields", "mfu", "-q"]):
        assert run_logparse("analyze", logs[0], *wrong, cwd=ROOT).returncode == 2
