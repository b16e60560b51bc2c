"""Causes by which the FLOPs of a printed rate differ from ours: formulas, recomputation, lengths, and devices too.

Comes in: the rows, what is known of the run, and the identified formula of its TFLOP/s. Goes out: causes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import polars as pl

from analysis.flops import Recompute, all_formulas
from analysis.flops.printed import PRINTED_FORMULAS
from analysis.identify.causes import RATIO, Cause, of_devices
from analysis.identify.formula import Identification, fitting_formulas
from analysis.identify.matching import LOGGED, measure_rounding
from analysis.model.shape import ModelShape
from logparse.context.run_context import RunContext
from logparse.findings import Note, info
from logparse.light_dataclass import dataclass

# One forward pass more, or less, than forward and backward: 4 of 3 passes.
RECOMPUTED = 4 / 3
# Shares of the peak: of the real model's work alone, and with what is recomputed.
SHARES = ("mfu", "hfu")
# Rounding that is more than this part of a value lets a product of two causes fit by chance.
FEW_DIGITS = 0.0005
# Lengths that are tried for one another: packed and unpacked samples are often powers of two apart.
LENGTHS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class FormulaWork:
    """The work of a step by the chosen formula, as parts of the work that its TFLOP/s count; None where unknown.

    ``model`` is without recomputation, ``executed`` with all of it.
    """

    model: float | None
    executed: float | None


def of_printed_flops(
    rows: pl.DataFrame, ours: str, context: RunContext, identified: Identification, work: FormulaWork
) -> Iterator[Cause]:
    """What makes TFLOP/s differ; ``identified`` compared them with every formula row by row."""
    if identified.matches:
        yield Cause(_identified(context, identified), pl.col(RATIO))
    else:
        yield from _recompute(rows, ours, work)
        yield from _other_lengths(rows, context)
        yield from _another_pass(rows, context)
        yield from of_sizes_and_formulas(rows, ours, context, None)


def _another_pass(rows: pl.DataFrame, context: RunContext) -> Iterator[Cause]:
    """A formula that gives three of the four passes of every row: one more is of a reference model, or recomputed."""
    if not _has_enough_digits(rows):
        return
    shape = ModelShape.from_quantities(context.values()).all_trained
    three = rows.with_columns(pl.col(LOGGED) / RECOMPUTED)
    scale, fitting = fitting_formulas(three, shape, context.get("seq_length"), context.get("world_size"))
    exact = [name for name in fitting if PRINTED_FORMULAS[name].accuracy == 0]
    if exact and scale == 1:
        yield Cause(info("counts_another_pass_by", formulas=exact), pl.col(RATIO))


def _has_enough_digits(rows: pl.DataFrame) -> bool:
    """Whether the TFLOP/s have so many digits that a product of two causes does not fit by chance."""
    return bool(measure_rounding(rows).tflops <= FEW_DIGITS * rows[LOGGED].median())  # type: ignore[operator]


def of_sizes_and_formulas(rows: pl.DataFrame, ours: str, context: RunContext, peak: float | None) -> Iterator[Cause]:
    """Devices counted too often or left out, and another formula at once: one that gives what is left of every row.

    Of so many products one fits a coarse number by chance.
    """
    shape, world = ModelShape.from_quantities(context.values()).all_trained, context.get("world_size")
    if not world or not _has_enough_digits(rows):
        return
    for size in of_devices(context, total=False):
        scale, fitting = fitting_formulas(rows, shape, context.get("seq_length"), world / size.factor)
        exact = [name for name in fitting if PRINTED_FORMULAS[name].accuracy == 0]
        if exact and scale == 1:
            note = info("two_causes", causes=[size.note, info("counts_by_formula", formulas=exact)])
            yield Cause(note, pl.col(LOGGED) / _tflops(ours, peak), last=True)


def _identified(context: RunContext, identified: Identification) -> Note:
    """The formula of the log's TFLOP/s, and which of ours gives the same."""
    recompute = cast("Recompute | None", context.get("recompute"))
    ours = [f.name for f in all_formulas().values() if f.printed_as.get(f.quoted(recompute)) in identified.matches]
    if not ours or identified.scale != 1:
        return info("identified", findings=identified.findings)
    return info("identified_as", formula=ours[0], findings=identified.findings)


def of_flops(
    rows: pl.DataFrame,
    ours: str,
    context: RunContext,
    identified: Identification,
    work: FormulaWork,
    peak: float | None,
) -> Iterator[Cause]:
    """Causes by which the FLOPs of an MFU or HFU differ."""
    yield from _recompute(rows, ours, work)
    yield from _formulas(rows, ours, context, identified.matches or tuple(PRINTED_FORMULAS), peak)


def _recompute(rows: pl.DataFrame, ours: str, work: FormulaWork) -> Iterator[Cause]:
    """Forward passes that one of the two counts."""
    model, executed = _work_over(rows, ours, work)
    if executed and executed > 1.01:
        yield Cause(info("recompute_counted"), executed)
    elif ours != "hfu":
        yield Cause(info("recompute_counted"), RECOMPUTED)
    if model and model < 0.99:
        yield Cause(info("recompute_left_out"), model)


def _work_over(rows: pl.DataFrame, ours: str, work: FormulaWork) -> tuple[float | None, float | None]:
    """The model's work and the executed work, as parts of the work that ``ours`` counts."""
    if ours not in SHARES:
        return work.model, work.executed
    model, executed = rows.select((pl.col(name) / pl.col(ours)).median() for name in SHARES).row(0)
    return model, executed


def _tflops(ours: str, peak: float | None) -> pl.Expr:
    """TFLOP/s of ``ours``, a share of the ``peak`` or TFLOP/s itself."""
    return pl.col(ours) * pl.lit(peak, pl.Float64) if ours in SHARES else pl.col(ours)


def _formulas(
    rows: pl.DataFrame, ours: str, context: RunContext, names: Sequence[str], peak: float | None
) -> Iterator[Cause]:
    """Printed formulas by ``names``, as parts of ours."""
    tflops = _tflops(ours, peak)
    per_token = rows.select((tflops * 1e12 / pl.col("tokens_per_second_per_device")).median()).item()
    lengths = rows["seq_length"].drop_nulls()
    if not per_token or lengths.is_empty():
        return
    shape, length = ModelShape.from_quantities(context.values()).all_trained, int(lengths[0])
    for name in names:
        if flops := PRINTED_FORMULAS[name].flops_per_token(shape, length):
            yield Cause(info("counts_by_formula", formulas=[name]), flops / per_token, last=True)


def _other_lengths(rows: pl.DataFrame, context: RunContext) -> Iterator[Cause]:
    """Lengths at which a formula gives the printed TFLOP/s of every row."""
    lengths = rows["seq_length"].drop_nulls()
    if lengths.n_unique() != 1:
        return
    shape, world = ModelShape.from_quantities(context.values()).all_trained, context.get("world_size")
    for part in LENGTHS:
        length = int(lengths[0] * part)
        tried = rows.with_columns(seq_length=pl.lit(length, pl.Int64))
        _, matches = fitting_formulas(tried, shape, length, world)
        if matches:
            note = info("counts_other_length_by", length=length, ours=lengths[0], formulas=list(matches))
            yield Cause(note, pl.col(RATIO))
