"""The remarks on recorded runs, as sentences for every screen that shows a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from analysis.history.annotations import ANNOTATION_COLUMNS, acceptances_of
from analysis.history.events import Acceptance
from analysis.metrics import JUDGED
from analysis.present.parts import Sentence, Sentences
from logparse.language import some, tr


def remarks(runs: pl.DataFrame) -> dict[str, list[str]]:
    """The remarks by run id: why a run is excluded, its annotation, and what is accepted.

    Runs of logs have no remarks.
    """
    if not set(ANNOTATION_COLUMNS) <= set(runs.columns):
        return {}
    accepted = acceptances_of(runs)
    rows = runs.filter(pl.any_horizontal(pl.col(*ANNOTATION_COLUMNS).is_not_null())).iter_rows(named=True)
    return {row["run_id"]: list(_remarks_of(row, accepted.get(row["run_id"], ()))) for row in rows}


def remark_sentences(run_ids: Iterable[str], texts: Mapping[str, list[str]]) -> Iterator[Sentences]:
    """A sentence for each remark on these runs, with all runs that have it; ``texts`` are remarks by run id."""
    by_text: dict[str, list[str]] = {}
    for run_id in run_ids:
        for text in texts.get(run_id, ()):
            by_text.setdefault(text, []).append(run_id[:12])
    if by_text:
        yield Sentences([Sentence(_of(ids, text), "info") for text, ids in by_text.items()])


def _of(run_ids: list[str], text: str) -> str:
    if len(run_ids) == 1:
        return tr("run {id}: {text}", id=run_ids[0], text=text)
    return tr("runs {ids}: {text}", ids=some(run_ids), text=text)


def _remarks_of(row: Mapping[str, Any], accepted: Iterable[Acceptance]) -> Iterator[str]:
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
