"""The sides that ``compare``, ``gate`` and ``bisect`` are given."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.compare.operands import Sides, find_sides, is_of_logs
from analysis.history.open_history import Report
from analysis.project.project_file import history_place
from analysis.run.options import RunOptions


def named_sides(asked: Sequence[str], history: str | None, how: RunOptions, report: Report) -> Sides:
    """The sides that ``asked`` names. The project's history is opened only if a side is not a log.

    Raises as ``find_sides``.
    """
    needed = not all(map(is_of_logs, asked))
    return find_sides(asked, history_place(history) if needed else history, how, report)
