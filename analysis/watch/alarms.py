"""The alarms, as data: a code, how urgent it is, and the rule that finds it in a run at one moment.

Comes in: a run with what the watcher saw of it. Goes out: an ``Alarm`` for each rule whose condition holds. A rule
reads figures of the Run and compares them with a limit; when an alarm is news is for ``state`` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from analysis.watch.alarm_limits import Limits
from analysis.watch.moment import Moment
from analysis.watch.of_pace import (
    below_history,
    below_plan,
    below_published,
    hangs,
    is_slow,
    misses_target,
    rank_is_slow,
    rank_lags,
    waits_to_start,
)
from analysis.watch.of_process import (
    ended,
    fields_of_ending,
    runs_out_of_memory,
    save_is_late,
    save_is_slow,
    starts_again_and_again,
)
from analysis.watch.of_values import is_nan, loss_is_flat, loss_spikes, scale_falls, updates_are_skipped
from analysis.watch.watched import Watched
from logparse.errors import StrictError
from logparse.findings import Note, Origin
from logparse.light_dataclass import dataclass

AlarmLevel = Literal["critical", "warning"]
# What a rule finds: fields of the sentence, one of them ``origin``, the line that shows it.
Finding = Mapping[str, Any]
Rule = Callable[[Watched], Finding | None]


@dataclass(frozen=True)
class Alarm:
    """One condition of a run that a person on duty must know.

    ``fields`` are its figures, ``origin`` is the line that shows it, ``since`` when it began, in seconds of the
    watcher's clock.
    """

    code: str
    level: AlarmLevel
    run: str
    fields: Mapping[str, Any]
    origin: Origin | None
    since: float

    @property
    def note(self) -> Note:
        """Code and fields, for the words."""
        return Note(self.code, "warning", self.fields)


@dataclass(frozen=True)
class Kind:
    """One kind of alarm; without a ``rule`` it is of a log of which no run can be built."""

    level: AlarmLevel
    rule: Rule | None = None


KINDS: Mapping[str, Kind] = {
    "ending": Kind("critical", ended),
    "refused": Kind("critical"),
    "restarts": Kind("critical", starts_again_and_again),
    "hang": Kind("critical", hangs),
    "startup": Kind("critical", waits_to_start),
    "nan": Kind("critical", is_nan),
    "rank": Kind("critical", rank_lags),
    "rank_slow": Kind("warning", rank_is_slow),
    "memory": Kind("warning", runs_out_of_memory),
    "save_late": Kind("warning", save_is_late),
    "save_slow": Kind("warning", save_is_slow),
    "spike": Kind("warning", loss_spikes),
    "flat": Kind("warning", loss_is_flat),
    "skipped": Kind("warning", updates_are_skipped),
    "scale": Kind("warning", scale_falls),
    "slow": Kind("warning", is_slow),
    "target": Kind("warning", misses_target),
    "plan": Kind("warning", below_plan),
    "history": Kind("warning", below_history),
    "published": Kind("warning", below_published),
}
# A run that ended has no other alarm of what it does now.
OF_RUNNING = ("hang", "startup", "rank", "rank_slow", "slow", "save_late", "save_slow", "memory")


def find_alarms(watched: Watched) -> Iterator[Alarm]:
    """Every alarm whose condition holds, the most urgent first."""
    for code, kind in KINDS.items():
        rule = None if watched.over and code in OF_RUNNING else kind.rule
        finding = None if rule is None else rule(watched)
        if finding is not None:
            fields = dict(finding)
            origin = fields.pop("origin", None)
            yield Alarm(code, kind.level, watched.run.name, fields, origin, watched.moment.at)


def alarms_before_steps(name: str, moment: Moment, waited: float, limits: Limits) -> Iterator[Alarm]:
    """The alarms of a log without a run: it failed, started again and again, or takes longer than a start does.

    Or --strict refuses it.
    """
    ending, at = moment.ending, moment.at
    finding = None if ending is None else fields_of_ending(ending)
    if isinstance(moment.refusal, StrictError):
        yield Alarm("refused", "critical", name, {}, None, at)
    elif ending is not None and finding is not None:
        origin = finding.pop("origin")
        yield Alarm("ending", "critical", name, finding, origin, at)
        if ending.attempts_in_log >= limits.restarts:
            yield Alarm("restarts", "critical", name, {"n": ending.attempts_in_log, "step": 0}, origin, at)
    elif waited > 60 * limits.startup_minutes:
        yield Alarm("startup", "critical", name, {"waited": waited, "limit": 60 * limits.startup_minutes}, None, at)
