"""An interval holds its value: of every rate of every fixture, and of runs with one step that outweighs all others."""

import pytest
from helpers import ROOT, megatron_line
from runs import analyze_text

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

FIXTURES = ROOT / "fixtures"
NAMES = ("rate", "step_time_low_ms", "step_time_ms", "step_time_high_ms")
CASES = sorted({path.parent for path in FIXTURES.glob("*/*/*.log")})


def outside(rates) -> list[str]:
    known = rates.select(NAMES).drop_nulls().rows()
    return [f"{name}: {low} to {high} without {value}" for name, low, value, high in known if not low <= value <= high]


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_every_interval_of_a_fixture_holds_its_value(case):
    run = analyze_logs([str(path) for path in sorted(case.glob("*.log"))], RunOptions(hw="910b2"))
    assert not outside(run.rates)
    left = run.expectations.plan.left
    if left is not None and left.seconds is not None:
        assert left.seconds_low <= left.seconds <= left.seconds_high


@pytest.mark.parametrize("at", [3, 60, 199])
@pytest.mark.parametrize("ms", [0.1, 9e7])
def test_an_interval_of_a_skewed_run_holds_its_value(tmp_path, at, ms):
    lines = [megatron_line(step, ms if step == at else 1000.0 + step % 3) for step in range(1, 200)]
    assert not outside(analyze_text(tmp_path, "\n".join(lines)).rates)
