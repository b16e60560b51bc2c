"""Layers whose work does not grow with the square of the tokens, and windows that bound it.

Comes in: a shape. Goes out: multiply-adds per token, forward only, as Megatron-LM megatron/training/training.py
num_floating_point_operations counts them (core 0.16 and later: gated delta net; since core 0.9: Mamba).
"""

from __future__ import annotations

from analysis.model.shape import ModelShape

GATED_DELTA_NET = (
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_conv_kernel_dim",
)
MAMBA = ("mamba_state_dim", "mamba_head_dim", "mamba_num_groups")


def needs(shape: ModelShape) -> tuple[str, ...]:
    """Names of the sizes that the linear layers of ``shape`` must have."""
    delta = GATED_DELTA_NET if shape.num_linear_attention_layers else ()
    return delta + (MAMBA if shape.num_mamba_layers else ())


def linear_products(shape: ModelShape) -> float:
    """Multiply-adds of all linear layers of ``shape``, which knows what it ``needs``."""
    delta, mamba = shape.num_linear_attention_layers or 0, shape.num_mamba_layers or 0
    return (delta * _gated_delta_net(shape) if delta else 0.0) + (mamba * _mamba(shape) if mamba else 0.0)


def _gated_delta_net(shape: ModelShape) -> float:
    """Input products, convolution, the four products of the delta rule, output product."""
    hidden, width = shape.hidden_size or 0, shape.linear_value_head_dim or 0
    key_heads, heads = shape.linear_num_key_heads or 0, shape.linear_num_value_heads or 0
    keys, values = key_heads * (shape.linear_key_head_dim or 0), heads * width
    convolution = (shape.linear_conv_kernel_dim or 0) * (2 * keys + values)
    return hidden * (2 * keys + 2 * values + 2 * heads) + convolution + 4 * heads * width**2 + hidden * values


def _mamba(shape: ModelShape) -> float:
    """Input product, scan (7 operations, which are 3.5 multiply-adds), output product.

    The inner width is that of the heads, where their number is set, else 2 h (Megatron-LM, core/ssm/mamba_mixer.py).
    """
    hidden, state = shape.hidden_size or 0, shape.mamba_state_dim or 0
    inner = (shape.mamba_num_heads or 0) * (shape.mamba_head_dim or 0) or 2 * hidden
    heads = shape.mamba_num_heads or inner // (shape.mamba_head_dim or 1)
    into = 2 * inner + 2 * (shape.mamba_num_groups or 0) * state + heads
    return hidden * into + 3.5 * inner * state + inner * hidden


def mean_keys(seq_length: int, window: int | None) -> float:
    """Keys that a token meets on average, of ``seq_length`` tokens of which it sees ``window`` at most.

    Half of them where it sees all before it; the first ``window`` tokens see fewer.
    """
    seen = seq_length if window is None else min(window, seq_length)
    return seen - seen**2 / (2 * seq_length)
