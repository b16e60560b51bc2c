"""Values that no training prints: left out with a note, never a traceback or a number without end in JSON."""

import gzip
import json
import random
from pathlib import Path

import pytest
from helpers import megatron_line, of_code, run_logparse

from logparse.decode.read_run import ParsedLog, read_run

CLOCK = " [2026-03-01 08:00:{second:02d}]"
MANY = 4000


def written(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def stamped(step: int, clock: str = CLOCK) -> str:
    return megatron_line(step, clock=clock.format(second=step))


@pytest.mark.parametrize("ms", ["1e-308", "5e-324", "1e-4", "1e400", "nan", "-1", "0"])
def test_step_time_of_no_step_is_left_out_with_a_note(tmp_path, ms):
    lines = [megatron_line(step, pairs={"elapsed time per iteration (ms)": ms}) for step in (1, 2)]
    written(tmp_path / "run.log", *lines, *(megatron_line(step) for step in range(3, 9)))
    done = run_logparse("analyze", "run.log", "--json", cwd=tmp_path)
    (run,) = json.loads(done.stdout, parse_constant=pytest.fail)["runs"]
    assert run["coverage"]["step_lines"] == 6
    assert [note["fields"]["text"] for note in run["notes"] if note["code"] == "value_malformed"] == [ms, ms]


@pytest.mark.parametrize("ms", ["1e-308", "1e400"])
def test_log_of_such_step_times_alone_is_an_error(tmp_path, ms):
    lines = [megatron_line(step, pairs={"elapsed time per iteration (ms)": ms}) for step in range(1, 9)]
    written(tmp_path / "run.log", *lines)
    done = run_logparse("analyze", "run.log", "--json", cwd=tmp_path)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("year", ["0000", "0001", "1969", "2200", "9999", "10000"])
def test_stamp_of_a_year_of_no_training_is_missing(tmp_path, year):
    clock = CLOCK.replace("2026", year)
    text = f"{year[-4:]}-03-01 08:00:01"
    log = read_run([written(tmp_path / "run.log", stamped(1, clock), *(stamped(step) for step in range(2, 9)))])
    assert log.steps["timestamp"].is_null().to_list() == [True] + 7 * [False]
    (note,) = of_code(log.notes, "stamps_invalid")
    assert (note.fields["n"], note.fields["text"], note.fields["line"]) == (1, text, 1)
    assert run_logparse("analyze", "run.log", "--json", cwd=tmp_path).returncode == 0


def test_damaged_stamps_of_a_large_log_are_reported_by_the_fast_path_too(tmp_path):
    steps = [stamped(step % 60 or 1) for step in range(1, MANY)]
    damaged = [stamped(1, CLOCK.replace("2026", "0000"))]
    log = read_run([written(tmp_path / "run.log", *steps, *damaged, *steps)])
    (note,) = of_code(log.notes, "stamps_invalid")
    assert (note.fields["n"], note.fields["line"]) == (1, MANY)
    assert log.steps["timestamp"].null_count() == 1


def test_mlperf_times_of_no_date_are_no_traceback(tmp_path):
    lines = [
        ':::MLLOG {"time_ms": 1e-308, "event_type": "POINT_IN_TIME", "key": "global_batch_size", "value": 8}',
        ':::MLLOG {"time_ms": 1759907400000, "event_type": "INTERVAL_START", "key": "run_start", "value": null}',
        ':::MLLOG {"time_ms": 1759907725805, "event_type": "POINT_IN_TIME", "key": "tracked_stats", '
        '"value": {"throughput": 1e-308}, "metadata": {"step": 1920}}',
    ]
    written(tmp_path / "run.log", *lines)
    done = run_logparse("analyze", "run.log", "--json", cwd=tmp_path)
    assert done.returncode in (0, 3)
    assert "Traceback" not in done.stderr


def test_long_line_is_cut_counted_and_noted(tmp_path):
    long = megatron_line(2) + "".join(f" label {n}: 1 |" for n in range(100_000))
    path = written(tmp_path / "run.log", megatron_line(1), long, *(megatron_line(step) for step in range(3, 9)))
    log = read_run([path])
    assert log.steps["step"].to_list() == list(range(1, 9))
    (note,) = of_code(log.notes, "lines_cut")
    assert note.level == "warning"
    assert note.fields == {"n": 1, "size": 1, "source": path, "line": 2}
    assert 50_000 < len(log.coverage.unread_labels) < 100_000


def damaged_gzip(path: Path, begin: float, seed: int) -> ParsedLog:
    """A log of random losses, compressed, with one bit changed after ``begin`` of it."""
    draw = random.Random(seed)
    losses = [f"{draw.random() * 3:.6E}" for _ in range(MANY)]
    lines = [megatron_line(n + 1, ms=1000 + n % 9, pairs={"lm loss": loss}) for n, loss in enumerate(losses)]
    data = bytearray(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    data[int(begin * len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(bytes(data))
    log = read_run([str(path)])
    true = {(n + 1, float(loss)) for n, loss in enumerate(losses)}
    wrong = [row for row in log.steps.select("step", "loss").iter_rows() if row not in true]
    # A digit alone may have changed, and what no line shows is said.
    assert len(wrong) <= 3 or of_code(log.notes, "damage_not_located")
    return log


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(2, 6))])
def test_a_damaged_gzip_says_first_that_what_follows_the_damage_is_unknown(tmp_path, seed):
    log = damaged_gzip(tmp_path / "run.log.gz", 0.5, seed)
    assert len(of_code(log.notes, "file_damaged")) == 1
    assert len(of_code(log.notes, "damage_not_located")) == 1
    done = run_logparse("analyze", "run.log.gz", cwd=tmp_path)
    assert "damaged" in done.stdout.split("step time")[0]


def test_gzip_that_ends_early_is_right_as_far_as_it_goes(tmp_path):
    lines = "".join(f"{megatron_line(step)}\n" for step in range(1, MANY))
    data = gzip.compress(lines.encode())
    (tmp_path / "run.log.gz").write_bytes(data[: len(data) // 2])
    log = read_run([str(tmp_path / "run.log.gz")])
    assert len(of_code(log.notes, "file_damaged")) == 1
    assert of_code(log.notes, "damage_not_located") == []
