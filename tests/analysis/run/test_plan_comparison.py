"""Measured against planned: worked by hand on runs made to measure."""

import json
from dataclasses import replace
from datetime import datetime

import polars as pl
import pytest
from fixture_runs import FOLDERS, run_of_fixture
from helpers import SETTINGS, arguments_dump, megatron_line, megatron_log
from runs import stamped_log

from analysis.flops import WORDS, find_formula
from analysis.hardware.devices import peak_by_hand
from analysis.model.parameters import count_parameters
from analysis.present.numbers import percent
from analysis.present.views.expectations import expectation_sentences, expectations_document, plan_sentences
from analysis.present.words import sentences_of
from analysis.published.baselines import published
from analysis.run.analyze_steps import analyze_steps
from analysis.run.checks.expectations import measure_against, mfu_ceiling, pipeline_bubble, plan_against, split_gap
from analysis.run.useful.remaining_time import finished_at, is_end_printed, is_last_line, steps_left
from logparse import analyze
from logparse.context.dialects import interpret
from logparse.context.run_context import Fact, RunContext, build_context
from logparse.decode.read_run import read_run

MEMORY = (
    "[Rank {rank}] (after 1 iterations) memory (MB) | allocated: 1.0 | max allocated: {mb} "
    "| reserved: 1.0 | max reserved: 1.0"
)


def run_of(path, text, tflops=400.0, **facts):
    """Analysis, context and records of a log; ``facts`` are what the log does not tell."""
    path.write_text(text)
    log = read_run([str(path)])
    context = build_context(log.settings, log.format)
    context = RunContext({**context.facts, **{k: Fact(v, "test") for k, v in facts.items()}}, context.notes)
    peak = peak_by_hand(tflops, "bf16") if tflops else None
    analysis = analyze_steps(interpret(log).steps, log.starts, log.records, context, find_formula("ascendspeed"), peak)
    return analysis, context, log.records


def built(analysis):
    """FLOPs of one sample as the model is built."""
    return analysis.computation.flops_per_sample(4096, WORDS["none"], find_formula("megatron"))


def executed(analysis):
    """The same with everything recomputed."""
    return analysis.computation.flops_per_sample(4096, WORDS["full"], find_formula("megatron"))


def sentences(plan):
    return tuple(plan_sentences(plan))


def found(plan, name):
    return [row for row in plan.rows if row.name == name]


def piped(pp=4, **more):
    return {
        "pipeline_model_parallel_size": pp,
        "tensor_model_parallel_size": 2,
        "data_parallel_size": 8 // 2 // pp,
        **more,
    }


def test_gap_to_the_peak_by_cause(tmp_path):
    # batch 32, micro batch 1, one data-parallel rank: 32 micro-batches on 4 stages
    analysis, context, records = run_of(tmp_path / "run.log", megatron_log(30, **piped()))
    assert context.get("num_microbatches") == 32
    assert pipeline_bubble(context) == 3 / 35
    # As the model is built: 42.864 GFLOP per token, 56.889 with everything but the logits once more.
    mfu = analysis.value("mfu")
    hfu = mfu * executed(analysis) / built(analysis)
    assert executed(analysis) / built(analysis) == pytest.approx(56.889 / 42.864, rel=1e-4)
    shares = [part.share for part in split_gap(analysis, context)]
    assert shares == pytest.approx([mfu, hfu - mfu, 3 / 35, 1 - hfu - 3 / 35])
    assert sum(shares) == pytest.approx(1)
    # everything is recomputed: 3 of 4 passes are the model's own
    assert mfu_ceiling(analysis, context) == pytest.approx((1 - 3 / 35) * mfu / hfu)
    told = sentences(plan_against(analysis, context, records))
    assert any("maximum MFU with" in text and percent((1 - 3 / 35) * mfu / hfu) in text for text in told)
    assert any("pipeline bubble 8.6 %" in sentence for sentence in told)


def test_interleaving_makes_the_bubble_smaller():
    facts = {"pipeline_model_parallel_size": 4, "num_microbatches": 32, "virtual_pipeline_model_parallel_size": 2}
    assert pipeline_bubble(RunContext({k: Fact(v, "test") for k, v in facts.items()})) == 3 / 67


def test_without_a_pipeline_there_is_no_bubble():
    assert pipeline_bubble(RunContext({"pipeline_model_parallel_size": Fact(1, "test")})) == 0


