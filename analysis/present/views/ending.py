"""How a run ended: the answer of ``diagnose``, the object ``ending`` of every document, and what other screens say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath
from signal import Signals
from typing import TYPE_CHECKING

from analysis.present.numbers import percent
from analysis.present.parts import Part, ScreenRow, ScreenRows, Sentence
from analysis.present.words import fill, word, words
from analysis.present.words.forms import ranges, span
from logparse.failures.details import complete_details
from logparse.failures.ending import FAILED, Attempt, Ending
from logparse.failures.evidence import NOVEL, FailureLine
from logparse.failures.frames import Frame
from logparse.failures.ranks.suspicions import Suspect
from logparse.failures.signatures import LOST_VALUES
from logparse.language import current_language, msg, tr
from logparse.lazy_regex import lazy_regex

if TYPE_CHECKING:
    from analysis.run.run import Run

# The longest answer in one line, in columns.
LONGEST = 100
# Characters of a quoted line that is not the cause.
SHORT_QUOTE = 160
# Ranks that are named, of those with others between them.
MOST_NAMED = 6
# Causes of earlier attempts that are named.
MOST_CAUSES = 3
# The prefix of a rank that both the trainer and the launcher print.
_REPEATED = lazy_regex(r"(\[(?:rank|default)\d+\]:)\s*(?:\1\s*)+")
# Reasons to suspect several ranks at once: a barrier counts them as missing, or another rank names them.
NOT_JOINED, ALL_ABSENT = "not_joined", "all_absent"
# Two ranks that wait in different collectives.
DIFFERING = "collectives_differ"
# The detail of a wait in the first collective: where all ranks wait, none is missing.
FIRST_COLLECTIVE = "first_collective"
# Families of a run whose code of exit a reader wants to see.
_STATES = {
    "cut_off": msg("cut off or running: no failure found"),
    "unknown": msg("no failure found, and nothing shows that the run completed"),
}
# The last steps were too few for a line of their own.
_UNPRINTED = msg("completed {planned} steps (last line: {step})")
# The trainer itself ends a run without more data: an end, no failure of hardware or code.
DATA_USED_UP = "data.end"


def failure(run: Run) -> Ending | None:
    """How the run failed; None where its log shows no such thing."""
    ending = run.log.ending
    return ending if ending is not None and ending.failed else None


def ending_clauses(ending: Ending | None) -> list[str]:
    """How a recorded run failed, and the line that shows it, with its file; empty for any other."""
    if ending is None or not ending.failed:
        return []
    quoted = [] if ending.cause is None else [_quoted_line(ending.cause, several=True)]
    return [headline(ending), *quoted]


def error_clauses(run: Run) -> list[str]:
    """The line that shows why a run failed, with its place; empty for any other run."""
    ending = failure(run)
    if ending is None or ending.cause is None or ending.signature == DATA_USED_UP:
        return []
    text = _quoted_line(ending.cause, len(run.log.sources) > 1)
    return [text.rstrip(":"), *_silence(ending), tr("more with `logparse diagnose`")]


def ending_clause(run: Run) -> str:
    """What the title of a failed run says instead of its steps; empty for any other."""
    ending = failure(run)
    if ending is None or ending.grade != "hypothesis":
        return headline(ending) if ending is not None else ""
    return tr("{text} ({grade})", text=headline(ending), grade=word("grades", ending.grade))


def short_ending(run: Run) -> str:
    """How a run failed, in few words; empty for any other."""
    ending = failure(run)
    return "" if ending is None else headline(ending, short=True)


def quiet_ending(name: str, ending: Ending) -> str:
    """The answer of ``diagnose`` in one line of at most LONGEST columns, where the name leaves room for that."""
    from rich.cells import cell_len

    texts = [headline(ending), headline(ending, short=True)]
    if ending.cause is not None:
        place = _place(ending.cause, several=len({line.source for line in ending.evidence}) > 1)
        texts = [*(tr("{text}, {place}", text=text, place=place) for text in texts), texts[-1]]
    lines = [tr("{name}: {text}", name=name, text=text) for text in texts]
    return next((line for line in lines if cell_len(line) <= LONGEST), lines[-1])


def headline(ending: Ending, short: bool = False) -> str:
    """How a run ended, in one line: how far it got, which rank, and why; if ``short`` with the name of the cause."""
    if not ending.failed:
        return _not_failed(ending)
    if ending.signature == DATA_USED_UP and ending.step is not None:
        at = f"{ending.step:,}"
        if ending.planned_steps is None:
            return tr("ended at step {step}: the data are used up", step=at)
        planned = f"{ending.planned_steps:,}"
        return tr("ended at step {step} of {planned}: the data are used up", step=at, planned=planned)
    cause = word("failure_names", ending.family) if short else _waits(ending) or _who(ending) + _what_failed(ending)
    at = _where_it_ended(ending)
    if ending.family == ending.state and (short or not _who(ending)):
        # A job that the scheduler or a person ended has no other cause.
        return at
    return tr("{text}: {cause}", text=at, cause=cause)


def _not_failed(ending: Ending) -> str:
    """How a run ended that shows no failure, and whether its last save is in doubt."""
    text = _completed(ending) if ending.state == "completed" else tr(_STATES[ending.state])
    if ending.unfinished_evaluation is not None:
        return tr("{text}; the log ends within an evaluation", text=text)
    if not ending.evidence:
        return text
    if _loses_values(ending):
        return tr("{text}; but the last losses are not finite", text=text)
    if ending.state == "completed":
        cause = _who(ending) + word("failures", ending.evidence[0].family)
        return tr("{text}; then {cause}: check the last save", text=text, cause=cause)
    return tr("the last values are not finite: the log is cut off, or the run goes on and trains nothing")


def _completed(ending: Ending) -> str:
    if ending.step is None or ending.planned_steps is None:
        return tr("completed")
    step, planned = f"{ending.step:,}", f"{ending.planned_steps:,}"
    if ending.ended_early:
        return ended_early(tr("step {step} of {planned}", step=step, planned=planned))
    text = msg("completed: {step} of {planned} steps") if ending.reached_plan else _UNPRINTED
    return tr(text, step=step, planned=planned)


def ended_early(steps: str) -> str:
    """The ``steps`` of a run that its trainer ended by itself although its plan goes on: every screen says it so."""
    return tr("{steps}: the trainer ended by itself before its plan", steps=steps)


def _loses_values(ending: Ending) -> bool:
    """Whether a run completed with losses that are not finite."""
    return ending.state == "completed" and ending.remedy == LOST_VALUES and bool(ending.evidence)


def _where_it_ended(ending: Ending) -> str:
    """The state of a run that did not complete, and how far it got."""
    state = word("ending_states", ending.state)
    if ending.step is None:
        return state
    if ending.planned_steps is None:
        return tr("{state} after step {step}", state=state, step=f"{ending.step:,}")
    step, planned = f"{ending.step:,}", f"{ending.planned_steps:,}"
    return tr("{state} at step {step} of {planned}", state=state, step=step, planned=planned)


def _waits(ending: Ending) -> str:
    """Who reports a wait that timed out: the missing rank is another one. Empty of any other cause."""
    cause = ending.cause
    if cause is None or ending.remedy != "collective_timeout" or cause.role not in ("explains", "consequence"):
        return ""
    if ending.suspects and ending.suspects[0].reasons[0].code == NOT_JOINED:
        reason = ending.suspects[0].reasons[0]
        return tr("{n} of {of} ranks did not join", n=(reason.of or 0) - (reason.n or 0), of=reason.of)
    if ending.suspects and ending.suspects[0].reasons[0].code == ALL_ABSENT:
        return tr("others waited for {n} ranks", n=ending.suspects[0].reasons[0].n)
    if ending.suspects and (differing := ending.suspects[0].reasons[0]).code == DIFFERING:
        first, second = sorted((differing.rank or 0, differing.other or 0))
        return tr("ranks {first} and {second} wait in different collectives", first=first, second=second)
    named = _named_missing(ending)
    if ending.same_on > 1:
        who = _all_ranks(ending) or tr("{n} ranks", n=ending.same_on)
    elif (rank := ending.rank if cause.rank is None else cause.rank) is not None:
        who = tr("rank {rank}", rank=rank)
    elif named is not None:
        who = tr("others")
    else:
        return ""
    if named is None and ending.detail == FIRST_COLLECTIVE and ending.same_on > 1 and not ending.suspects:
        return tr("{who} hung in their first collective", who=who)
    if named is None:
        return tr("{who} waited for a missing rank", who=who)
    return tr("{who} waited for rank {rank}", who=who, rank=named)


def _named_missing(ending: Ending) -> int | None:
    """The only rank that other ranks name as the one for which they wait."""
    named = [
        suspect.rank for suspect in ending.suspects if any(reason.code == "named_absent" for reason in suspect.reasons)
    ]
    return named[0] if len(named) == 1 else None


def _all_ranks(ending: Ending) -> str:
    """The ranks that print the cause; empty where they are many with others between them."""
    ranks = ending.same_ranks
    if not ranks or (ranks[-1] - ranks[0] + 1 != len(ranks) and len(ranks) > MOST_NAMED):
        return ""
    if ranks[-1] - ranks[0] + 1 != len(ranks):
        return tr("ranks {some} and {last}", some=tr(", ").join(map(str, ranks[:-1])), last=ranks[-1])
    text = msg("ranks {first} and {last}") if len(ranks) == 2 else msg("ranks {first} to {last}")
    return tr(text, first=ranks[0], last=ranks[-1])


def _who(ending: Ending) -> str:
    """The rank and the host of the cause, as far as they are known, with what parts them from the cause."""
    if ending.peer is not None:
        ends = [end for end in (ending.host, ending.peer) if end is not None]
        return tr("link of {ends}, ", ends=tr(" and ").join(ends))
    if ending.same_on > 1:
        # Which of them prints it first is chance.
        every = _all_ranks(ending) or tr("{n} ranks", n=ending.same_on)
        every = tr("{who} ({host})", who=every, host=ending.host) if ending.host else every
        named = msg("{who}, all the same: ") if ending.host or _all_ranks(ending) else msg("{who}, ")
        return tr(named, who=every)
    if ending.rank is not None and ending.host:
        return tr("rank {rank} ({host}), ", rank=ending.rank, host=ending.host)
    if ending.rank is not None:
        return tr("rank {rank}, ", rank=ending.rank)
    if ending.local_rank is not None:
        local = tr("local rank {rank}", rank=ending.local_rank)
        return tr("{rank} ({host}), ", rank=local, host=ending.host) if ending.host else tr("{rank}, ", rank=local)
    if len(ending.same_hosts) == 2:
        return tr("{who}, all the same: ", who=tr(" and ").join(ending.same_hosts))
    if ending.same_hosts:
        return tr("{n} nodes, all the same: ", n=len(ending.same_hosts))
    return tr("{host}, ", host=ending.host) if ending.host else ""


def _what_failed(ending: Ending) -> str:
    """The cause in words: of a remedy that fits only a part of its family, those of the remedy."""
    narrow = words(current_language())["failures_by_remedy"]
    return narrow.get(ending.remedy or "") or word("failures", ending.family)


def ending_word(state: str | None, family: str | None) -> str:
    """How a run ended, in few words: for a column, and for a list of runs."""
    text = word("ending_states", state or "unknown")
    if state in ("failed", "killed") and family and family != state:
        return tr("{state}: {family}", state=text, family=word("failure_names", family))
    return text


def ending_parts(ending: Ending, with_files: bool = False) -> list[Part]:
    """The answer of ``logparse diagnose``; ``with_files`` names the file of each line."""
    text = headline(ending)
    if ending.failed:
        text = tr("{text} ({grade})", text=text, grade=word("grades", ending.grade))
    return [Sentence(text), ScreenRows([*_quoted(ending, with_files), *_ranks(ending), *_advice(ending)])]


def _calls(ending: Ending) -> list[ScreenRow]:
    """The line of code that raised the cause, and the one of the user's own code that led to it."""
    if not ending.frames:
        return []
    # A device reports what failed on it later.
    later = ending.reported_on is not None or ending.family == "device_program"
    label = tr("  reported") if later else tr("  raised in")
    raised = [ScreenRow(label, "", [_call(ending.frames[-1])])]
    return raised + [ScreenRow(tr("  called in"), "", [_call(call)]) for call in ending.frames[:-1]]


