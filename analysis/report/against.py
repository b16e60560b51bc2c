"""A run against its plan, the gap to the peak and published rates, as bars."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.present.parts import Cell, Table
from analysis.present.words import word
from analysis.present.words.forms import of_peak
from analysis.published.match import Against
from analysis.report.shown_numbers import NONE, difference, lasted, number, percent
from analysis.run.checks.memory_comparison import Planned
from analysis.run.run import Run
from logparse.language import tr

# Published rows that are drawn with a run: the first are the most similar.
MOST_DRAWN = 12


def against_tables(run: Run) -> Iterator[Table]:
    """A table for each of the three that is known."""
    plan, compared = run.expectations.plan, run.expectations.published
    planned = [row for row in plan.rows if row.planned is not None and row.measured is not None]
    if planned:
        yield _plan_table(planned)
    if plan.gap:
        gap = sorted(plan.gap, key=lambda part: -part.share)
        rows: list[list[Cell | str]] = [
            [word("gap", part.part), Cell(of_peak(part.share), bar=part.share)] for part in gap
        ]
        yield Table(["", tr("share of the peak")], rows, tr("Peak breakdown of steady steps"))
    if compared.matches or compared.differing:
        yield _published_table(run, (*compared.matches, *compared.differing)[:MOST_DRAWN])


def _plan_table(planned: list[Planned]) -> Table:
    rows: list[list[Cell | str]] = []
    for row in planned:
        most = max(row.measured or 0.0, row.planned_to or row.planned or 0.0) or 1.0
        ends = list(dict.fromkeys((row.planned, row.planned_to or row.planned)))
        longest = max(end or 0.0 for end in ends) / most
        rows += [
            [word("planned", row.name), tr("planned"), Cell(_range(row, ends), bar=longest)],
            ["", tr("measured"), Cell(_amount(row, row.measured), bar=(row.measured or 0.0) / most)],
        ]
    return Table(["", "", tr("amount")], rows, tr("Compared with the plan"), prose={1})


def _range(row: Planned, ends: list[float | None]) -> str:
    if len(ends) == 1:
        return _amount(row, ends[0])
    return tr("{low} to {high}", low=_amount(row, ends[0]), high=_amount(row, ends[1]))


def _amount(row: Planned, value: float | None) -> str:
    if value is None:
        return NONE
    if row.unit == "s":
        return lasted(value)
    return percent(value) if row.unit == "ratio" else tr("{gb} GB", gb=number(value / 1e9, 2))


def _published_table(run: Run, published_rows: tuple[Against, ...]) -> Table:
    """This run among published rates, the fastest first."""
    rate = run.analysis.value("tokens_per_second_per_device") or 0.0
    rates = [(against.row.tokens_per_second_per_device or 0.0, against) for against in published_rows]
    most = max(rate, *(published for published, _ in rates)) or 1.0
    drawn = [(published, _published(published, most, against, rate)) for published, against in rates]
    this_run = [Cell(run.name, mark="sum"), Cell(number(rate), mark="sum", bar=rate / most), Cell("")]
    rows = [row for _, row in sorted([*drawn, (rate, this_run)], key=lambda pair: -pair[0])]
    head = ["", tr("tokens/s/p"), tr("difference of this run")]
    return Table(head, rows, tr("Compared with published rates"))


def _published(rate: float, most: float, against: Against, own: float) -> list[Cell]:
    row = against.row
    other = tr("different: {names}", names=tr(", ").join(against.differs_in)) if against.differs_in else ""
    publisher = tr("; ").join(part for part in (row.publisher, other) if part)
    return [Cell(row.name, publisher), Cell(number(rate), bar=rate / most), Cell(difference(own, rate))]
