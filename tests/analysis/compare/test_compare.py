"""Comparing: what must be equal, what changed, how the losses agree."""

import json
import re
from dataclasses import replace

import polars as pl
import pytest
from helpers import SETTINGS, run_logparse
from releases import fill, record, write_run

from analysis.compare.comparability import FIELDS, check_fields, list_changes
from analysis.compare.comparison import Side, compare
from analysis.compare.same_loss import compare_losses
from analysis.compare.verdict import DEFAULT_METRIC
from analysis.history.run_records import run_frame
from analysis.metrics import JUDGED
from analysis.nightly.trend import split_series
from analysis.present.parts import Sentence
from analysis.present.views.compare import compose_answer, compose_comparison, describe_change
from logparse.errors import UsageError

pytestmark = pytest.mark.usefixtures("analysed_once")


def side(tmp_path, name, seeds=(1,), **settings):
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
    untold = {"device", "recompute_method", "recompute_num_layers"}
    assert {name: state for name, state in found.items() if state != "equal"} == dict.fromkeys(untold, "unknown")
    assert set(found) == set(FIELDS)


def test_unknown_is_neither_equal_nor_different(tmp_path):
    found = states(side(tmp_path, "a"), side(tmp_path, "b", seeds=(2,), seq_length="None"))
    assert found["seq_length"] == "unknown"


# What releases of frameworks print of a dense model.
NO_EXPERTS = {
    "nothing": {},
    "placeholders": {
        "num_experts": "None",
        "moe_router_topk": 2,
        "moe_ffn_hidden_size": 11008,
        "expert_model_parallel_size": 2,
    },
    "zeros": {"num_experts": 0, "moe_router_topk": 0, "moe_ffn_hidden_size": 0, "expert_model_parallel_size": 1},
    "one": {"num_experts": 1, "moe_router_topk": 1, "moe_ffn_hidden_size": 11008},
    "no context parallelism": {"context_parallel_size": "None"},
}


@pytest.mark.parametrize("printed", NO_EXPERTS)
def test_what_means_nothing_for_the_model_is_not_compared(tmp_path, printed):
    old, new = side(tmp_path, "a"), side(tmp_path, "b", seeds=(2,), **NO_EXPERTS[printed])
    names = {name for given in NO_EXPERTS.values() for name in given}
    assert {state for name, state in states(old, new).items() if name in names} == {"equal"}
    assert len(split_series(pl.concat([old.runs, new.runs]))) == 1


def test_experts_and_context_parallelism_that_are_there_are_compared(tmp_path):
    experts = {"num_experts": 8, "moe_router_topk": 2, "moe_ffn_hidden_size": 1024}
    old = side(tmp_path, "a", **experts)
    new = side(tmp_path, "b", seeds=(2,), **experts | {"moe_ffn_hidden_size": 2048}, context_parallel_size=2)
    found = states(old, new)
    assert [found[n] for n in ("moe_ffn_hidden_size", "context_parallel_size")] == ["different"] * 2
    assert len(split_series(pl.concat([old.runs, new.runs]))) == 2


def test_what_varies_from_run_to_run_is_no_cause(tmp_path):
    def runs(name, overlap, seeds):
        logs = [write_run(tmp_path / f"{name}{s}.log", s, overlap=overlap, save=f"/ckpt/{s}") for s in seeds]
        return pl.concat(record(log).summary for log in logs)

    changes = list_changes(runs("a", "on", (1, 2)), runs("b", "off", (3, 4)))
    assert [(c.kind, c.name, c.baseline, c.candidate) for c in changes] == [("setting", "overlap", ("on",), ("off",))]


def told(settings=(), versions=(), labels=()):
    """Runs of these settings, one after another; of these versions by name, value and kind of origin; so labelled."""
    rows = [
        {
            "run_id": str(number),
            "settings": [{"name": n, "value": v} for n, v in given.items()],
            "versions": [{"name": n, "value": v, "origin": {"kind": o}} for n, v, o in versions],
            "labels": [{"name": n, "value": v} for n, v in labels],
        }
        for number, given in enumerate(settings or [{}])
    ]
    return run_frame(rows)


