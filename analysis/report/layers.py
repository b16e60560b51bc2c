"""What a page adds to a chart along the run: ends that its script sets, the smoothed line, starts and marks."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from analysis.charts.axes import place_tooltip, x_channel
from analysis.charts.look import PARTS
from analysis.charts.marks import MARKS, RESTART, STARTS
from analysis.charts.plot import HEIGHT, HIGH, LOW
from analysis.present.words import word
from logparse.language import tr

SMOOTHED = "smoothed"
# Pixels of a mark at the foot of a chart.
MARK = 12


def along(spec: dict[str, Any], axis: str) -> dict[str, Any]:
    """A copy of ``spec``, which is drawn along the steps, along ``axis``: to draw it anew takes ten times as long."""
    moved = deepcopy(spec)
    if axis == "step":
        return moved
    channel = x_channel(axis).to_dict(validate=False)
    place = place_tooltip(axis).to_dict(validate=False)
    for encoding in (layer["encoding"] for layer in moved["layer"]):
        if "field" in encoding.get("x", {}):
            encoding["x"] = deepcopy(channel)
        if "tooltip" in encoding:
            at = 1 + next(number for number, line in enumerate(encoding["tooltip"]) if line["field"] == "step")
            encoding["tooltip"].insert(at, place)
    return moved


def zoomed(spec: dict[str, Any]) -> dict[str, Any]:
    """Let the page set the ends of the x axis, and draw its smoothed line."""
    line = next(layer for layer in reversed(spec["layer"]) if layer["mark"]["type"] == "line")
    places = {channel: line["encoding"][channel] for channel in ("x", "y", "color", "detail")}
    mark = {"type": "line", "strokeWidth": 2.5, "clip": True, "tooltip": False}
    spec["layer"].append({"data": {"name": SMOOTHED}, "mark": mark, "encoding": places})
    for layer in spec["layer"]:
        if "field" in layer["encoding"].get("x", {}):
            layer["encoding"]["x"]["scale"] |= {"domainMin": {"expr": "x_min"}, "domainMax": {"expr": "x_max"}}
    ends = spec["usermeta"].get("ends", {})
    limits = {"x_min": None, "x_max": None, **({LOW: ends["low"], HIGH: ends["high"]} if ends else {})}
    spec["params"] = [{"name": name, "value": value} for name, value in limits.items()]
    return spec


def with_marks(spec: dict[str, Any], kinds: Sequence[str]) -> dict[str, Any]:
    """``spec`` with the starts of the run as bands, and what it did besides steps as marks at the foot."""
    x = next(layer["encoding"]["x"] for layer in spec["layer"] if "field" in layer["encoding"].get("x", {}))
    band = {"type": "rect", "opacity": 0.13, "color": PARTS["restarts"], "clip": True, "tooltip": False}
    bands = {
        "data": {"name": STARTS},
        "mark": band,
        "transform": [{"filter": "datum.segment % 2"}],
        "encoding": {"x": x, "x2": {"field": f"{x['field']}_to"}},
    }
    first, *others = spec["layer"]
    return spec | {"layer": [first, bands, *others, *(_marks(kind, x) for kind in kinds)]}


def name_of_mark(kind: str) -> str:
    """What a kind of marks is called: as the part of the time that it cost, but for a restart itself."""
    return tr("restarts") if kind == RESTART else word("parts", kind)


def _marks(kind: str, x: dict[str, Any]) -> dict[str, Any]:
    # A restart is one of few, and parts what is before it from what follows.
    high = kind == RESTART
    return {
        "data": {"name": MARKS},
        "mark": {"type": "rule", "color": PARTS[kind], "strokeWidth": 2, "clip": True, "opacity": 0.9}
        | ({"strokeDash": [3, 3]} if high else {}),
        "transform": [{"filter": f"datum.kind === '{kind}'"}],
        "encoding": {
            "x": x,
            "y": {"value": 0 if high else HEIGHT - MARK},
            "y2": {"value": HEIGHT},
            "tooltip": {"value": name_of_mark(kind)},
        },
    }
