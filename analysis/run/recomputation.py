"""What a run recomputes, as a value that the formulas count: from the settings of its context.

Comes in: a context. Goes out: the least and the most that the run may recompute. They are one where the settings are
understood; None where no setting says so. No FLOPs here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import cast

import regex

from analysis.flops import ELEMENTWISE, EVERYTHING, NOTHING, PRODUCTS, WORDS, Recomputation, Recompute, Recomputed
from logparse.context.run_context import RunContext
from logparse.lazy_regex import lazy_regex

CORE = WORDS["selective"]
# MindFormers names operators by patterns: without a matrix product, and the attention between tokens.
NO_PRODUCT = lazy_regex(
    r"(.*\.)?(mul|add|cast|silu|gelu|relu|sigmoid|softmax|activation|reshape|transpose|dropout|concat|split|\w*norm\w*)"
)
ATTENTION = lazy_regex(r".*(flash_attention|core_attention)")


def read_recomputation(context: RunContext) -> Recomputed | None:
    """The least and the most that the run may recompute."""
    recompute, whole = cast("Recompute | None", context.get("recompute")), context.get("recomputed_layers")
    if recompute is None and whole is None:
        return None
    if recompute == "none" and whole is None:
        return Recomputed.exactly(NOTHING)
    selected = _selected(context)
    if recompute == "selective" and whole is None:
        # A scheme of the framework's own, as torchtitan's, selects layers or operators.
        own = context.get("recompute_scheme") is not None
        other = Recomputed(NOTHING, EVERYTHING, _setting_of_layers(context)) if own else Recomputed.exactly(CORE)
        return selected or other
    layers = context.get("num_layers")
    if whole is None and _all_layers(context):
        return Recomputed.exactly(EVERYTHING)
    if whole is None or not layers:
        return Recomputed(NOTHING, EVERYTHING, _setting_of_layers(context))
    return _with_selected(_of_layers(whole, layers, context), selected)


def _all_layers(context: RunContext) -> bool:
    """Whether no setting names a part of the layers: then their number does not matter."""
    partly = ("recompute_scheme", "recompute_by_stage", "recomputed_layers")
    return context.get("recompute_method") != "block" and not any(context.get(name) is not None for name in partly)


def _of_layers(whole: int, layers: int, context: RunContext) -> Recomputation:
    """Depths of prediction run again with all layers; Megatron's block method leaves them out."""
    share = min(whole / layers, 1.0)
    depths = share == 1.0 and context.get("recompute_method") != "block"
    return Recomputation(share, float(depths))


def _with_selected(whole: Recomputation, selected: Recomputed | None) -> Recomputed:
    """Layers recomputed whole, and what is ``selected`` in the others."""
    if selected is None or whole.layers == 1.0:
        return Recomputed.exactly(whole)
    least, most = (Recomputation(whole.layers, whole.depths, end.modules) for end in (selected.least, selected.most))
    return Recomputed(least, EVERYTHING if selected.most == EVERYTHING else most, selected.setting)


def _selected(context: RunContext) -> Recomputed | None:
    """The parts of layers that are recomputed, by Megatron's list of modules or MindFormers' patterns of operators."""
    listed, patterns = context.get("recompute_modules"), context.get("recompute_selected")
    if patterns is not None:
        return _of_patterns(str(patterns))
    if listed is None or context.get("recompute") != "selective":
        return None
    names = frozenset(regex.findall(r"\w+", str(listed)))
    return _range(names & PRODUCTS, names - PRODUCTS - ELEMENTWISE, f"recompute_modules {listed}")


def _of_patterns(text: str) -> Recomputed:
    """Without patterns MindFormers takes those of its version: activation functions, or parts of the attention too."""
    setting = f"select_recompute {text}"
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return Recomputed(NOTHING, EVERYTHING, setting)
    names = [name for name in value if isinstance(name, str)] if isinstance(value, dict | list) else []
    if not names:
        return Recomputed(NOTHING, CORE, setting)
    # Operators that are recomputed in some layers alone are not counted apart.
    everywhere = not isinstance(value, dict) or all(layers is True for layers in value.values())
    return _of_operators([name.replace("\\", "") for name in names], everywhere, setting)


def _of_operators(names: Iterable[str], everywhere: bool, setting: str) -> Recomputed:
    products = [name for name in names if not NO_PRODUCT.fullmatch(name)]
    if all(ATTENTION.fullmatch(name) for name in products):
        core = CORE if products else NOTHING
        return Recomputed.exactly(core) if everywhere or not products else Recomputed(NOTHING, core, setting)
    return Recomputed(NOTHING, EVERYTHING, setting)


def _range(known: frozenset[str], unknown: frozenset[str], setting: str) -> Recomputed:
    least = Recomputation(modules=known)
    return Recomputed(least, EVERYTHING, setting) if unknown else Recomputed.exactly(least)


def _setting_of_layers(context: RunContext) -> str:
    """The settings that leave open how many layers are recomputed."""
    names = ("recompute_scheme", "recompute_by_stage", "recompute_method", "recompute_num_layers", "pipeline_layout")
    settings = [f"{name} {context.get(name)}" for name in names if context.get(name) is not None]
    return ", ".join(settings) or "recompute full"
