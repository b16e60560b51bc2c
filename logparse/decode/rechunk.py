"""Columns of many pieces, one of each block, to columns of one piece, in hardly more memory than these take.

What changes a frame puts the pieces of its columns together, and would hold those of a large log twice.
"""

from __future__ import annotations

import polars as pl

from logparse.memory import give_back
from logparse.schema import FLOAT, INT, TIME

# Types that are plain numbers inside, and how many of these are copied before what held them is given back.
_NUMBERS, PORTION = (FLOAT, INT, TIME), 2**23


def in_one_piece(frame: pl.DataFrame) -> pl.DataFrame:
    """Each column in one chunk. They are taken out of ``frame`` one by one.

    Those of one value are left in it: polars keeps that once, but in a series for each row.
    """
    if frame["line_number"].n_chunks() == 1:
        return frame
    nulls = frame.null_count().row(0, named=True)
    columns = []
    # What reading left.
    give_back()
    for name in [name for name, n in nulls.items() if name != "source" and n < len(frame)]:
        columns.append(_whole(frame.drop_in_place(name).get_chunks()))
        give_back()
    return pl.concat([pl.DataFrame(columns), frame.rechunk()], how="horizontal")


def _whole(pieces: list[pl.Series]) -> pl.Series:
    """The column of ``pieces``, which are taken out of their list, unless values are missing."""
    name, dtype = pieces[0].name, pieces[0].dtype
    if dtype not in _NUMBERS or any(piece.null_count() for piece in pieces):
        return pl.concat(pieces, rechunk=True)
    import numpy as np

    whole = np.empty(sum(map(len, pieces)), np.float64 if dtype == FLOAT else np.int64)
    pieces.reverse()
    begin = kept = 0
    while pieces:
        piece = pieces.pop()
        end = begin + len(piece)
        whole[begin:end] = piece.to_numpy().view(whole.dtype)
        begin = end
        if end - kept >= PORTION:
            del piece
            give_back()
            kept = end
    return pl.Series(name, whole).cast(dtype)
