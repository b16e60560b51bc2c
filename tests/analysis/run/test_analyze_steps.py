"""One run from frames to numbers, and the notes that must stand beside them."""

import re

import polars as pl
import pytest
from helpers import of_code

from analysis.flops import all_formulas, find_formula
from analysis.hardware.devices import DevicePeak, peak_by_hand, resolve_peak
from analysis.present.words import say
from analysis.run.analyze_steps import analyze_steps
from analysis.run.notes import unknown
from analysis.run.result import Analysis
from analysis.run.rows.exclusion_reasons import NAN, WARM_UP
from analysis.run.tables import COMPUTED_COLUMNS, STEP_COLUMNS
from logparse.context.run_context import Fact, RunContext
from logparse.findings import Note, Origin, info, warning
from logparse.schema import DECODED_COLUMNS, QUANTITIES, RECORD_COLUMNS, conform

GOLDEN = {
    "num_layers": 32,
    "hidden_size": 4096,
    "padded_vocab_size": 32000,
    # An MLP so wide that the count as built is 1 % from that of AscendSpeed: 45.2 GFLOP per token.
    "ffn_hidden_size": 12000,
    "gated_linear_unit": True,
    "num_attention_heads": 32,
    "num_query_groups": 32,
    "kv_channels": 128,
    "seq_length": 4096,
    "global_batch_size": 256,
    "world_size": 8,
    "recompute": "none",
}
NO_RECORDS = {name: pl.DataFrame(schema={c.name: c.dtype for c in columns}) for name, columns in RECORD_COLUMNS.items()}
BY_HAND = Origin("assumed")
NO_STARTS = pl.DataFrame(schema={"source": pl.String, "line_number": pl.Int64})


def run(
    facts: dict[str, object], peak: DevicePeak | None = None, formula: str = "ascendspeed", **columns: list[object]
) -> Analysis:
    """Analyze rows made of ``columns``: a first row of 90 s and three of 10 s unless they say otherwise."""
    times = columns.pop("step_time_ms", [90_000.0, 10_000.0, 10_000.0, 10_000.0])
    count = len(times)
    lines = {"run": ["r"] * count, "source": ["a.log"] * count, "line_number": list(range(count))}
    frame = pl.DataFrame(
        {**lines, "step": list(range(1, count + 1)), "step_time_ms": times} | columns, strict=False
    ).pipe(conform, (*DECODED_COLUMNS, COMPUTED_COLUMNS[0]))
    context = RunContext({name: Fact(value, BY_HAND) for name, value in facts.items() if value is not None})
    return analyze_steps(frame, NO_STARTS, NO_RECORDS, context, find_formula(formula), peak)


def warnings(result: Analysis) -> list[Note]:
    return [note for note in result.notes if note.level == "warning"]


# TFLOP/s of the real model in the worked example: six operations for each weight, and the causal half of the core.
REAL = 6 * (32 * (5 * 4096**2 + 3 * 4096 * 12000) + 4096 * 32000) * 13_107.2 / 1e12


def test_the_worked_example():
    result = run(GOLDEN)
    assert result.flops_per_iteration == pytest.approx(4.790627137801421e16, rel=1e-14)
    assert result.value("tflops_per_second_per_device") == pytest.approx(598.8283922251776, rel=1e-14)
    assert result.value("tflops_per_second_per_device", "mean") == pytest.approx(598.8283922251776, rel=1e-14)
    assert result.value("elapsed_time_per_iteration_ms", "n") == 3


def test_nothing_is_said_of_a_run_in_which_all_is_known_and_plausible():
    assert run(GOLDEN, peak_by_hand(1000.0, "bf16")).notes == ()


def test_the_rows_come_back_whole_with_the_columns_of_the_schema():
    result = run(GOLDEN)
    assert result.steps.columns == [c.name for c in STEP_COLUMNS]
    assert result.steps["excluded_reason"].to_list() == [WARM_UP, None, None, None]
    assert result.steps["tflops_per_second_per_device"].null_count() == 0


