"""The steps of trainings of which only dicts with epochs and the last line are left."""

import math
import random

import polars as pl
import pytest

from logparse.decode.summary_steps import with_steps_of_summary


def training(seed):
    """A drawn training as its log prints it, and the steps of its rows and its plan."""
    draw = random.Random(seed)
    passes, batches, epochs = draw.choice([1, 2, 4, 8]), draw.randint(40, 4000), draw.choice([1, 2, 3, 5])
    interval = draw.choice([1, 2, 5, 10, 50])
    # Later versions end the last step of an epoch with fewer batches; earlier ones leave these out.
    rounded_up = draw.random() < 0.5
    per_epoch = math.ceil(batches / passes) if rounded_up else batches // passes
    planned = per_epoch * epochs
    seconds = round(planned * 10 ** draw.uniform(-1, 1.5), 4)

    def done(step):
        epoch, within = divmod(step - 1, per_epoch)
        return round(epoch + min(1.0, (within + 1) * passes / batches), 2)

    steps = list(range(interval, planned + 1, interval)) or [planned]
    summary = {"training_seconds": seconds, "logged_steps_per_second": round(planned / seconds, 3)}
    if seed % 2:
        # Transformers 5 prints four digits of each.
        summary = {name: float(f"{value:.4g}") for name, value in summary.items()}
    summary |= {"training_epochs": done(planned), "source": "run.log"}
    return (
        pl.DataFrame({"epochs_done": [done(step) for step in steps]}).with_columns(
            pl.lit(value).alias(name) for name, value in summary.items()
        ),
        steps,
        planned,
    )


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_a_training_has_the_steps_that_it_did_or_none(first):
    plans = 0
    for seed in range(first, first + 50):
        rows, steps, planned = training(seed)
        known = with_steps_of_summary(rows)
        if "train_steps" in known.columns:
            assert known["train_steps"].unique().to_list() == [planned], seed
            plans += 1
        if "step" in known.columns:
            assert known["step"].to_list() == steps, seed
    # The others were too slow for a rate of three decimals.
    assert plans > 25


def test_the_last_line_alone_is_at_the_last_step():
    line = {"training_seconds": 112.8251, "logged_steps_per_second": 0.319, "training_epochs": 3.0, "source": "run.log"}
    assert with_steps_of_summary(pl.DataFrame([line]))["step", "train_steps"].rows() == [(36.0, 36.0)]


def test_a_rate_that_fits_many_numbers_gives_none():
    line = {"training_seconds": 23328.5, "logged_steps_per_second": 0.006, "training_epochs": 1.0, "source": "run.log"}
    assert {"step", "train_steps"}.isdisjoint(with_steps_of_summary(pl.DataFrame([line])).columns)


def test_a_step_that_is_printed_is_kept():
    line = {"training_seconds": 100.0, "logged_steps_per_second": 1.0, "training_epochs": 1.0, "source": "run.log"}
    rows = pl.DataFrame([{**line, "step": 7.0}])
    assert with_steps_of_summary(rows).equals(rows)
