"""Whether a formula reproduces the printed TFLOP/s within the printed rounding.

A row is divided by ``elapsed_time_per_iteration_ms``, because the framework divided by what it printed there; where it
printed a rate or a clock instead, what their rounding leaves open of the time is open here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.flops.printed import CORE_ATTENTION_RATIO, PRINTED_FORMULAS, PrintedFormula
from analysis.identify.printed_precision import EXACT, TIME_UNITS, printed_unit
from analysis.model.shape import ModelShape
from logparse.light_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64] | float


LOGGED = "logged_tflops_per_second_per_device"
TIME, RESOLUTION = "elapsed_time_per_iteration_ms", "time_resolution_ms"
INPUTS = (TIME, RESOLUTION, "global_batch_size", "seq_length", CORE_ATTENTION_RATIO)

# Share of rows that must fit. A few may not: the batch grew within them, or another rank wrote into the line.
ENOUGH = 0.95
# Units a framework has rounded to: TFLOP/s to a tenth or finer, times to 0.01 s or finer, a ratio to 1 % or finer.
TFLOPS_UNITS = tuple(10.0**-digits for digits in range(1, 9))
RATIO_UNITS = tuple(10.0**-digits for digits in range(2, 9))
WHOLE_MS = 1.0
# A rate and the TFLOP/s of one line can be of two readings of the clock; their relative difference (InternEvo).
TWO_READINGS = 5e-6
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
    """The rounding of printed values, measured from the values themselves."""
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
    length = pl.col("seq_length").fill_null(pl.lit(seq_length, pl.Int64))
    work = pl.col("global_batch_size") * length / pl.lit(world_size, pl.Float64) * (1000 / 1e12)
    worked = steps[(LOGGED, *INPUTS)].with_columns(length, work=work)
    return worked.filter((pl.col(TIME) > 0) & pl.col("work").is_not_null())


def matching_formulas(logged: pl.DataFrame, shape: ModelShape, rounding: Rounding) -> tuple[float, tuple[str, ...]]:
    """The ids that fit, and the scale they fit at. Formulas that are only about right are asked where no other fits."""
    countable = [f for f in PRINTED_FORMULAS.values() if len(logged) and not missing_inputs(f, shape, logged)]
    if not countable:
        return 1.0, ()
    rows = _with_allowed(logged, rounding)
    fits = {(scale, f.id) for f in countable for scale in _fitting_scales(f, shape, rows, rounding)}
    for scale in SCALES:
        for exact in (True, False):
            if ids := tuple(f.id for f in countable if (f.accuracy == 0) is exact and (scale, f.id) in fits):
                return scale, ids
    return 1.0, ()


def _fitting_scales(
    formula: PrintedFormula, shape: ModelShape, rows: pl.DataFrame, rounding: Rounding
) -> Iterator[float]:
    """The scales at which the formula fits nearly all rows; what fits none of the first tenth does not."""
    tried = [s for s, share in _shares(formula, shape, rows.head(-(-len(rows) // 10)), rounding, SCALES) if share > 0]
    yield from (s for s, share in _shares(formula, shape, rows, rounding, tried) if share >= ENOUGH)


def _shares(
    formula: PrintedFormula, shape: ModelShape, rows: pl.DataFrame, rounding: Rounding, scales: Sequence[float]
) -> Iterator[tuple[float, float]]:
    """In which share of the rows the span the formula allows and the span the log allows touch, at each scale."""
    if not scales:
        return
    low, high = _span(formula, shape, rows, rounding)
    least, most = (rows[name].to_numpy() for name in ("least", "most"))
    yield from ((scale, float(((low <= most * scale) & (high >= least * scale)).mean())) for scale in scales)


def _with_allowed(rows: pl.DataFrame, rounding: Rounding) -> pl.DataFrame:
    """Rows with the ``least`` and the ``most`` FLOPs per token that the printed numbers allow."""
    printed, time, work = pl.col(LOGGED), pl.col(TIME), pl.col("work")
    left_open = pl.col(RESOLUTION) + time * TWO_READINGS
    return rows.with_columns(
        least=(printed - rounding.tflops) * (time - pl.max_horizontal(left_open, rounding.below_ms)) / work,
        most=(printed + rounding.tflops) * (time + pl.max_horizontal(left_open, rounding.above_ms)) / work,
    )


def _span(formula: PrintedFormula, shape: ModelShape, rows: pl.DataFrame, rounding: Rounding) -> tuple[Values, Values]:
    """The least and the most FLOPs per token of a row, by the accuracy of the formula and the rounding of the printed
    attention share. NaN where the number of the row's sequence length is not known.
    """
    low = high = _by_length(rows["seq_length"], lambda s: formula.flops(shape, s))
    if formula.measured_core is not None:
        measured = formula.measured_core
        core = _by_length(rows["seq_length"], lambda s: measured(shape, s))
        share = rows[CORE_ATTENTION_RATIO].to_numpy()
        low, high = low + core * (share - rounding.ratio), high + core * (share + rounding.ratio)
    off = formula.accuracy + EXACT
    return low * (1 - off), high * (1 + off)


def missing_inputs(formula: PrintedFormula, shape: ModelShape, rows: pl.DataFrame) -> tuple[str, ...]:
    """Names of what ``formula`` needs and neither ``shape`` nor ``rows`` know."""
    unprinted = formula.measured_core is not None and rows[CORE_ATTENTION_RATIO].null_count() == len(rows)
    return (*formula.missing(shape), *((CORE_ATTENTION_RATIO,) if unprinted else ()))


def _by_length(lengths: pl.Series, flops_of: Callable[[int], float | None]) -> Values:
    """The number of each row's sequence length."""
    # That a log has one length is seen at once.
    different = [lengths[0]] if lengths.min() == lengths.max() else lengths.unique().to_list()
    numbers = [math.nan if (flops := flops_of(s)) is None else flops for s in different]
    if len(different) == 1:
        return numbers[0]
    return lengths.replace_strict(different, numbers, return_dtype=pl.Float64).to_numpy()


@dataclass(frozen=True)
class Candidate:
    """One printed formula compared with the log, at the row of median time; unknown is None.

    ``missing`` names its missing inputs. ``difference`` is relative to the log's value in TFLOP/s.
    """

    id: str
    title: str
    missing: tuple[str, ...]
    tflops_per_second_per_device: float | None
    difference: float | None
    matches: bool


def candidates(
    shape: ModelShape, row: pl.DataFrame, meant: float | None, matches: tuple[str, ...]
) -> tuple[Candidate, ...]:
    """Every printed formula compared with the one ``row``; ``meant`` is its printed value in TFLOP/s."""
    return tuple(_candidate(f, shape, row, meant, f.id in matches) for f in PRINTED_FORMULAS.values())


def _candidate(
    formula: PrintedFormula, shape: ModelShape, row: pl.DataFrame, meant: float | None, matches: bool
) -> Candidate:
    missing = missing_inputs(formula, shape, row)
    value = None if missing or row.is_empty() else _tflops(formula, shape, row.row(0, named=True))
    difference = None if value is None or meant is None else value / meant - 1
    return Candidate(formula.id, formula.title, missing, value, difference, matches)


def _tflops(formula: PrintedFormula, shape: ModelShape, row: Mapping[str, Any]) -> float | None:
    flops = formula.flops_per_token(shape, row["seq_length"], row[CORE_ATTENTION_RATIO])
    return None if flops is None else flops * row["work"] / row[TIME]
