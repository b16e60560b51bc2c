"""Rates that a log prints and the run contradicts: by how much, and the cause where arithmetic proves it.

Comes in: the steps with their rates, what is known of the run, its peak, and the identified formula of its TFLOP/s.
Goes out: at most one note for each printed rate, with both figures. The framework's name is not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Literal, cast

import polars as pl

from analysis.flops import CORE, real_model_formula
from analysis.hardware.devices import DevicePeak
from analysis.identify.causes import (
    RATIO,
    Cause,
    of_lengths,
    of_peaks,
    of_samples,
    of_sizes,
    of_spans,
    of_time,
    of_units,
)
from analysis.identify.causes_of_flops import FormulaWork, of_flops, of_printed_flops, of_sizes_and_formulas
from analysis.identify.formula import Identification
from analysis.identify.implied_peak import ImpliedPeak, divided_by, implied_peak
from analysis.identify.matching import LOGGED, RATIO_UNITS, TFLOPS_UNITS
from analysis.identify.printed_precision import printed_unit
from analysis.model.shape import ModelShape
from logparse.context.run_context import RunContext
from logparse.findings import Note, info, warning
from logparse.light_dataclass import dataclass

# Relative difference up to which a cause explains a ratio, in addition to the rounding.
PROVEN = 0.005
# Rounding beyond this proves nothing: more causes would come near.
MOST_ROUNDING = 0.05
# A rate of the passes alone is at most so many times ours: half of the time is not spent between two steps.
MOST_OF_PASSES = 2.0
# Rates of single steps that spread so far do not show what is left out.
SPREAD = 1.5
# The batch, the sequence length or the time is not what the log's own rate was made of.
UNEXPLAINED = {"no_known_cause_of_samples", "no_known_cause_of_tokens"}


@dataclass(frozen=True)
class Known:
    """The inputs that decide on causes."""

    steps: pl.DataFrame
    context: RunContext
    peak: DevicePeak | None
    identified: Identification
    work: FormulaWork
    of_passes: bool = False

    @property
    def peak_tflops(self) -> float | None:
        """The peak of one device, in TFLOP/s."""
        return self.peak.peak_tflops_per_second if self.peak else None


def describe_disagreements(
    steps: pl.DataFrame,
    context: RunContext,
    peak: DevicePeak | None,
    identified: Identification,
    work: FormulaWork,
    of_passes: bool = False,
) -> tuple[Note, ...]:
    """One warning for each rate that the log prints and the run contradicts.

    ``identified`` is the identified formula of the log's TFLOP/s, ``work`` what our TFLOP/s count. ``of_passes``: the
    printed samples/s leave out the time between two steps.
    """
    sides = compare_rates(steps, context.get("world_size"))
    if all(side.agrees for side in sides):
        return ()
    known = Known(of_time(steps), context, peak, identified, work, of_passes)
    samples_agree = any(side.agrees for side in sides if side.figure.kind == "samples")
    differing = (side for side in compare_rates(known.steps, context.get("world_size")) if not side.agrees)
    return tuple(_note(side, _cause(side, known, samples_agree)) for side in differing)


def _note(side: RateComparison, cause: Note) -> Note:
    code = "printed_share_differs" if side.figure.kind == "share" else "printed_rate_differs"
    if cause.code in UNEXPLAINED:
        code = "printed_rate_unexplained"
    figure = side.figure.printed
    return warning(code, figure=figure, printed=side.printed, ours=side.ours, ratio=side.ratio, cause=cause)


def _cause(side: RateComparison, known: Known, samples_agree: bool) -> Note:
    """The one cause that explains the ratio, or a note that there are several or none."""
    if known.of_passes and side.figure.kind == "samples" and 1 < side.ratio <= MOST_OF_PASSES:
        return _of_last_steps(side) or info("time_between_steps_left_out", share=1 - 1 / side.ratio)
    if side.figure.kind == "share" and known.peak and (implied := implied_peak(side.rows)):
        return _of_known_peak(side, known, implied, known.peak)
    return _explained(side, known, [*_common(side, known), *_own(side, known, samples_agree)])


def _of_last_steps(side: RateComparison) -> Note | None:
    """That each rate is of the last step of its line alone, where they are too far apart to be of the others too."""
    printed = side.rows["_printed"]
    low, high = printed.quantile(0.1, "nearest"), printed.quantile(0.9, "nearest")
    spread = low is not None and high is not None and high > SPREAD * low
    return info("rates_of_last_steps", low=low, high=high) if spread else None


def _of_known_peak(side: RateComparison, known: Known, implied: ImpliedPeak, peak: DevicePeak) -> Note:
    """The cause of an MFU or HFU whose peak follows from the TFLOP/s printed with it."""
    causes = [*_common(side, known), *_of_flops(side, known)]
    if not known.identified.matches:
        causes += of_sizes_and_formulas(side.rows, side.figure.ours, known.context, known.peak_tflops)
    other = divided_by(implied, peak)
    if other is None:
        return _explained(side, known, causes)
    left = side.ratio * implied.tflops_per_second / peak.peak_tflops_per_second
    if side.is_rounded_from(left):
        return other
    return info("two_causes", causes=[other, _explained(side, known, causes, side.ratio / left)])


def _common(side: RateComparison, known: Known) -> Iterator[Cause]:
    steps_of_row = side.rows["iterations"].median()
    yield from of_sizes(known.context, side.figure.total, int(steps_of_row) if isinstance(steps_of_row, float) else 1)
    yield from of_spans(side.rows)
    # Where a formula fits the TFLOP/s, its scale shows another unit.
    if not (side.figure.kind == "flops" and known.identified.matches):
        yield from of_units()


def _own(side: RateComparison, known: Known, samples_agree: bool) -> Iterator[Cause]:
    """Causes of this kind of figure alone."""
    kind, ours = side.figure.kind, side.figure.ours
    if kind == "samples":
        yield from of_samples()
    if kind == "tokens" and samples_agree:
        yield from of_lengths(side.rows, side.ratio)
    if kind == "flops":
        yield from of_printed_flops(side.rows, ours, known.context, known.identified, known.work)
    if kind == "share":
        yield from _of_flops(side, known)
        yield from of_peaks(known.peak) if known.peak else ()


def _of_flops(side: RateComparison, known: Known) -> Iterator[Cause]:
    return of_flops(side.rows, side.figure.ours, known.context, known.identified, known.work, known.peak_tflops)


def _explained(side: RateComparison, known: Known, causes: Sequence[Cause], divided: float = 1.0) -> Note:
    """A note on those of ``causes`` that explain the ratio divided by ``divided``."""
    factors = [pl.lit(c.factor) if isinstance(c.factor, float) else c.factor for c in causes]
    # The median over all rows; a row without a factor counts as infinitely far.
    off = [(pl.col(RATIO) / divided / f - 1).abs().fill_null(inf).median().alias(str(i)) for i, f in enumerate(factors)]
    most = PROVEN + min(side.rounding, MOST_ROUNDING)
    near = [c for c, miss in zip(causes, side.rows.select(off).row(0), strict=True) if miss <= most]
    # There are many formulas, and a simpler cause may give the same number.
    notes = [c.note for c in near if not c.last] or _merged([c.note for c in near])
    if not notes:
        return _unknown(side, known)
    return notes[0] if len(notes) == 1 else info("several_causes", causes=notes)


def _merged(notes: Sequence[Note]) -> list[Note]:
    """All formulas as one cause."""
    names = [name for note in notes for name in note.fields.get("formulas", ())]
    own_notes = [note for note in notes if "formulas" not in note.fields]
    return [info("counts_by_formula", formulas=names), *own_notes] if names else own_notes


def _within_documents(side: RateComparison, context: RunContext) -> Note | None:
    """That the log may count the lengths of documents, which no line shows: its TFLOP/s lie between none and all."""
    length = context.get("seq_length")
    terms = (
        real_model_formula().terms_per_token(ModelShape.from_quantities(context.values()), length) if length else None
    )
    tokens = side.rows["tokens_per_second_per_device"].median()
    if not context.get("packed_documents") or terms is None or not isinstance(tokens, float):
        return None
    high = sum(terms.values()) * tokens / 1e12
    low = high - terms[CORE] * tokens / 1e12
    return info("counts_documents", low=low, high=high) if low <= side.printed <= high else None


def _unknown(side: RateComparison, known: Known) -> Note:
    """That no cause is known, and what would settle it."""
    kind = side.figure.kind
    if kind == "flops" and (within := _within_documents(side, known.context)):
        return within
    if kind == "flops" and known.identified.findings:
        return info("no_known_cause_of_formula", findings=known.identified.findings)
    size = {"samples": "global_batch_size", "tokens": "seq_length"}.get(kind)
    if size is None:
        return info("no_known_cause_of_share" if kind == "share" else "no_known_cause")
    ours = side.rows[size].median()
    if not isinstance(ours, float):
        return info("no_known_cause")
    return info(f"no_known_cause_of_{kind}", ours=round(ours), implied=round(ours * side.ratio))


# Relative difference up to which a printed rate agrees; rounding may add to it.
AGREE = 0.05
COUNT_UNITS = (1.0, *TFLOPS_UNITS)
# The work of a step of which all devices together print a rate; it is known without their number.
OF_ALL = {
    "samples": pl.col("global_batch_size"),
    "tokens": pl.col("global_batch_size") * pl.col("seq_length"),
}


@dataclass(frozen=True)
class PrintedRate:
    """A column of printed rates and our column of the same rate; ``total`` is the rate of all devices together."""

    printed: str
    ours: str
    kind: Literal["samples", "tokens", "flops", "share"]
    total: bool = False
    units: Sequence[float] = TFLOPS_UNITS


FIGURES = (
    PrintedRate("logged_samples_per_second", "samples_per_second_per_device", "samples", total=True),
    PrintedRate("logged_samples_per_second_per_device", "samples_per_second_per_device", "samples"),
    PrintedRate("logged_tokens_per_second", "tokens_per_second_per_device", "tokens", True, COUNT_UNITS),
    PrintedRate("logged_tokens_per_second_per_device", "tokens_per_second_per_device", "tokens", False, COUNT_UNITS),
    PrintedRate(LOGGED, "tflops_per_second_per_device", "flops"),
    PrintedRate("logged_mfu", "mfu", "share", units=RATIO_UNITS),
    PrintedRate("logged_hfu", "hfu", "share", units=RATIO_UNITS),
)


@dataclass(frozen=True)
class RateComparison:
    """One printed rate and ours, as medians over the ``rows`` that count and have both.

    ``ratio`` is printed over ours. ``rounding`` is the relative error that the printed digits allow.
    """

    figure: PrintedRate
    rows: pl.DataFrame
    printed: float
    ours: float
    ratio: float
    rounding: float

    @property
    def agrees(self) -> bool:
        """Whether the two are the same rate, as far as such rates go."""
        return self.is_rounded_from(self.ratio)

    def is_rounded_from(self, ratio: float) -> bool:
        """Whether a printed value ``ratio`` times the true one is within half of its last digit, and ``AGREE``."""
        return ratio * (1 - self.rounding) <= 1 + AGREE and ratio * (1 + self.rounding) >= 1 - AGREE


def compare_rates(steps: pl.DataFrame, world_size: int | None) -> list[RateComparison]:
    """Compare every printed rate with ours, where rows have both."""
    return [side for figure in FIGURES if (side := _compared(steps, figure, world_size))]


def _compared(steps: pl.DataFrame, figure: PrintedRate, world_size: int | None) -> RateComparison | None:
    """Compare ``figure`` as printed and as computed; None where no row that counts has both."""
    if not steps[figure.printed].count():
        return None
    ours = pl.col(figure.ours)
    if figure.total:
        per_second = 1000 / pl.col("step_time_ms")
        ours = ours * world_size if world_size else OF_ALL[figure.kind] * per_second
    # The framework divided by the time that it printed.
    ours = ours * pl.col("step_time_ms") / pl.coalesce("elapsed_time_per_iteration_ms", "step_time_ms")
    compared = {"_printed": pl.col(figure.printed), "_ours": ours, RATIO: pl.col(figure.printed) / ours}
    fits = "counted", pl.col("_printed") > 0, pl.col(RATIO).is_finite(), pl.col(RATIO) > 0
    rows = steps.with_columns(**compared).filter(*fits)
    if rows.is_empty():
        return None
    printed, computed, ratio = (cast("float", rows[name].median()) for name in compared)
    # A rate that agrees needs no rounding.
    unit = 0.0 if abs(ratio - 1) <= AGREE else printed_unit(rows["_printed"], figure.units)
    return RateComparison(figure, rows, printed, computed, ratio, unit / 2 / printed)
