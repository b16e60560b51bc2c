"""Which formula a log's TFLOP/s is: printed by each of them, found again; and what is said where that cannot be."""

import json
import math
from dataclasses import replace

import polars as pl
import pytest
import shapes
import typer
from helpers import SETTINGS, arguments_dump, megatron_line
from shapes import GPT_22B, LLAMA2_7B, LLAMA2_70B
from typer.testing import CliRunner

from analysis.commands.formulas import formulas
from analysis.flops.printed import PRINTED_FORMULAS
from analysis.identify import identify_formula, implied_peak
from analysis.model.shape import ModelShape
from analysis.present.views.formulas import peak_text
from analysis.present.words import sentences_of
from analysis.run.tables import STEP_COLUMNS
from logparse.schema import conform

MIXTRAL = replace(shapes.MIXTRAL, moe_ffn_hidden_size=14336)
# True times of the steps, in ms: no round numbers, as a clock gives them.
TIMES = tuple(5195.6173 + 37.4519 * math.sin(n) for n in range(40))


def rows(**columns):
    """Step rows with these columns and all others null."""
    return conform(pl.DataFrame(columns), STEP_COLUMNS)


def printed(name, shape, *, times=TIMES, decimals=1, ms=1, batch=32, scale=1.0, share=None, seq_length=4096):
    """Rows as a framework prints them that counts with ``name``, on 8 devices; ``ms`` decimals of a millisecond."""
    flops = PRINTED_FORMULAS[name].flops_per_token(shape, seq_length, share)
    batches = batch if isinstance(batch, list) else [batch] * len(times)
    tflops = [flops * b * seq_length / t / 8 / 1e9 * scale for b, t in zip(batches, times, strict=True)]
    return rows(
        elapsed_time_per_iteration_ms=[round(t, ms) for t in times],
        logged_tflops_per_second_per_device=[round(t, decimals) for t in tflops],
        global_batch_size=batches,
        core_attention_ratio=[share] * len(times),
    )


def identify(steps, shape, recompute="none", seq_length=4096, world_size=8):
    return identify_formula(steps, shape, seq_length, world_size, recompute)


def sentence(found):
    return sentences_of(found.findings)


# ---- found again


@pytest.mark.parametrize("shape", [LLAMA2_7B, LLAMA2_70B, GPT_22B, MIXTRAL], ids=["7b", "70b", "gpt", "moe"])
@pytest.mark.parametrize("name", PRINTED_FORMULAS)
def test_each_formula_is_found_in_what_it_printed(name, shape):
    found = identify(printed(name, shape, decimals=4, share=0.421 if name == "M8r" else None), shape)
    if PRINTED_FORMULAS[name].accuracy == 0:
        assert name in found.matches
    else:
        assert found.matches  # another that is exactly the same, or this one
    assert found.scale == 1
    # Whatever else matches is the same number, as far as the rounded times tell: 0.05 ms in 5 s.
    of = {row.id: row for row in found.rows}
    for match in found.matches:
        assert abs(of[match].difference) < 2e-5 + 2 * PRINTED_FORMULAS[match].accuracy
    for row in found.rows:
        assert row.matches == (row.id in found.matches)


def test_answer_names_all_that_are_the_same_number_and_what_others_give():
    shape = replace(LLAMA2_7B, padded_vocab_size=32768)
    found = identify(printed("M4", shape, decimals=2), shape)
    assert found.matches == ("M4", "M5", "M6", "M7", "D-none", "D1-none", "N1")
    assert sentence(found) == (
        "the log's 145.38 matches Megatron core 0.6 (M4), Megatron core 0.7 to 0.9 (M5), "
        "Megatron core 0.10 and 0.11 (M6), Megatron-LM 2025-02 (M7), "
        "Megatron-DeepSpeed since 2024-10, no recompute (D-none), "
        "Megatron-DeepSpeed 2024-08 to 2024-10, no recompute (D1-none), NeMo before 2025-08 (N1); "
        "they give the same number for this model shape; the ascendspeed formula gives 144.1; "
        "with causal attention (megatron formula) it is 135.2"
    )


