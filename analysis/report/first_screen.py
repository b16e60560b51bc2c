"""The first screen of a run on the page: what the terminal prints, with pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.present.parts import Bar, Sentence, Sentences, Table
from analysis.present.views.analyze import list_notes
from analysis.present.views.answer import WARNINGS_SHOWN, assessment_table, list_warnings, losses_tables, summed_up
from analysis.present.views.requirements import required_sentences
from analysis.report.answer import Card, cards, gauge
from analysis.report.time_breakdown import Segment, account_bar
from analysis.run.run import Run


@dataclass(frozen=True)
class Answer:
    """The first screen of a run. ``warnings`` change its numbers: some are shown, the others and ``notes`` folded."""

    run: Run
    cards: Sequence[Card]
    bar: Bar | None
    summary: Sentence
    required: Sentences
    warnings: Sentences
    others: Sentences
    notes: Sentences
    time: Sequence[Segment]
    losses: Sequence[Table]
    assessment: Table

    @property
    def complete(self) -> bool:
        """Whether every figure of the headline is known."""
        return all(card.known for card in self.cards)


def answer_of(run: Run, first: Run, price: float | None = None) -> Answer:
    """The first screen of ``run``, each figure with that of the first run, losses at a ``price`` of a device-hour."""
    warnings = list_warnings(run)
    infos = (note for note in run.notes if note.level != "warning")
    return Answer(
        run,
        cards(run, first),
        gauge(run),
        summed_up(run),
        Sentences(required_sentences(run)),
        Sentences(warnings[:WARNINGS_SHOWN]),
        Sentences(warnings[WARNINGS_SHOWN:]),
        list_notes(infos, run.log.sources),
        account_bar(run),
        list(losses_tables(run, price)),
        assessment_table(run),
    )
