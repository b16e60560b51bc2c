"""What was said of recorded runs, as sentences to stand wherever a run is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from analysis.history.events import Acceptance
from analysis.history.said import SAID, acceptances_of
from analysis.metrics import JUDGED
from analysis.present.parts import Sentence, Sentences
from logparse.language import some, tr


def remarks(runs: pl.DataFrame) -> dict[str, list[str]]:
    """By run id what was said of it: why it is excluded, what it is annotated with, what is accepted.

    Runs of logs have nothing said of them.
    """
    if not set(SAID) <= set(runs.columns):
        return {}
    accepted = acceptances_of(runs)
    rows = runs.filter(pl.any_horizontal(pl.col(*SAID).is_not_null())).iter_rows(named=True)
    return {row["run_id"]: list(_said(row, accepted.get(row["run_id"], ()))) for row in rows}


def remark_sentences(run_ids: Iterable[str], said: Mapping[str, list[str]]) -> Iterator[Sentences]:
    """A sentence for each remark on these runs, with all of which it is."""
    by_text: dict[str, list[str]] = {}
    for run_id in run_ids:
        for text in said.get(run_id, ()):
            by_text.setdefault(text, []).append(run_id[:12])
    if by_text:
        yield Sentences([Sentence(_of(ids, text), "info") for text, ids in by_text.items()])


def _of(run_ids: list[str], text: str) -> str:
    if len(run_ids) == 1:
        return tr("run {id}: {text}", id=run_ids[0], text=text)
    return tr("runs {ids}: {text}", ids=some(run_ids), text=text)


def _said(row: Mapping[str, Any], accepted: Iterable[Acceptance]) -> Iterator[str]:
    if row["excluded"] is not None:
        yield tr("excluded: {reason}", reason=row["excluded"])
    if row["annotation"] is not None:
        yield row["annotation"]
    yield from map(_acceptance, accepted)


def _acceptance(one: Acceptance) -> str:
    metric = tr(JUDGED[one.metric].label) if one.metric in JUDGED else one.metric
    ends = [
        *([one.issue] if one.issue else []),
        *([tr("until {end}", end=one.until)] if one.until else []),
        *([tr("until release {end}", end=one.until_release)] if one.until_release else []),
    ]
    reason = f"{one.reason} ({tr(', ').join(ends)})" if ends else one.reason
    if metric:
        return tr("{metric} is accepted: {reason}", metric=metric, reason=reason)
    return tr("accepted: {reason}", reason=reason)
