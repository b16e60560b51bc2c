"""How a run ended: the answer of ``diagnose``, the object ``ending`` of every document, and what other screens say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from analysis.present.parts import Part, ScreenRow, ScreenRows, Sentence
from analysis.present.words import word
from analysis.run.run import Run
from logparse.failures.ending import Ending, FailureLine
from logparse.language import msg, tr

# Families of a run whose code of exit a reader wants to see.
_STATES = {
    "completed": msg("completed"),
    "cut_off": msg("no failure found: the log ends, so it is cut off or the run goes on"),
    "unknown": msg("no failure found, and nothing shows that the run completed"),
}
# The trainer itself ends a run without more data: an end, no failure of hardware or code.
DATA_USED_UP = "data.end"
_COMPLETED_AT = msg("completed: {step} of {planned} steps")


def failure(run: Run) -> Ending | None:
    """How the run failed; None where its log shows no such thing."""
    return run.log.ending if run.log.ending.failed else None


def error_clauses(run: Run) -> list[str]:
    """The line that shows why a run failed, with its place; empty for any other run."""
    ending = failure(run)
    if ending is None or ending.cause is None or ending.signature == DATA_USED_UP:
        return []
    text = tr("{place}: {text}", place=_place(ending.cause, len(run.log.sources) > 1), text=ending.cause.text)
    return [text, tr("more with `logparse diagnose`")]


def ending_clause(run: Run) -> str:
    """What the title of a failed run says instead of its steps; empty for any other."""
    ending = failure(run)
    return headline(ending) if ending is not None else ""


def headline(ending: Ending) -> str:
    """How a run ended, in one line: how far it got, which rank, and why."""
    if not ending.failed:
        if ending.state == "completed" and ending.step is not None and ending.planned_steps is not None:
            return tr(_COMPLETED_AT, step=f"{ending.step:,}", planned=f"{ending.planned_steps:,}")
        return tr(_STATES[ending.state])
    if ending.signature == DATA_USED_UP and ending.step is not None:
        return tr("ended at step {step}: the data are used up", step=f"{ending.step:,}")
    cause = _who(ending) + word("failures", ending.family)
    if ending.step is None:
        return tr("failed: {cause}", cause=cause)
    if ending.planned_steps is None:
        return tr("failed after step {step}: {cause}", step=f"{ending.step:,}", cause=cause)
    step, planned = f"{ending.step:,}", f"{ending.planned_steps:,}"
    return tr("failed at step {step} of {planned}: {cause}", step=step, planned=planned, cause=cause)


def _who(ending: Ending) -> str:
    """The rank and the host of the cause, as far as they are known, with what parts them from the cause."""
    if ending.rank is not None and ending.host:
        return tr("rank {rank} ({host}), ", rank=ending.rank, host=ending.host)
    if ending.rank is not None:
        return tr("rank {rank}, ", rank=ending.rank)
    return tr("{host}, ", host=ending.host) if ending.host else ""


def ending_parts(ending: Ending) -> list[Part]:
    """The answer of ``logparse diagnose``."""
    text = headline(ending)
    if ending.failed:
        text = tr("{text} ({grade})", text=text, grade=word("grades", ending.grade))
    return [Sentence(text), ScreenRows([*_quoted(ending), *_advice(ending)])]


def _quoted(ending: Ending) -> list[ScreenRow]:
    several = len({line.source for line in ending.evidence}) > 1
    cause = [
        ScreenRow(tr("  cause"), "", [_quoted_lines(line, several)]) for line in ending.evidence if line is ending.cause
    ]
    others = [line for line in ending.evidence if line is not ending.cause]
    at = ending.line or 0
    before = [_quoted_lines(line, several) for line in others if line.line < at]
    after = [_quoted_lines(line, several) for line in others if line.line > at]
    return [
        *cause,
        *_rows(tr("  before it"), before),
        *_rows(tr("  after it"), after),
    ]


def _rows(label: str, lines: Sequence[str]) -> list[ScreenRow]:
    return [ScreenRow(label if at == 0 else "", "", [line]) for at, line in enumerate(lines)]


def _advice(ending: Ending) -> list[ScreenRow]:
    """What to try, which other log to read, whom to suspect, and how often the run tried."""
    if not ending.failed:
        return []
    rows = []
    if ending.remedy:
        rows.append(ScreenRow(tr("  try"), "", [word("remedies", ending.remedy)]))
    if ending.collect:
        rows.append(ScreenRow(tr("  collect"), "", [word("collects", ending.collect)]))
    if ending.suspects:
        ranks = tr(", ").join(str(rank) for rank in ending.suspects)
        rows.append(ScreenRow(tr("  suspects"), "", [tr("the other ranks waited for rank {ranks}", ranks=ranks)]))
    if ending.exit_code is not None:
        rows.append(ScreenRow(tr("  exit code"), "", [str(ending.exit_code)]))
    if len(ending.attempts) > 1:
        rows.append(ScreenRow(tr("  attempts"), "", _attempts(ending)))
    return rows


def _attempts(ending: Ending) -> list[str]:
    n = tr("{n} in this log", n=len(ending.attempts))
    if ending.restart_helps is None:
        return [n]
    repeated = tr("the last {n} ended the same way", n=ending.repeated)
    further = tr("each got further") if ending.restart_helps else tr("none got further: a restart will not help")
    return [n, repeated, further]


def _quoted_lines(line: FailureLine, several: bool) -> str:
    return tr("{place}: {text}", place=_place(line, several), text=line.text)


def _place(line: FailureLine, several: bool) -> str:
    if several:
        return tr("{file}, line {line}", file=PurePath(line.source).name, line=line.line)
    return tr("line {line}", line=line.line)


def ending_document(ending: Ending) -> dict[str, Any]:
    """The object ``ending``, the same in every language."""
    document = asdict(ending)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in document.items()}
