"""How a run ended: completed, failed, killed or cut off; why, and which rank.

Comes in: the hits of all files, the steps, and the lines on which processes began. Goes out: one Ending.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from itertools import takewhile
from typing import Any

import polars as pl

from logparse.failures.attempts import ENDED_BY_OTHERS, Part, is_reported, of_one_section, parts_of
from logparse.failures.attribution import (
    attributed,
    count_unnamed,
    hosts_with,
    hosts_without_rank,
    ranks_of_report,
    ranks_with,
    words_of,
)
from logparse.failures.details import detail_of
from logparse.failures.evidence import NOVEL, TYPED, FailureLine, evidence_of, novel_evidence, quoted_lines, raised_too
from logparse.failures.exception_chain import frames_of, last_of_chain, raised_after, reporting_line
from logparse.failures.frames import Frame
from logparse.failures.last_lines import (
    LAST_LINES,
    first_nan,
    last_lost,
    last_printed,
    never_finite,
    printed_before,
    torn_traceback,
)
from logparse.failures.novelty import repeated_line
from logparse.failures.precedence import cause_of
from logparse.failures.prefixes import read_prefixes
from logparse.failures.progress import Progress, last_progress, last_rise, progress_of
from logparse.failures.rank_times import RANK_TIMES
from logparse.failures.scan import PROCESS, Hit, is_of_job, quoted
from logparse.failures.signatures import LOST_VALUES, NEVER_FINITE, TORN_TRACEBACK
from logparse.failures.suspects import FailedRanks, RankFacts, find_suspects
from logparse.failures.suspicions import Suspect, Suspicion
from logparse.failures.trainers import FileEnds
from logparse.failures.unfinished_save import unfinished_save
from logparse.findings import Note, info, warning
from logparse.inputs.blocks import TextBlock

# Lines of a planned end after which the script of a user goes on.
_BEFORE_LAST_SAVE = frozenset(("end.hf", "end.lightning"))
# Of more attempts than these only the first and the last ones are kept, with the number of all.
FIRST_ATTEMPTS, LAST_ATTEMPTS = 5, 15
# Attempts that end within so many steps of each other made no progress.
SAME_STEPS = 2
# Families of exceptions that samples which a program lost may explain.
_OF_DATA = frozenset(("exception", "data", "file"))
_STATES = {
    "time_limit": "time_limit",
    "preempted": "preempted",
    "cancelled": "cancelled",
    "killed": "killed",
    "signal": "killed",
}
# Lines, but for those that explain, that a rank prints which waits for another one.
_PRINTED_BY_WAITING = frozenset(
    ("nccl.state", "nccl.dump", "nccl.lagging", "nccl.down", "gloo.barrier", "store.barrier")
)
# Causes that put the last save in doubt, whoever reports them; of others after the last step most are tear-down.
_SPOIL_SAVES = frozenset(("disk", "checkpoint"))
# Lines that one process of several ended well: another may have failed.
OF_ONE_PROCESS = frozenset({"end.deepspeed"})
# What to try at a time limit, and where no step shows that the run was under way.
_TIME_LIMIT, _TIME_LIMIT_UNSEEN = "time_limit", "time_limit_unseen"
# Families of what stops a run from outside, whatever it does.
_FROM_OUTSIDE = frozenset(("time_limit", "preempted", "killed", "signal", "cancelled"))
# Lines between two that a launcher prints as a run stops, at most.
_TOGETHER = 3
# Fields of an ending that are one line each.
LINES_OF_ENDING = ("printed_last", "unfinished_save")
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
    ``detail`` is the code of what the cause says beyond its kind, with its ``figures``, see details.toml.
    ``frames`` are the call of one's own code and the one that raised the cause, or the exception that reports it, on
    the line ``reported_on``. ``silent_seconds`` is how long a run printed nothing before it was stopped, if that is
    much longer than its other pauses. ``printed_last`` is what a log without an end prints last, or a run before it was
    stopped from outside. ``unfinished_save`` is the line on which a save begins that did not end.
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

    @property
    def failed(self) -> bool:
        """Whether the log shows that the run did not end as planned."""
        return self.state in FAILED

    @property
    def reached_plan(self) -> bool:
        """Whether all planned steps were done."""
        return self.step is not None and self.planned_steps is not None and self.step >= self.planned_steps

    @property
    def cause(self) -> FailureLine | None:
        """The line that is quoted first; None where none is."""
        return next((one for one in self.evidence if one.line == self.line and one.source == self.source), None)


def ending_of(
    hits: Iterable[Hit],
    steps: pl.DataFrame,
    starts: pl.DataFrame,
    ends: FileEnds,
    rank_times: pl.DataFrame | None = None,
) -> Ending:
    """The ending that ``hits`` of all files show, after the ``steps`` (source, line_number, step, train_steps).

    ``rank_times`` are rows of RANK_TIMES.
    """
    progress = progress_of(steps, ends)
    parts = parts_of(hits, progress, starts, ends)
    ending = _of_attempts(parts, progress, ends)
    facts = RankFacts(pl.DataFrame(schema=RANK_TIMES) if rank_times is None else rank_times, steps, ends)
    return _with_few_attempts(_with_suspects(ending, parts, facts, progress))


def _with_few_attempts(ending: Ending) -> Ending:
    """``ending`` with its first and last attempts, and the number of all: a launcher may restart for days."""
    every = ending.attempts
    few = every if len(every) <= FIRST_ATTEMPTS + LAST_ATTEMPTS else every[:FIRST_ATTEMPTS] + every[-LAST_ATTEMPTS:]
    return replace(ending, attempts=few, attempts_in_log=len(every))


def _with_suspects(ending: Ending, parts: Sequence[Part], facts: RankFacts, progress: Progress) -> Ending:
    """``ending`` with the ranks that may be to blame."""
    last = parts[-1].hits if parts else []
    causes = [(attempt.rank, attempt.host) for attempt in ending.attempts if attempt.state in FAILED]
    failed = FailedRanks(causes, len({hit.host for part in parts for hit in part.hits if hit.host}))
    verdict = find_suspects(facts, last, ending.family if ending.failed else "", progress, failed)
    return replace(
        ending,
        suspects=verdict.suspects,
        ranks_compared=verdict.ranks_compared,
        bound=verdict.bound,
        data_share=verdict.data_share,
    )


def ending_of_lines(
    hits: Iterable[Hit], steps: pl.DataFrame, starts: pl.DataFrame, first: int, after: int | None
) -> Ending:
    """The ending of one of several runs of a file: it has the ``steps``, and the lines from ``first`` to ``after``."""
    source = steps["source"][0]
    known = of_one_section([hit for hit in hits if hit.source == source], steps["line_number"].sort().to_list())
    own = [hit for hit in known if first <= hit.line and (after is None or hit.line < after)]
    if after is not None:
        # What a launcher begins after the last step is the next run.
        stepped: Any = steps["line_number"].max()
        after = min((hit.line for hit in own if hit.role == "again" and hit.line > stepped), default=after)
    return ending_of([hit for hit in own if after is None or hit.line < after], steps, starts, FileEnds())


def _of_attempts(parts: Sequence[Part], progress: Progress, ends: FileEnds) -> Ending:
    """The ending of the last attempt, with a line on each."""
    if not parts:
        return _without_failure(progress, ends)
    *before, last = parts
    last = _without_outlived(last, progress, ends)
    parts = (*before, last)
    judged = [_judge(part) for part in parts]
    state, cause = judged[-1]
    attempts = tuple(_attempt(part, how, hit) for part, (how, hit) in zip(parts, judged, strict=True))
    if state == "completed" or (last.stepped and progress.ends_with(last.step) and not _only_loaded(cause, progress)):
        return replace(_with_lost_values(_completed(cause, last.hits, progress), ends), attempts=attempts)
    if cause is None or not progress.outlives(cause, ends) or _only_logged(cause, progress, ends):
        return replace(_with_error_file(_without_failure(progress, ends), last.hits), attempts=attempts)
    ending = _failed(last, state, cause, progress)
    # The steps of a run that completed before it in the same file are not its own.
    of_another = not last.stepped and any(how == "completed" for how, _ in judged)
    if of_another or _only_loaded(cause, progress):
        ending = replace(ending, step=None, planned_steps=None)
    if ending.remedy == _TIME_LIMIT and ending.step is None:
        ending = replace(ending, remedy=_TIME_LIMIT_UNSEEN)
    ending = _with_lines_before(ending, last, cause, ends)
    if cause.role not in ("root", "explains"):
        ending = _with_error_file(_with_novel_lines(ending, last, cause, ends), last.hits)
    elif cause.frames and last.stepped and cause.family in _OF_DATA:
        ending = _with_repeated_line(ending, last, cause, ends)
    return _with_attempts(ending, attempts)


def _without_outlived(part: Part, progress: Progress, ends: FileEnds) -> Part:
    """``part`` without what its run outlived, where a later line says what failed."""
    cause = _judge(part)[1]
    if cause is None or progress.outlives(cause, ends):
        return part
    risen = {tail.source: last_rise(tail) for tail in ends.tails}
    left = replace(part, hits=[hit for hit in part.hits if hit.line > risen.get(hit.source, 0)])
    return left if _judge(left)[1] is not None else part


def _only_loaded(cause: Hit | None, progress: Progress) -> bool:
    """Whether the run failed after bars that show nothing of a training: they may count what was read before it."""
    return cause is not None and cause.role == "root" and progress.planned == progress.step and not progress.measured


def _only_logged(cause: Hit, progress: Progress, ends: FileEnds) -> bool:
    """Whether nothing but a logged error speaks of a failure, in a log that shows steps or goes on after it."""
    if cause.role != "error":
        return False
    tail = next((tail for tail in ends.tails if tail.source == cause.source), None)
    last = cause.line if tail is None else tail.first + tail.count - 1
    return progress.step is not None or last - cause.line > LAST_LINES


def _with_repeated_line(ending: Ending, part: Part, cause: Hit, ends: FileEnds) -> Ending:
    """``ending`` with a warning that is printed again and again before an exception."""
    one = repeated_line(ends, cause.source, cause.line, _last_progress(part))
    if one is None or any(line.line == one.line for line in ending.evidence):
        return ending
    line = FailureLine(cause.source, one.line, quoted(one.text, ""), "error", "unknown", one.rank)
    return replace(ending, evidence=(line, *ending.evidence))


def _last_progress(part: Part) -> int:
    """The line of the last step of ``part``, or of its last start."""
    seen = max((hit.line for hit in part.hits if hit.role == "again"), default=part.first_line - 1)
    return max(seen, part.stepped_line or 0)


def _with_novel_lines(ending: Ending, part: Part, cause: Hit, ends: FileEnds) -> Ending:
    """``ending`` with what is new in the run near a cause that explains little."""
    since = _last_progress(part)
    known = [hit.line for hit in part.hits if hit.source == cause.source]
    return replace(ending, evidence=(*ending.evidence, *novel_evidence(ends, cause.source, cause.line, since, known)))


def _completed(end: Hit | None, hits: Sequence[Hit], progress: Progress) -> Ending:
    ending = Ending("completed", "completed", "established", step=progress.step, planned_steps=progress.planned)
    if end is None or end.role != "end":
        return _with_later_error(ending, hits, uncaught=True)
    ending = replace(ending, signature=end.meaning.signature, source=end.source, line=end.line, text=end.text)
    after = hits[hits.index(end) + 1 :]
    return _with_later_error(ending, after, uncaught=end.meaning.signature in _BEFORE_LAST_SAVE)


def _first_of(ends: FileEnds, find: Callable[[TextBlock], tuple[int, str] | None]) -> tuple[str, int, str] | None:
    """File, line and text of what ``find`` finds at the end of the first file that has it."""
    return next(((tail.source, *found) for tail in ends.tails if (found := find(tail))), None)


def _with_lost_values(ending: Ending, ends: FileEnds) -> Ending:
    """``ending`` of a completed run with the line from which on losses are not finite, unless an error came later."""
    lost = _first_of(ends, partial(last_lost, evaluated=True))
    if lost is None or ending.evidence:
        return ending
    line = _with_line(ending, "numerics", "supported", LOST_VALUES, *lost)
    return replace(ending, evidence=line.evidence, remedy=line.remedy, detail=line.detail, figures=line.figures)


def _with_later_error(ending: Ending, hits: Sequence[Hit], uncaught: bool) -> Ending:
    """``ending`` with the line among ``hits`` that puts the last save of a completed run in doubt, and its remedy.

    An exception that is ``uncaught`` does where the script of a user goes on after the training, often to save.
    """
    cause = cause_of(hits)
    aborted = cause is not None and cause.family == "crash" and is_reported(hits)
    if cause is None or not (aborted or cause.role in ("root", "explains")):
        return ending
    uncaught &= cause.meaning.signature == "python.exception" and not cause.caught
    if not (is_reported(hits) or uncaught or cause.family in _SPOIL_SAVES):
        return ending
    rank, local, host, code = attributed(cause, hits)
    return replace(
        ending,
        evidence=(evidence_of(cause),),
        remedy=cause.meaning.remedy or None,
        detail=cause.detail,
        figures=cause.figures,
        rank=rank,
        local_rank=local,
        host=host,
        exit_code=code,
    )


def _judge(part: Part) -> tuple[str, Hit | None]:
    """The state of an attempt, and the line that shows it."""
    completed = next((hit for hit in part.hits if hit.role == "end"), None)
    if completed is not None and completed.meaning.signature in OF_ONE_PROCESS and cause_of(part.hits) is not None:
        hits = [hit for hit in part.hits if hit.meaning.signature not in OF_ONE_PROCESS]
        return _judge(replace(part, hits=hits))
    if completed is not None and completed.meaning.state == "completed":
        return "completed", completed
    before = part.hits if completed is None else part.hits[: part.hits.index(completed)]
    cause = cause_of(before)
    if completed is not None and (cause is None or cause.role != "root"):
        return completed.meaning.state, completed
    if cause is None:
        return "cut_off", None
    return _STATES.get(cause.family, "failed"), cause


def _failed(part: Part, state: str, cause: Hit, progress: Progress) -> Ending:
    rank, local, host, code = attributed(cause, part.hits)
    waits = cause.role == "explains" or cause.meaning.signature in _PRINTED_BY_WAITING
    if waits and "peer" not in cause.fields:
        # The rank that waits is not the one that failed; of a link that failed its host is an end.
        rank, local, host = None, None, host if cause.family == "network" else None
    reported = last_of_chain(cause, part.hits) or raised_after(cause, part.hits)
    evidence = (*map(evidence_of, quoted_lines(cause, part.hits, reported)), *raised_too(cause, part.hits))
    meaning = cause.meaning
    if is_of_job(cause):
        rank, local = None, None
    # Of other consequences the first rank is chance; of a wait each rank that waits prints it.
    names_all = cause.role in ("root", "explains") or cause.meaning.remedy == "collective_timeout"
    same_ranks = ranks_with(cause, part.hits) if names_all else ()
    same_ranks = same_ranks or ranks_of_report(cause, part.hits)
    same_hosts = () if same_ranks or rank is not None else hosts_without_rank(cause, part.hits)
    if same_hosts:
        host = None
    if len(same_ranks) > 1 and len(hosts_with(cause, part.hits)) > 1:
        host = None
    unnamed = count_unnamed(cause, part.hits)
    if meaning.family == "host_memory":
        host = host or cause.figures.get("host")
    if unnamed > 1:
        rank, local, host = None, None, None if same_hosts else cause.host
    return Ending(
        state,
        meaning.family,
        meaning.grade if meaning.family != "unknown" else "unknown",
        meaning.signature,
        cause.source,
        cause.line,
        cause.text,
        rank,
        local,
        host,
        code,
        progress.step,
        progress.planned,
        meaning.remedy,
        meaning.collect or None,
        evidence,
        same_on=max(len(same_ranks), unnamed),
        same_ranks=same_ranks,
        same_hosts=same_hosts,
        # The process that Ray killed is not the one that waited for it and raised.
        process=None if "pid" in cause.figures else cause.fields.get(PROCESS),
        lines_of_failure=sum(hit.role not in ("context", "again", "ignored", "end") for hit in part.hits),
        peer=cause.fields.get("peer"),
        detail=cause.detail,
        figures=cause.figures,
        frames=frames_of(cause, reported, part.hits),
        reported_on=reporting_line(cause, reported, part.hits),
        silent_seconds=cause.silent_seconds,
    )


def _attempt(part: Part, state: str, hit: Hit | None) -> Attempt:
    if hit is None:
        return Attempt(part.first_line, part.last_line, part.step, state, "unknown", *(None,) * 5)
    rank, _, host, _ = attributed(hit, part.hits)
    if "peer" in hit.fields:
        # Either end of the link may have failed.
        host = None
    if hit.role == "explains" or len(ranks_with(hit, part.hits)) > 1:
        # Which rank prints a message first that several print is chance.
        rank, host = None, None
    at = (hit.meaning.signature, hit.line, hit.text, rank, host)
    return Attempt(part.first_line, part.last_line, part.step, state, hit.family, *at)


def _with_attempts(ending: Ending, attempts: Sequence[Attempt]) -> Ending:
    """``ending`` with how many attempts at the end failed the same way, and whether any got further."""
    last = attempts[-1]
    same = list(takewhile(lambda one: _fingerprint(one) == _fingerprint(last), reversed(attempts)))
    if len(same) < 2 or last.family in ENDED_BY_OTHERS:
        # Who ends a job says nothing of the next attempt.
        return replace(ending, attempts=tuple(attempts))
    reached = [attempt.step or 0 for attempt in same]
    helps = max(reached) - min(reached) > SAME_STEPS
    return replace(ending, attempts=tuple(attempts), repeated=len(same), restart_helps=helps)


def _fingerprint(attempt: Attempt) -> tuple[object, ...]:
    """What failed; of exceptions that no other signature knows also their words."""
    vague = attempt.family in ("exception", "unknown") or attempt.signature == "python.exception"
    words = words_of(attempt.text or "") if vague else ""
    return attempt.family, attempt.signature, words


def _line_of(source: str, found: tuple[int, str] | None) -> FailureLine | None:
    if found is None:
        return None
    number, text = found
    return FailureLine(source, number, quoted(text, ""), "last", "unknown", read_prefixes(text).rank)


def _with_lines_before(ending: Ending, part: Part, cause: Hit, ends: FileEnds) -> Ending:
    """``ending`` with a save that had begun, and of a run that was stopped from outside with what it printed before."""
    tail = next((tail for tail in ends.tails if tail.source == cause.source), None)
    if tail is None:
        return ending
    first = cause.line
    own = [hit for hit in part.hits if hit.source == cause.source and hit.meaning.signature not in TYPED]
    for hit in reversed([hit for hit in own if hit.line < cause.line]):
        first = hit.line if first - hit.line <= _TOGETHER else first
    saving = _line_of(cause.source, unfinished_save(tail, first))
    last = printed_before(tail, first) if ending.family in _FROM_OUTSIDE and not cause.frames else None
    stepped = part.stepped_line if ending.step is not None else None
    known = last is None or last[0] in (stepped, saving and saving.line)
    return replace(ending, unfinished_save=saving, printed_last=None if known else _line_of(cause.source, last))


def _without_failure(progress: Progress, ends: FileEnds) -> Ending:
    cut = progress.step is not None or any(last_progress(tail) for tail in ends.tails)
    ending = Ending("cut_off" if cut else "unknown", step=progress.step, planned_steps=progress.planned)
    if len(ends.tails) == 1 and (found := last_printed(ends.tails[0])) is not None:
        ending = replace(ending, printed_last=_line_of(ends.tails[0].source, found))
    lost, torn = _first_of(ends, last_lost), _first_of(ends, torn_traceback)
    if torn is not None:
        ending = _with_line(replace(ending, state="failed"), "unknown", "unknown", TORN_TRACEBACK, *torn)
        since = max(progress.lines.get(torn[0], ()), default=0)
        ending = replace(ending, evidence=(*ending.evidence, *novel_evidence(ends, torn[0], torn[1], since)))
    return _with_values(ending, progress, ends, *lost) if (cut or torn) and lost else ending


def _with_values(ending: Ending, progress: Progress, ends: FileEnds, source: str, line: int, text: str) -> Ending:
    """``ending`` with the line from which on values are not finite; if none ever was, with the first that is not."""
    tail = next(tail for tail in ends.tails if tail.source == source)
    if not (progress.is_whole(tail) and never_finite(tail)):
        return _with_line(ending, "numerics", "supported", LOST_VALUES, source, line, text)
    ending = _with_line(ending, "numerics", "supported", NEVER_FINITE, source, line, text)
    first = _line_of(source, first_nan(tail, line))
    return ending if first is None else replace(ending, evidence=(first, *ending.evidence))


def _with_error_file(ending: Ending, hits: Sequence[Hit]) -> Ending:
    """``ending`` with the file in which a scheduler says that the errors of the job are."""
    named = next((hit for hit in hits if hit.meaning.signature == "context.error_file"), None)
    if named is None or (ending.failed and ending.collect != "errors"):
        return ending
    detail, figures = detail_of(named.meaning.remedy, named.text) or (None, {})
    return replace(ending, remedy=named.meaning.remedy, detail=detail, figures=figures, collect=None)


def _with_line(ending: Ending, family: str, grade: str, remedy: str, source: str, line: int, text: str) -> Ending:
    """``ending`` with what a line at the end of the log shows, which no signature knows."""
    found = FailureLine(source, line, quoted(text, ""), "finding", family, None)
    detail, figures = detail_of(remedy, text) or (None, {})
    return replace(
        ending,
        family=family,
        grade=grade,
        source=source,
        line=line,
        text=found.text,
        remedy=remedy,
        evidence=(found,),
        detail=detail,
        figures=figures,
    )


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
    if ending.state == "completed" and ending.evidence and ending.remedy != LOST_VALUES:
        yield warning("error_after_end", lines=[_note(one, several) for one in ending.evidence])
    if not ending.failed or ending.step is None:
        return
    fields = {
        "step": ending.step,
        "n": ending.lines_of_failure,
        "lines": [_note(one, several) for one in ending.evidence if one.role != NOVEL],
    }
    if ending.planned_steps is None:
        yield warning("ended_with_errors", **fields)
    else:
        yield warning("ended_early_with_errors", of=ending.planned_steps, **fields)


def _note(line: FailureLine, several: bool) -> Note:
    fields = {"line": line.line, "kind": line.family, "text": line.text}
    return info("error_line_of_file", source=line.source, **fields) if several else info("error_line", **fields)


def count_repeated(cause: FailureLine, hits: Iterable[Hit], starts: pl.DataFrame) -> tuple[int, int]:
    """How many lines of all ranks say what ``cause`` does, and in how many starts."""
    same = [hit for hit in hits if words_of(hit.text) == words_of(cause.text)]
    opened = {source: frame["line_number"].to_list() for (source,), frame in starts.group_by("source")}
    return len(same), len({(hit.source, bisect_right(opened.get(hit.source, []), hit.line)) for hit in same})
