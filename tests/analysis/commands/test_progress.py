"""The bar while a large log is read: told in bytes of the file, seen only by people, gone at the end."""

import gzip
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import megatron_log, run_logparse

from logparse.read.parse import read_run


def test_bytes_are_counted_over_all_files(tmp_path):
    (tmp_path / "a.log").write_text(megatron_log(20))
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(megatron_log(50).encode()))
    files = [tmp_path / "a.log", tmp_path / "b.log.gz"]
    told: list[tuple[int, int | None]] = []
    read_run([str(file) for file in files], watch=lambda done, total: told.append((done, total)))
    size = sum(file.stat().st_size for file in files)
    assert {total for _, total in told} == {size}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == size


def test_of_a_pipe_the_total_is_unknown(tmp_path):
    code = (
        "from logparse.read.parse import read_run\n"
        "told = []\n"
        "read_run(['-'], watch=lambda done, total: told.append((done, total)))\n"
        "print(told[-1])\n"
    )
    text = megatron_log(20).encode()
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True)
    assert done.stdout.decode().strip() == f"({len(text)}, None)"


def on_terminal(*arguments: str, cwd: Path, patience: str) -> str:
    """What the command writes to a standard error that is a terminal."""
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


def test_a_person_sees_bytes_and_rate_and_the_bar_goes_away(log):
    shown = on_terminal("analyze", "run.log", cwd=log, patience="-1")
    assert "reading" in shown
    assert "/s" in shown
    assert "\x1b[2K" in shown


def test_short_work_shows_no_bar(log):
    assert on_terminal("analyze", "run.log", cwd=log, patience="60") == ""


def test_quiet_shows_no_bar(log):
    assert on_terminal("analyze", "run.log", "--quiet", cwd=log, patience="-1") == ""


def test_a_script_sees_no_bar(log):
    assert run_logparse("analyze", "run.log", cwd=log).stderr == ""
