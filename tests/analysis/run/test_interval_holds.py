"""An interval holds its value: of every rate of every fixture, and of runs with one step that outweighs all others."""

import pytest
from fixture_runs import FOLDERS, name_of, run_of_fixture
from helpers import megatron_line
from runs import analyze_text

NAMES = ("rate", "step_time_low_ms", "step_time_ms", "step_time_high_ms")


def outside(rates) -> list[str]:
    known = rates.select(NAMES).drop_nulls().rows()
    return [f"{name}: {low} to {high} without {value}" for name, low, value, high in known if not low <= value <= high]


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_every_interval_of_a_fixture_holds_its_value(folder):
    run = run_of_fixture(folder)
    assert not outside(run.rates)
    left = run.expectations.plan.left
    if left is not None and left.seconds is not None:
        assert left.seconds_low <= left.seconds <= left.seconds_high


@pytest.mark.parametrize("at", [3, 60, 199])
@pytest.mark.parametrize("ms", [0.1, 9e7])
def test_an_interval_of_a_skewed_run_holds_its_value(tmp_path, at, ms):
    lines = [megatron_line(step, ms if step == at else 1000.0 + step % 3) for step in range(1, 200)]
    assert not outside(analyze_text(tmp_path, "\n".join(lines)).rates)
