"""The answer in words: which formula a log's number is, or why none or several fit. Computes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from analysis.flops import Recompute, as_built_formula, default_formula
from analysis.flops.printed import CORE_ATTENTION_RATIO, PRINTED_FORMULAS
from analysis.identify.matching import EXACT, Rounding
from logparse.language import msg, tr
from logparse.schema import QUANTITY

if TYPE_CHECKING:
    from analysis.identify.formula import Candidate, Identification

# Rounding that is more than this part of a value lets formulas fit by chance.
COARSE = 0.005

# What a match says beyond the formula, by formula and the run's own setting.
REMARKS: Mapping[tuple[str, Recompute], str] = {
    ("A3", "full"): msg(
        "recompute is not counted although everything is recomputed: AscendSpeed looked only at "
        "checkpoint-activations, Megatron-DeepSpeed of 2023-07 to 2023-09 only at selective recompute"
    ),
    ("A4", "selective"): msg("selective recompute is counted as full, as in Megatron-DeepSpeed since 2023-07"),
    ("A4", "none"): msg("it counts a recompute that the settings do not show"),
    ("D-none", "full"): msg("recompute is not counted although everything is recomputed"),
    ("D-full", "none"): msg("it counts a recompute that the settings do not show"),
}


def describe(found: Identification, rounding: Rounding, recompute: Recompute | None) -> str:
    """One sentence for a log whose rows could be compared."""
    known = [row for row in found.rows if row.tflops_per_second_per_device is not None]
    missing = _missing(found.rows)
    if not known or found.logged is None:
        return tr("no formula can be computed: {unknown}; or name the --model", unknown=pass_flags(missing))
    parts = list(_matched(found, known, rounding, recompute) if found.matches else _unmatched(found.logged, known))
    if missing:
        left = sum(bool(row.missing) and row.missing != (CORE_ATTENTION_RATIO,) for row in found.rows)
        parts.append(
            tr("{n} formulas were not computed: {unknown}; or name the --model", n=left, unknown=pass_flags(missing))
        )
    return tr("; ").join(parts)


def pass_flags(names: Sequence[str]) -> str:
    """Say what is unknown, and which flags give it, as far as there are flags."""
    flags = " ".join("--" + name.replace("_", "-") for name in names if QUANTITY[name].flag)
    listed = ", ".join(names)
    return (
        tr("{names} unknown; pass {flags}", names=listed, flags=flags) if flags else tr("{names} unknown", names=listed)
    )


def _missing(rows: Iterable[Candidate]) -> list[str]:
    """Sizes that would let more formulas be computed; only the log itself can give the attention share."""
    return list(dict.fromkeys(name for row in rows for name in row.missing if name != CORE_ATTENTION_RATIO))


def _unmatched(logged: float, known: Sequence[Candidate]) -> Iterator[str]:
    nearest = min(known, key=lambda row: abs(row.difference or 0.0))
    yield tr(
        "none of {n} formulas gives the log's {logged:g}; the nearest is {name} with {value}, {difference:+.2%}",
        n=len(known),
        logged=logged,
        name=_name(nearest),
        value=_value(nearest),
        difference=nearest.difference or 0.0,
    )
    yield tr(
        "either the shape, the sequence length, the batch or the device count is not what the framework used, or it "
        "counts something else"
    )


def _matched(
    found: Identification, known: Sequence[Candidate], rounding: Rounding, recompute: Recompute | None
) -> Iterator[str]:
    logged = found.logged or 0.0
    matching = [row for row in known if row.matches]
    names = reduce(lambda first, other: tr("{first}, {other}", first=first, other=other), map(_name, matching))
    if found.scale == 1:
        yield tr("the log's {logged:g} is {names}", logged=logged, names=names)
    else:
        said = (
            msg("the log's {logged:g} is 1000 times too small and stands for {value}: {names}")
            if found.scale > 1
            else msg("the log's {logged:g} is 1000 times too large and stands for {value}: {names}")
        )
        yield tr(said, logged=logged, value=_value(matching[0]), names=names)
    yield from _how_sure(logged, matching, rounding)
    yield from _about(known, matching)
    yield from [tr(REMARKS[key]) for row in matching if recompute and (key := (row.id, recompute)) in REMARKS][:1]
    yield from _ours(known, recompute)


def _how_sure(logged: float, matching: Sequence[Candidate], rounding: Rounding) -> Iterator[str]:
    values = [row.tflops_per_second_per_device or 0.0 for row in matching]
    differ = max(values) > min(values) * (1 + EXACT)
    span = tr(" ({low:.6g} to {high:.6g})", low=min(values), high=max(values)) if differ else ""
    if rounding.tflops > COARSE * logged:
        yield tr("the log prints too few digits to be sure{span}", span=span)
    elif differ:
        yield tr("its digits do not tell them apart{span}", span=span)
    elif len(matching) > 1:
        yield tr("for this shape they are the same number")


def _about(known: Iterable[Candidate], matching: Sequence[Candidate]) -> Iterator[str]:
    """Formulas that are only about right are asked last, and then others may be as near."""
    accuracy = max(PRINTED_FORMULAS[row.id].accuracy for row in matching)
    if accuracy == 0:
        return
    near = [row.id for row in known if not row.matches and abs(row.difference or 0.0) <= accuracy]
    if near:
        yield tr(
            "it fits within {accuracy:.2%} and not exactly, as do {names}: "
            "check the sizes, such as the padded vocabulary",
            accuracy=accuracy,
            names=", ".join(near),
        )
    else:
        yield tr("it fits within {accuracy:.2%} and not exactly", accuracy=accuracy)


def _ours(known: Iterable[Candidate], recompute: Recompute | None) -> Iterator[str]:
    """What the formulas this project computes with by default would have given, where they are not the log's."""
    rows = {row.id: row for row in known if not row.matches}
    for formula, said in (
        (default_formula(), msg("the {name} formula gives {value}")),
        (as_built_formula(), msg("with causal attention ({name}) it is {value}")),
    ):
        if row := rows.get(formula.printed_as.get(formula.quoted(recompute), "")):
            yield tr(said, name=formula.name, value=_value(row))


def _name(row: Candidate) -> str:
    return tr("{title} ({id})", title=tr(row.title), id=row.id)


def _value(row: Candidate) -> str:
    return f"{row.tflops_per_second_per_device:.4g}"
