"""The answer in words: which formula a log's number is, or why none or several fit. Computes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from analysis.flops import Recompute
from analysis.flops.printed import CORE_ATTENTION_RATIO, PRINTED_FORMULAS
from analysis.identify._fit import EXACT, Rounding
from logparse.schema import QUANTITY

if TYPE_CHECKING:
    from analysis.identify._formula import Candidate, Identification

# Rounding that is more than this part of a value lets formulas fit by chance.
COARSE = 0.005

# What a match says beyond the formula, by formula and the run's own setting.
REMARKS: Mapping[tuple[str, Recompute], str] = {
    ("A3", "full"): (
        "recompute is not counted although everything is recomputed: AscendSpeed looked only at "
        "checkpoint-activations, Megatron-DeepSpeed of 2023-07 to 2023-09 only at selective recompute"
    ),
    ("A4", "selective"): "selective recompute is counted as full, as in Megatron-DeepSpeed since 2023-07",
    ("A4", "none"): "it counts a recompute that the settings do not show",
    ("D-none", "full"): "recompute is not counted although everything is recomputed",
    ("D-full", "none"): "it counts a recompute that the settings do not show",
}


def describe(found: Identification, rounding: Rounding, recompute: Recompute | None) -> str:
    """One sentence for a log whose rows could be compared."""
    known = [row for row in found.rows if row.tflops_per_second_per_device is not None]
    missing = _missing(found.rows)
    if not known or found.logged is None:
        return f"no formula can be computed: {pass_flags(missing)}; or name the --model"
    parts = list(_matched(found, known, rounding, recompute) if found.matches else _unmatched(found.logged, known))
    if missing:
        left = sum(bool(row.missing) and row.missing != (CORE_ATTENTION_RATIO,) for row in found.rows)
        parts.append(f"{left} formulas were not computed: {pass_flags(missing)}; or name the --model")
    return "; ".join(parts)


def pass_flags(names: Sequence[str]) -> str:
    """Say what is unknown, and which flags give it, as far as there are flags."""
    flags = " ".join("--" + name.replace("_", "-") for name in names if QUANTITY[name].flag)
    return f"{', '.join(names)} unknown" + (f"; pass {flags}" if flags else "")


def _missing(rows: Iterable[Candidate]) -> list[str]:
    """Sizes that would let more formulas be computed; only the log itself can give the attention share."""
    return list(dict.fromkeys(name for row in rows for name in row.missing if name != CORE_ATTENTION_RATIO))


def _unmatched(logged: float, known: Sequence[Candidate]) -> Iterator[str]:
    nearest = min(known, key=lambda row: abs(row.difference or 0.0))
    yield (
        f"none of {len(known)} formulas gives the log's {logged:g}; the nearest is {_name(nearest)} with "
        f"{_value(nearest)}, {nearest.difference or 0.0:+.2%}"
    )
    yield (
        "either the shape, the sequence length, the batch or the device count is not what the framework used, or it "
        "counts something else"
    )


def _matched(
    found: Identification, known: Sequence[Candidate], rounding: Rounding, recompute: Recompute | None
) -> Iterator[str]:
    logged = found.logged or 0.0
    matching = [row for row in known if row.matches]
    names = ", ".join(_name(row) for row in matching)
    if found.scale == 1:
        yield f"the log's {logged:g} is {names}"
    else:
        wrong = f"1000 times too {'small' if found.scale > 1 else 'large'}"
        yield f"the log's {logged:g} is {wrong} and stands for {_value(matching[0])}: {names}"
    yield from _how_sure(logged, matching, rounding)
    yield from _about(known, matching)
    yield from [REMARKS[key] for row in matching if recompute and (key := (row.id, recompute)) in REMARKS][:1]
    yield from _ours(known, recompute)


def _how_sure(logged: float, matching: Sequence[Candidate], rounding: Rounding) -> Iterator[str]:
    values = [row.tflops_per_second_per_device or 0.0 for row in matching]
    differ = max(values) > min(values) * (1 + EXACT)
    span = f" ({min(values):.6g} to {max(values):.6g})" if differ else ""
    if rounding.tflops > COARSE * logged:
        yield f"the log prints too few digits to be sure{span}"
    elif differ:
        yield f"its digits do not tell them apart{span}"
    elif len(matching) > 1:
        yield "for this shape they are the same number"


def _about(known: Iterable[Candidate], matching: Sequence[Candidate]) -> Iterator[str]:
    """Formulas that are only about right are asked last, and then others may be as near."""
    accuracy = max(PRINTED_FORMULAS[row.id].accuracy for row in matching)
    if accuracy == 0:
        return
    near = [row.id for row in known if not row.matches and abs(row.difference or 0.0) <= accuracy]
    others = f", as do {', '.join(near)}: check the sizes, such as the padded vocabulary"
    yield f"it fits within {accuracy:.2%} and not exactly" + (others if near else "")


def _ours(known: Iterable[Candidate], recompute: Recompute | None) -> Iterator[str]:
    """What the formulas this project computes with by default would have given, where they are not the log's."""
    said = {
        "A4" if recompute == "full" else "A3": "the ascendspeed formula gives",
        "M8": "with causal attention (megatron) it is",
    }
    return (f"{said[row.id]} {_value(row)}" for row in known if row.id in said and not row.matches)


def _name(row: Candidate) -> str:
    return f"{row.title} ({row.id})"


def _value(row: Candidate) -> str:
    return f"{row.tflops_per_second_per_device:.4g}"
