"""Which rows count: every rule of the window on rows made by hand, and what holds for any rows."""

import math
import statistics
from datetime import datetime, timedelta
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.run.rows import row_selection, stalls
from analysis.run.rows.exclusion_reasons import COPY, NAN, NO_TIME, REPLAYED, SKIPPED, STALL, TIME_DAMAGED, WARM_UP
from analysis.run.rows.restarts import number_starts, trace_starts
from analysis.run.tables import COMPUTED_COLUMNS, STEP_COLUMNS
from logparse.schema import DECODED_COLUMNS, EVENT_COLUMNS, conform

STARTS = {"source": pl.String, "line_number": pl.Int64}


def rows(steps: list[int], source: str = "a.log", **columns: list[object]) -> pl.DataFrame:
    """One row per step on the lines 10, 20, 30 ... of ``source``, one second each unless ``columns`` say otherwise."""
    ours = {"step_time_ms": [1000.0] * len(steps)} | columns
    lines = [10 * (i + 1) for i in range(len(steps))]
    frame = pl.DataFrame({"source": [source] * len(steps), "line_number": lines, "step": steps, **ours}, strict=False)
    return conform(frame, [c for c in STEP_COLUMNS if c in (*DECODED_COLUMNS, COMPUTED_COLUMNS[0])])


def starts(*lines: tuple[str, int]) -> pl.DataFrame:
    return pl.DataFrame(list(lines), schema=STARTS, orient="row")


def select_rows(steps: pl.DataFrame, begun: pl.DataFrame | None = None) -> pl.DataFrame:
    """The window without pauses and options, on rows traced through their starts."""
    numbered = number_starts(steps, starts() if begun is None else begun)
    no_events = pl.DataFrame(schema={c.name: c.dtype for c in EVENT_COLUMNS})
    return row_selection.select_rows(trace_starts(numbered, no_events, None))


def reasons(steps: pl.DataFrame, begun: pl.DataFrame | None = None) -> list[str | None]:
    return select_rows(steps, begun)["excluded_reason"].to_list()


def changes(segments: pl.Series) -> list[int]:
    """Numbers of the rows at which a new segment begins."""
    return [i for i in range(1, len(segments)) if segments[i] != segments[i - 1]]


def test_the_first_row_does_not_count():
    assert reasons(rows([1, 2, 3])) == [WARM_UP, None, None]


@pytest.mark.parametrize("begun", [None, starts()])
def test_a_step_that_goes_back_is_a_start(begun):
    marked = select_rows(rows([1, 2, 3, 2, 3]), begun)
    assert marked["excluded_reason"].to_list() == [WARM_UP, None, None, REPLAYED, REPLAYED]
    assert marked["segment"].to_list() == [0, 0, 0, 1, 1]


def test_a_step_printed_again_is_a_start():
    assert reasons(rows([1, 2, 2, 3])) == [WARM_UP, None, REPLAYED, None]


def test_the_first_row_of_a_log_that_begins_midway_is_no_warm_up():
    assert reasons(rows([98, 99, 100])) == [None, None, None]
    assert reasons(rows([12_125])) == [None]
    shown = select_rows(rows([98, 99, 100]), starts(("a.log", 1)))
    assert shown["excluded_reason"].to_list() == [WARM_UP, None, None]


def test_a_step_far_ahead_is_not_a_start():
    assert reasons(rows([10, 20, 500])) == [WARM_UP, None, None]


def test_an_argument_dump_between_rows_is_a_start():
    marked = select_rows(rows([1, 2, 3, 4]), starts(("a.log", 1), ("a.log", 25)))
    assert marked["excluded_reason"].to_list() == [WARM_UP, None, WARM_UP, None]
    assert changes(marked["segment"]) == [2]


def test_two_dumps_before_the_same_row_are_one_start():
    marked = select_rows(rows([1, 2, 3, 4]), starts(("a.log", 24), ("a.log", 22)))
    assert marked["excluded_reason"].to_list() == [WARM_UP, None, WARM_UP, None]
    assert changes(marked["segment"]) == [2]


