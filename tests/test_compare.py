"""Comparing: what must be equal, what changed, how the losses agree."""

import json

import pytest
from helpers import SETTINGS, run_logparse
from releases import fill, record, write_run

from analysis.releases.comparable import FIELDS, check_fields, list_changes
from analysis.releases.comparison import Side, agree_on_losses, compare
from analysis.releases.verdict import DEFAULT_METRIC, METRICS
from logparse.errors import UsageError


def side(tmp_path, name, seeds=(1,), **settings):
    import polars as pl

    records = [record(write_run(tmp_path / f"{name}{seed}.log", seed, **settings), name) for seed in seeds]
    runs = pl.concat(r.summary for r in records).with_columns(release=pl.lit(name))
    steps = {r.run_id: r.steps for r in records}
    return Side(name, runs, runs, steps.__getitem__)


def states(old, new):
    return {field.name: field.state for field in check_fields(old.runs, new.runs)}


CHANGES = {
    "num_layers": 40,
    "global_batch_size": 64,
    "micro_batch_size": 2,
    "seq_length": 8192,
    "tensor_model_parallel_size": 1,
    "recompute": None,
    "precision": None,
    "num_experts": 8,
}
PRINTED = {"recompute": {"recompute_granularity": "None"}, "precision": {"bf16": "False", "fp16": "True"}}


@pytest.mark.parametrize("name", CHANGES)
def test_a_field_that_differs(tmp_path, name):
    given = PRINTED.get(name, {name: CHANGES[name]})
    found = states(side(tmp_path, "a"), side(tmp_path, "b", seeds=(2,), **given))
    assert found[name] == "different"


def test_alike(tmp_path):
    found = states(side(tmp_path, "a"), side(tmp_path, "b", seeds=(2,)))
    assert {name for name, state in found.items() if state != "equal"} == {"device"}
    assert found["device"] == "unknown"
    assert set(found) == set(FIELDS)


def test_unknown_is_neither_equal_nor_different(tmp_path):
    found = states(side(tmp_path, "a"), side(tmp_path, "b", seeds=(2,), seq_length="None"))
    assert found["seq_length"] == "unknown"


def test_what_varies_from_run_to_run_is_no_cause(tmp_path):
    import polars as pl

    def runs(name, overlap, seeds):
        logs = [write_run(tmp_path / f"{name}{s}.log", s, overlap=overlap, save=f"/ckpt/{s}") for s in seeds]
        return pl.concat(record(log).summary for log in logs)

    changes = list_changes(runs("a", "on", (1, 2)), runs("b", "off", (3, 4)))
    assert [(c.kind, c.name, c.baseline, c.candidate) for c in changes] == [("setting", "overlap", ("on",), ("off",))]


def test_losses_at_equal_steps(tmp_path):
    old, new = side(tmp_path, "a"), side(tmp_path, "b", seeds=(2,), steps=12)
    assert agree_on_losses(old, new).steps == 12
    assert agree_on_losses(old, new).largest == 0

    def shifted(run_id):
        steps = new.steps(run_id)
        return steps.with_columns(loss=steps["loss"] * (1 + 0.001 * steps["step"]))

    found = agree_on_losses(old, Side("b", new.runs, new.told, shifted))
    assert (found.largest_at, found.final_at) == (12, 12)
    assert found.final == pytest.approx(0.012)


def test_a_run_cannot_be_on_both_sides(tmp_path):
    one = side(tmp_path, "a")
    with pytest.raises(UsageError, match="both sides"):
        compare(one, one, [METRICS[DEFAULT_METRIC]], 0.03)


def test_short_runs_are_no_evidence(tmp_path):
    found = compare(side(tmp_path, "a"), side(tmp_path, "b", seeds=(2,), steps=5), [METRICS[DEFAULT_METRIC]], 0.03)
    assert found.verdict == "insufficient data"
    assert found.left_out == (("b2", "too few rows count"),)


@pytest.fixture
def folder(tmp_path):
    for name, factor in (("old", 1.0), ("new", 1.05)):
        (tmp_path / name).mkdir()
        for seed in range(3):
            write_run(tmp_path / name / f"{seed}.log", seed + (10 if factor > 1 else 0), 1000 * factor)
    (tmp_path / "old/notes.txt").write_text("not a log\n")
    return tmp_path


def test_folders_of_logs(folder):
    done = run_logparse("compare", "old", "new", cwd=folder)
    assert done.returncode == 0
    assert "verdict: regression" in done.stdout
    assert "notes.txt has no step line" in done.stderr


@pytest.mark.parametrize("form", ["--json", "--markdown"])
def test_forms(folder, form):
    done = run_logparse("compare", "old/0.log", "new/0.log", form, cwd=folder)
    assert done.returncode == 0
    if form == "--json":
        told = json.loads(done.stdout)
        assert told["comparable"]
        assert told["losses"]["largest"] == 0
        assert set(told["metrics"]) == set(METRICS)
        assert told["fields"]["world_size"]["baseline"] == [SETTINGS["world_size"]]
    else:
        assert done.stdout.startswith("### verdict: regression")


def test_history_and_a_log(tmp_path):
    fill(tmp_path, {"r1": (1000.0, 3, {})})
    write_run(tmp_path / "now.log", 77)
    done = run_logparse("compare", "release=r1", "now.log", "--history", "h", cwd=tmp_path)
    assert (done.returncode, "runs: 3" in done.stdout) == (0, True)


def test_incomparable(tmp_path):
    write_run(tmp_path / "a.log", 1)
    write_run(tmp_path / "b.log", 2, seq_length=8192)
    done = run_logparse("compare", "a.log", "b.log", cwd=tmp_path)
    assert done.returncode == 2
    assert "not comparable, so no verdict" in done.stdout
    assert "--allow seq_length" in done.stderr
    told = run_logparse("compare", "a.log", "b.log", "--allow", "seq_length", cwd=tmp_path)
    assert (told.returncode, "seq_length (allowed)" in told.stdout) == (0, True)


def test_exit_codes_of_wrong_sides(tmp_path):
    (tmp_path / "empty.log").write_text("no step here\n")
    write_run(tmp_path / "a.log", 1)
    assert run_logparse("compare", "a.log", "empty.log", cwd=tmp_path).returncode == 3
    assert run_logparse("compare", "a.log", "gone.log", cwd=tmp_path).returncode == 2
    assert run_logparse("compare", "a.log", "release=x", cwd=tmp_path).returncode == 2
