"""Drawing without Altair's check of every object as it is made, which takes a fourth of the time.

What is wrong with a chart shows where it is checked as a whole, as tests do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def unchecked(draw: Callable[P, R]) -> Callable[P, R]:
    """``draw``, a function that makes a chart, without those checks."""

    @wraps(draw)
    def wrapper(*positional: P.args, **named: P.kwargs) -> R:
        from altair.utils.schemapi import debug_mode

        with debug_mode(False):
            return draw(*positional, **named)

    return wrapper
