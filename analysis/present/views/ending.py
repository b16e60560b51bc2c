"""How a run ended, where its log shows that it failed."""

from __future__ import annotations

from analysis.present.words import word
from analysis.run import crash
from analysis.run.run import Run
from logparse.findings import Note
from logparse.language import msg, tr


def failure(run: Run) -> Note | None:
    """The finding that the run failed; None where its log shows no such thing."""
    return crash.failure(run.notes)


def error_clauses(run: Run) -> list[str]:
    """The first error line of a failed run, with its place; empty for any other."""
    note = failure(run)
    first = next(iter(note.fields["lines"]), None) if note else None
    if first is None:
        return []
    source = first.fields.get("source")
    place = tr("{file}, line {line}", file=source, line=first.fields["line"]) if source else ""
    place = place or tr("line {line}", line=first.fields["line"])
    return [tr("{place}: {text}", place=place, text=first.fields["text"]), tr("more with -v")]


def ending_clause(run: Run) -> str:
    """What the title of a failed run says instead of its steps; empty for any other."""
    note = failure(run)
    if note is None:
        return ""
    cause = next((word("failures", line.fields["kind"]) for line in note.fields["lines"]), "")
    step, planned = f"{note.fields['step']:,}", note.fields.get("of")
    if planned is None:
        return tr("failed after step {step}: {cause}", step=step, cause=cause)
    return tr(msg("failed at step {step} of {planned}: {cause}"), step=step, planned=f"{planned:,}", cause=cause)
