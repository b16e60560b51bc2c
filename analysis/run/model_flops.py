"""The work of the model as it is built next to the work that the chosen formula counts, and why they differ.

Comes in: a computation. Goes out: a note with each reason as a share of what the formula counts. No number changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analysis.flops import as_built_formula
from analysis.model.shape import ModelShape
from analysis.run.notes import unknown
from analysis.run.result import Analysis
from analysis.run.throughput import Computation
from logparse.context.run_context import RunContext
from logparse.findings import Note, info, warning

# Relative difference below which the two are one: about what norms, routers and padding make.
AGREES = 0.03
# Reasons below this share are left out.
LEAST_REASON = 0.005
# Everything but the attention core, as a formula made of parameters counts it; and that core.
PARAMETERS, CORE = "parameters", "attention core"
# Terms that a layer with linear attention has in place of each other.
ATTENTION = ("attention projections", CORE, "linear attention")


def describe_as_built(result: Analysis, context: RunContext) -> Iterator[Note]:
    """How far the chosen formula is from the model as it is built, and why; or why that is not known."""
    if context.get("packed_documents"):
        yield from _packed(result)
    how, formula = result.computation, as_built_formula()
    terms = how.formula.terms_per_token(how.shape, how.seq_length) if how.seq_length else None
    if how.formula.as_built or terms is None or how.seq_length is None:
        return
    built = formula.terms_per_token(how.shape, how.seq_length)
    if built is not None:
        yield from _difference(result, terms, built)
    elif layers := formula.not_counted(how.shape):
        yield warning("as_built_not_counted", layers=layers)
    else:
        yield info("as_built_not_computed", unknown=unknown(formula.missing(how.shape)))


def _packed(result: Analysis) -> Iterator[Note]:
    """The range of MFU as built where tokens meet only those of their own document, whose length no line shows."""
    how, mfu = result.computation, result.value("mfu_as_built")
    terms = as_built_formula().terms_per_token(how.shape, how.seq_length) if how.seq_length else None
    core = terms[CORE] / sum(terms.values()) if terms else 0.0
    if mfu is not None and core > LEAST_REASON:
        yield warning("attention_within_documents", low=mfu * (1 - core), high=mfu)


def _difference(result: Analysis, terms: Mapping[str, float], built: Mapping[str, float]) -> Iterator[Note]:
    how = result.computation
    change = sum(built.values()) / sum(terms.values()) - 1
    if abs(change) <= AGREES:
        return
    names = {"formula": how.formula.name, "other": as_built_formula().name}
    reasons = list(_reasons(how, terms, built))
    mfu, as_built = result.value("mfu"), result.value("mfu_as_built")
    if mfu is None or as_built is None:
        yield warning("work_as_built_differs", change=change, reasons=reasons, **names)
    else:
        yield warning("mfu_as_built_differs", mfu=mfu, built=as_built, change=change, reasons=reasons, **names)


def _reasons(how: Computation, terms: Mapping[str, float], built: Mapping[str, float]) -> list[Note]:
    """The terms that differ, the largest first, each as a share of what the formula counts."""
    mine, other = _comparable_terms(how.shape, terms, built)
    total = sum(terms.values())
    shares = {name: (other.get(name, 0.0) - mine.get(name, 0.0)) / total for name in {**mine, **other}}
    names = sorted((name for name in shares if abs(shares[name]) >= LEAST_REASON), key=lambda name: -abs(shares[name]))
    return [_reason(name, how.shape, shares[name]) for name in names]


def _comparable_terms(
    shape: ModelShape, terms: Mapping[str, float], built: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """Both counts by terms that mean the same: all but the core as one where a formula has terms of its own."""
    if not terms.keys() <= built.keys():
        return _apart(terms), _apart(built)
    if not shape.special_layers:
        return dict(terms), dict(built)
    return _joined(terms), _joined(built)


def _apart(terms: Mapping[str, float]) -> dict[str, float]:
    """The core, and all else as one."""
    core = terms.get(CORE, 0.0)
    return {PARAMETERS: sum(terms.values()) - core, CORE: core}


def _joined(terms: Mapping[str, float]) -> dict[str, float]:
    """The parts of the attention as one term."""
    rest = {name: flops for name, flops in terms.items() if name not in ATTENTION}
    return {ATTENTION[-1]: sum(terms.get(name, 0.0) for name in ATTENTION), **rest}


def _reason(term: str, shape: ModelShape, share: float) -> Note:
    """Why ``term`` differs by ``share``, by what the model has."""
    if term == "attention projections":
        return _of_projections(shape, share)
    if term == CORE and share > 0 and not shape.num_window_layers and _wide(shape):
        return info("built_wide_core", share=share)
    if term == "mlp":
        return _of_mlp(shape, share)
    if term == CORE and shape.num_window_layers:
        return info("built_windows", share=share, window=shape.sliding_window)
    if term == "multi-token prediction":
        return info("built_prediction", share=share, depths=shape.mtp_num_layers)
    return info(CODES[term], share=share)


def _wide(shape: ModelShape) -> bool:
    """Whether the heads are wider together than the model, which formulas that know only h leave out."""
    return bool(shape.multi_latent_attention) or (shape.num_attention_heads or 0) * (shape.kv_channels or 0) > (
        shape.hidden_size or 0
    )


CODES = {
    CORE: "built_causal_half",
    "linear attention": "built_linear_attention",
    "logits": "built_logits",
    PARAMETERS: "built_parameters",
}


def _of_projections(shape: ModelShape, share: float) -> Note:
    if shape.multi_latent_attention:
        return info("built_latent_attention", share=share)
    heads, groups = shape.num_attention_heads or 0, shape.num_query_groups or 0
    if groups < heads:
        return info("built_grouped_queries", share=share, heads=heads, groups=groups)
    return info("built_projections", share=share)


def _of_mlp(shape: ModelShape, share: float) -> Note:
    if shape.num_experts:
        width = shape.moe_ffn_hidden_size or shape.ffn_hidden_size
        return info("built_experts", share=share, chosen=shape.moe_router_topk, n=shape.num_experts, width=width)
    gated = "built_gated_mlp" if shape.gated_linear_unit else "built_mlp"
    return info(gated, share=share, width=shape.ffn_hidden_size)
