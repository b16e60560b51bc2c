"""Do two sides train the same model: their losses at equal steps, or at equal tokens where their batches differ.

Comes in: two sides. Goes out: a SameLoss, with a LossDifference for each loss that both print, and for the norm of the
gradients. A side with several runs has their median at each place. Only places that both sides print are compared;
nothing is interpolated, and remarks say what has no partner.

Differences are logarithms of the ratio where all values are positive: the noise of a loss is a share of it while it
falls, and shares are what an acceptance limits. Else they are absolute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from analysis.compare.loss_curves import Axis, common_axis, read_curve
from analysis.compare.loss_remarks import SIDES, Remark, Side, remarks_on
from analysis.compare.printed_digits import last_digits
from analysis.metrics import LOSSES
from analysis.stats.drift import Drift, fit_drift
from analysis.stats.parting import FEWEST, Parting, Shape, find_parting
from logparse.light_dataclass import dataclass, field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Why the losses of two sides cannot be compared.
LossReason = Literal["no_common_step", "no_common_tokens", "zero_loss"]
# Repeats of the baseline of which each is compared with each, and the blocks whose means show how far they part.
MOST_REPEATS, REPEAT_BLOCKS = 5, 10
# A parting so many common places after a restart, or before it, is at the restart.
NEAR_RESTART = 10


@dataclass(frozen=True)
class LossParting:
    """How the curves part, ``at`` which step or tokens; see ``analysis.stats.parting``.

    ``spread`` and ``level`` are differences, relative where the curves are. ``restarted`` is the side that restarted
    there.
    """

    shape: Shape
    at: int | None
    spread: float
    level: float
    restarted: Side | None = None


@dataclass(frozen=True)
class LossDifference:
    """How far one loss of the candidate is from that of the baseline over ``places`` common steps or tokens.

    ``mean_relative`` is the mean of the size of the difference over that of the baseline, ``largest`` the largest of
    these; both are without the ``undefined`` places where only the baseline's loss is 0, and None if all are. All
    places up to ``equal_until`` are equal to the last digit that the coarser log prints, in total ``equal_places``.
    From ``lost_from`` on, at ``lost_places`` in total, only the candidate's is not finite. ``drift`` is that of the
    difference since the curves part, for each step or token. ``parting`` is None of too few places; its noise
    includes that of ``repeats`` runs of the baseline, if there are several. Where ``relative`` is false, parting and
    drift are of the absolute difference. ``curve`` has the difference at each place, and the step of the baseline.
    """

    column: str
    places: int
    first_at: int
    last_at: int
    mean_relative: float | None
    mean_absolute: float
    largest: float | None
    largest_at: int | None
    final: float | None
    final_at: int | None
    undefined: int
    equal_places: int
    equal_until: int | None
    lost_places: int
    lost_from: int | None
    relative: bool
    parting: LossParting | None
    drift: Drift | None
    repeats: int
    curve: pl.DataFrame = field(compare=False)

    @property
    def identical(self) -> bool:
        """Whether all places with a finite value on both sides are equal to the last printed digit."""
        return self.equal_places == self.places


@dataclass(frozen=True)
class SameLoss:
    """The differences of all losses that both sides print, along ``axis``. ``reason`` says why ``loss`` has none."""

    axis: Axis
    differences: tuple[LossDifference, ...]
    remarks: tuple[Remark, ...]
    reason: LossReason | None

    def of(self, column: str) -> LossDifference | None:
        """The difference of one loss; None where the sides do not both print it."""
        return next((one for one in self.differences if one.column == column), None)


def compare_losses(baseline: Sequence[pl.DataFrame], candidate: Sequence[pl.DataFrame]) -> SameLoss:
    """The differences of the losses of two sides, each the steps of its runs."""
    if not baseline or not candidate:
        return SameLoss("step", (), (), "no_common_step")
    sides = [[read_curve(steps) for steps in side] for side in (baseline, candidate)]
    axis = common_axis([curve for side in sides for curve in side if len(curve)])
    found = {name: _difference(name, baseline, candidate, axis) for name in LOSSES}
    differences = tuple(one for one in found.values() if one is not None)
    return SameLoss(axis, differences, tuple(remarks_on(sides, axis)), _reason(found["loss"], axis))


def _reason(found: LossDifference | None, axis: Axis) -> LossReason | None:
    if found is None:
        return "no_common_tokens" if axis == "tokens" else "no_common_step"
    return "zero_loss" if found.mean_relative is None else None


def _difference(
    column: str, baseline: Sequence[pl.DataFrame], candidate: Sequence[pl.DataFrame], axis: Axis
) -> LossDifference | None:
    """The difference of one loss; None where no place has a finite one on both sides."""
    import numpy as np

    runs = [[_on_axis(read_curve(steps, column), axis) for steps in side] for side in (baseline, candidate)]
    old, new = map(_median_curve, runs)
    both = old.join(new, on="at", suffix="_new").sort("at")
    finite = both.filter(pl.col("loss").is_finite() & pl.col("loss_new").is_finite())
    if finite.is_empty():
        return None
    lost = both.filter(pl.col("loss").is_finite() & ~pl.col("loss_new").is_finite())["at"]
    relative = bool(finite.select((pl.min_horizontal("loss", "loss_new") > 0).all()).item())
    repeats = [run for run in runs[0] if len(run)]
    apart = _differences(finite, relative)
    parting = find_parting(apart, _rounding(finite, relative), _allowance(repeats, relative))
    places = finite["at"].to_numpy().astype(float)
    since = parting.at if parting and parting.at is not None else 0
    equal = finite.select((pl.col("loss_new") - pl.col("loss")).abs() <= _half_digits()).to_series()
    first_unequal = equal.arg_min() if not equal.all() else len(equal)
    return LossDifference(
        column=column,
        places=len(finite),
        first_at=int(finite["at"][0]),
        last_at=int(finite["at"][-1]),
        **_sizes(finite),
        equal_places=int(equal.sum()),
        equal_until=int(finite["at"][first_unequal - 1]) if first_unequal else None,
        lost_places=len(lost),
        lost_from=int(lost[0]) if len(lost) else None,
        relative=relative,
        parting=_placed(parting, finite, relative),
        drift=fit_drift(places[since:], apart[since:]),
        repeats=len(repeats),
        curve=finite.select("at", "step", difference=pl.Series(np.expm1(apart) if relative else apart)),
    )


def _on_axis(curve: pl.DataFrame, axis: Axis) -> pl.DataFrame:
    """Place, step, loss, its last digit, and whether a start begins there."""
    placed = curve.drop_nulls(axis).unique(axis, keep="last", maintain_order=True)
    finite = pl.col("loss").is_finite()
    known = placed.filter(finite).select(axis, digit=last_digits(placed.filter(finite)["loss"]))
    begins = pl.col("segment") != pl.col("segment").shift(1)
    return placed.join(known, on=axis, how="left", maintain_order="left").select(
        pl.col(axis).alias("at"), "step", "loss", pl.col("digit").fill_null(0.0), begins=begins.fill_null(False)
    )


def _median_curve(runs: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The median over the runs at each place; not finite where one of them is not."""
    loss, infinite = pl.col("loss"), (~pl.col("loss").is_finite()).any()
    median = pl.when(infinite).then(float("nan")).otherwise(loss.median())
    aggregated = (pl.col("step").min(), median.alias("loss"), pl.col("digit").max(), pl.col("begins").any())
    return pl.concat(runs).group_by("at").agg(aggregated)


