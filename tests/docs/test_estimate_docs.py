"""What docs/estimates.md shows is what happens."""

import json
import shlex

import pytest
import regex
from helpers import ROOT, run_logparse, run_shown

from analysis.published.baselines import published

pytestmark = pytest.mark.usefixtures("analysed_once")

PAGE = (ROOT / "docs" / "estimates.md").read_text(encoding="utf-8")
COMMANDS = [line for text in regex.findall(r"```sh\n(.*?)```", PAGE, regex.DOTALL) for line in text.splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(command, tmp_path):
    done = run_shown(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if "-o" in command.split():
        assert (tmp_path / "out" / "estimate" / "charts" / "memory.svg").exists()


def test_the_example_of_sequence_parallelism_overflows_and_fits_as_told():
    told = regex.search(r"The first overflows with ([\d.]+) GB, the second fits with ([\d.]+) GB", PAGE)
    without, parallel = (c for c in COMMANDS if "llama2-70b --hw h100" in c)
    for command, size, fits in ((without, told[1], False), (parallel, told[2], True)):
        done = run_logparse(*shlex.split(command)[1:], "--json", cwd=ROOT)
        layout = json.loads(done.stdout)["layout"]
        assert f"{max(s['total_bytes'] for s in layout['stages']) / 1e9:.2f}" == size
        assert layout["fits"] is fits


def test_there_are_commands():
    assert len(COMMANDS) >= 6


def test_the_number_of_published_rows_is_right():
    assert f"The {len(published())} rows are in" in PAGE
