"""The formula that a log's TFLOP/s was printed by, from a comparison of every printed formula with the log."""

from __future__ import annotations

import polars as pl

from analysis.flops import Recompute
from analysis.identify.candidates import Candidate, candidates
from analysis.identify.explanation import explain, unknown
from analysis.identify.matching import LOGGED, TIME, comparable_rows, matching_formulas, measure_rounding
from analysis.model.shape import ModelShape
from logparse.findings import Note, info
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Identification:
    """Every printed formula compared with the log.

    ``logged`` is the log's value at the row of median time. ``scale`` times the log's numbers are TFLOP/s: 1 unless the
    log misnames its unit. ``findings`` are parts of one sentence: the formula and how sure that is, or why there is no
    answer.
    """

    rows: tuple[Candidate, ...]
    matches: tuple[str, ...]
    logged: float | None
    scale: float
    findings: tuple[Note, ...]


def identify_formula(
    steps: pl.DataFrame,
    shape: ModelShape,
    seq_length: int | None,
    world_size: float | None,
    recompute: Recompute | None,
) -> Identification:
    """Compare the log's TFLOP/s with every printed formula, row by row.

    A row's own batch and sequence length count; ``seq_length`` fills rows that do not print one. ``recompute`` decides
    nothing: a finding reports whether the formula counts the recomputation of the settings.
    """
    rows = comparable_rows(steps, seq_length, world_size)
    logged = _printed(rows)
    rounding = measure_rounding(logged)
    scale, matches = matching_formulas(logged, shape, rounding)
    shown = _median_row(rows if logged.is_empty() else logged)
    value = None if logged.is_empty() else shown[LOGGED].item()
    compared = candidates(shape, shown, None if value is None else value * scale, matches)
    reason = _incomparable(steps, rows, seq_length, world_size)
    findings = (reason,) if reason else tuple(explain(compared, value, scale, rounding, recompute))
    return Identification(compared, matches, value, scale, findings)


def fitting_formulas(
    steps: pl.DataFrame, shape: ModelShape, seq_length: int | None, world_size: float | None
) -> tuple[float, tuple[str, ...]]:
    """The scale and the matching formulas of ``identify_formula``, without its other results."""
    logged = _printed(comparable_rows(steps, seq_length, world_size))
    return matching_formulas(logged, shape, measure_rounding(logged))


def _printed(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with a rate to compare."""
    return rows.filter(pl.col(LOGGED).is_finite() & (pl.col(LOGGED) > 0))


def _median_row(rows: pl.DataFrame) -> pl.DataFrame:
    """The row of median time, a real one and not a mean of two."""
    if rows.is_empty():
        return rows
    time, middle = rows[TIME], rows[TIME].quantile(0.5, "lower")
    return rows.filter(time == middle).slice((len(rows) - 1) // 2 - int((time < middle).sum()), 1)


def _incomparable(
    steps: pl.DataFrame, rows: pl.DataFrame, seq_length: int | None, world_size: float | None
) -> Note | None:
    """Why nothing can be compared; None where something can."""
    if not steps[TIME].count():
        return info("no_time_to_compare")
    known = {
        "world_size": world_size is not None,
        "global_batch_size": steps["global_batch_size"].count() > 0,
        "seq_length": seq_length is not None or steps["seq_length"].count() > 0,
    }
    if missing := [name for name, is_known in known.items() if not is_known]:
        return info("no_formula_computed", unknown=unknown(missing))
    if rows.is_empty():
        return info("no_row_to_compare")
    if not steps[LOGGED].count():
        return info("no_tflops_printed")
    return None if (steps[LOGGED] > 0).any() else info("tflops_rounded_to_zero")
