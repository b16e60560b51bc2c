"""Formulas made for GPT: an MLP of two matrices of 4h, every head with its own keys, the full attention matrix.

c counts passes: forward and backward are 3, with the forward pass of full recomputation 4. Which c a framework took
under which setting changed with its age; see docs/identification.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from analysis.flops import ascendspeed
from analysis.flops._formula import sizes
from analysis.flops.printed._printed_formula import Flops, PrintedFormula, always
from analysis.model.parameters import Details, count_parameters
from analysis.model.shape import ModelShape

PLAIN = ("num_layers", "hidden_size")
VOCAB = (*PLAIN, "padded_vocab_size")
BLOCKS = (*VOCAB, "ffn_hidden_size", "gated_linear_unit", "num_attention_heads", "num_query_groups", "kv_channels")
PASSES = ((3, "no recompute"), (4, "recompute counted"))


def _ascendspeed(passes: int) -> Callable[[ModelShape, int], float]:
    return lambda shape, s: sum(ascendspeed.terms(shape, s).values()) * passes / ascendspeed.PASSES


def _glu(passes: int) -> Flops:
    """BigScience's gated MLP is 4h wide too: 32 in place of 24, and not only for the MLP."""
    plain = _ascendspeed(passes)
    return lambda shape, s: plain(shape, s) * (32 / 24 if shape.gated_linear_unit else 1)


def _neox(passes: int) -> Flops:
    def flops(shape: ModelShape, seq_length: int) -> float:
        layers, hidden = sizes(shape, *PLAIN)
        return 24.0 * passes * layers * hidden**2 * (1 + seq_length / (6 * hidden))

    return flops


def _paper_model(shape: ModelShape, seq_length: int) -> float:
    layers, hidden, vocab = sizes(shape, *VOCAB)
    return 72.0 * layers * hidden**2 * (1 + seq_length / (6 * hidden) + vocab / (12 * layers * hidden))


def _layers_only(shape: ModelShape, _seq_length: int) -> float:
    layers, hidden = sizes(shape, *PLAIN)
    return 96.0 * layers * hidden**2


def _early_bigscience(passes: int) -> Flops:
    """Two for each parameter of the layers and the last norm. Its models without a gated MLP are GPT-2's.

    It knew neither experts nor latent attention, so a shape that has them is counted without.
    """

    def flops(shape: ModelShape, _seq_length: int) -> float | None:
        details = Details() if shape.gated_linear_unit else Details(bias="all", norm="layer")
        plain = replace(shape, num_experts=None, multi_latent_attention=None, untie_embeddings_and_output_weights=False)
        parameters = count_parameters(plain, details=details)
        return None if parameters is None else 2.0 * passes * (parameters.total - parameters.embedding)

    return flops


def _a(passes: int, recompute: str) -> PrintedFormula:
    who = "AscendSpeed 2023; Megatron-DeepSpeed 2022-07 to 2024-08; BigScience since 2022-02; GPT-NeoX since 2023-12"
    text = f"24 c l h^2 (1 + s/(6h) + V/(16 l h)), c = {passes}"
    title = f"AscendSpeed, older Megatron-DeepSpeed and newer GPT-NeoX, {recompute}"
    return PrintedFormula(f"A{passes}", title, who, text, always(*VOCAB), _ascendspeed(passes))


def _ag(passes: int, recompute: str) -> PrintedFormula:
    text = f"32 c l h^2 (1 + s/(6h) + V/(16 l h)), c = {passes}; A{passes} without a gated MLP"
    needs = always(*VOCAB, "gated_linear_unit")
    return PrintedFormula(
        f"AG{passes}", f"BigScience, {recompute}", "BigScience since 2022-06", text, needs, _glu(passes)
    )


def _b(passes: int, recompute: str) -> PrintedFormula:
    text = f"2 c P, c = {passes}, P = parameters without embeddings"
    # P held what every tensor-parallel rank has (norms, some biases) once per rank, which a shape does not know.
    return PrintedFormula(
        f"B{passes}",
        f"early BigScience, {recompute}",
        "BigScience 2021-12 to 2022-02",
        text,
        always(*BLOCKS),
        _early_bigscience(passes),
        accuracy=0.0005,
    )


def _x(passes: int, recompute: str) -> PrintedFormula:
    text = f"24 c l h^2 (1 + s/(6h)), c = {passes}"
    return PrintedFormula(
        f"X{passes}", f"GPT-NeoX 2023, {recompute}", "GPT-NeoX 2023-09 to 2023-12", text, always(*PLAIN), _neox(passes)
    )


PAPERS = (
    PrintedFormula(
        "P",
        "Megatron paper, recompute counted",
        "arXiv 2104.04473, equation 3; InternEvo with recompute",
        "96 l h^2 (1 + s/(6h) + V/(16 l h))",
        always(*VOCAB),
        _ascendspeed(4),
    ),
    PrintedFormula(
        "P3",
        "Megatron papers, model FLOPs",
        "Korthikanti et al. 2022; InternEvo without recompute",
        "72 l h^2 (1 + s/(6h) + V/(12 l h))",
        always(*VOCAB),
        _paper_model,
    ),
    PrintedFormula(
        "P-layers",
        "rule of thumb, recompute counted",
        "sizing tables before BLOOM, 2022-02",
        "96 l h^2",
        always(*PLAIN),
        _layers_only,
    ),
)
GPT_FORMULAS = (
    *(_a(*passes) for passes in PASSES),
    *PAPERS,
    *(make(*passes) for make in (_ag, _b, _x) for passes in PASSES),
)
