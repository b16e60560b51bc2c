"""Rates that a log prints and the run contradicts: what users complained of, and what must not be claimed."""

import pytest
from complaints import COMPLAINTS, codes_of, log_of, notes_of, run_of

from analysis.present.words import say
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

pytestmark = pytest.mark.usefixtures("analysed_once")

# Eight devices, tp 2, dp 4, 8 micro-batches: 32 samples of 4096 tokens in 4 s are 8 samples/s, 32768 tokens/s.
RUN = {"ms": 4000.0}


def told(folder, line, settings=(), **more):
    """Cause by figure of a run whose lines print ``line``."""
    notes = notes_of(run_of({**RUN, "line": line, "settings": dict(settings), **more}, folder))
    return {figure: list(codes_of(note.fields["cause"])) for figure, note in notes.items()}


@pytest.mark.parametrize("complaint", COMPLAINTS, ids=[f"{c['thread']}-{i}" for i, c in enumerate(COMPLAINTS)])
def test_what_users_complained_of_is_told_with_its_cause(complaint, tmp_path):
    run = run_of(complaint, tmp_path)
    notes = notes_of(run)
    for metric, value in complaint.get("values", {}).items():
        assert run.value(metric) == pytest.approx(value, rel=0.002)
    if not complaint["codes"]:
        assert not notes
        return
    note = notes[complaint["figure"]]
    assert note.level == "warning"
    assert list(codes_of(note.fields["cause"]))[: len(complaint["codes"])] == complaint["codes"]
    assert len(say(note.fields["cause"])) > 20
    assert note.fields["printed"] == pytest.approx(complaint["logged"], rel=0.002)
    assert note.fields["ours"] == pytest.approx(complaint["ours"], rel=0.002)
    assert note.fields["ratio"] == pytest.approx(complaint["logged"] / complaint["ours"], rel=0.01)
    assert set(complaint.get("formulas", ())) <= set(run.identified.matches)


def test_at_least_twenty_threads_are_reproduced():
    assert len({complaint["thread"] for complaint in COMPLAINTS}) >= 20


@pytest.mark.parametrize(("ratio", "differs"), [(0.94, True), (0.96, False), (1.0, False), (1.04, False), (1.06, True)])
def test_a_rate_within_a_twentieth_agrees(tmp_path, ratio, differs):
    assert bool(told(tmp_path, {"samples per second": f"{8 * ratio:.4f}"})) is differs


def test_digits_that_do_not_tell_are_no_disagreement(tmp_path):
    """0.02 may be 0.0246: a fifth too little and nothing wrong."""
    assert told(tmp_path, {"samples per second": "0.02"}, {"global_batch_size": 32}, ms=1_350_000.0) == {}
    assert told(tmp_path, {"samples per second": "0.030"}, {"global_batch_size": 32}, ms=1_350_000.0)


def test_what_no_cause_explains_claims_none(tmp_path):
    line = {"samples per second": "12.0", "tokens/s": "49152", "throughput per GPU (TFLOP/s/GPU)": "417.0"}
    assert told(tmp_path, {**line, "MFU": "13.3%"}, peak=1000.0) == {
        "logged_samples_per_second": ["no_known_cause_of_samples"],
        "logged_tokens_per_second": ["no_known_cause_of_tokens"],
        "logged_tflops_per_second_per_device": [
            "no_known_cause_of_formula",
            "no_formula_fits",
            "inputs_or_count_differ",
        ],
        "logged_mfu": ["two_causes", "divided_by_no_peak", "no_known_cause_of_share"],
    }


# Of a token of LLaMA2-7B with causal attention: 32 layers of 4 h x h, h x s and 3 h x ffn, and the logits.
CAUSAL = 6 * (32 * (4 * 4096 * 4096 + 4096 * 4096 + 3 * 4096 * 11008) + 4096 * 32000)


