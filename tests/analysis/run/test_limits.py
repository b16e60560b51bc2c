"""A condition says a name, how it compares, and a number; whatever else is refused with what to write."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.run.checks.limits import COMPARISONS, Condition, parse_condition
from logparse.errors import UsageError

NAMES = ("mfu", "goodput", "with_stalls_tokens_per_second_per_device")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("mfu<0.3", Condition("mfu", "<", 0.3)),
        (" MFU >= 45 % ", Condition("mfu", ">=", 0.45)),
        ("goodput<=.9", Condition("goodput", "<=", 0.9)),
        ("with_stalls_tokens_per_second_per_device>2.5e3", Condition(NAMES[2], ">", 2500.0)),
    ],
)
def test_what_a_condition_says(text, condition):
    assert parse_condition(text, "--where", NAMES) == condition


@given(st.sampled_from(NAMES), st.sampled_from(sorted(COMPARISONS)), st.floats(0, 1e9), st.floats(allow_nan=True))
def test_a_condition_reads_as_it_is_written_and_holds_as_python_says(name, sign, limit, value):
    found = parse_condition(f"{name}{sign}{limit!r}", "--where", NAMES)
    assert found == Condition(name, sign, limit)
    assert found.holds(value) is COMPARISONS[sign](value, limit)


def test_of_what_is_unknown_nothing_is_said():
    assert Condition("mfu", "<", 0.3).holds(None) is None
    assert Condition("mfu", "<", 0.3).holds(math.nan) is False


@pytest.mark.parametrize("text", ["", "mfu", "mfu=0.3", "mfu<", "<0.3", "mfu<x", "mfu<0.3<1", "mfu < -1", "0.3<mfu"])
def test_anything_else_is_refused_with_what_to_write(text):
    with pytest.raises(UsageError, match="--where is") as caught:
        parse_condition(text, "--where", NAMES)
    assert "--where 'mfu<0.3'" in caught.value.remedy


def test_a_name_that_does_not_exist_is_refused_with_its_neighbours():
    with pytest.raises(UsageError, match="unknown column 'goodputt'") as caught:
        parse_condition("goodputt<1", "--where", NAMES)
    assert "did you mean goodput?" in caught.value.remedy