def _call(call: Frame) -> str:
    place = tr("{path}, line {line}, in {name}", path=call.path, line=call.line, name=call.name)
    return place if call.code is None else tr("{place}: {code}", place=place, code=call.code)


def _quoted(ending: Ending, with_files: bool) -> list[ScreenRow]:
    several = with_files or len({line.source for line in ending.evidence}) > 1
    quoted = [line for line in ending.evidence if line is ending.cause or _loses_values(ending)]
    label = tr("  values") if not ending.failed else tr("  cause")
    cause = [ScreenRow(label, "", [_quoted_line(line, several, whole=True)]) for line in quoted]
    unquoted = [line for line in ending.evidence if line not in quoted and line.role != NOVEL]
    new = [_quoted_line(line, several) for line in ending.evidence if line.role == NOVEL]
    at = ending.line or 0
    before = [_quoted_line(line, several) for line in unquoted if line.line < at]
    if hung := _silence(ending):
        before.append(tr("{text}; next time take stacks first (py-spy dump)", text=hung[0]))
    if ending.failed and ending.printed_last is not None:
        before.append(_quoted_line(ending.printed_last, several))
    after = [_quoted_line(line, several) for line in unquoted if line.line > at]
    return [
        *cause,
        *_calls(ending),
        *_rows(tr("  before it"), before),
        *_rows(tr("  after it"), after),
        *_rows(tr("  new lines"), new),
    ]


