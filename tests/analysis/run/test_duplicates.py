"""Lines that stand more than once: merged ranks, a log joined twice, ranks by other clocks; and what is no copy."""

import random
from datetime import datetime, timedelta

import polars as pl
import pytest
from helpers import arguments_dump, megatron_line, of_code, sweep_after
from runs import BEGIN, analyze_text, events, no_starts, rate_of, rows, started

from analysis.present.words import say
from analysis.run.rows.duplicates import clocks_apart, describe_copies, of_one_clock
from analysis.run.rows.exclusion_reasons import COPY, REPLAYED, WARM_UP
from analysis.run.rows.restarts import number_starts, trace_starts
from analysis.run.rows.streams import find_streams
from logparse.findings import warning

STEPS = 30


def time_of(step: int, rank: int = 0, seed: int = 0) -> float:
    """Settled steps of 5 s that vary by 2 %; ranks differ by 3 ms each. The first step takes 20 s."""
    drawn = random.Random(1000 * seed + step).uniform(4900, 5100)
    return (20_000.0 if step == 1 else round(drawn, 1)) + 3 * rank


def line(step: int, rank: int = 0, clock: datetime | None = None, seed: int = 0, loss: float | None = None) -> str:
    stamp = f"{clock + timedelta(seconds=5 * step):%Y-%m-%d %H:%M:%S}" if clock else ""
    printed = f"{loss if loss is not None else 10 - step / 10:.6E}"
    return megatron_line(step, time_of(step, rank, seed), stamp, {"lm loss": printed})


def text(lines: list[str]) -> str:
    return "".join(f"{each}\n" for each in lines)


def merged(ranks: int, clock: datetime | None, first: int = 1, last: int = STEPS) -> list[str]:
    return [line(step, rank, clock) for step in range(first, last + 1) for rank in range(ranks)]


@pytest.mark.parametrize("clock", [None, BEGIN], ids=["no clock", "clock"])
@pytest.mark.parametrize("ranks", sweep_after(1, [2, 8]))
def test_of_ranks_merged_into_one_file_one_row_per_step_counts(tmp_path, ranks, clock):
    alone = analyze_text(tmp_path, text(merged(1, clock)))
    result = analyze_text(tmp_path, text(merged(ranks, clock)))
    assert result.steps["copied"].sum() == (ranks - 1) * STEPS
    assert not result.steps["replayed"].any()
    assert len(result.segments) == 1
    assert result.rates["step_time_ms"].to_list() == alone.rates["step_time_ms"].to_list()
    assert result.time_breakdown.select("part", "seconds").equals(alone.time_breakdown.select("part", "seconds"))


def test_ranks_that_print_at_their_own_pace_are_merged_ranks_still(tmp_path):
    """Rank 1 prints each step after rank 0 has printed the next one."""
    lines = [line(1), *(each for s in range(2, STEPS + 1) for each in (line(s), line(s - 1, 1))), line(STEPS, 1)]
    result = analyze_text(tmp_path, text(lines))
    assert (result.steps["copied"].sum(), len(result.segments)) == (STEPS, 1)


def test_a_restart_among_merged_ranks_does_steps_again():
    times = [float(1000 + 2 * at) for at in range(16)]
    steps = [step for step in (1, 2, 3, 4, 5, 4, 5, 6) for _ in range(2)]
    losses = [10.0 - step for step in steps]
    traced = trace(rows(steps, loss=losses, elapsed_time_per_iteration_ms=times))
    assert traced["copied"].to_list() == [False, True] * 8
    assert traced.filter(~pl.col("copied"))["segment"].to_list() == [0] * 5 + [1] * 3
    assert traced.filter("replayed")["step"].to_list() == [4, 5]


def test_a_rank_that_prints_no_loss_is_a_copy_by_its_time():
    losses = [9.0, None, 8.0, None, 7.0, None]
    times = [1000.0, 1003.0, 1010.0, 1011.0, 990.0, 992.0]
    traced = trace(rows([1, 1, 2, 2, 3, 3], loss=losses, elapsed_time_per_iteration_ms=times))
    assert traced["copied"].to_list() == [False, True] * 3


def test_a_last_step_that_a_resumed_run_prints_again_is_done_again():
    """As MindFormers 1.5 does: the same loss, another time, and no settings between."""
    times = [3000.0, 3010.0, 2990.0, 3280.0, 3005.0]
    traced = trace(rows([98, 99, 100, 100, 101], loss=[5.0, 4.9, 4.8, 4.8, 4.7], elapsed_time_per_iteration_ms=times))
    assert not traced["copied"].any()
    assert traced["replayed"].to_list() == [False, False, False, True, False]


