"""The nights of a series that may become worse among its first runs, before a watch of them has a baseline.

Comes in: as for ``watch``. Goes out: a Night for each run. Among the first runs ``find_changes_or_drift`` shows where
the level changed, as it does for a trend. The runs before that place are the baseline then, with the noise of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from analysis.stats.prediction import FEWEST, LEAST_CHANGE, Night, watch
from analysis.stats.series_changes import FEWEST_RUNS, GAIN, find_changes_or_drift

CONFIRMED = ("confirmed", "accepted")
# The first runs of a series in which a change is looked for.
YOUNG = 3 * FEWEST


def watch_from_first(values: Sequence[float], worse: int, **how: Any) -> list[Night]:
    """As ``watch``, but a change for the worse among the first runs is confirmed by the runs on both sides of it."""
    nights = watch(values, worse, **how)  # type: ignore[arg-type]
    if how.get("fixed") or any(block is not None for block in how.get("blocks") or ()):
        return nights
    change = _first_change(values, nights, worse, how.get("least", LEAST_CHANGE))
    if change is None:
        return nights
    at, found = change
    logs = [math.log(value) for value in values]
    by = _mean(logs[at : found + 1]) - _mean(logs[:at])
    baseline = [math.exp(log - by * (place >= at)) for place, log in enumerate(logs[: found + 1])]
    shift = len(baseline) - at
    accepted = [place + shift for place in how.get("accepted", ()) if place >= at]
    of_night = how.get("nights") or range(len(values))
    how |= {"blocks": None, "accepted": accepted, "nights": [*range(-len(baseline), 0), *of_night[at:]]}
    again = watch([*baseline, *values[at:]], worse, **how)  # type: ignore[arg-type]
    confirmed = (place for place in range(found, min(YOUNG, len(values))) if again[shift + place].state in CONFIRMED)
    first = next(confirmed, None)
    return nights if first is None else [*nights[:first], *again[shift + first :]]


def _first_change(values: Sequence[float], nights: Sequence[Night], worse: int, least: float) -> tuple[int, int] | None:
    """The place of the first change for the worse, and of the run that shows it; None where the watch finds it."""
    logs = [worse * math.log(value) for value in values[:YOUNG]]
    for runs in range(2 * FEWEST_RUNS + 1, len(logs) + 1):
        if nights[runs - 1].state in CONFIRMED:
            return None
        if not _may_change(logs[:runs]):
            continue
        places = find_changes_or_drift(values[:runs])[0]
        if len(places) == 1:
            at = places[0][0]
            if _mean(logs[at:runs]) - _mean(logs[:at]) > math.log1p(least):
                return at, runs - 1
    return None


def _may_change(logs: Sequence[float]) -> bool:
    """Whether some place parts the runs in two levels of which the later is clearly higher."""
    runs, total, squares = len(logs), math.fsum(logs), math.fsum(log * log for log in logs)
    for at, before in enumerate(accumulate(logs[:-FEWEST_RUNS]), start=1):
        low, high = before / at, (total - before) / (runs - at)
        left = squares - at * low**2 - (runs - at) * high**2
        gain = (high - low) ** 2 * at * (runs - at) / runs
        if at >= FEWEST_RUNS and high > low and gain * (runs - 2) > GAIN * max(left, 0.0):
            return True
    return False


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
