"""What frameworks' own functions give and what their own code printed, beside this project's formulas."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from shapes import GPT_22B, LLAMA2_7B, LLAMA2_70B, MIXTRAL

from analysis.flops.printed import PRINTED_FORMULAS
from analysis.identify import Identification, identify_formula
from analysis.model.shape import ModelShape
from analysis.run.tables import STEP_COLUMNS
from logparse.schema import conform

RECORDED: dict[str, list[dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("second_opinion.toml").read_text(encoding="utf-8")
)
FUNCTIONS, RUNS = RECORDED["function"], RECORDED["run"]
SEQ_LENGTH = 4096
DEEPSEEK_V3 = ModelShape(
    num_layers=61,
    hidden_size=7168,
    ffn_hidden_size=18432,
    gated_linear_unit=True,
    num_attention_heads=128,
    num_query_groups=128,
    kv_channels=128,
    padded_vocab_size=129280,
    untie_embeddings_and_output_weights=True,
    num_experts=256,
    moe_router_topk=8,
    moe_ffn_hidden_size=2048,
    moe_shared_expert_intermediate_size=2048,
    num_moe_layers=58,
    multi_latent_attention=True,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_head_dim=128,
    qk_pos_emb_head_dim=64,
    v_head_dim=128,
    mtp_num_layers=1,
)
SHAPES = {
    "LLaMA2-7B": LLAMA2_7B,
    "LLaMA2-70B": LLAMA2_70B,
    "GPT-22B": GPT_22B,
    "Mixtral-8x7B": replace(MIXTRAL, moe_ffn_hidden_size=14336),
    "DeepSeek-V3": DEEPSEEK_V3,
}


def differences(function: dict[str, Any]) -> dict[str, float]:
    """Ours over theirs less 1, by model."""
    formula = PRINTED_FORMULAS[function["formula"]]
    ours = {model: formula.flops_per_token(SHAPES[model], SEQ_LENGTH) for model in function["flops_per_token"]}
    return {model: (ours[model] or 0.0) / theirs - 1 for model, theirs in function["flops_per_token"].items()}


def identified(run: dict[str, Any]) -> Identification:
    """What the printed numbers of a run are told to be."""
    columns = [name for name in run if isinstance(run[name], list)]
    steps = conform(pl.DataFrame({name: run[name] for name in columns}), STEP_COLUMNS)
    return identify_formula(steps, ModelShape(**run["shape"]), run["seq_length"], run["world_size"], None)
