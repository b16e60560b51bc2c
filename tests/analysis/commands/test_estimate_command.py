"""``logparse estimate`` as a user runs it: the note on 13B, what comes from a log, files, errors."""

import json

import pytest
from helpers import ROOT, SETTINGS, megatron_log, run_logparse

from analysis.charts.device_memory import memory_chart, memory_rows
from analysis.estimate.assumptions import ASSUMED as ASSUMED_OF_RUNS
from analysis.estimate.device_layout import Layout, Training
from analysis.estimate.job_inputs import ASSUMED
from analysis.estimate.layout_search import Search
from analysis.model.catalogue import find_model
from analysis.model.parameters import count_parameters

pytestmark = pytest.mark.usefixtures("analysed_once")

THIRTEEN = (
    "estimate",
    "--model",
    "llama2-13b",
    "--hw",
    "a100-80g",
    "--seq-length",
    "4096",
    "--global-batch-size",
    "64",
)


def estimated(*arguments, cwd=ROOT, **environment):
    done = run_logparse(*arguments, "--json", cwd=cwd, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def texts(found):
    return [note["text"] for note in found["notes"]]


def told(found, name):
    """A quantity's value and origin."""
    fact = found["context"][name]
    return fact["value"], fact["origin"]


def test_the_note_on_8_cards():
    found = estimated(*THIRTEEN, "--devices", "8")
    overflows = {(x["tp"], x["pp"], x["dp"], x["zero"]): x["overflows"] for x in found["layouts"]}
    assert overflows[1, 4, 2, 0] == [1]
    assert overflows[1, 4, 2, 1] == []
    assert overflows[1, 8, 1, 0] == []
    assert overflows[1, 1, 8, 0] == [1]


def test_a_given_layout_by_the_exact_count_and_by_the_rule():
    found = estimated(*THIRTEEN, "--devices", "8", "--tp", "1", "--pp", "4", "--zero", "0")["layout"]
    assert (found["dp"], found["fits"], found["overflows"]) == (2, False, [1])
    assert [round(s["total_bytes"] / 1e9, 2) for s in found["stages"]] == [87.06, 77.36, 70.60, 67.41]
    assert [round(s["rule_bytes"] / 1e9, 2) for s in found["stages"]] == [92.13, 83.74, 75.35, 66.96]
    assert [s["in_flight"] for s in found["stages"]] == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("model", "device", "devices"), [("llama2-7b", "910b3", 16), ("llama3-8b", "h100", 8), ("llama2-13b", "a100", 8)]
)
def test_the_short_answer_is_twenty_lines_at_most(model, device, devices):
    job = ("--model", model, "--hw", device, "--devices", str(devices), "--seq-length", "4096")
    done = run_logparse("estimate", *job, "--global-batch-size", "64", cwd=ROOT, COLUMNS="80")
    lines = done.stdout.strip().splitlines()
    assert len(lines) <= 20
    assert sum(line.startswith("tp ") and "ZeRO" in line for line in lines) == 6
    assert "-v shows" in lines[-1]


def test_the_step_at_a_published_rate_is_batch_over_rate():
    """ModelLink: 2,680 tokens/s/p of llama2-7b; 64 x 4096 tokens on 16 devices take 6.11 s."""
    job = ("--model", "llama2-7b", "--hw", "910b3", "--devices", "16", "--seq-length", "4096")
    assert "step time" not in run_logparse("estimate", *job, cwd=ROOT).stdout
    shown = " ".join(run_logparse("estimate", *job, "--global-batch-size", "64", cwd=ROOT).stdout.split())
    assert "step time: 6.11 s at the rate that ModelLink publishes for 8 devices: 2,680 tokens/s/p (MFU" in shown


