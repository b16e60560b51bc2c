"""Events about a run after it was recorded: each is an immutable file next to the summaries.

Of the events of one kind about a run the newest applies; of those with one time the one with the greatest id. So every
reader gets the same result.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Literal

import polars as pl

from analysis.history.storage import Storage, Warn, left_out_newer, read_rows
from logparse.findings import warning
from logparse.language import tr
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import asdict, astuple, dataclass, field
from logparse.schema import TEXT, TIME

Kind = Literal["exclude", "include", "annotate", "label", "accept"]

EVENT_VERSION = 1
KEY = lazy_regex(r"events/(?P<run>[0-9a-f]+)\.(?P<id>[0-9a-f]{32})\.v(?P<version>\d+)\.parquet")
# The user of an event, if not the system's user, as in CI.
USER = "LOGPARSE_USER"
_PAIR = pl.Struct({"name": pl.String, "value": pl.String})
SCHEMA = pl.Schema(
    {
        "run_id": TEXT,
        "kind": TEXT,
        "at": TIME,
        "user": TEXT,
        "text": TEXT,
        "labels": pl.List(_PAIR),
        "metric": TEXT,
        "issue": TEXT,
        "until": pl.Date(),
        "until_release": TEXT,
    }
)


@dataclass(frozen=True)
class Event:
    """``text`` is the reason or the annotation; ``at`` is UTC, ``user`` None where nobody knows.

    The rest is of ``accept``: the metric that is meant, None for all, and till when.
    """

    run_id: str
    kind: Kind
    at: datetime
    user: str | None = None
    text: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    metric: str | None = None
    issue: str | None = None
    until: date | None = None
    until_release: str | None = None

    @property
    def id(self) -> str:
        """Hash of all its fields, 32 hexadecimal digits."""
        return hashlib.sha256(json.dumps(astuple(self), default=str).encode()).hexdigest()[:32]

    @property
    def key(self) -> str:
        """Its file."""
        return f"events/{self.run_id}.{self.id}.v{EVENT_VERSION}.parquet"

    @property
    def row(self) -> pl.DataFrame:
        """Its content, as SCHEMA has it."""
        labels = [{"name": name, "value": value} for name, value in self.labels]
        return pl.DataFrame([asdict(self) | {"labels": labels}], schema=SCHEMA)


@dataclass(frozen=True)
class Acceptance:
    """What became worse at a run is known: of ``metric``, or of all where it is None.

    It holds up to and with the day ``until``, and until the release ``until_release``; for ever where both are None.
    """

    run_id: str
    metric: str | None
    reason: str
    issue: str | None
    until: date | None
    until_release: str | None
    at: datetime
    user: str | None

    def is_of(self, metric: str, day: date) -> bool:
        """Whether it is of ``metric``, a column, and its day is not over."""
        return self.metric in (None, metric) and (self.until is None or day <= self.until)


@dataclass(frozen=True)
class Annotations:
    """The state of runs after all events about them, by run id."""

    excluded: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    acceptances: Mapping[str, tuple[Acceptance, ...]] = field(default_factory=dict)


def speaker() -> str | None:
    """The user of an event: LOGPARSE_USER, else the system's user; None if it has no name, as in some containers."""
    try:
        return os.environ.get(USER, "").strip() or getpass.getuser()
    except (KeyError, OSError, ImportError):
        return None


def now() -> datetime:
    """The moment of an event."""
    return datetime.now(UTC).replace(tzinfo=None)


def read_events(storage: Storage, warn: Warn) -> list[Event]:
    """All events, the oldest first. A file that cannot be read is left out, with a note to ``warn``."""
    matches = [match for match in map(KEY.fullmatch, storage.keys("events")) if match]
    left_out_newer([match[0] for match in matches if int(match["version"]) > EVENT_VERSION], warn)
    keys = [match[0] for match in matches if int(match["version"]) == EVENT_VERSION]
    frames = read_rows(storage, warn, keys, SCHEMA)
    events = []
    for row in (row for frame in frames for row in frame.iter_rows(named=True)):
        key, pairs = row.pop("key"), row.pop("labels") or ()
        event = Event(**row, labels=tuple((pair["name"], pair["value"]) for pair in pairs))
        if event.key == key:
            events.append(event)
        else:
            warn(warning("file_left_out", path=key, reason=tr("its content differs from what was written")))
    return sorted(events, key=lambda event: (event.at, event.id))


def standing(events: Iterable[Event]) -> Annotations:
    """The annotations that result from ``events``, the oldest first."""
    excluded: dict[str, str] = {}
    annotations: dict[str, str] = {}
    labels: dict[str, dict[str, str]] = {}
    accepted: dict[str, dict[str | None, Acceptance]] = {}
    for event in events:
        text = event.text or ""
        if event.kind == "exclude":
            excluded[event.run_id] = text
        elif event.kind == "include":
            excluded.pop(event.run_id, None)
        elif event.kind == "annotate":
            annotations[event.run_id] = text
        elif event.kind == "label":
            labels[event.run_id] = relabelled(labels.get(event.run_id, {}), dict(event.labels))
        elif event.kind == "accept":
            accepted.setdefault(event.run_id, {})[event.metric] = _acceptance(event)
    annotated = {run_id: text for run_id, text in annotations.items() if text}
    acceptances = {run_id: tuple(by_metric.values()) for run_id, by_metric in accepted.items()}
    return Annotations(excluded, annotated, labels, acceptances)


def relabelled(labels: Mapping[str, str], later: Mapping[str, str]) -> dict[str, str]:
    """``labels`` with the later ones; a name is the same in any case of its letters."""
    names = {name.lower() for name in later}
    return {name: value for name, value in labels.items() if name.lower() not in names} | dict(later)


def _acceptance(event: Event) -> Acceptance:
    return Acceptance(
        run_id=event.run_id,
        metric=event.metric,
        reason=event.text or "",
        issue=event.issue,
        until=event.until,
        until_release=event.until_release,
        at=event.at,
        user=event.user,
    )
