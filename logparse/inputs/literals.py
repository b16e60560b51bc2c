"""Search texts for any of many literals in the way that takes less time for so many bytes."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import polars as pl
import regex

Text = TypeVar("Text", pl.Expr, pl.Series)
# Bytes from which on a regex of many literals is worth its building.
WORTH_A_REGEX = 2**20


def any_of(literals: tuple[str, ...], text: Text, size: int) -> Text:
    """Whether each text holds any of ``literals``; all of them together have ``size`` bytes.

    The regex engine of polars looks at memory speed, but a regex of all formats takes longer to build than a small log
    to read.
    """
    if is_worth_a_regex(size):
        return text.str.contains(_regex_of(literals))
    return text.str.contains_any(list(literals))


def is_worth_a_regex(size: int) -> bool:
    """Whether so many bytes are searched sooner with a regex of many literals, its building included."""
    return size >= WORTH_A_REGEX


@cache
def _regex_of(literals: tuple[str, ...]) -> str:
    return "|".join(regex.escape(literal, special_only=True) for literal in literals)
