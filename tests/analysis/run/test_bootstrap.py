"""The interval of a figure: repeatable, honest for neighbours that resemble each other, absent where rows are few."""

import numpy as np
import pytest

from analysis.run import bootstrap
from analysis.run.bootstrap import FEWEST, block_interval


def median(drawn):
    return np.median(drawn[:, :, 0], axis=1)


def autoregressive(count: int, share: float, seed: int) -> np.ndarray:
    """A series around 0 in which each value keeps ``share`` of the one before; its spread is 1."""
    draw = np.random.default_rng(seed).standard_normal(count)
    values = [draw[0]]
    for shock in draw[1:]:
        values.append(share * values[-1] + np.sqrt(1 - share**2) * shock)
    return np.array(values).reshape(-1, 1)


def test_the_same_rows_have_the_same_interval():
    rows = autoregressive(100, 0.3, seed=1)
    assert block_interval(rows, median) == block_interval(rows.copy(), median)


def test_another_seed_gives_another_interval():
    rows = autoregressive(100, 0.3, seed=1)
    assert block_interval(rows, median) != block_interval(rows, median, seed=1)


def test_it_covers_the_true_median_about_as_often_as_it_says(monkeypatch):
    """95 % is meant; blocks of 7 rows are a little short for such a series, so some less is right too."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 400)
    bounds = [block_interval(autoregressive(300, 0.5, seed), median) for seed in range(200)]
    covered = sum(low <= 0 <= high for low, high in bounds)
    assert 170 <= covered <= 199


def test_blocks_are_wider_than_single_rows_would_be():
    """Single rows drawn from such a series would promise 2 x 1.96 x 1.25 / sqrt(n), as if each row were news."""
    low, high = block_interval(autoregressive(400, 0.8, seed=3), median)
    assert high - low > 1.3 * 2 * 1.96 * 1.25 / np.sqrt(400)


@pytest.mark.parametrize(("count", "known"), [(0, False), (FEWEST - 1, False), (FEWEST, True)])
def test_few_rows_have_no_interval(count, known):
    assert (block_interval(autoregressive(count, 0.0, 0) if count else np.empty((0, 1)), median) is not None) is known


def test_rows_that_are_all_the_same_have_a_point():
    assert block_interval(np.full((50, 1), 7000.0), median) == (7000.0, 7000.0)


def test_it_lies_around_the_figure_and_within_the_rows():
    rows = autoregressive(60, 0.3, seed=4)
    low, high = block_interval(rows, median)
    assert rows.min() <= low < np.median(rows) < high <= rows.max()


def test_columns_of_a_row_stay_together():
    """Each row's second value is twice its first, so any draw has the ratio 2."""
    rows = np.column_stack([np.arange(1.0, 41.0), 2 * np.arange(1.0, 41.0)])
    assert block_interval(rows, lambda drawn: drawn[:, :, 1].sum(axis=1) / drawn[:, :, 0].sum(axis=1)) == (2.0, 2.0)


def test_more_rows_make_it_narrower():
    few, many = (block_interval(autoregressive(count, 0.0, seed=5), median) for count in (50, 5000))
    assert many[1] - many[0] < (few[1] - few[0]) / 3
