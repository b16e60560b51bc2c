"""Whether a formula reproduces the printed TFLOP/s within the printed rounding.

A row is divided by ``elapsed_time_per_iteration_ms``, because the framework divided by what it printed there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from analysis.flops.printed import CORE_ATTENTION_RATIO, PRINTED_FORMULAS, PrintedFormula
from analysis.model.shape import ModelShape
from analysis.run.printed_unit import EXACT, TIME_UNITS, printed_unit

LOGGED = "logged_tflops_per_second_per_device"
TIME = "elapsed_time_per_iteration_ms"
INPUTS = (TIME, "global_batch_size", "seq_length", CORE_ATTENTION_RATIO)

# A few rows may stand for something else: the batch grew within them, or another rank wrote into the line.
ENOUGH = 0.95
# Units a framework has rounded to: TFLOP/s to a tenth or finer, times to 0.01 s or finer, a ratio to 1 % or finer.
TFLOPS_UNITS = tuple(10.0**-digits for digits in range(1, 9))
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


def comparable_rows(steps: pl.DataFrame, seq_length: int | None, world_size: float | None) -> pl.DataFrame:
    """Rows whose rate can be computed, with ``work``: TFLOP/s is FLOPs per token x work / ms."""
    filled = steps.select(LOGGED, *INPUTS).with_columns(pl.col("seq_length").fill_null(pl.lit(seq_length, pl.Int64)))
    tokens = pl.col("global_batch_size") * pl.col("seq_length")
    worked = filled.with_columns(work=tokens / pl.lit(world_size, pl.Float64) * (1000 / 1e12))
    return worked.filter((pl.col(TIME) > 0) & pl.col("work").is_not_null())


def matching_formulas(logged: pl.DataFrame, shape: ModelShape, rounding: Rounding) -> tuple[float, tuple[str, ...]]:
    """The ids that fit, and the scale they fit at. Formulas that are only about right are asked where no other fits."""
    known = [f for f in PRINTED_FORMULAS.values() if len(logged) and not missing_inputs(f, shape, logged)]
    rows, lengths = _with_allowed(logged, rounding), logged["seq_length"].unique().to_list()
    spans = {f.id: _span(f, shape, lengths, rounding) for f in known}
    # What fits none of the first tenth does not fit nearly all.
    tried = _shares(rows.head(-(-len(rows) // 10)), spans, [(scale, f.id) for scale in SCALES for f in known])
    shares = _shares(rows, spans, [which for which, share in tried.items() if share > 0])
    fits = {which for which, share in shares.items() if share >= ENOUGH}
    for scale in SCALES:
        for exact in (True, False):
            if found := tuple(f.id for f in known if (f.accuracy == 0) is exact and (scale, f.id) in fits):
                return scale, found
    return 1.0, ()


def _shares(
    rows: pl.DataFrame, spans: Mapping[str, tuple[pl.Expr, pl.Expr]], asked: Sequence[tuple[float, str]]
) -> dict[tuple[float, str], float]:
    """In which share of the rows each formula fits at a scale."""
    if not asked:
        return {}
    found = rows.select(_touches(*spans[name], scale).sum().alias(str(at)) for at, (scale, name) in enumerate(asked))
    return {which: count / len(rows) for which, count in zip(asked, found.row(0), strict=True)}


def _with_allowed(rows: pl.DataFrame, rounding: Rounding) -> pl.DataFrame:
    """Rows with the ``least`` and the ``most`` FLOPs per token that the printed numbers allow."""
    printed, time, work = pl.col(LOGGED), pl.col(TIME), pl.col("work")
    return rows.with_columns(
        least=(printed - rounding.tflops) * (time - rounding.below_ms) / work,
        most=(printed + rounding.tflops) * (time + rounding.above_ms) / work,
    )


def _touches(low: pl.Expr, high: pl.Expr, scale: float) -> pl.Expr:
    """Whether the span the formula allows and the span the log allows touch."""
    return (low <= pl.col("most") * scale) & (high >= pl.col("least") * scale)


def _span(
    formula: PrintedFormula, shape: ModelShape, lengths: Sequence[int], rounding: Rounding
) -> tuple[pl.Expr, pl.Expr]:
    """The least and the most FLOPs per token of a row, by the accuracy of the formula and the rounding of the printed
    attention share. Null where the number of the row's sequence length is not known.
    """
    low = high = _by_length(lengths, lambda s: formula.flops(shape, s))
    if formula.measured_core is not None:
        measured = formula.measured_core
        core = _by_length(lengths, lambda s: measured(shape, s))
        share = pl.col(CORE_ATTENTION_RATIO)
        low, high = low + core * (share - rounding.ratio), high + core * (share + rounding.ratio)
    off = formula.accuracy + EXACT
    return low * (1 - off), high * (1 + off)


def missing_inputs(formula: PrintedFormula, shape: ModelShape, rows: pl.DataFrame) -> tuple[str, ...]:
    """Names of what ``formula`` needs and neither ``shape`` nor ``rows`` know."""
    unprinted = formula.measured_core is not None and rows[CORE_ATTENTION_RATIO].null_count() == len(rows)
    return (*formula.missing(shape), *((CORE_ATTENTION_RATIO,) if unprinted else ()))


def _by_length(lengths: Sequence[int], flops_of: Callable[[int], float | None]) -> pl.Expr:
    """The number of each row's sequence length."""
    found = [flops_of(s) for s in lengths]
    if len(lengths) == 1:
        return pl.lit(found[0], pl.Float64)
    return pl.col("seq_length").replace_strict(lengths, found, default=None, return_dtype=pl.Float64)
