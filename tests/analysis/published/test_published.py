"""Published rates: the table of the sources to the digit, rows that contradict themselves, matching, the command."""

import json
from dataclasses import replace

import pytest
from helpers import ROOT, run_logparse

from analysis.flops.printed import PRINTED_FORMULAS
from analysis.hardware.devices import resolve_peak
from analysis.model.catalogue import all_models, find_model
from analysis.model.shape import ModelShape
from analysis.present.views.expectations import published_sentences
from analysis.present.words import sentences_of
from analysis.published.baselines import (
    check_row,
    contradicts_itself,
    find_baseline,
    published,
    read_baselines,
)
from analysis.published.match import Achieved, compare_run
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

# Rows with a TFLOP/s or MFU that no known formula gives; each says so in its note.
UNEXPLAINED = {
    "modellink-0b79c57e-internlm-7b-1x8": "tflops_per_second_per_device",
    "modellink-eea45231-baichuan-7b-1x8": "tflops_per_second_per_device",
    "mindformers-guide-llama2-7b": "mfu",
    "mindformers-guide-llama2-13b-1x8": "mfu",
}


def row(name):
    return find_baseline(published(), name)


def shape_of(name):
    model = find_model(name)
    return ModelShape.from_quantities({**model.quantities(), "padded_vocab_size": model.vocab_size})


def run_of(model, rate=2528.0, devices=8, precision="bf16", **more):
    """A run of a catalogued model on the device of ModelLink's table."""
    given = {"device": "910b", **more}
    return Achieved(rate, shape_of(model), devices, precision, **given)


def compare(*args, name=None, rows=None, **more):
    return compare_run(run_of(*args, **more), published() if rows is None else rows, name)


def sentences(found):
    return tuple(published_sentences(found))


def names(found):
    return [against.row.name for against in found.matches]


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


OF_PUBLISHER = {
    name: [row for row in published() if row.publisher == name] for name in {r.publisher for r in published()}
}


@pytest.mark.parametrize("publisher", sorted(OF_PUBLISHER))
def test_every_row_has_a_source_and_agrees_with_itself_or_says_why_not(publisher):
    for found in OF_PUBLISHER[publisher]:
        assert found.document, found.name
        assert "//" not in found.document, found.name
        assert contradicts_itself(found) == (found.name in CONTRADICTIONS), found.name
        assert found.note or found.name not in CONTRADICTIONS, found.name
        assert found.device is None or resolve_peak(found.device, found.precision), found.name


def checkable(found):
    """Figures of a row that its others give: its rate from its time, TFLOP/s and MFU from either by a formula."""
    timed = None not in (found.step_time_s, found.global_batch_size, found.devices, found.seq_length)
    rated = timed or found.tokens_per_second_per_device is not None
    wanted = {
        "tokens_per_second_per_device": timed,
        "tflops_per_second_per_device": rated,
        "mfu": rated,
    }
    return {name for name, can in wanted.items() if can and getattr(found, name) is not None}


@pytest.mark.parametrize("publisher", sorted(OF_PUBLISHER))
def test_every_figure_that_can_be_recomputed_is_and_agrees_or_is_explained(publisher):
    for found in OF_PUBLISHER[publisher]:
        checked = {check.quantity for check in check_row(found)}
        unexplained = {UNEXPLAINED[found.name]} if found.name in UNEXPLAINED else set()
        assert checkable(found) - checked == unexplained, found.name
        assert checked <= checkable(found), found.name
        wrong = [check for check in check_row(found) if not check.agrees]
        assert not (wrong or found.name in UNEXPLAINED) or found.note, found.name


@pytest.mark.parametrize("name", [name for name, quantity in UNEXPLAINED.items() if quantity != "mfu"])
def test_no_formula_gives_what_is_called_unexplained(name):
    found = row(name)
    for formula in set(PRINTED_FORMULAS) - {"M8r"}:
        *_, check = check_row(replace(found, formula=formula))
        assert check.quantity == "tflops_per_second_per_device"
        assert not check.agrees


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        ("megatron-bridge-26.08-deepseek-v3-671b-gb300-32x8", 1634.8),
        ("megatron-bridge-25.11-qwen3-30b-a3b-h100-2x8", 121.4),
        ("megatron-bridge-25.11-qwen3-235b-a22b-h100-32x8", 233.2),
        ("modellink-3ba91a9d-aquila-7b-1x8", 159.4),
        ("modellink-b5dba4c8-llama-13b-1x8", 146.3),
        ("modellink-f620f9ba-llama2-7b-1x8", 122.6),
        # 4641 x (6 x 6,658,859,008 + 12 x 32 x 4096 x 2048) / 1e12
        ("llm-foundry-mpt-7b-a100-1x8-2048", 200.4),
    ],
)
def test_tflops_of_rows_by_their_formula(name, tflops):
    (check,) = (check for check in check_row(row(name)) if check.quantity == "tflops_per_second_per_device")
    assert round(check.recomputed, 1) == tflops


