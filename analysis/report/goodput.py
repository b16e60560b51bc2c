"""Goodput metrics in a table: a column for each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.present.parts import Cell, Table
from analysis.present.words.forms import second, span
from analysis.report.shown_numbers import number, percent
from analysis.run.run import Run
from analysis.run.useful.goodput import TYPES, Stretch
from logparse.language import msg, tr

# What the types of the library contain, whose names stay for those who know them.
BADPUT = {
    "PROGRAM_STARTUP": msg("start-up and warm-up"),
    "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME": msg("checkpoint saves"),
    "WASTED_PROGRESS_FROM_DISRUPTION": msg("repeated steps"),
    "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": msg("restarts"),
    "CUSTOM_BADPUT_EVENTS": msg("evaluation"),
    "OTHER": msg("stalls and others"),
}


def goodput_table(runs: Sequence[Run]) -> Table:
    """ETTR, interruptions and lost time, then badput by the names of Google's goodput library."""
    columns = [dict(_figures(run)) for run in runs]
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [[Cell(name), *(column.get(name, Cell("–")) for column in columns)] for name in names]
    heads = [run.name for run in runs] if len(runs) > 1 else [tr("figure")]
    return Table(["", *heads], rows, tr("Goodput metrics"))


def _figures(run: Run) -> Iterator[tuple[str, Cell]]:
    reliability = run.analysis.reliability
    yield tr("ETTR (productive time / wall clock)"), Cell(percent(reliability.ettr))
    hour = reliability.worst_hour
    yield tr("ETTR of the least productive hour"), Cell(percent(hour.share), _from(hour)) if hour else Cell("–")
    yield tr("interruptions"), Cell(number(reliability.interruptions, 0))
    yield tr("announced stops"), Cell(number(reliability.planned_stops, 0))
    between = "–" if reliability.seconds_between is None else span(reliability.seconds_between)
    if reliability.seconds_between is not None and not reliability.interruptions:
        between = tr("at least {time}", time=between)
    yield tr("mean time between interruptions"), Cell(between)
    yield tr("steps lost"), Cell(number(reliability.lost_steps, 0))
    dead = reliability.longest_dead
    yield tr("longest time without a step"), Cell(span(dead.seconds), _from(dead)) if dead else Cell("–")
    badput = {kind: (seconds, share) for _, kind, seconds, share in reliability.badput.rows()}
    for kind in TYPES:
        if kind in badput:
            seconds, share = badput[kind]
            name = tr("{what} ({code})", what=tr(BADPUT[kind]), code=kind)
            yield name, Cell(percent(share), span(seconds))


def _from(stretch: Stretch) -> str:
    return tr("from {begins} on", begins=second(stretch.begins)) if stretch.begins else ""
