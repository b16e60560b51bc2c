"""How charts look: two Vega-Lite configs, for light and for dark paper.

A run's colour means a run and nothing else. The four are safe for colour-blind readers (Okabe and Ito's hues, made
lighter or darker until each has a contrast of 3 against the paper). Parts of an account are slate and browns.
"""

from __future__ import annotations

from typing import Any

# Chinese glyphs come from whatever the machine has; Vega takes the first font that knows a character.
FONTS = ("Noto Sans", "Helvetica Neue", "Arial", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "sans-serif")
# Pixels of a label, beyond which it ends in three dots.
LEGEND_LIMIT = 260
# Beyond the palette two runs share a colour; the legend that toggles them tells them apart.
RUNS_LIGHT = ["#0072b2", "#c04f00", "#008462", "#a8407e", "#4d4d4d", "#8a6d00"]
RUNS_DARK = ["#4aa8e0", "#f08a4b", "#2dbd94", "#e08fbf", "#c2c2c2", "#d9b93b"]
# The first part of an account is useful work; what follows is time that went elsewhere, as many parts as there can be.
USEFUL_LIGHT, USEFUL_DARK, PARTS = "#52687d", "#8fa9c2", 12


def _ramp(begin: tuple[int, int, int], end: tuple[int, int, int]) -> list[str]:
    """PARTS colours from ``begin`` to ``end``."""
    shares = [at / (PARTS - 1) for at in range(PARTS)]
    mixed = ([round(a + (b - a) * share) for a, b in zip(begin, end, strict=True)] for share in shares)
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in mixed]


def _config(paper: str, ink: str, faint: str, grid: str, runs: list[str], parts: list[str]) -> dict[str, Any]:
    axis = {"labelColor": faint, "titleColor": faint, "tickColor": grid, "domainColor": faint, "gridColor": grid}
    return {
        "background": paper,
        "font": ", ".join(FONTS),
        "mark": {"color": runs[0]},
        "rule": {"color": faint},
        "text": {"color": faint, "fontSize": 11},
        "view": {"stroke": None},
        "range": {"category": runs, "ordinal": parts},
        "axis": axis | {"titleFontWeight": "normal", "labelFontSize": 11, "titleFontSize": 11, "titlePadding": 8},
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 11,
            "labelLimit": LEGEND_LIMIT,
            "symbolStrokeColor": faint,
        },
        "title": {"color": ink, "subtitleColor": faint, "fontSize": 14, "subtitleFontSize": 11, "anchor": "start"},
    }


# The most costly first: the darkest brown on light paper, the lightest on dark.
BROWN, SAND = (0x5F, 0x3A, 0x0C), (0xE6, 0xCF, 0xA3)
LIGHT = _config("#ffffff", "#1b2127", "#57616b", "#e3e7eb", RUNS_LIGHT, [USEFUL_LIGHT, *_ramp(BROWN, SAND)])
DARK = _config("#15191e", "#e8ecf0", "#a4afba", "#2d343c", RUNS_DARK, [USEFUL_DARK, *_ramp(SAND, BROWN)])
