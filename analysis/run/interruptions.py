"""When the run did not train: the steps after which it saved a checkpoint or made an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

# Megatron's timers of a save, by age.
SAVE_TIMERS = ("save-checkpoint", "save checkpoint", "save-checkpoint-non-persistent")


@dataclass(frozen=True)
class Pauses:
    """Steps behind which a pause lies, sorted."""

    saved: tuple[int, ...] = ()
    evaluated: tuple[int, ...] = ()


def find_pauses(records: Mapping[str, pl.DataFrame]) -> Pauses:
    """Read pauses off the events, the evaluations, and the timers of saves that print no line of their own."""
    starts = records["events"].filter(pl.col("kind") == "save starts")["step"]
    timers = records["timers"].filter(pl.col("name").is_in(SAVE_TIMERS) & (pl.col("max_ms") > 0))["step"]
    return Pauses(_sorted(pl.concat([starts, timers])), _sorted(records["evaluations"]["step"]))


def _sorted(steps: pl.Series) -> tuple[int, ...]:
    return tuple(steps.drop_nulls().unique().sort())
