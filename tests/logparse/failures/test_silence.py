"""How long a run printed nothing before it was stopped, and warnings that it repeats before it fails."""

import pytest
from helpers import megatron_line

from analysis.present.parts import ScreenRows
from analysis.present.views.ending import ending_parts
from logparse.decode.read_run import diagnose_run
from logparse.failures.silence import silent_seconds
from logparse.inputs.writers import clock_of

STOP = (
    "W0110 14:55:05.687000 6198 torch/distributed/elastic/agent/server/api.py:719] "
    "Received 2 death signal, shutting down workers"
)


def printed(*times):
    return [f"[rank0]:V0110 {time}.370000 6671 torch/distributed/pipelining/stage.py:1341] step" for time in times]


def diagnosed(tmp_path, *lines):
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    ending = diagnose_run([str(path)])
    rows = [str(row) for part in ending_parts(ending) if isinstance(part, ScreenRows) for row in part.rows]
    return ending, " ".join(rows)


def test_a_run_that_printed_nothing_before_it_was_stopped_may_have_hung(tmp_path):
    ending, shown = diagnosed(tmp_path, *printed("14:54:01", "14:54:02", "14:54:03"), STOP)
    assert ending.silent_seconds == pytest.approx(62.317)
    assert "nothing was printed for 1 min 2 s: it may have hung" in shown


@pytest.mark.parametrize(
    "times",
    [("14:53:00", "14:54:00", "14:55:00"), ("14:51:05", "14:53:05", "14:54:05"), ("14:54:01",)],
    ids=["not silent", "its other pauses are as long", "nothing to compare"],
)
def test_a_pause_as_long_as_others_is_no_silence(times, tmp_path):
    ending, shown = diagnosed(tmp_path, *printed(*times), STOP)
    assert (ending.silent_seconds, "nothing was printed" in shown) == (None, False)


@pytest.mark.parametrize(
    "last",
    ["loss 2.1", "10:00:03 \r 890/1000 [5:00:00<1:00, 2.1it/s]", "/ckpt/run-2024-01-10_14:54:03/it9 saved"],
    ids=["a line without a clock", "a bar", "a date in a path"],
)
def test_a_last_line_without_a_clock_shows_that_it_printed_on(last):
    lines = printed("14:54:01", "14:54:02", "14:54:03")
    clock = 10_000_000.0
    assert silent_seconds(lines, clock) is not None
    assert silent_seconds([*lines, last], clock) is None


def test_a_scheduler_in_another_zone_shows_no_silence():
    lines = [f"2024-05-01 10:00:{second:02} step" for second in (1, 2, 3)]
    stopped = clock_of("2024-05-01 12:00:05 CANCELLED")
    assert silent_seconds(lines, stopped) == pytest.approx(7202)
    assert silent_seconds(lines, stopped, by_scheduler=True) is None
    assert silent_seconds(lines, stopped + 600, by_scheduler=True) is not None


@pytest.mark.parametrize(("minutes", "seen"), [(30, True), (90, True), (60, False), (330, False)])
def test_half_an_hour_alone_is_no_zone(minutes, seen):
    lines = [f"2024-05-01 10:00:{second:02} step" for second in (1, 2, 3)]
    stopped = clock_of("2024-05-01 10:00:03 x") + 60 * minutes
    assert (silent_seconds(lines, stopped, by_scheduler=True) is not None) == seen


@pytest.mark.parametrize("told", [True, False])
def test_what_a_process_prints_as_it_is_stopped_shows_the_zone_of_the_scheduler(tmp_path, told):
    steps = [f"2024-05-01 10:00:{second:02} begin {second}" for second in range(1, 9)]
    stop = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-05-01T12:00:08 DUE TO TIME LIMIT ***"
    last = ["2024-05-01 12:00:09 received SIGTERM"] if told else []
    ending, _ = diagnosed(tmp_path, *steps, stop, *last)
    assert ending.silent_seconds == (7200.0 if told else None)


def test_the_latest_line_counts_where_ranks_print_out_of_order():
    lines = printed("14:54:01", "14:54:02", "14:55:04", "14:54:03")
    assert silent_seconds(lines, clock_of("2024-01-10 14:55:05")) is None


def test_a_new_warning_that_is_printed_often_is_quoted_with_an_exception(tmp_path):
    trace = ["Traceback (most recent call last):", '  File "/w/a.py", line 3, in cv', "    return s / len(every)"]
    warned = [f"2026-06-16 10:09:{n:02} WARNING Expecting value: line 1 column {n}" for n in range(20)]
    steps = [megatron_line(1), megatron_line(2)]
    ending, _ = diagnosed(tmp_path, *steps, *warned, *trace, "ZeroDivisionError: division by zero")
    assert [(line.line, line.role) for line in ending.evidence] == [(3, "error"), (26, "root")]
    ending, _ = diagnosed(tmp_path, *warned[:3], *steps, *warned, *trace, "ZeroDivisionError: division by zero")
    assert [line.role for line in ending.evidence] == ["root"]


@pytest.mark.parametrize("stamp", ["2026-03-01 {}", "[2026年03月01日 {}]", "Mar 01 {}", "03/01/2026 {} AM"])
def test_a_silence_is_seen_by_the_clock_of_a_collector(tmp_path, stamp):
    """Nothing for an hour, then the job is stopped; the program itself prints no clock."""
    said = [f"begin {n}" for n in range(9)] + ["SignalException: Process 7 got signal: 15"]
    clocks = [*(f"08:00:0{n}" for n in range(9)), "09:10:08"]
    lines = (f"{stamp.format(clock)} {line}" for clock, line in zip(clocks, said, strict=True))
    ending, _ = diagnosed(tmp_path, *lines)
    assert ending.silent_seconds == 4200.0
