"""What the forward pass keeps for the backward pass, counted by tensor, and the rules of thumb for it.

Comes in: a shape and how a step is done. Goes out: bytes per token of one layer and of the output. Left out because
small: token ids, the row sums of flash attention, the router's scores, the mask of the embedding's dropout.

Source: Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models, section 4 and table 2:
s b h (10 + 24/t + 5 a s/(h t)) per layer, which this count gives for a GPT with dropout. Grouped queries, gated MLP,
experts and multi-latent attention are counted by the same rule: each tensor that a gradient needs, once.
"""

from __future__ import annotations

from analysis.estimate.assumptions import CHEAT_SHEET, NOTE_13B
from analysis.estimate.device_layout import Layout, Training
from analysis.estimate.worked_figure import Figure, work_out
from analysis.flops._formula import sizes
from analysis.model.parameters import NO_DETAILS, Details
from analysis.model.shape import ModelShape
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Kept:
    """Bytes per token. ``split`` is divided among tensor-parallel ranks, ``whole`` only with sequence parallelism."""

    whole: float = 0.0
    split: float = 0.0

    def __add__(self, other: Kept) -> Kept:
        return Kept(self.whole + other.whole, self.split + other.split)

    def times(self, count: int) -> Kept:
        """``count`` times as much."""
        return Kept(self.whole * count, self.split * count)

    def on_device(self, layout: Layout) -> float:
        """Bytes per token on one device."""
        return self.whole / (layout.tp if layout.sequence_parallel else 1) + self.split / layout.tp


def layer_kept(shape: ModelShape, training: Training, moe: bool, details: Details = NO_DETAILS) -> Kept:
    """What one layer keeps of one token when nothing is recomputed, or only the attention core is (selective)."""
    attention = (
        _latent_attention(shape, training) if shape.multi_latent_attention else _attention(shape, training, details)
    )
    return attention + _core(shape, training) + (_experts(shape, training) if moe else _mlp(shape, training))


def checkpoint_kept(shape: ModelShape, training: Training) -> Kept:
    """What one layer keeps of one token under full recomputation: its input."""
    (hidden,) = sizes(shape, "hidden_size")
    return Kept(whole=training.element_bytes * hidden)


def mtp_kept(shape: ModelShape, training: Training) -> Kept:
    """What a depth of multi-token prediction keeps in addition to its layer: state and embedding, with their norms."""
    (hidden,) = sizes(shape, "hidden_size")
    return Kept(whole=4 * training.element_bytes * hidden)


def output_kept(shape: ModelShape, vocab_size: int, training: Training) -> Kept:
    """Input of the last norm and of the output layer, and fp32 logits: 4 s b h (1 + V/h) in 16 bit."""
    (hidden,) = sizes(shape, "hidden_size")
    return Kept(whole=2 * training.element_bytes * hidden, split=4 * vocab_size)


def _around(hidden: int, training: Training) -> float:
    """Bytes of the norm's input and output, and of the mask of the dropout after the block, with one byte each."""
    return 2 * training.element_bytes * hidden + (hidden if training.dropout else 0)


def _attention(shape: ModelShape, training: Training, details: Details) -> Kept:
    """Query, key, value, and the input of the output projection; query and key once more where norms follow them."""
    names = ("hidden_size", "num_attention_heads", "num_query_groups", "kv_channels")
    hidden, heads, groups, width = sizes(shape, *names)
    times = 3 if details.qk_norm else 2
    return Kept(_around(hidden, training), training.element_bytes * width * times * (heads + groups))


def _latent_attention(shape: ModelShape, training: Training) -> Kept:
    """The compressed query, key and value before and after their norms, which every rank holds, then as above."""
    names = ("hidden_size", "num_attention_heads", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim")
    hidden, heads, rank, plain, position, value = sizes(shape, *names)
    element, query_rank = training.element_bytes, shape.q_lora_rank or 0
    compressed = element * (2 * query_rank + 2 * rank + position)
    return Kept(_around(hidden, training) + compressed, element * heads * 2 * (plain + position + value))


def _core(shape: ModelShape, training: Training) -> Kept:
    """The matrix of weights between tokens; flash attention and selective recomputation keep none of it."""
    if training.flash_attention or training.recompute == "selective":
        return Kept()
    (heads,) = sizes(shape, "num_attention_heads")
    masked = (training.element_bytes + 1) if training.dropout else 0
    return Kept(split=heads * training.seq_length * (training.element_bytes + masked))


def _inner(shape: ModelShape, training: Training) -> int:
    """Bytes per unit of inner width: input and output of the activation function; a gated one has two inputs."""
    (gated,) = sizes(shape, "gated_linear_unit")
    return training.element_bytes * (3 if gated else 2)


def _mlp(shape: ModelShape, training: Training) -> Kept:
    hidden, width = sizes(shape, "hidden_size", "ffn_hidden_size")
    return Kept(_around(hidden, training), _inner(shape, training) * width)


def _experts(shape: ModelShape, training: Training) -> Kept:
    """A token is copied to each of its experts, and each gives a result to be weighed; tokens are taken as balanced."""
    hidden, topk, width = sizes(shape, "hidden_size", "moe_router_topk", "moe_ffn_hidden_size")
    shared = shape.moe_shared_expert_intermediate_size or 0
    copies = 2 * training.element_bytes * hidden * topk
    return Kept(_around(hidden, training), copies + _inner(shape, training) * (topk * width + shared))


def rule_figures(shape: ModelShape, training: Training) -> tuple[Figure, ...]:
    """The sources' rules for the activations of all layers: one micro-batch, one device, nothing recomputed."""
    sized = {"l": shape.num_layers, "s": training.seq_length, "h": shape.hidden_size}
    whole = "l * (34 * b * s * h + 5 * b * s**2 * a)"
    sized["b"], heads = training.micro_batch_size, shape.num_attention_heads
    return (
        work_out("activations_stack", "bytes", whole, CHEAT_SHEET, **sized, a=heads),
        work_out("activations_rule", "bytes", "40 * b * s * h * l", NOTE_13B, **sized),
    )