def test_what_most_runs_have_is_named_with_how_many():
    old = told([{"overlap": "on", "port": str(n)} for n in range(5)])
    new = told([{"overlap": "on" if n == 2 else "off", "port": str(n + 7)} for n in range(5)])
    (change,) = list_changes(old, new)
    assert (change.baseline, change.candidate, change.counts) == (("on",), ("off", "on"), ((5, 5), (4, 5)))
    assert describe_change(change) == "overlap: on -> off in 4 of 5"
    half = told([{"overlap": "on" if n < 2 else "off"} for n in range(4)])
    assert list_changes(old, half) == []


def test_what_both_sides_tell_comes_before_what_one_tells():
    old = told([{"zone": "1", "aged": "x", "same": "s"}])
    new = told([{"zone": "2", "brand_new": "y", "same": "s"}])
    found = list_changes(old, new)
    assert [(c.name, c.one_sided) for c in found] == [("zone", False), ("aged", True), ("brand_new", True)]


def test_places_names_and_seeds_are_no_cause():
    old = {"save": "/a", "data_path": "None", "seed": "1", "master_port": "6000", "init_from": "/a", "overlap": "off"}
    new = {
        "save": "/b",
        "data_path": "['/b']",
        "seed": "2",
        "master_port": "6001",
        "init_from": "None",
        "overlap": "on",
    }
    found = list_changes(told([old]), told([new]))
    assert [c.name for c in found if c.is_candidate] == ["overlap"]
    assert {c.name for c in found if c.incidental} == set(old) - {"overlap"}


def test_a_label_is_a_candidate_whatever_it_is_called():
    (change,) = list_changes(told(labels=[("host", "n1")]), told(labels=[("host", "n2")]))
    assert change.is_candidate


def test_what_another_process_wrote_into_is_no_change():
    old, new = told([{"profile": "False", "a": "1"}]), told([{"profile": "Fal", "a": "1"}])
    assert [c.one_sided for c in list_changes(old, new)] == [True]


def test_long_values_are_folded(tmp_path):
    one, two = (side(tmp_path, name, seeds=(seed,), mixture=name * 300) for name, seed in (("a", 1), ("b", 2)))
    (row,) = [row for row in changed(compared(one, two)) if row[0] == "setting mixture"]
    assert row[1:] == ("a" * 18 + " … " + "a" * 12, "b" * 18 + " … " + "b" * 12)


def compared(one, two):
    return compare(one, two, [JUDGED[DEFAULT_METRIC]], 0.01)


def test_two_runs_say_what_they_can_show(tmp_path):
    """By the noise of other runs, if there are any; the verdict stays that of the threshold."""
    one, two = side(tmp_path, "a"), side(tmp_path, "b", seeds=(2,), ms=1012.0)
    metrics = [JUDGED[DEFAULT_METRIC]]
    alone = compare(one, two, metrics, None)
    title, said = (part.text for part in compose_answer(alone)[:2])
    assert (title, alone.noises[DEFAULT_METRIC]) == ("verdict: no regression", None)
    assert said.startswith(
        "1 + 1 runs do not show the noise: a change of step time, steady below the threshold of 3.00 %"
    )
    others = side(tmp_path, "c", seeds=(3, 4, 5, 6, 7)).runs
    known = compare(one, two, metrics, None, others=others)
    visible = known.noises[DEFAULT_METRIC].visible(1, 1)
    said = compose_answer(known)[1].text
    assert 0.005 < visible < 0.03
    assert f"they can show a change of step time, steady from {visible:.2%}".replace("%", " %") in said
    assert "the threshold of 3.00 % decides alone" in said
    many = compare(side(tmp_path, "d", seeds=(8, 9, 10)), side(tmp_path, "e", seeds=(11, 12, 13)), metrics, None)
    assert not compose_answer(many)[1].text.startswith("3 + 3 runs")


def changed(comparison):
    parts = compose_answer(comparison)
    at = next(i for i, part in enumerate(parts) if getattr(part, "text", "").startswith("differences that may"))
    return parts[at + 1].rows


def test_losses_that_end_far_apart_are_of_other_data(tmp_path):
    one, two = side(tmp_path, "a", steps=4), side(tmp_path, "b", seeds=(2,), steps=4)
    near, far = ([2.0] * 3 + [last] for last in (2.2, 30.0))
    said = "different data or model: losses differ by 1,400 % at the last of 4 common steps"
    assert said in str(compose_answer(compared(with_losses(one, [2.0] * 4), with_losses(two, far))))
    assert "10.000 % at last" in str(compose_answer(compared(with_losses(one, [2.0] * 4), with_losses(two, near))))


