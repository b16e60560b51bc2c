"""The loss of a run: where it began, where it is, and how low it was."""

from __future__ import annotations

import polars as pl

from analysis.run.rows.exclusion_reasons import OF_THE_RUN
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Losses:
    """The ``first`` and the ``last`` printed loss, and the ``lowest`` with its step, each of ``steps`` losses.

    A row that does not count for time counts here. ``infinite`` are the losses that are NaN or infinite.
    """

    first: float
    last: float
    lowest: float
    lowest_step: int | None
    steps: int
    infinite: int


def losses_of(steps: pl.DataFrame) -> Losses | None:
    """The losses of the rows ``steps``, of a step that was done again the last; None where no finite one is printed."""
    printed = steps.filter(OF_THE_RUN).select("step", "loss").drop_nulls("loss")
    latest = printed.filter(pl.col("step").is_null() | pl.col("step").is_last_distinct())
    finite = latest.filter(pl.col("loss").is_finite()).sort("step", nulls_last=True, maintain_order=True)
    if finite.is_empty():
        return None
    values = finite["loss"]
    at = values.arg_min() or 0
    return Losses(values[0], values[-1], values[at], finite["step"][at], len(finite), len(latest) - len(finite))
