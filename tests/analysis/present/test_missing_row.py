"""The row of missing figures names exactly what is missing, why, and the flags that would give it."""

import json
import re
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from helpers import ROOT, SETTINGS, arguments_dump, megatron_line, run_logparse

from analysis.present.numbers import three
from analysis.present.views.expectations import plan_sentences
from analysis.present.views.first_screen import compared
from analysis.published.baselines import published
from analysis.published.match import Against
from analysis.run.checks.expectations import Plan
from analysis.run.checks.memory_comparison import Planned
from logparse.findings import info

PPO = "step:{step} - actor/pg_loss:0.010 - timing/gen:48.9 - timing/ref:12.1 - timing/update_actor:37.5\n"
WHOLE = (
    "step:{step} - actor/pg_loss:0.010 - timing_s/gen:48.9 - timing_s/update_actor:37.5 - timing_s/step:{seconds} - "
    "perf/throughput:190.0\n"
)


def screen(folder, text, *options, name="run.log"):
    (folder / name).write_text(text)
    done = run_logparse("analyze", name, *options, cwd=folder, COLUMNS="200")
    return {line[:14].strip(): line[14:].strip() for line in done.stdout.splitlines() if line[:1].strip()}


def steps(times=(), **settings):
    begin = datetime(2026, 3, 1, 8)
    lines, clock = [arguments_dump(SETTINGS | settings)], begin
    for step, ms in enumerate(times or [1000.0] * 30, 1):
        clock += timedelta(milliseconds=ms)
        lines.append(megatron_line(step, ms, f"{clock:%Y-%m-%d %H:%M:%S}") + "\n")
    return "".join(lines)


def without(text, *names):
    return "".join(line for line in text.splitlines(keepends=True) if line.split()[0] not in names)


def test_a_setting_that_alone_is_missing_is_named_with_the_model(tmp_path):
    log = without(steps(), "num_query_groups", "group_query_attention")
    expected = "MFU: KV heads not in the log: pass --model llama2-7b --hw"
    assert screen(tmp_path, log, name="llama2-7b.log")["missing"] == expected
    assert "MFU" in screen(tmp_path, log, "--model", "llama2-7b", "--hw", "910b3")


def test_a_rate_that_is_shown_is_not_called_missing(tmp_path):
    shown = screen(tmp_path, without(steps(), "seq_length"), "--hw", "910b3")
    assert shown["throughput"].endswith("samples/s/p (per device)")
    assert shown["missing"].startswith("tokens/s/p, TFLOP/s, MFU: pass --seq-length")


def test_a_figure_that_the_log_prints_is_missing_as_computed(tmp_path):
    lines = [
        re.sub(
            "global batch size|consumed samples",
            "xx",
            megatron_line(step, pairs={"throughput per GPU (TFLOP/s/GPU)": "150.0"}),
        )
        for step in range(1, 31)
    ]
    shown = screen(tmp_path, "\n".join(lines) + "\n")
    assert shown["TFLOP/s"].endswith("printed by the log")
    assert shown["missing"].startswith("throughput, computed TFLOP/s, MFU: pass --world-size")


def test_a_log_with_times_of_phases_says_that_no_rate_is_possible(tmp_path):
    shown = screen(tmp_path, "".join(PPO.format(step=step) for step in range(30)))
    assert shown["missing"] == "all rates: the log prints only phases of a step, not its time"
    assert "settled" not in shown.get("warnings", "")


def test_times_of_steps_that_are_all_lost_are_in_the_log(tmp_path):
    lines = [f"{megatron_line(step)}\n".replace("nan iterations:   0", "nan iterations:   1") for step in range(1, 31)]
    assert screen(tmp_path, "".join(lines))["missing"] == "all rates: no step was useful, see the warnings"


def test_the_time_of_a_whole_step_is_read_and_no_flag_is_asked_for_that_gives_nothing(tmp_path):
    log = "".join(WHOLE.format(step=step, seconds=100.5 + step % 3) for step in range(1, 31))
    shown = screen(tmp_path, log)
    assert shown["step time"].startswith("102 s")
    assert shown["throughput"] == "190 tokens/s/p, printed by the log (median)"
    assert shown["missing"] == "TFLOP/s, MFU: no formula counts rollouts"


