"""The first screen of a run on the page: what the terminal prints, with pictures."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.present.parts import Bar, Part, ScreenRows, Sentence, Sentences, Table
from analysis.present.views.analyze import list_notes
from analysis.present.views.ending import ending_parts, headline
from analysis.present.views.overheads import overheads_tables
from analysis.present.views.requirements import required_sentences
from analysis.present.views.warnings import SHOWN, warning_sentences
from analysis.report.answer import Card, cards, gauge, other_rows
from analysis.report.time_breakdown import Segment, time_breakdown_bar
from analysis.run.run import Run
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Answer:
    """The first screen of a run. ``warnings`` change its numbers: some are shown, the others and ``notes`` folded.

    ``ended`` is how it ended in a sentence, ``ending`` is why; empty unless it failed.
    """

    run: Run
    ended: str
    ending: Sequence[Part]
    cards: Sequence[Card]
    bar: Bar | None
    required: Sentences
    warnings: Sentences
    others: Sentences
    notes: Sentences
    time: Sequence[Segment]
    overheads: Sequence[Table | Sentence]
    rows: ScreenRows

    @property
    def complete(self) -> bool:
        """Whether every figure of the headline is known."""
        return all(card.known for card in self.cards)


def answer_of(run: Run, first: Run, price: float | None = None) -> Answer:
    """The first screen of ``run`` next to that of the first run; ``price`` is that of a device-hour."""
    warnings = warning_sentences(run)
    ending = run.log.ending
    infos = (note for note in run.notes if note.level != "warning")
    return Answer(
        run,
        headline(ending) if ending and ending.state != "unknown" else "",
        ending_parts(ending, with_files=True) if ending and ending.failed else [],
        cards(run, first),
        gauge(run),
        Sentences(required_sentences(run)),
        Sentences(warnings[:SHOWN]),
        Sentences(warnings[SHOWN:]),
        list_notes(infos, run.log.sources),
        time_breakdown_bar(run),
        list(overheads_tables(run, price)),
        ScreenRows(other_rows(run)),
    )
