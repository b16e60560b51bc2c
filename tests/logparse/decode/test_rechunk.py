from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from logparse.decode import rechunk as one_piece
from logparse.decode.rechunk import in_one_piece


def block(first: int, source: str) -> pl.DataFrame:
    """Two rows, with a column of each kind: plain, of times, with a hole, of words, without a value."""
    return pl.DataFrame(
        {
            "line_number": [first, first + 1],
            "loss": [first / 7, float("nan")],
            "timestamp": [datetime(2026, 1, first), datetime(2026, 2, first)],
            "grad_norm": [None, 1.5],
            "overflow": [True, False],
        }
    ).with_columns(pl.lit(None, pl.Int64).alias("epoch"), source=pl.lit(source))


@pytest.mark.parametrize("sources", [("a.log", "a.log", "a.log"), ("a.log", "b.log", "b.log")])
def test_rows_stay_the_same_in_one_piece(sources, monkeypatch):
    monkeypatch.setattr(one_piece, "PORTION", 3)
    blocks = [block(first, source) for first, source in zip((1, 3, 5), sources, strict=True)]
    expected = pl.concat(blocks, rechunk=True)
    whole = in_one_piece(pl.concat(blocks))
    assert whole.select(expected.columns).equals(expected)
    assert set(whole.n_chunks("all")) == {1}


def test_one_value_is_kept_once():
    blocks = [block(first, "a.log" * 100) for first in range(1, 11)]
    sizes = {name: in_one_piece(pl.concat(blocks)).select(name).estimated_size() for name in ("source", "epoch")}
    assert sizes["source"] < 2 * len("a.log" * 100)
    assert sizes["epoch"] < 20 * 8
