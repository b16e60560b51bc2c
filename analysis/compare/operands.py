"""Which runs are meant on the command line: a log, a folder of logs, a selector, or a run of the history.

Nothing is printed here: ``report`` gets the notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl

from analysis.compare.comparison import Side
from analysis.compare.independent_records import has_enough_rows
from analysis.history.open_history import Report, open_history
from analysis.history.record_run import Marks, record_logs
from analysis.history.run_records import RunRecord
from analysis.history.selection import select_evidence
from analysis.history.selector import is_equality, is_selector
from analysis.history.store import History
from analysis.run.options import RunOptions
from logparse.errors import NoStepLineError, SeveralRunsError, UsageError, without_each
from logparse.findings import info
from logparse.inputs.remote import entries
from logparse.inputs.run_discovery import named_runs
from logparse.inputs.stores import is_url, shown
from logparse.language import tr
from logparse.light_dataclass import dataclass

# Runs of a side whose settings, versions and losses are read: the newest are enough.
MOST_SETTINGS_RUNS = 20


@dataclass(frozen=True)
class Sides:
    """What is compared: each side as it was asked for, and ``others``, all runs of the history that count, where
    one is given; ``settings`` gives rows of these with all columns by their ids.
    """

    sides: tuple[Side, ...]
    others: pl.DataFrame | None
    settings: Callable[[Sequence[str]], pl.DataFrame] | None


def find_sides(asked: Sequence[str], place: str | None, how: RunOptions, report: Report) -> Sides:
    """The sides that ``asked`` names, of logs or of the history at ``place``. Raises as ``find_side``."""
    history = None if place is None else open_history(place, report)
    runs = history.runs() if history else None
    others = None if runs is None else select_evidence(runs).runs
    sides = tuple(find_side(one, history, runs, how, report) for one in asked)
    return Sides(sides, others, history.settings if history else None)


def find_side(asked: str, history: History | None, runs: pl.DataFrame | None, how: RunOptions, report: Report) -> Side:
    """The runs that ``asked`` names; ``runs`` are those of ``history``.

    Raises UsageError where it names none, InputError or NoStepLineError where a log cannot be read.
    """
    if not asked.strip():
        remedy = tr("give a log, a folder of logs, or a selector such as release=CANN 8.0.RC2")
        raise UsageError(tr("a side is empty"), remedy=remedy)
    if history is not None and _is_selector_and_file(asked):
        problem = tr("{asked} is both a selector and a file or folder", asked=asked)
        raise UsageError(problem, remedy=tr("write ./{asked} for the file, or omit --history", asked=asked))
    if is_of_logs(asked):
        return _of_logs(asked, how, report)
    if history is None or runs is None:
        remedy = tr("check the path; for recorded runs add --history DIR")
        raise UsageError(tr("{asked} is not a file or folder", asked=asked), remedy=remedy)
    named_runs = _named(asked, history, runs, report)
    if named_runs.is_empty():
        raise _no_run(asked, runs)
    enough = named_runs.filter(has_enough_rows())
    details = history.settings((enough if len(enough) else named_runs).tail(MOST_SETTINGS_RUNS)["run_id"].to_list())
    return Side(asked, named_runs, details, history.steps, report)


def _no_run(asked: str, runs: pl.DataFrame) -> UsageError:
    """The error for a side that no run of the history is of, with the releases that there are."""
    kept = ", ".join(f"release={release}" for release in runs["release"].unique().sort().to_list()[:8])
    remedy = tr("available: {names}", names=kept) if kept else tr("the history is empty; record runs first")
    return UsageError(tr("no recorded run matches {asked}", asked=asked), remedy=remedy)


def _named(asked: str, history: History, runs: pl.DataFrame, report: Report) -> pl.DataFrame:
    """Those that are excluded only where their ids are named. Raises UsageError where all are excluded."""
    if not is_selector(asked):
        return runs.filter(pl.col("run_id") == history.find(asked))
    evidence = select_evidence(runs, asked)
    if evidence.runs.is_empty() and len(evidence.excluded):
        problem = tr("all runs of {asked} are excluded", asked=asked)
        remedy = tr("give one by its id, or include them again with `logparse history include`")
        raise UsageError(problem, remedy=remedy)
    for note in evidence.notes:
        report(note)
    return evidence.runs


def is_of_logs(asked: str) -> bool:
    """Whether a side can be read without a history."""
    pattern = not is_selector(asked) and any(sign in asked for sign in "*?")
    return is_url(asked) or pattern or _is_there(asked)


def _is_selector_and_file(asked: str) -> bool:
    return not is_url(asked) and is_equality(asked) and _is_there(asked)


def _is_there(path: str) -> bool:
    """Whether a file or folder is called so; text that is too long for a name is none."""
    try:
        return Path(path).exists()
    except OSError:
        return False


def _of_logs(asked: str, how: RunOptions, report: Report) -> Side:
    """Each file or folder within a folder is a run; a file is one. Of a pattern each file is one, ranks together."""
    if is_url(asked):
        parts = [[part] for part in entries(asked)]
    elif _is_there(asked):
        parts = [[part] for part in _entries(Path(asked))]
    else:
        parts = [list(files) for _, files in named_runs([asked], each=True)]
    records = {record.run_id: record for record in _records(parts, how, report)}
    if not records:
        problem = tr("no log in the folder {path}", path=shown(asked))
        raise NoStepLineError(problem, remedy=tr("give the folder of the logs"))
    frame = pl.concat(r.summary.with_columns(release=pl.lit(None, pl.String)) for r in records.values())
    return Side(shown(asked), frame, frame, lambda run_id: records[run_id].steps, report)


def _entries(path: Path) -> list[str]:
    inside = (p for p in path.iterdir() if not p.name.startswith(".")) if path.is_dir() else [path]
    return [str(p) for p in sorted(inside)]


def _records(runs: Sequence[Sequence[str]], how: RunOptions, report: Report) -> Iterator[RunRecord]:
    """The run of each list of files; what lies among others and is no log is left out."""
    for files in runs:
        try:
            yield record_logs(files, how, Marks())
        except SeveralRunsError as error:
            # A side has no --each.
            without_each([error])
            raise
        except NoStepLineError:
            if len(runs) == 1:
                raise
            report(info("log_left_out", path=shown(files[0])))
