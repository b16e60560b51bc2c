"""Shapes that several tests compute with, as the models' authors publish them."""

from dataclasses import replace

from analysis.model.shape import ModelShape

LLAMA2_7B = ModelShape(
    num_layers=32,
    hidden_size=4096,
    ffn_hidden_size=11008,
    gated_linear_unit=True,
    num_attention_heads=32,
    num_query_groups=32,
    kv_channels=128,
    padded_vocab_size=32000,
    untie_embeddings_and_output_weights=True,
)
LLAMA2_70B = replace(
    LLAMA2_7B, num_layers=80, hidden_size=8192, ffn_hidden_size=28672, num_attention_heads=64, num_query_groups=8
)
MIXTRAL = replace(
    LLAMA2_7B,
    ffn_hidden_size=14336,
    num_query_groups=8,
    padded_vocab_size=32128,
    num_experts=8,
    moe_router_topk=2,
    num_moe_layers=32,
)
GPT_22B = ModelShape(
    num_layers=48,
    hidden_size=6144,
    ffn_hidden_size=24576,
    gated_linear_unit=False,
    num_attention_heads=64,
    num_query_groups=64,
    kv_channels=96,
    padded_vocab_size=51200,
    untie_embeddings_and_output_weights=False,
)
# A gated delta net in each of 16 layers, as 56 H100 trained it with Megatron-LM after core 0.16.
DELTA = ModelShape(
    num_layers=16,
    hidden_size=2048,
    ffn_hidden_size=5824,
    gated_linear_unit=True,
    num_attention_heads=32,
    padded_vocab_size=128256,
    num_linear_attention_layers=16,
    linear_key_head_dim=192,
    linear_value_head_dim=384,
    linear_num_key_heads=8,
    linear_num_value_heads=8,
    linear_conv_kernel_dim=4,
)
