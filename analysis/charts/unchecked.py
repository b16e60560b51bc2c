"""Drawing without Altair's checks and copies, which take half of the time.

Altair checks every object as it is made; tests check each chart as a whole instead. It also copies each layer four
times, to lift what several have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    import altair as alt

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


def layered(layer: Sequence[alt.Chart], **parts: Any) -> alt.LayerChart:
    """A chart of layers that hold no parameter, and no data or size but their own."""
    return _layered()(layer=list(layer), **parts)


@cache
def _layered() -> type[alt.LayerChart]:
    import altair as alt

    class Layered(alt.LayerChart):
        def __init__(self, **parts: Any) -> None:
            super(alt.LayerChart, self).__init__(**parts)

    return Layered
