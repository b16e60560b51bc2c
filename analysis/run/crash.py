"""Whether a run crashed. This is the only place that decides it.

Comes in: the notes of a run. Goes out: the finding, or the step.
"""

from __future__ import annotations

from collections.abc import Iterable

from logparse.findings import Note

# Findings of a run that failed: error lines after its last step.
FAILED = ("ended_early_with_errors", "ended_with_errors")


def failure(notes: Iterable[Note]) -> Note | None:
    """The finding that the run failed; None if its log shows no failure."""
    return next((note for note in notes if note.code in FAILED), None)


def crashed_at(notes: Iterable[Note]) -> int | None:
    """The last step of a run that crashed; None if its log shows no crash."""
    note = failure(notes)
    return None if note is None else int(note.fields["step"] or 0)