def test_a_tolerance_is_the_rounding_of_both_and_averaging_apart_only_between_time_and_rate():
    timed, _ = check_row(row("modellink-3ba91a9d-aquila-7b-1x8"))
    assert timed.tolerance == pytest.approx(0.005 / 3644.92 + 0.00005 / 4.4949 + 0.002)
    (rated,) = check_row(row("megatron-bridge-25.11-qwen3-30b-a3b-h100-2x8"))
    assert rated.tolerance == pytest.approx(0.5 / 121 + 0.5 / 5275)


def test_every_publisher_of_the_sources_is_there():
    of = {found.publisher for found in published()}
    assert {"ModelLink", "MindSpeed-LLM", "MindFormers", "Megatron-LM", "Megatron-Bridge", "torchtitan"} <= of


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
    found = compare("llama2-7b")
    said = "2,528 tokens/s/p = 94 % of ModelLink's published 2,681 for LLaMA2-7B, 1x8, BF16; reference system: 2,884"
    assert sentences(found)[0] == said
    assert found.matches[0].share == 2528 / 2681


@pytest.mark.parametrize("golden", GOLDEN)
def test_every_row_of_modellink_is_found_by_its_own_configuration(golden):
    title, nodes, mode, rate, _ = golden.split()
    found = compare(title.lower(), float(rate), int(nodes.split("x")[0]) * 8, mode)
    assert f"modellink-{title}-{nodes}".lower() in names(found)


def test_rows_that_do_not_state_a_precision_come_last_and_say_so():
    found = compare("llama2-7b", seq_length=4096)
    stated = [against.row.precision for against in found.matches]
    assert stated == ["bf16"] + [None] * 5
    assert sentences(found)[1] == (
        "2,528 tokens/s/p = 95 % of ModelLink's published 2,662 for LLaMA2-7B, 1x8, precision not stated, 2023-12-23"
    )
    # then those of its length that do not contradict themselves
    assert names(found)[1:3] == ["modellink-f620f9ba-llama2-7b-1x8", "modellink-8160b55a-llama2-7b-1x8"]


def test_of_what_matches_three_rows_are_said_and_all_are_known():
    found = compare("llama2-7b", seq_length=4096)
    assert len(sentences(found)) == 3
    assert len(names(found)) == 6


def test_a_mixture_of_experts_on_64_devices_finds_its_row():
    found = compare("mixtral-8x7b", 892.0, 64, "bf16", seq_length=16384)
    assert sentences(found) == (
        "892 tokens/s/p = 126 % of ModelLink's published 706 for Mixtral-8x7B, 8x8, precision not stated, "
        "sequence length 32,768; reference system: 837",
    )
    # A token costs less in a sequence an eighth as long.
    found = compare("mixtral-8x7b", 892.0, 64, "bf16", seq_length=4096)
    assert not found.matches
    assert [against.differs_in for against in found.differing] == [("seq_length",)]


def test_an_unknown_precision_matches_only_rows_that_state_none():
    found = compare("llama2-7b", precision=None)
    assert {against.row.precision for against in found.matches} == {None}


@pytest.mark.parametrize(
    "unreliable",
    [{"gated_linear_unit": False}, {"untie_embeddings_and_output_weights": False}, {"gated_linear_unit": None}],
)
def test_switches_that_logs_print_wrong_do_not_part_a_run_from_its_row(unreliable):
    # AscendSpeed's llama prints swiglu False and has a gated MLP by its own code
    run = run_of("llama2-7b", 2424.0, precision="fp16")
    found = compare_run(replace(run, shape=replace(run.shape, **unreliable)), published())
    assert "ascendspeed-llama2-7b-1x8" in names(found)


