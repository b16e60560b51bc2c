"""Judges how a run ended: completed, failed, killed or cut off; why, and which rank.

Comes in: the hits of all files, the steps, and the lines on which processes began. Goes out: one Ending.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import polars as pl

from logparse.failures.attempts import ENDED_BY_OTHERS, Part, is_reported, of_one_section, parts_of
from logparse.failures.attribution import (
    Who,
    attributed,
    count_unnamed,
    hosts_with,
    hosts_without_rank,
    ranks_of_report,
    ranks_with,
    words_of,
)
from logparse.failures.end_of_log import (
    with_error_file,
    with_lines_before,
    with_lost_values,
    within_evaluation,
    without_failure,
)
from logparse.failures.ending import FAILED, Attempt, Ending
from logparse.failures.evidence import FailureLine, evidence_of, novel_evidence, proof_of, quoted_lines, raised_too
from logparse.failures.exception_chain import frames_of, last_of_chain, raised_after, reporting_line
from logparse.failures.last_lines import LAST_LINES
from logparse.failures.novelty import repeated_line
from logparse.failures.precedence import cause_of
from logparse.failures.progress import Progress, last_progress, last_rise, progress_of
from logparse.failures.ranks.suspects import FailedRanks, RankFacts, find_suspects
from logparse.failures.ranks.times import RANK_TIMES
from logparse.failures.scan import PROCESS, Hit, is_of_job, quoted
from logparse.failures.trainers import FileEnds

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
# Causes that put the last save in doubt, whoever reports them; of others after the last step most are tear-down.
_SPOIL_SAVES = frozenset(("disk", "checkpoint"))
# What to try at a time limit, and where no step shows that the run was under way.
_TIME_LIMIT, _TIME_LIMIT_UNSEEN = "time_limit", "time_limit_unseen"


def ending_of(
    hits: Iterable[Hit],
    steps: pl.DataFrame,
    starts: pl.DataFrame,
    ends: FileEnds,
    rank_times: pl.DataFrame | None = None,
    from_zero: bool | None = None,
) -> Ending:
    """The ending that ``hits`` of all files show, after the ``steps`` (source, line_number, step, train_steps).

    ``rank_times`` are rows of RANK_TIMES. ``from_zero``: the last of N planned steps is number N - 1.
    """
    progress = progress_of(steps, ends, from_zero)
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
    hits: Iterable[Hit],
    steps: pl.DataFrame,
    starts: pl.DataFrame,
    first: int,
    after: int | None,
    from_zero: bool | None = None,
) -> Ending:
    """The ending of one of several runs of a file: it has the ``steps``, and the lines from ``first`` to ``after``."""
    source = steps["source"][0]
    known = of_one_section([hit for hit in hits if hit.source == source], steps["line_number"].sort().to_list())
    own = [hit for hit in known if first <= hit.line and (after is None or hit.line < after)]
    if after is not None:
        # What a launcher begins after the last step is the next run.
        stepped: Any = steps["line_number"].max()
        after = min((hit.line for hit in own if hit.role == "again" and hit.line > stepped), default=after)
    own = [hit for hit in own if after is None or hit.line < after]
    return ending_of(own, steps, starts, FileEnds(), from_zero=from_zero)


def _of_attempts(parts: Sequence[Part], progress: Progress, ends: FileEnds) -> Ending:
    """The ending of the last attempt, with a line on each."""
    if not parts:
        return without_failure(progress, ends)
    *before, last = parts
    last = _without_outlived(last, progress, ends)
    parts = (*before, last)
    judged = [_judge(part) for part in parts]
    state, cause = judged[-1]
    attempts = tuple(_attempt(part, how, hit) for part, (how, hit) in zip(parts, judged, strict=True))
    if state == "completed" or (last.stepped and progress.ends_with(last.step) and not _only_loaded(cause, progress)):
        within = within_evaluation(progress, ends, cause if cause is not None and cause.role == "end" else None)
        return replace(within or with_lost_values(_completed(cause, last.hits, progress), ends), attempts=attempts)
    if cause is None or not progress.outlives(cause, ends) or _only_logged(cause, progress, ends):
        return replace(with_error_file(without_failure(progress, ends), last.hits), attempts=attempts)
    ending = _failed(last, state, cause, progress)
    # The steps of a run that completed before it in the same file are not its own.
    of_another = not last.stepped and any(how == "completed" for how, _ in judged)
    if of_another or _only_loaded(cause, progress):
        ending = replace(ending, step=None, planned_steps=None)
    if ending.remedy == _TIME_LIMIT and ending.step is None and not any(map(last_progress, ends.tails)):
        ending = replace(ending, remedy=_TIME_LIMIT_UNSEEN)
    ending = with_lines_before(ending, last, cause, ends)
    if cause.role not in ("root", "explains"):
        ending = with_error_file(_with_novel_lines(ending, last, cause, ends), last.hits)
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
    done = progress.step
    if done is not None and progress.planned is not None:
        done += progress.from_zero
    early = progress.planned is not None and progress.ends_early()
    ending = Ending(
        "completed", "completed", "established", step=done, planned_steps=progress.planned, ended_early=early
    )
    if end is None or end.role != "end":
        return _with_later_error(ending, hits, uncaught=True)
    ending = replace(ending, signature=end.meaning.signature, source=end.source, line=end.line, text=end.text)
    after = hits[hits.index(end) + 1 :]
    return _with_later_error(ending, after, uncaught=end.has("before_last_save"))


def _with_later_error(ending: Ending, hits: Sequence[Hit], uncaught: bool) -> Ending:
    """``ending`` with the line among ``hits`` that puts the last save of a completed run in doubt, and its remedy.

    An exception that is ``uncaught`` does where the script of a user goes on after the training, often to save.
    """
    cause = cause_of(hits)
    aborted = cause is not None and cause.family == "crash" and is_reported(hits)
    if cause is None or not (aborted or cause.role in ("root", "explains")):
        return ending
    uncaught &= cause.has("exception") and not cause.caught
    if not (is_reported(hits) or uncaught or cause.family in _SPOIL_SAVES):
        return ending
    who = attributed(cause, hits)
    return replace(
        ending,
        evidence=(evidence_of(cause),),
        remedy=cause.meaning.remedy or None,
        detail=cause.detail,
        figures=cause.figures,
        rank=who.rank,
        local_rank=who.local_rank,
        host=who.host,
        exit_code=who.code,
    )


def _judge(part: Part) -> tuple[str, Hit | None]:
    """The state of an attempt, and the line that shows it."""
    completed = next((hit for hit in part.hits if hit.role == "end"), None)
    if completed is not None and completed.has("of_process") and cause_of(part.hits) is not None:
        hits = [hit for hit in part.hits if not (hit.role == "end" and hit.has("of_process"))]
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
    reported = last_of_chain(cause, part.hits) or raised_after(cause, part.hits)
    evidence = (*map(evidence_of, quoted_lines(cause, part.hits, reported)), *raised_too(cause, part.hits))
    meaning = cause.meaning
    grade = meaning.grade if proof_of(cause, part.hits) is None else "established"
    who = _blamed(cause, part.hits)
    # Of other consequences the first rank is chance; of a wait each rank that waits prints it.
    names_all = cause.role in ("root", "explains") or cause.meaning.remedy == "collective_timeout"
    same_ranks = (ranks_with(cause, part.hits) if names_all else ()) or ranks_of_report(cause, part.hits)
    same_hosts = () if same_ranks or who.rank is not None else hosts_without_rank(cause, part.hits)
    if same_hosts or (len(same_ranks) > 1 and len(hosts_with(cause, part.hits)) > 1):
        who = replace(who, host=None)
    unnamed = count_unnamed(cause, part.hits)
    if meaning.family == "host_memory":
        who = replace(who, host=who.host or cause.figures.get("host"))
    if unnamed > 1:
        who = Who(host=None if same_hosts else cause.host, code=who.code)
    return Ending(
        state,
        meaning.family,
        grade if meaning.family != "unknown" else "unknown",
        meaning.signature,
        cause.source,
        cause.line,
        cause.text,
        who.rank,
        who.local_rank,
        who.host,
        who.code,
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


def _blamed(cause: Hit, hits: Sequence[Hit]) -> Who:
    """The process to blame: of a wait none, since the rank that waits is not the one that failed."""
    who = attributed(cause, hits)
    waits = cause.role == "explains" or cause.has("waits_for_others")
    if waits and "peer" not in cause.fields:
        # Of a link that failed the host is an end.
        who = Who(host=who.host if cause.family == "network" else None, code=who.code)
    return replace(who, rank=None, local_rank=None) if is_of_job(cause) else who


def _attempt(part: Part, state: str, hit: Hit | None) -> Attempt:
    if hit is None:
        return Attempt(part.first_line, part.last_line, part.step, state, "unknown", *(None,) * 5)
    who = attributed(hit, part.hits)
    # Either end of a link may have failed.
    rank, host = who.rank, None if "peer" in hit.fields else who.host
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


def count_repeated(cause: FailureLine, hits: Iterable[Hit], starts: pl.DataFrame) -> tuple[int, int]:
    """How many lines of all ranks say what ``cause`` does, and in how many starts."""
    same = [hit for hit in hits if words_of(hit.text) == words_of(cause.text)]
    opened = {source: frame["line_number"].to_list() for (source,), frame in starts.group_by("source")}
    return len(same), len({(hit.source, bisect_right(opened.get(hit.source, []), hit.line)) for hit in same})
