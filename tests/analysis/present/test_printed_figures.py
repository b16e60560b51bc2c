"""Figures of a log next to ours: their own digits, what they are of, and the rate with many stalls."""

import re

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, run_logparse

THROUGHPUT = "throughput per GPU (TFLOP/s/GPU)"

HEAD = """\
[titan] 2026-01-05 10:00:00,000 - root - INFO - {device} capacity: NVIDIA H100 80GB HBM3 with 79.11GiB memory
[titan] 2026-01-05 10:00:00,000 - root - INFO - Building device mesh with parallelism: pp=1, dp_shard=1, tp=1
[titan] 2026-01-05 10:00:00,000 - root - INFO - Building llama3 debugmodel with TransformerModelArgs(dim=256, \
n_layers=6, n_heads=16, n_kv_heads=None, vocab_size=2048, multiple_of=256, ffn_dim_multiplier=None)
[titan] 2026-01-05 10:00:01,000 - root - INFO - Training starts at step 1, with local batch size 8, \
global batch size 8, sequence length 128, total steps {n} (warmup 2)
"""
STEP = (
    "[titan] 2026-01-05 10:{minute:02}:{second:02},000 - root - INFO - step: {step}  loss:  2.5000  "
    "memory:  1.00GiB(1.20%)  tps: {tps}  tflops: {tflops}  mfu: {mfu}%\n"
)