def _differences(both: pl.DataFrame, relative: bool) -> Floats:
    """The difference at each place: the logarithm of the ratio, or the plain one."""
    ratio = (pl.col("loss_new") / pl.col("loss")).log()
    return both.select(ratio if relative else pl.col("loss_new") - pl.col("loss")).to_series().to_numpy()


def _rounding(both: pl.DataFrame, relative: bool) -> Floats:
    digit = pl.max_horizontal("digit", "digit_new")
    return both.select(digit / pl.col("loss") if relative else digit).to_series().to_numpy()


def _half_digits() -> pl.Expr:
    """How far two values may be apart that are equal to the last digit of the coarser one.

    Half a digit of it; of logs that round differently also half a digit of the finer one. A little less than a whole
    digit of both, where both are equally fine.
    """
    coarse, fine = pl.max_horizontal("digit", "digit_new"), pl.min_horizontal("digit", "digit_new")
    return pl.when(fine < coarse).then(0.5 * (coarse + fine)).otherwise(0.5 * coarse) * (1 + 1e-9)


def _allowance(runs: Sequence[pl.DataFrame], relative: bool) -> float:
    """The largest lasting difference between repeats of the baseline, by means of blocks; 0 of a single run."""
    import numpy as np

    largest = 0.0
    for one, other in combinations(runs[:MOST_REPEATS], 2):
        both = one.join(other, on="at", suffix="_new").sort("at")
        finite = both.filter(pl.col("loss").is_finite() & pl.col("loss_new").is_finite())
        if len(finite) >= FEWEST:
            blocks = np.array_split(_differences(finite, relative), REPEAT_BLOCKS)
            largest = max(largest, *(abs(float(block.mean())) for block in blocks))
    return largest


def _sizes(both: pl.DataFrame) -> dict[str, Any]:
    """The means of the differences, the largest relative one and the last one, and their places."""
    size = (pl.col("loss_new") - pl.col("loss")).abs()
    undefined = (pl.col("loss") == 0) & (pl.col("loss_new") != 0)
    relative = pl.when(pl.col("loss") == 0).then(0.0).otherwise(size / pl.col("loss").abs())
    defined = both.filter(~undefined).select("at", relative=relative)
    empty = defined.is_empty()
    largest = None if empty else defined.row(int(defined["relative"].arg_max() or 0), named=True)
    final = None if empty else defined.row(-1, named=True)
    return {
        "mean_relative": defined["relative"].mean(),
        "mean_absolute": both.select(size).to_series().mean(),
        "largest": largest and largest["relative"],
        "largest_at": largest and largest["at"],
        "final": final and final["relative"],
        "final_at": final and final["at"],
        "undefined": len(both) - len(defined),
    }


def _placed(parting: Parting | None, both: pl.DataFrame, relative: bool) -> LossParting | None:
    """The parting at its step or tokens, and the side that restarted there."""
    if parting is None:
        return None
    level = math.expm1(parting.level) if relative else parting.level
    if parting.at is None:
        return LossParting(parting.shape, None, parting.spread, level)
    columns = zip(SIDES, ("begins", "begins_new"), strict=True)
    away = [(abs(begin - parting.at), side) for side, column in columns for begin in both[column].arg_true()]
    nearest, side = min(away, default=(NEAR_RESTART + 1, None))
    restarted = side if nearest <= NEAR_RESTART else None
    return LossParting(parting.shape, int(both["at"][parting.at]), parting.spread, level, restarted)
