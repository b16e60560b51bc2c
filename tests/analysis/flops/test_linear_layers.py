"""Linear attention, Mamba and windows, by hand and against what Megatron printed."""

from dataclasses import replace

import pytest
from shapes import DELTA

from analysis.flops import find_formula
from analysis.model.shape import ModelShape

MEGATRON = find_formula("megatron")
PLAIN = ModelShape(
    num_layers=4,
    hidden_size=8,
    ffn_hidden_size=10,
    gated_linear_unit=True,
    num_attention_heads=2,
    num_query_groups=1,
    kv_channels=4,
    padded_vocab_size=20,
)


def test_gated_delta_net_by_hand():
    # q = 8 x 192 = 1536, v = 8 x 384 = 3072. Into 2048 (3072 + 6144 + 16) = 18,907,136; convolution 4 (3072 + 3072) =
    # 24,576; delta rule 4 x 8 x 384^2 = 4,718,592; out 2048 x 3072 = 6,291,456: 29,941,760 a layer, 6 operations.
    terms = MEGATRON.terms_per_token(DELTA, 8192)
    assert terms["linear attention"] == 6 * 16 * 29_941_760
    assert terms["attention projections"] == terms["attention core"] == 0
    assert terms["mlp"] == 6 * 16 * 3 * 2048 * 5824


def test_gated_delta_net_as_megatron_printed_it():
    # 336 samples of 8192 tokens in 1287.3 ms on 56 devices; the line says 301.1.
    per_token = MEGATRON.model_flops_per_token(DELTA, 8192)
    assert per_token * 336 * 8192 / 1.2873 / 56 / 1e12 == pytest.approx(301.1, abs=0.06)


def test_some_layers_with_linear_attention():
    # 3 of 4 layers: the fourth keeps 2 x 8 x 4 (2 + 1) = 192 weights and a core of 2 x 2 x 4 x 10/2 = 80.
    sizes = dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim", "linear_num_key_heads"), 2)
    some = replace(PLAIN, num_linear_attention_layers=3, linear_num_value_heads=2, linear_conv_kernel_dim=4, **sizes)
    terms = MEGATRON.terms_per_token(some, 10)
    assert (terms["attention projections"], terms["attention core"]) == (6 * 192, 6 * 80)
    # q = v = 4: into 8 (8 + 8 + 4) = 160, convolution 4 x 12 = 48, delta rule 4 x 2 x 4 = 32, out 32: 272.
    assert terms["linear attention"] == 6 * 3 * 272


def test_a_hybrid_of_mamba_attention_and_mlp():
    # M * - M: two Mamba layers, one of attention, one MLP. Mamba: 8 (2 x 16 + 2 x 1 x 3 + 16/4) = 336, scan
    # 3.5 x 16 x 3 = 168, out 16 x 8 = 128: 632. Attention 192 and 80, MLP 3 x 8 x 10 = 240.
    hybrid = replace(
        PLAIN,
        num_mamba_layers=2,
        num_attention_layers=1,
        num_mlp_layers=1,
        mamba_state_dim=3,
        mamba_head_dim=4,
        mamba_num_groups=1,
    )
    assert MEGATRON.terms_per_token(hybrid, 10) == {
        "attention projections": 6 * 192,
        "attention core": 6 * 80,
        "linear attention": 6 * 2 * 632,
        "mlp": 6 * 240,
        "multi-token prediction": 0,
        "logits": 6 * 160,
    }


def test_a_window_bounds_the_tokens_that_one_meets():
    # Of 10 tokens the first 4 meet 0.5, 1.5, 2.5, 3.5 (half of themselves), the other 6 meet 4: (8 + 24)/10 = 3.2
    # = 4 - 16/20 in place of 5. Two of four layers: 16 (2 x 3.2 + 2 x 5) = 262.4.
    windowed = replace(PLAIN, num_window_layers=2, sliding_window=4)
    assert MEGATRON.terms_per_token(windowed, 10)["attention core"] == pytest.approx(6 * 262.4)
    wide = replace(PLAIN, num_window_layers=2, sliding_window=400)
    assert MEGATRON.terms_per_token(wide, 10) == MEGATRON.terms_per_token(PLAIN, 10)


def test_gate_of_the_attention_and_experts_on_a_latent_width():
    # The gate is one more product of 8 x 8; experts: 2 of them, 3 matrices of 5 x 6, then 8 to 5 and back.
    gated = replace(PLAIN, attention_output_gate=True)
    assert MEGATRON.terms_per_token(gated, 10)["attention projections"] == 6 * 4 * (192 + 64)
    latent = replace(
        PLAIN, num_experts=4, num_moe_layers=4, moe_router_topk=2, moe_ffn_hidden_size=6, moe_latent_size=5
    )
    assert MEGATRON.terms_per_token(latent, 10)["mlp"] == 6 * 4 * (2 * 3 * 5 * 6 + 2 * 8 * 5)


@pytest.mark.parametrize("name", ["megatron", "6n", "palm"])
def test_what_no_formula_is_known_for_has_no_number(name):
    other = replace(PLAIN, uncounted="compress_ratios", untie_embeddings_and_output_weights=True)
    assert find_formula(name).model_flops_per_token(other, 10) is None
    assert find_formula(name).not_counted(other) == "compress_ratios"
    assert find_formula("ascendspeed").model_flops_per_token(other, 10) is not None


def test_parameters_of_linear_layers_are_not_guessed():
    assert find_formula("6n").not_counted(DELTA) == "linear attention"
