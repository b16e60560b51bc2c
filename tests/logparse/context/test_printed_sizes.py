"""Sizes that follow from printed rates, where the rows agree on a whole number."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logparse.context.printed_sizes import sizes_of_lines
from logparse.context.relations import PACES, Fact
from logparse.context.run_context import RunContext
from logparse.findings import flag
from logparse.schema import DECODED_COLUMNS, SETTING_COLUMNS, conform


def steps(**columns):
    return conform(pl.DataFrame(columns).with_columns(source=pl.lit("a.log")), DECODED_COLUMNS)


NO_SETTINGS = pl.DataFrame(schema={c.name: c.dtype for c in SETTING_COLUMNS})


def known(**values):
    return RunContext({name: Fact(value, flag("--x")) for name, value in values.items()})


def sizes(rows, **values):
    return {name: fact.value for name, fact in sizes_of_lines(rows, known(**values), NO_SETTINGS)[0].items()}


TIMES = {"elapsed_time_per_iteration_ms": [345_000.4, 344_000.2, 346_000.1]}


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
    rows = steps(logged_tokens_per_second=[80.0, 161.6, 240.0], logged_tokens_per_second_per_device=[5.0, 10.1, 15.0])
    assert sizes(rows) == {"world_size": 16}


@pytest.mark.parametrize(
    ("together", "each", "devices"),
    [
        ([14_200.0, 15_500.0, 16_200.0], [1_780.0, 1_940.0, 2_030.0], 8),
        ([143_000.0, 155_000.0, 161_000.0], [178.0, 195.0, 203.0], None),
        ([14_200.0, 15_500.0, 17_900.0], [1_780.0, 1_940.0, 2_030.0], None),
    ],
    ids=["one is left", "too many", "no one fits"],
)
def test_rounded_rates_give_the_only_number_of_devices_that_they_allow(together, each, devices):
    rows = steps(logged_tokens_per_second=together, logged_tokens_per_second_per_device=each)
    assert sizes(rows).get("world_size") == devices


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


def summary(samples, rate, line=9):
    names = ["logged_samples_per_second", "logged_steps_per_second"]
    columns = {"source": ["a.log"] * 2, "line_number": [line] * 2, "kind": ["summary"] * 2}
    return pl.DataFrame({**columns, "name": names, "value": [samples, rate]})


@pytest.mark.parametrize(
    ("samples", "rate", "batch"),
    [
        ("387.493", "96.873", 4),
        ("18.2", "1.1", None),  # 16.5, and 1.1 may be 1.15
        ("387.9", "96.873", 4),  # 4.004: an epoch leaves up to one batch out
        ("393.1", "96.873", None),  # 4.058
        ("2.1", "0.3", None),  # 7, but between 5.9 and 8.6
        ("0.0", "0.0", None),
        ("many", "96.873", None),
    ],
)
def test_two_rates_of_the_whole_run_give_the_batch(samples, rate, batch):
    rows = steps(step=[50, 100], epoch=[0.5, 1.0])
    found, _ = sizes_of_lines(rows, known(), summary(samples, rate))
    assert {name: fact.value for name, fact in found.items()} == ({"global_batch_size": batch} if batch else {})
    assert sizes_of_lines(rows, known(global_batch_size=8), summary(samples, rate)) == ({}, [])


def test_samples_of_short_epochs_may_not_fill_their_last_batch():
    """7 samples in one step of a batch of 8, 100 times."""
    rows = steps(step=[50, 100], epoch=[50.0, 100.0])
    assert sizes_of_lines(rows, known(), summary("70.000", "10.000")) == ({}, [])


def test_trainings_that_disagree_give_no_batch():
    two = pl.concat([summary("40.000", "10.000"), summary("80.000", "10.000", line=99)])
    assert sizes_of_lines(steps(step=[100]), known(), two) == ({}, [])


@pytest.mark.parametrize(
    ("done", "batch"), [([0, None, 16, 24, 32], 8), ([0, 8, 16, 40, 70], None), ([None, None, 8, None, 24], None)]
)
def test_the_samples_consumed_give_the_batch(done, batch):
    rows = steps(step=[0, 1, 2, 3, 4], consumed_samples=done)
    assert sizes(rows) == ({"global_batch_size": batch} if batch else {})
    assert sizes(rows, global_batch_size=4) == {}


SIZES = st.integers(1, 4096)


@st.composite
def printed_runs(draw):
    """Sizes of a run, and its rows as a log prints them: each number rounded to so many decimals or digits."""
    truth = {"world_size": draw(SIZES), "global_batch_size": draw(SIZES), "seq_length": draw(SIZES)}
    seconds = draw(st.lists(st.floats(0.05, 400), min_size=1, max_size=8))
    names = draw(st.sets(st.sampled_from([pace.column for pace in PACES]), min_size=2, max_size=4))
    decimals = {name: draw(st.integers(0, 4)) for name in names}
    short = draw(st.booleans())
    columns = {name: [] for name in names}
    for time in seconds:
        for pace in PACES:
            if pace.column in names and "tokens_per_step" not in pace.sizes:
                number = 1 / time / math.prod(truth[size] ** power for size, power in pace.sizes.items())
                number = 1 / number / pace.factor if pace.time else number
                text = f"{number:.3g}" if short else f"{number:.{decimals[pace.column]}f}"
                columns[pace.column].append(float(text))
    return truth, columns, draw(st.sets(st.sampled_from(sorted(truth)), min_size=1, max_size=2))


@given(printed_runs())
def test_a_size_that_lines_give_is_that_of_the_run_or_unknown(run):
    truth, columns, unknown = run
    facts, _ = sizes_of_lines(steps(**columns), known(**{n: truth[n] for n in truth if n not in unknown}), NO_SETTINGS)
    assert {name: fact.value for name, fact in facts.items()} == {name: truth[name] for name in facts}


ALL, EACH = "logged_tokens_per_second", "logged_tokens_per_second_per_device"
# Seconds printed with three decimals, with rates of 1024 samples in each.
COARSE = [0.51 + 0.00037 * n for n in range(40)]
THREE = {EACH: [12_130.4, 12_126.8, 12_131.3], "elapsed_time_per_iteration_ms": [2701.3, 2702.1, 2701.1]}


@pytest.mark.parametrize(
    ("columns", "values", "found"),
    [
        ({ALL: [170_801.384], EACH: [85_400.692]}, {}, {"world_size": 2}),
        ({ALL: [17.1], EACH: [8.5]}, {}, {}),
        (THREE, {}, {}),
        (THREE, {"world_size": 32, "global_batch_size": 256}, {"seq_length": 4096}),
        (THREE, {"world_size": 32, "global_batch_size": 256, "variable_seq_lengths": True}, {}),
        (
            {
                "elapsed_time_per_iteration_ms": [round(1000 * s) for s in COARSE],
                "logged_samples_per_second": [round(1024 / s, 2) for s in COARSE],
            },
            {},
            {"global_batch_size": 1024},
        ),
        ({"consumed_tokens": [121_470_976], "consumed_samples": [59_312]}, {}, {"seq_length": 2048}),
        ({"consumed_tokens": [1_258_000_000], "consumed_samples": [307_200]}, {}, {}),
        ({"consumed_tokens": [24, 48], "consumed_samples": [4, 8]}, {}, {}),
    ],
    ids=[
        "one row of many digits",
        "one row of few",
        "two unknown",
        "a third rate",
        "lengths differ",
        "many coarse rows",
        "counts",
        "rounded counts",
        "small counts",
    ],
)
def test_the_only_whole_number_within_the_rounding_is_the_size(columns, values, found):
    assert sizes(steps(**columns), **values) == found


def test_two_ways_that_disagree_give_none_and_say_so():
    rates = {ALL: [170_801.384], EACH: [85_400.692]}
    rates |= {"logged_samples_per_second": [83.3992], "logged_samples_per_second_per_device": [20.8498]}
    facts, notes = sizes_of_lines(steps(**rates), known(), NO_SETTINGS)
    assert facts == {}
    assert [(note.code, [way.fields["value"] for way in note.fields["ways"]]) for note in notes] == [
        ("sizes_disagree", [4, 2])
    ]
