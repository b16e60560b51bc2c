"""Search texts for any of many literals in the way that takes less time for so many bytes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TypeVar

import polars as pl
import regex

Text = TypeVar("Text", pl.Expr, pl.Series)
# Bytes from which on a regex of many literals is worth its building.
WORTH_A_REGEX = 2**20
# Bytes up to which Python finds the few of many literals that are there sooner than polars gets ready to look.
WORTH_POLARS = 2**12


def any_of(literals: tuple[str, ...], text: Text, size: int) -> Text:
    """Whether each text holds any of ``literals``; all of them together have ``size`` bytes.

    The regex engine of polars looks at memory speed, but a regex of all formats takes longer to build than a small log
    to read. So does what polars builds of many literals, where the text is that of a file of one rank.
    """
    if is_worth_a_regex(size):
        return text.str.contains(_regex_of(literals))
    if isinstance(text, pl.Series) and size <= WORTH_POLARS:
        if not (present := literals_in(text.to_list(), literals)):
            return pl.Series(text.name, [False] * len(text), dtype=pl.Boolean)
        return text.str.contains_any(present)
    return text.str.contains_any(list(literals))


def literals_in(texts: Iterable[str], literals: Iterable[str]) -> list[str]:
    """Those of ``literals`` that are in any of ``texts``, found without polars."""
    whole = "\n".join(texts)
    return [literal for literal in literals if literal in whole]


def is_worth_a_regex(size: int) -> bool:
    """Whether so many bytes are searched sooner with a regex of many literals, its building included."""
    return size >= WORTH_A_REGEX


@cache
def _regex_of(literals: tuple[str, ...]) -> str:
    return "|".join(regex.escape(literal, special_only=True) for literal in literals)
