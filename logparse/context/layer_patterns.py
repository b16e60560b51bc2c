"""How many layers of a kind a model has, from the patterns that frameworks print.

Comes in: quantities by name, patterns among them as text. Goes out: counts; None where a pattern is none. Layers that
do nothing are of no kind. Sources: MindSpeed 26.0, core/pipeline_parallel/noop_layers (a layer of ``noop_layers``,
counted from 0, returns its input); MindSpeed-LLM 26.1, core/transformer/transformer_block.py (layer i has experts where
i >= first_k_dense_replace and i % moe_layer_freq == 0, so that -1 is 1), and of tasks/models/transformer the file
transformer_layer.py (``interleave_sliding_window`` is a window in every other layer from the first).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import regex

from logparse.light_dataclass import dataclass

Known = Mapping[str, Any]

# Characters of a pattern of layers that are read; a thousand layers written out take 3000.
LONGEST_PATTERN = 4096


def noop_layers(q: Known) -> frozenset[int]:
    """The layers that do nothing, counted from 0."""
    printed = (int(number) for number in regex.findall(r"\d+", str(q.get("noop_layers", ""))[:LONGEST_PATTERN]))
    return frozenset(layer for layer in printed if layer < q["num_layers"])


def moe_layers(q: Known) -> int | None:
    """Count the layers with experts: a list of 0 and 1 by layer (possibly a Python expression), or every n-th."""
    pattern, idle = _read(str(q.get("moe_layer_freq", 1)), q["num_layers"]), noop_layers(q)
    if isinstance(pattern, _Flags):
        return _flagged(pattern, q["num_layers"], idle)
    # In Python the multiples of -n are those of n.
    step, dense = abs(pattern or 0), max(q.get("first_k_dense_replace") or 0, 0)
    if not step:
        return None
    return _every(step, dense, q["num_layers"]) - sum(layer >= dense and layer % step == 0 for layer in idle)


def _every(step: int, dense: int, layers: int) -> int:
    """How many of ``layers`` are a multiple of ``step`` and not among the first ``dense``."""
    before = min(dense, max(layers, 0))
    return -(-max(layers, 0) // step) - -(-before // step)


def _flagged(flags: _Flags, layers: int, idle: frozenset[int] = frozenset()) -> int | None:
    """The ones among ``layers``; None where it is unknown which of them are ``idle``, or the list is of others."""
    if flags.length != layers or (idle and 0 < flags.ones < layers):
        return None
    return flags.ones - len(idle) if flags.ones else 0


@dataclass(frozen=True)
class _Flags:
    """A list of 0 and 1 by layer, as its length and its ones: however long it is, it takes no room."""

    length: int
    ones: int


def _pattern(node: ast.expr, layers: int) -> _Flags | int:
    """The value of a whole number, a list of 0 and 1, or sums and products of them; ValueError for all else.

    No list may be longer than ``layers``.
    """
    value = _value(node, layers)
    if value is None or (isinstance(value, _Flags) and value.length > layers):
        raise ValueError("no pattern of layers")
    return value


def _value(node: ast.expr, layers: int) -> _Flags | int | None:
    match node:
        case ast.Constant(value=value) if type(value) is int:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if type(value) is int:
            return -value
        case ast.List():
            flags = [str(e.value) if isinstance(e, ast.Constant) else "" for e in node.elts]
            return _Flags(len(flags), flags.count("1")) if set(flags) <= {"0", "1"} else None
        case ast.BinOp():
            return _combined(node.op, _pattern(node.left, layers), _pattern(node.right, layers))
    return None


def _combined(op: ast.operator, left: _Flags | int, right: _Flags | int) -> _Flags | None:
    """The sum of two lists, or a list that is repeated; None for all else."""
    match op, left, right:
        case ast.Add(), _Flags() as first, _Flags() as second:
            return _Flags(first.length + second.length, first.ones + second.ones)
        case (ast.Mult(), _Flags() as flags, int() as times) | (ast.Mult(), int() as times, _Flags() as flags):
            return _Flags(flags.length * max(times, 0), flags.ones * max(times, 0))
    return None


def linear_attention_layers(q: Known) -> int | None:
    """Layers with linear attention: every one but each n-th, or a list of 0 and 1; depths of prediction counted in."""
    layers: int = q["num_layers"] + (q.get("mtp_num_layers") or 0)
    pattern = _read(str(q["linear_attention_freq"]), layers)
    if isinstance(pattern, _Flags):
        return _flagged(pattern, layers)
    return None if pattern is None or pattern <= 0 else layers - layers // pattern


def number_of_window(q: Known) -> int | None:
    """Tokens that one sees through ``window_size``, (before, after) as Megatron prints it, itself included."""
    match = regex.fullmatch(r"[(\[](\d+), ?-?\d+[)\]]", str(q["window_size"]))
    return int(match[1]) + 1 if match else None


def window_layers(q: Known) -> int | None:
    """Layers that look through the window: all, every one but each n-th, or a list of 0 and 1."""
    layers: int = q["num_layers"]
    pattern, idle = _read(str(q.get("window_attn_skip_freq") or "None"), layers), noop_layers(q)
    if isinstance(pattern, _Flags):
        return _flagged(pattern, layers, idle)
    if pattern is None or pattern <= 0:
        return layers - len(idle)
    return layers - layers // pattern - sum((layer + 1) % pattern > 0 for layer in idle)


def hybrid_layers(symbol: str) -> Callable[[Known], int | None]:
    """The rule that counts the layers of ``symbol`` in a hybrid model."""

    def rule(q: Known) -> int | None:
        pattern = q.get("hybrid_layer_pattern")
        return _of_ratios(q, symbol) if pattern is None else _of_pattern(str(pattern), symbol)

    return rule


def _of_pattern(pattern: str, symbol: str) -> int | None:
    """The letters of the layers; ``|`` separates stages, ``/`` starts the layers of one depth of prediction."""
    known = regex.fullmatch(r"[MG*DE+\-|/]+", pattern) and len(pattern) <= LONGEST_PATTERN
    return pattern.count(symbol) if known else None


def _of_ratios(q: Known, symbol: str) -> int | None:
    """Older Megatron: shares of attention and of MLPs, the rest is Mamba."""
    layers: int = q["num_layers"]
    attention, mlp = (round(layers * (q.get(f"hybrid_{kind}_ratio") or 0.0)) for kind in ("attention", "mlp"))
    return {"*": attention, "-": mlp, "M": layers - attention - mlp}.get(symbol, 0)


def _read(text: str, layers: int) -> _Flags | int | None:
    """The value of a pattern; None where it is none."""
    try:
        return None if len(text) > LONGEST_PATTERN else _pattern(ast.parse(text.strip(), mode="eval").body, layers)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
