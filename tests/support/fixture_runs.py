"""The runs of all folders of fixtures, each analysed once in a process for all tests that look at every one."""

import contextlib
from functools import cache
from pathlib import Path

from helpers import ROOT

from analysis.flops import find_formula
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.run import Run

FIXTURES = ROOT / "fixtures"
# A folder is one run, with all of its logs.
FOLDERS = sorted({path.parent for path in FIXTURES.glob("*/*/*.log")})
HARDWARE, FORMULA = "910b2", "ascendspeed"


@cache
def run_of_fixture(folder: Path) -> Run:
    """The run of the logs of ``folder``, which are named without their folder."""
    logs = sorted(path.name for path in folder.glob("*.log"))
    assert logs, f"{folder} holds no *.log; add the log that this case is about"
    with contextlib.chdir(folder):
        return analyze_logs(logs, RunOptions(formula=find_formula(FORMULA), hw=HARDWARE))


def name_of(folder: Path) -> str:
    """A folder of fixtures as the name of a test."""
    return folder.relative_to(FIXTURES).as_posix()
