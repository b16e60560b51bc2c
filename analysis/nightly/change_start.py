"""Where a change of a job begins, by all metrics that it concerns, and what differs there.

Comes in: the runs of a job in the order of time, and where its metrics changed. Goes out: a place among the runs, and
changes of settings, versions and labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import polars as pl

from analysis.compare.comparability import Change, list_changes, rank_of
from analysis.compare.comparison import measured, values_of
from analysis.metrics import FINAL_LOSS, Metric
from analysis.stats.prediction import KEPT

# Runs before a change, and after it, whose settings and versions are compared.
RUNS_PER_SIDE = 5
# A single metric may begin so many nights early or late, because nights before were slow by chance.
AROUND = 2
# A spread that is less is that of rounding.
LEAST_SPREAD = 1e-4
# Runs on each side of a place that show whether a metric follows a line through it, and by how much that must be
# likelier than a step: twice the logarithm of the ratio.
LINE_RUNS, LIKELIER = 15, 2.0


Series = tuple[Sequence[int], Sequence[float]]


def series_of(runs: pl.DataFrame, metrics: Iterable[Metric], low: int, high: int) -> list[Series]:
    """For each of ``metrics``, of the runs at the places from ``low`` to ``high``: places, and logarithms.

    The final loss is left out: it is compared at steps that all runs did.
    """
    window = runs[low:high].with_columns(place=pl.int_range(low, min(high, len(runs))))
    return [_series(window, metric) for metric in metrics if metric != FINAL_LOSS]


def _series(runs: pl.DataFrame, metric: Metric) -> Series:
    rows = measured(runs, metric)
    return rows["place"].to_list(), [math.log(value) for value in values_of(rows, metric)]


def place_step(series: Sequence[Series], begun: Sequence[int], low: int, high: int) -> int:
    """The place of the first run of a step of all ``series``, which began near the places ``begun``.

    Each place near by, between ``low`` and ``high``, parts the runs in two levels. The place with the least squares of
    all metrics, as a likelihood has them, is taken.
    """
    places = range(max(low + 1, min(begun) - AROUND), min(high - 1, max(begun) + AROUND) + 1)
    if not series or not places:
        return min(begun)
    return min(places, key=lambda at: sum(_misfit(*one, at) for one in series))


def place_drift(series: Sequence[Series], found: int, low: int) -> int:
    """The place from which on all ``series`` follow a straight line, before ``found``."""
    places = range(low, max(low, found - AROUND) + 1)
    return min(places, key=lambda at: sum(_misfit_of_line(*one, at) for one in series)) if series else found


def grew_slowly(series: Sequence[Series], at: int, low: int) -> bool:
    """Whether ``series`` became worse along a line that begins well before the place ``at``, without a step there."""
    begins = range(low, at - AROUND)
    if not (series and begins):
        return False
    step = sum(_misfit(*one, at) for one in series)
    return min(sum(_misfit_of_line(*one, begin) for one in series) for begin in begins) < step - LIKELIER * len(series)


def _misfit_of_line(places: Sequence[int], logs: Sequence[float], begin: int) -> float:
    """Twice the negative logarithm of the likelihood of a level and a line from ``begin`` on, up to a constant."""
    import numpy as np

    if not logs:
        return 0.0
    design = np.stack([np.ones(len(places)), np.maximum(0, np.array(places) - begin)], axis=1)
    left = np.array(logs) - design @ np.linalg.lstsq(design, np.array(logs), rcond=None)[0]
    return len(logs) * math.log(float(left @ left) / len(logs) + LEAST_SPREAD**2)


def _misfit(places: Sequence[int], logs: Sequence[float], at: int) -> float:
    """The same of two levels that part at ``at``."""
    sides = ([y for x, y in zip(places, logs, strict=True) if (x < at) == before] for before in (True, False))
    squares = sum(sum((y - sum(side) / len(side)) ** 2 for y in side) for side in sides if side)
    return len(logs) * math.log(squares / len(logs) + LEAST_SPREAD**2) if logs else 0.0


def changes_around(
    runs: pl.DataFrame, at: int, settings: Callable[[Sequence[str]], pl.DataFrame], of_result: bool = False
) -> tuple[Change, ...]:
    """What differs between the runs before ``at`` and those since, and at the nights next to it; the likeliest first.

    ``settings`` gives whole rows of runs by their ids. ``of_result`` says that losses or NaN became worse, not times.
    """
    ids = runs["run_id"].to_list()
    places = [at + shift for shift in sorted(range(-AROUND, AROUND + 1), key=abs) if 0 < at + shift < len(ids)]
    rows = settings(ids[max(0, at - AROUND - RUNS_PER_SIDE) : at + AROUND + RUNS_PER_SIDE])
    found: dict[tuple[str, str], Change] = {}
    for place in places:
        sides = (ids[max(0, place - RUNS_PER_SIDE) : place], ids[place : place + RUNS_PER_SIDE])
        old, new = (rows.filter(pl.col("run_id").is_in(side)) for side in sides)
        for change in list_changes(old, new):
            if change.is_candidate and not _varied_before(change, runs[max(0, place - KEPT) : place]):
                found.setdefault((change.kind, change.name), change)
    return tuple(sorted(found.values(), key=partial(rank_of, of_result=of_result)))


def _varied_before(change: Change, before: pl.DataFrame) -> bool:
    """Whether a label such as a node varies, and had its new value before too: such runs were as expected then."""
    if change.kind != "label" or not change.is_partial:
        return False
    labels = before["labels"].explode(empty_as_null=False).drop_nulls().to_list()
    return any(one["name"] == change.name and one["value"] == change.candidate[0] for one in labels)
