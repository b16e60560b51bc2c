"""How charts look: two Vega-Lite configs, for light and for dark paper.

A run's colour means a run and nothing else. The first are safe for colour-blind readers (Okabe and Ito's hues, made
lighter or darker until each has a contrast of 3 against the paper); of more runs the lines differ in their dashes too.
A part of the time breakdown has one colour wherever it is drawn: Okabe and Ito's for what costs most, slate for useful
work.
"""

from __future__ import annotations

from typing import Any

# Chinese glyphs come from whatever the machine has; Vega takes the first font that knows a character.
FONTS = ("Noto Sans", "Helvetica Neue", "Arial", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "sans-serif")
# Pixels of a label, beyond which it ends in three dots.
LEGEND_LIMIT = 260
# Beyond the palette two runs share a colour; the legend, which toggles runs, distinguishes them.
RUNS_LIGHT = ["#0072b2", "#c04f00", "#008462", "#a8407e", "#4d4d4d", "#8a6d00"]
RUNS_LIGHT += ["#5f3dc4", "#0b7f93", "#c2255c", "#4b6b10", "#7a3b10", "#1f3a68"]
RUNS_DARK = ["#4aa8e0", "#f08a4b", "#2dbd94", "#e08fbf", "#c2c2c2", "#d9b93b"]
RUNS_DARK += ["#a99bff", "#5fd7e8", "#ff7b93", "#a5cf5b", "#c69c7b", "#8fa3e0"]
# By the place of a run; what a run of the same place modulo DASH_RUNS shares.
DASH_RUNS, DASHES = 4, ((1, 0), (7, 3), (2, 2))
# By the code of a part without what says where its time lay.
PARTS = {
    "useful": "#5b7690",
    "saves": "#e69f00",
    "stalls": "#d55e00",
    "evaluation": "#56b4e9",
    "restarts": "#cc79a7",
    "start_up": "#009e73",
    "warm_up": "#f0e442",
    "replayed": "#6f4aa5",
    "saves_and_evaluation": "#8a5a00",
    "skipped": "#6b6b6b",
    "not_explained": "#bcc3ca",
}


def _config(paper: str, ink: str, faint: str, grid: str, runs: list[str]) -> dict[str, Any]:
    axis = {"labelColor": faint, "titleColor": faint, "tickColor": grid, "domainColor": faint, "gridColor": grid}
    return {
        "background": paper,
        "font": ", ".join(FONTS),
        "mark": {"color": runs[0]},
        "rule": {"color": faint},
        "text": {"color": faint, "fontSize": 11},
        "view": {"stroke": None},
        "range": {"category": runs, "ordinal": list(PARTS.values())},
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


LIGHT = _config("#ffffff", "#1b2127", "#57616b", "#e3e7eb", RUNS_LIGHT)
DARK = _config("#15191e", "#e8ecf0", "#a4afba", "#2d343c", RUNS_DARK)
