"""How a run ended, as history keeps it: JSON text, so that a field that a later version adds changes no column."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from logparse.failures.ending import LINES_OF_ENDING, Ending, ending_of_document
from logparse.masking import mask_text
from logparse.texts import map_texts

# The columns that ``read_ending`` reads.
KEPT_ENDING = ("ending", "ending_state", "crashed_at")


def keep_ending(ending: Ending | None) -> str | None:
    """``ending`` as text, without fields that are unknown; of a path only the name, since logs are moved."""
    if ending is None:
        return None
    return json.dumps(_known(asdict(ending)), ensure_ascii=False)


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    stated = {name: value for name, value in values.items() if value is not None and value != ()}
    lists = {name: list(map(_known, stated[name])) for name in ("evidence", "attempts") if name in stated}
    source = {"source": PurePath(stated["source"]).name} if "source" in stated else {}
    lines = {name: _known(stated[name]) for name in LINES_OF_ENDING if name in stated}
    return stated | lists | source | lines


def read_ending(run: Mapping[str, Any]) -> Ending:
    """How a row of history ended; of one that an earlier version recorded only whether it crashed is known."""
    if run["ending"] is None:
        return Ending(run["ending_state"] or "unknown", step=run["crashed_at"])
    # What an earlier version did not mask is masked as it is read.
    return map_texts(ending_of_document(json.loads(run["ending"])), mask_text)
