"""Damaged logs of all formats are answered as promised: 50 of those that benchmarks/mutated_logs.py reads."""

import pytest
from mutated_logs import case_of, hold_all


@pytest.mark.slow
def test_damaged_logs_are_answered_as_promised():
    tally = hold_all(range(50))
    assert tally.faults == {}
    assert tally.outcomes["answered"] > 25


def test_the_number_decides_what_is_damaged():
    assert case_of(7) == case_of(7)
    assert len({case_of(n).data for n in range(20)}) == 20