def test_a_last_step_that_the_next_process_does_in_the_same_time_is_done_again():
    """As at a log interval of 10, resumed from step 55: 60 stands twice in a row, the second line for 5 steps."""
    steps = rows([50, 60, 60, 70], loss=[5.0, 4.8, 4.8, 4.7], elapsed_time_per_iteration_ms=[1000.0] * 4)
    begun = pl.DataFrame({"source": ["a.log"], "line_number": [25]})
    loaded = events((26, "checkpoint loaded", 55, None))
    traced = trace_starts(number_starts(steps, begun), loaded, 10)
    assert not traced["copied"].any()
    assert traced["iterations"].to_list() == [10, 10, 5, 10]
    assert traced["replayed_steps"].to_list() == [0, 0, 5, 0]


def trace(steps: pl.DataFrame) -> pl.DataFrame:
    return trace_starts(number_starts(steps, no_starts()), events(), None)


@pytest.mark.parametrize("clock", [None, BEGIN], ids=["no clock", "clock"])
@pytest.mark.parametrize("dump", ["", arguments_dump({"world_size": 8})], ids=["steps only", "with settings"])
def test_a_log_joined_twice_is_one_log(tmp_path, clock, dump):
    once = dump + text([line(step, clock=clock) for step in range(1, STEPS + 1)])
    alone, result = analyze_text(tmp_path, once), analyze_text(tmp_path, once + once)
    assert result.steps["excluded_reason"].to_list() == [*alone.steps["excluded_reason"], *[COPY] * STEPS]
    assert len(result.segments) == 1
    assert result.rates["step_time_ms"].to_list() == alone.rates["step_time_ms"].to_list()


def test_parts_of_a_log_that_overlap_are_one_log(tmp_path):
    first = text([line(step, clock=BEGIN) for step in range(1, 21)])
    second = text([line(step, clock=BEGIN) for step in range(16, STEPS + 1)])
    result = analyze_text(tmp_path, first, second)
    assert result.steps["copied"].to_list() == [False] * 20 + [True] * 5 + [False] * 10
    assert len(result.segments) == 1


def test_a_lone_row_without_a_clock_that_stands_again_is_done_again():
    times = [1000.0, 1001.0, 1002.0, 1001.0, 1005.0]
    traced = trace(rows([1, 2, 3, 2, 3], loss=[9.0, 8.0, 7.0, 8.0, 7.0], elapsed_time_per_iteration_ms=times))
    assert not traced["copied"].any()
    assert traced["replayed"].to_list() == [False] * 3 + [True] * 2


@pytest.mark.parametrize("clock", [None, BEGIN], ids=["no clock", "clock"])
def test_a_restart_with_the_same_losses_and_other_times_does_steps_again(tmp_path, clock):
    again = clock + timedelta(minutes=10) if clock else None
    begun = started(11, again) if again else []
    first = [line(step, clock=clock) for step in range(1, 21)]
    lines = [*first, *begun, *(line(step, clock=again, seed=1) for step in range(11, STEPS + 1))]
    result = analyze_text(tmp_path, text(lines))
    assert not result.steps["copied"].any()
    assert result.steps.filter("replayed")["step"].to_list() == list(range(11, 21))
    assert len(result.segments) == 2


def by_clocks(hours: float, seed: int = 0) -> list[str]:
    """Two files of the same steps; the clock of the second is ``hours`` ahead."""
    clocks = (BEGIN, BEGIN + timedelta(hours=hours))
    return [text([line(step, i, clock, seed * i) for step in range(1, STEPS + 1)]) for i, clock in enumerate(clocks)]


@pytest.mark.parametrize("hours", [8, -8, -490_000])
def test_ranks_by_other_clocks_are_copies_and_told(tmp_path, hours):
    first, second = by_clocks(hours)
    begun = "[before the start of training step] datetime: {:%Y-%m-%d %H:%M:%S} \n"
    alone = analyze_text(tmp_path, begun.format(BEGIN) + first)
    moved = begun.format(BEGIN + timedelta(hours=hours)) + second
    result = analyze_text(tmp_path, begun.format(BEGIN) + first, moved)
    assert (result.steps["copied"].sum(), len(result.segments)) == (STEPS, 1)
    seconds = abs(hours) * 3600.0
    told = warning("copy_ahead" if hours > 0 else "copy_behind", name=str(tmp_path / "part1.log"), seconds=seconds)
    assert of_code(result.notes, "copy_ahead", "copy_behind") == [told]
    assert f"{timedelta(hours=abs(hours))} {'later' if hours > 0 else 'earlier'}" in say(told)
    for rate in ("steady", "with_stalls", "all_steps", "wall_clock"):
        assert rate_of(result, rate) == pytest.approx(rate_of(alone, rate), rel=2e-3)


def test_ranks_by_one_clock_are_copies_without_a_word(tmp_path):
    result = analyze_text(tmp_path, *by_clocks(0))
    assert result.steps["copied"].sum() == STEPS
    assert of_code(result.notes, "copy_ahead", "copy_behind") == []


