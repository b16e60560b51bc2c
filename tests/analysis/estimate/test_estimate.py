"""Estimates: every worked number of the source documents, then what follows from the exact count."""

import json
import math
import re
from dataclasses import replace

import pytest
from helpers import ROOT, run_logparse

from analysis.estimate.activations import layer_kept, rule_figures
from analysis.estimate.device_layout import Layout, Training, check_layout, check_model, layers_of_stages, layout_notes
from analysis.estimate.job import Job, estimate
from analysis.estimate.layout_search import Fixed, Search, all_fits, smallest_fit
from analysis.estimate.parameter_figures import exact_figures, parameter_figures, stage_parameters
from analysis.estimate.stages import estimate_stages, in_flight, rule_of_thumb_stages
from analysis.estimate.state import MEGATRON, MIXED, replica_figure, state_figures
from analysis.estimate.step import bubble_share, link_seconds, network_seconds, share_of_step, traffic_bytes
from analysis.estimate.work import Work, devices_for, total_flops, training_time
from analysis.flops import find_formula
from analysis.hardware.devices import find_device, resolve_peak
from analysis.model.catalogue import all_models, find_model
from analysis.model.parameters import Details, count_parameters
from analysis.model.shape import ModelShape
from logparse.errors import UsageError
from logparse.findings import info

GPT3 = find_model("gpt3-175b").shape
THIRTEEN = ModelShape(num_layers=40, hidden_size=5120)


def value(figures, name):
    return next(f.value for f in figures if f.name == name)


def gb(values):
    return [v / 1e9 for v in values]


# Section 2: size and memory.


@pytest.mark.parametrize(
    ("layers", "hidden", "parameters"),
    [
        (32, 4096, 6_442_450_944),
        (40, 5120, 12_582_912_000),
        (60, 6656, 31_897_681_920),
        (80, 8192, 64_424_509_440),
        (96, 12288, 173_946_175_488),
    ],
)
def test_golden_short_rule(layers, hidden, parameters):
    shape = ModelShape(num_layers=layers, hidden_size=hidden)
    assert value(parameter_figures(shape, None, None), "parameters_short") == parameters


def test_golden_state_of_13b():
    figures = state_figures(13_000_000_000)
    assert value(figures, "weights_on_disk") == 26e9
    assert value(figures, "training_state_20") == 260e9
    assert value(figures, "training_state_18") == 234e9


def test_golden_gpt3():
    figures = state_figures(175_000_000_000)
    assert value(figures, "weights_on_disk") == 350e9
    assert value(figures, "training_state_20") == 3.5e12
    assert value(figures, "inference_memory_fp32") == 840e9
    assert replica_figure(175_000_000_000, 80).value == 44


@pytest.mark.parametrize(("batch", "total"), [(1, 275.414777856e9), (64, 17_626.545782784e9)])
def test_golden_activations_of_gpt3(batch, total):
    assert value(rule_figures(GPT3, Training(2048, batch)), "activations_stack") == total


def test_golden_activations_of_13b_by_the_rule_of_thumb():
    assert value(rule_figures(THIRTEEN, Training(4096)), "activations_rule") == 33.554432e9


# The note rounds 33.55 GB to 34 before it adds.
@pytest.mark.parametrize(
    ("layout", "stages"),
    [
        (Layout(pp=4), {1: 92.5, 4: 67.0}),
        (Layout(pp=4, dp=2, zero=1), {1: 73.0, 2: 64.5, 3: 56.0, 4: 47.5}),
        (Layout(pp=8), {1: 63.25}),
    ],
)
def test_golden_note_on_13b(layout, stages):
    found = gb(rule_of_thumb_stages(13e9, 34e9, layout))
    assert {stage: found[stage - 1] for stage in stages} == pytest.approx(stages, abs=1e-9)


def test_golden_note_on_13b_for_one_micro_batch():
    # 58.5 GB of state and 8.5 GB of activations on a stage that holds one micro-batch: the last.
    assert 13e9 / 4 * MEGATRON.per_parameter(0, 1) == 58.5e9
    assert 34e9 / 4 == 8.5e9


# Section 3: compute, time, devices.


def test_golden_flops_and_years_of_gpt3():
    work = Work(174_600_000_000, 300_000_000_000, 1, 312, 1.0)
    assert total_flops(work).value == pytest.approx(3.1428e23, rel=1e-12)
    assert round(training_time(work).value / 86400 / 365, 2) == 31.94