def _silence(ending: Ending) -> list[str]:
    """How long a run printed nothing before it was stopped, if that is long."""
    if ending.silent_seconds is None:
        return []
    return [tr("nothing was printed for {time}: it may have hung", time=span(ending.silent_seconds))]


def _rows(label: str, lines: Sequence[str]) -> list[ScreenRow]:
    return [ScreenRow(label if at == 0 else "", "", [line]) for at, line in enumerate(lines)]


def _ranks(ending: Ending) -> list[ScreenRow]:
    """Whom to suspect, and whether the ranks wait for data."""
    rows = _rows(tr("  suspects"), [_suspect(suspect) for suspect in ending.suspects])
    # Who waits for whom says nothing of a cause that is known.
    if not rows and ending.ranks_compared > 1 and ending.grade != "established":
        rows.append(ScreenRow(tr("  suspects"), "", [tr("no outlier among {n} ranks", n=ending.ranks_compared)]))
    # Of a node that failed, or a rank that did not come, all ranks report it, with any settings.
    if ending.same_on > 1 and ending.family not in ("node", "collective_timeout", "cancelled", "signal"):
        text = tr("{n} ranks report this cause: it is not of one device", n=ending.same_on)
        rows.append(ScreenRow(tr("  ranks"), "", [text]))
    if len(ending.same_hosts) > 2:
        text = tr("nodes that report this cause: {hosts}", hosts=tr(", ").join(ending.same_hosts))
        rows.append(ScreenRow(tr("  nodes"), "", [text]))
    if ending.process is not None and ending.rank is None and ending.same_on <= 1:
        rows.append(ScreenRow(tr("  process"), "", [ending.process]))
    if ending.data_share is not None and ending.bound == "data":
        share = percent(ending.data_share)
        rows.append(ScreenRow(tr("  bound by"), "", [tr("data: the ranks wait {share} of a step for it", share=share)]))
    elif ending.data_share is not None:
        share = percent(ending.data_share)
        text = tr("compute: the ranks wait {share} of a step for data", share=share)
        rows.append(ScreenRow(tr("  bound by"), "", [text]))
    return rows