def test_difference_is_that_of_the_row_of_median_time():
    steps = printed("A3", LLAMA2_7B, times=(4000.04, 5000.04, 9000.04), decimals=2)
    found = identify(steps, LLAMA2_7B)
    assert found.logged == steps["logged_tflops_per_second_per_device"][1]
    a4 = next(row for row in found.rows if row.id == "A4")
    assert a4.tflops_per_second_per_device == pytest.approx(found.logged * 4 / 3, rel=1e-4)
    assert a4.difference == pytest.approx(1 / 3, rel=1e-3)


def test_formula_that_is_only_about_right_is_asked_last():
    """A vocabulary padded otherwise is 0.05 % off, less than what the count of a compiled graph may be."""
    steps = printed("M4", replace(LLAMA2_7B, padded_vocab_size=32768), decimals=2)
    found = identify(steps, LLAMA2_7B)
    assert found.matches == ("G",)
    said = "accurate to 0.20 %, not exact, as are M4, M5, M6, M7, D-none, D1-none, N1, torchtitan: check the sizes"
    assert said in sentence(found)
    assert identify(steps, replace(LLAMA2_7B, padded_vocab_size=40000)).matches == ()


# ---- rounding


def test_seconds_with_two_decimals_leave_ten_milliseconds_open():
    steps = printed("A4", LLAMA2_7B, decimals=2, ms=-1)
    assert "A4" in identify(steps, LLAMA2_7B).matches
    # The same rows, but with one time that shows tenths of a millisecond: now the others are wrong by up to 5 ms.
    finer = pl.col("elapsed_time_per_iteration_ms") + pl.when(pl.int_range(pl.len()) == 0).then(0.1).otherwise(0.0)
    assert identify(steps.with_columns(elapsed_time_per_iteration_ms=finer), LLAMA2_7B).matches == ()


def test_rate_in_place_of_a_time_leaves_open_what_its_rounding_does():
    steps = printed("M4", LLAMA2_7B, decimals=2, ms=9)
    time = pl.col("elapsed_time_per_iteration_ms")
    tokens = 32 * 4096 / 8
    coarse = tokens * 1000 / ((tokens * 10 / time).round() * 100)
    by_rate = steps.with_columns(coarse.alias("elapsed_time_per_iteration_ms"))
    assert identify(by_rate, LLAMA2_7B).matches == ()
    left_open = coarse * 50 / (tokens * 1000 / coarse)
    assert "M4" in identify(by_rate.with_columns(time_resolution_ms=left_open), LLAMA2_7B).matches


def test_whole_milliseconds_may_be_cut_down():
    times = tuple(53.05 + n / 1000 + 0.9 * (n % 2) for n in range(20))
    steps = printed("M8", LLAMA2_7B, times=times, decimals=3, batch=1)
    cut = steps.with_columns(elapsed_time_per_iteration_ms=pl.Series([float(math.floor(t)) for t in times]))
    assert "M8" in identify(cut, LLAMA2_7B).matches
    beyond = cut.with_columns(pl.col("elapsed_time_per_iteration_ms") - 1)
    assert "M8" not in identify(beyond, LLAMA2_7B).matches


def test_printed_value_beyond_half_its_last_digit_does_not_fit():
    steps = printed("A3", LLAMA2_7B, decimals=2)
    off = steps.with_columns(logged_tflops_per_second_per_device=pl.col("logged_tflops_per_second_per_device") + 0.02)
    assert "A3" in identify(steps, LLAMA2_7B).matches
    assert identify(off, LLAMA2_7B).matches == ()


@pytest.mark.parametrize(("wrong", "fits"), [(2, True), (3, False)])
def test_one_row_in_twenty_may_be_wrong(wrong, fits):
    steps = printed("A3", LLAMA2_7B).with_columns(
        global_batch_size=pl.when(pl.int_range(pl.len()) < wrong).then(64).otherwise(32)
    )
    assert ("A3" in identify(steps, LLAMA2_7B).matches) == fits


