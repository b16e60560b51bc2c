"""One run from frames to numbers, and the sentences that must stand beside them."""

import re

import polars as pl
import pytest

from analysis.flops import all_formulas, find_formula
from analysis.hardware.devices import DevicePeak, peak_by_hand
from analysis.hardware.peak import resolve_peak
from analysis.run.analyze import Analysis, analyze_steps
from analysis.run.reasons import NAN, WARM_UP
from analysis.tables import COMPUTED_COLUMNS, STEP_COLUMNS
from logparse.context.run_context import Fact, RunContext
from logparse.schema import DECODED_COLUMNS, QUANTITIES, RECORD_COLUMNS, conform

GOLDEN = {
    "num_layers": 32,
    "hidden_size": 4096,
    "padded_vocab_size": 32000,
    "seq_length": 4096,
    "global_batch_size": 256,
    "world_size": 8,
    "recompute": "none",
}
NO_RECORDS = {name: pl.DataFrame(schema={c.name: c.dtype for c in columns}) for name, columns in RECORD_COLUMNS.items()}
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
    context = RunContext({name: Fact(value, "by hand") for name, value in facts.items() if value is not None})
    return analyze_steps(frame, NO_STARTS, NO_RECORDS, context, find_formula(formula), peak)


def warnings(result: Analysis) -> list[str]:
    return [note.text for note in result.notes if note.level == "warning"]


def said(result: Analysis, *words: str) -> list[str]:
    """Notes that hold all ``words``."""
    return [note.text for note in result.notes if all(word in note.text for word in words)]


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
    (text,) = said(run(GOLDEN, peak), "above the peak")
    assert text.startswith("MFU is 169.2% of 353.89 TFLOP/s, above the peak: ")


@pytest.mark.parametrize(("peak", "count"), [(598.82, 1), (598.84, 0)])
def test_the_warning_begins_at_the_peak_itself(peak, count):
    assert len(said(run(GOLDEN, peak_by_hand(peak, "bf16")), "above the peak")) == count


def test_recompute_above_the_peak_is_a_warning_too():
    result = run(GOLDEN | {"recompute": "full"}, peak_by_hand(700.0, "bf16"))
    assert result.value("mfu") < 1 < result.value("hfu")
    assert len(said(result, "above the peak")) == 1


def test_a_family_gives_the_range_of_mfu():
    # 598.83 / 353.89 of the family; over its SKUs 598.83 / 363.72 to 598.83 / 245.76, here at 20 s so at half of it.
    peak, _ = resolve_peak("910b", "bf16")
    result = run(GOLDEN, peak, step_time_ms=[90_000.0, 20_000.0])
    assert said(result, "over its SKUs") == [
        "Ascend 910B (A2; SKU unknown): over its SKUs (245.76 to 363.72 TFLOP/s) MFU is 82.3% to 121.8%"
    ]


def test_an_unknown_world_size_names_its_flag_and_gives_null():
    result = run(GOLDEN | {"world_size": None}, peak_by_hand(1000.0, "bf16"))
    assert warnings(result) == [
        "samples/s/p, tokens/s/p and TFLOP/s/p not computed: world_size unknown; pass --world-size"
    ]
    assert result.value("tokens_per_second_per_device") is None
    assert result.value("mfu", "n") == 0


@pytest.mark.parametrize(
    ("missing", "flag"),
    [
        ("global_batch_size", "--global-batch-size"),
        ("seq_length", "--seq-length"),
        ("hidden_size", "--hidden-size"),
        ("hidden_size", "--model"),
        ("recompute", "--recompute"),
    ],
)
def test_what_is_missing_is_said_once_with_its_flag(missing, flag):
    (text,) = said(run(GOLDEN | {missing: None}, peak_by_hand(1000.0, "bf16")), "not computed")
    assert flag in text


@pytest.mark.parametrize("kind", [{"multi_latent_attention": True}, {"num_experts": 8}])
def test_every_flag_that_a_note_names_exists(kind):
    flags = {"--" + q.name.replace("_", "-") for q in QUANTITIES if q.flag} | {
        "--model",
        "--recompute",
        "--config",
        "--formula",
    }
    named = [
        f for name in all_formulas() for n in run(kind, formula=name).notes for f in re.findall(r"--\S+[a-z]", n.text)
    ]
    assert set(named) - flags == set()


