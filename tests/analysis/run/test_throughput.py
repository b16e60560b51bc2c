"""Rates per step against numbers worked by hand, and the laws any rate obeys."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_series_equal

from analysis.flops import all_formulas, find_formula
from analysis.hardware.devices import DevicePeak, peak_by_hand
from analysis.run.rates.throughput import compute_metrics, fill_batch, plan_computation
from analysis.run.tables import STEP_COLUMNS
from logparse.context.run_context import Fact, RunContext
from logparse.findings import Origin
from logparse.schema import conform

LLAMA2_7B = {
    "num_layers": 32,
    "hidden_size": 4096,
    "ffn_hidden_size": 11008,
    "gated_linear_unit": True,
    "num_attention_heads": 32,
    "num_query_groups": 32,
    "kv_channels": 128,
    "padded_vocab_size": 32000,
    "untie_embeddings_and_output_weights": True,
}
GOLDEN = LLAMA2_7B | {"seq_length": 4096, "global_batch_size": 256, "world_size": 8, "recompute": "none"}
RATES = [c.name for c in STEP_COLUMNS if c.name.endswith("_per_second_per_device") and "logged" not in c.name]
SHARES = ("peak_utilization", "mfu", "hfu")
PEAK = peak_by_hand(1000.0, "bf16")
# The real model, per token: in each of 32 layers projections 4 x 4096^2, half a core of 4096 x 4096, three matrices of
# 4096 x 11008; logits 4096 x 32000; six operations a weight; 13,107.2 tokens/s of a peak of 1000 TFLOP/s.
LAYERS = 6 * 32 * (5 * 4096**2 + 3 * 4096 * 11008)
MODEL = LAYERS + 6 * 4096 * 32000
MFU = MODEL * 13_107.2 / 1e15


def known(facts: dict[str, object]) -> RunContext:
    return RunContext({name: Fact(value, Origin("assumed")) for name, value in facts.items() if value is not None})


def compute(
    facts: dict[str, object], formula: str = "ascendspeed", peak: DevicePeak | None = PEAK, **columns: list[object]
) -> pl.DataFrame:
    """Rates of rows made of ``columns``; one row of 10 s unless they say otherwise."""
    how = plan_computation(known(facts), find_formula(formula), peak)
    steps = conform(pl.DataFrame({"step_time_ms": [10_000.0]} | columns, strict=False), STEP_COLUMNS)
    return compute_metrics(fill_batch(steps, how), how)


def one(facts: dict[str, object], formula: str = "ascendspeed", peak: DevicePeak | None = PEAK) -> dict[str, object]:
    """The rates of a single step of 10 s."""
    return compute(facts, formula, peak).row(0, named=True)


def test_the_worked_example_without_recompute():
    row = one(GOLDEN)
    assert row["samples_per_second_per_device"] == pytest.approx(3.2, rel=1e-15)  # 256 / 10 s / 8
    assert row["tokens_per_second_per_device"] == pytest.approx(13_107.2, rel=1e-15)  # times 4096
    assert row["tflops_per_second_per_device"] == pytest.approx(598.8283922251776, rel=1e-14)
    assert row["peak_utilization"] == pytest.approx(0.5988283922251776, rel=1e-14)  # of a peak of 1000
    assert row["mfu"] == row["hfu"] == pytest.approx(MFU, rel=1e-14)


def test_the_worked_example_with_full_recompute():
    row = one(GOLDEN | {"recompute": "full"})
    assert row["tflops_per_second_per_device"] == pytest.approx(798.4378563002368, rel=1e-14)
    assert row["peak_utilization"] == pytest.approx(0.7984378563002368, rel=1e-14)
    assert row["mfu"] == pytest.approx(MFU, rel=1e-14)


@pytest.mark.parametrize(
    ("recompute", "flops", "factor"),
    [
        ("none", 4.790627137801421e16, 3),
        ("full", 798.4378563002368 * 8 * 10 * 1e12, 4),
        ("selective", 4.790627137801421e16, 3),
        (None, 4.790627137801421e16, 3),
    ],
)
def test_the_flops_of_one_iteration(recompute, flops, factor):
    how = plan_computation(known(GOLDEN | {"recompute": recompute}), find_formula("ascendspeed"), None)
    assert how.flops_per_sample(4096, how.quoted) * 256 == pytest.approx(flops, rel=1e-14)
    assert how.recompute_factor == factor


def test_selective_recompute_repeats_the_forward_pass_of_the_attention_core():
    # One forward pass of the causal half: 2 s l h = 2 x 4096 x 32 x 4096 = 1,073,741,824 FLOPs per token.
    row = one(GOLDEN | {"recompute": "selective"})
    assert row["hfu"] - row["mfu"] == pytest.approx(1_073_741_824 * 13_107.2 / 1e15)
    assert row["tflops_per_second_per_device"] == pytest.approx(598.8283922251776)


def test_mfu_counts_no_recompute_and_hfu_does():
    # The forward pass of every layer again, not that of the logits.
    row = one(GOLDEN | {"recompute": "full"})
    assert row["mfu"] == pytest.approx(MFU)
    assert row["hfu"] == pytest.approx((MODEL + LAYERS / 3) * 13_107.2 / 1e15)


def test_a_formula_quotes_recompute_where_it_says_so():
    for name, formula in all_formulas().items():
        full, none = (one(GOLDEN | {"recompute": what}, name) for what in ("full", "none"))
        counts_it = full["tflops_per_second_per_device"] > none["tflops_per_second_per_device"]
        assert counts_it == formula.quotes_recompute, name
    quoting = {name for name in ("ascendspeed", "megatron", "6n", "palm") if find_formula(name).quotes_recompute}
    assert quoting == {"ascendspeed"}


def test_without_a_recompute_setting_there_is_mfu_but_no_hfu():
    row = one(GOLDEN | {"recompute": None})
    assert row["mfu"] == pytest.approx(MFU)
    assert row["hfu"] is None


def test_each_row_of_a_ramp_up_has_its_own_batch():
    # 4 devices, 2 s: 16 samples are 2 samples/s/p. The last row prints no batch and takes the run's.
    columns = {"step_time_ms": [2000.0] * 3, "global_batch_size": [16, 32, None]}
    steps = compute(GOLDEN | {"world_size": 4, "global_batch_size": 64}, **columns)
    assert steps["samples_per_second_per_device"].to_list() == [2.0, 4.0, 8.0]
    assert steps["tokens_per_second_per_device"].to_list() == [8192.0, 16384.0, 32768.0]
    assert steps["global_batch_size"].to_list() == [16, 32, 64]


def test_each_row_of_a_curriculum_has_its_own_sequence_length():
    # l 2, h 8, V 16: 72 x 2 x 64 + 12 s x 2 x 8 + 4.5 x 16 x 8 = 9792 + 192 s FLOPs per token; 5 samples in 1 s.
    tiny = {"num_layers": 2, "hidden_size": 8, "padded_vocab_size": 16, "seq_length": 40, "world_size": 1}
    columns = {"step_time_ms": [1000.0] * 3, "seq_length": [10, 20, None]}
    steps = compute(tiny | {"global_batch_size": 5}, **columns)
    assert steps["tokens_per_second_per_device"].to_list() == [50.0, 100.0, 200.0]
    by_hand = [50 * 11_712e-12, 100 * 13_632e-12, 200 * 17_472e-12]
    assert steps["tflops_per_second_per_device"].to_list() == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("missing", "unknown"),
    [
        ("world_size", {*RATES, *SHARES}),
        ("global_batch_size", {*RATES, *SHARES}),
        ("seq_length", {*RATES, *SHARES} - {"samples_per_second_per_device"}),
        (
            "hidden_size",
            {*RATES, *SHARES} - {"samples_per_second_per_device", "tokens_per_second_per_device"},
        ),
        ("recompute", {"hfu"}),
    ],
)
def test_an_unknown_input_makes_null_what_needs_it_and_nothing_else(missing, unknown):
    row = one(GOLDEN | {missing: None})
    assert {name for name in (*RATES, *SHARES) if row[name] is None} == unknown


def test_without_a_peak_only_the_utilisations_are_null():
    row = one(GOLDEN, peak=None)
    assert {name for name in (*RATES, *SHARES) if row[name] is None} == set(SHARES)


@pytest.mark.parametrize("time", [0.0, -5.0, None])
def test_a_time_that_is_not_above_0_has_no_rate(time):
    steps = compute(GOLDEN, step_time_ms=[time])
    assert steps.select(*RATES, *SHARES).null_count().row(0) == (1,) * (len(RATES) + len(SHARES))


WORK = st.fixed_dictionaries(
    {
        "world_size": st.integers(1, 4096),
        "global_batch_size": st.integers(1, 10_000),
        "seq_length": st.integers(1, 100_000),
        "recompute": st.sampled_from(["none", "selective", "full"]),
    }
)
TIMES = st.lists(st.floats(0.1, 1e7), min_size=1, max_size=5)
FORMULAS = st.sampled_from(list(all_formulas()))


@given(WORK, TIMES, FORMULAS)
def test_doubling_the_devices_halves_every_rate(work, times, formula):
    one_size = compute(LLAMA2_7B | work, formula, step_time_ms=times)
    twice = compute(LLAMA2_7B | work | {"world_size": 2 * work["world_size"]}, formula, step_time_ms=times)
    for name in (*RATES, *SHARES):
        assert_series_equal(one_size[name], twice[name] * 2, rel_tol=1e-12)


@given(WORK, TIMES, FORMULAS)
def test_twice_the_batch_in_twice_the_time_is_the_same_rate(work, times, formula):
    once = compute(LLAMA2_7B | work, formula, step_time_ms=times)
    batch = 2 * work["global_batch_size"]
    twice = compute(LLAMA2_7B | work | {"global_batch_size": batch}, formula, step_time_ms=[2 * t for t in times])
    for name in (*RATES, *SHARES):
        assert_series_equal(once[name], twice[name], rel_tol=1e-12)


@given(WORK, TIMES, FORMULAS)
def test_recompute_executes_more_and_never_helps_mfu(work, times, formula):
    steps = compute(LLAMA2_7B | work, formula, step_time_ms=times)
    without = compute(LLAMA2_7B | work | {"recompute": "none"}, formula, step_time_ms=times)
    assert (steps["mfu"] <= steps["hfu"]).all()
    assert_series_equal(steps["mfu"], without["mfu"])
    if work["recompute"] != "none":
        assert (steps["mfu"] < steps["hfu"]).all()


@given(WORK, TIMES)
def test_the_rate_of_all_devices_times_the_time_is_the_flops_of_the_iteration(work, times):
    facts = LLAMA2_7B | work
    steps = compute(facts, step_time_ms=times)
    how = plan_computation(known(facts), find_formula("ascendspeed"), PEAK)
    flops = steps["tflops_per_second_per_device"] * 1e12 * work["world_size"] * steps["step_time_ms"] / 1000
    quoted = how.flops_per_sample(work["seq_length"], how.quoted) * work["global_batch_size"]
    assert flops.to_list() == pytest.approx([quoted] * len(times))