@pytest.mark.parametrize("other", [{"ffn_hidden_size": 16384}, {"num_attention_heads": 64}, {"num_experts": 8}])
def test_another_size_is_another_model(other):
    run = run_of("llama2-7b")
    assert not compare_run(replace(run, shape=replace(run.shape, **other)), published()).matches


@pytest.mark.parametrize(
    ("device", "told"),
    [("910b", ""), ("Ascend910B3", ""), ("h100", ", on 910B; differs in device"), (None, ", on 910B")],
)
def test_the_device_of_a_row_is_named_where_it_is_not_the_runs(device, told):
    sentence = sentences(compare("llama2-7b", device=device))[0]
    assert f"LLaMA2-7B, 1x8, BF16{told}; reference" in sentence


def test_rows_that_read_alike_are_told_apart_by_their_mode():
    found = compare("llama3-8b", 5762.0, device="MI300X", seq_length=8192)
    assert [sentence.partition(" for ")[2] for sentence in sentences(found)[:2]] == [
        "Llama3.1-8B, 1x8, BF16, on H100, FSDP; differs in device",
        "Llama3.1-8B, 1x8, BF16, on H100, FSDP, compile; differs in device",
    ]


def test_rows_without_mode_or_date_of_their_own_are_told_apart_by_name(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(
        "name,model,devices,precision,tokens_per_second_per_device\na,llama2-7b,8,fp8,1\nb,llama2-7b,8,fp8,2\n"
    )
    found = compare("llama2-7b", precision="fp8", rows=read_baselines(path))
    assert [sentence[-17:] for sentence in sentences(found)] == ["llama2-7b, FP8, a", "llama2-7b, FP8, b"]


def test_rows_of_another_precision_come_behind_and_say_so():
    """Megatron-Bridge's rows of Llama3-8B on 8 H100 are FP8; a run in BF16 reaches 60 % of something else."""
    found = compare("llama3-8b", 8670.6, device="h100", seq_length=8192)
    assert not [against for against in found.matches if against.row.precision not in ("bf16", None)]
    fp8 = [against for against in found.differing if against.row.precision == "fp8"]
    assert fp8
    assert all("precision" in against.differs_in for against in fp8)
    assert len(found.matches) + len(found.differing) >= 3
    own = compare("llama3-8b", 14451.0, 8, "fp8", device="h100", seq_length=8192)
    assert own.matches[0].row.name == "megatron-bridge-25.11-llama3-8b-h100-1x8"
    assert own.matches[0].share == 1.0


def test_at_most_three_rows_are_shown_and_those_that_match_first():
    found = compare("llama3-8b", 5762.0, device="h100", precision="fp16", seq_length=8192)
    assert not found.matches
    assert len(found.differing) == 3
    assert [against.differs_in for against in found.differing] == [("precision",)] * 3


def test_low_rank_adapters_beside_a_row_of_all_weights_and_the_other_way_round():
    lora = sentences(compare("llama2-7b", lora=True))[0]
    assert lora.endswith("; this run trains low-rank adapters (LoRA), the published row all weights")
    for trains_lora in (True, False):
        (told,) = sentences(compare("llama3-8b", 1452.0, 4, None, lora=trains_lora, seq_length=256))
        row = "of Kahsolt's published 1,450 for Llama3-8B, 1x4, precision not stated, LoRA"
        assert told.endswith(row if trains_lora else f"{row}; differs in lora")


def test_an_unknown_vocabulary_is_said():
    run = run_of("llama2-7b")
    found = compare_run(replace(run, shape=replace(run.shape, padded_vocab_size=None)), published())
    assert all("the vocabulary of this run is unknown" in sentences_of(against.findings) for against in found.matches)
    assert not any("vocabulary" in sentences_of(against.findings) for against in compare("llama2-7b").matches)


def test_a_row_that_contradicts_itself_says_so():
    found = compare("llama2-7b", 2424.0, precision="fp16", name="ascendspeed-llama2-7b-1x8")
    assert sentences(found)[0].endswith("; the published row contradicts itself")


def test_a_padded_vocabulary_is_the_same_model_and_another_is_not():
    run = run_of("llama2-7b")
    padded = replace(run, shape=replace(run.shape, padded_vocab_size=32768))
    assert names(compare_run(padded, published()))[0] == "modellink-llama2-7b-1x8"
    other = replace(run, shape=replace(run.shape, padded_vocab_size=64000))
    assert not any("llama" in name for name in names(compare_run(other, published())))


def test_no_match_is_said_with_the_nearest_rows():
    found = compare("llama2-7b", devices=16)
    assert not found.matches
    assert found.nearest[0].name == "modellink-llama2-7b-1x8"
    assert sentences(found)[0].startswith("no published rate for this model, device count and precision")


def test_nearest_rows_of_an_unknown_model_are_near_in_size():
    found = compare("qwen1.5-14b", 1.0)
    assert all("13B" in near.size or "14B" in near.size for near in found.nearest)


def test_nearest_rows_of_a_shape_that_cannot_be_counted_go_by_the_rule_of_thumb():
    # 12 x 72 x 3072^2 + 51200 x 3072 = 8.31e9
    gpt = ModelShape(num_layers=72, hidden_size=3072, padded_vocab_size=51200)
    found = compare_run(Achieved(1.0, gpt, 512, "fp16"), published())
    assert {near.title for near in found.nearest} <= {"LLaMA3-8B", "Llama3-8B", "Llama3.1-8B", "GLM4-9B", "Qwen3-8B"}


def test_a_run_of_unknown_size_has_no_nearest_rows():
    found = compare_run(Achieved(1.0, ModelShape(), 8, "bf16"), published())
    assert (found.nearest, len(sentences(found))) == ((), 1)
    assert "layers or hidden size of this run are unknown" in sentences(found)[0]


def test_what_is_not_known_of_a_run_without_a_match_is_said():
    assert sentences(compare("llama2-7b", devices=None))[0].endswith("; unknown for this run: world_size")


def test_a_row_chosen_by_name_beats_the_match():
    found = compare("llama2-7b", name="modellink-8160b55a-llama2-7b-1x8")
    assert found.matches[0].row.tokens_per_second_per_device == 4672


def test_a_row_without_a_rate_cannot_be_compared_with():
    with pytest.raises(UsageError, match="has no tokens/s/p"):
        compare("llama2-7b", name="modellink-o1-llama2-7b-1x8")


def test_a_run_without_a_rate_is_said():
    assert "unknown" in sentences(compare("llama2-7b", None))[0]


def own(tmp_path, text):
    path = tmp_path / "own.csv"
    path.write_text(text)
    return read_baselines(path)


def test_own_rows(tmp_path):
    text = "name,model,size,devices,precision,tokens_per_second_per_device\nOurs-7B,LLaMA2,7B,8,BF16,3000\n"
    found = compare("llama2-7b", 1500.0, rows=(*own(tmp_path, text), *published()))
    assert names(found)[:2] == ["ours-7b", "modellink-llama2-7b-1x8"]
    assert found.matches[0].share == 0.5


def test_an_own_row_is_said_first_and_by_its_name(tmp_path):
    text = "name,model,size,devices,tokens_per_second_per_device\nours-7b,LLaMA2,7B,8,3000\n"
    found = compare("llama2-7b", 1500.0, rows=(*own(tmp_path, text), *published()))
    assert sentences(found)[0].startswith("1,500 tokens/s/p = 50 % of ours-7b's published 3,000 for LLaMA2-7B")


def test_an_own_row_with_the_name_of_a_published_one_is_meant_by_it(tmp_path):
    text = "name,model,size,tokens_per_second_per_device\nmodellink-llama2-7b-1x8,LLaMA2,7B,3000\n"
    assert find_baseline((*own(tmp_path, text), *published()), "ModelLink-LLaMA2-7B-1x8").publisher == ""


def test_a_model_with_its_size_in_its_name(tmp_path):
    (found,) = own(tmp_path, "name,model,devices,tokens_per_second_per_device\nx,LLaMA2-7B,8,3000\n")
    assert (found.title, found.shape.hidden_size) == ("LLaMA2-7B", 4096)


def test_own_sizes_beat_those_of_the_catalogue(tmp_path):
    (found,) = own(tmp_path, "name,model,sizes\nx,LLaMA2-7B,num_layers=2 gated_linear_unit=false\n")
    assert (found.shape.num_layers, found.shape.gated_linear_unit, found.shape.hidden_size) == (2, False, 4096)


@pytest.mark.parametrize(
    ("cell", "half"), [("6.81", 0.005 / 6.81), ("1.5e3", 50 / 1500), ("350", 0.5 / 350), ("18.20", 0.005 / 18.2)]
)
def test_rounding_is_half_a_unit_of_the_last_digit(tmp_path, cell, half):
    (found,) = own(tmp_path, f"name,model,step_time_s\nx,y,{cell}\n")
    assert found.rounding == {"step_time_s": pytest.approx(half)}


def test_a_device_that_no_table_has_gives_no_mfu_and_no_error(tmp_path):
    columns = "name,model,device,precision,seq_length,formula,tokens_per_second_per_device,mfu"
    text = f"{columns}\nx,llama2-7b,z9,bf16,8,A3,9,0.4\n"
    (found,) = own(tmp_path, text)
    assert check_row(found) == ()


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("name,modell\nx,y\n", "unknown column 'modell'", ""),
        ("name,model,model\nx,y,z\n", "the column 'model' occurs twice", ""),
        ("name,model,devices\nx,y,eight\n", "devices is 'eight'", ", line 2"),
        ("name,model,devices\nx,y,0\n", "devices is '0'", ", line 2"),
        ("name,model,devices\nx,y,-8\n", "devices is '-8'", ", line 2"),
        ("name,model,devices\nx,y,1_000\n", "devices is '1_000'", ", line 2"),
        ("name,model,seq_length\nx,y,0\n", "seq_length is '0'", ", line 2"),
        ("name,model,step_time_s\nx,y,0\n", "step_time_s is '0'", ", line 2"),
        ("name,model,step_time_s\nx,y,1_0\n", "step_time_s is '1_0'", ", line 2"),
        ("name,model,step_time_s\nx,y,1e-300\n", "step_time_s is '1e-300'", ", line 2"),
        ("name,model,mfu\nx,y,nan\n", "mfu is 'nan'", ", line 2"),
        ("name,model,formula\nx,y,ZZ\n", "unknown formula 'ZZ'", ", line 2"),
        ("name,model,sizes\nx,y,layers=3\n", "unknown size 'layers'", ", line 2"),
        ("name,model,sizes\nx,y,num_layers=0\n", "num_layers is '0'", ", line 2"),
        ("name,model,sizes\nx,y,gated_linear_unit=1\n", "gated_linear_unit is '1'", ", line 2"),
        ("name,model\nx,y\n,y\n", "a row without a name or a model", ", line 3"),
        ("name,model\nx,y,z\n", "a row with more cells than there are columns", ", line 2"),
        ("name,model\nx,y\nX,z\n", "the name 'x' occurs twice", ", line 3"),
        (f"name,model\nx,{'y' * 140_000}\n", "not a CSV file: field larger than field limit", ", after line 1"),
        ('name,model\nx,"y\nz,w\n', "not a CSV file: unexpected end of data", ""),
    ],
)
def test_own_rows_that_cannot_be_read(tmp_path, text, problem, line):
    with pytest.raises(InputError) as error:
        own(tmp_path, text)
    assert problem in str(error.value)
    assert f"own.csv{line}" in str(error.value)
    assert error.value.remedy


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_baselines(tmp_path / "nothing.csv")


