"""The bar while a large log is read: told in bytes of the file, seen only by people, gone at the end."""

import gzip
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import megatron_log, run_logparse

from analysis.commands import _progress
from analysis.commands._progress import ReadingProgress
from logparse.decode.read_run import Amount, read_run


def test_bytes_are_counted_over_all_files(tmp_path):
    (tmp_path / "a.log").write_text(megatron_log(20))
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(megatron_log(50).encode()))
    files = [tmp_path / "a.log", tmp_path / "b.log.gz"]
    told: list[Amount] = []
    read_run([str(file) for file in files], watch=told.append)
    size = sum(file.stat().st_size for file in files)
    assert {amount.total for amount in told} == {size}
    assert [amount.read for amount in told] == sorted(amount.read for amount in told)
    assert told[-1] == Amount(size, size, 2, 2)


def test_of_a_pipe_the_total_is_unknown(tmp_path):
    code = (
        "from logparse.decode.read_run import read_run\n"
        "told = []\n"
        "read_run(['-'], watch=told.append)\n"
        "print((told[-1].read, told[-1].total))\n"
    )
    text = megatron_log(20).encode()
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True)
    assert done.stdout.decode().strip() == f"({len(text)}, None)"


def on_terminal(*arguments: str, cwd: Path, patience: float) -> str:
    """What the command writes to a standard error that is taken for a terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_progress, "PATIENCE_SECONDS", patience)
        return run_logparse(*arguments, cwd=cwd, FORCE_COLOR="1", TERM="xterm").stderr


def on_real_terminal(*arguments: str, cwd: Path, patience: float) -> str:
    """What it writes in a process of its own to one that is a terminal."""
    code = (
        "import analysis.commands._progress as progress\n"
        f"progress.PATIENCE_SECONDS = {patience}\n"
        "from logparse.__main__ import main\n"
        "main()\n"
    )
    mine, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=cwd, stdout=subprocess.DEVNULL, stderr=theirs, env=TERMINAL
    ):
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(mine, 4096):
                shown += part
        except OSError:
            pass
    os.close(mine)
    return shown.decode()


TERMINAL = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {
    "TERM": "xterm",
    "LC_ALL": "C.UTF-8",
}


@pytest.fixture
def log(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(20))
    return tmp_path


@pytest.mark.parametrize("shown_on", [on_terminal, on_real_terminal], ids=["here", "process"])
def test_a_person_sees_bytes_and_rate_and_the_bar_goes_away(log, shown_on):
    # A rate takes two readings.
    (log / "more.log").write_text("noise\n")
    shown = shown_on("analyze", "run.log", "more.log", cwd=log, patience=-1)
    assert "reading" in shown
    assert "/s" in shown
    assert "\x1b[2K" in shown


def test_short_work_shows_no_bar(log):
    assert on_terminal("analyze", "run.log", cwd=log, patience=60) == ""


def test_quiet_shows_no_bar(log):
    assert on_terminal("analyze", "run.log", "--quiet", cwd=log, patience=-1) == ""


def test_a_script_sees_no_bar(log):
    assert run_logparse("analyze", "run.log", cwd=log).stderr == ""


def test_the_runs_are_counted_and_the_rest_is_estimated(log):
    (log / "other.log").write_text(megatron_log(30))
    (log / "none.log").write_text("no step line\n")
    shown = on_terminal("analyze", "--each", "run.log", "none.log", "other.log", cwd=log, patience=-1)
    counted = re.findall(r"reading, (\d) of 3 runs", shown)
    assert counted == sorted(counted)
    assert counted[-1] == "3"
    assert re.search(r"\d:\d\d:\d\d", shown)


def progress_of(weights: list[int]) -> tuple[ReadingProgress, list[dict[str, object]]]:
    shown: list[dict[str, object]] = []
    return ReadingProgress(lambda **fields: shown.append(fields), weights), shown


def test_bytes_go_on_from_run_to_run_to_the_sum_of_all(log):
    (log / "other.log").write_text(megatron_log(30))
    names = [log / "run.log", log / "other.log"]
    sizes = [name.stat().st_size for name in names]
    progress, shown = progress_of(sizes)
    for number, name in enumerate(names):
        read_run([str(name)], watch=progress.watches[number])
        progress.done(number)
    completed = [fields["completed"] for fields in shown]
    assert completed == sorted(completed)
    assert completed[-1] == sum(sizes)
    assert {fields["total"] for fields in shown} == {sum(sizes)}


def test_runs_that_are_read_elsewhere_count_in_any_order():
    progress, shown = progress_of([10, 20, 70])
    for number in (2, 0, 1):
        progress.done(number)
    assert [fields["completed"] for fields in shown] == [70, 80, 100]


def test_a_person_sees_how_many_charts_are_drawn(log):
    shown = on_terminal("analyze", "run.log", "-o", "out", cwd=log, patience=-1)
    drawn = len(list((log / "out/charts").glob("*.svg"))) + 1
    assert f"{drawn}/{drawn}" in shown.split("drawing")[-1]
    assert shown.rstrip().endswith("wrote out/report.html")


def test_quiet_shows_no_charts_being_drawn(log):
    assert on_terminal("analyze", "run.log", "-o", "out", "--quiet", cwd=log, patience=-1) == ""


def test_a_script_sees_no_charts_being_drawn(log):
    assert run_logparse("analyze", "run.log", "-o", "out", cwd=log).stderr == "wrote out/report.html\n"
