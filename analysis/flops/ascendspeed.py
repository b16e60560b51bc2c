"""The AscendSpeed formula: the number printed as ``TFLOPs`` by AscendSpeed and older Megatron-DeepSpeed."""

from __future__ import annotations

from analysis.flops import megatron
from analysis.flops._formula import Formula, Modules, sizes
from analysis.model.shape import ModelShape

NEEDS = ("num_layers", "hidden_size", "padded_vocab_size")

# Forward and backward; the source takes 4 where all activations are recomputed, the forward pass counted twice.
PASSES = 3


def terms(shape: ModelShape, seq_length: int) -> dict[str, float]:
    """The product 24 c l h^2 (1 + s/(6h) + V/(16 l h)) at c = 3, multiplied out; FLOPs per token."""
    layers, hidden, vocab = sizes(shape, *NEEDS)
    return {
        "attention projections": 8.0 * PASSES * layers * hidden**2,
        "mlp": 16.0 * PASSES * layers * hidden**2,
        "attention core": 4.0 * PASSES * seq_length * layers * hidden,
        # 1.5 and not 2: the source is exact for c = 4, so at c = 3 its logits are 4.5 h V and not 6 h V.
        "logits": 1.5 * PASSES * vocab * hidden,
    }


def modules(shape: ModelShape, seq_length: int) -> Modules:
    """The parts that can be recomputed alone: their share of the same term of the model as built.

    The formula knows neither experts nor multi-latent attention, and takes every MLP as one of 4h.
    """
    per_token = terms(shape, seq_length)
    if not shape.num_experts and not shape.multi_latent_attention:
        return {"mlp": ("mlp", per_token["mlp"])}
    if shape.missing(megatron.needs(shape)):
        return {}
    built = megatron.terms(shape, seq_length)
    parts = megatron.modules(shape, seq_length).items()
    return {name: (term, flops / built[term] * per_token[term]) for name, (term, flops) in parts}


FORMULA = Formula(
    name="ascendspeed",
    title="AscendSpeed: plain transformer with an MLP of 4h, full attention matrix",
    phrase="AscendSpeed's formula",
    source="AscendSpeed ascendspeed/utils.py throughput_calculator; with c = 4 it is equation 3 of arXiv 2104.04473",
    text="24 c l h^2 (1 + s/(6h) + V/(16 l h)), c = 3; c = 4 with full recomputation",
    needs=lambda _: NEEDS,
    terms=terms,
    symbols={
        "attention projections": "8 · 3 · l · h²",
        "mlp": "16 · 3 · l · h²",
        "attention core": "4 · 3 · s · l · h",
        "logits": "1.5 · 3 · V · h",
    },
    selective=("attention core",),
    full=("attention projections", "mlp", "attention core", "logits"),
    modules=modules,
    ignores=("num_experts", "multi_latent_attention", "mtp_num_layers", "num_window_layers"),
    plain_layers=True,
    quotes_recompute=True,
    printed_as={"none": "A3", "full": "A4"},
    default=True,
)
