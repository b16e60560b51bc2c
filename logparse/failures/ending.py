"""What is known of how a run ended: the record that every screen, document and history holds.

How it is found out is in judge.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from logparse.failures.evidence import NOVEL, FailureLine
from logparse.failures.frames import Frame
from logparse.failures.progress import BAR
from logparse.failures.ranks.suspicions import Suspect, Suspicion
from logparse.failures.signatures import LOST_VALUES
from logparse.failures.table import narrow_failures
from logparse.findings import Note, info, warning
from logparse.light_dataclass import MISSING, dataclass, field, fields

# Fields of an ending that are one line each.
LINES_OF_ENDING = ("printed_last", "unfinished_save", "unfinished_evaluation")
FAILED = frozenset(("failed", "killed", "cancelled", "preempted", "time_limit"))


@dataclass(frozen=True)
class Attempt:
    """One start of the run in a log: its lines, the step that it reached, and how it ended."""

    first_line: int
    last_line: int | None
    step: int | None
    state: str
    family: str
    signature: str | None
    line: int | None
    text: str | None
    rank: int | None
    host: str | None


@dataclass(frozen=True)
class Ending:
    """How a run ended. ``family`` says what failed, ``grade`` how sure that is; ``line`` and ``text`` show it.

    ``evidence`` of a completed run is the line after its end that puts the last save in doubt, that of a log that ends
    without a failure the last values if they are not finite.

    ``remedy`` and ``collect`` are codes: what to try, and which other log holds the cause. ``same_on`` ranks print the
    cause, the ``same_ranks``; where no line has a rank, several ``same_hosts`` do. ``process`` is that of Ray.
    ``suspects`` are ranks that may have stopped or slowed the others, out of ``ranks_compared``; ``bound`` says whether
    the ranks wait for data, for ``data_share`` of a step. ``peer`` is the other end of a link. ``attempts`` are the
    first and the last of ``attempts_in_log``.
    ``detail`` is the code of what the cause says beyond its kind, with its ``figures``, see ``rules``.
    ``frames`` are the call of one's own code and the one that raised the cause, or the exception that reports it, on
    the line ``reported_on``. ``silent_seconds`` is how long a run printed nothing before it was stopped, if that is
    much longer than its other pauses. ``printed_last`` is what a log without an end prints last, or a run before it was
    stopped from outside. ``unfinished_save`` is the line on which a save begins that did not end;
    ``unfinished_evaluation`` the last line of a log that ends within one.
    ``ended_early``: the trainer ended by itself, by more than the steps of a line before its last planned step.
    ``restart_helps`` is False where attempts end the same way without progress, None where there is only one.
    """

    state: str
    family: str = "unknown"
    grade: str = "unknown"
    signature: str | None = None
    source: str | None = None
    line: int | None = None
    text: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    exit_code: int | None = None
    step: int | None = None
    planned_steps: int | None = None
    remedy: str | None = None
    collect: str | None = None
    evidence: tuple[FailureLine, ...] = ()
    same_on: int = 0
    suspects: tuple[Suspect, ...] = ()
    ranks_compared: int = 0
    bound: str | None = None
    data_share: float | None = None
    attempts: tuple[Attempt, ...] = ()
    repeated: int = 1
    restart_helps: bool | None = None
    lines_of_failure: int = 0
    peer: str | None = None
    attempts_in_log: int = 0
    detail: str | None = None
    figures: Mapping[str, str] = field(default_factory=dict)
    same_ranks: tuple[int, ...] = ()
    same_hosts: tuple[str, ...] = ()
    process: str | None = None
    frames: tuple[Frame, ...] = ()
    silent_seconds: float | None = None
    reported_on: int | None = None
    printed_last: FailureLine | None = None
    unfinished_save: FailureLine | None = None
    unfinished_evaluation: FailureLine | None = None
    ended_early: bool = False

    @property
    def failed(self) -> bool:
        """Whether the log shows that the run did not end as planned."""
        return self.state in FAILED

    @property
    def error_after_end(self) -> FailureLine | None:
        """The first line after a planned end that puts the last save in doubt; None where none does."""
        doubted = self.state == "completed" and self.remedy != LOST_VALUES
        return next(iter(self.evidence), None) if doubted else None

    @property
    def reached_plan(self) -> bool:
        """Whether all planned steps were done."""
        return self.step is not None and self.planned_steps is not None and self.step >= self.planned_steps

    @property
    def last_bar(self) -> str:
        """How far the bar is that the log prints last, such as that of an evaluation; empty where there is none."""
        drawn = None if self.printed_last is None else BAR.search(self.printed_last.text)
        return "" if drawn is None else f"{drawn[1]}/{drawn[2]}"

    @property
    def cause(self) -> FailureLine | None:
        """The line that is quoted first; None where none is."""
        return next((one for one in self.evidence if one.line == self.line and one.source == self.source), None)


# What the lists of an ending, or of a part of one, hold.
_LISTED: Mapping[str, type[Any]] = {
    "evidence": FailureLine,
    "attempts": Attempt,
    "suspects": Suspect,
    "reasons": Suspicion,
    "frames": Frame,
}


def ending_of_document(document: Mapping[str, Any]) -> Ending:
    """The ending that a ``document`` made by ``asdict`` describes, without fields that this version does not know."""
    counted = {"attempts_in_log": len(document.get("attempts", ())), **document}
    ending: Ending = _filled(Ending, counted)
    return ending


def _filled(kind: type[Any], values: Mapping[str, Any]) -> Any:
    given = {field.name: _value(field.name, values[field.name]) for field in fields(kind) if field.name in values}
    needed = {field.name: None for field in fields(kind) if field.default is field.default_factory is MISSING}
    return kind(**{**needed, **given})


def _value(name: str, value: Any) -> Any:
    if name in LINES_OF_ENDING:
        return None if value is None else _filled(FailureLine, value)
    if not isinstance(value, list):
        return value
    return tuple(_filled(_LISTED[name], one) if name in _LISTED else one for one in value)


# The codes of ``notes_of``.
NOTES_OF_ENDING = ("ended_with_errors", "ended_early_with_errors", "error_after_end")


def notes_of(ending: Ending, several: bool) -> Iterator[Note]:
    """The warning that the run failed, or that its last save may have, with the lines that show it."""
    if ending.error_after_end is not None:
        yield warning("error_after_end", lines=[_note(one, several, one.family) for one in ending.evidence])
    if not ending.failed or ending.step is None:
        return
    fields = {
        "step": ending.step,
        "n": ending.lines_of_failure,
        "lines": [_note(one, several, _kind(ending, one)) for one in ending.evidence if one.role != NOVEL],
    }
    if ending.planned_steps is None:
        yield warning("ended_with_errors", **fields)
    else:
        yield warning("ended_early_with_errors", of=ending.planned_steps, **fields)


def _kind(ending: Ending, line: FailureLine) -> str:
    """What a line says that failed: of the cause the narrow failure, if its remedy is that of one."""
    narrow = line is ending.cause and ending.remedy in narrow_failures()
    return (ending.remedy if narrow else None) or line.family


def _note(line: FailureLine, several: bool, kind: str) -> Note:
    fields = {"line": line.line, "kind": kind, "text": line.text}
    return info("error_line_of_file", source=line.source, **fields) if several else info("error_line", **fields)