@pytest.mark.parametrize(
    ("times", "size", "mfu"),
    [
        # 8 micro-batches could be the cause too.
        (8, "rate_of_all_devices", ["several_causes", "rate_of_all_devices", "num_microbatches_counted"]),
        (1 / 8, "rate_divided_again", ["several_causes", "rate_divided_again", "num_microbatches_left_out"]),
        (2, "model_parallel_counted", ["model_parallel_counted"]),
    ],
)
def test_all_devices_and_another_formula_are_told_as_two_causes(tmp_path, times, size, mfu):
    """TFLOP/s of 131072 tokens in 4 s on 8 devices by the causal formula, counted ``times``; and MFU of them.

    Our MFU is by that formula too, so only the count explains it.
    """
    tflops = times * CAUSAL * 131_072 / 8 / 4e12
    line = {"throughput per GPU (TFLOP/s/GPU)": f"{tflops:.2f}", "MFU": f"{tflops / 10:.4f}%"}
    assert told(tmp_path, line, peak=1000.0) == {
        "logged_tflops_per_second_per_device": ["two_causes", size, "counts_by_formula"],
        "logged_mfu": mfu,
    }


def test_the_forward_pass_of_a_reference_model_is_told(tmp_path):
    """As MaxText counts it for DPO: a third more than its formula."""
    line = {"throughput per GPU (TFLOP/s/GPU)": f"{4 / 3 * CAUSAL * 131_072 / 8 / 4e12:.2f}"}
    assert told(tmp_path, line) == {"logged_tflops_per_second_per_device": ["counts_another_pass_by"]}


def test_few_digits_prove_no_product_of_two_causes(tmp_path):
    """58.5 of 8 x 7.3: a tenth in 58 is what some formula makes of some size."""
    tflops = 8 * CAUSAL * 131_072 / 8 / 96e12
    line = {"throughput per GPU (TFLOP/s/GPU)": f"{tflops:.1f}"}
    ((first, *_),) = told(tmp_path, line, ms=96_000.0).values()
    assert first == "no_known_cause_of_formula"


def test_the_size_that_would_settle_it_is_named(tmp_path):
    notes = notes_of(run_of({**RUN, "line": {"samples per second": "12.0", "tokens/s": "49152"}}, tmp_path))
    causes = {figure: note.fields["cause"].fields for figure, note in notes.items()}
    assert causes["logged_samples_per_second"] == {"ours": 32, "implied": 48}
    assert causes["logged_tokens_per_second"] == {"ours": 4096, "implied": 6144}


def test_sizes_that_are_equal_are_not_told_apart(tmp_path):
    """tp 2 and pp 2: twice the rate is either; four times is both."""
    settings = {"pipeline_model_parallel_size": 2, "data_parallel_size": 2}
    (codes,) = told(tmp_path, {"tokens/s": "65536"}, settings).values()
    assert codes == ["several_causes", "model_parallel_counted", "model_parallel_counted", "data_parallel_counted"]
    (codes,) = told(tmp_path, {"tokens/s": "131072"}, settings).values()
    assert codes == ["model_parallel_counted"]


def test_tokens_of_another_length_are_told_where_samples_are_right(tmp_path):
    line = {"samples per second": "8.0", "tokens/s": "45056"}
    (note,) = notes_of(run_of({**RUN, "line": line}, tmp_path)).values()
    assert note.fields["cause"].code == "counts_other_length"
    assert note.fields["cause"].fields == {"length": 5632, "ours": 4096}


def test_a_rate_since_the_start_holds_its_slow_steps(tmp_path):
    times = [80000.0, *[4000.0] * 9]
    so_far = [32000 * (n + 1) / sum(times[: n + 1]) for n in range(10)]
    complaint = {"times": times, "cumulative": "since_start"}
    note = notes_of(run_of(complaint, tmp_path))["logged_samples_per_second"]
    assert note.fields["cause"].code == "rate_since_start"
    assert note.fields["printed"] < max(so_far)


def test_recompute_that_an_mfu_counts_is_told(tmp_path):
    """By the formula as built LLaMA2-7B takes 42.864 GFLOP a token: 175.6 TFLOP/s are 17.56 % of 1000."""
    settings = {"recompute_granularity": "None"}
    more = {"formula": "megatron", "peak": 1000.0}
    assert told(tmp_path, {"MFU": "17.56%"}, settings, **more) == {}
    assert told(tmp_path, {"MFU": "23.41%"}, settings, **more) == {"logged_mfu": ["recompute_counted"]}


