"""The rate of a whole training that went on from a checkpoint.

Comes in: step rows with ``start``, and events. Goes out: which share of the planned steps each row's process did. The
Hugging Face Trainer divides all planned steps by the time of the last process alone, see ``Trainer.train``.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

# A first row that is so many intervals ahead is not the first of the training.
AHEAD = 1.5


def share_of_process(rows: pl.DataFrame, events: pl.DataFrame | None) -> pl.Series:
    """The share of the planned steps that the process of each row did, in the order of ``rows``.

    Null where the process went on from an unknown step, and where the rate is that of a later process.
    """
    starts = rows.partition_by("start", maintain_order=True)
    begun = [_begun_after(start, before, events) for before, start in zip([None, *starts], starts, strict=False)]
    shares: list[float | None] = []
    for n, start in enumerate(starts):
        share = None if begun[n] is None or _ended_by_resume(starts, begun, n) else _share(start, begun[n] or 0)
        shares += [share] * len(start)
    return pl.Series("share", shares, pl.Float64)


def _begun_after(start: pl.DataFrame, before: pl.DataFrame | None, events: pl.DataFrame | None) -> int | None:
    """The step after which a process began: 0, or that of the checkpoint; None where no line prints it."""
    line, source = start["line_number"].min(), start["source"][0]
    if events is not None:
        loads = events.filter((pl.col("kind") == "checkpoint loaded") & (pl.col("source") == source))
        own = loads.filter(pl.col("line_number") < line).drop_nulls("step")
        if before is not None and before["source"][0] == source:
            own = own.filter(pl.col("line_number") > before["line_number"].max())
        if len(own):
            return int(own["step"][-1])
    steps = start["step"].unique().sort()
    between = steps.diff().median()
    return None if isinstance(between, float) and steps[0] > AHEAD * between else 0


def _ended_by_resume(starts: Sequence[pl.DataFrame], begun: Sequence[int | None], n: int) -> bool:
    """Whether the process after the ``n``-th of one file went on from it: then the rate is of that one."""
    if n + 1 == len(starts) or begun[n + 1] == 0:
        return False
    return bool(starts[n + 1]["source"][0] == starts[n]["source"][0])


def _share(start: pl.DataFrame, begun: int) -> float | None:
    planned = float(start["train_steps"].max() or start["step"].max())  # type: ignore[arg-type]
    return (planned - begun) / planned if begun < planned else None


def unrounded_rate(printed: pl.Series, unit: float, planned: pl.Series, seconds: pl.Series) -> pl.Series:
    """The ``printed`` steps per second by the planned steps and the time of the training, where these agree with it.

    A slow step has a rate of one digit, such as 0.1. ``unit``: that of its last decimal. ``seconds``: of the training.
    """
    exact = planned.cast(pl.Float64) / seconds
    agrees = ((exact - printed).abs() <= unit / 2).fill_null(value=False)
    return exact.zip_with(agrees, printed).alias(printed.name)
