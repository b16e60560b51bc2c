"""Many runs recorded in the history, whatever is wrong with one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysis.batch.analyze_runs import analyze_all
from analysis.history.record_run import Marks, keep
from analysis.history.store import History, RecordedElsewhereError, State
from analysis.run.notes import PERHAPS_ANOTHER_RUN
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.errors import InputError, LogparseError
from logparse.findings import Note, warning


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