def test_a_range_of_versions_is_no_version():
    looks = "appearance"
    old = told(versions=[("framework", "Megatron-LM core 0.5 or later", looks), ("cann", "8.0", "log")])
    new = told(versions=[("framework", "Megatron-LM later than core 0.12", looks), ("cann", "8.1", "log")])
    assert [c.name for c in list_changes(old, new)] == ["cann"]


def test_labels_that_differ_are_named():
    found = list_changes(told(labels=[("node", "n1")]), told(labels=[("node", "n2")]))
    assert [(c.kind, c.name) for c in found] == [("label", "node")]


def test_layers_are_compared_where_all_is_recomputed(tmp_path):
    layers = {"recompute_method": "block", "recompute_num_layers": 1}
    some = side(tmp_path, "a", **layers)
    more = side(tmp_path, "b", seeds=(2,), **layers | {"recompute_num_layers": 32})
    assert states(some, more)["recompute_num_layers"] == "different"
    none = [
        side(tmp_path, n, seeds=(s,), recompute_granularity="None", recompute_num_layers=s)
        for n, s in (("c", 3), ("d", 4))
    ]
    assert {states(*none)[name] for name in ("recompute_method", "recompute_num_layers")} == {"equal"}


def with_losses(one, losses):
    return Side(
        one.asked, one.runs, one.details, lambda run_id: one.steps(run_id).with_columns(pl.Series("loss", losses))
    )


def losses(*sides):
    return compare_losses(*([steps for _, steps in one.readable_steps(one.runs["run_id"])] for one in sides))


def test_losses_of_0_are_not_dropped_in_silence(tmp_path):
    one, two = side(tmp_path, "a", steps=4), side(tmp_path, "b", seeds=(2,), steps=4)
    found = losses(with_losses(one, [0.0, 0.0, 2.0, 4.0]), with_losses(two, [0.0, 1.0, 3.0, 5.0])).of("loss")
    assert (found.places, found.undefined, found.largest, found.largest_at, found.final) == (4, 1, 0.5, 3, 0.25)
    assert losses(with_losses(one, [0.0] * 4), with_losses(two, [1.0] * 4)).reason == "zero_loss"


def test_without_a_common_step_that_is_said(tmp_path):
    one, two = side(tmp_path, "a", steps=4), side(tmp_path, "b", seeds=(2,), steps=4)
    nan = float("nan")
    apart = with_losses(one, [nan, nan, 1.0, 1.0]), with_losses(two, [1.0, 1.0, nan, nan])
    assert losses(*apart).reason == "no_common_step"
    said = [
        part.text
        for part in compose_comparison(compare(*apart, [JUDGED[DEFAULT_METRIC]], 0.03))
        if isinstance(part, Sentence)
    ]
    assert "loss not compared: no step has a finite loss on both sides" in said


def test_a_loss_that_is_lost_is_said(tmp_path):
    write_run(tmp_path / "a.log", 1)
    log = write_run(tmp_path / "b.log", 2)
    for step in range(10, 21):
        log.write_text(log.read_text().replace(f"lm loss: {3 + 1 / step:.6E}", "lm loss: nan"))
    done = run_logparse("compare", "a.log", "b.log", cwd=tmp_path)
    assert "! candidate: the loss is not finite in 1 of 1 runs, from step 10" in done.stdout
    gated = run_logparse("gate", "--baseline", "a.log", "--candidate", "b.log", "--json", cwd=tmp_path)
    document = json.loads(gated.stdout)
    assert (document["verdict"], document["losses_not_finite"]["candidate"]["step"]) == ("regression", 10)
    assert document["metrics"]["final_loss"]["reason_code"] == "loss_lost"


def test_losses_at_equal_steps(tmp_path):
    old, new = side(tmp_path, "a"), side(tmp_path, "b", seeds=(2,), steps=12)
    assert losses(old, new).of("loss").places == 12
    assert losses(old, new).of("loss").largest == 0

    def shifted(run_id):
        steps = new.steps(run_id)
        return steps.with_columns(loss=steps["loss"] * (1 + 0.001 * steps["step"]))

    found = losses(old, Side("b", new.runs, new.details, shifted)).of("loss")
    assert (found.largest_at, found.final_at) == (12, 12)
    assert found.final == pytest.approx(0.012)


def test_a_run_cannot_be_on_both_sides(tmp_path):
    one = side(tmp_path, "a")
    with pytest.raises(UsageError, match="both sides"):
        compare(one, one, [JUDGED[DEFAULT_METRIC]], 0.03)