@pytest.mark.parametrize("begun", [("a.log", 35), ("b.log", 15)], ids=["behind the last row", "in another file"])
def test_a_dump_that_precedes_no_row_of_the_file_changes_nothing(begun):
    assert reasons(rows([1, 2, 3]), starts(begun)) == [WARM_UP, None, None]


def test_segments_are_counted_from_0_with_a_dump_before_the_first_row_too():
    assert select_rows(rows([1, 2, 3]), starts(("a.log", 1)))["segment"].to_list() == [0, 0, 0]


def test_every_file_starts_anew_and_segments_are_numbered_over_all_files():
    two = pl.concat([rows([1, 2, 3], "b.log"), rows([4, 5, 6, 5], "a.log", step_time_ms=[9000.0, *[1000.0] * 3])])
    marked = select_rows(two)
    assert marked["excluded_reason"].to_list() == [WARM_UP, None, None, WARM_UP, None, None, REPLAYED]
    assert changes(marked["segment"]) == [3, 6]


def test_a_dump_counts_in_its_own_file():
    two = pl.concat([rows([1, 2, 3], "a.log"), rows([4, 5, 6], "b.log", step_time_ms=[9000.0, 1000.0, 1000.0])])
    assert reasons(two, starts(("b.log", 15))) == [WARM_UP, None, None, WARM_UP, WARM_UP, None]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("loss", math.nan, NAN),
        ("nan_iterations", 1, NAN),
        ("skipped_iterations", 2, SKIPPED),
        ("overflow", True, SKIPPED),
        ("step_time_ms", None, NO_TIME),
        ("step_time_ms", 0.0, NO_TIME),
        ("step_time_ms", -3.0, NO_TIME),
    ],
)
def test_a_row_that_would_falsify_a_mean_does_not_count(column, value, reason):
    fine = {"step_time_ms": 1000.0, "loss": 2.5, "overflow": False}.get(column, 0)
    assert reasons(rows([1, 2, 3], **{column: [fine, value, fine]})) == [WARM_UP, reason, None]


@pytest.mark.parametrize("time", [math.nan, math.inf])
def test_a_time_that_is_no_number_does_not_count(time):
    assert reasons(rows([1, 2, 3], step_time_ms=[1000.0, time, 1000.0])) == [WARM_UP, NO_TIME, None]


def test_a_row_has_one_reason_and_a_start_comes_before_what_it_printed():
    steps = rows([1, 2, 3, 4], loss=[math.nan, math.nan, 2.0, 2.0], skipped_iterations=[1, 1, 1, 0])
    assert reasons(steps) == [WARM_UP, NAN, SKIPPED, None]


def test_what_the_line_does_not_print_excludes_nothing():
    none = [None, None]
    steps = rows([1, 2], loss=none, nan_iterations=none, skipped_iterations=none, overflow=none)
    assert reasons(steps) == [WARM_UP, None]


def test_copies_of_other_ranks_do_not_count():
    ranks = pl.concat([rows([1, 2, 3], "rank1.log"), rows([1, 2, 3], "rank0.log"), rows([1, 2, 3], "rank2.log")])
    assert reasons(ranks) == [COPY] * 3 + [WARM_UP, None, None] + [COPY] * 3


def test_the_rank_with_the_most_rows_is_kept():
    ranks = pl.concat([rows([1, 2, 3], "rank0.log"), rows([1, 2, 3, 4], "rank1.log")])
    assert reasons(ranks) == [COPY] * 3 + [WARM_UP, None, None, None]


def test_files_that_follow_each_other_are_not_copies():
    two = pl.concat([rows([1, 2, 3, 4, 5, 6], "a.log"), rows([5, 6, 7, 8, 9], "b.log")])
    assert COPY not in reasons(two)