def test_more_than_the_peak_is_a_warning():
    peak, _ = resolve_peak("910b2", "bf16")
    (note,) = of_code(run(GOLDEN, peak).notes, "above_peak")
    assert (note.level, note.fields["metric"]) == ("warning", "mfu")
    assert note.fields["share"] == pytest.approx(REAL / 353.89)
    assert note.fields["peak_tflops_per_second"] == 353.89
    assert say(note).startswith("MFU is 167.4 % of 353.89 TFLOP/s, above the peak: ")


def test_more_than_an_assumed_peak_names_the_number_types_that_are_possible():
    peak, _ = resolve_peak("gb200", None)
    fast = GOLDEN | {"world_size": 1}
    (note,) = of_code(run(fast, peak).notes, "above_assumed_peak")
    assert (note.fields["dtype"], note.fields["types"]) == ("bf16", ["fp8", "fp4"])
    assert "pass --dtype (fp8, fp4 are possible)" in say(note)
    (known,) = of_code(run(fast | {"precision": "bf16"}, peak).notes, "above_peak")
    assert known.fields["share"] == note.fields["share"]
    # No number type of this device is fast enough.
    assert of_code(run(fast, resolve_peak("l40s", None)[0]).notes, "above_peak")


def test_more_than_trainings_reach_by_an_assumed_peak_names_the_faster_number_types():
    peak, _ = resolve_peak("gb200", None)
    (note,) = of_code(run(GOLDEN | {"world_size": 2}, peak).notes, "high_for_assumed_peak")
    assert (note.fields["share"], note.fields["types"]) == (pytest.approx(0.948, abs=0.001), ["fp8", "fp4"])
    given = run(GOLDEN | {"world_size": 2, "precision": "bf16"}, peak).notes
    assert not of_code(given, note.code)
    (doubted,) = of_code(given, "high_mfu")
    assert doubted.fields == {"share": note.fields["share"], "most": 0.75, "flags": ["--dtype", "--hw"]}
    assert not of_code(run(GOLDEN | {"world_size": 3}, peak).notes, note.code)


@pytest.mark.parametrize(("share", "doubted"), [(0.74, False), (0.76, True), (1.01, False)])
def test_an_mfu_that_no_training_reaches_is_doubted(share, doubted):
    notes = run(GOLDEN | {"precision": "bf16"}, peak_by_hand(REAL / share, "bf16")).notes
    assert bool(of_code(notes, "high_mfu")) == doubted
    assert bool(of_code(notes, "above_peak")) == (share > 1)
    varied = GOLDEN | {"precision": "bf16", "variable_seq_lengths": True}
    assert not of_code(run(varied, peak_by_hand(REAL / share, "bf16")).notes, "high_mfu")


@pytest.mark.parametrize(("device", "doubted"), [("cpu", True), ("CPU", True), ("H100", False)])
def test_a_cpu_that_is_too_fast_is_doubted(device, doubted):
    notes = run(GOLDEN | {"device_name": device}).notes
    assert bool(of_code(notes, "fast_for_cpu")) == doubted
    assert not of_code(run(GOLDEN | {"device_name": device, "world_size": 4096}).notes, "fast_for_cpu")


@pytest.mark.parametrize(("peak", "count"), [(598.82, 1), (598.84, 0)])
def test_the_warning_begins_at_the_peak_itself(peak, count):
    assert len(of_code(run(GOLDEN, peak_by_hand(peak, "bf16")).notes, "above_peak")) == count


def test_recompute_above_the_peak_is_a_warning_too():
    result = run(GOLDEN | {"recompute": "full"}, peak_by_hand(700.0, "bf16"))
    assert result.value("mfu") < 1 < result.value("hfu")
    (note,) = of_code(result.notes, "above_peak")
    assert (note.fields["metric"], note.fields["share"]) == ("hfu", result.value("hfu"))


def test_a_family_gives_the_range_of_mfu():
    # 592.50 / 353.89 of the family; over its SKUs 592.50 / 363.72 to 592.50 / 245.76, here at 20 s so at half of it.
    peak, _ = resolve_peak("910b", "bf16")
    result = run(GOLDEN, peak, step_time_ms=[90_000.0, 20_000.0])
    (note,) = of_code(result.notes, "several_skus")
    assert note.level == "warning"
    text = "Ascend 910B (A2; SKU unknown) can be several devices (245.76 to 363.72 TFLOP/s): MFU is between 81.4 % and "
    assert say(note) == f"{text}120.5 %!; name yours with --hw"
    rate = REAL / 2
    expected = {"least": 245.76, "most": 363.72, "low": rate / 363.72, "high": rate / 245.76}
    assert {name: note.fields[name] for name in expected} == pytest.approx(expected)


