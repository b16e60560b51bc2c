"""How many layers a run recomputes whole, from its settings, as the frameworks count them.

Comes in: quantities by name. Goes out: the number of layers over all stages; None where a setting is not understood.
Sources: Megatron-LM megatron/core/recompute.py (uniform: chunks of layers, all of them; block: the first of every chunk
that a stage holds) and MindFormers mindformers/models/utils.py LayerSetting (a number for each stage, or for each
stage of each interleave).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from logparse.context.layer_patterns import noop_layers

Known = Mapping[str, Any]
_PP, _VPP = "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size"
# Characters of a printed list that are read.
LONGEST_LIST = 4096


def recomputed_layers(q: Known) -> int | None:
    """Layers recomputed whole where ``recompute`` is full; other settings give their number."""
    if q["recompute"] != "full" or "recompute_scheme" in q:
        return None
    if "recompute_by_stage" in q:
        return _listed(str(q["recompute_by_stage"]), q)
    idle = noop_layers(q)
    if q.get("recompute_method") != "block":
        return int(q["num_layers"]) - len(idle)
    chunks = _chunks(q)
    most: int | None = q.get("recompute_num_layers")
    if chunks is None or most is None or most < 0 or (idle and not _in_order(chunks, q)):
        return None
    begins = accumulate(chunks, initial=0)
    repeated = [range(begin, begin + min(most, layers)) for begin, layers in zip(begins, chunks, strict=False)]
    return sum(map(len, repeated)) - sum(layer in layers for layers in repeated for layer in idle)


def _stages(q: Known) -> list[int] | None:
    """Layers of each pipeline stage; None where they are split in a way that is not understood."""
    pp = 1 if q.get("world_size") == 1 else q.get(_PP)
    if pp is None or pp < 1 or pp > q["num_layers"] or "pipeline_layout" in q:
        return None
    first, last = q.get("first_stage_layers"), q.get("last_stage_layers")
    between = pp - (first is not None) - (last is not None)
    rest = q["num_layers"] - (first or 0) - (last or 0)
    if rest < 0 or (between <= 0 and rest) or (between > 0 and rest % between):
        return None
    middle = [rest // between] * between if between > 0 else []
    return [*([] if first is None else [first]), *middle, *([] if last is None else [last])]


def _chunks(q: Known) -> list[int] | None:
    """Layers of each chunk of each stage: what ``recompute_num_layers`` of the block method counts within."""
    stages, parts = _stages(q), 1 if q.get("recompute_per_stage") else q.get(_VPP) or 1
    if stages is None or any(layers % parts for layers in stages):
        return None
    return [layers // parts for layers in stages for _ in range(parts)]


def _in_order(chunks: Sequence[int], q: Known) -> bool:
    """Whether the layers of each chunk follow those of the chunk before: of stages with several, only equal ones do."""
    several = (q.get(_VPP) or 1) > 1
    return not several or (len(set(chunks)) == 1 and not q.get("recompute_per_stage"))


def _listed(text: str, q: Known) -> int | None:
    """A number or a truth value for each stage, or a list of them for each interleave."""
    rows = _rows(text)
    if rows is None or len({len(row) for row in rows}) != 1:
        return None
    pp = q.get(_PP)
    if pp is not None and len(rows[0]) != pp:
        return None
    if len(rows) == 1:
        # One number for a stage holds for the chunks of all its interleaves together.
        held = _held(q, len(rows[0]), q.get(_VPP) or 1)
        columns = [[sum(column) for column in zip(*held, strict=True)]] if held else None
    else:
        columns = _held(q, len(rows[0]), len(rows))
    if columns is None:
        return None
    pairs: list[tuple[int, int]] = [
        pair for row, most in zip(rows, columns, strict=True) for pair in zip(row, most, strict=True)
    ]
    return sum(most if asked is True else min(max(asked, 0), most) for asked, most in pairs)


def _held(q: Known, stages: int, interleaves: int) -> list[list[int]] | None:
    """Layers of each stage of each interleave: an even share and the printed offset."""
    even, left = divmod(q["num_layers"], stages * interleaves)
    offsets = _rows(str(q.get("pipeline_offset", "0")), even=stages)
    if offsets is None or any(len(row) != stages for row in offsets) or len(offsets) not in (1, interleaves):
        return None
    rows = offsets * interleaves if len(offsets) == 1 else offsets
    return None if sum(map(sum, rows)) != left else [[even + int(offset) for offset in row] for row in rows]


def _rows(text: str, even: int = 1) -> list[list[int]] | None:
    """A printed list of numbers, or of lists of them, as rows; a single number is repeated ``even`` times."""
    try:
        value = ast.literal_eval(text) if len(text) <= LONGEST_LIST else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    if isinstance(value, int):
        return [[value] * even]
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return None
    rows = [list(row) for row in value] if all(isinstance(row, list | tuple) for row in value) else [list(value)]
    return rows if all(isinstance(item, int) for row in rows for item in row) else None
