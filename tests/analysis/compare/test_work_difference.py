"""Faster because it does less: seeded pairs, each of which must be told."""

import json

import polars as pl
import pytest
from helpers import run_logparse, sweep_after
from releases import as_steps, fill, record, write_run

from analysis.compare.comparison import Side, compare
from analysis.compare.final_loss import final_losses
from analysis.compare.verdict import judge
from analysis.compare.work_difference import COUNTED, Less, compared_work, explain, find_less, learns_less, work_of
from analysis.history.run_records import run_frame
from analysis.metrics import FINAL_LOSS, JUDGED
from analysis.present.markdown import markdown
from analysis.present.views.compare import compose_answer

pytestmark = pytest.mark.usefixtures("analysed_once")

MOE = {"num_experts": 8, "moe_router_topk": 2, "moe_ffn_hidden_size": 11008, "moe_expert_capacity_factor": None}
# By what is less: settings of the baseline, those of the candidate, the fields that must be allowed to differ.
LESS = {
    "samples": ({}, {"global_batch_size": 16}, ["global_batch_size"]),
    "length": ({}, {"seq_length": 2048}, ["seq_length"]),
    "size": (MOE, {"moe_router_topk": 1}, ["moe_router_topk"]),
    "experts": (MOE, {"moe_expert_capacity_factor": 1.0}, []),
    "attention": ({}, {"use_packed_seq_params": True}, []),
}


def side(folder, name, ms, **settings):
    place = 100 * (name == "b")
    logs = [write_run(folder / f"{name}{seed}.log", place + seed, ms, **settings) for seed in range(2)]
    records = [record(log, name) for log in logs]
    runs = pl.concat(r.summary for r in records).with_columns(release=pl.lit(name))
    return Side(name, runs, runs, {r.run_id: r.steps for r in records}.__getitem__)


def told(old, new, allowed=(), metric="steady_step_time_ms"):
    return compare(old, new, [JUDGED[metric]], 0.03, allowed, everything=False)


@pytest.mark.parametrize("kind", LESS)
def test_faster_because_it_does_less(tmp_path, kind):
    usual, less, fields = LESS[kind]
    sides = side(tmp_path, "a", 1000, **usual), side(tmp_path, "b", 800, **(usual | less))
    found = told(*sides, fields)
    assert (found.verdict, found.findings[0].reason) == ("less work", "faster_by_less")
    assert kind in [one.kind for one in found.less_work]
    refused = told(*sides)
    assert refused.verdict == (None if fields else "less work")
    assert "less work: " in markdown(compose_answer(refused))


@pytest.mark.parametrize("kind", sweep_after(2, LESS))
def test_who_does_more_does_not_do_less(tmp_path, kind):
    usual, less, fields = LESS[kind]
    found = told(side(tmp_path, "a", 1000, **(usual | less)), side(tmp_path, "b", 800, **usual), fields)
    assert (found.verdict, found.less_work) == ("suspicious", ())


def test_less_work_in_the_same_time_is_no_good_news(tmp_path):
    sides = side(tmp_path, "a", 1000), side(tmp_path, "b", 1000, global_batch_size=16)
    found = told(*sides, ["global_batch_size"])
    assert (found.verdict, found.findings[0].reason) == ("less work", "less_not_faster")
    # Tokens per second take account of the batch by themselves.
    assert told(*sides, ["global_batch_size"], "tokens_per_second_per_device").verdict == "regression"


def test_who_is_slower_all_the_same_is_slower(tmp_path):
    found = told(side(tmp_path, "a", 1000), side(tmp_path, "b", 1200, global_batch_size=16), ["global_batch_size"])
    assert found.verdict == "regression"


