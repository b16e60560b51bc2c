"""The time of a step that no line prints."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logparse.context.relations import OF_STEPS, TIME
from logparse.context.run_context import Fact, RunContext, SettingsChange
from logparse.context.step_times import RESOLUTION, KnownRun, find_times, resolution, why_no_times
from logparse.decode.read_run import Coverage, ParsedLog
from logparse.findings import Origin
from logparse.formats import find_format
from logparse.schema import DECODED_COLUMNS, conform

BEGIN = datetime(2026, 1, 1, 12)
RATE = "logged_tokens_per_second_per_device"


def log(form: str = "deepspeed", **columns: list[Any]) -> ParsedLog:
    rows = pl.DataFrame({**columns, "line_number": range(1, len(columns["step"]) + 1)})
    steps = conform(rows.with_columns(source=pl.lit("run.log")), DECODED_COLUMNS)
    nowhere = pl.DataFrame(schema={"source": pl.String, "line_number": pl.Int64})
    time_breakdown = Coverage(len(steps), len(steps), 0, 0, {})
    return ParsedLog("run", ("run.log",), find_format(form), steps, pl.DataFrame(), time_breakdown, {}, nowhere, {})


def known(**values: int) -> RunContext:
    return RunContext({name: Fact(value, Origin("flag", rule=f"--{name}")) for name, value in values.items()})


def times(read: ParsedLog, column: str = TIME, covers: Any = None, **values: int) -> list[float | None] | None:
    found = find_times(read, read.steps, KnownRun(known(**values)), covers)
    return None if found is None else found.times[column].to_list()


def stamped(*seconds: float) -> list[datetime]:
    return [BEGIN + timedelta(seconds=s) for s in seconds]


def test_a_printed_time_stays_the_only_one() -> None:
    assert times(log(step=[1, 2], timestamp=stamped(0, 3), elapsed_time_per_iteration_ms=[None, 2.0])) is None


def test_stamps_tell_the_mean_of_the_steps_between_two_lines() -> None:
    read = log(step=[10, 20, 40], timestamp=stamped(0.001, 8.001, 26.001))
    assert times(read) == [None, pytest.approx(800), pytest.approx(900)]
    # 1 ms in ten steps, and in twenty
    assert times(read, RESOLUTION) == [None, pytest.approx(0.1), pytest.approx(0.05)]
    found = find_times(read, read.steps, KnownRun(RunContext()), None)
    assert found is not None
    assert (found.origin.code, found.origin.fields, found.by_clock, found.shared) == (
        "time_by_stamps",
        {"seconds": 0.001},
        True,
        False,
    )


def test_rows_of_a_clock_that_tells_whole_seconds_share_the_mean_of_twenty() -> None:
    read = log(step=[1, 2, 3, 4, 5], timestamp=stamped(0, 11, 21, 33, 40))
    # from 0 to 21 s two steps; the last two rows lie 19 s after it, enough for a span at the end
    assert times(read) == [None, *[pytest.approx(10500)] * 2, *[pytest.approx(9500)] * 2]
    short = log(step=[1, 2, 3, 4], timestamp=stamped(0, 11, 21, 30))
    # 9 s at the end are too few, and belong to the span before
    assert times(short) == [None, *[pytest.approx(10000)] * 3]


def test_a_log_shorter_than_twenty_units_of_its_clock_has_one_time() -> None:
    read = log(step=[1, 2, 3, 4], timestamp=stamped(0, 3, 8, 12))
    assert times(read) == [None, *[pytest.approx(4000)] * 3]
    # 1 s in three steps
    assert times(read, RESOLUTION) == [None, *[pytest.approx(1000 / 3)] * 3]


def test_a_clock_too_coarse_for_the_run_tells_nothing() -> None:
    assert times(log(step=[1, 2, 3], timestamp=stamped(0, 1, 2))) is None


def test_a_step_that_several_ranks_print_took_its_time_once() -> None:
    read = log(step=[1, 1, 2, 2], timestamp=stamped(0.5, 0.501, 3.5, 3.501))
    assert times(read) == [None, None, pytest.approx(3000), pytest.approx(3000)]


def test_nothing_is_told_between_two_starts() -> None:
    read = log(step=[8, 9, 8, 9], timestamp=stamped(0.25, 2.25, 90.5, 93.5))
    assert times(read) == [None, pytest.approx(2000), None, pytest.approx(3000)]


def test_a_runtime_begins_with_the_start() -> None:
    assert times(log(step=[10, 20, 30], runtime_seconds=[30.25, 50.25, 70.0])) == [3025.0, 2000.0, 1975.0]


def test_a_runtime_tells_nothing_of_steps_before_the_first_line_of_a_start_that_goes_on() -> None:
    read = log(step=[110, 120, 130], runtime_seconds=[30.25, 50.25, 70.25])
    assert times(read) == [None, 2000.0, 2000.0]


def test_a_rate_gives_a_time_where_it_covers_the_interval_and_the_work_is_known() -> None:
    read = log(step=[10, 20], **{RATE: [50.0, 49.0]})
    work = {"global_batch_size": 128, "seq_length": 8192, "world_size": 512}
    # 128 x 8192 / 512 = 2048 tokens of one device
    assert times(read, covers="interval", **work) == [pytest.approx(40960), pytest.approx(2048e3 / 49)]
    # printed to 1: half of it is 1 % of 50
    assert times(read, RESOLUTION, "interval", **work) == [pytest.approx(409.6), pytest.approx(2048e3 / 49 / 98)]
    assert times(read, covers="step", **work) is None
    assert times(read, covers=None, **work) is None
    assert times(read, covers="interval", global_batch_size=128, seq_length=8192) is None


def test_a_rate_of_the_last_step_counts_where_every_step_has_a_line() -> None:
    read = log(step=[1, 2], logged_samples_per_second=[4.0, 8.0])
    assert times(read, covers="step", global_batch_size=16) == [4000.0, 2000.0]


def test_a_rate_goes_before_stamps_and_a_row_s_own_batch_before_the_run_s() -> None:
    read = log(
        step=[1, 2], timestamp=stamped(0, 50), logged_samples_per_second=[4.0, 8.0], global_batch_size=[None, 32]
    )
    assert times(read, covers="interval", global_batch_size=16) == [4000.0, 4000.0]


def test_a_later_start_has_its_own_batch() -> None:
    read = log(step=[1, 2, 3], logged_samples_per_second=[4.0, 4.0, 4.0])
    change = SettingsChange("run.log", 3, known(global_batch_size=32))
    found = find_times(read, read.steps, KnownRun(known(global_batch_size=16), (change,)), "interval")
    assert found is not None
    assert found.times[TIME].to_list() == [4000.0, 4000.0, 8000.0]


@pytest.mark.parametrize(
    ("values", "unit"),
    [([1.0, 20.0], 1.0), ([1.5, 20.0], 0.1), ([0.125, None], 0.001), ([1 / 3], 1e-6)],
)
def test_resolution_is_the_last_decimal(values: list[float | None], unit: float) -> None:
    assert resolution(pl.Series(values, dtype=pl.Float64)) == pytest.approx(unit)


def test_lines_more_than_a_day_apart_are_of_two_clocks() -> None:
    assert times(log(step=[10, 20, 30], timestamp=stamped(0.001, 86_401.001, 86_411.001))) == [
        None,
        None,
        pytest.approx(1000),
    ]
    assert times(log(step=[10, 20], timestamp=stamped(0.001, 159 * 86_400))) is None


def test_a_moving_mean_tells_a_time_only_where_no_clock_does() -> None:
    lone = log(step=[19], runtime_seconds=[1900.0], logged_seconds_per_step=[76.8])
    assert times(lone) is None
    assert times(lone, covers="recent") == [76800.0]
    found = find_times(lone, lone.steps, KnownRun(RunContext()), "recent")
    assert found is not None
    assert (found.origin.code, found.by_clock) == ("time_by_recent_rate", True)
    clocked = log(step=[20, 40, 60], runtime_seconds=[40.0, 80.0, 120.0], logged_seconds_per_step=[9.0, 9.0, 9.0])
    assert times(clocked, covers="recent") == [2000.0, 2000.0, 2000.0]


@given(ms=st.integers(150, 950), rows=st.integers(2, 40), every=st.integers(1, 10), pause=st.sampled_from((0, 4, 30)))
def test_a_rate_that_is_finer_than_a_coarse_clock_stands_where_both_agree(
    ms: int, rows: int, every: int, pause: int
) -> None:
    """A bar prints whole seconds and a rate of two decimals; the rate knows nothing of a pause in the middle."""
    steps, rate = [every * n for n in range(1, rows + 1)], round(1000 / ms, 2)
    clock = [float((step * ms + 1000 * pause * (step > steps[0])) // 1000) for step in steps]
    read = log("hf-trainer-bar", step=steps, runtime_seconds=clock, **{OF_STEPS: [rate] * rows})
    found = find_times(read, read.steps, KnownRun(RunContext()), "recent")
    assert found is not None
    coarse = 0.005 / rate * steps[-1] * ms < 1000
    expected = ("time_by_finer_rate" if coarse else "time_by_runtime") if clock[-1] >= 10 else "time_by_recent_rate"
    if clock[-1] < 10 or not pause:
        assert found.origin.code == expected
        assert found.times[TIME].mean() == pytest.approx(ms, rel=0.005 / rate if coarse else 0.06)
    else:
        assert found.origin.code == "time_by_runtime"


def test_a_rate_of_tokens_tells_a_step_where_flags_say_what_it_holds() -> None:
    read = log(step=[1, 2], **{RATE: [1024.0, 2048.0]})
    assert times(read, covers="step") is None
    assert times(read, covers="step", global_batch_size=4, seq_length=2048, world_size=2) == [4000.0, 2000.0]


def test_a_printed_rate_names_the_sizes_that_would_give_a_time() -> None:
    read = log(step=[1, 2], **{RATE: [100.0, 110.0]})
    note = why_no_times(read, read.steps, KnownRun(known(world_size=8)), "step")
    assert note is not None
    assert (note.code, note.level, note.fields["flags"]) == (
        "rate_lacks_sizes",
        "warning",
        ["--global-batch-size", "--seq-length"],
    )
    every_size = known(world_size=8, global_batch_size=16, seq_length=4096)
    assert why_no_times(read, read.steps, KnownRun(every_size), "step") is None
    assert why_no_times(read, read.steps, KnownRun(RunContext()), "start") is None


def epochs(form: str, at: list[tuple[int, int, float]], length: int = 60, **columns: list[Any]) -> ParsedLog:
    """Lines at (epoch from 0, step in it, runtime)."""
    places: dict[str, list[Any]] = {
        "epoch": [epoch for epoch, *_ in at],
        "step_in_epoch": [n for _, n, _ in at],
        "steps_per_epoch": [length] * len(at),
        "step": [epoch * length + n for epoch, n, _ in at],
        "runtime_seconds": [seconds for *_, seconds in at],
    }
    return log(form, **places, **columns)


def test_a_clock_of_an_epoch_begins_at_zero_in_each_also_where_it_does_not_go_back() -> None:
    ends = [(0, 60, 36.0), (1, 60, 366.0), (2, 60, 360.0)]
    assert times(epochs("lightning", ends)) == [600.0, 6100.0, 6000.0]
    # deepspeed prints no such clock: it runs on.
    assert times(epochs("deepspeed", ends)) == [600.0, 5500.0, None]


def test_a_clock_of_an_epoch_runs_on_within_it() -> None:
    read = epochs("lightning", [(0, 30, 60.0), (0, 60, 90.0), (1, 30, 75.0), (1, 50, 95.0), (2, 40, 120.0)])
    assert times(read) == [2000.0, 1000.0, 2500.0, 1000.0, 3000.0]


def test_an_epoch_that_a_process_resumed_has_no_time_before_its_first_line() -> None:
    read = epochs("lightning", [(3, 30, 20.0), (3, 40, 40.0), (3, 50, 60.0), (4, 10, 30.0)])
    assert times(read) == [None, 2000.0, 2000.0, 3000.0]


def test_epochs_shorter_than_the_clock_can_show_have_no_time_by_the_slow_one_alone() -> None:
    assert times(epochs("lightning", [(0, 60, 12.0), (1, 60, 5.0), (2, 60, 5.0), (3, 60, 5.0)])) is None


def test_a_full_bar_has_the_mean_pace_of_its_epoch_where_its_clock_agrees() -> None:
    ends = [(0, 45, 17.0), (1, 45, 57.0)]
    pace = {"logged_steps_per_second": [2.5, None], "logged_seconds_per_step": [None, 1.28]}
    read = epochs("ultralytics", ends, 45, **pace)
    assert times(read, covers="recent") == pytest.approx([400.0, 1280.0])
    found = find_times(read, read.steps, KnownRun(known()), "recent")
    assert found is not None
    assert found.origin.code == "time_by_rate"
    # A moving mean of the last steps is not that of the epoch.
    moving = epochs("ultralytics", ends, 45, logged_steps_per_second=[3.5, 0.78])
    assert times(moving, covers="recent") == pytest.approx([17_000 / 45, 57_000 / 45])


def test_the_clock_across_missing_lines_is_no_time_of_a_step() -> None:
    seconds = (0.001, 8.001, 16.001, 24.001, 100.001, 108.001, 116.001)
    read = log(step=[10, 20, 30, 40, 5000, 5010, 5020], timestamp=stamped(*seconds))
    ten = [pytest.approx(800)]
    assert times(read) == [None, *3 * ten, None, *2 * ten]


def test_a_pause_is_not_spread_over_the_steps_before_it() -> None:
    paused = [0, *range(2, 48, 2), 91, *range(93, 115, 2)]
    read = log(step=list(range(1, len(paused) + 1)), timestamp=stamped(*paused))
    found = times(read)
    assert found is not None
    # 12 steps of 2 s, then 11, and a pause of 45 s in one step alone
    assert found[1:24] == [pytest.approx(2000)] * 23
    assert found[24] == pytest.approx(45_000)


def test_steps_that_are_all_as_long_as_a_span_have_no_pause() -> None:
    read = log(step=[1, 2, 3, 4, 5], timestamp=stamped(0, 19, 56, 75, 112))
    assert times(read) == [None, *[pytest.approx(28_000)] * 4]


@pytest.mark.parametrize(("seconds", "ms"), [(1810.0, 10_000), (1320.0, 7292.8), (900.0, 10_000)])
def test_the_rate_of_a_training_is_that_of_its_steps_over_its_time(seconds: float, ms: float) -> None:
    """0.1 steps/s can be 0.05 to 0.15; a time that gives another rate is of other steps."""
    columns = {"logged_steps_per_second": [0.1, 0.1], "training_seconds": [seconds] * 2, "train_steps": [181, 181]}
    read = log("hf-trainer", step=[90, 180], **columns)
    assert times(read, covers="run") == [pytest.approx(ms, rel=1e-3)] * 2


@pytest.mark.parametrize(
    ("form", "columns", "covers", "code", "expected"),
    [
        ("ms-swift", {"logged_steps_per_second": [0.004878]}, "start", "time_by_rate_since_start", 205_002),
        # The bar next to it, where no line prints the rate of the run.
        ("hf-trainer", {"logged_steps_per_second": [1.89]}, "run", "time_by_recent_rate", 529.1),
        ("fairseq", {"logged_steps_per_second": [0.5]}, None, "time_by_lone_rate", 2000),
        # The work of a rate of unknown steps is unknown; a rate of the passes leaves out what lies between them.
        ("fairseq", {"logged_samples_per_second": [32.0]}, None, None, None),
        ("deepspeed", {"logged_steps_per_second": [0.5]}, None, None, None),
    ],
)
def test_a_printed_rate_is_a_rate(
    form: str, columns: dict[str, Any], covers: Any, code: str | None, expected: float | None
) -> None:
    read = log(form, step=[2], **columns)
    found = find_times(read, read.steps, KnownRun(known(global_batch_size=64)), covers)
    assert (found and found.origin.code) == code
    assert (found and found.times[TIME][0]) == (expected and pytest.approx(expected, rel=1e-3))


def test_the_clock_goes_before_tokens_that_lines_count() -> None:
    counted = {RATE: [880.86, 2049.3, 2022.64], "timestamp": stamped(0, 4.018, 8.089)}
    read = log("internevo", step=[1, 2, 3], **counted)
    assert times(read, covers="step", world_size=16, tokens_per_step=131_072) == [
        None,
        pytest.approx(4018),
        pytest.approx(4071),
    ]
    bare = log("internevo", step=[1, 2, 3], **{RATE: counted[RATE]})
    assert times(bare, covers="step", world_size=16, tokens_per_step=131_072) == pytest.approx(
        [9300, 3997, 4050], rel=1e-3
    )