def test_an_unknown_world_size_names_its_flag_and_gives_null():
    result = run(GOLDEN | {"world_size": None}, peak_by_hand(1000.0, "bf16"))
    lacking = info("unknown_but_flags", names=["world_size"], flags=["--world-size"], others=[])
    assert warnings(result) == [warning("samples_rate_not_computed", unknown=lacking)]
    assert say(result.notes[0]) == (
        "samples/s/p, tokens/s/p and TFLOP/s/p not computed: world_size unknown; pass --world-size"
    )
    assert result.value("tokens_per_second_per_device") is None
    assert result.value("mfu", "n") == 0


@pytest.mark.parametrize(
    ("missing", "code", "flag"),
    [
        ("global_batch_size", "samples_rate_not_computed", "--global-batch-size"),
        ("seq_length", "tokens_rate_not_computed", "--seq-length"),
        ("hidden_size", "flops_rate_not_computed", "--hidden-size"),
        ("hidden_size", "flops_rate_not_computed", "--model"),
        ("recompute", "hfu_not_computed", "--recompute"),
    ],
)
def test_what_is_missing_is_said_once_with_its_flag(missing, code, flag):
    (note,) = run(GOLDEN | {missing: None}, peak_by_hand(1000.0, "bf16")).notes
    assert (note.code, note.level) == (code, "info" if missing == "recompute" else "warning")
    assert flag in say(note)
    if missing != "recompute":
        assert note.fields["unknown"].fields["names"] == [missing]


def test_what_only_a_file_can_give_is_said_so():
    assert unknown(["num_layers", "seq_length"]).code == "unknown_but_flags"
    only = unknown(["q_lora_rank", "kv_lora_rank"])
    assert only == info("unknown_but_config", names=(names := ["q_lora_rank", "kv_lora_rank"]), flags=[], others=names)
    both = {"names": ["num_layers", "kv_lora_rank"], "flags": ["--num-layers"], "others": ["kv_lora_rank"]}
    assert unknown(["num_layers", "kv_lora_rank"]) == info("unknown_but_both", **both)


@pytest.mark.parametrize("kind", [{"multi_latent_attention": True}, {"num_experts": 8}])
def test_every_flag_that_a_note_names_exists(kind):
    flags = {"--" + q.name.replace("_", "-") for q in QUANTITIES if q.flag} | {
        "--model",
        "--recompute",
        "--config",
        "--formula",
    }
    named = [
        f for name in all_formulas() for n in run(kind, formula=name).notes for f in re.findall(r"--\S+[a-z]", say(n))
    ]
    assert set(named) - flags == set()


def test_a_batch_on_the_line_is_enough():
    result = run(GOLDEN | {"global_batch_size": None}, global_batch_size=[64, 128, 256, 256])
    # The second row took no longer than those of twice its batch: it is no warm-up.
    assert result.notes == (info("several_batch_sizes", n=2),)
    assert result.steps["samples_per_second_per_device"].to_list() == pytest.approx([64 / 720, 1.6, 3.2, 3.2])


def test_the_flops_of_an_iteration_are_those_of_the_last_batch():
    ramp = run(GOLDEN, global_batch_size=[64, 128, 256, 512])
    assert ramp.flops_per_iteration == pytest.approx(2 * 4.790627137801421e16)


def test_a_sequence_length_on_the_line_is_enough_for_the_flops_of_an_iteration():
    result = run(GOLDEN | {"seq_length": None}, seq_length=[1024, 2048, 4096, 4096])
    assert result.value("tflops_per_second_per_device") is not None
    assert result.flops_per_iteration == pytest.approx(4.790627137801421e16)


