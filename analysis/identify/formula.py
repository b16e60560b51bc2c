"""The formula that a log's TFLOP/s was printed by, from a comparison of every printed formula with the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl

from analysis.flops import Recompute, default_formula, real_model_formula
from analysis.flops.printed import CORE_ATTENTION_RATIO, PRINTED_FORMULAS
from analysis.identify.matching import (
    LOGGED,
    TIME,
    Candidate,
    Rounding,
    candidates,
    comparable_rows,
    matching_formulas,
    measure_rounding,
)
from analysis.identify.printed_precision import EXACT
from analysis.model.shape import ModelShape
from logparse.findings import Note, info
from logparse.light_dataclass import dataclass
from logparse.schema import flag_of


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


# Rounding that is more than this part of a value lets formulas fit by chance.
COARSE = 0.005

# What a match says beyond the formula, by formula and the run's own setting.
REMARKS: Mapping[tuple[str, Recompute], Note] = {
    ("A3", "full"): info("full_recompute_not_counted_by_ascendspeed"),
    ("A4", "selective"): info("selective_recompute_counted_as_full"),
    ("A4", "none"): info("recompute_counted_without_setting"),
    ("D-none", "full"): info("full_recompute_not_counted"),
    ("D-full", "none"): info("recompute_counted_without_setting"),
}


def explain(
    rows: Sequence[Candidate], logged: float | None, scale: float, rounding: Rounding, recompute: Recompute | None
) -> Iterator[Note]:
    """The findings on a log whose rows could be compared, in order: they are parts of one sentence."""
    computed = [row for row in rows if row.tflops_per_second_per_device is not None]
    missing = _missing(rows)
    if not computed or logged is None:
        yield info("no_formula_computed_without_shape", unknown=unknown(missing))
        return
    matching = [row for row in computed if row.matches]
    yield from (_matched(matching, computed, logged, scale, rounding) if matching else _unmatched(logged, computed))
    if matching:
        yield from [REMARKS[key] for row in matching if recompute and (key := (row.id, recompute)) in REMARKS][:1]
        yield from _ours(computed, recompute)
    if missing:
        left = sum(bool(row.missing) and row.missing != (CORE_ATTENTION_RATIO,) for row in rows)
        yield info("formulas_not_computed", n=left, unknown=unknown(missing))


def unknown(names: Sequence[str]) -> Note:
    """That ``names`` are unknown, and which flags give them, as far as there are flags."""
    flags = [flag for name in names if (flag := flag_of(name))]
    return info("unknown_but_flags", names=list(names), flags=flags) if flags else info("unknown", names=list(names))


def _missing(rows: Iterable[Candidate]) -> list[str]:
    """Sizes that would let more formulas be computed; only the log itself can give the attention share."""
    return list(dict.fromkeys(name for row in rows for name in row.missing if name != CORE_ATTENTION_RATIO))


def _unmatched(logged: float, known: Sequence[Candidate]) -> Iterator[Note]:
    nearest = min(known, key=lambda row: abs(row.difference or 0.0))
    yield info(
        "no_formula_fits",
        n=len(known),
        logged=logged,
        nearest=nearest.id,
        tflops=nearest.tflops_per_second_per_device,
        difference=nearest.difference,
    )
    yield info("inputs_or_count_differ")


def _matched(
    matching: Sequence[Candidate], known: Sequence[Candidate], logged: float, scale: float, rounding: Rounding
) -> Iterator[Note]:
    names = [row.id for row in matching]
    if scale == 1:
        yield info("formula_fits", logged=logged, formulas=names)
    else:
        code = "formula_fits_too_small" if scale > 1 else "formula_fits_too_large"
        yield info(code, logged=logged, tflops=matching[0].tflops_per_second_per_device, formulas=names)
    yield from _how_sure(logged, matching, rounding)
    yield from _about(known, matching)


def _how_sure(logged: float, matching: Sequence[Candidate], rounding: Rounding) -> Iterator[Note]:
    values = [row.tflops_per_second_per_device or 0.0 for row in matching]
    low, high = min(values), max(values)
    differ = high > low * (1 + EXACT)
    if rounding.tflops > COARSE * logged:
        yield info("too_few_digits_between", low=low, high=high) if differ else info("too_few_digits")
    elif differ:
        yield info("digits_do_not_tell", low=low, high=high)
    elif len(matching) > 1:
        yield info("same_number")


def _about(known: Iterable[Candidate], matching: Sequence[Candidate]) -> Iterator[Note]:
    """Formulas that are only about right are asked last, and then others may be as near."""
    accuracy = max(PRINTED_FORMULAS[row.id].accuracy for row in matching)
    if accuracy == 0:
        return
    near = [row.id for row in known if not row.matches and abs(row.difference or 0.0) <= accuracy]
    if near:
        yield info("fits_about_as_others", accuracy=accuracy, others=near)
    else:
        yield info("fits_about", accuracy=accuracy)


def _ours(known: Iterable[Candidate], recompute: Recompute | None) -> Iterator[Note]:
    """What the formulas this project computes with by default would have given, where they are not the log's."""
    rows = {row.id: row for row in known if not row.matches}
    for formula, code in ((default_formula(), "our_formula_gives"), (real_model_formula(), "our_causal_formula_gives")):
        if row := rows.get(formula.printed_as.get(formula.quoted(recompute), "")):
            yield info(code, formula=formula.name, tflops=row.tflops_per_second_per_device)
