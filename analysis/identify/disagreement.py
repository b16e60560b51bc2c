"""Rates that a log prints and the run contradicts: by how much, and the cause where arithmetic proves it.

Comes in: the steps with their rates, what is known of the run, its peak, and what its TFLOP/s was told to be. Goes out:
at most one note for each printed rate, with both figures. The framework's name plays no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import polars as pl

from analysis.hardware.devices import DevicePeak
from analysis.identify.causes import (
    RATIO,
    Cause,
    of_flops,
    of_lengths,
    of_peaks,
    of_printed_flops,
    of_samples,
    of_sizes,
    of_spans,
    of_time,
    of_units,
)
from analysis.identify.formula import Identification
from analysis.identify.implied_peak import ImpliedPeak, divided_by, implied_peak
from analysis.identify.matching import LOGGED, RATIO_UNITS, TFLOPS_UNITS, printed_unit
from logparse.context.run_context import RunContext
from logparse.findings import Note, info, warning

# Relative difference up to which a printed rate agrees; rounding may add to it.
AGREE = 0.05
# Relative difference up to which a cause explains it, beside the rounding.
PROVEN = 0.005
# Rounding beyond this proves nothing: more causes would come near.
MOST_ROUNDING = 0.05
COUNT_UNITS = (1.0, *TFLOPS_UNITS)


@dataclass(frozen=True)
class Figure:
    """A rate that logs print in ``printed``, beside ours; ``total`` is one of all devices together."""

    printed: str
    ours: str
    kind: Literal["samples", "tokens", "flops", "share"]
    total: bool = False
    units: Sequence[float] = TFLOPS_UNITS


FIGURES = (
    Figure("logged_samples_per_second", "samples_per_second_per_device", "samples", total=True),
    Figure("logged_samples_per_second_per_device", "samples_per_second_per_device", "samples"),
    Figure("logged_tokens_per_second", "tokens_per_second_per_device", "tokens", True, COUNT_UNITS),
    Figure("logged_tokens_per_second_per_device", "tokens_per_second_per_device", "tokens", False, COUNT_UNITS),
    Figure(LOGGED, "tflops_per_second_per_device", "flops"),
    Figure("logged_mfu", "mfu", "share", units=RATIO_UNITS),
    Figure("logged_hfu", "hfu", "share", units=RATIO_UNITS),
)


@dataclass(frozen=True)
class Beside:
    """One printed rate beside ours over the ``rows`` that count and have both; medians.

    ``ratio`` is printed over ours, ``rounding`` what the printed digits let it be off by, relatively.
    """

    figure: Figure
    rows: pl.DataFrame
    printed: float
    ours: float
    ratio: float
    rounding: float

    @property
    def agrees(self) -> bool:
        """Whether the two are the same rate, as far as such rates go."""
        return abs(self.ratio - 1) <= AGREE + self.rounding


@dataclass(frozen=True)
class Known:
    """What the causes are told from."""

    steps: pl.DataFrame
    context: RunContext
    peak: DevicePeak | None
    found: Identification


def describe_disagreements(
    steps: pl.DataFrame, context: RunContext, peak: DevicePeak | None, found: Identification
) -> tuple[Note, ...]:
    """One warning for each rate that the log prints and the run contradicts.

    ``found`` is what the log's TFLOP/s was told to be.
    """
    sides = _beside_all(steps, context)
    if all(side.agrees for side in sides):
        return ()
    known = Known(of_time(steps), context, peak, found)
    samples_agree = any(side.agrees for side in sides if side.figure.kind == "samples")
    differing = (side for side in _beside_all(known.steps, context) if not side.agrees)
    return tuple(_note(side, _cause(side, known, samples_agree)) for side in differing)


def _beside_all(steps: pl.DataFrame, context: RunContext) -> list[Beside]:
    return [side for figure in FIGURES if (side := beside(steps, figure, context.get("world_size")))]


def beside(steps: pl.DataFrame, figure: Figure, world_size: int | None) -> Beside | None:
    """``figure`` as printed and as computed; None where no row that counts has both."""
    devices = pl.lit(world_size if figure.total else 1, pl.Float64)
    if steps[figure.printed].null_count() == len(steps):
        return None
    sides = steps.with_columns(_printed=pl.col(figure.printed), _ours=pl.col(figure.ours) * devices)
    rows = sides.filter("counted").with_columns((pl.col("_printed") / pl.col("_ours")).alias(RATIO))
    rows = rows.filter((pl.col("_printed") > 0) & pl.col(RATIO).is_finite() & (pl.col(RATIO) > 0))
    if rows.is_empty():
        return None
    printed, ours, ratio = rows.select(pl.col("_printed", "_ours", RATIO).median()).row(0)
    # What agrees is not asked for its digits.
    unit = 0.0 if abs(ratio - 1) <= AGREE else printed_unit(rows["_printed"], figure.units)
    return Beside(figure, rows, printed, ours, ratio, unit / 2 / printed)


def _note(side: Beside, cause: Note) -> Note:
    code = "printed_share_differs" if side.figure.kind == "share" else "printed_rate_differs"
    figure = side.figure.printed
    return warning(code, figure=figure, printed=side.printed, ours=side.ours, ratio=side.ratio, cause=cause)


def _cause(side: Beside, known: Known, samples_agree: bool) -> Note:
    """The one cause that explains the ratio; several, or none, are told as such."""
    if side.figure.kind == "share" and known.peak and (implied := implied_peak(side.rows)):
        return _of_known_peak(side, known, implied, known.peak)
    return _told(side, known, [*_common(side, known), *_own(side, known, samples_agree)])


def _of_known_peak(side: Beside, known: Known, implied: ImpliedPeak, peak: DevicePeak) -> Note:
    """The cause of an MFU or HFU whose peak the TFLOP/s beside it tells."""
    causes = [*_common(side, known), *of_flops(side.rows, side.figure.ours, known.context, known.found)]
    other = divided_by(implied, peak)
    if other is None:
        return _told(side, known, causes)
    left = side.ratio * implied.tflops_per_second / peak.peak_tflops_per_second
    if abs(left - 1) <= AGREE + side.rounding:
        return other
    return info("two_causes", causes=[other, _told(side, known, causes, side.ratio / left)])


def _common(side: Beside, known: Known) -> Iterator[Cause]:
    yield from of_sizes(known.context, side.figure.total)
    yield from of_spans(side.rows)
    # A TFLOP/s in another unit is told by the formula that it fits.
    if not (side.figure.kind == "flops" and known.found.matches):
        yield from of_units()


def _own(side: Beside, known: Known, samples_agree: bool) -> Iterator[Cause]:
    """Causes of this kind of figure alone."""
    kind, ours = side.figure.kind, side.figure.ours
    if kind == "samples":
        yield from of_samples()
    if kind == "tokens" and samples_agree:
        yield from of_lengths(side.rows, side.ratio)
    if kind == "flops":
        yield from of_printed_flops(side.rows, ours, known.context, known.found)
    if kind == "share":
        yield from of_flops(side.rows, ours, known.context, known.found)
        yield from of_peaks(known.peak) if known.peak else ()


def _told(side: Beside, known: Known, causes: Sequence[Cause], divided: float = 1.0) -> Note:
    """Those of ``causes`` that explain the ratio, once ``divided`` is taken out of it."""
    factors = [pl.lit(c.factor) if isinstance(c.factor, float) else c.factor for c in causes]
    # Half of the rows are as near as that; one that a cause says nothing of is not.
    off = [(pl.col(RATIO) / divided / f - 1).abs().fill_null(inf).median().alias(str(i)) for i, f in enumerate(factors)]
    most = PROVEN + min(side.rounding, MOST_ROUNDING)
    near = [c for c, miss in zip(causes, side.rows.select(off).row(0), strict=True) if miss <= most]
    # There are many formulas, and what is simpler may be the same number.
    notes = [c.note for c in near if not c.last] or _merged([c.note for c in near])
    if not notes:
        return _unknown(side, known)
    return notes[0] if len(notes) == 1 else info("several_causes", causes=notes)


def _merged(formulas: Sequence[Note]) -> list[Note]:
    names = [name for note in formulas for name in note.fields["formulas"]]
    return [info("counts_by_formula", formulas=names)] if names else []


def _unknown(side: Beside, known: Known) -> Note:
    """That no cause is known, and what would settle it."""
    kind = side.figure.kind
    if kind == "flops" and known.found.findings:
        return info("no_known_cause_of_formula", findings=known.found.findings)
    size = {"samples": "global_batch_size", "tokens": "seq_length"}.get(kind)
    if size is None:
        return info("no_known_cause_of_share" if kind == "share" else "no_known_cause")
    ours = side.rows[size].median()
    implied = round(float(ours) * side.ratio)  # type: ignore[arg-type]
    return info(f"no_known_cause_of_{kind}", ours=round(float(ours)), implied=implied)  # type: ignore[arg-type]
