"""The thresholds of the alarms: the table ``[watch]`` of ``logparse.toml``, each with its default."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from logparse.errors import UsageError, unknown_name
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass, fields, replace

TABLE = "watch"


@dataclass(frozen=True)
class Limits:
    """When each alarm begins. Shares are ratios, 0.08 is 8 %; ``docs/watch.md`` describes each.

    ``hang_steps``: typical times of a step line without one. ``startup_minutes`` and ``pause_minutes``: patience with a
    start, and with a first save or evaluation. ``slow_share``: of 30 lines, and twice and four times it of 10 and of 5.
    ``sigmas``: standard deviations that a pace is away from the pace before, and ``spike_sigmas`` a loss.
    ``flat_lines`` equal losses in a row are flat. ``skipped_share``: updates of the last 20 lines.
    ``scale_factor``: by which the loss scale fell within 100 lines. ``memory_share`` of the device is full, and so is
    what will be within ``memory_hours``. ``save_interval`` and ``save_time``: of the typical ones. ``restarts``: starts
    in a row without progress. ``rank_lines`` that a rank lags, and ``rank_share`` by which it is slower.
    ``clear_minutes`` without its condition end an alarm; within ``cooldown_minutes`` it is not sent again.
    """

    hang_steps: float = 3.0
    startup_minutes: float = 30.0
    pause_minutes: float = 15.0
    slow_share: float = 0.08
    sigmas: float = 6.0
    plan_share: float = 0.1
    history_share: float = 0.05
    published_share: float = 0.2
    spike_sigmas: float = 12.0
    flat_lines: float = 30.0
    skipped_share: float = 0.5
    scale_factor: float = 16.0
    memory_share: float = 0.97
    memory_hours: float = 2.0
    save_interval: float = 1.5
    save_time: float = 3.0
    restarts: float = 3.0
    rank_lines: float = 3.0
    rank_share: float = 0.1
    clear_minutes: float = 1.0
    cooldown_minutes: float = 30.0


DEFAULTS = Limits()


def read_limits(table: Mapping[str, Any]) -> Limits:
    """The limits with what ``table`` says otherwise. Raises UsageError, with the key, for what is unknown or wrong."""
    known = [one.name for one in fields(DEFAULTS)]
    for key, value in table.items():
        if key not in known:
            remedy = tr("keys of [{table}]: {names}", table=TABLE, names=", ".join(known))
            raise unknown_name(msg("key"), key, known, remedy)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            problem = tr("{name} is {value!r}", name=f"{TABLE}.{key}", value=value)
            raise UsageError(problem, remedy=tr("give a number above 0"))
    return replace(DEFAULTS, **{key: float(value) for key, value in table.items()})


def check_codes(codes: Collection[str], known: Collection[str]) -> None:
    """Raise UsageError for an alarm that does not exist."""
    for code in codes:
        if code not in known:
            raise unknown_name(msg("alarm"), code, known, tr("use one of {names}", names=", ".join(known)))