def test_the_formula_is_told_once(tmp_path):
    """Where the log's TFLOP/s is not ours the warning holds what the note would say."""
    line = {"throughput per GPU (TFLOP/s/GPU)": "175.6"}
    settings = {"recompute_granularity": "None"}
    ours, other = (
        run_of({**RUN, "line": line, "settings": settings, "formula": f}, tmp_path) for f in ("megatron", "palm")
    )
    assert [note.code for note in ours.notes if "findings" in note.fields] == ["formula_identified"]
    assert not notes_of(ours)
    assert [note.code for note in other.notes if "findings" in note.fields] == []
    (note,) = notes_of(other).values()
    assert note.fields["cause"].fields["findings"] == other.identified.findings


def test_without_a_peak_an_mfu_is_beside_nothing(tmp_path):
    assert told(tmp_path, {"MFU": "17.56%"}) == {}


# 128 devices: tp 4, pp 2, cp 1, dp 16; 3 micro-batches of 5 samples on each of 16 replicas; lines 7 steps apart.
LAYOUT = {
    "world_size": 128,
    "tensor_model_parallel_size": 4,
    "pipeline_model_parallel_size": 2,
    "data_parallel_size": 16,
    "micro_batch_size": 5,
    "global_batch_size": 240,
    "log_interval": 7,
}
# 240 samples of 4096 tokens in 4 s.
TOTAL = 245760.0
DOUBLE = {"world_size": 16, "data_parallel_size": 8}


@pytest.mark.parametrize(
    ("factor", "code"),
    [
        (4, "model_parallel_counted"),
        (2, "model_parallel_counted"),
        (8, "model_parallel_counted"),
        (1 / 8, "model_parallel_left_out"),
        (16, "data_parallel_counted"),
        (1 / 16, "data_parallel_left_out"),
        (128, "rate_times_devices"),
        (1 / 128, "rate_of_one_device"),
        (3, "num_microbatches_counted"),
        (1 / 3, "num_microbatches_left_out"),
        (7, "log_interval_counted"),
        (1 / 7, "log_interval_left_out"),
        (0.001, "seconds_for_ms"),
        (1000, "ms_for_seconds"),
        (5, "no_known_cause_of_tokens"),
        (1.5, "no_known_cause_of_tokens"),
    ],
)
def test_a_size_that_was_counted_once_too_often_is_named(tmp_path, factor, code):
    more = {"first_step": 7, "every": 7}
    line = {"tokens/s": f"{TOTAL * factor:.3f}"}
    assert told(tmp_path, line, LAYOUT, **more) == {"logged_tokens_per_second": [code]}
    if code.startswith("ms") or "of_tokens" in code:
        return
    one = {"tokens per gpu per second (tgs)": f"{TOTAL / 128 * factor:.6f}"}
    of_one = {"rate_times_devices": "rate_of_all_devices", "rate_of_one_device": "rate_divided_again"}
    assert told(tmp_path, one, LAYOUT, **more) == {"logged_tokens_per_second_per_device": [of_one.get(code, code)]}


def test_recompute_that_an_hfu_leaves_out_is_told(tmp_path):
    """Everything is recomputed; by the formula as built all but the vocabulary is done a fourth time."""
    run = run_of({**RUN, "formula": "megatron", "peak": 1000.0}, tmp_path)
    mfu, hfu = run.value("mfu"), run.value("hfu")
    assert mfu is not None
    assert hfu is not None
    assert hfu > 1.3 * mfu
    assert told(tmp_path, {"HFU": f"{hfu:.4%}"}, formula="megatron", peak=1000.0) == {}
    assert told(tmp_path, {"HFU": f"{mfu:.4%}"}, formula="megatron", peak=1000.0) == {
        "logged_hfu": ["recompute_left_out"]
    }
    assert told(tmp_path, {"MFU": f"{hfu:.4%}"}, formula="megatron", peak=1000.0) == {
        "logged_mfu": ["recompute_counted"]
    }


def test_rows_of_a_later_start_with_other_devices_are_not_compared(tmp_path):
    """The second start has twice the devices: what it prints is right for them."""
    first = log_of({**RUN, "line": {"tokens/s": "32768"}})
    second = log_of({"ms": 2000.0, "first_step": 9, "line": {"tokens/s": "65536"}, "settings": DOUBLE})
    path = tmp_path / "run.log"
    path.write_text(first + second)
    assert not notes_of(analyze_logs([str(path)], RunOptions()))
