"""The formulas beside the frameworks' own functions, and beside what their own code printed."""

import pytest
from second_opinion import FUNCTIONS, RUNS, differences, identified


@pytest.mark.parametrize(
    "function", FUNCTIONS, ids=[f"{f['framework']} {f['versions'][0]}-{f['formula']}" for f in FUNCTIONS]
)
def test_a_formula_gives_what_the_framework_gives(function):
    assert differences(function) == pytest.approx(dict.fromkeys(function["flops_per_token"], 0.0), abs=1e-12)


@pytest.mark.parametrize("run", RUNS, ids=[f"{i}-{run['framework']}" for i, run in enumerate(RUNS)])
def test_the_formula_of_what_a_framework_printed_is_found(run):
    found = identified(run)
    assert run["formula"] in found.matches
    assert found.scale == 1


def test_the_frameworks_are_those_of_several_makers():
    assert len({function["framework"] for function in FUNCTIONS}) >= 7
    assert len(RUNS) >= 15
