"""FLOPs of the large models that MindSpeed-LLM ships scripts for: each sum is written out by hand."""

import pytest
from helpers import megatron_log

from analysis.flops import all_formulas, real_model_formula
from analysis.model.shape import ModelShape
from analysis.project.given_facts import gather
from analysis.run.build import analyze_logs
from analysis.run.load import load
from analysis.run.options import RunOptions
from logparse.context.run_context import Given

COMMON = {
    "prompt_type": None,
    "sliding_window": None,
    "interleave_sliding_window": None,
    "moe_expert_capacity_factor": None,
    "noop_layers": None,
    "moe_router_topk": 8,
    "seq_length": 4096,
    "vocab_size": None,
}
GROUPED = {"group_query_attention": True, "num_query_groups": 4, "kv_channels": 128, "num_experts": 128}
# The arguments of the four scripts, as the dump has them.
DEEPSEEK_V3 = {
    "num_layers": 64,
    "noop_layers": "{61, 62, 63}",
    "hidden_size": 7168,
    "ffn_hidden_size": 18432,
    "num_attention_heads": 128,
    "padded_vocab_size": 129280,
    "multi_latent_attention": True,
    "qk_pos_emb_head_dim": 64,
    "qk_head_dim": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "v_head_dim": 128,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "moe_shared_expert_intermediate_size": 2048,
    "num_experts": 256,
    "moe_ffn_hidden_size": 2048,
    "mtp_num_layers": 1,
}
QWEN3_235B = GROUPED | {
    "num_layers": 96,
    "noop_layers": "94,95",
    "hidden_size": 4096,
    "ffn_hidden_size": 12288,
    "num_attention_heads": 64,
    "padded_vocab_size": 151936,
    "moe_ffn_hidden_size": 1536,
    "moe_layer_freq": -1,
    "first_k_dense_replace": -1,
}
QWEN3_30B = QWEN3_235B | {
    "num_layers": 48,
    "noop_layers": None,
    "hidden_size": 2048,
    "ffn_hidden_size": 6144,
    "num_attention_heads": 32,
    "moe_ffn_hidden_size": 768,
}
GLM_45_AIR = GROUPED | {
    "num_layers": 48,
    "noop_layers": "{1, 47}",
    "hidden_size": 4096,
    "ffn_hidden_size": 10944,
    "num_attention_heads": 96,
    "num_query_groups": 8,
    "padded_vocab_size": 151552,
    "moe_ffn_hidden_size": 1408,
    "n_shared_experts": 1,
    "moe_layer_freq": 1,
    "first_k_dense_replace": 1,
    "mtp_num_layers": 1,
}
# Multiply-adds of a token forward. A token meets 2048 others on average.
LATENT = 1536 * (7168 + 128 * 192 + 1) + 512 * (7168 + 128 * 256 + 1) + 7168 * 64 + 128 * 128 * 7168
WORK = {
    "DeepSeek-V3": (
        DEEPSEEK_V3,
        # 61 layers and a depth of prediction; 3 dense, 58 + 1 with 8 chosen and 1 shared expert.
        62 * (LATENT + 128 * (192 + 128) * 2048)
        + 3 * 7168 * (3 * 18432 + 59 * 9 * 2048)
        + (3 * 7168 + 2 * 7168**2)
        + 2 * 7168 * 129280,
    ),
    "Qwen3-235B-A22B": (
        QWEN3_235B,
        94 * (2 * 4096 * 128 * (64 + 4) + 2 * 64 * 128 * 2048 + 3 * 4096 * 8 * 1536) + 4096 * 151936,
    ),
    "Qwen3-30B-A3B": (
        QWEN3_30B,
        48 * (2 * 2048 * 128 * (32 + 4) + 2 * 32 * 128 * 2048 + 3 * 2048 * 8 * 768) + 2048 * 151936,
    ),
    "GLM-4.5-Air": (
        GLM_45_AIR,
        # 46 layers and a depth; 1 dense, 45 + 1 with 8 chosen and 1 shared expert: layers 1 and 47 do nothing.
        47 * (2 * 4096 * 128 * (96 + 8) + 2 * 96 * 128 * 2048)
        + 3 * 4096 * (10944 + 46 * 9 * 1408)
        + (3 * 4096 + 2 * 4096**2)
        + 2 * 4096 * 151552,
    ),
}


def shape_of(tmp_path, **settings):
    (tmp_path / "run.log").write_text(megatron_log(**COMMON | settings))
    return ModelShape.from_quantities(load([str(tmp_path / "run.log")], RunOptions()).context.values())


@pytest.mark.parametrize("name", WORK)
def test_work_of_a_token(name, tmp_path):
    settings, products = WORK[name]
    work = real_model_formula().model_flops_per_token(shape_of(tmp_path, **settings), 4096)
    assert work == pytest.approx(6 * products, rel=1e-12)


@pytest.mark.parametrize("formula", all_formulas())
@pytest.mark.parametrize("noop", ["{6, 7}", "0,7", "3,4,5"])
def test_layers_that_do_nothing_do_none_of_the_work(formula, noop, tmp_path):
    fewer = shape_of(tmp_path, **QWEN3_30B | {"num_layers": 8 - len(noop.split(","))})
    idle = shape_of(tmp_path, **QWEN3_30B | {"num_layers": 8, "noop_layers": noop})
    assert idle == fewer
    assert all_formulas()[formula].model_flops_per_token(idle, 4096) is not None


@pytest.mark.parametrize(("factor", "share"), [(None, 1), (0.5, 0.5), (1.0, 1), (1.5, 1)])
def test_a_capacity_bounds_the_tokens_of_an_expert(factor, share, tmp_path):
    shape = shape_of(tmp_path, **QWEN3_30B | {"moe_expert_capacity_factor": factor})
    assert real_model_formula().terms_per_token(shape, 4096)["mlp"] == 6 * 48 * 3 * 2048 * 8 * 768 * share


@pytest.mark.parametrize(("setting", "windows"), [("sliding_window", 9), ("interleave_sliding_window", 5)])
@pytest.mark.parametrize(("seq_length", "keys"), [(4096, 1024 - 1024**2 / 8192), (512, 256)])
def test_a_window_shortens_the_attention_of_its_layers(setting, windows, seq_length, keys, tmp_path):
    shape = shape_of(tmp_path, **QWEN3_30B | {"num_layers": 9, setting: 1024})
    core = real_model_formula().terms_per_token(shape, seq_length)["attention core"]
    assert core == 6 * 2 * 32 * 128 * (windows * keys + (9 - windows) * seq_length / 2)


@pytest.mark.parametrize(
    ("layers", "noop"), [(64, "{61, 62, 63}"), (63, "5,20"), (61, None)], ids=["at the end", "between", "none"]
)
def test_a_named_model_is_that_of_the_layers_that_work(layers, noop, tmp_path):
    """The user names the model; the log has its layers and those that fill up the pipeline."""
    (tmp_path / "run.log").write_text(
        megatron_log(**COMMON | DEEPSEEK_V3 | {"num_layers": layers, "noop_layers": noop, "seq_length": 4096})
    )
    named, plain = (
        analyze_logs([str(tmp_path / "run.log")], RunOptions(hw="910b3", given=given))
        for given in (gather({}, "deepseek-v3", None), Given())
    )
    assert not {note.code for note in named.notes} & {"model_contradicts_log", "setting_overridden"}
    assert named.title.models == plain.title.models == ["deepseek-v3"]
    assert (named.mfu, named.hfu) == pytest.approx((plain.mfu, plain.hfu))