def test_losses_are_compared_at_equal_tokens(tmp_path):
    """The loss falls by tokens, a step of the second has half of them: at equal steps it would be behind."""

    def run(batch, steps):
        step = pl.int_range(1, steps + 1, eager=True)
        return as_steps(step=step, consumed_samples=batch * step, loss=1000 / (batch * step), seq_length=[4096] * steps)

    losses = final_losses([("a", run(32, 40)), ("b", run(16, 80))])
    assert losses["a"] == pytest.approx(losses["b"])
    assert final_losses([("a", run(32, 40)), ("b", run(32, 80))])["a"] == pytest.approx(losses["a"])


def test_losses_of_other_batches_are_compared_at_equal_tokens_or_not_at_all():
    """A log without consumed samples counts them if its batch is constant; those of a ramp are unknown."""

    def run(batch, steps):
        step = pl.int_range(1, steps + 1, eager=True)
        return as_steps(step=step, global_batch_size=batch, loss=1000 / (32 * step), seq_length=[4096] * steps)

    constant, ramp = run([32] * 40, 40), run([16] * 20 + [32] * 20, 40)
    halved = run([16] * 80, 80).with_columns(loss=1000 / (16 * pl.col("step")))
    losses = final_losses([("a", constant), ("b", halved)])
    assert losses["a"] == pytest.approx(losses["b"])
    assert final_losses([("a", constant), ("b", ramp)]) == {}
    assert set(final_losses([("a", ramp), ("b", ramp)])) == {"a", "b"}


def test_a_batch_that_grows_for_a_while_is_no_less():
    """Of a shorter run a larger part is the ramp; tokens are those that were consumed, packed or not."""

    def run(steps, tokens=4000):
        batch = [16] * 5 + [32] * (steps - 5)
        at = range(1, steps + 1)
        return as_steps(step=at, global_batch_size=batch, counted=[True] * steps, source="a").with_columns(
            consumed_tokens=pl.Series(batch).cum_sum() * tokens
        )

    def work(name, steps, **how):
        row = run_frame([{"run_id": name, "model_tflops_per_second_per_device": 1.0}])
        return work_of(row, [(name, run(steps, **how))])

    assert work("a", 100).select("samples", "tokens").row(0) == (32.0, 4000.0)
    assert find_less(work("a", 100), work("b", 15)) == ()
    (less,) = find_less(work("a", 100), work("b", 100, tokens=3000))
    assert (less.kind, less.baseline, less.candidate) == ("tokens", 4000.0, 3000.0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"moe_train_capacity_factor": 2.0}, {"moe_eval_capacity_factor": 1.0}),
        ({"moe_train_capacity_factor": None}, {"moe_train_capacity_factor": 1.0, "moe_token_dropping": False}),
    ],
    ids=["of evaluations", "where none is dropped"],
)
def test_a_capacity_by_which_no_token_is_dropped_is_no_less(before, after):
    found = [experts(MOE | before), experts(MOE | before | after)]
    assert found[0] <= found[1]


def experts(settings):
    """The capacity of experts by the settings of a run."""
    named = [
        {"name": name, "value": str(value)} for name, value in settings.items() if "capacity" in name or "drop" in name
    ]
    return work_of(run_frame([{"run_id": "a", "num_experts": 8, "settings": named}]), [])["experts"].item()


def test_one_who_prints_what_was_consumed_does_no_less():
    """The other tells the length of its samples alone."""
    step = range(1, 41)
    known = as_steps(step=step, global_batch_size=[32] * 40, seq_length=[4096] * 40, counted=[True] * 40, source="a")
    told = known.with_columns(consumed_tokens=pl.Series(step) * 32 * 3900)
    row = run_frame([{"run_id": "a"}])
    assert compared_work((row, [("a", known)]), (row, [("a", told)])) == ()
    assert [
        one.kind
        for one in compared_work((row, [("a", told.with_columns(pl.col("consumed_tokens") * 2))]), (row, [("a", told)]))
    ] == ["tokens"]


