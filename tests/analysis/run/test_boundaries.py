"""Thresholds, each from both sides: what lies just within it and what lies just beyond."""

import polars as pl
import pytest
from helpers import megatron_line
from runs import events, no_starts, rows

from analysis.run.rows.exclusion_reasons import STALL
from analysis.run.rows.restarts import number_starts, trace_starts
from analysis.run.rows.row_selection import select_rows
from logparse.context.dialects import interpret
from logparse.context.run_context import build_context
from logparse.decode.read_run import read_run
from logparse.findings import info
from logparse.formats import find_format
from logparse.schema import QUANTITIES, SETTING_COLUMNS

FLAGGED = [q.name for q in QUANTITIES if q.kind == "int" and q.flag and q.least == 1]
PRINTED = {name.quantity: name.setting for name in find_format("megatron").names if not name.when}


@pytest.mark.parametrize("quantity", [name for name in FLAGGED if name in PRINTED and name != "num_experts"])
@pytest.mark.parametrize(("printed", "known"), [("-1", None), ("0", None), ("1", 1)])
def test_a_size_below_one_is_a_placeholder(quantity, printed, known):
    kind, _, name = PRINTED[quantity].partition(":")
    schema = {c.name: c.dtype for c in SETTING_COLUMNS}
    settings = pl.DataFrame([(name, printed, kind, "run.log", 1)], schema=schema, orient="row")
    assert build_context(settings, find_format("megatron")).get(quantity) == known


@pytest.mark.parametrize(("late", "taken_back"), [(-601, False), (-599, True), (0, True), (599, True), (601, False)])
@pytest.mark.parametrize("hours", [-8, 5])
def test_stamps_are_in_utc_within_ten_minutes_of_whole_hours(tmp_path, hours, late, taken_back):
    """Training starts at 12:00:00, and the first step takes 5 s."""
    seconds = 12 * 3600 + hours * 3600 + 5 + late
    clock = f"2026-03-01 {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    path = tmp_path / "run.log"
    begun = "[before the start of training step] datetime: 2026-03-01 12:00:00 "
    path.write_text(f"{begun}\n{megatron_line(1, 5000.0, clock)}\n")
    notes = interpret(read_run([str(path)])).notes
    assert notes == ((info("stamps_in_utc", hours=hours),) if taken_back else ())


@pytest.mark.parametrize(("sigmas", "stalls"), [(5.5, []), (6.5, [31])])
def test_in_a_noisy_run_a_stall_is_beyond_six_sigmas(sigmas, stalls):
    """Rows of 900, 1000 and 1100 ms in turn: the median distance from 1000 ms is 100 ms, of which sigma is 1.4826."""
    times = [900.0 + 100 * (i % 3) for i in range(61)]
    times[30] = 1000 + sigmas * 148.26
    steps = rows(list(range(1, 62)), step_time_ms=times)
    marked = select_rows(trace_starts(number_starts(steps, no_starts()), events(), None))
    assert marked.filter(pl.col("excluded_reason") == STALL)["step"].to_list() == stalls
