"""The attempts of a log: where the run began anew, and the lines of each that no completed step refuted."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import polars as pl

from logparse.failures.attribution import same_message
from logparse.failures.precedence import cause_of, without_caught
from logparse.failures.progress import Progress
from logparse.failures.scan import OF_WHOLE_JOBS, SYNTAX, Hit
from logparse.failures.signatures import JUDGED
from logparse.failures.trainers import FileEnds
from logparse.inputs.ranks import place_of
from logparse.light_dataclass import dataclass, replace

# Lines before the last step that an error may be in although it is why the run ended.
WRITTEN_LATE = 10
# Families of a run that a scheduler or a person ended.
ENDED_BY_OTHERS = OF_WHOLE_JOBS | {"signal"}
# Paddle's launcher reports a process that failed, and prints the end of its log below; lines of it, at most.
LONGEST_LOG = 100
# Remedies of what ends a process before it does anything: arguments that no parser reads, code that Python cannot.
_PARSER = "parser"
_BEFORE_ALL = frozenset((_PARSER, SYNTAX))
# Families of what fails only once a program runs.
_OF_RUNNING = frozenset(("device_memory", "device_program", "numerics", "checkpoint", "disk", "host_memory"))


@dataclass(frozen=True)
class Part:
    """The hits of one attempt that no step refuted, and where it lies."""

    hits: list[Hit]
    first_line: int
    last_line: int | None
    step: int | None
    stepped_line: int | None

    @property
    def stepped(self) -> bool:
        """Whether it completed a step."""
        return self.stepped_line is not None


def parts_of(hits: Iterable[Hit], progress: Progress, starts: pl.DataFrame, ends: FileEnds) -> list[Part]:
    """The attempts of a file, the last one of several files."""
    by_source: dict[str, list[Hit]] = {
        source: [] for source in (*progress.lines, *(tail.source for tail in ends.tails))
    }
    for hit in hits:
        by_source.setdefault(hit.source, []).append(hit)
    if len(by_source) == 1:
        ((source, own),) = by_source.items()
        parts = [part for part in _attempts(source, own, progress, starts) if part.hits or part.stepped]
        # A complaint before the first start, such as a package that is not there, is no attempt.
        spoken = len(parts) > 1 and not parts[0].stepped and all(hit.role == "error" for hit in parts[0].hits)
        return parts[1:] if spoken else parts
    return [_last_of_files(by_source, progress)]


def _attempts(source: str, hits: Sequence[Hit], progress: Progress, starts: pl.DataFrame) -> Iterator[Part]:
    """Cut a file where a process begins, or a launcher says so, if something happened since the cut before."""
    begins = starts.filter(pl.col("source") == source)["line_number"].to_list() if len(starts) else []
    stepped = progress.lines.get(source, [])
    hits = of_one_section(hits, stepped)
    lines = [hit.line for hit in hits if hit.role not in ("context", "again", "ignored")]
    again = [*_begun_again(hits), *_begun_anew(hits)]
    cuts, last = [1], 1
    for cut in sorted({*begins, *again}):
        # The settings that each rank prints are one start.
        if _any_between(lines, last, cut) or _any_between(stepped, last, cut):
            cuts.append(cut)
            last = cut
        elif cut in begins and not (_any_between(begins, last, cut) or last in cuts[1:]):
            last = cut
    at = [hit.line for hit in hits]
    for first, after in zip(cuts, [*cuts[1:], None], strict=True):
        own = hits[bisect_left(at, first) : len(at) if after is None else bisect_left(at, after)]
        seen, step = progress.last_in(source, first, after)
        yield Part(
            without_caught(_not_refuted(own, seen or 0)),
            first,
            None if after is None else after - 1,
            step,
            seen,
        )


def of_one_section(hits: Sequence[Hit], stepped: Sequence[int]) -> Sequence[Hit]:
    """Of a document whose steps are all in blocks of code, the ``hits`` before the section after the last step."""
    fences = [hit.line for hit in hits if hit.has("fence")]
    of_document = stepped and len(fences) > 2 and len(fences) % 2 == 0
    if not of_document or any(bisect_left(fences, line) % 2 == 0 for line in stepped):
        return hits
    headings = (hit.line for hit in hits if hit.has("heading") and hit.line > stepped[-1])
    section = next((line for line in headings if bisect_left(fences, line) % 2 == 0), None)
    return [hit for hit in hits if section is None or hit.line < section]


def _begun_again(hits: Sequence[Hit]) -> Iterator[int]:
    """The lines after those that say that a run begins; some count only after a report that a process ended."""
    ended: list[Hit] = []
    quoted_from = None
    for hit in hits:
        ended.append(hit)
        if hit.has("quotes_log"):
            quoted_from = hit.line
        if quoted_from is not None and hit.line - quoted_from <= LONGEST_LOG:
            continue
        if hit.role == "again" and (not hit.has("after_end") or _has_ended(ended)):
            ended = []
            yield hit.line + 1


def _begun_anew(hits: Sequence[Hit]) -> Iterator[int]:
    """Lines on which a process is a new one.

    A failure that comes before all others of a process has others before it; or code that Python could not read has a
    failure of a program that runs after it, of the same rank. A parser that refuses the same argument again, below its
    usage, does so in a new process: one of another rank only where a launcher reports it.
    """
    judged = [hit for hit in hits if hit.role in JUDGED]
    reported = any(hit.code not in (None, 0) or hit.rank is not None for hit in judged)
    for before, hit in pairwise(judged):
        first = hit.meaning.remedy in _BEFORE_ALL
        runs = before.meaning.remedy == SYNTAX and hit.family in _OF_RUNNING and hit.rank == before.rank
        by_hand = not reported and hit.meaning.remedy == _PARSER == before.meaning.remedy and hit.line - before.line > 1
        if by_hand or ((first or runs) and not same_message(before, hit)):
            yield hit.line if first else before.line + 1


def _not_refuted(hits: Sequence[Hit], seen: int) -> list[Hit]:
    """The ``hits`` after the last step in line ``seen``.

    Steps and bars may be written late, as a process ends: where a launcher reports an error that nothing after them
    explains, the lines just before count too.
    """
    after = [hit for hit in hits if _is_after(hit, seen)]
    cause = cause_of(after)
    if cause is not None and cause.role not in ("root", "explains") and is_reported(after):
        return [hit for hit in hits if _is_after(hit, seen - WRITTEN_LATE)]
    return after


def is_reported(hits: Iterable[Hit]) -> bool:
    """Whether a launcher reports a process that ended with an error."""
    return any(hit.code not in (None, 0) and hit.has("names_rank", "reports_exit") for hit in hits)


def _has_ended(hits: Sequence[Hit]) -> bool:
    """Whether a launcher, a scheduler or Weights & Biases reports the end of a process or of its run."""
    ended = any(hit.family in ENDED_BY_OTHERS or hit.has("closes_run") for hit in hits)
    return ended or is_reported(hits)


def _is_after(hit: Hit, line: int) -> bool:
    """Whether no step refutes ``hit``: it is after the last ``line`` with one, or on it after the bar.

    What Kubernetes says of a pod that ended is above the steps of its log, or of another one.
    """
    return hit.line > line or (hit.line == line and hit.after_bar) or hit.has("of_pod", "names_pod")


def _any_between(lines: Sequence[int], first: int, after: int) -> bool:
    return bisect_left(lines, first) < bisect_left(lines, after)


def _last_of_files(by_source: Mapping[str, Sequence[Hit]], progress: Progress) -> Part:
    """The hits of several files, in the order of their clocks where these are known, that no step refuted.

    torchrun numbers attempts: only the files of the last one count.
    """
    attempts = {source: place.attempt or 0 if (place := place_of(source)) else 0 for source in by_source}
    latest = max(attempts.values(), default=0)
    kept: list[tuple[float, int, int, Hit]] = []
    for number, (source, hits) in enumerate(by_source.items()):
        seen = progress.last_in(source, 1, None)[0] or 0
        clock = 0.0
        for hit in map(_with_rank_of_file(source), hits):
            clock = hit.clock if hit.clock is not None else clock
            old = progress.last_clock is not None and 0 < clock < progress.last_clock
            if _is_after(hit, seen) and attempts[source] == latest and not (old and not seen):
                kept.append((clock or float("inf"), number, hit.line, hit))
    kept.sort(key=lambda row: row[:3])
    stepped = None if progress.step is None else 0
    return Part(without_caught([row[3] for row in kept]), 1, None, progress.step, stepped)


def _with_rank_of_file(source: str) -> Callable[[Hit], Hit]:
    """What gives a line the rank in the name of its file, unless the line has one or the name counts within a node."""
    place = place_of(source)
    rank = place.rank if place is not None and place.node is None else None
    return lambda hit: replace(hit, rank=rank) if hit.rank is None and rank is not None else hit
