"""Why a row does not count: all codes of ``excluded_reason``."""

from __future__ import annotations

import polars as pl

COPY = "copy"
DAMAGED = "step_damaged"
OTHER_JOB = "other_job"
NO_TIME = "no_time"
TIME_DAMAGED = "time_damaged"
REPLAYED = "replayed"
WARM_UP = "warm_up"
HOLDS_EVALUATION = "holds_evaluation"
HOLDS_SAVE = "holds_save"
# A pause that comes again and again, of a kind that no line shows.
HOLDS_PAUSE = "holds_pause"
BATCH_CHANGES = "batch_changes"
NAN = "nan"
SKIPPED = "update_skipped"
STALL = "stall"

# Rows of the run's own steps, without copies.
OF_THE_RUN = ~pl.col("excluded_reason").is_in([COPY, OTHER_JOB]).fill_null(False)
# Rows whose time can be true; that of the others is in no rate and no sum.
TIMED = ~pl.col("excluded_reason").is_in([NO_TIME, TIME_DAMAGED]).fill_null(False)
# The time of all steps of a row.
ROW_MS = pl.col("step_time_ms") * pl.col("iterations")


def has_untimed(steps: pl.DataFrame) -> bool:
    """Whether the time of any row is missing or damaged."""
    return any((steps["excluded_reason"] == reason).any() for reason in (NO_TIME, TIME_DAMAGED))
