"""The loss of a run: where it began, where it is, and how low it was."""

from __future__ import annotations

from functools import partial

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


def losses_of(steps: pl.DataFrame, others: pl.DataFrame) -> Losses | None:
    """The losses of the rows ``steps``, of a step that was done again the last, and of the lines ``others``.

    These have no step of their own: they are after the step line before them. None where no finite one is printed.
    """
    rows = steps.filter(OF_THE_RUN).select("source", "line_number", "step", "loss")
    printed = rows.drop_nulls("loss")
    latest = printed.filter(pl.col("step").is_null() | pl.col("step").is_last_distinct())
    places = rows.select("source", "line_number", order="step").sort("line_number")
    lines = others.sort("line_number").select("source", "line_number", "loss")
    join = partial(pl.DataFrame.join_asof, on="line_number", by="source", check_sortedness=False)
    joined = join(join(lines, places), places, strategy="forward", suffix="_after")
    own = joined.select("loss", order=pl.coalesce("order", pl.col("order_after") - 1)).drop_nulls("order")
    every = pl.concat([latest.select("step", "loss", order="step"), own], how="diagonal_relaxed")
    finite = every.filter(pl.col("loss").is_finite()).sort("order", nulls_last=True, maintain_order=True)
    if finite.is_empty():
        return None
    values = finite["loss"]
    at = values.arg_min() or 0
    return Losses(values[0], values[-1], values[at], finite["step"][at], len(finite), len(every) - len(finite))
