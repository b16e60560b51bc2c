"""Steps that were done and kept but that no line prints: a later start begins after the last printed step.

Comes in: rows of starts, events. Goes out: their time at the baseline, and a warning where the log of the job that did
them is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import polars as pl

from analysis.run.exclusion_reasons import OF_THE_RUN
from analysis.run.frame_filters import only, starts_of
from logparse.findings import Note, warning

SAVES = ("save starts", "save ends")


def unprinted_seconds(before: pl.DataFrame, begun_after: int, room: float) -> float:
    """Seconds of the steps from the last of ``before`` to ``begun_after``, at most those that there is ``room`` for."""
    steps = begun_after - int(before["step"][-1])
    typical = before.filter("counted")["step_time_ms"].median()
    if steps <= 0 or not isinstance(typical, float):
        return 0.0
    return min(steps * typical / 1000, max(room, 0.0))


def unprinted_between(rows: pl.DataFrame) -> int:
    """How many steps lie between the starts of ``rows`` by their checkpoints, as far as the stamps have room for."""
    stamped = only(rows, pl.col("timestamp").is_not_null() & pl.col("iterations").is_not_null())
    found = 0
    for (_, before), (_, start) in pairwise(starts_of(stamped)):
        first = start.row(0, named=True)
        typical = before.filter("counted")["step_time_ms"].median()
        if before["lineage"][-1] != first["lineage"] or not isinstance(typical, float):
            continue
        gap: Any = first["timestamp"] - before["timestamp"].max()
        room = gap.total_seconds() * 1000 - first["step_time_ms"] * first["iterations"]
        found += max(0, min(first["step"] - first["iterations"] - before["step"][-1], int(room / typical)))
    return found


def last_saved(before: pl.DataFrame, events: pl.DataFrame) -> int:
    """The last step that a save after the last row of ``before`` shows; that row's own step where none does."""
    last: dict[str, Any] = before.select("source", "line_number", "step").row(-1, named=True)
    after = (pl.col("source") == last["source"]) & (pl.col("line_number") > last["line_number"])
    saved: Any = events.filter(pl.col("kind").is_in(SAVES) & after)["step"].max()
    return max(int(saved or 0), int(last["step"]))


def describe_missing_logs(steps: pl.DataFrame, events: pl.DataFrame) -> Iterator[Note]:
    """A warning for each start that goes on from a step that no line of the log reaches, printed or saved."""
    own = only(steps, OF_THE_RUN & pl.col("iterations").is_not_null())
    for (_, before), (_, start) in pairwise(starts_of(own)):
        first = start.row(0, named=True)
        begun_after, every = first["step"] - first["iterations"], before["iterations"].max()
        # Few starts are ahead of the last printed step, and only those need the saves.
        ahead = before["lineage"][-1] == first["lineage"] and begun_after - int(before["step"][-1]) > (every or 0)
        if ahead and begun_after - last_saved(before, events) > (every or 0):
            where = {"source": first["source"], "line": first["line_number"]}
            yield warning("log_missing", first=before["step"][-1] + 1, last=begun_after, **where)