def test_printed_attention_share_is_rounded_too():
    steps = printed("M8r", LLAMA2_7B, share=0.4214, decimals=2)
    share = steps.with_columns(core_attention_ratio=pl.Series([0.421] * 39 + [0.4215]))
    rounded = steps.with_columns(core_attention_ratio=pl.Series([0.421] * 40))
    assert identify(rounded, LLAMA2_7B).matches == ("M8r",)
    assert identify(share, LLAMA2_7B).matches == ()


# ---- each row's own quantities


def test_batch_that_grows_is_taken_row_by_row():
    steps = printed("A3", LLAMA2_7B, batch=[8 * (1 + n // 10) for n in range(40)])
    assert "A3" in identify(steps, LLAMA2_7B).matches


def test_printed_sequence_length_wins_over_the_given_one():
    steps = printed("A3", LLAMA2_7B, seq_length=1024).with_columns(seq_length=pl.lit(1024, pl.Int64))
    assert "A3" in identify(steps, LLAMA2_7B, seq_length=4096).matches
    assert "A3" in identify(steps, LLAMA2_7B, seq_length=None).matches
    assert identify(steps.with_columns(seq_length=pl.lit(None, pl.Int64)), LLAMA2_7B).matches == ()


def test_rows_without_a_number_are_left_out():
    steps = printed("A3", LLAMA2_7B)
    bad = pl.Series([float("nan"), float("inf"), 0.0, None] * 5 + [-1.0] * 5)
    logged = pl.concat([bad, steps["logged_tflops_per_second_per_device"][25:]])
    found = identify(steps.with_columns(logged_tflops_per_second_per_device=logged), LLAMA2_7B)
    assert found.matches == ("A3",)
    assert math.isfinite(found.logged)


def test_time_that_was_corrected_is_not_used():
    steps = printed("A3", LLAMA2_7B).with_columns(step_time_ms=pl.lit(1.0))
    assert "A3" in identify(steps, LLAMA2_7B).matches


# ---- logs that misname their unit


def test_gflops_printed_as_tflops():
    shape = ModelShape(64, 11600, 46400, False, 80, 80, 145, 50688)
    found = identify(printed("B4", shape, scale=1000, decimals=2), shape, recompute="full")
    assert (found.matches, found.scale) == (("B4",), 0.001)
    assert sentence(found).startswith(f"the log's {found.logged:g} is 1000 times too large; 2607 matches ")
    assert next(row for row in found.rows if row.id == "B4").difference == pytest.approx(0, abs=1e-4)


def test_pflops_printed_as_tflops():
    found = identify(printed("M8", LLAMA2_70B, scale=0.001, decimals=2, batch=4), LLAMA2_70B)
    assert "M8" in found.matches
    assert found.scale == 1000
    assert "1000 times too small" in sentence(found)
    assert "the log prints too few digits to be sure (" in sentence(found)


# ---- recompute


@pytest.mark.parametrize(
    ("name", "recompute", "said"),
    [
        ("A3", "full", "full recompute is not counted: AscendSpeed checks only --checkpoint-activations"),
        ("A4", "selective", "selective recompute is counted as full"),
        ("A4", "none", "it counts recompute that is not in the settings"),
        ("D-full", "none", "it counts recompute that is not in the settings"),
        ("D-none", "full", "full recompute is not counted"),
    ],
)
def test_recompute_that_the_settings_contradict_is_said(name, recompute, said):
    steps = printed(name, LLAMA2_70B, decimals=3)
    assert said in sentence(identify(steps, LLAMA2_70B, recompute))
    assert "recompute" not in sentence(identify(steps, LLAMA2_70B, None)).split("; ", 1)[1]


@pytest.mark.parametrize(("recompute", "value"), [("none", "144.1"), ("full", "192.1"), (None, "144.1")])
def test_the_ascendspeed_figure_beside_is_that_of_the_setting(recompute, value):
    found = identify(printed("M8", LLAMA2_7B, decimals=2), LLAMA2_7B, recompute)
    assert sentence(found).endswith(f"; the ascendspeed formula gives {value}")


# ---- no answer


def test_nearest_is_named_where_none_fits():
    found = identify(printed("A3", LLAMA2_7B, scale=1.03, decimals=2), LLAMA2_7B)
    assert found.matches == ()
    assert sentence(found).startswith("none of the 35 computable formulas gives the log's 148.")
    assert "; the nearest is PaLM (6N+12lhs) with 147.8, -0.39 %; the framework used another" in sentence(found)


def test_formulas_that_lack_a_size_are_counted():
    shape = replace(LLAMA2_7B, ffn_hidden_size=None)
    found = identify(printed("M1", shape, decimals=2), shape)
    assert found.matches == ("P3", "M1")
    assert "26 formulas were not computed: ffn_hidden_size unknown; pass --ffn-hidden-size; or pass" in sentence(found)
    missing = {row.id: row.missing for row in found.rows if row.missing}
    assert missing["M8"] == ("ffn_hidden_size",)
    assert missing["M8r"] == ("ffn_hidden_size", "core_attention_ratio")
    assert all(row.tflops_per_second_per_device is None for row in found.rows if row.missing)


def test_size_without_a_flag_gets_none_in_the_advice():
    shape = replace(LLAMA2_7B, untie_embeddings_and_output_weights=None)
    assert sentence(identify(printed("A3", shape), shape)).endswith(
        "6 formulas were not computed: untie_embeddings_and_output_weights unknown; or pass --model"
    )


@pytest.mark.parametrize(
    ("steps", "given", "said"),
    [
        (
            printed("A3", LLAMA2_7B),
            {"world_size": None, "seq_length": None},
            "no formula can be computed: world_size, seq_length unknown; pass --world-size --seq-length",
        ),
        (
            printed("A3", LLAMA2_7B).with_columns(global_batch_size=pl.lit(None, pl.Int64)),
            {},
            "no formula can be computed: global_batch_size unknown; pass --global-batch-size",
        ),
        (rows(step=[1, 2]), {}, "nothing to compare: step time is not in the log"),
        (rows(step=[]), {}, "nothing to compare: step time is not in the log"),
        (
            rows(elapsed_time_per_iteration_ms=[9.5, 9.6], global_batch_size=[4, 4]),
            {},
            "the log prints no TFLOP/s to compare with",
        ),
        (
            printed("A3", LLAMA2_7B, scale=0.0),
            {},
            "nothing to compare: all TFLOP/s in the log are rounded to 0",
        ),
        (
            rows(elapsed_time_per_iteration_ms=[9.5, None], global_batch_size=[None, 4]),
            {},
            "nothing to compare: no row has batch, sequence length and step time",
        ),
    ],
)
def test_reason_why_nothing_is_compared(steps, given, said):
    found = identify(steps, LLAMA2_7B, **given)
    assert sentence(found) == said
    assert (found.matches, found.logged if "TFLOP/s" in said else None) == ((), None)


def test_unknown_shape_is_told():
    found = identify(printed("A3", LLAMA2_7B), ModelShape())
    assert sentence(found).startswith("no formula can be computed: num_layers, hidden_size, padded_vocab_size")
    assert sentence(found).endswith("; or pass --model")


def test_log_without_tflops_still_gets_the_table():
    steps = printed("A3", LLAMA2_7B).with_columns(logged_tflops_per_second_per_device=pl.lit(None, pl.Float64))
    found = identify(steps, LLAMA2_7B)
    a3 = next(row for row in found.rows if row.id == "A3")
    assert a3.tflops_per_second_per_device == pytest.approx(144.0, abs=2)
    assert (a3.difference, found.logged) == (None, None)


# ---- the peak behind MFU


@pytest.mark.parametrize(
    ("tflops", "mfu", "devices"),
    [
        ([339.16], [0.3429], {"H100 SXM"}),
        ([47.97, 48.2], [0.1538, 0.1545], {"A100"}),
        ([120.03, 121.4, 118.55], [0.3391, 0.3429, 0.3349], {"Ascend910B2"}),
    ],
)
def test_peak_is_told_from_tflops_and_mfu(tflops, mfu, devices):
    peak = implied_peak(rows(logged_tflops_per_second_per_device=tflops, logged_mfu=mfu))
    assert peak.low < peak.tflops_per_second < peak.high
    assert all(any(name.startswith(device) for name, _ in peak.peaks) for device in devices)
    assert peak_text(peak).startswith("the log's MFU uses a peak of ")


def test_peak_of_no_device():
    peak = implied_peak(rows(logged_tflops_per_second_per_device=[100.01], logged_mfu=[0.5001]))
    assert peak.peaks == ()
    assert peak_text(peak).endswith("(199.95 to 200.01): no known device")


def test_hfu_is_what_tflops_with_recompute_are_divided_into():
    steps = rows(logged_tflops_per_second_per_device=[156.0], logged_mfu=[0.375], logged_hfu=[0.5])
    peak = implied_peak(steps)
    assert peak.tflops_per_second == 312
    assert peak_text(peak).startswith("the log's HFU uses a peak of 312 TFLOP/s")


@pytest.mark.parametrize("columns", [{"logged_mfu": [0.4]}, {"logged_tflops_per_second_per_device": [100.0]}])
def test_no_peak_without_both(columns):
    assert implied_peak(rows(**columns)) is None


# ---- the command


@pytest.fixture
def command():
    """The command alone, as the command line mounts it."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(formulas)
    return lambda *arguments: CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100"})


def log_of(name, shape, settings):
    """A Megatron log whose TFLOP/s are those of ``name``."""
    steps = printed(name, shape).select("elapsed_time_per_iteration_ms", "logged_tflops_per_second_per_device")
    lines = [
        megatron_line(number, ms=ms, pairs={"throughput per GPU (TFLOP/s/GPU)": f"{tflops:.1f}"})
        for number, (ms, tflops) in enumerate(steps.iter_rows(), start=1)
    ]
    return arguments_dump(settings) + "".join(f"{line}\n" for line in lines)


def test_command_prints_the_table_and_the_sentence(command, tmp_path):
    log = tmp_path / "run.log"
    log.write_text(log_of("M1", LLAMA2_7B, SETTINGS))
    done = command(str(log))
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert "the log prints 144.7" in text
    assert "* M1 144.6" in text
    assert " A4 192.0" in text
    assert "needs core_attention_ratio" in text
    assert "the log's 144.7 matches Megatron papers, model FLOPs (P3), Megatron core 0.5 (M1)" in text


def test_command_writes_one_document(command, tmp_path):
    log = tmp_path / "run.log"
    log.write_text(log_of("M8", LLAMA2_7B, SETTINGS))
    document = json.loads(command(str(log), "--json").output)
    assert document["matches"] == ["M8", "N", "6N+6lhs"]
    assert document["scale"] == 1
    assert {row["id"] for row in document["formulas"]} == set(PRINTED_FORMULAS)
    assert document["implied_peak"] is None
    assert "; the printed digits do not distinguish them (135.168 to 135.173); " in document["sentence"]


def test_command_takes_what_the_log_lacks_from_flags_model_and_file(command, tmp_path):
    log, config = tmp_path / "run.log", tmp_path / "run.toml"
    log.write_text(log_of("M8", LLAMA2_7B, {}).replace(" global batch size:    32 |", ""))
    config.write_text("global_batch_size = 32\n")
    assert json.loads(command(str(log), "--json").output)["matches"] == []
    given = ("--world-size", "8", "--seq-length", "4096", "--model", "llama2-7b", "--config", str(config))
    document = json.loads(command(str(log), "--json", *given).output)
    assert document["matches"] == ["M8", "N", "6N+6lhs"], document["sentence"]


def test_latent_attention_with_a_size_missing_is_no_crash():
    found = identify(printed("A3", LLAMA2_7B), replace(LLAMA2_7B, multi_latent_attention=True, kv_lora_rank=512))
    assert "A3" in found.matches
    latent = next(row for row in found.rows if row.id == "M8")
    assert (latent.tflops_per_second_per_device, set(latent.missing)) == (
        None,
        {"qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"},
    )


def test_a_number_that_cannot_be_counted_is_left_out(monkeypatch):
    monkeypatch.setitem(PRINTED_FORMULAS, "A3", replace(PRINTED_FORMULAS["A3"], flops=lambda shape, s: None))
    row = next(row for row in identify(printed("A4", LLAMA2_7B), LLAMA2_7B).rows if row.id == "A3")
    assert (row.tflops_per_second_per_device, row.matches) == (None, False)
