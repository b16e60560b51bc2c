"""Sizes that follow from printed rates, where the rows agree on a whole number."""

import polars as pl
import pytest

from logparse.context.derivations import Fact
from logparse.context.run_context import RunContext
from logparse.context.sizes_of_rates import sizes_of_rates
from logparse.findings import flag
from logparse.schema import DECODED_COLUMNS, conform


def steps(**columns):
    return conform(pl.DataFrame(columns), DECODED_COLUMNS)


def known(**values):
    return RunContext({name: Fact(value, flag("--x")) for name, value in values.items()})


def sizes(rows, **values):
    return {name: fact.value for name, fact in sizes_of_rates(rows, known(**values)).items()}


TIMES = {"elapsed_time_per_iteration_ms": [345_000.0, 344_000.0, 346_000.0]}


def test_the_number_of_devices_follows_from_tokens_per_device():
    rates = [1536 * 2048 / 64 / (ms / 1000) for ms in TIMES["elapsed_time_per_iteration_ms"]]
    rows = steps(**TIMES, logged_tokens_per_second_per_device=rates)
    assert sizes(rows, global_batch_size=1536, seq_length=2048) == {"world_size": 64}
    assert sizes(rows, global_batch_size=1536) == {}
    assert sizes(rows, global_batch_size=1536, seq_length=2048, world_size=8) == {}


def test_the_batch_follows_from_samples_per_second():
    rows = steps(**TIMES, logged_samples_per_second=[4.4522, 4.4651, 4.4393])
    assert sizes(rows) == {"global_batch_size": 1536}


def test_two_rates_give_the_number_of_devices():
    rows = steps(logged_tokens_per_second=[80.0, 160.0, 240.0], logged_tokens_per_second_per_device=[5.0, 10.0, 15.0])
    assert sizes(rows) == {"world_size": 16}


@pytest.mark.parametrize("rates", [[100.0, 150.0, 210.0], [142.47, 142.9], [100.3, 100.3, 100.3]])
def test_rows_that_do_not_agree_give_nothing(rates):
    columns = {name: values[: len(rates)] for name, values in TIMES.items()}
    rows = steps(**columns, logged_tokens_per_second_per_device=rates)
    assert sizes(rows, global_batch_size=1536, seq_length=2048) == {}


def test_steps_per_second_and_counted_tokens_give_the_number_of_devices():
    rows = steps(
        logged_steps_per_second=[0.0869, 0.0865, 0.0864],
        logged_tokens_per_second_per_device=[45538.0, 45368.0, 45284.0],
    )
    assert sizes(rows, tokens_per_step=4_194_304) == {"world_size": 8}
    assert sizes(rows) == {}
