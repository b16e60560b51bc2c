"""How a run ended, as history keeps it: JSON text, so that a field that a later version adds changes no column."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import PurePath
from typing import Any, TypeVar

from logparse.failures.ending import Attempt, Ending
from logparse.failures.evidence import FailureLine

# The columns that ``read_ending`` reads.
KEPT_ENDING = ("ending", "ending_state", "crashed_at")

T = TypeVar("T", FailureLine, Attempt)


def keep_ending(ending: Ending | None) -> str | None:
    """``ending`` as text, without fields that are unknown; of a path only the name, since logs are moved."""
    if ending is None:
        return None
    return json.dumps(_known(asdict(ending)), ensure_ascii=False)


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in values.items() if value is not None and value != ()}
    lists = {name: list(map(_known, known[name])) for name in ("evidence", "attempts") if name in known}
    source = {"source": PurePath(known["source"]).name} if "source" in known else {}
    return known | lists | source


def read_ending(run: Mapping[str, Any]) -> Ending:
    """How a row of history ended; of one that an earlier version recorded only whether it crashed is known."""
    if run["ending"] is None:
        return Ending(run["ending_state"] or "unknown", step=run["crashed_at"])
    kept = json.loads(run["ending"])
    names = {field.name for field in fields(Ending)}
    return Ending(
        **{name: value for name, value in kept.items() if name in names}
        | {
            "evidence": tuple(_filled(FailureLine, line) for line in kept.get("evidence", ())),
            "attempts": tuple(_filled(Attempt, attempt) for attempt in kept.get("attempts", ())),
            "attempts_in_log": kept.get("attempts_in_log", len(kept.get("attempts", ()))),
            "suspects": tuple(kept.get("suspects", ())),
        }
    )


def _filled(kind: type[T], kept: Mapping[str, Any]) -> T:
    values: dict[str, Any] = {field.name: kept.get(field.name) for field in fields(kind)}
    return kind(**values)