def test_where_no_row_counts_the_reasons_are_counted():
    result = run(GOLDEN, loss=[1.0, float("nan"), float("nan"), float("nan")])
    (note,) = of_code(warnings(result), "no_row_counts")
    assert note.fields["reasons"] == [
        info("rows_of_reason", n=3, reason=NAN),
        info("rows_of_reason", n=1, reason=WARM_UP),
    ]
    # No update was kept but that of the first step, of 256 x 4096 tokens on 8 devices: 4 x 30 s for one useful step.
    assert say(note) == (
        "no usable step times (3 x NaN, 1 x warm-up), so the steady step time is unknown; "
        "all steps: 120,000.0 ms per step, 1,092.3 tokens/s/p"
    )
    assert result.value("mfu") is None


def test_a_log_without_times_is_told():
    result = run(GOLDEN, step_time_ms=[None, None])
    assert warning("no_step_time") in warnings(result)


@pytest.mark.parametrize(
    ("facts", "note"),
    [
        ({"variable_seq_lengths": True}, warning("lengths_vary")),
        (
            # Without the stages of the pipeline 2 layers may be all or few. MFU is 592.50 / 1000.
            {"recompute": "full", "recompute_method": "block", "recompute_num_layers": 2},
            warning(
                "hfu_is_a_range",
                setting="recompute_method block, recompute_num_layers 2",
                low=pytest.approx(0.5924993284),
                high=pytest.approx(0.7865631303),
            ),
        ),
    ],
)
def test_settings_that_bend_the_numbers_are_told(facts, note):
    peak = peak_by_hand(1000.0, "bf16")
    assert warnings(run(GOLDEN | facts, peak)) == [note]
    off = dict.fromkeys(facts, False) | {"recompute": "none"}
    assert run(GOLDEN | off, peak).notes == ()


def test_adapters_that_are_left_out_are_named():
    assert info("adapters_not_counted") in run(GOLDEN | {"lora": True}).notes


def test_an_empty_frame_is_analyzed_without_a_crash():
    result = run(GOLDEN, step_time_ms=[])
    assert result.steps.is_empty()
    assert result.value("elapsed_time_per_iteration_ms", "n") == 0


def test_files_at_another_pace_are_told():
    result = run(
        GOLDEN,
        step_time_ms=[10_000.0] * 3 + [20_000.0] * 2,
        source=["a.log"] * 3 + ["b.log"] * 2,
        step=[1, 2, 3, 2, 3],
    )
    assert of_code(result.notes, "file_at_another_pace") == [warning("file_at_another_pace", source="b.log")]


@pytest.mark.parametrize(
    ("facts", "code", "words"),
    [
        ({"num_experts": 8}, "formula_ignores_experts", "assumes a dense model and ignores its 8 experts"),
        ({"multi_latent_attention": True}, "formula_ignores_latent_attention", "ignores multi-latent attention"),
        ({"mtp_num_layers": 1}, "formula_ignores_multi_token_prediction", "ignores multi-token prediction"),
        ({"num_window_layers": 3}, "formula_ignores_windows", "ignores the sliding window of 3 layers"),
    ],
)
def test_what_the_formula_ignores_is_told(facts, code, words):
    """Where the count as built, which would tell how much it is, lacks a size."""
    golden = GOLDEN | {"kv_channels": None}
    (told,) = of_code(run(golden | facts).notes, code)
    assert told == warning(code, n=next(iter(facts.values())), formula="ascendspeed", other="megatron")
    assert say(told) == f"the ascendspeed formula {words}; pass --formula megatron"
    for name, formula in all_formulas().items():
        ignored = set(facts) <= set(formula.ignores)
        found = of_code(run(golden | facts, formula=name).notes, code)
        assert [note.fields["formula"] for note in found] == ([name] if ignored else []), name
    assert of_code(run(golden | dict.fromkeys(facts, 0)).notes, code) == []


def test_a_growing_batch_that_no_line_prints_is_told():
    ramp = {"rampup_batch_size": "['16', '8', '9']"}
    told = warning("ramp_not_printed", ramp="['16', '8', '9']")
    assert run(GOLDEN | ramp).notes == (told,)
    for unlike in (run(GOLDEN), run(GOLDEN | ramp, consumed_samples=[256, 512, 768, 1024])):
        assert of_code(unlike.notes, "ramp_not_printed") == []
    assert of_code(run(GOLDEN | ramp, global_batch_size=[16, 24, 32, 40]).notes, "ramp_not_printed") == []