def test_a_batch_on_the_line_is_enough():
    result = run(GOLDEN | {"global_batch_size": None}, global_batch_size=[64, 128, 256, 256])
    assert said(result, "global_batch_size") == []
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
    expected = f"no row counts, so there is no metric (3 x {NAN}, 1 x {WARM_UP}); the rows are in steps.parquet"
    assert expected in warnings(result)
    assert result.value("mfu") is None


def test_a_log_without_times_is_told():
    result = run(GOLDEN, step_time_ms=[None, None])
    assert "no rate computed: no line gives the time of a step" in warnings(result)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"lora": True}, "frozen weights take no gradient"),
        ({"variable_seq_lengths": True}, "rates are upper bounds"),
        (
            {"recompute": "full", "recompute_method": "block", "recompute_num_layers": 2},
            "only 2 layers per pipeline stage are recomputed",
        ),
    ],
)
def test_settings_that_bend_the_numbers_are_told(facts, words):
    peak = peak_by_hand(1000.0, "bf16")
    assert len([text for text in warnings(run(GOLDEN | facts, peak)) if words in text]) == 1
    off = dict.fromkeys(facts, False) | {"recompute": "none"}
    assert run(GOLDEN | off, peak).notes == ()


def test_an_empty_frame_is_analyzed_without_a_crash():
    result = run(GOLDEN, step_time_ms=[])
    assert result.steps.is_empty()
    assert result.value("elapsed_time_per_iteration_ms", "n") == 0


LOGGED = "logged_samples_per_second_per_device"


def test_samples_per_second_that_counts_every_device_is_told():
    """256 samples / 10 s / 8 devices = 3.2; the log says 25.6, eight times that, and tensor parallel is 8."""
    result = run(GOLDEN | {"tensor_model_parallel_size": 8}, **{LOGGED: [25.6] * 4})
    (text,) = said(result, "samples/s as the log prints it is 8 times")
    assert "counts every device as data parallel" in text


def test_samples_per_second_a_thousand_times_too_small_is_told():
    result = run(GOLDEN, logged_samples_per_second=[0.0256] * 4)
    (text,) = said(result, "samples/s as the log prints it is 0.001 times")
    assert "seconds taken for milliseconds" in text


def test_samples_per_second_that_agrees_is_not_told():
    assert said(run(GOLDEN, **{LOGGED: [3.2] * 4}), "samples/s as the log") == []


def test_files_at_another_pace_are_told():
    result = run(
        GOLDEN,
        step_time_ms=[10_000.0] * 3 + [20_000.0] * 2,
        source=["a.log"] * 3 + ["b.log"] * 2,
        step=[1, 2, 3, 2, 3],
    )
    (text,) = said(result, "at another pace")
    assert text.startswith("b.log ")
    assert "--each" in text


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"num_experts": 8}, "takes the model for dense and ignores its 8 experts"),
        ({"multi_latent_attention": True}, "ignores multi-latent attention"),
        ({"mtp_num_layers": 1}, "ignores multi-token prediction"),
    ],
)
def test_what_the_formula_ignores_is_told(facts, words):
    text = f"the ascendspeed formula {words}; pass --formula megatron"
    assert said(run(GOLDEN | facts), words) == [text]
    for name, formula in all_formulas().items():
        ignored = set(facts) <= set(formula.ignores)
        told = said(run(GOLDEN | facts, formula=name), words)
        assert told == ([text.replace("ascendspeed", name)] if ignored else []), name
    assert said(run(GOLDEN | dict.fromkeys(facts, 0)), words) == []


def test_a_growing_batch_that_no_line_prints_is_told():
    ramp = {"rampup_batch_size": "['16', '8', '9']"}
    words = "the batch grows (rampup_batch_size ['16', '8', '9']) and the lines do not print it"
    assert len(said(run(GOLDEN | ramp), words)) == 1
    assert said(run(GOLDEN), "the batch grows") == []
    assert said(run(GOLDEN | ramp, consumed_samples=[256, 512, 768, 1024]), "the batch grows") == []
    assert said(run(GOLDEN | ramp, global_batch_size=[16, 24, 32, 40]), "the batch grows") == []