def test_what_is_not_known_is_no_gap(tmp_path):
    analysis, context, _ = run_of(tmp_path / "run.log", megatron_log(30), tflops=None)
    assert split_gap(analysis, context) == ()
    assert mfu_ceiling(analysis, context) is None
    assert pipeline_bubble(RunContext()) is None


def test_time_left_by_the_clock(tmp_path):
    lines = stamped_log([(1, 100)], lambda step, place: 7000.0)
    analysis, context, records = run_of(tmp_path / "run.log", arguments_dump(SETTINGS) + "\n".join(lines) + "\n")
    # 500 steps were asked for; the last stamp is 700 s after 08:00:00 of 2026-03-01
    assert steps_left(analysis.steps) == 400
    assert finished_at(analysis.steps, 2800.0) == datetime(2026, 3, 1, 8, 58, 20)
    (row,) = found(plan_against(analysis, context, records), "time_left")
    assert row.measured == pytest.approx(400 * 7.0)
    assert "400 steps, 52,428,800 tokens left" in sentences_of(row.findings)  # 400 x 32 x 4096
    assert "until 2026-03-01 08:58 by the log's clock" in sentences_of(row.findings)
    # What is usual is of clusters of over 100 devices, so nothing is planned for 8.
    assert (row.planned, row.planned_to) == (None, None)


def test_time_left_of_many_devices(tmp_path):
    many = {"world_size": 128, "data_parallel_size": 64, "global_batch_size": 512}
    text = megatron_log(30, **many).replace("global batch size:    32", "global batch size:   512")
    analysis, context, records = run_of(tmp_path / "run.log", text)
    (row,) = found(plan_against(analysis, context, records), "time_left")
    # All that is executed, over 128 devices of 400 TFLOP/s at half and at three tenths of their peak.
    work = executed(analysis) * 512 * 470
    assert row.planned == pytest.approx(work / (128 * 400e12 * 0.5))
    assert row.planned_to == pytest.approx(work / (128 * 400e12 * 0.3))


def test_time_left_at_a_planned_utilisation(tmp_path):
    analysis, context, records = run_of(tmp_path / "run.log", megatron_log(30))
    (row,) = found(plan_against(analysis, context, records, utilisation=0.4), "time_left")
    work = executed(analysis) * 32 * 470
    assert row.planned == pytest.approx(work / (8 * 400e12 * 0.4))
    assert row.planned_to is None


def test_what_is_left_is_a_document(tmp_path):
    lines = stamped_log([(1, 100)], lambda step, place: 7000.0)
    analysis, context, records = run_of(tmp_path / "run.log", arguments_dump(SETTINGS) + "\n".join(lines) + "\n")
    told = expectations_document(measure_against(analysis, context, records, published()))["planned"]["left"]
    # Every step took 7 s, so nothing ranges.
    seconds = dict.fromkeys(("seconds", "seconds_low", "seconds_high"), 2800.0)
    assert told == {
        "steps": 400,
        "tokens": 52_428_800,
        "ends_at": "2026-03-01T08:58:20",
        **seconds,
        "unseen_batches": None,
    }


def test_no_date_lies_beyond_the_calendar(tmp_path):
    lines = stamped_log([(1, 100)], lambda step, place: 7000.0)
    analysis, _, _ = run_of(tmp_path / "run.log", arguments_dump(SETTINGS) + "\n".join(lines) + "\n")
    assert finished_at(analysis.steps, 1e13) is None


def test_a_finished_run_has_no_time_left(tmp_path):
    lines = [megatron_line(step, 1000.0) for step in range(470, 501)]
    analysis, context, records = run_of(tmp_path / "run.log", arguments_dump(SETTINGS) + "\n".join(lines) + "\n")
    assert steps_left(analysis.steps) == 0
    assert not found(plan_against(analysis, context, records), "time_left")


@pytest.mark.parametrize(("tflops", "where"), [(250.0, "below"), (150.0, "within"), (90.0, "above")])
def test_utilisation_beside_what_is_usual(tmp_path, tflops, where):
    # about 1 s for 32 x 4096 tokens of a LLaMA2-7B on 128 devices, all recomputed, is about 61 TFLOP/s on each
    text = megatron_log(30, world_size=128, data_parallel_size=64)
    analysis, context, records = run_of(tmp_path / "run.log", text, tflops=tflops)
    (row,) = found(plan_against(analysis, context, records), "utilisation")
    assert sentences_of(row.findings).endswith(f", {where} the 30 % to 50 % typical of over 100 devices")


