"""Published rates: the table of the sources to the digit, rows that contradict themselves, matching, the command."""

import json

import pytest
from helpers import ROOT, run_logparse

from analysis.baselines import check_row, contradicts_itself, find_baseline, published, read_baselines
from analysis.matches import compare_run
from analysis.models import all_models, find_model
from analysis.peak import resolve_peak
from analysis.shape import ModelShape
from logparse.errors import InputError, UsageError

GOLDEN = """
Aquila-7B 1x8 fp16 3394 4078
Baichuan-7B 1x8 fp16 2350 2036
Baichuan-13B 1x8 fp16 1016 824
Baichuan2-7B 1x8 bf16 2607 3936
Baichuan2-13B 2x8 bf16 852 872
Bloom-7B1 1x8 fp16 2611 2525
Bloom-176B 12x8 bf16 112 107
InternLM-7B 1x8 bf16 2943 4078
InternLM-65B 4x8 bf16 342 414
LLaMA-7B 1x8 fp16 3600 3804
LLaMA-13B 1x8 fp16 1895 2012
LLaMA-33B 4x8 fp16 635 776
LLaMA-65B 4x8 bf16 348 426
LLaMA2-7B 1x8 bf16 2681 2884
LLaMA2-13B 1x8 bf16 1485 1750
LLaMA2-34B 2x8 bf16 690 796
LLaMA2-70B 8x8 bf16 350 339
""".strip().splitlines()

STEP_TIMES = {
    "adam-llama-7b-1x8": 5.65,
    "cadam-llama-7b-1x8": 5.68,
    "adam-llama2-7b-1x8": 7.09,
    "cadam-llama2-7b-1x8": 7.12,
    "adam-bloom-7b-1x8": 4.10,
    "cadam-bloom-7b-1x8": 4.25,
    "baseline-llama-7b-1x8": 5.39,
    "o1-llama-7b-1x8": 5.40,
    "baseline-llama-13b-1x8": 8.95,
    "o1-llama-13b-1x8": 8.92,
    "baseline-llama2-7b-1x8": 6.48,
    "o1-llama2-7b-1x8": 6.48,
    "baseline-bloom-7b-1x8": 5.45,
    "o1-bloom-7b-1x8": 5.49,
    "baseline-llama-32b-2x8": 5.23,
    "o1-llama-32b-2x8": 5.28,
    "baseline-distributed-optimizer-llama-7b-1x8": 5.18,
    "o1-distributed-optimizer-llama-7b-1x8": 5.19,
}
# Rows whose rate is not what their own step time gives; each says why in its note.
CONTRADICTIONS = {
    "ascendspeed-llama2-7b-1x8",
    "modellink-4a0db37b-llama2-7b-1x8",
    "modellink-eea45231-baichuan-7b-1x8",
    "modellink-f801b32e-bloom-7b-1x8",
    "modellink-a71f1381-llama2-70b-8x8",
    "modellink-history-llama2-7b-1x8-wrong",
    "modellink-history-internlm-7b-1x8-wrong",
    "megatron-bridge-26.04.01-llama3-70b-h100-8x8",
}


def row(name):
    return find_baseline(published(), name)


def shape_of(name):
    model = find_model(name)
    return ModelShape.from_quantities({**model.quantities(), "padded_vocab_size": model.vocab_size})


@pytest.mark.parametrize("golden", GOLDEN)
def test_golden_table_of_modellink(golden):
    title, nodes, mode, rate, reference = golden.split()
    found = row(f"modellink-{title}-{nodes}".lower())
    assert (found.title, found.nodes, found.precision) == (title, nodes, mode)
    assert found.tokens_per_second_per_device == float(rate)
    assert found.reference_tokens_per_second_per_device == float(reference)
    assert found.devices == int(nodes.split("x")[0]) * 8
    assert found.catalogued is not None


@pytest.mark.parametrize("name", STEP_TIMES)
def test_golden_step_times_of_modellink(name):
    assert row(f"modellink-{name}").step_time_s == STEP_TIMES[name]


@pytest.mark.parametrize("found", published(), ids=lambda r: r.name)
def test_every_row_has_a_source_and_agrees_with_itself_or_says_why_not(found):
    assert found.document
    assert "//" not in found.document
    assert contradicts_itself(found) == (found.name in CONTRADICTIONS)
    assert found.note or found.name not in CONTRADICTIONS
    assert found.device is None or resolve_peak(found.device, found.precision)


def test_names_are_unique_and_in_lower_case():
    names = [found.name for found in published()]
    assert len(set(names)) == len(names)
    assert names == [name.lower() for name in names]


@pytest.mark.parametrize(
    ("name", "mfu"),
    [
        ("megatron-lm-gpt-22b-1x8-selective", 0.4165),
        ("megatron-lm-gpt-175b-8x8-selective", 0.5139),
        ("megatron-lm-gpt-530b-35x8-selective", 0.5605),
        ("megatron-lm-gpt-1t-64x8-selective", 0.5627),
    ],
)
def test_mfu_from_step_time_as_in_korthikanti(name, mfu):
    (check,) = check_row(row(name))
    assert check.quantity == "mfu"
    assert round(check.recomputed, 4) == mfu


