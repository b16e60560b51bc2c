"""The step of a line that prints none: by the epoch and the step within it, the epochs done, or the samples.

Comes in: rows of a whole log. Goes out: the rows with ``step``, counted from the start of training.
"""

from __future__ import annotations

import polars as pl

from logparse.decode.summary_steps import with_steps_of_summary
from logparse.decode.values import whole

# Epochs done are printed to so many decimals at least.
DECIMALS = 2


def with_step(
    rows: pl.DataFrame, by_samples: bool = False, first_epoch: int = 1, on_line: bool = False
) -> pl.DataFrame:
    """Count steps from the start of training where the log counts them otherwise, also ``by_samples``.

    With ``on_line`` the step is on the line itself, so that no bar gives another.
    """
    rows = with_steps_of_summary(rows)
    if not on_line and "epochs_done" in rows.columns and rows["epochs_done"].is_not_null().any():
        return _by_epochs_done(rows)
    if by_samples and {"consumed_samples", "global_batch_size"} <= set(rows.columns):
        done = pl.col("consumed_samples").cast(pl.Float64) / pl.col("global_batch_size")
        return rows.with_columns(step=pl.coalesce(_printed(rows), whole(done)))
    own = _printed(rows)
    if "samples_in_epoch" in rows.columns:
        rows = _in_batches(rows)
    if not {"epoch", "step_in_epoch"} <= set(rows.columns) or not own.has_nulls():
        return rows.with_columns(own)
    if "validation_batches" in rows.columns and rows["validation_batches"].is_not_null().any():
        parts = [_without_validation(part) for part in rows.partition_by("source", maintain_order=True)]
        # Only a file with validation counts its epochs in parts of a step.
        rows = pl.concat(parts, how="vertical_relaxed")
        own = _printed(rows)
    return _by_epochs(rows, first_epoch).with_columns(step=pl.coalesce(own, "step"))


def _printed(rows: pl.DataFrame) -> pl.Series:
    """The steps that the rows print; null where they print none."""
    return rows["step"] if "step" in rows.columns else pl.Series("step", [None] * len(rows), pl.Float64)


def _in_batches(rows: pl.DataFrame) -> pl.DataFrame:
    """The steps of an epoch where samples are counted: the first line of one has done a batch, all lines whole ones."""
    done = pl.col("samples_in_epoch")
    least = done.min().over("source")
    # Elsewhere the beginning of the log is lost, and with it what a batch is.
    batch = pl.when((done % least == 0).all().over("source")).then(least)
    return rows.with_columns(
        global_batch_size=batch, step_in_epoch=done / batch, steps_per_epoch=(pl.col("epoch_samples") / batch).floor()
    )