def test_golden_time_on_1024_a100():
    found = training_time(Work(175_000_000_000, 300_000_000_000, 1024, 312, 0.45, "full"))
    assert found.value == pytest.approx(2_921_340.81, abs=0.005)
    assert round(found.value / 86400, 2) == 33.81


def test_golden_devices_for_thirty_days():
    found = devices_for(Work(175_000_000_000, 300_000_000_000, None, 312, 0.45, "full"), 2_592_000)
    assert found.value == 1155
    needed = 8 * 175e9 * 300e9 / (2_592_000 * 312e12 * 0.45)
    assert needed == pytest.approx(1154.11, abs=0.005)


@pytest.mark.parametrize(("device", "quoted"), [("a100", 312), ("h100", 990)])
def test_golden_peaks(device, quoted):
    peak, _ = resolve_peak(device, "bf16")
    assert peak.peak_tflops_per_second == pytest.approx(quoted, rel=1e-3)


def test_golden_traffic():
    assert network_seconds(500e9, 200).value == 20.0
    assert round(link_seconds(500e9, 450).value, 1) == 1.1
    assert find_device("h100").link_gbps == 450


def test_golden_traffic_against_an_iteration_of_1030_seconds():
    slow = share_of_step("slow", network_seconds(500e9, 200), 1030)
    fast = share_of_step("fast", link_seconds(500e9, 450), 1030)
    assert slow.value == pytest.approx(20 / 1030)
    assert fast.value == pytest.approx(500 / 450 / 1030)


def test_the_peak_the_article_quotes_for_b100_is_that_of_b200():
    assert resolve_peak("b200", "bf16")[0].peak_tflops_per_second == 2250
    assert resolve_peak("b100", "bf16")[0].peak_tflops_per_second < 2250


# Parameters.


@pytest.mark.parametrize("model", all_models(), ids=lambda m: m.name)
def test_exact_figure_is_the_count_for_every_model(model):
    counted = count_parameters(model.shape, model.vocab_size, details=model.details)
    figures = parameter_figures(model.shape, model.vocab_size, counted)
    assert value(figures, "parameters_exact") == counted.total
    if counted.moe:
        assert value(figures, "parameters_active") == counted.active
    if model.parameters:
        assert value(figures, "parameters_exact") == pytest.approx(model.parameters, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("llama2-7b", 6_738_415_616, 6_738_415_616),
        ("llama2-13b", 13_015_864_320, 13_015_864_320),
        ("llama2-70b", 68_976_648_192, 68_976_648_192),
        ("mixtral-8x7b", 46_702_792_704, 12_879_925_248),
        # less 248 experts of 3 x 7168 x 2048 in each of 58 layers
        ("deepseek-v3", 671_026_419_200, 37_552_297_472),
    ],
)
def test_published_counts(name, total, active):
    model = find_model(name)
    counted = count_parameters(model.shape, model.vocab_size, details=model.details)
    assert (counted.total, counted.active) == (total, active)


def test_published_active_counts_are_with_or_without_the_input_embedding():
    def active(name):
        model = find_model(name)
        figures = exact_figures(count_parameters(model.shape, model.vocab_size, details=model.details))
        return {figure.name: round(figure.value / 1e9, 1) for figure in figures}

    assert active("mixtral-8x7b")["parameters_active"] == 12.9
    assert active("deepseek-v3")["parameters_active_without_embedding"] == 36.6


def test_unknown_sizes_name_their_flags():
    figures = parameter_figures(ModelShape(num_layers=32), None, None)
    short = next(f for f in figures if f.name == "parameters_short")
    assert (short.value, short.missing) == (None, ("--hidden-size",))


def test_formula_is_shown_in_symbols_and_in_numbers():
    short = parameter_figures(THIRTEEN, None, None)[0]
    assert short.formula == "12 l h^2"
    assert short.worked == "12 x 40 x 5,120^2"


# Memory of a stage.


@pytest.mark.parametrize(
    ("zero", "megatron", "mixed"), [(0, 18, 20), (1, 6 + 12 / 4, 8 + 12 / 4), (2, 2 + 16 / 4, 2 + 18 / 4), (3, 4.5, 5)]
)
def test_bytes_per_parameter_under_zero(zero, megatron, mixed):
    assert MEGATRON.per_parameter(zero, 4) == megatron
    assert MIXED.per_parameter(zero, 4) == mixed


