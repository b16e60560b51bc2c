"""Formats that installed packages give by the entry point group ``logparse.formats``."""

import json

import pytest

from analysis.commands.formats import show
from analysis.present.words import say
from logparse.decode.read_run import read_run
from logparse.errors import UsageError
from logparse.formats import all_formats, find_format, known_formats, packaged
from logparse.formats._packages import packaged_formats

OURS = """
title = "Our trainer"
marker = ["| ours "]
head = 'step (?P<step>\\d+) \\|'
pair = '(\\w+) ([^|]*?)\\s*\\|'
separator = '\\|'
ignored = ["ours"]
[labels]
loss = "loss"
ms = "elapsed_time_per_iteration_ms"
"""
MODULE = """
from pathlib import Path
from logparse.formats.megatron import FORMAT as MEGATRON
OURS = [Path(__file__).with_name("ours.toml")]
NUMBER = 3
"""
POINTS = """
[logparse.formats]
ours = ours_logs:OURS
taken = ours_logs:MEGATRON
number = ours_logs:NUMBER
missing = ours_logs_of_old:FORMAT
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that gives a format, one of a name that is taken, and two that are none."""
    info = tmp_path / "ours_logs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ours-logs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (tmp_path / "ours_logs.py").write_text(MODULE)
    (tmp_path / "ours.toml").write_text(OURS)
    monkeypatch.syspath_prepend(str(tmp_path))
    packaged_formats.cache_clear()
    yield tmp_path
    packaged_formats.cache_clear()


def test_a_package_gives_a_format(installed, capsys):
    (installed / "run.log").write_text("".join(f"step {n} | ours 1 | loss 2.5 | ms 12 |\n" for n in range(1, 5)))
    run = read_run([str(installed / "run.log")])
    assert (run.format.name, len(run.steps), run.format in all_formats()) == ("ours", 4, False)
    assert find_format("ours") in known_formats()
    show(as_json=True)
    listed = {fmt["name"]: fmt["package"] for fmt in json.loads(capsys.readouterr().out)}
    assert (listed["ours"], listed["megatron"]) == ("ours-logs", None)
    show(name="ours")
    assert "Our trainer (of the package ours-logs)" in capsys.readouterr().out


def test_what_cannot_be_used_is_left_out_with_the_name_of_its_package(installed, capsys):
    notes = packaged().notes
    assert [note.code for note in notes] == ["format_package_broken", "format_package_broken", "format_name_taken"]
    assert all("ours-logs" in say(note) for note in notes)
    assert "No module named 'ours_logs_of_old'" in say(notes[0])
    assert (notes[2].fields["name"], notes[2].fields["other"]) == ("megatron", "logparse")
    show()
    assert capsys.readouterr().err.count("ours-logs") == len(notes)


def test_without_packages_there_is_none(monkeypatch):
    packaged_formats.cache_clear()
    assert known_formats() == all_formats()
    with pytest.raises(UsageError):
        find_format("ours")
