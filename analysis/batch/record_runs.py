"""Record many runs in the history; a run that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis.batch.analyze_runs import analyze_all
from analysis.batch.engine import HERE, Readers
from analysis.history.record_run import Marks, keep
from analysis.history.store import History, RecordedElsewhereError, State
from analysis.run.notes import PERHAPS_ANOTHER_RUN
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.errors import InputError, LogparseError, without_each
from logparse.failures.ending import Ending
from logparse.findings import Note, warning
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Recorded:
    """The result for one run. ``differs`` names what the stored record has otherwise than the run now."""

    run_id: str
    name: str
    release: str
    sources: tuple[str, ...]
    state: State
    differs: tuple[str, ...]
    ending: Ending


def record_all(
    runs: Sequence[tuple[str, Sequence[str]]],
    how: RunOptions,
    marks: Marks,
    store: History,
    report: Callable[[Note], object],
    readers: Readers = HERE,
    each: bool = False,
) -> tuple[list[Recorded], list[LogparseError]]:
    """Record every run by its name. Returns the recorded runs, and the error of each other run.

    Raises the first error if no run can be recorded.
    """
    done: list[Recorded] = []
    failed: list[LogparseError] = []
    for result in analyze_all(runs, how, readers):
        if isinstance(result, LogparseError):
            if each:
                without_each([result])
            failed.append(result)
            continue
        try:
            done.append(_record(result, marks, store, report))
        except RecordedElsewhereError as error:
            failed.append(error)
        except InputError as error:
            # A fault of the store affects every log.
            failed.append(error)
            break
    if failed and not done:
        raise failed[0]
    store.bundle_if_many()
    return done, failed


def _record(result: Run, marks: Marks, store: History, report: Callable[[Note], object]) -> Recorded:
    # Only this must be known before the run is stored; `logparse analyze` reports all other problems.
    for note in result.notes:
        if note.code in PERHAPS_ANOTHER_RUN:
            report(note)
    record = keep(result, marks)
    state = store.add(record)
    differs = () if state == "recorded" else tuple(store.differences(record))
    if differs:
        report(warning("recorded_otherwise", name=result.log.name, names=differs, id=record.run_id[:12]))
    ending = result.log.ending or Ending("unknown")
    return Recorded(record.run_id, result.log.name, record.release, result.log.sources, state, differs, ending)
