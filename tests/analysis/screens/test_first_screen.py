"""The first screen: when the run began, and how far it can be trusted."""

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, run_logparse

from analysis.screens.who import who
from logparse import analyze


@pytest.fixture
def log(tmp_path):
    """20 steps of a second, from 08:10 on, of a process that printed its first stamp at 08:00."""
    lines = ["[2026-03-01 08:00:00] the process starts", arguments_dump(SETTINGS).rstrip("\n")]
    lines += [megatron_line(step, 1000.0, f"2026-03-01 08:10:{step:02}") for step in range(1, 21)]
    path = tmp_path / "worker_0.log"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_run_begins_where_its_log_does(log):
    assert " · 2026-03-01 08:00, 10 min 20 s · " in who(analyze(log))


def test_a_restart_by_another_clock_does_not_begin_the_run(log, tmp_path):
    """The second process prints in a zone eight hours behind."""
    lines = ["[2026-03-01 00:20:00] the process starts", arguments_dump(SETTINGS).rstrip("\n")]
    lines += [megatron_line(step, 1000.0, f"2026-03-01 00:30:{step - 20:02}") for step in range(21, 41)]
    log.write_text(log.read_text() + "\n".join(lines) + "\n")
    assert " · 2026-03-01 08:00, " in who(analyze(log))


def test_copies_by_other_ranks_do_not_count_against_the_run(log, tmp_path):
    (tmp_path / "worker_1.log").write_text(log.read_text())
    shown = " ".join(run_logparse("analyze", str(tmp_path), cwd=tmp_path).stdout.split())
    assert "19 of 20 step lines count; 1 warm-up; 20 more are copies by other ranks" in shown
