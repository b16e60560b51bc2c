"""What the page is told of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from analysis.run.analyze import Analysis
from logparse.context.run_context import RunContext
from logparse.findings import Note


@dataclass(frozen=True)
class PageRun:
    """One run: its analysis, and what was read beside its steps.

    ``framework`` and ``evidence`` say what printed the log and how that is known, ``identified`` by which formula its
    own TFLOP/s was printed. ``coverage`` holds lines, step_lines, torn_lines, malformed_values, unread_labels.
    ``records`` are the frames events, evaluations, memory, timers; ``versions`` the software the log names.
    ``against`` are sentences that hold the run against its plan and against published rates.
    """

    name: str
    sources: Sequence[str]
    framework: str
    evidence: str
    coverage: Mapping[str, Any]
    context: RunContext
    analysis: Analysis
    records: Mapping[str, pl.DataFrame]
    notes: Sequence[Note]
    identified: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    against: Sequence[str] = ()