def _suspect(suspect: Suspect) -> str:
    reasons = tr("; ").join(fill("suspicions", reason.code, asdict(reason)) for reason in suspect.reasons)
    if suspect.ranks and suspect.reasons[0].code in (NOT_JOINED, ALL_ABSENT):
        return tr("ranks {ranks}: {reasons}", ranks=ranges(suspect.ranks), reasons=reasons)
    if suspect.ranks:
        first, last = suspect.ranks[0], suspect.ranks[-1]
        node = tr("{host} (ranks {first} to {last})", host=suspect.host or tr("a node"), first=first, last=last)
        return tr("{host}: {reasons}", host=node, reasons=reasons)
    if suspect.rank is None:
        return tr("{host}: {reasons}", host=suspect.host, reasons=reasons)
    return tr("rank {rank}: {reasons}", rank=suspect.rank, reasons=reasons)


def _advice(ending: Ending) -> list[ScreenRow]:
    """What to try, which other log to read, and how often the run tried."""
    if not ending.failed:
        steps = _next_steps(ending, ending.remedy) if ending.remedy else []
        last = (
            [] if ending.printed_last is None or ending.evidence else [_quoted_line(ending.printed_last, several=False)]
        )
        return [
            *_rows(tr("  last line"), last),
            *_rows(tr("  try"), steps),
            *_exit_code(ending),
            *_failed_before(ending),
        ]
    rows = []
    if ending.remedy:
        rows += _rows(tr("  try"), [*_next_steps(ending, ending.remedy), *_unfinished_save(ending)])
    if ending.collect:
        rows.append(ScreenRow(tr("  collect"), "", [word("collects", ending.collect)]))
    rows += _exit_code(ending)
    if ending.attempts_in_log > 1:
        rows.append(ScreenRow(tr("  attempts"), "", _attempts(ending)))
    return rows


