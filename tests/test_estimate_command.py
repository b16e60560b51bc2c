"""``logparse estimate`` as a user runs it: the note on 13B, what comes from a log, files, errors."""

import json

import pytest
from helpers import ROOT, SETTINGS, megatron_log, run_logparse

from analysis.estimate.chart import memory_chart, memory_rows
from analysis.estimate.fit import Search
from analysis.estimate.layout import Layout, Training
from analysis.models import find_model
from analysis.parameters import count_parameters

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


def test_table_says_which_stage_overflows():
    shown = run_logparse(*THIRTEEN, "--devices", "8", "--tp", "1", "--pp", "4", "--zero", "0", cwd=ROOT).stdout
    assert "! stage 1 does not fit: 87.06 GB of 80.00, 7.06 GB too much" in shown
    assert "12 x 40 x 5,120^2" in shown
    assert "--tp" in shown


def test_of_several_stages_that_overflow_the_fullest_is_measured():
    shown = run_logparse(*THIRTEEN, "--tp", "1", "--pp", "4", "--zero", "0", "--micro-batch-size", "2", cwd=ROOT).stdout
    assert "! stages 1, 2, 3 do not fit; the fullest is 1: 114.07 GB of 80.00, 34.07 GB too much" in shown


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
    assert whole["context"]["untie_embeddings_and_output_weights"] == {"value": True, "origin": "assumed"}
    lacking = estimated("estimate", *words, "--seq-length", "4096")
    assert lacking["figures"]["parameters_short"]["value"] == 12_582_912_000
    assert lacking["figures"]["parameters_exact"]["value"] is None
    assert lacking["layout"] is None
    assert lacking["notes"]


def test_nothing_given_says_what_to_give():
    done = run_logparse("estimate", "--hw", "a100", cwd=ROOT)
    assert done.returncode == 2
    assert "nothing is known of the model" in done.stderr
    assert "--model" in done.stderr


def test_what_is_assumed_is_said():
    context = estimated(*THIRTEEN, "--devices", "8")["context"]
    assert context["precision"] == {"value": "bf16", "origin": "assumed"}
    assert context["micro_batch_size"] == {"value": 1, "origin": "assumed"}
    assert context["world_size"] == {"value": 8, "origin": "--devices"}


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
    hfu = measured["runs"][0]["rates"]["delivered"]["hfu"]
    assert any(f"{hfu:.2%}" in note for note in found["notes"])
    # the time of a step at the utilisation of the run is the delivered time of its steps
    step = measured["runs"][0]["rates"]["delivered"]["step_time_ms"] / 1000
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
    assert any("utilisation of run.log is not known" in note for note in found["notes"])


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
        (("--devices", "8", "--tp", "4", "--pp", "4"), "8 devices cannot be laid out as tp 4 x pp 4 x cp 1"),
        (("--dp", "3"), "the global batch 64 is not a multiple of micro batch x data parallel size (1 x 3)"),
        (("--utilisation", "1.5"), "--utilisation is 1.5"),
        (("--tokens", "0"), "--tokens is 0"),
        (("--days", "-1"), "--days is -1"),
        (("--memory-gb", "nan"), "--memory-gb is nan"),
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