def test_a_second_run_with_the_same_losses_and_other_times_is_a_run(tmp_path):
    result = analyze_text(tmp_path, *by_clocks(8, seed=1))
    assert not result.steps["copied"].any()
    assert result.steps["excluded_reason"].to_list().count(WARM_UP) == 2
    assert set(result.steps["lineage"]) == {0, 1}


def test_a_second_file_that_goes_back_by_another_time_is_a_restart(tmp_path):
    first = text([line(step, clock=BEGIN) for step in range(1, 21)])
    second = text([line(step, clock=BEGIN + timedelta(hours=1), seed=1) for step in range(6, 21)])
    result = analyze_text(tmp_path, first, second)
    assert result.steps["excluded_reason"].to_list()[20:] == [REPLAYED] * 15


def test_the_events_of_a_file_by_another_clock_lose_their_stamps():
    clock = [BEGIN + timedelta(seconds=i) for i in range(3)]
    other = [stamp + timedelta(hours=8) for stamp in clock]
    columns = {"loss": [3.0, 2.0, 1.0], "elapsed_time_per_iteration_ms": [1000.0, 1010.0, 990.0]}
    steps = pl.concat(
        [rows([1, 2, 3], "a", timestamp=clock, **columns), rows([1, 2, 3], "b", timestamp=other, **columns)]
    )
    numbered = number_starts(steps, no_starts())
    assert clocks_apart(numbered) == {"b": timedelta(hours=8)}
    assert list(describe_copies(numbered)) == [warning("copy_ahead", name="b", seconds=8 * 3600.0)]
    told = pl.concat([events((1, "training starts", None, BEGIN), source=source) for source in ("a", "b")])
    assert of_one_clock(told, numbered)["timestamp"].to_list() == [BEGIN, None]


def test_a_line_that_all_ranks_print_without_a_time_is_one(tmp_path):
    """Seven ranks of torchtitan into one file; the time follows from the clock of two steps."""
    line = (
        "[titan] 2026-02-24 19:46:{s:02d},508 - root - INFO - step:  {n}  loss:  7.6  memory: 1.00GiB(1.0%)  tps: {tps}"
    )
    lines = [line.format(s=2 * n, n=n, tps=10050 - rank % 2) for n in range(4, 24) for rank in range(7)]
    found = analyze_text(tmp_path, "\n".join(lines) + "\n")
    assert (int(found.steps["copied"].sum()), len(found.segments)) == (20 * 6, 1)
    assert rate_of(found, "steady") == 2000


def test_steps_of_a_first_line_without_a_time_lie_before_the_clock(tmp_path):
    """Every tenth step has a line with a clock: the ten steps before the first one were done before it began."""
    line = "[titan] 2026-02-24 19:{m:02d}:00,000 - root - INFO - step: {n}  loss:  7.6  memory: 1.00GiB(1.0%)  tps: 100"
    text = "\n".join(line.format(m=n // 10, n=n) for n in range(10, 210, 10)) + "\n"
    found = analyze_text(tmp_path, text)
    assert rate_of(found, "all_steps") == rate_of(found, "wall_clock") == 6000


def two_nodes(block: int, clock: datetime | None, later: float = 0.3) -> list[str]:
    """Two nodes that print the same steps in turn, ``block`` lines each; the second ``later`` seconds after."""
    first = merged(1, clock)
    second = [line(step, 1, clock and clock + timedelta(seconds=later)) for step in range(1, STEPS + 1)]
    return [row for at in range(0, STEPS, block) for row in (*first[at : at + block], *second[at : at + block])]


@pytest.mark.parametrize(("block", "clock"), [(6, None), (6, BEGIN), (STEPS, BEGIN)], ids=["blocks", "clock", "joined"])
def test_two_nodes_of_one_job_count_once(tmp_path, block, clock):
    run = analyze_text(tmp_path, text(two_nodes(block, clock)))
    assert run.steps["copied"].sum() == STEPS
    assert run.steps.filter(~pl.col("copied"))["step"].to_list() == list(range(1, STEPS + 1))
    assert not find_streams(run.steps)


@pytest.mark.parametrize(("clock", "later"), [(BEGIN, 3600), (BEGIN, 50.0 * STEPS), (None, 0)])
def test_a_second_run_with_the_same_seed_is_no_copy(tmp_path, clock, later):
    run = analyze_text(tmp_path, text(two_nodes(STEPS, clock, later)))
    assert not run.steps["copied"].any()


def test_two_runs_with_other_losses_at_once_are_no_copies(tmp_path):
    rows = [line(step, run, BEGIN, loss=9 - step / 10 + run / 100) for step in range(1, STEPS + 1) for run in range(2)]
    blocks = [row for at in range(0, 2 * STEPS, 12) for run in range(2) for row in rows[at + run : at + 12 : 2]]
    assert not analyze_text(tmp_path, text(blocks)).steps["copied"].any()
