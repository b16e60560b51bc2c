"""Do two sides train the same model: the whole answer, the section of a comparison, and the JSON object."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from analysis.compare.comparison import ComparedLosses, Comparison
from analysis.compare.loss_curves import Axis
from analysis.compare.loss_remarks import SIDES, Remark
from analysis.compare.same_loss import LossDifference, SameLoss
from analysis.metrics import LOSSES
from analysis.present.as_json import pick
from analysis.present.numbers import percent, signed_percent, three
from analysis.present.parts import Heading, Part, Sentence, Sentences, Table
from analysis.present.views.requirements import judgement_documents, judgement_sentences
from analysis.present.words import fill, word
from analysis.present.words.forms import big, range_of
from analysis.stats.drift import CONFIDENCE, Drift
from logparse.language import msg, speaking, tr
from logparse.schema import SCHEMA_VERSION

# Losses that end further apart, as a share of the baseline's, are those of other data, or another model.
OTHER_DATA = 0.5
# A drift is that over so many steps or tokens, fewer of a shorter run.
MOST_PER: dict[Axis, int] = {"step": 1000, "tokens": 10**9}
# Remarks that the section of a comparison has, too: they change what the numbers mean.
ALWAYS = ("by_tokens", "by_steps", "mean_of_steps")


def compose_same_loss(compared: ComparedLosses) -> list[Part]:
    """The whole answer of a comparison of losses, the answer first."""
    same = compared.loss
    loss = same.of("loss")
    title = _not_compared(same) if same.reason or loss is None else answer(loss, same.axis)
    sides = zip(SIDES, (compared.baseline, compared.candidate), strict=True)
    return [
        Heading(title, "title"),
        *judgement_sentences(compared.tolerances),
        Sentence(tr("job: {name}", name=compared.job)),
        *(Sentence(_side(name, side.asked, len(side.details))) for name, side in sides),
        *([_table(same)] if same.differences else []),
        *(Sentence(text) for one in same.differences for text in _sentences(one, same.axis)),
        *(Sentence(text, "warning") for one in same.differences for text in _warnings(one, same.axis)),
        Sentences([Sentence(remark_text(remark, same.axis), "info") for remark in same.remarks]),
    ]


def compose_loss_section(comparison: Comparison) -> Iterator[Part]:
    """The section of a comparison: the training loss in few sentences."""
    same = comparison.loss
    if same is None:
        return
    loss = same.of("loss")
    if same.reason or loss is None:
        yield Sentence(_not_compared(same), "warning")
        return
    yield from (Sentence(text, "warning") for text in _warnings(loss, same.axis))
    if loss.final is not None and loss.final > OTHER_DATA:
        text = tr(
            "different data or model: losses differ by {final} at the last of {steps} common steps",
            steps=loss.places,
            final=percent(loss.final, 0),
        )
        yield Sentence(text, "warning")
        return
    yield Sentence(answer(loss, same.axis))
    if not loss.identical:
        yield Sentence(_sizes(loss, same.axis))
    yield from (Sentence(remark_text(one, same.axis), "info") for one in same.remarks if one.code in ALWAYS)


def answer(loss: LossDifference, axis: Axis) -> str:
    """Whether and where the curves of a loss part, in one sentence."""
    values = _shape(loss, axis) if loss.lost_from is None else _lost(loss, loss.lost_from, axis)
    return tr("{name}: {values}", name=tr(LOSSES[loss.column]), values=values)


def _lost(loss: LossDifference, first: int, axis: Axis) -> str:
    return tr(
        "not finite on the candidate's side alone at {n} {places}, first at {place}",
        n=loss.lost_places,
        places=_places(axis),
        place=place(first, axis),
    )


def _shape(loss: LossDifference, axis: Axis) -> str:
    if loss.identical:
        return tr("equal to the last printed digit at all {n} common {places}", n=loss.places, places=_places(axis))
    if loss.parting is None:
        return tr(
            "too few common {places} ({n}) to separate a difference from noise", n=loss.places, places=_places(axis)
        )
    parting = loss.parting
    code = "growing_within" if parting.shape == "growing" and parting.at is None else parting.shape
    fields = {
        "place": "" if parting.at is None else place(parting.at, axis),
        "level": _difference(parting.level, loss, parting.shape != "scatter"),
        "noise": _difference(parting.spread, loss, signed=False),
    }
    text = fill("loss_shapes", code, fields)
    if parting.restarted:
        text = tr("{text}; the {side} restarted there", text=text, side=word("sides", parting.restarted))
    return text


def _difference(value: float, loss: LossDifference, signed: bool) -> str:
    """A difference as a percentage, or plain where shares of the loss mean nothing."""
    if not loss.relative:
        return f"{value:+.3g}" if signed else f"{value:.3g}"
    return signed_percent(value, _decimals(value)) if signed else percent(value, _decimals(value))


def _decimals(share: float) -> int:
    """Decimals that show two digits of a small percentage."""
    return min(max(2, 1 - math.floor(math.log10(abs(share) * 100))), 9) if share else 2


def place(at: int, axis: Axis) -> str:
    """A place on the axis: a step, or tokens since the start."""
    return tr("step {step}", step=at) if axis == "step" else tr("{n} tokens", n=big(at))


def _places(axis: Axis) -> str:
    return tr("steps") if axis == "step" else tr("token counts")


def _sizes(loss: LossDifference, axis: Axis) -> str:
    if loss.mean_relative is None or loss.largest is None or loss.final is None:
        return tr("mean absolute difference: {value}", value=three(loss.mean_absolute))
    return tr(
        "difference over {n} common {places}: {mean} on average, {largest} at most ({at}), {final} at last ({last})",
        n=loss.places,
        places=_places(axis),
        mean=percent(loss.mean_relative, 3),
        largest=percent(loss.largest, 3),
        at=place(loss.largest_at or 0, axis),
        final=percent(loss.final, 3),
        last=place(loss.final_at or 0, axis),
    )


def _table(same: SameLoss) -> Table:
    """A row for each loss."""
    headings = (
        "",
        tr("common steps") if same.axis == "step" else tr("common token counts"),
        tr("mean relative"),
        tr("mean absolute"),
        tr("largest"),
        tr("at"),
        tr("equal until"),
    )
    return Table(headings, [_row(one, same.axis) for one in same.differences], headed=True)


def _row(one: LossDifference, axis: Axis) -> tuple[str, ...]:
    def at(place: int | None) -> str:
        return "-" if place is None else f"{place:,}" if axis == "step" else big(place)

    return (
        tr(LOSSES[one.column]),
        f"{one.places:,}",
        "-" if one.mean_relative is None else percent(one.mean_relative, 3),
        f"{one.mean_absolute:.3g}",
        "-" if one.largest is None else percent(one.largest, 3),
        at(one.largest_at),
        at(one.equal_until),
    )


def _sentences(one: LossDifference, axis: Axis) -> Iterator[str]:
    """What is known of one loss beyond its row; the answer on the training loss is the title."""
    name = tr(LOSSES[one.column])
    if one.column != "loss":
        yield answer(one, axis)
    if one.equal_until is not None and not one.identical:
        yield tr("{name}: equal to the last printed digit up to {place}", name=name, place=place(one.equal_until, axis))
    if one.drift and (one.drift.low, one.drift.high) != (0, 0) and not one.identical:
        yield tr("{name}: {values}", name=name, values=_drift(one, one.drift, axis))


def _drift(one: LossDifference, drift: Drift, axis: Axis) -> str:
    """The drift over a round number of steps or tokens, no more than were compared."""
    per = min(MOST_PER[axis], 10 ** int(math.log10(max(one.last_at - one.first_at, 1))))
    slope, low, high = (_difference(end * per, one, signed=True) for end in (drift.slope, drift.low, drift.high))
    parted = one.parting is not None and one.parting.at is not None
    text = (
        msg("drift of the difference since then: {slope} per {per} ({percent} interval {low} to {high})")
        if parted
        else msg("drift of the difference: {slope} per {per} ({percent} interval {low} to {high})")
    )
    per_text = tr("{n} steps", n=f"{per:,}") if axis == "step" else tr("{n} tokens", n=big(per))
    return tr(text, slope=slope, per=per_text, percent=percent(CONFIDENCE, 0), low=low, high=high)


def _warnings(one: LossDifference, axis: Axis) -> Iterator[str]:
    if one.undefined:
        yield tr("at {n} more {places} only the baseline's loss is 0", n=one.undefined, places=_places(axis))
    if one.lost_from is not None:
        name, finite = tr(LOSSES[one.column]), _shape(one, axis)
        yield tr("{name}, where both are finite: {values}", name=name, values=finite)


def _not_compared(same: SameLoss) -> str:
    return tr("loss not compared: {reason}", reason=word("loss_reasons", same.reason or "no_common_step"))


def remark_text(remark: Remark, axis: Axis) -> str:
    """A remark as a sentence."""
    more = {"side": word("sides", remark.side) if remark.side else "", "places": _places(axis)}
    if "first" in remark.fields:
        more["from_to"] = range_of([place(remark.fields[end], axis) for end in ("first", "last")])
    return fill("loss_remarks", remark.code, remark.fields | more)


def _side(name: str, asked: str, runs: int) -> str:
    return tr("{side}: {asked}, runs: {runs}", side=word("sides", name), asked=asked, runs=runs)


def document(comparisons: Sequence[ComparedLosses]) -> dict[str, Any]:
    """The document of the whole answer, the same in every language; several comparisons are a list."""
    documents = [_document(one) for one in comparisons]
    return documents[0] if len(documents) == 1 else {"schema_version": SCHEMA_VERSION, "comparisons": documents}


def _document(compared: ComparedLosses) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "job": compared.job,
        "baseline": compared.baseline.asked,
        "candidate": compared.candidate.asked,
        "loss": loss_document(compared.loss),
        "requirements": judgement_documents(compared.tolerances),
    }


def loss_document(same: SameLoss | None) -> dict[str, Any] | None:
    """``loss`` of a comparison's document."""
    if same is None:
        return None
    with speaking("en"):
        return {
            "axis": same.axis,
            "reason_code": same.reason,
            "differences": {one.column: _difference_document(one, same.axis) for one in same.differences},
            "remarks": [pick(one, "code side fields text", text=remark_text(one, same.axis)) for one in same.remarks],
        }


DIFFERENCE = """places first_at last_at mean_relative mean_absolute largest largest_at final final_at undefined
 equal_places equal_until lost_places lost_from relative parting drift repeats text"""


def _difference_document(one: LossDifference, axis: Axis) -> dict[str, Any]:
    return pick(one, DIFFERENCE, text=answer(one, axis))
