"""The steps of a training that prints them nowhere, by its last line: its time, its steps per second and its epochs.

Comes in: rows with the epochs done, at one interval, and such a line. Goes out: the planned steps where one number
alone fits the rounding of all that is printed, and the steps of the rows where one interval alone does.
"""

from __future__ import annotations

from math import ceil, floor, log10

import polars as pl

# The unit of the last decimal of the time, the rate and an epoch; later versions print DIGITS digits of each at most.
OF_SECONDS, OF_RATE, OF_EPOCH, DIGITS = 1e-4, 1e-3, 1e-2, 4
# Beyond so many numbers the rate says nothing.
MOST = 10_000
TRAINING = ("training_seconds", "logged_steps_per_second", "training_epochs")


def with_steps_of_summary(rows: pl.DataFrame) -> pl.DataFrame:
    """``rows`` with the ``train_steps`` of each training whose last line gives them, else with its steps."""
    printed = [name for name in ("step", "train_steps") if name in rows.columns and rows[name].count()]
    if printed or not {*TRAINING} <= set(rows.columns) or not rows["training_seconds"].count():
        return rows
    trainings = rows.partition_by("source", *TRAINING, maintain_order=True)
    return pl.concat(map(_of_training, trainings), how="diagonal_relaxed")


def _of_training(training: pl.DataFrame) -> pl.DataFrame:
    seconds, rate, epochs = training.select(TRAINING).row(0)
    numbers = _numbers(seconds, rate, epochs) if seconds and rate and epochs else []
    if "epochs_done" in training.columns:
        done = training["epochs_done"].cast(pl.Float64)
        intervals = {steps: _intervals(steps / epochs, steps, done) for steps in numbers} if done.count() else {}
    else:
        # The last line alone is at the last step.
        intervals = {steps: range(steps, steps + 1) for steps in numbers}
    planned = [steps for steps, possible in intervals.items() if possible]
    each = {interval for possible in intervals.values() for interval in possible}
    known = {"train_steps": pl.lit(float(*planned))} if len(planned) == 1 else {}
    known |= {"step": pl.int_range(1, pl.len() + 1).cast(pl.Float64) * float(*each)} if len(each) == 1 else {}
    return training.with_columns(**known)


def _numbers(seconds: float, rate: float, epochs: float) -> list[int]:
    """The numbers of steps that the time and the rate allow; whole epochs have whole numbers of steps."""
    off, of_rate = _rounding(seconds, OF_SECONDS), _rounding(rate, OF_RATE)
    least, most = ceil((seconds - off) * (rate - of_rate)), floor((seconds + off) * (rate + of_rate))
    numbers = range(max(least, 1), min(most, least + MOST) + 1)
    return [steps for steps in numbers if epochs % 1 or steps % epochs == 0]


def _intervals(per_epoch: float, planned: int, done: pl.Series) -> range:
    """The steps that may be between two rows of so many ``planned``, where no row is missing."""
    # The last step of an epoch may have fewer batches, so that the epochs of a row are a step ahead at most.
    off = _rounding(float(done.max()), OF_EPOCH) * per_epoch + 1  # type: ignore[arg-type]
    nth = pl.int_range(1, len(done) + 1, dtype=pl.Int64, eager=True)
    shortest, longest = ((done * per_epoch - off) / nth).max(), ((done * per_epoch + off) / nth).min()
    return range(
        max(ceil(shortest), planned // (len(done) + 1) + 1),  # type: ignore[arg-type]
        min(floor(longest), planned // len(done)) + 1,  # type: ignore[arg-type]
    )


def _rounding(value: float, unit: float) -> float:
    """Half of the unit of the last digit of ``value``: ``unit`` at least, the last of DIGITS where it has no more."""
    last = 10.0 ** (floor(log10(max(value, unit))) + 1 - DIGITS)
    is_short = abs(value / last - round(value / last)) < 1e-6
    return max(unit, last if is_short else 0.0) / 2