def test_table_says_which_stage_overflows():
    shown = run_logparse(*THIRTEEN, "--devices", "8", "--tp", "1", "--pp", "4", "--zero", "0", "-v", cwd=ROOT).stdout
    assert "! stage 1 does not fit: 87.06 GB of 80.00, 7.06 GB too much" in shown
    assert "12 x 40 x 5,120^2" in shown
    assert "--tp" in shown


def test_of_several_stages_that_overflow_the_fullest_is_measured():
    shown = run_logparse(*THIRTEEN, "--tp", "1", "--pp", "4", "--zero", "0", "--micro-batch-size", "2", cwd=ROOT).stdout
    assert "! stages 1, 2, 3 do not fit; the largest is 1: 114.07 GB of 80.00, 34.07 GB too much" in shown


def test_every_figure_has_its_formula_or_says_what_it_lacks():
    figures = estimated(*THIRTEEN, "--devices", "8", "--tp", "2", "--tokens", "1e12")["figures"]
    assert len(figures) > 20
    for name, figure in figures.items():
        assert figure["formula"], name
        assert figure["source"], name
        assert bool(figure["worked"]) == (figure["value"] is not None), name
        assert bool(figure["lacks"]) == (figure["value"] is None), name


def test_shape_from_flags_is_as_good_as_a_name():
    flags = {
        "--num-layers": 40,
        "--hidden-size": 5120,
        "--ffn-hidden-size": 13824,
        "--num-attention-heads": 40,
        "--num-query-groups": 40,
        "--vocab-size": 32000,
    }
    words = [str(word) for pair in flags.items() for word in pair]
    whole = estimated("estimate", *words, "--gated-linear-unit", "--seq-length", "4096")
    assert whole["figures"]["parameters_exact"]["value"] == 13_015_864_320
    assert told(whole, "untie_embeddings_and_output_weights") == (True, "assumed")
    lacking = estimated("estimate", *words, "--seq-length", "4096")
    assert lacking["figures"]["parameters_short"]["value"] == 12_582_912_000
    assert lacking["figures"]["parameters_exact"]["value"] is None
    assert lacking["layout"] is None
    assert lacking["notes"]


def test_nothing_given_says_what_to_give():
    done = run_logparse("estimate", "--hw", "a100", cwd=ROOT)
    assert done.returncode == 2
    assert "the model is unknown" in done.stderr
    assert "--model" in done.stderr


def test_what_is_assumed_is_said():
    found = estimated(*THIRTEEN, "--devices", "8")
    assert told(found, "precision") == ("bf16", "assumed")
    assert told(found, "micro_batch_size") == (1, "assumed")
    assert told(found, "world_size") == (8, "--devices")


def test_a_log_gives_shape_layout_and_utilisation(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(30, num_query_groups=32, group_query_attention=True))
    arguments = ("--from", "run.log", "--peak-tflops", "2500", "--tokens", "1e12")
    found = estimated("estimate", *arguments, cwd=tmp_path)
    assert found["figures"]["parameters_exact"]["value"] == 6_738_415_616
    assert (found["layout"]["tp"], found["layout"]["dp"]) == (SETTINGS["tensor_model_parallel_size"], 4)
    measured = json.loads(
        run_logparse(
            "analyze", "run.log", "--peak-tflops", "2500", "--formula", "megatron", "--json", cwd=tmp_path
        ).stdout
    )
    hfu = measured["runs"][0]["rates"]["with_stalls"]["hfu"]
    assert any(f"{hfu * 100:.2f} %" in note for note in texts(found))
    # the time of a step at the utilisation of the run is that of its steps including stalls
    step = measured["runs"][0]["rates"]["with_stalls"]["step_time_ms"] / 1000
    assert found["figures"]["step_time"]["value"] == pytest.approx(step)


def test_another_layout_for_the_job_of_a_log(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(30, num_query_groups=32, group_query_attention=True))
    found = estimated("estimate", "--from", "run.log", "--devices", "16", "--tp", "4", "--pp", "2", cwd=tmp_path)
    assert {axis: found["layout"][axis] for axis in ("tp", "pp", "dp")} == {"tp": 4, "pp": 2, "dp": 2}


