"""Which formula a log's TFLOP/s was printed by: every printed formula beside the log, and one sentence."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from analysis.flops import Recompute
from analysis.flops.printed import PRINTED_FORMULAS, PrintedFormula
from analysis.identify import _sentence
from analysis.identify.matching import (
    LOGGED,
    TIME,
    comparable_rows,
    flops_per_token,
    matching_formulas,
    measure_rounding,
    missing_inputs,
)
from analysis.model.shape import ModelShape
from logparse.language import tr


@dataclass(frozen=True)
class Candidate:
    """One printed formula beside the log, at the row of median time; unknown is None.

    ``missing`` names what it lacks. ``difference`` is relative to what the log's value stands for.
    """

    id: str
    title: str
    missing: tuple[str, ...]
    tflops_per_second_per_device: float | None
    difference: float | None
    matches: bool


@dataclass(frozen=True)
class Identification:
    """Every printed formula beside the log.

    ``logged`` is the log's value at the row of median time. ``scale`` is what the log's numbers must be multiplied by
    to be TFLOP/s: 1 unless it misnames its unit.
    """

    rows: tuple[Candidate, ...]
    matches: tuple[str, ...]
    logged: float | None
    scale: float
    sentence: str


def identify_formula(
    steps: pl.DataFrame,
    shape: ModelShape,
    seq_length: int | None,
    world_size: int | None,
    recompute: Recompute | None,
) -> Identification:
    """Compare the log's TFLOP/s with every printed formula, row by row.

    A row's own batch and sequence length count; ``seq_length`` fills rows that do not print one. ``recompute`` decides
    nothing: it tells in the sentence whether the formula counts what the settings say.
    """
    rows = comparable_rows(steps, seq_length, world_size)
    logged = rows.filter(pl.col(LOGGED).is_finite() & (pl.col(LOGGED) > 0))
    rounding = measure_rounding(logged)
    scale, matches = matching_formulas(logged, shape, rounding)
    shown = _median_row(rows if logged.is_empty() else logged)
    value = None if logged.is_empty() else shown[LOGGED].item()
    candidates = tuple(
        _candidate(formula, shape, shown, None if value is None else value * scale, formula.id in matches)
        for formula in PRINTED_FORMULAS.values()
    )
    found = Identification(candidates, matches, value, scale, "")
    reason = _reason(steps, rows, seq_length, world_size)
    return Identification(candidates, matches, value, scale, reason or _sentence.describe(found, rounding, recompute))


def _median_row(rows: pl.DataFrame) -> pl.DataFrame:
    """The row of median time, a real one and not a mean of two."""
    return rows.sort(TIME, maintain_order=True).slice(max(0, (len(rows) - 1) // 2), 1)


def _candidate(
    formula: PrintedFormula, shape: ModelShape, shown: pl.DataFrame, meant: float | None, matches: bool
) -> Candidate:
    flops = flops_per_token(formula, shape, shown)
    value = None
    if flops is not None and len(shown):
        value = shown.select(flops * pl.col("work") / pl.col(TIME)).item()
    difference = None if value is None or meant is None else value / meant - 1
    return Candidate(formula.id, formula.title, missing_inputs(formula, shape, shown), value, difference, matches)


def _reason(steps: pl.DataFrame, rows: pl.DataFrame, seq_length: int | None, world_size: int | None) -> str | None:
    """Why nothing can be compared; None where something can."""
    if steps.is_empty() or steps[TIME].is_null().all():
        return tr("nothing to compare: no line gives the time of a step")
    known = {
        "world_size": world_size is not None,
        "global_batch_size": steps["global_batch_size"].is_not_null().any(),
        "seq_length": seq_length is not None or steps["seq_length"].is_not_null().any(),
    }
    if unknown := [name for name, is_known in known.items() if not is_known]:
        return tr("no formula can be computed: {unknown}", unknown=_sentence.pass_flags(unknown))
    if rows.is_empty():
        return tr("nothing to compare: no line gives batch, sequence length and time together")
    printed = steps[LOGGED].drop_nulls()
    if printed.is_empty():
        return tr("the log prints no TFLOP/s to compare with")
    return None if (printed > 0).any() else tr("nothing to compare: every TFLOP/s the log prints is rounded to 0")
