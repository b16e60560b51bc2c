"""The clock of lines that a buffer kept back: a tool stamped several at once as they came; no step has it."""

from __future__ import annotations

import polars as pl

from logparse.findings import Note, warning

# So many steps of at least so long, in milliseconds, most of which have the very stamp of the step before.
FEWEST, LONG_MS, MOST = 4, 2000.0, 0.5


def kept_back(steps: pl.DataFrame) -> Note | None:
    """A warning where most ``steps`` have the stamp of the step before, though each takes seconds."""
    long = steps.filter(pl.col("elapsed_time_per_iteration_ms") >= LONG_MS, pl.col("timestamp").is_not_null())
    after = long.filter(pl.col("step").diff().over("source") > 0)
    if len(after) < FEWEST:
        return None
    same = long.filter((pl.col("step").diff() > 0) & (pl.col("timestamp").diff() == pl.duration()).over("source"))
    return warning("stamps_kept_back", n=len(same), of=len(after)) if len(same) > MOST * len(after) else None