def _without_validation(rows: pl.DataFrame) -> pl.DataFrame:
    """The ``rows`` of one file without the batches of validation, which the epoch counts too; the others counted anew.

    Validation follows each of the equal parts of an epoch; the first row of one has its length, so the part before it
    is shorter. An epoch without validation has fewer batches than the longest one.
    """
    same_epoch = (pl.col("epoch") == pl.col("epoch").shift(1)).fill_null(value=True)
    begun = pl.col("step_in_epoch").filter(pl.col("validation_batches").is_not_null() & same_epoch).min()
    total, batches, first = rows.select(pl.col("steps_per_epoch").max(), pl.col("validation_batches").max(), begun).row(
        0
    )
    part = _part_before_validation(total, batches, first)
    if part is None:
        return rows.with_columns(step_in_epoch=pl.lit(None, pl.Float64))
    at, validated = pl.col("step_in_epoch") - 1, pl.col("steps_per_epoch") == total
    done = (at // (part + batches)) * part + at % (part + batches) + 1
    trained = (~validated | (at % (part + batches) < part)).fill_null(value=False)
    return rows.filter(trained).with_columns(
        step_in_epoch=pl.when(validated).then(done).otherwise("step_in_epoch"),
        steps_per_epoch=pl.lit(total * part / (part + batches)),
    )


def _part_before_validation(total: float | None, batches: float | None, first: float | None) -> float | None:
    """Steps before each validation of an epoch of ``total`` batches, the ``first`` one of a validation among them."""
    if not total or not batches or not first:
        return None
    parts = (total / n - batches for n in range(1, int(total // batches) + 1) if total % n == 0)
    return next((part for part in parts if 0 < part < first), None)


def _by_epochs(rows: pl.DataFrame, first_epoch: int) -> pl.DataFrame:
    per_epoch = pl.col("steps_per_epoch") if "steps_per_epoch" in rows.columns else pl.col("step_in_epoch").max()
    # A log with an epoch 0 counts them from 0, and prints the number of the last one: 0/49 is the first of 50.
    # A resumed one has no epoch 0, but the line that plans 50.
    earlier = int((rows["epoch"].cast(pl.Float64) == first_epoch - 1).any() or _plans_one_more(rows))
    before = pl.col("epoch").cast(pl.Float64) - first_epoch + earlier
    if {"epochs", "steps_per_epoch"} <= set(rows.columns):
        epochs = pl.col("epochs").cast(pl.Float64) + earlier
        rows = rows.with_columns(train_steps=whole(epochs * pl.col("steps_per_epoch")))
    # The length of the first epoch does not matter; a stream of data does not print it.
    done = pl.when(before == 0).then(0.0).otherwise(before * per_epoch)
    return rows.with_columns(step=whole(done + pl.col("step_in_epoch")))


def _plans_one_more(rows: pl.DataFrame) -> bool:
    """Whether the plan has one epoch more than the number of the last one, so that they count from 0."""
    if not {"epochs", "planned_epochs"} <= set(rows.columns):
        return False
    plan, last = (rows[name].cast(pl.Float64) for name in ("planned_epochs", "epochs"))
    return bool((plan == last + 1).any())


# What a bar prints along with its length.
OF_BAR = ("step", "runtime_seconds")


def _by_epochs_done(rows: pl.DataFrame) -> pl.DataFrame:
    """The steps by those that rows print, for example from a bar next to them; without any, by the epochs done.

    Lines are printed at multiples of an interval, so rounded epochs still give the step.
    """
    rows = _without_redrawn_bars(_without_other_bars(rows))
    own = _printed(rows)
    # A training that begins anew has done fewer epochs than the one before.
    grows = (own.diff() > 0) | (rows["epochs_done"].cast(pl.Float64).diff() < 0)
    if own.is_not_null().all() and bool(grows.drop_nulls().all()):
        return rows
    per_epoch = _steps_per_epoch(rows, planned=bool(own.is_null().all()))
    steps = rows.select(step=pl.col("epochs_done") * per_epoch, off=0.5 + per_epoch * 10.0**-DECIMALS)
    known = steps["step"].is_not_null().any()
    return rows.with_columns(step=_at_interval(steps) if known else _between(own.cast(pl.Float64)))


def _without_other_bars(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows without what a bar of another length, as that of an evaluation, gave them.

    Such a plan is on fewer rows, and between rows of the other plan. Where it comes last its steps begin anew, and
    the epochs do not: an evaluation that is not over.
    """
    if "train_steps" not in rows.columns:
        return rows
    epochs = pl.col("epochs_done").cast(pl.Float64)
    planned = rows.with_columns(own=_printed(rows).cast(pl.Float64), epochs=epochs).with_row_index("at")
    spans = planned.filter(pl.col("train_steps").is_not_null()).group_by("source", "train_steps", maintain_order=True)
    edges = [
        pl.col("at", "own", "epochs").first().name.prefix("first "),
        pl.col("at", "own", "epochs").last().name.prefix("last "),
    ]
    plans = spans.agg(pl.len().alias("n"), *edges)
    between = pl.col("first at") < pl.col("last at other")
    goes_on = pl.col("first epochs") >= pl.col("last epochs other")
    pairs = plans.join(plans, on="source", suffix=" other").filter(
        (pl.col("n") < pl.col("n other"))
        & (pl.col("last at") > pl.col("first at other"))
        & (between | (goes_on & (pl.col("first own") < pl.col("last own other"))))
    )
    if pairs.is_empty():
        return rows
    longest = pairs.sort("n other").unique(["source", "train_steps"], keep="last")
    plan = longest.select("source", "train_steps", plan="train_steps other")
    joined = rows.join(plan, on=["source", "train_steps"], how="left", maintain_order="left")
    other = pl.col("plan").is_not_null()
    given = [name for name in OF_BAR if name in rows.columns]
    cleared = [pl.when(~other).then(name).alias(name) for name in given]
    return joined.with_columns(*cleared, train_steps=pl.coalesce("plan", "train_steps")).drop("plan")


def _without_redrawn_bars(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows without the step and the clock of a bar that was drawn again, unchanged, after a later row.

    Such a bar is at the step of an earlier row; a training that begins again starts its clock and its epochs again.
    """
    if not {"source", *OF_BAR} <= set(rows.columns):
        return rows
    epochs = pl.col("epochs_done").cast(pl.Float64)
    bars = rows.select("source", *OF_BAR, "epochs_done").with_row_index("at").drop_nulls(list(OF_BAR))
    again = pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in ("source", *OF_BAR))
    redrawn = bars.filter((again & ~(epochs.diff() < 0)).fill_null(value=False))["at"]
    kept = ~pl.int_range(pl.len(), dtype=pl.UInt32).is_in(redrawn.implode())
    return rows.with_columns(pl.when(kept).then(name).alias(name) for name in OF_BAR) if len(redrawn) else rows


def _steps_per_epoch(rows: pl.DataFrame, planned: bool) -> pl.Expr:
    """By the samples of an epoch and the batch; else, where ``planned``, by the steps and epochs of the plan."""
    names = ("epoch_samples", "global_batch_size", "train_steps", "epochs", "training_epochs")
    samples, batch, steps, *epochs_printed = (
        pl.col(name).cast(pl.Float64) if name in rows.columns else pl.lit(None, pl.Float64) for name in names
    )
    epochs = pl.coalesce(epochs_printed)
    # Where lines have steps of their own, the first bar of a log may be of another training.
    by_plan = pl.when(epochs > 0).then(steps / epochs) if planned else pl.lit(None, pl.Float64)
    # Transformers before 4.46 end a step of the last batches of an epoch in the next one; their plan rounds down.
    exact = samples / batch
    return pl.coalesce(pl.when(steps == epochs * exact.floor()).then(exact), exact.ceil(), by_plan)


def _at_interval(steps: pl.DataFrame) -> pl.Series:
    """Each ``step`` as the multiple of the lines' interval that is at most ``off`` away, else as a whole number."""
    apart = steps["step"].diff()
    interval = max(1.0, round(float(apart.filter(apart > 0).median() or 1.0)))  # type: ignore[arg-type]
    step = pl.col("step")
    multiple = (step / interval).round() * interval
    near = (multiple > 0) & ((multiple - step).abs() <= pl.min_horizontal("off", pl.lit(interval / 2)))
    return steps.select(step=pl.when(near).then(multiple).otherwise(step.round().clip(1)))["step"]


def _between(steps: pl.Series) -> pl.Series:
    """``steps`` with those of rows next to known ones, where the known ones are at the typical interval."""
    known = steps.to_frame("step").with_row_index("at").drop_nulls()
    if len(known) < 2:
        return steps
    apart = known.select(pl.col("step").diff() / pl.col("at").diff()).to_series()
    interval = apart.median()
    rows = pl.DataFrame({"step": steps}).with_row_index("at")
    joined = rows.join(known.select("at", apart=apart), on="at", how="left", maintain_order="left")
    regular = (pl.col("apart").backward_fill() == interval).fill_null(value=True)
    at = pl.col("at").cast(pl.Float64)
    offset = (pl.col("step") - interval * at).forward_fill().fill_null(strategy="backward")
    guess = offset + interval * at
    return joined.select(pl.coalesce("step", pl.when(regular & (guess > 0) & (guess == guess.floor())).then(guess)))[
        "step"
    ]