def test_one_run_per_release_shows_the_noise(tmp_path):
    """Nightly builds: each run is a release of its own, and the sides are judged as two folders of the same runs."""
    old, new = side(tmp_path, "a", range(1, 6)), side(tmp_path, "b", range(11, 16), ms=1027.0)
    nightly = [
        replace(one, runs=one.runs.with_columns(release=pl.format("2026-{}-{}", pl.lit(one.asked), pl.int_range(5))))
        for one in (old, new)
    ]
    folders, nights = (compare(*sides, [JUDGED[DEFAULT_METRIC]], None) for sides in ((old, new), nightly))
    assert (folders.verdict, nights.verdict) == ("regression", "regression")
    assert nights.noises == folders.noises


def test_short_runs_are_no_evidence(tmp_path):
    found = compare(side(tmp_path, "a"), side(tmp_path, "b", seeds=(2,), steps=5), [JUDGED[DEFAULT_METRIC]], 0.03)
    assert found.verdict == "insufficient data"
    (run,) = found.left_out
    assert (run.name, run.reason) == ("b2", "too_few_rows")


@pytest.fixture
def folder(tmp_path):
    for name, factor in (("old", 1.0), ("new", 1.05)):
        (tmp_path / name).mkdir()
        for seed in range(3):
            write_run(tmp_path / name / f"{seed}.log", seed + (10 if factor > 1 else 0), 1000 * factor)
    (tmp_path / "old/notes.txt").write_text("not a log\n")
    return tmp_path


def test_each_file_of_a_pattern_is_a_run(tmp_path):
    for seed, name in enumerate(("old-a", "old-b", "old-c", "new-a", "new-b", "new-c")):
        write_run(tmp_path / f"{name}.log", seed, 1030.0 if "new" in name else 1000.0)
    shown = run_logparse("compare", "old-*.log", "new-*.log", cwd=tmp_path).stdout
    assert "baseline: old-*.log, runs: 3" in shown
    assert "candidate: new-*.log, runs: 3" in shown


def test_a_side_of_several_runs_is_not_told_of_an_option_that_compare_has_not(tmp_path):
    (tmp_path / "old/job").mkdir(parents=True)
    write_run(tmp_path / "old/job/a.log", 1)
    (tmp_path / "old/job/b.log").write_text("".join(f"step {n}/9 | loss 2.5 | {n}.0 s\n" for n in range(1, 9)))
    write_run(tmp_path / "new.log", 2)
    write_run(tmp_path / "old/job/c.log", 3, num_layers=40)
    done = run_logparse("compare", "old", "new.log", cwd=tmp_path)
    assert done.returncode == 2
    assert "not one run" in done.stderr
    assert "--each" not in done.stderr


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
        assert set(told["metrics"]) == set(JUDGED)
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
    assert "no verdict: not comparable" in done.stdout
    assert "--allow seq_length" in done.stderr
    told = run_logparse("compare", "a.log", "b.log", "--allow", "seq_length", cwd=tmp_path)
    assert (told.returncode, "seq_length (allowed)" in told.stdout) == (0, True)


def test_exit_codes_of_wrong_sides(tmp_path):
    (tmp_path / "empty.log").write_text("no step here\n")
    write_run(tmp_path / "a.log", 1)
    assert run_logparse("compare", "a.log", "empty.log", cwd=tmp_path).returncode == 3
    assert run_logparse("compare", "a.log", "gone.log", cwd=tmp_path).returncode == 2
    assert run_logparse("compare", "a.log", "release=x", cwd=tmp_path).returncode == 2


def test_sides_that_are_not_comparable_get_the_reason_first_and_no_statistics(tmp_path):
    write_run(tmp_path / "a.log", 1, steps=30)
    write_run(tmp_path / "b.log", 2, steps=30, global_batch_size=64, seq_length=8192)
    done = run_logparse("compare", "a.log", "b.log", cwd=tmp_path)
    title, reason = done.stdout.splitlines()[:2]
    assert title == "no verdict: not comparable"
    assert reason.startswith("! the two sides differ in ")
    for noise in ("threshold:", "one side only", "noise between runs", "differences that may explain it"):
        assert noise not in done.stdout
    (flags,) = re.findall(r"or accept it: --allow ([\w,]+)$", done.stderr, re.MULTILINE)
    assert run_logparse("compare", "a.log", "b.log", "--allow", flags, cwd=tmp_path).returncode == 0
