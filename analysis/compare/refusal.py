"""Sides that may not be compared: why, and what to try. Comes in: a Comparison. Goes out: an error, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.compare.comparability import UNKNOWN, Field
from analysis.compare.comparison import Comparison
from logparse.errors import UsageError
from logparse.language import msg, tr


def refuse_incomparable(result: Comparison) -> None:
    """Raise UsageError where fields differ that must be equal, or are unknown that must be known."""
    if not result.refused:
        return
    different, unknown = _by_state(result)
    raise UsageError(
        reason_of_refusal(result),
        where="; ".join(_both(field) for field in different[:4]) or None,
        remedy=tr("; ").join(_remedies(result, different, unknown)),
    )


def reason_of_refusal(result: Comparison) -> str:
    """Why the sides of a refused comparison may not be compared."""
    different, unknown = _by_state(result)
    problems = []
    if different:
        text = msg("the two sides differ in {names}, so their speeds are not comparable")
        problems.append(tr(text, names=_names(different)))
    if unknown:
        text = msg("unknown for one side or both: {names}; the sides may have done different work")
        problems.append(tr(text, names=_names(unknown)))
    return tr("; ").join(problems)


def _by_state(result: Comparison) -> tuple[list[Field], list[Field]]:
    """The fields that forbid a verdict: those that differ, and those that are unknown."""
    different = [field for field in result.refused if field.state == "different"]
    return different, [field for field in result.refused if field.state == "unknown"]


def _remedies(result: Comparison, different: Sequence[Field], unknown: Sequence[Field]) -> Iterator[str]:
    if different:
        yield tr("compare runs of the same job")
    sides = (result.baseline, [field.baseline for field in unknown]), (result.candidate, [f.candidate for f in unknown])
    incomplete = [side for side, fields in sides if any(not values or None in values for values in fields)]
    recorded = [side.details["release"].is_not_null().any() for side in incomplete]
    if not all(recorded):
        yield tr("give what is missing in the log (--model, --seq-length ...)")
    if any(recorded):
        yield tr("remove the recorded runs and record them again with the missing values (--model, --seq-length ...)")
    names = [*(field.name for field in different), *([UNKNOWN] if unknown else [])]
    yield tr("or accept it: {flags}", flags=f"--allow {','.join(names)}")


def _names(fields: Sequence[Field]) -> str:
    return ", ".join(field.name for field in fields)


def _both(field: Field) -> str:
    old, new = (", ".join(map(str, side)) for side in (field.baseline, field.candidate))
    return tr("{name} {old} and {new}", name=field.name, old=old, new=new)
