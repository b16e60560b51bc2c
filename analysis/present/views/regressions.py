"""The regressions of all jobs for people. Parts; and the JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.compare.comparability import Field
from analysis.metrics import JUDGED
from analysis.nightly.regressions import STATES, Regression
from analysis.nightly.run_links import run_url
from analysis.present.numbers import signed_percent
from analysis.present.parts import Heading, Part, Sentence
from analysis.present.views.job_news import ended_by, run_text
from analysis.present.words import word
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION


def compose_regressions(found: Sequence[Regression], template: str | None) -> list[Part]:
    """How many there are, then each with its runs; ``template`` is the address of a run."""
    counts = Counter(one.state for one in found)
    numbers = tr(", ").join(f"{word('regression_states', state)} {counts[state]}" for state in STATES)
    return [
        Heading(tr("regressions: {numbers}", numbers=numbers), "title"),
        *(part for one in found for part in _parts(one, template)),
    ]


def _parts(one: Regression, template: str | None) -> Iterator[Part]:
    owners = tr(" (owned by {names})", names=", ".join(one.owners)) if one.owners else ""
    yield Heading((one.job if one.block is None else f"{one.job}, {one.block}") + owners)
    state, changes = word("regression_states", one.state), tr(", ").join(map(_change, one.changes.items()))
    text = tr("{state}: {changes}", state=state, changes=changes) if changes else state
    yield Sentence(text, "info" if one.state in ("accepted", "cleared") else "warning")
    yield _run(tr("first bad run"), one.first_bad, template)
    if one.last_good is not None:
        yield _run(tr("last good run"), one.last_good, template)
    if one.cleared is not None:
        yield Sentence(tr("cleared by run {run}", run=run_text(one.cleared)), "info")
    if one.ended:
        day, why = f"{one.ended.when:%Y-%m-%d}", ended_by(one.ended.fields)
        yield Sentence(tr("its series ended on {day}: {why}", day=day, why=why), "warning")
    if one.acceptance:
        yield Sentence(_acceptance(one), "info")


def _change(pair: tuple[str, float | None]) -> str:
    column, change = pair
    label = tr(JUDGED[column].label) if column in JUDGED else column
    return label if change is None else f"{label} {signed_percent(change)}"


def _run(name: str, run: Mapping[str, Any], template: str | None) -> Sentence:
    return Sentence(tr("{name}: {text}", name=name, text=run_text(run)), "info", link=run_url(template, run))


def _acceptance(one: Regression) -> str:
    acceptance = one.acceptance
    assert acceptance is not None
    limits = [
        tr("until {limit}", limit=limit) for limit in (acceptance.until, acceptance.until_release) if limit is not None
    ]
    reason = tr(", ").join(text for text in (acceptance.reason, acceptance.issue) if text)
    fields = {"until": tr(", ").join(limits) or tr("permanently"), "user": acceptance.user or "-", "reason": reason}
    if one.state == "accepted":
        return tr("accepted {until} by {user}: {reason}", **fields)
    return tr("was accepted {until} by {user}: {reason}", **fields)


def document(found: Sequence[Regression], template: str | None) -> dict[str, Any]:
    """The document, the same in every language."""
    return {"schema_version": SCHEMA_VERSION, "regressions": [_document(one, template) for one in found]}


def _document(one: Regression, template: str | None) -> dict[str, Any]:
    acceptance = one.acceptance
    return {
        "job": one.job,
        "owners": list(one.owners),
        "state": one.state,
        "changes": dict(one.changes),
        "first_bad": run_document(one.first_bad, template),
        "last_good": run_document(one.last_good, template) if one.last_good else None,
        "cleared": one.cleared["when"].isoformat() if one.cleared else None,
        "block": one.block,
        "ended": {
            "when": one.ended.when.isoformat(),
            "changed": field_documents(one.ended.fields),
        }
        if one.ended
        else None,
        "reason": acceptance.reason if acceptance else None,
        "issue": acceptance.issue if acceptance else None,
        "until": acceptance.until.isoformat() if acceptance and acceptance.until else None,
        "until_release": acceptance.until_release if acceptance else None,
        "user": acceptance.user if acceptance else None,
    }


def field_documents(fields: Sequence[Field]) -> dict[str, Any]:
    """The values of fields that differ."""
    return {f.name: {"before": list(f.baseline), "newest": list(f.candidate)} for f in fields}


def run_document(run: Mapping[str, Any], template: str | None) -> dict[str, Any]:
    """A run by its id, with its address."""
    named = {key: run[key] for key in ("run_id", "name", "release")}
    return named | {"when": run["when"].isoformat(), "url": run_url(template, run)}