@pytest.mark.parametrize(
    ("times", "clause"),
    [
        ([1000.0] * 30, ""),
        ([1000.0] * 15 + [3000.0] + [1000.0] * 15, "median; mean including stalls 1.06 s"),
        ([800.0] * 14 + [1000.0] * 16, "median; mean 907 ms"),
    ],
)
def test_the_median_and_the_mean_are_named(tmp_path, times, clause):
    shown = screen(tmp_path, steps(times), "--warmup", "0")["step time"]
    assert shown == " ".join(["1.00 s", clause]).strip() or shown.split(maxsplit=2) == ["1.00", "s", clause]


def test_lines_without_a_step_number_say_so(tmp_path):
    lines = [f"{{'loss': 2.5, 'grad_norm': 9.3, 'learning_rate': 1e-05, 'epoch': {n / 2}}}\n" for n in range(1, 4)]
    (tmp_path / "run.log").write_text("".join(lines))
    done = run_logparse("analyze", "run.log", cwd=tmp_path)
    assert done.returncode == 3
    assert "3 lines of Hugging Face Trainer have no step number" in done.stderr
    assert "with its progress bar" in done.stderr


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (1.001, "equal to {}'s published {} tokens/s/p, measured on {}, probably this run"),
        (1.02, "102 % of {}'s published {} tokens/s/p, measured on {}"),
    ],
)
def test_a_published_rate_that_is_probably_of_this_run_says_so(share, shown):
    row = next(row for row in published() if row.tokens_per_second_per_device and row.publisher)
    matches = [Against(row, share, ())]
    expectations = SimpleNamespace(published=SimpleNamespace(matches=matches))
    run = SimpleNamespace(expectations=expectations, title=SimpleNamespace(device=None))
    screen_row = compared(run)
    assert ", ".join(screen_row.clauses) == shown.format(
        row.publisher, three(row.tokens_per_second_per_device), row.device.upper()
    )
    run.title.device = "910b"
    assert "measured on" not in ", ".join(compared(run).clauses)
    run.title.device = None
    matches[0] = Against(row, 0.02, ())
    assert compared(run) is None


def test_a_peak_from_cores_and_clock_shows_the_nominal_one(tmp_path):
    shown = screen(tmp_path, steps(), "--hw", "910b3")["TFLOP/s"]
    assert "of peak 295 (nominal 313)" in shown
    assert "nominal" not in screen(tmp_path, steps(), "--hw", "h100")["TFLOP/s"]


@pytest.mark.parametrize("confirms", [True, False])
def test_printed_tflops_that_are_the_mfu_are_said_to_be(tmp_path, confirms):
    mfu = float(screen(tmp_path, steps([5000.0] * 30), "--hw", "910b3")["MFU"].split(" %")[0]) / 100
    value = (mfu if confirms else mfu / 2) * 294.91
    log = steps([5000.0] * 30).replace(" lm loss", f" throughput per GPU (TFLOP/s/GPU): {value:.1f} | lm loss")
    shown = screen(tmp_path, log, "--hw", "910b3")
    assert ("(FLOPs as in MFU)" in " ".join(shown.values())) == confirms
    assert ("warnings" in shown) != confirms


def test_stages_that_differ_in_memory_alone_are_one_sentence():
    why = info("memory_settings_do_not_fit")
    rows = [
        Planned("stage", "bytes", None, size, (info("memory_of_stage", stage=at, measured_bytes=size), why))
        for at, size in enumerate((20e9, 16e9, 18e9), 1)
    ]
    text, *others = plan_sentences(Plan(tuple(rows), (), None, ()))
    assert text.startswith("stages 1 to 3: 16.00 to 20.00 GB allocated at most; not estimated")
    assert others == []


