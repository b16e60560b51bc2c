"""The work that the chosen formula counts next to the work of the real model, and why they differ.

Comes in: a computation. Goes out: a note with each reason as a share of the real work. No number changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analysis.flops import CORE, real_model_formula
from analysis.model.shape import ModelShape
from analysis.run.notes import unknown
from analysis.run.rates.throughput import Computation
from analysis.run.result import Analysis
from logparse.context.run_context import RunContext
from logparse.findings import Note, info, warning

# Relative difference below which the two are one: about what norms, routers and padding make.
AGREES = 0.03
# Reasons below this share are left out.
LEAST_REASON = 0.005
# Everything but the attention core, as a formula made of parameters counts it.
PARAMETERS = "parameters"
# Terms that a layer with linear attention has in place of each other.
ATTENTION = ("attention projections", CORE, "linear attention")


def describe_counted_work(result: Analysis, context: RunContext) -> Iterator[Note]:
    """How far the chosen formula is from the real model, and why; or why MFU is unknown."""
    if context.get("packed_documents"):
        yield from _packed(result)
    for how in result.computed_with("mfu"):
        if notes := list(_of_computation(how)):
            yield from notes
            return


def _of_computation(how: Computation) -> Iterator[Note]:
    formula = real_model_formula()
    terms = how.formula.terms_per_token(how.shape, how.seq_length) if how.seq_length else None
    if how.formula.real_model or terms is None or how.seq_length is None:
        return
    model = formula.terms_per_token(how.shape, how.seq_length)
    if model is not None:
        yield from _difference(how, terms, model)
    elif layers := formula.not_counted(how.shape):
        yield warning("mfu_not_counted", layers=layers)
    else:
        yield info("mfu_not_computed", unknown=unknown(formula.missing(how.shape)))


def _packed(result: Analysis) -> Iterator[Note]:
    """The range of MFU where tokens meet only those of their own document, whose length no line shows."""
    how, mfu = result.computation, result.value("mfu")
    terms = real_model_formula().terms_per_token(how.shape, how.seq_length) if how.seq_length else None
    core = terms[CORE] / sum(terms.values()) if terms else 0.0
    if mfu is not None and core > LEAST_REASON:
        yield warning("attention_within_documents", low=mfu * (1 - core), high=mfu)


def _difference(how: Computation, terms: Mapping[str, float], model: Mapping[str, float]) -> Iterator[Note]:
    change = sum(terms.values()) / sum(model.values()) - 1
    if abs(change) > AGREES:
        reasons = list(_reasons(how, terms, model))
        yield info("formula_counts_other_work", formula=how.formula.name, change=change, reasons=reasons)


def _reasons(how: Computation, terms: Mapping[str, float], model: Mapping[str, float]) -> list[Note]:
    """The terms that differ, the largest first, each as a share of the work of the real model."""
    counted, real = _comparable_terms(how.shape, terms, model)
    total = sum(model.values())
    shares = {name: (counted.get(name, 0.0) - real.get(name, 0.0)) / total for name in {**counted, **real}}
    names = sorted((name for name in shares if abs(shares[name]) >= LEAST_REASON), key=lambda name: -abs(shares[name]))
    return [_reason(name, how.shape, shares[name]) for name in names]


def _comparable_terms(
    shape: ModelShape, terms: Mapping[str, float], model: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """Both counts by terms that mean the same: all but the core as one where a formula has terms of its own."""
    if not terms.keys() <= model.keys():
        return _apart(terms), _apart(model)
    if not shape.special_layers:
        return dict(terms), dict(model)
    return _joined(terms), _joined(model)


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
    if term == CORE and share < 0 and not shape.num_window_layers and _wide(shape):
        return info("work_wide_core", share=share)
    if term == "mlp":
        return _of_mlp(shape, share)
    if term == CORE and shape.num_window_layers:
        return info("work_windows", share=share, window=shape.sliding_window)
    if term == "multi-token prediction":
        return info("work_prediction", share=share, depths=shape.mtp_num_layers)
    return info(CODES[term], share=share)


def _wide(shape: ModelShape) -> bool:
    """Whether the heads are wider together than the model, which formulas that know only h leave out."""
    return bool(shape.multi_latent_attention) or (shape.num_attention_heads or 0) * (shape.kv_channels or 0) > (
        shape.hidden_size or 0
    )


CODES = {
    CORE: "work_causal_half",
    "linear attention": "work_linear_attention",
    "logits": "work_logits",
    PARAMETERS: "work_parameters",
}


def _of_projections(shape: ModelShape, share: float) -> Note:
    if shape.multi_latent_attention:
        return info("work_latent_attention", share=share)
    heads, groups = shape.num_attention_heads or 0, shape.num_query_groups or 0
    if groups < heads:
        return info("work_grouped_queries", share=share, heads=heads, groups=groups)
    return info("work_projections", share=share)


def _of_mlp(shape: ModelShape, share: float) -> Note:
    if shape.num_experts:
        width = shape.moe_ffn_hidden_size or shape.ffn_hidden_size
        return info("work_experts", share=share, chosen=shape.moe_router_topk, n=shape.num_experts, width=width)
    gated = "work_gated_mlp" if shape.gated_linear_unit else "work_mlp"
    return info(gated, share=share, width=shape.ffn_hidden_size)
