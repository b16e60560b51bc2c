"""Which parts of a layer MindFormers recomputes by patterns of operators.

Source: MindFormers mindformers/models/utils.py, LayerSetting. Parts have the names of Megatron-LM's
--recompute-modules.
"""

from __future__ import annotations

import ast

from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

CORE_ATTENTION = frozenset({"core_attn"})
NOTHING: frozenset[str] = frozenset()
# Operators without a matrix product, and the attention between tokens.
NO_PRODUCT = lazy_regex(
    r"(.*\.)?(mul|add|cast|silu|gelu|relu|sigmoid|softmax|activation|reshape|transpose|dropout|concat|split|\w*norm\w*)"
)
ATTENTION = lazy_regex(r".*(flash_attention|core_attention)")


@dataclass(frozen=True)
class RecomputedParts:
    """The parts with matrix products that are recomputed: at ``least``, and at ``most``, None for any of a layer."""

    least: frozenset[str]
    most: frozenset[str] | None


def recomputed_parts(text: str) -> RecomputedParts:
    """What a printed ``select_recompute`` selects: a list of patterns, or the layers of each."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return RecomputedParts(NOTHING, None)
    names = [name for name in value if isinstance(name, str)] if isinstance(value, dict | list) else []
    if not names:
        # Without patterns it takes those of its version: activation functions, or parts of the attention too.
        return RecomputedParts(NOTHING, CORE_ATTENTION)
    operators = (name.replace("\\", "") for name in names)
    products = [name for name in operators if not NO_PRODUCT.fullmatch(name)]
    if not all(ATTENTION.fullmatch(name) for name in products):
        return RecomputedParts(NOTHING, None)
    # Operators that are recomputed in some layers alone are not counted apart.
    everywhere = not isinstance(value, dict) or all(layers is True for layers in value.values())
    core = CORE_ATTENTION if products else NOTHING
    return RecomputedParts(core if everywhere else NOTHING, core)
