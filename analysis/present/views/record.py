"""A recorded run: a sentence for people and the JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.batch.record_runs import Recorded
from analysis.present.as_json import plain
from analysis.present.views.ending import headline
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION


def sentence(one: Recorded) -> str:
    """What became of a run, and of one that failed, how it ended."""
    if not one.ending.failed:
        return _kept(one)
    return tr("{text}; ending: {ending}", text=_kept(one), ending=headline(one.ending))


def _kept(one: Recorded) -> str:
    fields = {"name": one.name, "id": one.run_id[:12], "release": one.release}
    if one.state == "known":
        return tr("{name}: run {id} of {release} is already recorded; nothing changed", **fields)
    if one.state == "completed":
        return tr(
            "{name}: run {id} of {release} is already recorded; its lost or damaged steps are stored again",
            **fields,
        )
    if len(one.sources) > 1:
        return tr("{name}: {n} logs, one run, recorded as run {id} of {release}", n=len(one.sources), **fields)
    return tr("{name}: recorded as run {id} of {release}", **fields)


def document(recorded: Sequence[Recorded]) -> dict[str, Any]:
    """The whole document; it holds no sentence."""
    return {"schema_version": SCHEMA_VERSION, "runs": plain(recorded)}