def test_another_model_for_the_job_of_a_log(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(30))
    found = estimated("estimate", "--from", "run.log", "--model", "llama2-70b", cwd=tmp_path)
    assert found["figures"]["parameters_exact"]["value"] == 68_976_648_192


def test_a_log_without_a_device_says_that_its_utilisation_is_not_known(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(30))
    found = estimated("estimate", "--from", "run.log", cwd=tmp_path)
    assert any("utilization of run.log is unknown" in note for note in texts(found))


def test_the_rest_of_the_layout_of_a_log_stays(tmp_path):
    """Two stages of four become eight devices of tp 1: the copies follow, and with them the micro-batches."""
    layout = {"pipeline_model_parallel_size": 2, "data_parallel_size": 2, "use_distributed_optimizer": True}
    told = {"num_micro_batches": 16, "vocab_size": 31900, "make_vocab_size_divisible_by": 128}
    (tmp_path / "run.log").write_text(megatron_log(30, padded_vocab_size=32000, **layout, **told))
    found = estimated("estimate", "--from", "run.log", "--tp", "1", "--peak-tflops", "2500", cwd=tmp_path)
    kept = {axis: found["layout"][axis] for axis in ("tp", "pp", "dp", "zero")}
    assert kept == {"tp": 1, "pp": 2, "dp": 4, "zero": 1}
    values = {name: fact["value"] for name, fact in found["context"].items()}
    assert (values["world_size"], values["num_microbatches"], values["padded_vocab_size"]) == (8, 8, 32000)
    notes = " ".join(texts(found))
    assert "kept from the layout of run.log: --devices 8 --pp 2 --cp 1 --zero 1" in notes
    assert "measured with tensor_model_parallel_size 2, data_parallel_size 2; this job may reach another" in notes


def test_copies_given_for_the_job_of_a_log_give_the_devices(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(30))
    found = estimated("estimate", "--from", "run.log", "--dp", "8", cwd=tmp_path)
    assert (found["layout"]["tp"], found["layout"]["devices"]) == (2, 16)


def test_a_model_given_for_a_log_that_does_not_print_its_shape(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(30, num_query_groups=None, group_query_attention=None))
    plain = ("estimate", "--from", "run.log", "--peak-tflops", "2500")
    assert any("utilization of run.log is unknown" in note for note in texts(estimated(*plain, cwd=tmp_path)))
    named = " ".join(texts(estimated(*plain, "--model", "llama2-7b", cwd=tmp_path)))
    assert "HFU of run.log, including stalls, computed with --model llama2-7b" in named
    # of another model the run tells nothing
    other = " ".join(texts(estimated(*plain, "--model", "llama2-13b", cwd=tmp_path)))
    assert "the utilization of run.log is unknown" in other


def test_a_utilisation_measured_with_another_job_is_said(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(30))
    plain = ("estimate", "--from", "run.log", "--peak-tflops", "2500")
    same = estimated(*plain, "--recompute", "full", cwd=tmp_path)
    assert not any("this job may reach another" in note for note in texts(same))
    other = estimated(*plain, "--recompute", "none", "--seq-length", "8192", cwd=tmp_path)
    assert any("measured with seq_length 4096, recompute full;" in note for note in texts(other))
    # who gives a utilisation is not told another
    given = estimated(*plain, "--seq-length", "8192", "--utilisation", "0.4", cwd=tmp_path)
    assert not any("utilization" in note for note in texts(given))


def test_one_size_changes_the_shape_of_the_log_and_says_what_stays(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(30, num_query_groups=32, group_query_attention=True))
    found = estimated("estimate", "--from", "run.log", "--num-layers", "16", "--peak-tflops", "2500", cwd=tmp_path)
    assert (found["context"]["num_layers"]["value"], found["context"]["hidden_size"]["value"]) == (16, 4096)
    (note,) = [note for note in texts(found) if note.startswith("kept from the model shape of run.log: ")]
    assert ("hidden_size 4096" in note, "num_layers" in note) == (True, False)


