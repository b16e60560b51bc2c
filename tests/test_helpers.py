"""The command run in this process is the command as a process of its own runs it, and leaves nothing behind."""

import os
import sys
import warnings
from pathlib import Path

import pytest
from helpers import megatron_log, run_logparse, run_process, sweep_after

from analysis import cli
from logparse.language import current_language


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log())
    (tmp_path / os.fsdecode(b"caf\xe9.log")).write_text(megatron_log())
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "env"),
    sweep_after(
        5,
        [
            (["analyze", "-", "--json"], {}),
            (["analyze", os.fsdecode(b"caf\xe9.log"), "--quiet"], {}),
            (["analyze", "run.log", "-o", "out", "--no-charts", "--force"], {"LANG": "zh_CN.UTF-8"}),
            (["analyze", "--no-such-flag"], {}),
            (["analyze", "--help"], {"COLUMNS": "60"}),
            (["analyze", "run.log", "--hw", "910b"], {}),
            (["analyze", "gone.log", "--lang", "zh"], {}),
            (["models"], {"FORCE_COLOR": "1", "TERM": "xterm-256color"}),
            ([], {}),
        ],
    ),
    ids=lambda value: " ".join(value).encode("ascii", "replace").decode(),
)
def test_a_process_of_its_own_says_the_same(folder, arguments, env):
    given = {"cwd": folder, "stdin": megatron_log(7).encode()} | env
    here, there = run_logparse(*arguments, **given), run_process(*arguments, **given)
    assert (here.returncode, here.stdout, here.stderr) == (there.returncode, there.stdout, there.stderr)
    assert here.stdout + here.stderr


def place() -> tuple[object, ...]:
    """What a process has but once."""
    files = [os.fstat(number) for number in range(3)]
    streams = (sys.stdin, sys.stdout, sys.stderr, *((file.st_dev, file.st_ino) for file in files))
    return (Path.cwd(), dict(os.environ), sys.argv, sys.excepthook, current_language(), *warnings.filters, *streams)


def test_nothing_is_left_behind(folder):
    before = place()
    run_logparse("analyze", "run.log", cwd=folder, LANG="zh_CN.UTF-8", GITHUB_STEP_SUMMARY="page.md")
    assert place() == before


def test_nothing_is_left_behind_by_a_command_that_is_interrupted(folder, monkeypatch):
    def interrupted():
        warnings.simplefilter("ignore")
        raise KeyboardInterrupt

    before = place()
    monkeypatch.setattr(cli, "build_app", interrupted)
    assert run_logparse("analyze", "run.log", cwd=folder).returncode == 130
    assert place() == before


def test_what_python_reads_when_it_starts_needs_a_process(folder):
    with pytest.raises(ValueError, match="use run_process"):
        run_logparse("--version", cwd=folder, PYTHONIOENCODING="ascii")