def test_a_second_run_of_the_same_steps_is_not_a_copy():
    began = datetime(2026, 1, 1)
    hours = [[began + timedelta(hours=h, minutes=i) for i in range(4)] for h in (0, 5)]
    first = rows([1, 2, 3, 4], "a.log", timestamp=hours[0])
    second = rows([2, 3, 4, 5], "b.log", timestamp=hours[1])
    assert reasons(pl.concat([first, second])) == [WARM_UP, None, None, None, REPLAYED, REPLAYED, REPLAYED, None]


def test_no_rows_stay_no_rows():
    assert select_rows(rows([]), starts()).is_empty()


@st.composite
def logs(draw: st.DrawFn) -> pl.DataFrame:
    """Rows of one to three files, as a decoder could give them."""
    names = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True))
    return pl.concat(draw(_file(name)) for name in names)


@st.composite
def _file(draw: st.DrawFn, name: str) -> pl.DataFrame:
    steps = draw(st.lists(st.integers(1, 20), max_size=12))
    time = st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 5.0, 1e6]))
    loss = st.one_of(st.none(), st.sampled_from([math.nan, 0.1, 9.0]))
    columns = {
        "step_time_ms": draw(st.lists(time, min_size=len(steps), max_size=len(steps))),
        "loss": draw(st.lists(loss, min_size=len(steps), max_size=len(steps))),
    }
    return rows(steps, name, **columns)


@given(logs(), st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(1, 130))))
def test_no_row_is_deleted_moved_or_changed(steps, begun):
    marked = select_rows(steps, starts(*begun))
    assert marked.select(steps.columns).equals(steps)


@given(logs(), st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(1, 130))))
def test_a_row_counts_or_has_a_reason_and_only_rows_with_a_time_count(steps, begun):
    marked = select_rows(steps, starts(*begun))
    assert (marked["counted"] == marked["excluded_reason"].is_null()).all()
    assert (marked.filter("counted")["step_time_ms"] > 0).all()
    assert (marked["segment"].diff().drop_nulls().is_in([0, 1])).all()


def test_a_start_at_another_pace_holds_no_stalls():
    times = [5000.0] * 20 + [10_000.0] * 18
    marked = select_rows(rows(list(range(1, 39)), step_time_ms=times), starts(("a.log", 1), ("a.log", 201)))
    assert STALL not in marked["excluded_reason"].to_list()
    assert marked["counted"].sum() == 36


def test_a_stall_is_found_at_the_pace_of_its_start():
    times = [5000.0] * 20 + [1000.0] * 8 + [2000.0] + [1000.0] * 8
    marked = select_rows(rows(list(range(1, 38)), step_time_ms=times), starts(("a.log", 1), ("a.log", 201)))
    assert marked.filter(pl.col("excluded_reason") == STALL)["step"].to_list() == [29]


def damaged_times(times: list[float]) -> list[int]:
    marked = select_rows(rows(list(range(1, len(times) + 1)), step_time_ms=times))
    return marked.filter(pl.col("excluded_reason") == TIME_DAMAGED)["step"].to_list()


@pytest.mark.parametrize("step", [2, 11, 20])
def test_a_time_that_lost_digits_does_not_count(step):
    times = [5000.0 + 10 * (i % 3) for i in range(20)]
    times[step - 1] = 50.0
    assert damaged_times(times) == [step]


@pytest.mark.parametrize(
    "times",
    [
        [5000.0] * 20 + [2000.0] * 20,
        [5000.0] * 20 + [2000.0] * 2 + [5000.0] * 20,
        [5000.0] * 20 + [2490.0, 2510.0] * 5,
        [5000.0] * 20 + [2600.0] * 20,
        [5000.0] * 10 + [9500.0, 500.0] + [5000.0] * 10,
        [5000.0, 5000.0, 5000.0, 2000.0] * 10,
    ],
    ids=["level", "two rows", "level at the limit", "above half", "behind a slow row", "every fourth row"],
)
def test_a_row_that_was_faster_counts(times):
    assert damaged_times(times) == []