def _exit_code(ending: Ending) -> list[ScreenRow]:
    if ending.exit_code is None:
        return []
    known = next((signal.name for signal in Signals if signal == -ending.exit_code), None)
    code = f"{ending.exit_code} ({known})" if known else str(ending.exit_code)
    return [ScreenRow(tr("  exit code"), "", [code])]


def _unfinished_save(ending: Ending) -> list[str]:
    """That the last save did not end."""
    if ending.unfinished_save is None:
        return []
    line = _quoted_line(ending.unfinished_save, several=False)
    return [tr("resume from the save before this one, which did not end: {line}", line=line)]


def _next_steps(ending: Ending, remedy: str) -> list[str]:
    """What to try: with the figures and names of the line where it has them, then the general ``remedy``."""
    exact = [fill("details", ending.detail, ending.figures)] if ending.detail else []
    general = [] if ending.detail in complete_details() else [word("remedies", remedy)]
    return [*exact, *general]


def _failed_before(ending: Ending) -> list[ScreenRow]:
    """The attempts that failed before the one that did not, the most frequent cause first."""
    failed = [attempt for attempt in ending.attempts[:-1] if attempt.state in FAILED]
    if not failed:
        return []
    last = {attempt.family: attempt for attempt in failed}
    causes = Counter(attempt.family for attempt in failed).most_common(MOST_CAUSES)
    texts = [_of_attempts(n, last[family]) for family, n in causes]
    return [ScreenRow(tr("  attempts"), "", [tr("{n} in this log", n=f"{ending.attempts_in_log:,}"), *texts])]


def _of_attempts(n: int, last: Attempt) -> str:
    cause = word("failures", last.family)
    if last.step is None:
        return tr("{n} x {cause}", n=n, cause=cause)
    return tr("{n} x {cause}, last at step {step}", n=n, cause=cause, step=f"{last.step:,}")


def _attempts(ending: Ending) -> list[str]:
    n = tr("{n} in this log", n=f"{ending.attempts_in_log:,}")
    if ending.restart_helps is None:
        return [n]
    repeated = tr("the last {n} ended the same way", n=ending.repeated)
    further = tr("each got further") if ending.restart_helps else tr("none got further: a restart will not help")
    return [n, repeated, further]


def _quoted_line(line: FailureLine, several: bool, whole: bool = False) -> str:
    """A line and its place; of a long one the beginning, unless it is the ``whole`` cause of ``diagnose``."""
    text = _REPEATED.sub(r"\1 ", line.text)
    return tr("{place}: {text}", place=_place(line, several), text=text if whole else text[:SHORT_QUOTE])


def _place(line: FailureLine, several: bool) -> str:
    if several:
        return tr("{file}, line {line}", file=PurePath(line.source).name, line=line.line)
    return tr("line {line}", line=line.line)