def test_few_devices_are_not_judged_by_what_is_usual_for_many(tmp_path):
    analysis, context, records = run_of(tmp_path / "run.log", megatron_log(30), tflops=4000.0)
    (row,) = found(plan_against(analysis, context, records), "utilisation")
    assert sentences_of(row.findings) == f"{percent(row.measured)} of the peak (HFU including stalls)"
    assert (row.planned, row.planned_to) == (None, None)


def test_time_left_is_not_planned_beyond_what_the_bubble_leaves(tmp_path):
    # 4 micro-batches on 8 stages, of which 4 / 11 of the time is left; 128 devices, for which there is a usual share
    text = megatron_log(30, world_size=128, pipeline_model_parallel_size=8, data_parallel_size=8)
    analysis, context, records = run_of(tmp_path / "run.log", text, num_microbatches=4)
    (row,) = found(plan_against(analysis, context, records), "time_left")
    assert f"at {percent(4 / 11)} of the peak: " in sentences_of(row.findings)
    assert row.planned_to is None


def test_a_gap_below_nothing_is_said_to_be_impossible(tmp_path):
    analysis, context, records = run_of(tmp_path / "run.log", megatron_log(30), tflops=500.0)
    told = sentences(plan_against(analysis, context, records))
    assert "the rest is negative: the peak or a pipeline setting is wrong" in told
    assert split_gap(analysis, context)[-1].share < 0


def with_memory(*lines, **settings):
    return megatron_log(30, **settings) + "".join(f"{line}\n" for line in lines)


def test_memory_of_each_stage_beside_its_estimate(tmp_path):
    settings = piped(recompute_granularity=None)
    text = with_memory(*(MEMORY.format(rank=r, mb=10_000.0 + r) for r in range(8)), **settings)
    facts = {"zero_stage": 0, "num_query_groups": 32, "sequence_parallel": True, "flash_attention": True}
    analysis, context, records = run_of(tmp_path / "run.log", text, **facts)
    rows = found(plan_against(analysis, context, records), "memory")
    # two ranks of tensor parallelism on each of four stages
    assert [row.measured for row in rows] == [mb * 2**20 for mb in (10_001.0, 10_003.0, 10_005.0, 10_007.0)]
    counted = count_parameters(analysis.computation.shape)
    norms = 8 * 2 * 4096
    held = (8 * (counted.attention + counted.mlp) + counted.embedding) / 2 + norms
    kept = 4096 * 4 * 8 * (16 * 4096 + 6 * 11008) / 2
    assert rows[0].planned == pytest.approx(18 * held + kept)
    assert sentences_of(rows[0].findings).startswith("stage 1: 10.49 GB allocated at most; ")


def test_both_are_expected_where_the_log_does_not_tell_of_zero(tmp_path):
    text = with_memory(MEMORY.format(rank=0, mb=10_000.0))
    analysis, context, records = run_of(tmp_path / "run.log", text, num_query_groups=32)
    plan = plan_against(analysis, context, records)
    (row,) = found(plan, "memory")
    assert row.planned < row.planned_to
    assert "with ZeRO-1" in sentences_of(row.findings)
    # everything is recomputed, so flash attention does not matter; a gated MLP is of a model without dropout
    assert plan.assumed == ("sequence_parallel",)
    assert sentences(plan)[-1].endswith("assumed for the memory: sequence_parallel False")


def test_memory_of_an_unknown_shape_is_not_estimated(tmp_path):
    text = with_memory(MEMORY.format(rank=0, mb=10_000.0), ffn_hidden_size=None)
    analysis, context, records = run_of(tmp_path / "run.log", text)
    (row,) = found(plan_against(analysis, context, records), "memory")
    assert row.planned is None
    assert row.measured == 10_000 * 2**20
    assert sentences_of(row.findings).endswith("; not estimated: ffn_hidden_size unknown; pass --ffn-hidden-size")


@pytest.mark.parametrize("name", ["tensor_model_parallel_size", "pipeline_model_parallel_size"])
def test_a_layout_is_not_taken_for_granted(tmp_path, name):
    analysis, context, records = run_of(tmp_path / "run.log", with_memory(MEMORY.format(rank=0, mb=10_000.0)))
    unknown = RunContext({n: fact for n, fact in context.facts.items() if n != name})
    (row,) = found(plan_against(analysis, unknown, records), "memory")
    assert row.planned is None
    assert f"{name} unknown; pass --{name.replace('_', '-')}" in sentences_of(row.findings)