@pytest.mark.parametrize("model", all_models(), ids=lambda m: m.name)
def test_every_model_of_the_catalogue_can_be_compared(model):
    assert sentences(compare(model.name))


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


def test_command_shows_the_sizes_of_a_row_as_the_file_has_them():
    shown = run_logparse("baselines", "megatron-lm-gpt-22b-1x8-full", cwd=ROOT).stdout
    assert "num_layers=48 hidden_size=6144 padded_vocab_size=51200" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("modellink-llama2-7b-1x8", "--devices", "999"), "NAME cannot be combined with --model"),
        (("--dtype", "xx"), "use one of bf16, fp16, fp8"),
        (("--publisher", "nobody"), "`logparse baselines` lists all"),
    ],
)
def test_command_refuses_what_it_cannot_filter_by(arguments, said):
    done = run_logparse("baselines", *arguments, cwd=ROOT)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_command_says_where_an_own_file_is_wrong(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("name,model,devices,step_time_s\nx,y,0,1\n")
    done = run_logparse("baselines", "--file", str(path), cwd=ROOT)
    assert done.returncode == 2
    assert "own.csv, line 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_rows_of_mindspeed_llm_can_be_listed():
    rows = json.loads(run_logparse("baselines", "--publisher", "mindspeed-llm", "--json", cwd=ROOT).stdout)
    assert len(rows) == 8
    assert all(found["document"] and found["note"] for found in rows)
