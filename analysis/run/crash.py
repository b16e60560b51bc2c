"""Whether a run crashed. This is the only place that decides it."""

from __future__ import annotations

from analysis.run.run import Run


def crashed_at(run: Run) -> int | None:
    """The last step of a run that failed, by its ending; None if its log shows no failure."""
    ending = run.log.ending
    return (ending.step or 0) if ending is not None and ending.failed else None
