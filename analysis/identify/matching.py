"""Whether a formula reproduces the printed TFLOP/s within the printed rounding.

A row is divided by ``elapsed_time_per_iteration_ms``, because the framework divided by what it printed there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from analysis.flops.printed import CORE_ATTENTION_RATIO, PRINTED_FORMULAS, PrintedFormula
from analysis.model.shape import ModelShape

LOGGED = "logged_tflops_per_second_per_device"
TIME = "elapsed_time_per_iteration_ms"
INPUTS = (TIME, "global_batch_size", "seq_length", CORE_ATTENTION_RATIO)

# A few rows may stand for something else: the batch grew within them, or another rank wrote into the line.
ENOUGH = 0.95
# Arithmetic in doubles, where nothing was rounded.
EXACT = 1e-9
# Units a framework has rounded to: TFLOP/s to a tenth or finer, times to 0.01 s or finer, a ratio to 1 % or finer.
TFLOPS_UNITS = tuple(10.0**-digits for digits in range(1, 9))
TIME_UNITS = tuple(10.0**-digits for digits in range(-1, 7))
RATIO_UNITS = tuple(10.0**-digits for digits in range(2, 9))
WHOLE_MS = 1.0
# Some logs print GFLOP/s, or PFLOP/s, under the name of TFLOP/s: what their number must be multiplied by.
SCALES = (1.0, 1000.0, 0.001)


@dataclass(frozen=True)
class Rounding:
    """How far a printed value may be from the true one: TFLOP/s, ms below and above, share of the attention matrix."""

    tflops: float
    below_ms: float
    above_ms: float
    ratio: float


def measure_rounding(rows: pl.DataFrame) -> Rounding:
    """The rounding of printed values, told from the values themselves."""
    time = printed_unit(rows[TIME], TIME_UNITS)
    return Rounding(
        tflops=printed_unit(rows[LOGGED], TFLOPS_UNITS) / 2,
        below_ms=time / 2,
        # MindFormers cuts a time down to whole milliseconds instead of rounding it.
        above_ms=time if time == WHOLE_MS else time / 2,
        ratio=printed_unit(rows[CORE_ATTENTION_RATIO], RATIO_UNITS) / 2,
    )


def printed_unit(values: pl.Series, units: Sequence[float]) -> float:
    """The largest of ``units`` (largest first) that all values are multiples of; 0 for values printed in full."""
    known = values.drop_nulls()
    # A unit that is not theirs shows in the first already.
    return next((unit for unit in units if all(_are_multiples(some, unit) for some in (known.head(100), known))), 0.0)


def _are_multiples(values: pl.Series, unit: float) -> bool:
    counts = values / unit
    return bool(((counts - counts.round()).abs() <= EXACT * counts.abs()).all())


def comparable_rows(steps: pl.DataFrame, seq_length: int | None, world_size: float | None) -> pl.DataFrame:
    """Rows whose rate can be computed, with ``work``: TFLOP/s is FLOPs per token x work / ms."""
    filled = steps.select(LOGGED, *INPUTS).with_columns(pl.col("seq_length").fill_null(pl.lit(seq_length, pl.Int64)))
    tokens = pl.col("global_batch_size") * pl.col("seq_length")
    worked = filled.with_columns(work=tokens / pl.lit(world_size, pl.Float64) * (1000 / 1e12))
    return worked.filter((pl.col(TIME) > 0) & pl.col("work").is_not_null())


def matching_formulas(logged: pl.DataFrame, shape: ModelShape, rounding: Rounding) -> tuple[float, tuple[str, ...]]:
    """The ids that fit, and the scale they fit at. Formulas that are only about right are asked where no other fits."""
    lengths = logged["seq_length"].unique().to_list()
    known = [f for f in PRINTED_FORMULAS.values() if lengths and not missing_inputs(f, shape, logged)]
    flops = {f: found for f in known if (found := _flops_per_token(f, shape, lengths, rounding))}
    for scale in SCALES:
        for exact in (True, False):
            asked = {f.id: _fits(f, *flops[f], rounding, scale) for f in flops if (f.accuracy == 0) is exact}
            # What fits none of the first tenth does not fit nearly all.
            first = _shares(logged.head(-(-len(logged) // 10)), asked)
            shares = _shares(logged, {name: asked[name] for name, share in first.items() if share > 0})
            if ids := tuple(name for name, share in shares.items() if share >= ENOUGH):
                return scale, ids
    return 1.0, ()


def _shares(rows: pl.DataFrame, asked: Mapping[str, pl.Expr]) -> dict[str, float]:
    return rows.select(**asked).row(0, named=True) if asked else {}


def _fits(formula: PrintedFormula, flops: pl.Expr, off: pl.Expr, rounding: Rounding, scale: float) -> pl.Expr:
    """In which share of the rows the span the formula allows and the span the log allows touch."""
    work, time, printed = pl.col("work"), pl.col(TIME), pl.col(LOGGED)
    low = (flops - off) * (1 - formula.accuracy - EXACT) * work / (time + rounding.above_ms)
    high = (flops + off) * (1 + formula.accuracy + EXACT) * work / (time - rounding.below_ms)
    touches = (low <= (printed + rounding.tflops) * scale) & (high >= (printed - rounding.tflops) * scale)
    return touches.fill_null(False).mean()


def _flops_per_token(
    formula: PrintedFormula, shape: ModelShape, lengths: list[int], rounding: Rounding
) -> tuple[pl.Expr, pl.Expr] | None:
    """FLOPs per token of each row, and how far the rounding of the printed attention share lets them be off.

    ``lengths`` are the sequence lengths of the rows. None where the number of one of them is not known.
    """
    flops = _by_length(lengths, [formula.flops(shape, s) for s in lengths])
    if formula.measured_core is None or flops is None:
        return None if flops is None else (flops, pl.lit(0.0))
    core = _by_length(lengths, [formula.measured_core(shape, s) for s in lengths])
    return None if core is None else (flops + core * pl.col(CORE_ATTENTION_RATIO), rounding.ratio * core)


def missing_inputs(formula: PrintedFormula, shape: ModelShape, rows: pl.DataFrame) -> tuple[str, ...]:
    """Names of what ``formula`` needs and neither ``shape`` nor ``rows`` know."""
    unprinted = formula.measured_core is not None and rows[CORE_ATTENTION_RATIO].null_count() == len(rows)
    return (*formula.missing(shape), *((CORE_ATTENTION_RATIO,) if unprinted else ()))


def _by_length(lengths: list[int], flops: list[float | None]) -> pl.Expr | None:
    """The number of each row's length; None where a number of any length is not known."""
    if None in flops:
        return None
    if len(lengths) == 1:
        return pl.lit(flops[0], pl.Float64)
    return pl.col("seq_length").replace_strict(lengths, flops, default=None, return_dtype=pl.Float64)
