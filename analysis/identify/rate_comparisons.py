"""The rates that logs print, each compared with ours.

Comes in: the steps with their rates. Goes out: how far printed and computed are apart over the rows that count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import polars as pl

from analysis.identify.causes import RATIO
from analysis.identify.matching import LOGGED, RATIO_UNITS, TFLOPS_UNITS
from analysis.identify.printed_precision import printed_unit
from logparse.light_dataclass import dataclass

# Relative difference up to which a printed rate agrees; rounding may add to it.
AGREE = 0.05
COUNT_UNITS = (1.0, *TFLOPS_UNITS)
# The work of a step of which all devices together print a rate; it is known without their number.
OF_ALL = {
    "samples": pl.col("global_batch_size"),
    "tokens": pl.col("global_batch_size") * pl.col("seq_length"),
}


@dataclass(frozen=True)
class PrintedRate:
    """A column of printed rates and our column of the same rate; ``total`` is the rate of all devices together."""

    printed: str
    ours: str
    kind: Literal["samples", "tokens", "flops", "share"]
    total: bool = False
    units: Sequence[float] = TFLOPS_UNITS


FIGURES = (
    PrintedRate("logged_samples_per_second", "samples_per_second_per_device", "samples", total=True),
    PrintedRate("logged_samples_per_second_per_device", "samples_per_second_per_device", "samples"),
    PrintedRate("logged_tokens_per_second", "tokens_per_second_per_device", "tokens", True, COUNT_UNITS),
    PrintedRate("logged_tokens_per_second_per_device", "tokens_per_second_per_device", "tokens", False, COUNT_UNITS),
    PrintedRate(LOGGED, "tflops_per_second_per_device", "flops"),
    PrintedRate("logged_mfu", "mfu", "share", units=RATIO_UNITS),
    PrintedRate("logged_hfu", "hfu", "share", units=RATIO_UNITS),
)


@dataclass(frozen=True)
class RateComparison:
    """One printed rate and ours, as medians over the ``rows`` that count and have both.

    ``ratio`` is printed over ours. ``rounding`` is the relative error that the printed digits allow.
    """

    figure: PrintedRate
    rows: pl.DataFrame
    printed: float
    ours: float
    ratio: float
    rounding: float

    @property
    def agrees(self) -> bool:
        """Whether the two are the same rate, as far as such rates go."""
        return self.is_rounded_from(self.ratio)

    def is_rounded_from(self, ratio: float) -> bool:
        """Whether a printed value ``ratio`` times the true one is within half of its last digit, and ``AGREE``."""
        return ratio * (1 - self.rounding) <= 1 + AGREE and ratio * (1 + self.rounding) >= 1 - AGREE


def compare_rates(steps: pl.DataFrame, world_size: int | None) -> list[RateComparison]:
    """Compare every printed rate with ours, where rows have both."""
    return [side for figure in FIGURES if (side := _compared(steps, figure, world_size))]


def _compared(steps: pl.DataFrame, figure: PrintedRate, world_size: int | None) -> RateComparison | None:
    """Compare ``figure`` as printed and as computed; None where no row that counts has both."""
    if not steps[figure.printed].count():
        return None
    ours = pl.col(figure.ours)
    if figure.total:
        per_second = 1000 / pl.col("step_time_ms")
        ours = ours * world_size if world_size else OF_ALL[figure.kind] * per_second
    compared = {"_printed": pl.col(figure.printed), "_ours": ours, RATIO: pl.col(figure.printed) / ours}
    fits = "counted", pl.col("_printed") > 0, pl.col(RATIO).is_finite(), pl.col(RATIO) > 0
    rows = steps.with_columns(**compared).filter(*fits)
    if rows.is_empty():
        return None
    printed, computed, ratio = (cast("float", rows[name].median()) for name in compared)
    # A rate that agrees needs no rounding.
    unit = 0.0 if abs(ratio - 1) <= AGREE else printed_unit(rows["_printed"], figure.units)
    return RateComparison(figure, rows, printed, computed, ratio, unit / 2 / printed)
