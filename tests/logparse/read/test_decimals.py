"""Decimals to floats, against Python's own reading of their text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logparse.read.decimals import LEAST_POWER, MANY, MOST_DIGITS, floats_in, floats_of

DECIMALS = st.lists(
    st.tuples(st.integers(0, 10**MOST_DIGITS - 1), st.integers(LEAST_POWER - 10, 40)), min_size=1, max_size=50
)


def read(decimals):
    return floats_of(np.array([d for d, _ in decimals], np.uint64), np.array([p for _, p in decimals], np.int64))


@given(DECIMALS)
def test_floats_that_are_sure_are_the_nearest(decimals):
    found, unsure = read(decimals)
    nearest = [float(f"{digits}e{power}") for digits, power in decimals]
    assert all(one == other for one, other, no in zip(found, nearest, unsure, strict=True) if not no)


@given(st.lists(st.floats(1e-25, 1e6), min_size=1, max_size=50))
def test_floats_as_python_writes_them_are_read_by_arithmetic_alone(floats):
    decimals = [f"{value:.16e}".replace(".", "").split("e") for value in floats]
    found, unsure = read([(int(digits), int(power) - 16) for digits, power in decimals])
    assert found[~unsure].tolist() == [value for value, no in zip(floats, unsure, strict=True) if not no]
    assert not unsure[np.log2(floats) % 1 > 0].any()


# The middle between two floats, a little more, a little less, and below a power of two.
@pytest.mark.parametrize(
    "text",
    ["9007199254740993e-1", "9007199254740993000e-22", "1000000000000000111e-30", "4503599627370497500e-3"]
    + [f"{2**53 + 1}{end}e-3" for end in ("000", "001", "999")]
    + [f"{2**62 - 256}e-1", f"{2**63 - 512}e-5"],
)
def test_what_lies_in_the_middle_is_left_open_or_right(text):
    digits, power = text.split("e")
    found, unsure = read([(int(digits), int(power))])
    assert unsure[0] or found[0] == float(text)


def test_a_middle_is_left_open():
    _, unsure = read([(2 * (2**53 + 2**52) + 1, 0), ((2**53 + 1) * 10, -1)])
    assert unsure.tolist() == [True, True]


def test_texts_are_read_with_commas_between_thousands():
    texts = np.frombuffer(b"1,234.510.2500e1", np.uint8).reshape(2, 8)
    assert floats_in(texts).tolist() == [1234.51, 2.5]


def test_what_is_too_much_to_count_is_left_open():
    _, unsure = read([(MANY, -3), (MANY, 0)])
    assert unsure.tolist() == [True, True]
