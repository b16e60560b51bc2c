"""The documents of endings: as a whole, and short for ``--compact``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.present.as_json import plain
from analysis.present.document_parts import Document, Short, cut
from logparse.failures.ending import Ending
from logparse.schema import SCHEMA_VERSION

# What a short run has of its ending.
OF_ENDING = "state family grade signature source line text rank host exit_code step planned_steps remedy"
ENDING = Short(
    {"": f"{OF_ENDING} collect detail figures evidence suspects frames restart_helps attempts_in_log"},
    ("frames", "suspects", "evidence"),
)


def endings_document(endings: Sequence[tuple[str, Ending]]) -> dict[str, Any]:
    """The JSON document of the ``endings`` of runs by their names; of one run, of its ending alone."""
    if len(endings) == 1:
        return {"schema_version": SCHEMA_VERSION, "ending": plain(endings[0][1])}
    runs = [{"name": name, "ending": plain(ending)} for name, ending in endings]
    return {"schema_version": SCHEMA_VERSION, "runs": runs}


def compact_endings(document: Document) -> Document:
    """The document of ``diagnose`` with short endings."""
    if "ending" in document:
        return document | {"ending": cut(ENDING, document["ending"])}
    return document | {"runs": [run | {"ending": cut(ENDING, run["ending"])} for run in document["runs"]]}
