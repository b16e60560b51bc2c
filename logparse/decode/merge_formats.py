"""Other formats in the log: values that the run's step lines are missing, from other lines of the same steps.

Comes in: step lines of several formats. Goes out: those of the run's own format with columns that they print nowhere.
Two rows are of one step where they are adjacent, have its number, and agree in a value that both print: two programs
may count from different numbers. A rate stays with the clock of the program that prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

from logparse.decode.step_lines import StepLines
from logparse.findings import Note, info
from logparse.formats._base import LogFormat
from logparse.light_dataclass import dataclass
from logparse.schema import DECODED_COLUMNS

_PLACE = ("run", "source", "line_number", "step")
_TAKEN = [c.name for c in DECODED_COLUMNS if c.name not in _PLACE and not c.name.startswith("logged_")]
_NUMBERS = [c.name for c in DECODED_COLUMNS if c.name not in _PLACE and c.dtype.is_numeric()]
# Two programs print one value of a step within this share; values of neighbouring steps differ so many times as much.
SAME, FARTHER = 0.01, 4.0


@dataclass(frozen=True)
class Completion:
    """What lines of another format gave: ``columns`` of ``rows`` steps, the first from a line of ``source``."""

    format: str
    columns: tuple[str, ...]
    rows: int
    source: str
    line_number: int

    @property
    def note(self) -> Note:
        """Who gave what."""
        fields = {"name": self.format, "columns": list(self.columns), "n": self.rows}
        return info("completed_by_other_format", **fields, source=self.source, line=self.line_number)


def may_complete(other: LogFormat, fmt: LogFormat) -> bool:
    """Whether lines of ``other`` can be next to those of ``fmt``: not where both read the same line."""
    texts = [sample.text for sample in fmt.samples]
    same = any(marker in text for marker in other.step_markers for text in texts)
    return other is not fmt and not same and {*other.marker}.isdisjoint(fmt.marker)


def complete(
    fmt: LogFormat, steps: pl.DataFrame, others: Sequence[tuple[LogFormat, StepLines]]
) -> tuple[pl.DataFrame, tuple[Completion, ...]]:
    """``steps`` of ``fmt``, with missing columns that ``others``, the richest first, print of the same steps."""
    completions = []
    for other, lines in ((other, lines) for other, lines in others if len(lines.steps) and may_complete(other, fmt)):
        missing = [c for c in _TAKEN if steps[c].is_null().all() and not lines.steps[c].is_null().all()]
        theirs = _of_the_same_steps(steps, lines.steps) if missing else None
        columns = [] if theirs is None else [c for c in missing if _without_hole(steps["source"], theirs[c])]
        if theirs is not None and columns:
            steps = steps.with_columns(theirs.select(columns))
            filled = theirs.filter(pl.any_horizontal(pl.col(columns).is_not_null()))
            first = filled.row(0, named=True)
            completions.append(
                Completion(other.name, tuple(columns), len(filled), first["source"], first["line_number"])
            )
    return steps, tuple(completions)


def _of_the_same_steps(steps: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame | None:
    """For each row of ``steps`` the row of ``others`` that is of its step, or nulls; None where nothing is sure."""
    # Ranks that print into one file print the rows of a step one after the other.
    stretch = pl.struct("source", "step").rle_id()
    mine = steps.select("source", "line_number", "step", stretch=stretch)
    theirs = others.with_row_index("other").sort("line_number")
    pairs = max((_neighbours(mine, theirs, side) for side in ("forward", "backward")), key=len)
    both = pairs.join(steps.with_columns(stretch=stretch).unique("stretch", keep="first"), on="stretch", how="left")
    both = both.sort("stretch").join(theirs, on="other", how="left", maintain_order="left", suffix=" of other")
    if not any(_shows(both, name) for name in _NUMBERS):
        return None
    matched = mine.select("stretch").join(pairs, on="stretch", how="left", maintain_order="left")
    return matched.join(theirs, on="other", how="left", maintain_order="left")


def _neighbours(mine: pl.DataFrame, theirs: pl.DataFrame, side: Literal["forward", "backward"]) -> pl.DataFrame:
    """The rows of ``theirs`` whose next row of ``mine``, forward or backward, has their step, one to one."""
    lines = mine.select("source", "line_number", "stretch", own="step").sort("line_number")
    other_lines = theirs.select("source", "line_number", "other", "step")
    joined = other_lines.join_asof(lines, on="line_number", by="source", strategy=side, check_sortedness=False)
    return joined.filter(pl.col("step") == pl.col("own")).unique("stretch", keep="none").select("stretch", "other")


def _shows(both: pl.DataFrame, name: str) -> bool:
    """Whether the values of two programs agree for each step, but not if one is shifted by a step."""
    mine, theirs = (pl.col(column).cast(pl.Float64) for column in (name, f"{name} of other"))
    there = both.select(mine=mine, theirs=theirs).filter(pl.all_horizontal(pl.all().is_finite()))
    if len(there) < 2:
        return False
    size, *apart = there.select(
        pl.col("mine").abs().mean(),
        here=(pl.col("mine") - pl.col("theirs")).abs().mean(),
        before=(pl.col("mine") - pl.col("theirs").shift(1)).abs().mean(),
        after=(pl.col("mine") - pl.col("theirs").shift(-1)).abs().mean(),
    ).row(0)
    return bool(apart[0] <= SAME * size and FARTHER * apart[0] < min(apart[1:]))


def _without_hole(source: pl.Series, values: pl.Series) -> bool:
    """Whether each file has a value on every row from its first to its last: a clock with gaps shows false pauses."""
    frame = pl.DataFrame({"source": source, "there": values.is_not_null()}).with_row_index("at")
    span = pl.col("at").last() - pl.col("at").first() + 1
    spans = frame.filter("there").group_by("source").agg(whole=pl.len() == span)
    return not spans.is_empty() and bool(spans["whole"].all())