def titan(rates, tflops="0.06", mfu="0.01", device="CUDA"):
    lines = [
        STEP.format(minute=n // 60, second=n % 60, step=n, tps=f"{rate:,}", tflops=tflops, mfu=mfu)
        for n, rate in enumerate(rates, 2)
    ]
    return HEAD.format(device=device, n=len(rates)) + "".join(lines)


def screen(folder, text, *options):
    (folder / "run.log").write_text(text)
    return run_logparse("analyze", "run.log", *options, cwd=folder, COLUMNS="200").stdout


@pytest.mark.parametrize(("mfu", "differs"), [("0.01", False), ("0.04", True)])
def test_a_printed_share_within_half_of_its_last_digit_agrees(tmp_path, mfu, differs):
    shown = screen(tmp_path, titan([1_800 + step % 7 for step in range(60)], mfu=mfu))
    ours = float(re.search(r"MFU +([\d.]+) %", shown)[1])
    assert 0.005 < ours < 0.0085
    assert ("the log's MFU is" in shown) == differs


def test_a_printed_figure_has_the_digits_of_the_log(tmp_path):
    rates = [1_800 + step % 7 for step in range(60)]
    assert "the log prints 0.06\n" in screen(tmp_path, titan(rates))
    assert "the log prints 0.0612\n" in screen(tmp_path, titan(rates, tflops="0.0612"))


def test_a_rate_that_gives_the_step_time_is_not_compared_with_itself(tmp_path):
    shown = screen(tmp_path, titan([1_800 + step % 7 for step in range(60)]))
    assert "the log prints 1,8" not in shown
    assert "tokens/s/p printed by the log" in shown


def test_many_stalls_show_the_throughput_with_them(tmp_path):
    shown = screen(tmp_path, titan([600 if step % 4 == 3 else 1_800 + step % 7 for step in range(200)]))
    steady, stalled = re.search(r"([\d,]+) tokens/s/p, ([\d,]+) with stalls", shown).groups()
    assert steady == "1,800"
    # A fourth of the steps takes three times as long.
    assert float(stalled.replace(",", "")) == pytest.approx(1_800 / 1.5, rel=0.02)
    # torchtitan prints its saves: none is a stall.
    assert "saves or evaluations" not in shown
    assert "with stalls" not in screen(tmp_path, titan([1_800 + step % 7 for step in range(200)]))


def test_a_run_on_a_cpu_has_no_mfu_of_the_device_that_it_names(tmp_path):
    shown = screen(tmp_path, titan([1_800 + step % 7 for step in range(60)], device="CPU"))
    assert " on 1 x CPU" in shown
    assert "computed MFU: not computed on a CPU" in shown
    assert "printed by the log, by a peak of 989" in shown
    assert " on 1 x H100 SXM5" in screen(tmp_path, titan([1_800] * 60))


def test_a_formula_of_another_model_is_the_first_warning(tmp_path):
    pairs = {THROUGHPUT: "900.0"}
    lines = [f"{megatron_line(step, pairs=pairs)}\n" for step in range(1, 31)]
    text = f"{arguments_dump(SETTINGS | {'compress_ratios': '[4, 128]', 'num_experts': 8})}\n" + "".join(lines)
    found = screen(tmp_path, text)
    assert re.search(r"warnings +\d+: TFLOP/s of another model: ascendspeed ignores compress_ratios;", found)


def test_what_a_formula_ignores_is_silent_where_no_tflops_are_shown(tmp_path):
    unknown = {name: value for name, value in SETTINGS.items() if name != "num_layers"}
    lines = [f"{megatron_line(step)}\n" for step in range(1, 31)]
    text = f"{arguments_dump(unknown | {'compress_ratios': '[4, 128]'})}\n" + "".join(lines)
    assert "ascendspeed ignores" not in screen(tmp_path, text)


@pytest.mark.parametrize(("given", "flags"), [((), "--hw"), (("--dtype", "bf16"), "--dtype, --hw")])
def test_a_high_mfu_names_the_flag_of_a_number_type_given_by_hand(tmp_path, given, flags):
    text = titan([1_800 + step % 7 for step in range(60)])
    precision = "[titan] INFO - {'mixed_precision_param': 'bfloat16'}\n"
    shown = screen(tmp_path, precision + text.replace("tps: 1,80", "tps: 23,000,00"), *given)
    assert f"check {flags} and the sizes" in shown


def mllog(seconds, fields, at):
    text = ':::MLLOG {{"namespace": "", "time_ms": {}, "event_type": "POINT_IN_TIME", {}}}\n'
    return text.format(
        1_696_466_228_000 + round(1000 * seconds), fields + f', "metadata": {{"lineno": 1, "step": {at}}}'
    )


@pytest.mark.parametrize(("printed", "shown"), [(700_000.0, True), (1_000_000.0, False)])
def test_a_rate_of_the_whole_run_is_shown_where_pauses_make_another_one_of_it(tmp_path, printed, shown):
    """A batch of 2,048 samples of 2,048 tokens in 4 s on 8 devices: 131,072 tokens/s/p, or 1.05 M of all."""
    head = [
        mllog(0, f'"key": "{name}", "value": {value}', 0)
        for name, value in (("global_batch_size", 2048), ("max_sequence_length", 2048))
    ]
    steps = [
        mllog(4 * n, '"key": "tracked_stats", "value": {"train_step_timing": 4.0}', n * 2048 * 2048)
        for n in range(1, 31)
    ]
    end = mllog(200, f'"key": "tracked_stats", "value": {{"throughput": {printed}}}', 0)
    text = screen(tmp_path, "".join([*head, *steps, end]), "--world-size", "8")
    of_whole = "the log prints 700,000 tokens/s of all devices, over the whole run, pauses included: 66.8 % of ours"
    assert (of_whole in text) == shown
    assert "131,000 tokens/s/p" in text


def test_tflops_in_units_of_two_to_the_40_show_both(tmp_path):
    line = "[2024-08-01 00:00:0{n},000] [    INFO] - loss: 9.5, learning_rate: 1e-05, global_step: {n}, "
    rates = "interval_runtime: 0.25, interval_hardware_tflops_per_device: 12.5, interval_steps_per_second: 4.0\n"
    text = screen(tmp_path, "".join(line.format(n=n) + rates for n in range(1, 9)))
    assert "13.7       per device, printed by the log as 12.5 TiFLOP/s" in text


def test_the_real_model_beside_a_formula_with_recomputation_is_named_without(tmp_path):
    settings = SETTINGS | {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
    wide = {"swiglu": True, "ffn_hidden_size": 40_000}
    for more, recomputed in ((settings, True), (SETTINGS | {"recompute_granularity": None}, False)):
        lines = [megatron_line(step, 1000.0) for step in range(1, 31)]
        text = screen(tmp_path, "\n".join([arguments_dump(more | wide), *lines]) + "\n")
        assert "by the real model's FLOPs" in text
        assert ("without recomputation" in text) == recomputed


def test_a_step_of_several_models_may_skip_one_update(tmp_path):
    skip = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8, reducing to 4\n"
    lines = [
        (skip * 2 if n == 5 else skip if n == 9 else "")
        + f"epoch: 0|step: {n}|ppo_ep: 1|act_loss: 0.31|cri_loss: 0.2|unsuper_loss: 0.0\n"
        + f"|E2E latency=3.8{n % 3}s |Gather latency=0.00s (0.00%) |Generate time=2.5s (65%) |Training time=1.1s (28%) "
        + "|Others=0.23 (6%)|CurSamplesPerSec=16.5 |AvgSamplesPerSec=13.1\n"
        for n in range(40)
    ]
    text = screen(tmp_path, "".join(lines))
    assert "2 of 40 steps skipped an update" in text
    assert "useful step" not in text


BATCH, DEVICES, STEPS = 16, 4, 40
BANNER = (
    "***** Running training *****\n  Num examples = 320\n  Num Epochs = 2\n"
    f"  Instantaneous batch size per device = {BATCH // DEVICES}\n"
    f"  Total train batch size (w. parallel, distributed & accumulation) = {BATCH}\n"
    f"  Gradient Accumulation steps = 1\n  Total optimization steps = {STEPS}\n"
)


def bars(pace: str = "20.00s/it") -> str:
    """Dicts with a bar for each step of 20 s by the clock; ``pace`` is what the bar prints."""
    return "".join(
        f"{{'loss': 1.5, 'grad_norm': 0.5, 'learning_rate': 4e-05, 'epoch': {n / 20:.2f}}}\n"
        f" {n * 100 // STEPS}%|█ | {n}/{STEPS} [{n * 20 // 60:02}:{n * 20 % 60:02}<10:00, {pace}]\n"
        for n in range(1, STEPS + 1)
    )


@pytest.mark.parametrize("ratio", [0.5, 0.9, 0.94, 0.97, 1.0, 1.03, 1.07])
@pytest.mark.parametrize("text", ["2048", None])
def test_a_printed_rate_that_differs_is_next_to_ours(tmp_path, ratio, text):
    """The last batch of an epoch may be short: the rate of the log is that of the samples there were."""
    rate = f"{ratio * BATCH / 20:.3f}"
    summary = f"{{'train_runtime': {20 * STEPS / ratio:.2f}, 'train_samples_per_second': {rate}, 'epoch': 2.0}}\n"
    options = ("--seq-length", text) if text else ()
    row = screen(tmp_path, BANNER + bars() + summary, *options)
    assert (f"the log prints {float(rate):.3g}" in row) == (abs(ratio - 1) > 0.05)


@pytest.mark.parametrize(
    ("pace", "shown"),
    [
        ("17.00s/it", "the log prints 17 s/step, 85.0 % of ours"),
        ("20.50s/it", None),
        ("19.10s/it", None),
        ("0.1it/s", None),
    ],
)
def test_a_printed_pace_that_differs_is_next_to_the_step_time(tmp_path, pace, shown):
    text = " ".join(screen(tmp_path, BANNER + bars(pace)).split())
    assert ("the log prints" in text) == (shown is not None)
    assert shown is None or shown in text
