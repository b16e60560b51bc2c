"""The axis along the run, and room for a legend, as all charts have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.charts.look import LEGEND_LIMIT
from logparse.language import msg, tr

if TYPE_CHECKING:
    import altair as alt

# As many ticks as there is room for, and no more than whole steps.
TICKS = "ceil(width / 90)"
WHOLE_TICKS = f"min({TICKS}, max(1, floor(domain('x')[1] - domain('x')[0])))"
# Pixels for a legend. The value must not change with the layout, as the title is placed by the height of the legend.
# Where a page sets the width, the frame's is known only after the layout: the page's less a margin is taken.
ROOM = "min(width, isFinite(containerSize()[0]) ? containerSize()[0] - 90 : width)"
AXIS_TITLES = {"step": msg("step"), "consumed_tokens": msg("consumed tokens"), "hours": msg("wall clock, hours")}
AXIS_FORMATS = {"step": ",d", "consumed_tokens": "~s", "hours": "~g"}


def legend_columns(labels: Sequence[str]) -> alt.ExprRef:
    """As many columns as the chart has room for; a Chinese character is as wide as two others."""
    import altair as alt

    widest = max((sum(2 if ord(c) > 0x2E80 else 1 for c in label) for label in labels), default=0)
    return alt.ExprRef(f"max(1, floor({ROOM} / {min(6 * widest + 30, LEGEND_LIMIT + 30)}))")


def x_channel(x: str) -> alt.X:
    """The axis along the run."""
    import altair as alt

    ticks = WHOLE_TICKS if x == "step" else TICKS
    axis = {"format": AXIS_FORMATS[x], "grid": False, "tickCount": alt.ExprRef(ticks)}
    scale = {"nice": False, "zero": False, "padding": 8}
    return alt.X(f"{x}:Q", title=tr(AXIS_TITLES[x]), scale=scale, axis=axis)


def place_tooltip(x: str) -> alt.Tooltip:
    """The place of a row on an axis other than that of steps; each tooltip shows the step."""
    import altair as alt

    return alt.Tooltip(f"{x}:Q", title=tr(AXIS_TITLES[x]), format=".4~s")
