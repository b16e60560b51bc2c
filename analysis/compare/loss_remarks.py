"""What a reader must know of two curves that are compared: batches, restarts, places that one side does not print.

Comes in: the curves of the losses of two sides. Goes out: remarks, as codes with fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import polars as pl

from analysis.compare.loss_curves import Axis
from logparse.light_dataclass import dataclass, field

Side = Literal["baseline", "candidate"]
SIDES: tuple[Side, Side] = ("baseline", "candidate")
# by_tokens: steps have other numbers of tokens. by_steps: they have other batches, but tokens are unknown. ramp: the
# batch changes along a run. restarted: steps that were done again have their last value. missing: places between the
# common ones that only the other side prints. longer: places of this side outside of the common ones. mean_of_steps:
# lines are means of other numbers of steps.
RemarkCode = Literal["by_tokens", "by_steps", "ramp", "restarted", "missing", "longer", "mean_of_steps"]


@dataclass(frozen=True)
class Remark:
    """A code, the side that it is about, or None for both, and fields."""

    code: RemarkCode
    side: Side | None = None
    fields: dict[str, Any] = field(default_factory=dict)


def remarks_on(sides: Sequence[Sequence[pl.DataFrame]], axis: Axis) -> Iterator[Remark]:
    """The remarks on the curves of both sides, the baseline first."""
    all_curves = [pl.concat(side) for side in sides]
    batches = [curves["global_batch_size"].drop_nulls() for curves in all_curves]
    if axis == "tokens":
        yield Remark("by_tokens")
    elif _differ(batches):
        yield Remark("by_steps", None, {side: _range(batch) for side, batch in zip(SIDES, batches, strict=True)})
    for side, curves in zip(SIDES, sides, strict=True):
        yield from _of_side(side, curves)
    lines = [curves["iterations"].drop_nulls().median() for curves in all_curves]
    if None not in lines and lines[0] != lines[1]:
        yield Remark("mean_of_steps", None, dict(zip(SIDES, lines, strict=True)))
    yield from _places(*(set(curves[axis].drop_nulls()) for curves in all_curves))


def _differ(batches: Sequence[pl.Series]) -> bool:
    return all(map(len, batches)) and set(batches[0]) != set(batches[1])


def _range(values: pl.Series) -> list[int]:
    """The least and the greatest of ``values``, once if they are equal; empty if there are none."""
    return sorted({int(value) for value in (values.min(), values.max()) if isinstance(value, int)})


def _of_side(side: Side, curves: Sequence[pl.DataFrame]) -> Iterator[Remark]:
    ramps = [batch for curve in curves if len(batch := _range(curve["global_batch_size"])) > 1]
    if ramps:
        yield Remark("ramp", side, {"batch": ramps[0]})
    begins = [curve.filter(pl.col("segment") != pl.col("segment").shift(1))["step"].to_list() for curve in curves]
    steps = sorted({step for begun in begins for step in begun})
    if steps:
        yield Remark("restarted", side, {"steps": steps})


def _places(baseline: set[int], candidate: set[int]) -> Iterator[Remark]:
    """The places that only one side prints: between the first and the last common one, and outside of them."""
    common = baseline & candidate
    if not common:
        return
    first, last = min(common), max(common)
    for side, mine, other in (("baseline", baseline, candidate), ("candidate", candidate, baseline)):
        missing = sorted(at for at in other - mine if first < at < last)
        if missing:
            yield Remark("missing", side, {"n": len(missing), "first": missing[0], "last": missing[-1]})  # type: ignore[arg-type]
    for side, mine in (("baseline", baseline), ("candidate", candidate)):
        outside = [at for at in mine if not first <= at <= last]
        if outside:
            yield Remark("longer", side, {"n": len(outside), "first": min(outside), "last": max(outside)})  # type: ignore[arg-type]