def test_devices_hold_the_padded_vocabulary():
    def held(*more):
        return estimated(*THIRTEEN, "--devices", "1", *more)["layout"]["stages"][0]["parameters"]

    assert held("--padded-vocab-size", "32256") - held() == 2 * 256 * 5120


def test_a_log_that_tells_of_no_recompute_gives_its_mfu(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(30, recompute_granularity="?"))
    found = estimated("estimate", "--from", "run.log", "--peak-tflops", "2500", cwd=tmp_path)
    assert any("MFU of run.log, including stalls; recomputation is not in its log" in note for note in texts(found))
    assert told(found, "recompute") == ("none", "assumed")


SEVENTY = (
    *("estimate", "--model", "llama2-70b", "--hw", "h100", "--tp", "8", "--pp", "4", "--dp", "1"),
    *("--seq-length", "4096", "--micro-batch-size", "2", "--global-batch-size", "64"),
)


@pytest.mark.parametrize(
    ("switch", "kept", "fits"),
    [((), 65_536 + 26_112, False), (("--sequence-parallel",), (65_536 + 208_896) / 8, True)],
)
def test_sequence_parallelism_is_off_unless_given(switch, kept, fits):
    """Bytes per token and layer: 8 h whole, or shared too; (4 a d + 4 g d + 6 f) / 8 = 208,896 / 8 either way."""
    found = estimated(*SEVENTY, *switch)
    assert found["layout"]["stages"][0]["activation_bytes"] == 2 * 4096 * 4 * 20 * kept
    assert found["layout"]["fits"] is fits
    origin = switch[0] if switch else "assumed"
    assert told(found, "sequence_parallel") == (bool(switch), origin)
    assert any("sequence parallelism is assumed off" in note for note in texts(found)) is not bool(switch)


def test_switches_and_what_is_taken_for_them_are_shown():
    found = estimated(*THIRTEEN, "--devices", "8", "--no-flash-attention", "--vpp", "1")
    assert told(found, "flash_attention") == (False, "--no-flash-attention")
    assert told(found, "virtual_pipeline_model_parallel_size") == (1, "--vpp")
    assert told(found, "dropout") == (False, "assumed")
    assert told(found, "network_gbits") == (200.0, "assumed")


def test_both_commands_assume_the_same():
    assert all(ASSUMED[name] == value for name, value in ASSUMED_OF_RUNS.items() if name != "zero_stage")


def test_the_smallest_as_laid_out_and_at_all_are_told_apart():
    layout = ("--devices", "8", "--tp", "1", "--pp", "4", "--zero", "0")
    found = estimated(*THIRTEEN, *layout)
    assert (found["smallest"]["devices"], found["smallest"]["zero"]) == (128, 0)
    assert found["smallest_at_all"]["devices"] < 128
    shown = run_logparse(*THIRTEEN, *layout, cwd=ROOT).stdout
    assert "smallest layout that fits with the given sizes: tp 1 pp 4 dp 32 ZeRO-0, 128 devices" in shown
    assert "smallest layout that fits with any sizes: " in shown
    assert "no layout fits" not in shown


def test_where_nothing_fits_it_is_said_what_would():
    crowded = ("estimate", "--model", "llama2-7b", "--hw", "a100", "--seq-length", "4096", "--micro-batch-size")
    shown = run_logparse(*crowded, "16", cwd=ROOT).stdout
    assert "! no layout fits with the given sizes" in shown
    assert "smallest layout that fits with --recompute full: " in shown
    shown = run_logparse(*crowded, "512", cwd=ROOT).stdout
    assert "! no layout fits, even with --recompute full" in shown