@pytest.mark.parametrize("pp", [1, 2, 4])
def test_stages_hold_every_matrix_once(pp):
    model = find_model("llama2-7b")
    counted = count_parameters(model.shape, model.vocab_size)
    stages = stage_parameters(counted, Layout(pp=pp))
    assert sum(s.total for s in stages) == counted.total
    assert [s.layers for s in stages] == [32 // pp] * pp


def test_tied_embedding_lies_on_both_ends_of_a_pipeline():
    model = find_model("gpt3-175b")
    counted = count_parameters(model.shape, model.vocab_size, details=model.details)
    assert sum(s.total for s in stage_parameters(counted, Layout(pp=4))) == counted.total + counted.embedding


def test_norms_are_whole_on_every_tensor_rank():
    model = find_model("llama2-7b")
    counted = count_parameters(model.shape, model.vocab_size)
    (stage,) = stage_parameters(counted, Layout(tp=2))
    norms = 32 * 2 * 4096 + 4096
    assert stage.total == (counted.total - norms) / 2 + norms


def test_layers_without_experts_come_first():
    model = find_model("deepseek-v3")
    counted = count_parameters(model.shape, model.vocab_size, details=model.details)
    first, second = stage_parameters(counted, Layout(pp=2, ep=8, dp=8))
    assert first.experts == (31 - 3) * counted.routed / 8
    assert second.experts == 30 * counted.routed / 8


def test_a_gpt_layer_keeps_what_korthikanti_counts():
    # s b h (10 + 24/t + 5 a s/(h t)) for h = 12288, a = 96, s = 2048
    whole = layer_kept(GPT3, Training(2048, flash_attention=False, dropout=True), moe=False)
    assert (whole.whole, whole.split) == (10 * 12288, 24 * 12288 + 5 * 96 * 2048)
    assert whole.on_device(Layout(tp=8)) == (34 * 12288 + 5 * 96 * 2048) / 8
    assert whole.on_device(Layout(tp=8, sequence_parallel=False)) == 10 * 12288 + (24 * 12288 + 5 * 96 * 2048) / 8


@pytest.mark.parametrize("training", [Training(2048, recompute="selective", flash_attention=False), Training(2048)])
def test_selective_recomputation_and_flash_attention_keep_no_core(training):
    kept = layer_kept(GPT3, training, moe=False)
    # no masks without dropout: 34 h less 2 h
    assert kept.whole + kept.split == 32 * 12288


def test_a_llama_layer_by_hand():
    # two norms and their outputs 4 x 2h; query and output 2 x 2h, key and value 2 x 2h; gated MLP 3 x 2f
    kept = layer_kept(find_model("llama2-7b").shape, Training(4096), moe=False)
    assert (kept.whole, kept.split) == (8 * 4096, 8 * 4096 + 6 * 11008)


def test_grouped_queries_keep_fewer_keys_and_values():
    kept = layer_kept(find_model("llama2-70b").shape, Training(4096), moe=False)
    assert kept.split == 4 * 8192 + 4 * 8 * 128 + 6 * 28672


def test_experts_keep_copies_of_a_token():
    kept = layer_kept(find_model("mixtral-8x7b").shape, Training(4096), moe=True)
    assert kept.split == 4 * 4096 + 4 * 8 * 128 + 2 * (4 * 4096 + 6 * 14336)


def test_latent_attention_by_hand():
    kept = layer_kept(find_model("deepseek-v3").shape, Training(4096), moe=False)
    # compressed query and key/value twice 2 (1536 + 512), position 2 x 64
    assert kept.whole == 8 * 7168 + 4 * (1536 + 512) + 2 * 64
    # query, key 2 x 192 and value, output 2 x 128 of 128 heads; gated MLP
    assert kept.split == 2 * 128 * 2 * (192 + 128) + 6 * 18432


def test_full_recomputation_keeps_inputs_and_one_layer():
    model = find_model("llama2-7b")
    counted = count_parameters(model.shape, model.vocab_size)
    (stage,) = estimate_stages(model.shape, counted, 32000, Layout(), Training(4096, 2, recompute="full"))
    output = 4 * 4096 + 4 * 32000
    layer = 16 * 4096 + 6 * 11008
    assert stage.activation_bytes == 2 * 4096 * (32 * 2 * 4096 + layer + output)


@pytest.mark.parametrize(
    ("layout", "micro_batches", "held"),
    [
        (Layout(pp=4), None, [4, 3, 2, 1]),
        (Layout(pp=4), 2, [2, 2, 2, 1]),
        (Layout(pp=1), 8, [1]),
        # pp (1 + (pp - 1)/(pp vpp)) = 4 + 3/2 on the first stage, two chunks fewer on each later one
        (Layout(pp=4, vpp=2), None, [5.5, 4.5, 3.5, 2.5]),
    ],
)
def test_micro_batches_in_flight(layout, micro_batches, held):
    assert [in_flight(i + 1, layout, micro_batches) for i in range(layout.pp)] == held


def test_context_parallelism_splits_tokens():
    model = find_model("llama2-7b")
    counted = count_parameters(model.shape, model.vocab_size)
    plain, split = (
        estimate_stages(model.shape, counted, 32000, layout, Training(4096))[0] for layout in (Layout(), Layout(cp=2))
    )
    assert split.activation_bytes == plain.activation_bytes / 2


def test_layers_that_do_not_divide_go_to_the_first_stages():
    assert layers_of_stages(61, 4) == (16, 15, 15, 15)


@pytest.mark.parametrize(
    ("layout", "training", "problem"),
    [
        (Layout(tp=3), Training(4096), "attention heads (40) cannot be split by --tp 3"),
        (Layout(tp=16), Training(4096), "attention heads (40) cannot be split by --tp 16"),
        (Layout(cp=3), Training(4096), "the sequence length (4096) cannot be split by 2 x --cp 3"),
        (Layout(cp=4096), Training(4096), "the sequence length (4096) cannot be split by 2 x --cp 4096"),
        (Layout(tp=8), Training(4097), "the tokens per device (4097) cannot be split by --tp 8"),
        (Layout(tp=8, cp=2), Training(4100), "the tokens per device (2050) cannot be split by --tp 8"),
        (Layout(pp=4, vpp=3), Training(4096), "40 layers do not divide into 4 stages of 3 equal chunks"),
        (Layout(pp=3, vpp=5), Training(4096), "40 layers do not divide into 3 stages of 5 equal chunks"),
        (Layout(pp=4, vpp=2), Training(4096, 1, 3), "with --vpp the micro-batches (3) must be a multiple of --pp 4"),
        (Layout(pp=4, vpp=2), Training(4096, 1, 6), "with --vpp the micro-batches (6) must be a multiple of --pp 4"),
        (Layout(pp=64), Training(4096), "40 layers cannot fill 64 stages of 1 chunks"),
        (Layout(vpp=2), Training(4096), "--vpp needs a pipeline"),
        (Layout(dp=3), Training(4096, 1, 64), "the global batch 64 is not a multiple of micro batch x data"),
    ],
)
def test_a_layout_that_cannot_be_run_is_refused(layout, training, problem):
    with pytest.raises(UsageError, match=re.escape(problem)):
        check_layout(find_model("llama2-13b").shape, layout, training)


@pytest.mark.parametrize(
    ("layout", "training"),
    [
        (Layout(tp=8, sequence_parallel=False), Training(4097)),
        (Layout(cp=2), Training(4096)),
        (Layout(pp=4, vpp=2), Training(4096, 1, 8)),
        (Layout(pp=4, vpp=3, uneven=True), Training(4096, 1, 3)),
        (Layout(pp=3), Training(4096)),
    ],
)
def test_a_layout_that_can_be_run_is_not_refused(layout, training):
    check_layout(find_model("llama2-13b").shape, layout, training)


@pytest.mark.parametrize(("groups", "tp", "runs"), [(8, 4, True), (2, 8, True), (3, 2, False), (3, 4, False)])
def test_key_value_heads_are_shared_out_evenly_or_shared(groups, tp, runs):
    shape = ModelShape(num_layers=4, num_attention_heads=24, num_query_groups=groups)
    layout = Layout(tp=tp)
    if runs:
        check_layout(shape, layout, Training(4096))
        assert [note for note in layout_notes(shape, layout) if note.code == "key_value_heads_below_tp"] == [
            info("key_value_heads_below_tp", groups=groups, tp=tp)
        ] * (groups < tp)
    else:
        with pytest.raises(UsageError, match=f"{groups} key/value heads cannot be split evenly by --tp {tp}"):
            check_layout(shape, layout, Training(4096))


def test_the_search_leaves_out_what_cannot_be_run():
    shape = replace(find_model("llama2-7b").shape, num_attention_heads=24, num_query_groups=3)
    search = Search(shape, count_parameters(shape, 32000), 32000, Training(4096), 80e9)
    assert {fit.layout.tp for fit in all_fits(search, Fixed(), 8)} == {1}


def test_the_search_with_interleaving_leaves_whole_groups_of_micro_batches():
    search = Search(*_searched("llama2-13b"), Training(4096, 1, 64), 64e9)
    found = smallest_fit(search, Fixed(pp=4, vpp=2))
    assert found is not None
    assert found.fits
    assert 64 // found.layout.dp % 4 == 0


@pytest.mark.parametrize(
    ("name", "sizes", "problem"),
    [
        ("mixtral-8x7b", {"num_moe_layers": 40}, "num_moe_layers 40 is more than num_layers 32"),
        ("mixtral-8x7b", {"moe_router_topk": 16}, "moe_router_topk 16 is more than num_experts 8"),
        ("llama2-7b", {"num_query_groups": 5}, "num_attention_heads 32 is not a multiple of num_query_groups 5"),
        ("llama2-7b", {"padded_vocab_size": 100}, "vocab_size 32000 is more than padded_vocab_size 100"),
    ],
)
def test_a_shape_that_no_model_has_is_refused(name, sizes, problem):
    shape = replace(find_model(name).shape, **sizes)
    with pytest.raises(UsageError, match=problem) as refused:
        check_model(shape, 32000, None)
    assert "--" + next(iter(sizes)).replace("_", "-") in refused.value.remedy


@pytest.mark.parametrize("model", all_models(), ids=lambda m: m.name)
def test_no_model_of_the_catalogue_is_refused(model):
    check_model(replace(model.shape, padded_vocab_size=model.vocab_size), model.vocab_size, Training(4096))


def test_nothing_is_trained_in_whole_numbers():
    with pytest.raises(UsageError, match="training in --dtype int8 is not supported"):
        estimate(job(training=Training(4096, dtype="int8")))


# Experts, multi-token prediction and what tensor parallelism does not split.


@pytest.mark.parametrize(
    ("layout", "dense", "experts", "state"),
    [
        # 4 layers of 187,107,328 + 14,336 + 44,040,192 + 1,835,264, and 4 x 256 experts of 44,040,192 over 64 ranks
        (Layout(pp=16, dp=128, ep=64, zero=1), 931_988_480, 704_643_072, 14.14),
        # 15 layers: (171,966,464 + 44,040,192) / 8 + 15,140,864 + 14,336 + 1,835,264, experts over 4 x 8 devices
        (Layout(tp=8, pp=4, dp=8, ep=4, zero=1), 659_869_440, 5_284_823_040, 68.37),
    ],
)
def test_shared_experts_router_and_compression_by_hand(layout, dense, experts, state):
    model = find_model("deepseek-v3")
    counted = count_parameters(model.shape, model.vocab_size, details=model.details)
    stage = stage_parameters(counted, layout)[1]
    assert (stage.dense, stage.experts) == (dense, experts)
    found = estimate_stages(model.shape, counted, model.vocab_size, layout, Training(4096))[1]
    assert found.state_bytes / 1e9 == pytest.approx(state, abs=0.005)


def test_parameters_of_a_rank_as_megatron_deepspeed_prints_them():
    # Qwen2.5-7B's sizes without its biases, tp 4: 1,904,025,088 on each rank, as a log prints it
    model = find_model("qwen2.5-7b")
    (stage,) = stage_parameters(count_parameters(model.shape, 152064), Layout(tp=4))
    assert stage.total == 1_904_025_088


def test_experts_that_are_not_split_lie_on_tensor_parallel_ranks_too():
    model = find_model("deepseek-v3")
    counted = count_parameters(model.shape, model.vocab_size, details=model.details)
    layout = Layout(tp=8, pp=8, dp=4, ep=32)
    check_layout(model.shape, layout, Training(4096))
    assert (layout.expert_tp, layout.expert_ranks, str(layout)) == (1, 32, "tp 8 pp 8 dp 4 ep 32 etp 1 ZeRO-0")
    # 8 layers, 8 whole experts in each
    assert stage_parameters(counted, layout)[1].experts == 8 * 8 * 3 * 7168 * 2048
    assert list(layout_notes(model.shape, layout)) == [info("experts_whole", ep=32, etp=1)]
    with pytest.raises(UsageError, match=re.escape("the ranks that share the experts (32) cannot be split by --ep 64")):
        check_layout(model.shape, replace(layout, ep=64), Training(4096))


def test_the_log_tells_how_far_experts_are_split():
    free, whole = Layout(tp=2, dp=8, ep=4), Layout(tp=2, dp=8, ep=4, etp=1)
    assert (free.expert_tp, free.expert_ranks) == (2, 8)
    assert (whole.expert_tp, whole.expert_ranks) == (1, 16)
    shape = find_model("mixtral-8x7b").shape
    counted = count_parameters(shape, 32000)
    assert [stage_parameters(counted, x)[0].experts for x in (free, whole)] == [
        32 * counted.routed / 8,
        32 * counted.routed / 4,
    ]
    # 4 ranks hold the same experts and share out their optimizer state
    (stage,) = estimate_stages(shape, counted, 32000, replace(whole, zero=1), Training(4096))
    assert stage.state_worked.endswith("x (6 + 12 / 4)")


@pytest.mark.parametrize(("pp", "copy"), [(1, 0), (4, 926_679_040)])
def test_multi_token_prediction_lies_on_the_last_stage(pp, copy):
    model = find_model("deepseek-v3")
    plain, more = (
        count_parameters(model.shape, model.vocab_size, details=model.details, include_mtp=mtp) for mtp in (False, True)
    )
    before, after = (stage_parameters(counted, Layout(pp=pp)) for counted in (plain, more))
    assert after[:-1] == before[:-1]
    # one layer of experts, the projection with its norms, and the embedding where it is not there already
    assert after[-1].total - before[-1].total == 11_507_286_272 + 102_781_952 + copy
    assert value(exact_figures(more), "parameters_exact") == 671_026_419_200 + 11_507_286_272 + 102_781_952


def test_activations_of_multi_token_prediction_by_hand():
    model = find_model("deepseek-v3")
    stages = []
    for mtp in (False, True):
        counted = count_parameters(model.shape, model.vocab_size, details=model.details, include_mtp=mtp)
        stages.append(estimate_stages(model.shape, counted, 129280, Layout(pp=4), Training(4096))[-1])
    kept = layer_kept(model.shape, Training(4096), moe=True)
    # the layer; both inputs of the projection before and behind their norms; a second output
    extra = kept.whole + kept.split + 4 * 2 * 7168 + 4 * 7168 + 4 * 129280
    assert stages[1].activation_bytes - stages[0].activation_bytes == 4096 * extra
    assert stages[1].layers == stages[0].layers


@pytest.mark.parametrize(
    ("flags", "gigaflops", "parameters", "noted"),
    [
        ((), 249.8, 671_026_419_200, True),
        (("--mtp-num-layers", "0"), 249.8, 671_026_419_200, False),
        # NVIDIA's 260.0 GFLOPs per token for DeepSeek-V3
        (("--mtp-num-layers", "1"), 260.0, 671_026_419_200 + 11_610_068_224, False),
    ],
)
def test_multi_token_prediction_is_counted_where_a_flag_says_so(flags, gigaflops, parameters, noted):
    arguments = ("estimate", "--model", "deepseek-v3", "--seq-length", "4096", *flags, "--json")
    found = json.loads(run_logparse(*arguments, cwd=ROOT).stdout)
    assert round(found["figures"]["flops_per_token"]["value"] / 1e9, 1) == gigaflops
    assert found["figures"]["parameters_exact"]["value"] == parameters
    assert any("pass --mtp-num-layers 1" in note["text"] for note in found["notes"]) is noted
    assert ("mtp_num_layers" in found["context"]) is bool(flags)


def test_norms_of_query_and_key_keep_their_inputs():
    model = find_model("qwen3-32b")
    plain, normed = (
        layer_kept(model.shape, Training(4096), moe=False, details=details) for details in (Details(), model.details)
    )
    # 2 x 128 x (64 + 8) on 8 x 5120 + 4 x 128 x (64 + 8) + 6 x 25600
    assert normed.split - plain.split == 18_432
    assert plain.whole + plain.split == 231_424


def test_fewer_key_value_heads_than_ranks_are_kept_on_each():
    model = find_model("qwen2.5-3b")
    counted = count_parameters(model.shape, model.vocab_size, details=model.details)
    (stage,) = estimate_stages(model.shape, counted, model.vocab_size, Layout(tp=8), Training(4096))
    # 16 query heads over 8 ranks and one key/value head on each, 128 wide
    layer = 8 * 2048 / 8 + 4 * 128 * 2 + 4 * 128 + 6 * 11008 / 8
    output = (4 * 2048 + 4 * model.vocab_size) / 8
    assert stage.activation_bytes == 4096 * (36 * layer + output)


def test_state_of_a_stage_by_both_rules():
    figures = {f.name: f for section in estimate(job(fixed=Fixed(8, 1, 4, zero=1))).sections for f in section.figures}
    held = figures["stage_state"].value / (6 + 12 / 2)
    assert figures["stage_state_20"].value == pytest.approx(held * (8 + 12 / 2))
    assert (figures["stage_state"].label, figures["stage_state_20"].label) == ("stage_state_18", "stage_state_20")


def test_full_precision_has_one_rule_of_16_bytes():
    result = estimate(job(fixed=Fixed(8, 1, 4, zero=0), training=Training(4096, 1, 64, dtype="fp32")))
    names = {f.name: f for section in result.sections for f in section.figures}
    assert names["weights_on_disk"].value == 4 * 13_015_864_320
    assert names["training_state_16"].value == 16 * 13_015_864_320
    assert not {"training_state_18", "training_state_20", "stage_state_20"} & names.keys()
    assert names["stage_state"].label == "stage_state_16"
    assert names["devices_for_state"].value == math.ceil(16 * 13_015_864_320 / 80e9)


# The whole estimate.


def job(name="llama2-13b", training=None, **more):
    model = find_model(name)
    fixed = more.pop("fixed", Fixed(devices=8))
    common = {"details": model.details, "memory_gb": 80, "peak": resolve_peak("a100", "bf16")[0], "link_gbps": 300}
    return Job(
        model.shape,
        model.vocab_size,
        find_formula("megatron"),
        fixed,
        training or Training(4096, 1, 64),
        **common,
        **more,
    )


def test_13b_on_8_cards_as_in_the_note():
    found = {str(fit.layout): fit for fit in estimate(job()).layouts}
    assert found["tp 1 pp 4 dp 2 ZeRO-0"].overflows == (1,)
    assert found["tp 1 pp 4 dp 2 ZeRO-1"].fits
    assert found["tp 1 pp 8 dp 1 ZeRO-0"].fits
    assert found["tp 1 pp 1 dp 8 ZeRO-1"].overflows == (1,)


def test_exact_count_and_rule_stand_side_by_side():
    result = estimate(job(fixed=Fixed(devices=8, pp=4, tp=1, zero=1)))
    # the rule with the exact 13,015,864,320 parameters and 33.55 GB: 12 P / 4 + 33.55
    assert result.rule[0] == pytest.approx(13_015_864_320 / 4 * 12 + 33.554432e9)
    assert [s.total_bytes / 1e9 for s in result.fit.stages] == pytest.approx([67.04, 58.32, 51.57, 47.39], abs=0.005)


def test_the_smallest_layout_that_fits_cannot_be_halved():
    result = estimate(job("llama2-70b", fixed=Fixed()))
    devices = result.smallest.layout.devices
    search = Search(*_searched("llama2-70b"), Training(4096, 1, 64), 80e9)
    assert result.smallest.fits
    assert not any(fit.fits for fit in all_fits(search, Fixed(), devices // 2))


def _searched(name):
    model = find_model(name)
    return model.shape, count_parameters(model.shape, model.vocab_size, details=model.details), model.vocab_size


def test_memory_that_is_not_known_is_no_verdict():
    result = estimate(replace(job(), memory_gb=None))
    assert result.fit.fits is None
    assert result.smallest is None
    assert info("fit_needs_memory") in result.notes


def test_without_a_sequence_length_only_the_size_is_known():
    result = estimate(replace(job(), training=None))
    assert result.fit is None
    assert result.value("parameters_exact") == 13_015_864_320
    assert info("stages_need_seq_length") in result.notes


def test_devices_that_cannot_be_laid_out_are_refused():
    with pytest.raises(UsageError, match="8 devices cannot be split into tp 3 x pp 1"):
        estimate(job(fixed=Fixed(devices=8, tp=3)))


def test_time_at_both_ends_of_what_is_usual():
    result = estimate(job(tokens=10**12))
    rule = 6 * 10**12 * 13_015_864_320 / (8 * 312e12)
    assert result.value("training_time_rule_at_30_percent") == pytest.approx(rule / 0.3)
    assert result.value("training_time_rule_at_50_percent") == pytest.approx(rule / 0.5)


def test_deadline_and_step_at_a_given_utilisation():
    result = estimate(job(tokens=10**12, utilisation=0.4, deadline_days=30.0))
    needed = 6 * 10**12 * 13_015_864_320 / (30 * 86400 * 312e12 * 0.4)
    assert result.value("devices_for_deadline") == math.ceil(needed)
    flops = find_formula("megatron").model_flops_per_token(
        replace(find_model("llama2-13b").shape, padded_vocab_size=32000), 4096
    )
    assert result.value("step_time") == pytest.approx(flops * 64 * 4096 / (8 * 312e12 * 0.4))


def test_full_recomputation_counts_eight_per_parameter():
    result = estimate(job(training=Training(4096, 1, 64, recompute="full"), tokens=10**12))
    assert result.value("flops_per_token_rule") == 8 * 13_015_864_320


def test_bubble_by_hand():
    assert bubble_share(4, 32) == 3 / 35
    assert bubble_share(4, 32, 2) == 3 / 67
    assert bubble_share(1, 32) == 0


def test_tensor_parallel_traffic_by_hand():
    shape = find_model("llama2-13b").shape
    layout = Layout(tp=2, sequence_parallel=False)
    # 4 all-reduces of 2 s h bytes in each of 40 layers and 8 micro-batches; a ring of two sends its data once
    plain = traffic_bytes(shape, layout, Training(4096), 8)
    assert plain.value == 4 * 40 * 8 * 4096 * 5120 * 2
    again = traffic_bytes(shape, layout, Training(4096, recompute="full"), 8)
    assert again.value == plain.value * 6 / 4
    assert traffic_bytes(shape, replace(layout, sequence_parallel=True), Training(4096), 8).value == plain.value * 5 / 4


@pytest.mark.parametrize(
    ("name", "vocabulary", "layout", "printed"),
    [
        ("llama3-8b", 128256, Layout(dp=8, zero=1), 57_438.81),
        ("qwen2.5-7b", 152064, Layout(tp=2, dp=3, zero=1), 36_314.45),
        ("llama2-7b", 32000, Layout(tp=2, dp=4), 57_838.57),
        ("llama2-13b", 32256, Layout(tp=4, pp=2, dp=8), 27_935.53),
        ("llama2-70b", 32768, Layout(tp=8, pp=8, dp=8), 18_938.83),
    ],
)
def test_weights_and_optimizer_as_megatron_prints_them(name, vocabulary, layout, printed):
    """Theoretical memory footprints of logs, in MiB; Megatron shares norms out among tensor-parallel ranks."""
    model = find_model(name)
    counted = count_parameters(model.shape, vocabulary, details=model.details)
    stages = estimate_stages(model.shape, counted, vocabulary, layout, Training(4096))
    assert stages[0].state_bytes / 2**20 == pytest.approx(printed, rel=1e-4)


ONE_B = ModelShape(16, 2048, 8192, True, 32, 8, 64, 128256, False)
SMALL = replace(ONE_B, num_layers=2, hidden_size=256, ffn_hidden_size=512, num_attention_heads=4, num_query_groups=4)
GPT_125M = ModelShape(12, 768, 3072, False, 12, 12, 64, 50304, False)


@pytest.mark.parametrize(
    ("shape", "layout", "training", "state", "kept"),
    [
        (ONE_B, Layout(dp=32, zero=1), Training(8192, 3), 7_513.35, 40_632),
        (replace(ONE_B, padded_vocab_size=32896), Layout(zero=1), Training(2048, 2), 17_861.66, 5_282),
        (SMALL, Layout(dp=4, zero=1), Training(512, 1, dropout=True), 293.07, 258),
        (GPT_125M, Layout(), Training(1024, 4, dtype="fp16", flash_attention=False, dropout=True), 2_121.52, 4_902),
    ],
    ids=["1B", "1B small vocabulary", "2 layers", "GPT 125M"],
)
def test_table_of_the_docs(shape, layout, training, state, kept):
    """State of the first three as Megatron prints it; the last one allocated 7,162 MiB at most, 2 % more than both."""
    counted = count_parameters(shape, shape.padded_vocab_size)
    (stage,) = estimate_stages(shape, counted, shape.padded_vocab_size, layout, training)
    assert stage.state_bytes / 2**20 == pytest.approx(state, rel=2e-4)
    assert stage.activation_bytes / 2**20 == pytest.approx(kept, abs=0.51)


def test_memory_of_a_measured_llama3_8b():
    """Eight devices, ZeRO-1, two samples of 8192 tokens: 136,021 MiB were the most that was allocated."""
    model = find_model("llama3-8b")
    counted = count_parameters(model.shape, model.vocab_size)
    (stage,) = estimate_stages(model.shape, counted, 128256, Layout(dp=8, zero=1), Training(8192, 2))
    assert stage.total_bytes / 2**20 == pytest.approx(136_021, rel=0.006)
