"""Stamps with a month and a day but no year: a clock, whose year nobody sees."""

import json
from datetime import datetime, timedelta

import polars as pl
import pytest
from helpers import megatron_line, run_logparse

from logparse.decode.read_run import read_run
from logparse.decode.values import clock
from logparse.decode.yearless_clock import clock_of_steps
from logparse.schema import is_dated

LATE = datetime(2025, 12, 31, 23, 30)


def read(text: str) -> datetime | None:
    return pl.select(clock(pl.lit(text))).item()


@pytest.mark.parametrize(
    "text",
    [
        "[07/05 12:34:56 d2.utils.events]:  eta: 0:10:00",
        "WARNING [07/05 12:34:56 lb.scheduler]: x",
        "INFO 07-05 12:34:56 [abstract.py:324] x",
        "I0705 12:34:56 140 metric_logger.py:214] x",
    ],
)
def test_stamp_without_a_year_is_read_at_the_beginning_of_a_line(text):
    assert read(text) == datetime(1904, 7, 5, 12, 34, 56)


@pytest.mark.parametrize(
    "text",
    ["Epoch 03/10 00:01:23 left", "[13/05 12:34:56 x", "[07/32 12:34:56 x", "[07/05 25:34:56 x", "[02/30 01:00:00 x"],
)
def test_counts_and_impossible_dates_are_no_stamp(text):
    assert read(text) is None


def test_a_stamp_with_a_year_wins():
    assert read("I0705 12:34:56 7 a.py:1] [2026-03-02 10:20:30] x") == datetime(2026, 3, 2, 10, 20, 30)


def steps(*times: datetime) -> pl.DataFrame:
    lines = {"source": "run.log", "line_number": range(len(times)), "timestamp": times}
    return pl.DataFrame(lines, schema_overrides={"timestamp": pl.Datetime("us")})


def kept(frame: pl.DataFrame) -> pl.Series:
    """The stamps of the clock of the steps."""
    return frame.with_columns(clock_of_steps(frame, ()).kept("timestamp"))["timestamp"]


def test_a_new_year_is_no_jump_back():
    frame = steps(datetime(1904, 12, 31, 23, 59), datetime(1904, 1, 1, 0, 1))
    times = kept(frame)
    assert times[1] - times[0] == timedelta(minutes=2)


@pytest.mark.parametrize("months", [(3, 3), (5, 10), (2, 7)])
def test_within_a_year_stamps_stay(months):
    frame = steps(*(datetime(1904, month, 2) for month in months))
    assert kept(frame).to_list() == frame["timestamp"].to_list()


def test_stamps_without_a_year_are_no_clock_next_to_dated_steps():
    frame = steps(datetime(2026, 3, 2), datetime(1904, 3, 2))
    assert kept(frame).to_list() == [datetime(2026, 3, 2), None]


def detectron(start: datetime, rows: int = 60, seconds: int = 60) -> str:
    lines = [f"[{start:%m/%d %H:%M:%S} d2.engine.train_loop]: Starting training from iteration 0"]
    for row in range(1, rows + 1):
        at = start + timedelta(seconds=120 + seconds * row)
        lines.append(
            f"[{at:%m/%d %H:%M:%S} d2.utils.events]:  eta: 1:00:00  iter: {20 * row - 1}  total_loss: {3 - row / 100}  "
            f"time: {seconds / 20:.4f}  last_time: {seconds / 20:.4f}  lr: 0.01  max_mem: 2304M"
        )
    return "\n".join(lines) + "\n"


def test_log_over_a_new_year_has_a_clock_and_shows_no_year(tmp_path):
    (tmp_path / "log.txt").write_text(detectron(LATE))
    screen = run_logparse("analyze", "log.txt", cwd=tmp_path).stdout
    # 3,720 s by the clock: 120 s before the first step, and 3 s of step 0, which is no step of the first line.
    assert "12-31 23:30, 1 h 2 min" in screen
    assert "start-up 3.3 %" in screen
    assert not any(year in screen for year in ("1903", "1904"))


def test_no_year_in_what_is_written(tmp_path):
    (tmp_path / "log.txt").write_text(detectron(LATE))
    run_logparse("analyze", "log.txt", "-o", "out", "--no-charts", "--tables", "csv", cwd=tmp_path)
    written = [path.read_text() for path in (tmp_path / "out").rglob("*.csv")]
    document = run_logparse("analyze", "log.txt", "--json", cwd=tmp_path).stdout
    assert written
    assert json.loads(document)
    assert not any(year in text for text in (*written, document) for year in ("1903-", "1904-", "1905-"))


def test_of_a_year_that_is_printed_all_is_written():
    assert is_dated(datetime(1970, 1, 1))
    assert not is_dated(datetime(1904, 12, 31))


@pytest.mark.parametrize("stamp", ["%H:%M:%S ", "[%H:%M:%S.%f] ", "%I:%M:%S %p "])
def test_a_clock_without_a_day_goes_on_after_midnight(tmp_path, stamp):
    """Steps of ten minutes over two midnights, with a save behind each."""
    begin = datetime(2026, 3, 1, 20, 5)
    times = [begin + n * timedelta(minutes=10) for n in range(240)]
    text = "".join(
        f"{time:{stamp}}{line}\n"
        for n, time in enumerate(times, 1)
        for line in (megatron_line(n, ms=600_000.0), f"saving checkpoint at iteration {n:7} to c")
    )
    (tmp_path / "run.log").write_text(text)
    screen = run_logparse("analyze", "run.log", "--no-color", cwd=tmp_path).stdout
    assert "· 20:05, 1 d 16 h\n" in screen
    log = read_run([str(tmp_path / "run.log")])
    for frame in (log.steps, log.records["events"].filter(pl.col("kind") == "save starts")):
        assert frame["timestamp"].diff().drop_nulls().unique().to_list() == [timedelta(minutes=10)]