def plainly_out_of_line(times: list[float]) -> list[str | None]:
    """The reasons of the rows of one start, each row beside its neighbours, as the rule is said."""

    def around(values: list[float], at: int) -> float:
        half = stalls.NEIGHBOURS // 2
        return statistics.median(values[max(0, at - half) : at + half + 1])

    every = range(len(times))
    local = [around(times, at) for at in every]
    distance = [abs(time - median) for time, median in zip(times, local, strict=True)]
    noise = [stalls.STALL_SIGMAS * stalls.ROBUST * around(distance, at) for at in every]
    excess = [time - median for time, median in zip(times, local, strict=True)]
    usual = [distance[at] <= stalls.STALL_SHARE * local[at] for at in every]
    slow = [excess[at] > stalls.STALL_SHARE * local[at] and excess[at] > noise[at] for at in every]
    lone = [
        times[at] < stalls.DAMAGED_BELOW * local[at]
        and -excess[at] > noise[at]
        and all(usual[max(0, at - 1) : at])
        # The rows beside it; at an end of the start there is one.
        and all(usual[at + 1 : at + 2])
        for at in every
    ]
    rare = sum(lone) <= max(1, stalls.DAMAGED_RARE * len(times))
    return [STALL if slow[at] else TIME_DAMAGED if lone[at] and rare else None for at in every]


@st.composite
def times_of_start(draw: st.DrawFn) -> list[float]:
    """Whole ms, so that medians are exact: a pace that wanders, noise about as large as lets a row be odd, odd rows."""
    random = draw(st.randoms(use_true_random=False))
    wander, noise = random.choice([0, 5, 40]), random.choice([0, 5, 30, 60])
    level, times = 2000, []
    for _ in range(random.choice([1, 3, 30, 200, 400])):
        level = max(1000, level + random.randint(-wander, wander))
        odd = random.choice([0.1, 0.45, 0.5, 1.2, 1.25, 1.3, 2.0]) if random.random() < 0.02 else 1.0
        times.append(float(round(odd * (level + random.randint(-noise, noise)))))
    return times


@given(st.lists(times_of_start(), min_size=1, max_size=4))
def test_rows_out_of_line_are_those_that_each_row_beside_its_neighbours_shows(parts):
    """Two starts after each other must not see each other's rows, nor two stretches of one start lose theirs."""
    steps = [step for part in parts for step in range(1, len(part) + 1)]
    with patch.object(stalls, "_stretches", lambda clean: clean.clear()):
        marked = select_rows(rows(steps, step_time_ms=[time for part in parts for time in part]))
    told = marked.filter(pl.col("excluded_reason").is_null() | pl.col("excluded_reason").is_in([STALL, TIME_DAMAGED]))
    expected = [
        reason
        for _, start in told.group_by("segment", maintain_order=True)
        for reason in plainly_out_of_line(start["step_time_ms"].to_list())
    ]
    assert told["excluded_reason"].to_list() == (expected if len(told) >= 5 else [None] * len(told))


def test_rows_whose_medians_are_asked_lie_up_to_two_windows_from_an_odd_one():
    """Row 70 of the second start is odd: 25 rows on either side are its neighbours, and those have 25 themselves."""
    pace = [1000.0] * 300
    pace[170] = 1300.0
    clean = pl.DataFrame({"at": range(300), "segment": [0] * 100 + [1] * 200, "pace": pace})
    near = stalls.rows_near_outliers(clean)
    assert near["at"].to_list() == list(range(120, 221))
    assert near.filter("outlying")["at"].to_list() == [170]
    pace[170], pace[110] = 1000.0, 1300.0
    near = stalls.rows_near_outliers(clean.with_columns(pace=pl.Series(pace)))
    assert near["at"].to_list() == list(range(100, 161))