def test_what_is_not_printed_is_taken_for_the_memory_and_said(tmp_path):
    analysis, context, records = run_of(tmp_path / "run.log", with_memory(MEMORY.format(rank=0, mb=10_000.0)))
    silent = ("recompute", "precision", "dropout", "flash_attention", "sequence_parallel", "gated_linear_unit")
    bare = RunContext({n: fact for n, fact in context.facts.items() if n not in silent})
    assumed = sentences(plan_against(analysis, bare, records))[-1].split(": ")[-1]
    assert assumed == "sequence_parallel False, recompute none, precision bf16, flash_attention True, dropout False"


def test_a_log_without_memory_lines_says_nothing_of_it(tmp_path):
    analysis, context, records = run_of(tmp_path / "run.log", megatron_log(30))
    plan = plan_against(analysis, context, records)
    assert not found(plan, "memory")
    assert plan.assumed == ()


def test_every_fixture_can_be_planned():
    for folder in FOLDERS:
        plan = run_of_fixture(folder).expectations.plan
        assert all(sentences_of(row.findings) for row in plan.rows), folder
        assert not plan.gap or sum(part.share for part in plan.gap) == pytest.approx(1), folder


def test_no_steps_asked_for_is_no_time_left(tmp_path):
    analysis, context, records = run_of(tmp_path / "run.log", megatron_log(30))
    unasked = replace(analysis, steps=analysis.steps.with_columns(train_steps=pl.lit(None, pl.Int64)))
    assert steps_left(unasked.steps) is None
    assert not found(plan_against(unasked, context, records), "time_left")


def test_both_yardsticks_of_a_run_as_sentences_and_as_json(tmp_path):
    analysis, context, records = run_of(tmp_path / "run.log", megatron_log(30), num_query_groups=32)
    found = measure_against(analysis, context, records, published())
    # the peak was given by hand, so the device of the run is not known
    expected = "for LLaMA2-7B, 1x8, BF16, on 910B; reference system: 2,884"
    assert any(expected in said for said in expectation_sentences(found))
    told = json.loads(json.dumps(expectations_document(found), allow_nan=False))
    assert told["published"]["matches"][0]["name"] == "modellink-llama2-7b-1x8"
    assert {row["name"] for row in told["planned"]["rows"]} == {"time_left", "utilisation"}
    chosen = measure_against(analysis, context, records, published(), "modellink-8160b55a-llama2-7b-1x8")
    assert "published 4,672" in expectation_sentences(chosen)[-1]


@pytest.mark.parametrize(("last", "iterations", "is_last"), [(499, 2, True), (500, 2, True), (498, 2, False)])
def test_the_last_steps_may_be_too_few_for_a_line(last, iterations, is_last):
    row = {"source": "run.log", "line_number": 5, "step": last, "iterations": iterations, "train_steps": 500}
    assert is_last_line(pl.DataFrame([row | {"copied": False}])) == is_last


@pytest.mark.parametrize(("first", "is_last"), [(0, True), (10, False)])
def test_steps_that_count_from_0_end_one_before_the_plan(first, is_last):
    row = {"source": "run.log", "line_number": 5, "iterations": 10, "train_steps": 200, "copied": False}
    assert is_last_line(pl.DataFrame([row | {"step": first}, row | {"step": 190}])) == is_last


@pytest.mark.parametrize(("end", "printed"), [(9, True), (3, False), (None, False)])
def test_an_end_is_printed_after_the_last_step(end, printed):
    steps = pl.DataFrame({"source": ["run.log"], "line_number": [5], "step": [499], "copied": [False]})
    ends = [] if end is None else [end]
    events = pl.DataFrame(
        {"kind": ["training ends"] * len(ends), "source": ["run.log"] * len(ends), "line_number": ends},
        schema={"kind": pl.String, "source": pl.String, "line_number": pl.Int64},
    )
    assert is_end_printed(steps, events) == printed


@pytest.mark.parametrize(
    ("end", "left"), [("[after training is done] datetime: 2026-03-01 12:10:00 \n", None), ("", 3)]
)
def test_a_run_that_completed_has_no_step_left_that_no_line_is_of(tmp_path, end, left):
    lines = [megatron_line(step) for step in range(452, 498, 5)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n" + end)
    plan = analyze(tmp_path / "run.log").expectations.plan
    assert (plan.left.steps if plan.left else None) == left
