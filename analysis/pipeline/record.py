"""From logs to records of history: what ``record``, ``compare`` and ``gate`` do first with a log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from analysis.history.records import Decoded, RunRecord, Told, make_record
from analysis.history.selection import UNTYPED
from analysis.history.selector import KEY
from analysis.history.store import History, RecordedElsewhereError, State
from analysis.pipeline.analyze import analyze_all, analyze_logs
from analysis.pipeline.options import RunOptions
from analysis.pipeline.run import Run
from analysis.run.findings import PERHAPS_ANOTHER_RUN
from logparse.errors import InputError, LogparseError, UsageError
from logparse.findings import Note, Origin, flag, warning
from logparse.language import tr


@dataclass(frozen=True)
class Marks:
    """What the user says of a run. ``versions`` beat what the log prints."""

    release: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recorded:
    """What became of one run. ``differs`` names what is kept of it otherwise than said now."""

    run_id: str
    name: str
    release: str
    sources: tuple[str, ...]
    state: State
    differs: tuple[str, ...]


def record_all(
    runs: Sequence[tuple[str, Sequence[str]]],
    how: RunOptions,
    marks: Marks,
    store: History,
    tell: Callable[[Note], object],
    engine: str = "local",
) -> tuple[list[Recorded], list[LogparseError]]:
    """Record every run, by its name, whatever is wrong with another's logs; also what could not be recorded, and why.

    Raises where there are runs and none can be recorded.
    """
    done: list[Recorded] = []
    failed: list[LogparseError] = []
    for result in analyze_all(runs, how, engine):
        if isinstance(result, LogparseError):
            failed.append(result)
            continue
        try:
            done.append(_record(result, marks, store, tell))
        except RecordedElsewhereError as error:
            failed.append(error)
        except InputError as error:
            # What is wrong with the store is so for every log.
            failed.append(error)
            break
    if failed and not done:
        raise failed[0]
    return done, failed


def _record(result: Run, marks: Marks, store: History, tell: Callable[[Note], object]) -> Recorded:
    # The one thing to know before it is kept for good; whatever else is odd is `logparse analyze`'s to say.
    for note in result.notes:
        if note.code in PERHAPS_ANOTHER_RUN:
            tell(note)
    kept = keep(result, marks)
    state = store.add(kept)
    differs = () if state == "recorded" else tuple(store.differences(kept))
    if differs:
        tell(warning("recorded_otherwise", name=result.log.name, names=differs, id=kept.run_id[:12]))
    return Recorded(kept.run_id, result.log.name, kept.release, result.log.sources, state, differs)


def record_logs(logs: Sequence[str], how: RunOptions, marks: Marks, name: str | None = None) -> RunRecord:
    """One run of ``logs`` as history keeps it."""
    return keep(analyze_logs(logs, how, name), marks)


def keep(result: Run, marks: Marks) -> RunRecord:
    """What history keeps of ``result``."""
    told = Told(
        release=marks.release,
        name=result.log.name,
        format=result.log.format.name,
        framework=result.framework.name,
        framework_version=result.framework.version,
        labels=marks.labels,
        versions=_versions(result, marks),
    )
    decoded = Decoded(result.log.steps, result.log.settings, result.log.records["memory"])
    return make_record(result.analysis, result.context, decoded, told)


def _versions(result: Run, marks: Marks) -> dict[str, tuple[str, Origin]]:
    several = len(result.log.sources) > 1
    printed = {name: (v.value, v.origin(several)) for name, v in result.log.versions.items()}
    if result.framework.name and result.framework.version:
        printed.setdefault("framework", (f"{result.framework.name} {result.framework.version}", Origin("appearance")))
    return printed | {name.lower(): (value, flag("--version-of")) for name, value in marks.versions.items()}


def parse_pairs(texts: Sequence[str], flag: str, taken: Collection[str] = ()) -> dict[str, str]:
    """``key=value`` each. Raises UsageError for one that is not, or that a selector cannot name.

    The latter are keys in ``taken``, keys given twice in whatever case, and text with control characters.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        key, sign, value = (part.strip() for part in text.partition("="))
        problem = tr("{name} is {value!r}", name=flag, value=text)
        if not key or not sign or not value:
            raise UsageError(problem, remedy=tr("write {flag} key=value", flag=flag))
        if UNTYPED.search(text):
            raise UsageError(problem, remedy=tr("give text without control characters, in UTF-8"))
        if not KEY.fullmatch(key):
            raise UsageError(
                problem, remedy=tr("a key has letters, digits, '_', '.' and '-', so that selectors can name it")
            )
        if key.lower() in taken:
            raise UsageError(problem, remedy=tr("take another key: {key} is a column of the history", key=key))
        if key.lower() in map(str.lower, pairs):
            problem = tr("{flag} {key} is given twice", flag=flag, key=key)
            raise UsageError(problem, remedy=tr("give one value for each key"))
        pairs[key] = value
    return pairs