def test_runs_of_different_lengths_are_compared_at_the_steps_that_all_did():
    def run(steps):
        at = range(1, steps + 1)
        skipped = [int(step <= 4) for step in at]
        batch = [16 if step <= 30 else 32 for step in at]
        return as_steps(
            step=at, skipped_iterations=skipped, global_batch_size=batch, counted=[True] * steps, iterations=1
        )

    row = run_frame([{"run_id": "a"}])
    assert compared_work((row, [("a", run(100))]), (row, [("a", run(45))])) == ()
    assert compared_work((row, [("a", run(100))]), (row, [("a", run(20))])) == ()


def test_a_padded_vocabulary_hides_no_layers_that_are_gone():
    row = {"run_id": "a", "num_layers": 32, "hidden_size": 4096, "padded_vocab_size": 32000}
    old, less = run_frame([row]), run_frame([row | {"num_layers": 16, "padded_vocab_size": 32256}])
    assert [one.name for one in compared_work((old, []), (less, []))] == ["num_layers"]
    wide = run_frame([row | {"num_layers": 31, "hidden_size": 8192}])
    assert compared_work((old, []), (wide, [])) == ()


@pytest.mark.parametrize("kind", ["samples", "length", "tokens"])
def test_whatever_a_step_holds_less_of_its_time_does_not_tell(kind):
    alike = judge(JUDGED["steady_step_time_ms"], [1000.0] * 3, [1000.0] * 3, 0.03)
    assert explain(alike, [Less(kind, kind, 2.0, 1.0)]).reason == "less_not_faster"
    assert explain(alike, [Less("updates", "updates", 1.0, 0.9)]) == alike


def test_a_loss_that_is_as_good_as_the_same_is_not_less_learnt():
    better = [4.26, 4.261, 4.262, 4.263, 4.264]
    assert learns_less(judge(FINAL_LOSS, better, [x + 0.006 for x in better], 0.03)) is None
    assert learns_less(judge(FINAL_LOSS, better, [x + 0.06 for x in better], 0.03)).kind == "learning"


@pytest.mark.parametrize("usual", [{"num_experts": 8}, {"moe_expert_capacity_factor": None}], ids=["unsaid", "dense"])
def test_a_capacity_that_means_nothing_is_no_less(tmp_path, usual):
    """A newer version may print what the old one did not, and so may a model without experts."""
    limited = usual | {"moe_expert_capacity_factor": 1.0}
    found = told(side(tmp_path, "a", 1000, **usual), side(tmp_path, "b", 800, **limited))
    assert (found.verdict, found.less_work) == ("suspicious", ())


def test_the_gate_tells_it(tmp_path):
    capacity = {**MOE, "moe_expert_capacity_factor": 1.25}
    fill(tmp_path, {"old": (1000.0, 2, MOE), "new": (900.0, 2, capacity)})
    sides = (
        "--baseline",
        "release=old",
        "--candidate",
        "release=new",
        "--history",
        "h",
        "--metric",
        "steady_step_time_ms",
    )
    done = run_logparse("gate", *sides, "-o", "out", cwd=tmp_path)
    assert done.returncode == 0
    assert "verdict: less work" in done.stdout
    assert "expert capacity 1.25, tokens beyond it are dropped; none were dropped before" in " ".join(
        done.stdout.split()
    )
    assert "<failure" not in (tmp_path / "out" / "junit.xml").read_text()
    failed = run_logparse("gate", *sides, "--fail-on", "less work", "--json", cwd=tmp_path)
    found = json.loads(failed.stdout)
    assert (failed.returncode, found["verdict"]) == (1, "less work")
    assert found["less_work"] == [{"kind": "experts", "name": "experts", "baseline": None, "candidate": 1.25}]


def test_every_metric_of_speed_says_what_it_takes_account_of():
    speeds = [m for m in JUDGED.values() if m.rated or m.unit == "ms"]
    assert speeds
    assert {m.unit for m in speeds} <= set(COUNTED)
