"""What a run lost: the time outside its steps, and apart from that the work inside a step that trains nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from analysis.present.numbers import percent, three
from analysis.present.parts import Cell, Sentence, Table
from analysis.present.words import say, word
from analysis.present.words.forms import span
from analysis.run.run import Run
from analysis.run.useful.overheads import PUBLISHED, SAVES, SAVES_WITH_FAILURES, Overhead
from analysis.run.useful.time_breakdown import USEFUL
from logparse.language import tr

# On the first screen: overheads of at least this share, and so many of them.
LEAST_SHARE, MOST_NAMED = 0.01, 4


def outside_steps(run: Run) -> list[Overhead]:
    """The overheads between and around the steps, the largest first."""
    return [overhead for overhead in run.overheads if not overhead.in_steps]


def inside_steps(run: Run) -> list[Overhead]:
    """Recomputation and the pipeline bubble, the larger first; their shares are of a step."""
    useful: Any = run.time_breakdown.filter(part=USEFUL)["share"].sum()
    inside = [overhead for overhead in run.overheads if overhead.in_steps and overhead.cause != PUBLISHED]
    return [replace(overhead, share=overhead.share / useful) for overhead in inside]


def named_overheads(overheads: Sequence[Overhead]) -> list[str]:
    """The largest of ``overheads``, each with its share."""
    large = [overhead for overhead in overheads if overhead.share >= LEAST_SHARE][:MOST_NAMED]
    return [f"{word('overheads', overhead.name)} {percent(overhead.share)}" for overhead in large]


def advice(run: Run) -> str:
    """What would reduce the largest overhead that can be, without how often the run fails; empty where nothing can."""
    notes = (overhead.advice for overhead in outside_steps(run))
    note = next((note for note in notes if note and "useful" in note.fields), None)
    if note is None:
        return ""
    return say(replace(note, code=SAVES) if note.code == SAVES_WITH_FAILURES else note)


def overheads_tables(run: Run, price: float | None = None, advised: bool = True) -> Iterator[Table | Sentence]:
    """The time outside the steps, the work inside a step, and the gap to the best known rate, which is neither.

    ``price`` of a device-hour adds the cost of each overhead. Without ``advised`` the advice is in sentences below a
    table, as a terminal has no room for another column.
    """
    if outside := outside_steps(run):
        yield from _with_advice(_table(outside, tr("overhead"), tr("goodput without it"), price), advised)
    if inside := inside_steps(run):
        yield from _with_advice(_table(inside, tr("inside a step"), tr("tokens/s/p without it"), price), advised)
    yield from (_gap(overhead, run) for overhead in run.overheads if overhead.cause == PUBLISHED)


def _with_advice(table: Table, advised: bool) -> Iterator[Table | Sentence]:
    """The table as it is, or without its last column and then its cells as sentences."""
    if advised and any(row[-1].text for row in table.cells):
        yield table
        return
    yield Table(table.headings[:-1], [row[:-1] for row in table.cells], headed=True)
    yield from (
        Sentence(tr("{name}: {text}", name=row[0].text, text=row[-1].text)) for row in table.cells if row[-1].text
    )


def _gap(overhead: Overhead, run: Run) -> Sentence:
    """How far the rate is below the best known, and whose that is."""
    best = min(run.expectations.published.matches, key=lambda match: match.share)
    return Sentence(
        tr(
            "{gap}: {share} ({rate} tokens/s/p, {source})",
            gap=word("overheads", overhead.cause),
            share=percent(1 - best.share),
            rate=three(best.row.tokens_per_second_per_device or 0.0),
            source=say(overhead.advice) if overhead.advice else best.row.name,
        )
    )


def _table(overheads: Sequence[Overhead], name: str, without: str, price: float | None) -> Table:
    costs = () if price is None else (tr("cost"),)
    headings = (name, tr("share"), tr("time"), tr("device-hours"), *costs, without, tr("advice"))
    most = overheads[0].share
    rows = [_row(overhead, price, most) for overhead in overheads]
    return Table(headings, rows, prose={len(headings) - 1}, headed=True)


def _row(overhead: Overhead, price: float | None, most: float) -> tuple[Cell | str, ...]:
    hours = overhead.device_hours
    costs = () if price is None else (_amount(hours and hours * price),)
    share = Cell(percent(overhead.share), bar=overhead.share / most)
    would = (
        percent(overhead.useful_without)
        if overhead.useful_without is not None
        else three(overhead.rate_without)
        if overhead.rate_without is not None
        else "-"
    )
    text = say(overhead.advice) if overhead.advice else ""
    return (word("overheads", overhead.name), share, span(overhead.seconds), _amount(hours), *costs, would, text)


def _amount(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