def test_no_chart_without_memory_by_stage_is_said(tmp_path):
    done = run_logparse("estimate", "--model", "llama2-13b", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0
    assert "nothing written to out/: memory by stage is unknown" in done.stderr
    assert not (tmp_path / "out").exists()


def test_help_names_what_is_taken_by_default():
    shown = " ".join(run_logparse("estimate", "--help", cwd=ROOT).stdout.split())
    assert "megatron (default; real model)" in shown
    assert "TOML file with any options of `logparse analyze`" in shown


def test_a_config_file_gives_the_peak_too(tmp_path):
    (tmp_path / "job.toml").write_text('peak_tflops = 100.0\nmodel = "llama2-7b"\nzero_stage = 2\n')
    common = ("estimate", "--config", "job.toml", "--seq-length", "4096", "--devices", "8", "--utilisation", "0.5")
    found = estimated(*common, "--tokens", "1e9", cwd=tmp_path)
    assert found["figures"]["training_time_rule"]["value"] == 6 * 10**9 * 6_738_415_616 / (8 * 100 * 1e12 * 0.5)
    assert found["layout"]["zero"] == 2
    # a device named by a flag beats it
    other = estimated(*common, "--tokens", "1e9", "--hw", "a100", cwd=tmp_path)
    assert "312" in other["figures"]["training_time_rule"]["worked"]


def test_memory_given_by_hand_decides():
    found = estimated(*THIRTEEN, "--devices", "8", "--pp", "4", "--tp", "1", "--zero", "0", "--memory-gb", "96")
    assert found["layout"]["fits"] is True
    assert found["layout"]["memory_bytes"] == 96e9


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_recompute_and_no_flash_attention(recompute):
    layout = ("--devices", "8", "--pp", "8", "--tp", "1", "--zero", "0", "--no-flash-attention")
    found = estimated(*THIRTEEN, *layout, "--recompute", recompute)["layout"]["stages"][0]
    # 5 layers of 8 micro-batches; without flash attention 2 a s bytes more for each token
    kept = {"none": 164_864 + 2 * 40 * 4096, "selective": 164_864, "full": 2 * 5120}[recompute]
    once = (164_864 + 2 * 40 * 4096) * (recompute == "full")
    assert found["activation_bytes"] == 4096 * (8 * 5 * kept + once)


def test_chart_is_written(tmp_path):
    done = run_logparse(*THIRTEEN, "--devices", "8", "-o", "out", cwd=tmp_path)
    assert "wrote out/" in done.stderr
    assert {f.name for f in (tmp_path / "out" / "charts").iterdir()} == {"memory.json", "memory.png", "memory.svg"}
    refused = run_logparse(*THIRTEEN, "--devices", "8", "-o", "out", cwd=tmp_path)
    assert refused.returncode == 2


def test_chart_is_written_though_nobody_reads_what_is_printed(tmp_path):
    """As with ``| head -1``: the reader of a pipe may be gone before anything is printed."""
    run_logparse(*THIRTEEN, "--devices", "8", "-o", "out", cwd=tmp_path, unread=True)
    assert (tmp_path / "out" / "charts" / "memory.svg").exists()


@pytest.mark.parametrize("name", ["", " "])
def test_a_folder_without_a_name_is_refused(tmp_path, name):
    done = run_logparse(*THIRTEEN, "--devices", "8", "-o", name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "-o has an empty folder name" in done.stderr
    assert "try:   give a folder" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_chart_holds_both_parts_of_each_stage_and_the_limit():
    model = find_model("llama2-13b")
    counted = count_parameters(model.shape, model.vocab_size)
    search = Search(model.shape, counted, model.vocab_size, Training(4096), 80e9)
    fit = search.fit(Layout(pp=4))
    rows = memory_rows(fit)
    assert len(rows) == 8
    assert sum(row["gb"] for row in rows) == pytest.approx(sum(s.total_bytes for s in fit.stages) / 1e9)
    drawn = memory_chart(fit).to_dict(validate=False)
    assert [{"gb": 80.0}] in drawn["datasets"].values()


def test_chinese():
    shown = run_logparse(*THIRTEEN, "--devices", "8", "--lang", "zh", cwd=ROOT).stdout
    assert "放得下" in shown
    assert "parameters" not in shown


def test_markdown():
    shown = run_logparse(*THIRTEEN, "--devices", "8", "--markdown", cwd=ROOT).stdout
    assert shown.startswith("### estimate: llama2-13b")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--tp", "3"), "attention heads (40) cannot be split by --tp 3"),
        (("--devices", "8", "--tp", "4", "--pp", "4"), "8 devices cannot be split into tp 4 x pp 4 x cp 1"),
        (("--dp", "3"), "the global batch 64 is not a multiple of micro batch x data parallel size (1 x 3)"),
        (("--utilisation", "1.5"), "--utilisation is 1.5"),
        (("--tokens", "0"), "--tokens is 0"),
        (("--tokens", "inf"), "--tokens is inf"),
        (("--tokens", "1e400"), "--tokens is inf"),
        (("--tokens", "1e308"), "--tokens is 1e+308"),
        (("--days", "-1"), "--days is -1"),
        (("--days", "1e-320", "--tokens", "1e12", "--utilisation", "0.4"), "--days is 1e-320"),
        (("--memory-gb", "nan"), "--memory-gb is nan"),
        (("--memory-gb", "inf"), "--memory-gb is inf"),
        (("--memory-gb", "1e-320"), "--memory-gb is 1e-320"),
        (("--peak-tflops", "inf"), "--peak-tflops is inf"),
        (("--network-gbits", "0"), "--network-gbits is 0"),
        (("--hidden-size", "9" * 170), "--hidden-size is 999"),
        (("--seq-length", "9" * 170), "--seq-length is 999"),
        (("--global-batch-size", "9" * 170), "--global-batch-size is 999"),
        (("--devices", str(2**53 + 1)), "--devices is 9007199254740993"),
        (("--num-layers", "1000000000"), "--num-layers is 1000000000"),
        (("--tp", "2", "--tensor-model-parallel-size", "4"), "--tp 2 and --tensor-model-parallel-size 4 contradict"),
        (("--devices", "16", "--world-size", "8"), "--devices 16 and --world-size 8 contradict each other"),
        (("--vpp", "2", "--pp", "1"), "--vpp needs a pipeline"),
        (("--json", "--markdown"), "exclude each other"),
        (("--zero", "4"), "--zero is 4"),
        (("--from", "gone.log"), "gone.log"),
        (("--model", "llama2-14b"), "llama2-13b"),
    ],
)
def test_wrong_usage(arguments, problem):
    done = run_logparse(*THIRTEEN, *arguments, cwd=ROOT)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("settings", "flags", "share"),
    [
        ({"recompute_num_layers": 8}, (), 8 / 32),
        ({"recompute_num_layers": 0}, (), 0),
        ({"recompute_num_layers": 8}, ("--recompute", "full"), 1),
    ],
)
def test_a_run_that_recomputes_a_part_of_its_layers(tmp_path, settings, flags, share):
    """8 of 32 layers in one stage: a quarter of the forward pass of all but the logits runs again."""
    log = tmp_path / "run.log"
    log.write_text(megatron_log(30, recompute_method="block", **settings))
    done = run_logparse("estimate", "--from", str(log), "--peak-tflops", "1000", *flags, "--json", cwd=tmp_path)
    figures = json.loads(done.stdout)["figures"]
    # LLaMA2-7B as built: 42.864 GFLOP per token, of it 6 x 4096 x 32000 = 0.786 for the logits.
    assert figures["flops_per_token"]["value"] / 1e9 == pytest.approx(42.864 + share * (42.864 - 0.786) / 3, rel=1e-4)