def test_settings_of_a_model_without_a_name_are_asked_for_by_their_own_flags(tmp_path):
    unknown = ("num_query_groups", "group_query_attention", "swiglu")
    log = without(steps(num_layers=31), *unknown)
    shown = screen(tmp_path, log, "--hw", "910b3")["missing"]
    flags = ["--gated-linear-unit/--no-gated-linear-unit", "--num-query-groups"]
    assert sorted(shown.split(": pass ")[1].split()) == flags
    assert "MFU" in screen(tmp_path, log, "--hw", "910b3", "--gated-linear-unit", "--num-query-groups", "32")


def test_the_mfu_that_verl_prints_is_of_the_update_and_no_flag_is_asked_for_another(tmp_path):
    line = WHOLE.replace("perf/throughput", "perf/mfu/actor:0.288 - perf/throughput")
    shown = screen(tmp_path, "".join(line.format(step=step, seconds=98.6) for step in range(1, 9)))
    assert shown["MFU"] == "28.8 %     printed by the log, of the policy update alone"
    assert shown["missing"].endswith("TFLOP/s, computed MFU: no formula counts rollouts")


def test_two_levels_of_the_step_time_are_both_on_the_screen(tmp_path):
    shown = screen(tmp_path, steps([1000.0] * 40 + [1500.0] * 40), "--hw", "910b3")
    assert "the step time changes by 50 %: 1.00 s, then 1.50 s" in shown["warnings"]
    many = [1000.0 * 1.2 ** (step // 40) for step in range(240)]
    assert "the step time changes by 149 %; see -v" in screen(tmp_path, steps(many), "--hw", "910b3")["warnings"]


def adapters(*lines):
    rows = (
        f"{{'loss': 2.3, 'grad_norm': 1.2, 'learning_rate': 4.9e-05, 'epoch': 0.{step}}}\n"
        f" {step}0%|██        | {step}/10 [00:{2 * step:02}<00:10,  2.00s/it]\n"
        for step in range(1, 10)
    )
    return "".join((*lines, "  Num Epochs = 1\n  Total train batch size (w. parallel) = 8\n", *rows))


def test_a_batch_of_more_samples_than_the_epoch_is_a_bound(tmp_path):
    few = adapters("***** Running training *****\n  Num examples = 5\n")
    part = screen(tmp_path, few, "--seq-length", "2048", "--world-size", "1")
    assert part["throughput"] == "at most 8,190 tokens/s/p, at most 4.00 samples/s/p (per device)"
    assert "an epoch has 5 samples, the batch 8" in part["warnings"]
    enough = adapters("***** Running training *****\n  Num examples = 80\n")
    assert "at most" not in screen(tmp_path, enough, "--seq-length", "2048", "--world-size", "1")["throughput"]


def test_adapters_are_trained_on_samples_of_any_length(tmp_path):
    trained = "trainable params: 20,185,088 || all params: 7,635,801,600 || trainable%: {share}\n"
    options = ("--seq-length", "2048", "--world-size", "1")
    part = screen(tmp_path, adapters(trained.format(share="0.2643")), *options)
    assert part["throughput"].startswith("at most 8,190 tokens/s/p")
    assert "samples are padded" in part["warnings"]
    whole = screen(tmp_path, adapters(trained.format(share="100.0000")), *options)
    assert whole["throughput"].startswith("8,190 tokens/s/p")
    # Without a count of tokens no figure is an upper bound.
    shown = screen(tmp_path, adapters(trained.format(share="0.2643")))
    assert "samples differ" not in shown.get("warnings", "")


def test_tokens_that_the_log_prints_are_shown_with_computed_samples(tmp_path):
    without_length = without(steps(), "seq_length", "max_position_embeddings", "encoder_seq_length")
    text = without_length.replace(" | lm loss:", " | tokens/sec/gpu: 3276.8 | lm loss:")
    row = screen(tmp_path, text)["throughput"]
    assert row == "3,280 tokens/s/p, printed by the log (median), 4.00 samples/s/p (per device)"


def test_a_model_that_was_given_keeps_its_name_and_needs_no_owner(tmp_path):
    options = ("--model", "facebook/opt-1.3b", "--world-size", "8", "--seq-length", "2048", "--global-batch-size", "32")
    (tmp_path / "run.log").write_text("".join(megatron_line(step, 1000.0) + "\n" for step in range(1, 31)))
    shown = run_logparse("analyze", "run.log", *options, cwd=tmp_path).stdout
    assert shown.startswith("opt-1.3b on 8 devices")
    # With another width it is another model.
    shown = run_logparse("analyze", "run.log", *options, "--hidden-size", "1024", cwd=tmp_path).stdout
    assert "opt-1.3b" not in shown.splitlines()[0]


def test_a_model_of_a_common_shape_has_the_name_that_the_log_prints(tmp_path):
    text = (ROOT / "fixtures/mindformers/family-b-llama2-7b/run.log").read_text()
    for vocabulary, title in ((32016, "codellama-7b"), (32000, "codellama_7b")):
        named = text.replace("Model is: llama2_7b", "Model is: codellama_7b").replace("32000", str(vocabulary))
        (tmp_path / "run.log").write_text(named)
        # As the log spells it where another vocabulary makes it another model.
        assert run_logparse("analyze", "run.log", cwd=tmp_path).stdout.startswith(f"{title} on 8 devices")


@pytest.mark.parametrize("counted", ["mfu", "hfu"])
def test_a_printed_rate_of_the_real_model_is_known_without_a_device(tmp_path, counted):
    text = steps(swiglu=True, ffn_hidden_size=16384)
    (tmp_path / "run.log").write_text(text)
    run = json.loads(run_logparse("analyze", "run.log", "--hw", "910b3", "--json", cwd=tmp_path).stdout)["runs"][0]
    rates = run["rates"]["steady"]
    peak = rates["tflops_per_second_per_device"] / rates["peak_utilization"]
    printed = f" | throughput per GPU (TFLOP/s/GPU): {rates[counted] * peak:.1f} | lm loss:"
    (tmp_path / "run.log").write_text(text.replace(" | lm loss:", printed))
    shown = run_logparse("analyze", "run.log", cwd=tmp_path, COLUMNS="200").stdout
    assert f"(FLOPs as in {counted.upper()})" in shown


def test_of_a_device_without_a_known_peak_only_the_peak_is_asked_for(tmp_path):
    text = (ROOT / "fixtures/torchtitan/llama3-8b-2d/run.log").read_text()
    shown = screen(tmp_path, re.sub(r"CUDA capacity: .*? with", "CUDA capacity: Example Card 9 with", text))
    assert "no peak of this device is known: pass --peak-tflops" in shown["missing"]


def test_tokens_that_skip_layers_leave_no_mfu(tmp_path):
    pairs = {"reserve_length": "  256"}
    text = f"{arguments_dump(SETTINGS)}\n" + "".join(f"{megatron_line(s, pairs=pairs)}\n" for s in range(1, 21))
    assert "no formula counts random_ltd" in screen(tmp_path, text)["missing"]


def test_of_a_device_without_a_peak_of_the_assumed_type_the_type_is_asked_for(tmp_path):
    settings = {name: value for name, value in SETTINGS.items() if name not in ("bf16", "fp16")}
    text = f"{arguments_dump(settings)}\n" + "".join(f"{megatron_line(s)}\n" for s in range(1, 21))
    assert "--dtype" in screen(tmp_path, text, "--hw", "v100")["missing"]
    assert screen(tmp_path, text, "--hw", "v100", "--recompute", "none")["missing"].endswith(
        "is known: pass --dtype or --peak-tflops"
    )


def test_a_run_that_failed_without_a_save_says_so_and_has_nothing_to_resume_from(tmp_path):
    steps_of = "".join(f"{megatron_line(s, 20_000.0)}\n" for s in range(1, 41))
    saved = "successfully saved checkpoint at iteration      40 to ckpt\n"
    for save, unsaved in (("", True), (saved, False)):
        text = f"{arguments_dump(SETTINGS)}\n{steps_of}{save}ValueError: too many values\n"
        shown = screen(tmp_path, text)
        assert ("no save in the log" in shown["goodput"]) == unsaved
        assert ("remaining" not in shown) == unsaved


def test_where_few_flags_are_missing_that_of_recomputation_has_its_values(tmp_path):
    text = (ROOT / "fixtures/torchtitan/llama3-8b-2d/run.log").read_text()
    unknown = "".join(line for line in text.splitlines(keepends=True) if "activation checkpointing" not in line)
    assert screen(tmp_path, unknown)["missing"].endswith(" --recompute none|selective|full")
    several = "".join(f"{megatron_line(step)}\n" for step in range(1, 31))
    assert screen(tmp_path, several)["missing"].endswith("--model --hw --dtype")
    # Of a peak that is given no number type is needed.
    assert screen(tmp_path, several, "--peak-tflops=400", "--world-size=8")["missing"].endswith(
        "--model; HFU also --recompute"
    )


def test_the_mfu_that_the_log_prints_is_in_the_row_of_ours(tmp_path):
    text = (ROOT / "fixtures/torchtitan/llama3-8b-2d/run.log").read_text()
    printed = re.findall(r"mfu: .*?([\d.]+)%", text)
    assert printed
    shown = screen(tmp_path, text)["MFU"]
    assert re.search(rf"the log prints {float(printed[-1]):.0f}(\.\d)? %", shown), shown


def test_the_number_of_warnings_is_that_of_their_section(tmp_path):
    (tmp_path / "run.log").write_text("".join(f"{megatron_line(step, 20_000.0)}\n" for step in range(1, 31)))
    shown = run_logparse("analyze", "run.log", "--hw", "910b", "-v", cwd=tmp_path, COLUMNS="300").stdout
    found = re.search(r"^warnings +(\d+): ", shown, re.MULTILINE)
    section = re.search(r"^warnings\n(.*?)\n\n", shown, re.MULTILINE | re.DOTALL)
    assert found
    assert section
    assert int(found[1]) == section[1].count("\n! ") + 1
    why = shown.split("\nwhy rows are missing or doubtful\n")[1].split("\n\n")[0]
    assert "[tokens_rate_not_computed]" in why


def test_on_a_cpu_no_flag_is_asked_for_that_would_not_help(tmp_path):
    on_cpu = "[INFO] [real_accelerator.py:158] Setting ds_accelerator to cpu (auto detect)"
    head = arguments_dump(SETTINGS) + f"{on_cpu}\n"
    text = head + "".join(f"{megatron_line(step, 100_000.0)}\n" for step in range(1, 31))
    shown = screen(tmp_path, text)
    assert shown["missing"] == "MFU: not computed on a CPU"
    assert "compared" not in shown
    assert "the log shows a run on a CPU, not on H100 SXM5" in screen(tmp_path, text, "--hw", "h100")["warnings"]
    # What is too fast for a CPU is none, whatever the log says.
    fast = head + "".join(f"{megatron_line(step)}\n" for step in range(1, 31))
    shown = screen(tmp_path, fast)
    assert "too fast for a CPU: pass --hw" in shown["warnings"]
    assert shown["missing"] == "MFU: pass --hw"
    assert "CPU" not in screen(tmp_path, fast, "--hw", "h100").get("warnings", "")


def test_many_stalls_are_named_beside_the_median(tmp_path):
    times = [1000.0 if step % 5 else 3000.0 for step in range(1, 61)]
    text = f"{arguments_dump(SETTINGS)}\n" + "".join(f"{megatron_line(s, ms)}\n" for s, ms in enumerate(times, 1))
    assert re.search(
        r"median without 1\d stalls \([\d.]+ s in all\), mean without stalls 1\.00 s, with stalls 1\.\d+ s",
        screen(tmp_path, text)["step time"],
    )


def test_a_formula_far_from_the_model_has_the_tflops_of_the_model_beside_it(tmp_path):
    gated = SETTINGS | {"swiglu": True, "ffn_hidden_size": 22016, "padded_vocab_size": 256_000}
    text = f"{arguments_dump(gated)}\n" + "".join(f"{megatron_line(s)}\n" for s in range(1, 31))
    shown = screen(tmp_path, text, "--peak-tflops", "1000")
    # The share of the peak is that of the figure before it.
    found = re.search(r"of the peak 1,000, ([\d.,]+) by the real model's FLOPs", shown["TFLOP/s"])
    by_model = float(found[1].replace(",", ""))
    assert by_model / 1000 == pytest.approx(float(shown["MFU"].split(" %")[0]) / 100, rel=0.01)


TUNED = "Step {step} | loss:1.25 lr:2e-05 tokens_per_second_per_gpu:{rate} \n"


def tuned(rates):
    return "".join(TUNED.format(step=step, rate=rate) for step, rate in enumerate(rates, 1))


# The first of the lines is left out as warm-up.
@pytest.mark.parametrize(
    ("n", "limit"), [(30, "under 5 min: too short"), (12, "11 log lines: too few")], ids=["seconds", "lines"]
)
def test_a_short_log_names_the_limit(tmp_path, n, limit):
    (tmp_path / "run.log").write_text(steps([1000.0] * n))
    title = run_logparse("analyze", "run.log", cwd=tmp_path, COLUMNS="200").stdout.splitlines()[1]
    assert title.endswith(f" · {limit} for goodput")


@pytest.mark.parametrize(
    ("lines", "why"),
    [(12, "12 log lines: too few for goodput"), (30, "no goodput without step times")],
    ids=["few", "enough"],
)
def test_a_run_without_step_times_says_why_there_is_no_goodput(tmp_path, lines, why):
    (tmp_path / "run.log").write_text(tuned([400.5] * lines))
    title = run_logparse("analyze", "run.log", cwd=tmp_path, COLUMNS="200").stdout.splitlines()[1]
    assert title == f"steps 1 to {lines} · {why}"


@pytest.mark.parametrize(
    ("rates", "clause"),
    [
        ([60.5, *[400.25, 650.25] * 9, 962.5], "printed by the log (median; 400 to 650 in 80 % of the lines)"),
        ([60.5, *[400.5, 500.5] * 9, 962.5], "printed by the log (median)"),
        ([60.5, *[400.5, 600.5] * 3], "printed by the log (median)"),
    ],
)
def test_printed_rates_that_spread_show_how_far(tmp_path, rates, clause):
    assert screen(tmp_path, tuned(rates))["throughput"].endswith(clause)


def test_a_model_that_the_log_names_is_asked_for_only_with_the_sizes_of_the_log(tmp_path):
    text = (ROOT / "fixtures/mindformers/family-a-sink/run.log").read_text()
    assert "--model llama-7b" in screen(tmp_path, text)["missing"]
    assert "--model llama-7b" in screen(tmp_path, text.replace("'llama_7b'", "'llama_7b_lora'"))["missing"]
    other = text.replace("'num_layers': 32", "'num_layers': 2")
    assert other != text
    shown = screen(tmp_path, other, "--hw", "910b3")["missing"]
    assert shown == "MFU: KV heads, FFN width not in the log: pass --num-query-groups --ffn-hidden-size"
    sizes = ("--num-query-groups", "32", "--ffn-hidden-size", "11008")
    assert "MFU" in screen(tmp_path, other, "--hw", "910b3", *sizes)


OWN_SIZES = ("--num-layers", "31", "--hidden-size", "6144", "--vocab-size", "256000")
JOB = ("--world-size", "64", "--seq-length", "4096", "--hw", "h100", "--dtype", "bf16", "--recompute", "none")


def test_of_a_model_that_flags_describe_the_flags_that_are_still_missing_are_asked_for(tmp_path):
    text = "".join(f"{megatron_line(step)}\n" for step in range(1, 31))
    shown = screen(tmp_path, text, *OWN_SIZES)["missing"]
    assert "--model" not in shown
    assert "--world-size" in shown
    asked = re.findall(r"--(?!no-)[a-z-]+", screen(tmp_path, text, *OWN_SIZES, *JOB)["missing"])
    # The size of a head follows from the number of heads.
    assert sorted(asked) == ["--ffn-hidden-size", "--gated-linear-unit", "--num-attention-heads", "--num-query-groups"]
    assert set(asked) <= set(re.findall(r"--(?!no-)[a-z-]+", shown))
    values = ("--no-gated-linear-unit", "--num-attention-heads=48", "--num-query-groups=8", "--ffn-hidden-size=24576")
    assert "MFU" in screen(tmp_path, text, *OWN_SIZES, *JOB, *values)


def test_of_sizes_that_no_known_model_has_the_log_may_print_them(tmp_path):
    text = without(steps(num_layers=31), "num_query_groups", "group_query_attention", "swiglu", "num_attention_heads")
    shown = screen(tmp_path, without(text, "kv_channels", "ffn_hidden_size"), "--hw", "910b3")["missing"]
    assert "--model" not in shown
    assert "--num-attention-heads --num-query-groups" in shown


@pytest.mark.parametrize(
    ("layers", "printed", "model"),
    [
        (32, "llama_7b", "llama-7b"),
        (32, "llama2_7b", "llama2-7b"),
        (32, "llama2_7b_lora", "llama2-7b"),
        (2, "llama_7b", "2 layers x 4,096"),
        (2, "vicuna_7b", "vicuna_7b"),
    ],
)
def test_the_title_names_the_model_of_the_log_where_it_has_its_sizes(tmp_path, layers, printed, model):
    text = (
        (ROOT / "fixtures/mindformers/family-a-sink/run.log")
        .read_text()
        .replace("'num_layers': 32", "'num_layers': {}")
    )
    (tmp_path / "run.log").write_text(
        text.replace("'num_layers': {}", f"'num_layers': {layers}").replace("llama_7b", printed)
    )
    title = run_logparse("analyze", "run.log", cwd=tmp_path, COLUMNS="200").stdout.splitlines()[0]
    assert title.partition(" on ")[0] == model


@pytest.mark.parametrize("case", ["nanotron/llama-dp4-tp2", "mindformers/family-b-1.5"])
def test_printed_tflops_and_ours_are_compared_with_those_of_the_real_model(tmp_path, case):
    text = (ROOT / "fixtures" / case / "run.log").read_text()
    shown, by_model = screen(tmp_path, text), screen(tmp_path, text, "--formula", "megatron")
    printed = float(re.search(r"the log prints ([\d.]+)", shown["TFLOP/s"])[1])
    ours, real = (float(found["TFLOP/s"].split()[0]) for found in (shown, by_model))

    found = re.search(r"real model ([\d.]+), log ([\d.]+) \((.\d+) %\), ours ([\d.]+) \((.\d+) %\)", shown["warnings"])
    model, of_log, below, own, above = map(float, found.groups())
    # All are shown with three digits.
    assert [model, of_log, own] == pytest.approx([real, printed, ours], rel=0.01)
    assert [1 + below / 100, 1 + above / 100] == pytest.approx([printed / real, ours / real], abs=0.02)
    assert "(equal)" in by_model["warnings"]


def test_a_benchmark_names_its_model_and_leaves_its_number_type_open(tmp_path):
    log = (ROOT / "fixtures/mllog-blocks/lora-8gpu/run.log").read_text()
    shown = screen(tmp_path, log, "--hw", "b200")
    assert shown["TFLOP/s"].endswith("AscendSpeed's formula")
    assert "MFU" not in shown
    assert shown["missing"].startswith("MFU: number type not in the log: pass --dtype; HFU also --recompute")
    assert "compared" in shown
    assert screen(tmp_path, log, "--hw", "b200", "--dtype", "fp8")["MFU"].startswith("17.2 %")


def test_step_times_that_spread_show_their_range(tmp_path):
    spread = [(1000.0, 1300.0, 1700.0, 1150.0)[step % 4] for step in range(60)]
    assert screen(tmp_path, steps(spread))["step time"].endswith("1.00 s to 1.70 s in 80 % of the steps")
    assert "in 80 %" not in screen(tmp_path, steps([1000.0] * 60))["step time"]


def test_printed_tflops_are_shown_as_a_share_of_the_peak(tmp_path):
    printed = {"throughput per GPU (TFLOP/s/GPU)": "200.0"}
    text = "".join(f"{megatron_line(s, pairs=printed)}\n" for s in range(1, 31))
    assert screen(tmp_path, text, "--peak-tflops", "400")["TFLOP/s"].endswith(
        "printed by the log, 50.0 % of the peak 400"
    )
    assert screen(tmp_path, text, "--hw", "910b")["TFLOP/s"].endswith("% of the peak")
    assert "bf16 assumed" in screen(tmp_path, text, "--hw", "910b3")["warnings"]
    assert "warnings" not in screen(tmp_path, text, "--hw", "910b3", "--dtype", "fp16")


def test_attention_within_documents_explains_printed_tflops(tmp_path):
    packed = SETTINGS | {"use_packed_seq_params": True, "seq_length": 32_768}

    def shown(tflops, *options):
        pairs = {"throughput per GPU (TFLOP/s/GPU)": f"{tflops:.3f}"}
        lines = "".join(f"{megatron_line(s, pairs=pairs)}\n" for s in range(1, 31))
        return screen(tmp_path, f"{arguments_dump(packed)}\n{lines}", "--peak-tflops", "1000", *options)

    real = 10 * float(shown(1.0)["MFU"].split()[0])
    assert "(attention within documents)" in shown(0.8 * real)["warnings"]
    assert "within documents)" not in shown(2.5 * real)["warnings"]


def test_a_length_that_only_the_formula_needs_is_asked_for_at_once(tmp_path):
    log = (ROOT / "fixtures/olmo/1b-8gpu/run.log").read_text(encoding="utf-8")
    assert screen(tmp_path, log)["missing"].startswith("TFLOP/s, MFU: pass --seq-length --model")
    options = ("--model", "llama3.2-1b", "--hw", "a100", "--dtype", "bf16")
    assert "TFLOP/s, MFU: pass --seq-length" in screen(tmp_path, log, *options)["missing"]
    assert "TFLOP/s" in screen(tmp_path, log, *options, "--seq-length", "2048")


def test_a_coarse_clock_says_to_what_a_step_is_exact(tmp_path):
    line = '{{"current_steps": {n}, "total_steps": 900, "loss": 1.0, "epoch": {n}.5, "percentage": 1.0, {clock}}}\n'
    seconds = (23 * n + n // 3 for n in range(1, 61))
    clocks = (f'"elapsed_time": "0:{s // 60:02}:{s % 60:02}", "remaining_time": "0:14:35"' for s in seconds)
    text = "".join(line.format(n=10 * n, clock=clock) for n, clock in enumerate(clocks, 1))
    assert screen(tmp_path, text)["step time"].endswith("exact to 100 ms")
    assert "exact to" not in screen(tmp_path, steps())["step time"]


def test_of_several_batches_the_time_is_that_of_one(tmp_path):
    lines = [arguments_dump(SETTINGS)]
    for step in range(1, 61):
        pairs = {"global batch size": str(16 if step < 21 else 32), "number of skipped iterations": str(int(step == 9))}
        lines.append(megatron_line(step, 1000.0 if step < 21 else 2000.0, "", pairs) + "\n")
    assert screen(tmp_path, "".join(lines))["step time"].endswith("median, at a batch of 32, 1 of 60 updates skipped")


def test_a_failed_excerpt_says_from_which_step_on_its_tokens_are(tmp_path):
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    for first, says in ((1, False), (41, True)):
        lines = "".join(f"{megatron_line(step)}\n" for step in range(first, 61))
        (tmp_path / "run.log").write_text(arguments_dump(SETTINGS) + lines + error)
        shown = " ".join(run_logparse("analyze", "run.log", cwd=tmp_path).stdout.split())
        assert "failed at step 60 of 500" in shown
        assert ("tokens from step 41 on" in shown) == says