def test_tokens_and_tflops_from_the_step_time_of_bloom():
    (check,) = check_row(row("bigscience-bloom-176b-48x8"))
    assert round(check.recomputed, 2) == check.published == 149.02


def test_a_run_beside_the_row_of_its_model_devices_and_precision():
    found = compare_run(2528.0, shape_of("llama2-7b"), 8, "bf16", published())
    said = "2,528 tokens/s/p = 94% of ModelLink's published 2,681 for LLaMA2-7B, 1x8, BF16; the reference system: 2,884"
    assert found.sentences == (said,)
    assert found.matches[0].share == 2528 / 2681


@pytest.mark.parametrize("golden", GOLDEN)
def test_every_row_of_modellink_is_found_by_its_own_configuration(golden):
    title, nodes, mode, rate, _ = golden.split()
    found = compare_run(float(rate), shape_of(title.lower()), int(nodes.split("x")[0]) * 8, mode, published())
    assert f"modellink-{title}-{nodes}".lower() in [against.row.name for against in found.matches]


def test_a_padded_vocabulary_is_the_same_model_and_another_is_not():
    padded = ModelShape.from_quantities({**vars(shape_of("llama2-7b")), "padded_vocab_size": 32768})
    assert compare_run(2528.0, padded, 8, "bf16", published()).matches
    baichuan = compare_run(2528.0, shape_of("baichuan-7b"), 8, "bf16", published())
    assert not baichuan.matches


def test_no_match_is_said_with_the_nearest_rows():
    found = compare_run(2528.0, shape_of("llama2-7b"), 16, "bf16", published())
    assert not found.matches
    assert found.nearest[0].name == "modellink-llama2-7b-1x8"
    assert found.sentences[0].startswith("no published rate for this model, number of devices and precision")


def test_nearest_rows_of_an_unknown_model_are_near_in_size():
    found = compare_run(1.0, shape_of("qwen1.5-14b"), 8, "bf16", published())
    assert all("13B" in near.size or "14B" in near.size for near in found.nearest)


def test_a_row_chosen_by_name_beats_the_match():
    found = compare_run(2528.0, shape_of("llama2-7b"), 8, "bf16", published(), "modellink-8160b55a-llama2-7b-1x8")
    assert found.matches[0].row.tokens_per_second_per_device == 4672


def test_a_row_without_a_rate_cannot_be_compared_with():
    with pytest.raises(UsageError, match="publishes no tokens/s/p"):
        compare_run(1.0, ModelShape(), 8, "bf16", published(), "modellink-o1-llama2-7b-1x8")


def test_a_run_without_a_rate_is_said():
    assert "unknown" in compare_run(None, ModelShape(), 8, "bf16", published()).sentences[0]


def test_own_rows(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("name,model,size,devices,precision,tokens_per_second_per_device\nOurs-7B,LLaMA2,7B,8,bf16,3000\n")
    found = compare_run(1500.0, shape_of("llama2-7b"), 8, "bf16", (*read_baselines(path), *published()))
    assert [against.row.name for against in found.matches] == ["ours-7b", "modellink-llama2-7b-1x8"]
    assert found.matches[0].share == 0.5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name,modell\nx,y\n", "unknown column 'modell'"),
        ("name,model,devices\nx,y,eight\n", "devices is 'eight'"),
        ("name,model,step_time_s\nx,y,0\n", "step_time_s is '0'"),
        ("name,model,mfu\nx,y,nan\n", "mfu is 'nan'"),
        ("name,model\n,y\n", "a row without a name or a model"),
    ],
)
def test_own_rows_that_cannot_be_read(tmp_path, text, problem):
    path = tmp_path / "own.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_baselines(path)
    assert problem in str(error.value)
    assert "own.csv" in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_baselines(tmp_path / "nothing.csv")


@pytest.mark.parametrize("model", all_models(), ids=lambda m: m.name)
def test_every_model_of_the_catalogue_can_be_compared(model):
    assert compare_run(1000.0, shape_of(model.name), 8, "bf16", published()).sentences


def test_command_lists_filters_and_shows_one():
    every = json.loads(run_logparse("baselines", "--json", cwd=ROOT).stdout)
    assert len(every) == len(published())
    few = json.loads(run_logparse("baselines", "--model", "llama2-7b", "--dtype", "bf16", "--json", cwd=ROOT).stdout)
    assert [found["name"] for found in few] == ["modellink-llama2-7b-1x8"]
    (one,) = json.loads(run_logparse("baselines", "ascendspeed-llama2-7b-1x8", "--json", cwd=ROOT).stdout)
    assert one["contradicts_itself"] is True
    assert one["checks"][0]["quantity"] == "tokens_per_second_per_device"


def test_command_marks_rows_and_knows_neighbours_of_a_wrong_name():
    shown = run_logparse("baselines", "--publisher", "modellink", cwd=ROOT).stdout
    assert "! modellink-4a0db37b-llama2-7b-1x8" in shown
    done = run_logparse("baselines", "modellink-lama2-7b-1x8", cwd=ROOT)
    assert done.returncode == 2
    assert "modellink-llama2-7b-1x8" in done.stderr
