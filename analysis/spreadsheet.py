"""Text in CSV that no spreadsheet takes for a formula: a quote before ``=``, ``+``, ``-`` and ``@``. Numbers stay."""

from __future__ import annotations

import polars as pl

# A tab or a carriage return before such a sign is skipped by spreadsheets.
BEGINS = ("=", "+", "-", "@", "\t", "\r")


def harmless(text: str) -> str:
    """``text`` as a cell."""
    return f"'{text}" if text.startswith(BEGINS) else text


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """``frame`` with such text in its cells."""
    columns = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    begins = r"^[=+\-@\t\r]"
    return frame.with_columns(
        pl.when(pl.col(name).str.contains(begins)).then("'" + pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name in columns
    )
