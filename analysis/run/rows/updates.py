"""Updates of a row: which were made, and which of them the run kept.

Comes in: rows that ``restarts`` has traced. Goes out: ``update_is_nan`` and ``useful_steps``.

A step whose update is not a number trained nothing. Where a gradient norm is NaN the weights become NaN, or the update
is left out. Where it is infinite and the loss stays finite, a loss scaler left out that one update. A step that is done
several times is as good as the last time: what an earlier start made of it is thrown away.
"""

from __future__ import annotations

import polars as pl

VANISHED = "loss_vanished"


def update_is_nan(steps: pl.DataFrame) -> pl.Expr:
    """Whether the loss is NaN, infinite or no longer printed, or the gradient norm is NaN."""
    vanished = pl.col(VANISHED) if VANISHED in steps.columns else pl.lit(value=False)
    loss, gradient = (pl.col(name).is_nan().fill_null(value=False) for name in ("loss", "grad_norm"))
    # What overflows in fp16 is NaN or infinite; its update is skipped, and counts as such.
    return loss | vanished | (gradient & ~is_skipped()) | (is_infinite("loss") & ~is_skipped())


def is_infinite(name: str) -> pl.Expr:
    """Whether a row prints an infinite ``name``."""
    return pl.col(name).is_infinite().fill_null(value=False)


def is_skipped() -> pl.Expr:
    """Whether a row prints that an update was skipped."""
    return (pl.col("skipped_iterations") > 0).fill_null(value=False) | pl.col("overflow").fill_null(value=False)


def printed_skips() -> pl.Expr:
    """Steps of a row whose update was skipped, as printed."""
    return pl.max_horizontal("skipped_iterations", pl.col("overflow").cast(pl.Int64)).fill_null(0)


# Steps that are counted one by one. A damaged number of a step may claim billions.
MOST_STEPS = 10_000_000


def lost_updates() -> pl.Expr:
    """Steps of a row whose update was left out or is NaN."""
    # An iteration that is NaN is one of those whose update was skipped: no count adds to another.
    # The gradient norm is that of the row's last step.
    lost = pl.max_horizontal(printed_skips(), "nan_iterations", is_infinite("grad_norm").cast(pl.Int64)).fill_null(0)
    return pl.when("update_is_nan").then("iterations").otherwise(pl.min_horizontal(lost, "iterations"))


def thrown_away() -> pl.Expr:
    """Steps of a row whose update was made and not kept, because another start did them too."""
    return pl.col("iterations") - pl.col("useful_steps") - lost_updates()


def useful_steps(rows: pl.DataFrame) -> pl.Series:
    """Steps of each row whose update was made and kept; a step that was done again counts once.

    It counts where it was first done, up to what the last time made of it. Of a row of several steps, each has the
    row's share of updates.
    """
    once = rows.select((pl.col("iterations") - lost_updates() - pl.col("replayed_steps")).clip(0)).to_series()
    marked = rows.select(
        "lineage", "step", "iterations", "replayed_steps", lost=lost_updates(), resumed=_resumed_within()
    ).with_row_index("at")
    several = marked.filter((pl.col("step") > pl.col("resumed")) | (pl.col("replayed_steps") > 0))
    if not (several["lost"] > 0).any() or several["iterations"].sum() > MOST_STEPS:
        return once.alias("useful_steps")
    useful = several.join(_by_step(several), on="at").select("at", "useful")
    return (
        marked.with_columns(once=once)
        .join(useful, on="at", how="left", maintain_order="left")
        .select(useful_steps=pl.coalesce("useful", "once"))
        .to_series()
    )


def _resumed_within() -> pl.Expr:
    """The least step from which a later start of the row's lineage goes on."""
    begun = (pl.col("step") - pl.col("iterations")).first().over("lineage", "segment")
    later = pl.when(pl.col("segment") != pl.col("segment").shift(1)).then(begun).shift(-1)
    return later.cum_min(reverse=True).backward_fill().over("lineage")


def _by_step(rows: pl.DataFrame) -> pl.DataFrame:
    """By ``at`` of the row: the useful steps of rows of which some may have been done several times."""
    of_step = ("lineage", "step")
    each = (
        rows.with_columns(
            place=pl.int_ranges(1, pl.col("iterations") + 1), made=1 - pl.col("lost") / pl.col("iterations")
        )
        .explode("place")
        .with_columns(step=pl.col("step") - pl.col("iterations") + pl.col("place"))
    )
    best = pl.min_horizontal(pl.col("made").cum_max(), pl.col("made").last()).over(of_step)
    more = pl.col("best") - pl.col("best").shift(1).over(of_step).fill_null(0)
    # An earlier start did a step whose line is missing.
    unseen = (pl.len().over(of_step) == 1) & (pl.col("place") <= pl.col("replayed_steps"))
    useful = each.with_columns(best=best).select("at", useful=pl.when(unseen).then(0.0).otherwise(more))
    by_row = useful.group_by("at", maintain_order=True).agg(pl.col("useful").sum())
    # Rounded in their sum, so that no part of a step gets lost.
    whole = pl.col("useful").cum_sum().round().cast(pl.Int64)
    return by_row.select("at", useful=whole.diff().fill_null(whole))
