"""From a log to a record of the history."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import polars as pl

from analysis.history.run_records import Decoded, RunIdentity, RunRecord, make_record
from analysis.history.selection import UNTYPED
from analysis.history.selector import KEY
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.run import Run
from analysis.run.title import device_without_peak
from logparse.errors import UsageError
from logparse.findings import Origin, flag
from logparse.language import tr
from logparse.light_dataclass import dataclass, field

# Events that a process prints when it starts.
STARTS = ("process starts", "training starts")


@dataclass(frozen=True)
class Marks:
    """What the user says of a run. ``versions`` beat what the log prints."""

    release: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def record_logs(logs: Sequence[str], how: RunOptions, marks: Marks, name: str | None = None) -> RunRecord:
    """One run of ``logs`` as history keeps it."""
    return keep(analyze_logs(logs, how, name), marks)


def keep(result: Run, marks: Marks) -> RunRecord:
    """What history keeps of ``result``."""
    identity = RunIdentity(
        release=marks.release,
        name=result.log.name,
        format=result.log.format.shown_name,
        framework=result.framework.name,
        framework_version=result.framework.version,
        labels=marks.labels,
        versions=_versions(result, marks),
        crashed_at=result.crashed_at,
        ending=result.log.ending,
        started_at=_started_at(result),
        device_without_peak=device_without_peak(result.notes),
    )
    decoded = Decoded(result.log.steps, result.log.settings, result.log.records["memory"])
    return make_record(result.analysis, result.context, decoded, identity)


def _started_at(result: Run) -> datetime | None:
    """The first clock of a line other than a step line, such as the header of Megatron that ends in ``datetime:``."""
    stamps = result.log.records["events"].filter(pl.col("kind").is_in(STARTS))["timestamp"].drop_nulls()
    return stamps[0] if len(stamps) else None


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
            raise UsageError(problem, remedy=tr("use another key: {key} is a column of the history", key=key))
        if key.lower() in map(str.lower, pairs):
            problem = tr("{flag} {key} is given twice", flag=flag, key=key)
            raise UsageError(problem, remedy=tr("give one value for each key"))
        pairs[key] = value
    return pairs
