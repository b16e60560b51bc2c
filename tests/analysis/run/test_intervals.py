"""The interval of a figure: repeatable, honest for neighbours that resemble each other, absent where rows are few."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.run.rates import intervals as bootstrap
from analysis.run.rates.intervals import FEWEST, LEVEL, median_interval, ratio_interval


def autoregressive(count: int, share: float, seed: int) -> np.ndarray:
    """A series around 0 in which each value keeps ``share`` of the one before; its spread is 1."""
    draw = np.random.default_rng(seed).standard_normal(count)
    values = [draw[0]]
    for shock in draw[1:]:
        values.append(share * values[-1] + np.sqrt(1 - share**2) * shock)
    return np.array(values)


def plain_interval(rows: np.ndarray, figure: Callable[[np.ndarray], np.ndarray]) -> tuple[float, float]:
    """The same resamples with every row of them (n x columns) gathered, so that any figure can be taken of them."""
    n = len(rows)
    length = max(2, round(n ** (1 / 3)))
    generator = np.random.default_rng(0)
    values = []
    for _ in range(0, min(bootstrap.RESAMPLES, max(200, 20_000_000 // n)), 50):
        begins = generator.integers(0, n - length + 1, size=(50, -(-n // length)))
        index = (begins[:, :, None] + np.arange(length)).reshape(50, -1)[:, :n]
        values.append(figure(rows[index]))
    low, high = np.quantile(np.concatenate(values), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


SERIES = {
    "noise": lambda rng, n: rng.normal(5000, 50, n),
    "ties": lambda rng, n: rng.integers(10, 14, n) / 2,
    "walk": lambda rng, n: 5000 + rng.normal(0, 1, n).cumsum(),
    "two levels": lambda rng, n: np.where(np.arange(n) < n / 2, 5000.0, 5500.0) + rng.normal(0, 1, n),
    "every other": lambda rng, n: 5000 + 500.0 * (np.arange(n) % 2) + rng.normal(0, 1, n),
}
COUNTS = st.integers(FEWEST, 60) | st.integers(FEWEST, 3000)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(SERIES)), COUNTS, st.integers(0, 2**32))
def test_medians_are_those_of_the_rows_drawn(monkeypatch, kind, count, seed):
    monkeypatch.setattr(bootstrap, "RESAMPLES", 200)
    values = SERIES[kind](np.random.default_rng(seed), count)
    assert median_interval(values) == plain_interval(values, lambda drawn: np.median(drawn, axis=1))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(SERIES)), COUNTS, st.integers(0, 2**32))
def test_ratios_are_those_of_the_rows_drawn(monkeypatch, kind, count, seed):
    monkeypatch.setattr(bootstrap, "RESAMPLES", 200)
    rng = np.random.default_rng(seed)
    time, useful = SERIES[kind](rng, count), rng.integers(0, 3, count).astype(float)
    useful[0::2] += 1  # Two rows that follow each other hold a step, and so does any block.

    def ratio(drawn: np.ndarray) -> np.ndarray:
        return drawn[:, :, 0].sum(axis=1) / drawn[:, :, 1].sum(axis=1)

    expected = plain_interval(np.column_stack([time, useful]), ratio)
    assert ratio_interval(time, useful) == pytest.approx(expected, rel=1e-12)


def test_resamples_without_a_step_have_no_ratio():
    """A single useful step in 40 rows is not in every draw; the ratio of the others is finite."""
    useful = np.zeros(40)
    useful[20] = 1
    low, high = ratio_interval(np.ones(40), useful)
    assert 0 < low <= high < np.inf


def test_the_same_rows_have_the_same_interval():
    rows = autoregressive(100, 0.3, seed=1)
    assert median_interval(rows) == median_interval(rows.copy())


def test_another_seed_gives_another_interval():
    rows = autoregressive(100, 0.3, seed=1)
    assert median_interval(rows) != median_interval(rows, seed=1)


def test_it_covers_the_true_median_about_as_often_as_it_says(monkeypatch):
    """95 % is meant; blocks of 7 rows are a little short for such a series, so some less is right too."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 400)
    bounds = [median_interval(autoregressive(300, 0.5, seed)) for seed in range(200)]
    covered = sum(low <= 0 <= high for low, high in bounds)
    assert 170 <= covered <= 199


def test_blocks_are_wider_than_single_rows_would_be():
    """Single rows drawn from such a series would promise 2 x 1.96 x 1.25 / sqrt(n), as if each row were news."""
    low, high = median_interval(autoregressive(400, 0.8, seed=3))
    assert high - low > 1.3 * 2 * 1.96 * 1.25 / np.sqrt(400)


@pytest.mark.parametrize(("count", "known"), [(0, False), (FEWEST - 1, False), (FEWEST, True)])
def test_few_rows_have_no_interval(count, known):
    assert (median_interval(autoregressive(count, 0.0, 0) if count else np.empty(0)) is not None) is known


def test_rows_that_are_all_the_same_have_a_point():
    assert median_interval(np.full(50, 7000.0)) == (7000.0, 7000.0)


def test_it_lies_around_the_figure_and_within_the_rows():
    rows = autoregressive(60, 0.3, seed=4)
    low, high = median_interval(rows)
    assert rows.min() <= low < np.median(rows) < high <= rows.max()


def test_columns_of_a_row_stay_together():
    """Each row's second value is twice its first, so any draw has the ratio 2."""
    rows = np.arange(1.0, 41.0)
    assert ratio_interval(2 * rows, rows) == (2.0, 2.0)


def test_more_rows_make_it_narrower():
    few, many = (median_interval(autoregressive(count, 0.0, seed=5)) for count in (50, 5000))
    assert many[1] - many[0] < (few[1] - few[0]) / 3
