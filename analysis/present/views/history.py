"""What people are shown of the recorded runs, and of the changes to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from analysis.batch.run_table import hours_by_ending
from analysis.compare.job_name import model_and_devices
from analysis.compare.verdict import Verdict
from analysis.history.events import Event, Kind
from analysis.history.kept_endings import read_ending
from analysis.history.store import Swept
from analysis.present.as_json import origin_text, plain
from analysis.present.console import folded_to
from analysis.present.parts import Part, Sentence, Table
from analysis.present.views.remarks import remark_sentences, remarks
from analysis.present.views.run_columns import ending_of
from analysis.present.views.runs import ending_hours
from analysis.present.words import word
from analysis.present.words.forms import counted
from logparse.findings import Origin
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION

# Columns of text that are folded, so that a terminal of 100 columns holds all.
RELEASE, MODEL, DEVICES, LABELS, ENDING = 12, 10, 12, 8, 11


def compose_runs(runs: pl.DataFrame, verdicts: Mapping[str, Verdict]) -> list[Part]:
    """A row for each run with its verdict, from ``verdicts`` by run id; then the remarks on the runs."""
    texts = (
        tr("run"),
        tr("release"),
        tr("begun"),
        tr("model"),
        tr("devices"),
        tr("labels"),
        tr("ending"),
        tr("verdict"),
    )
    rows = tuple(_row(run, verdicts.get(run["run_id"])) for run in runs.iter_rows(named=True))
    table = Table((*texts, tr("ms/step"), "tokens/s/p"), rows, prose=range(1, len(texts)))
    sentences = remark_sentences(runs["run_id"], remarks(runs))
    return [Sentence(counted(len(runs))), *([table] if rows else []), *ending_hours(runs), *sentences]


def event_text(kind: Kind, runs: int) -> str:
    """The event of ``kind`` on so many runs."""
    return {
        "exclude": tr("{runs} excluded", runs=counted(runs)),
        "include": tr("{runs} included", runs=counted(runs)),
        "annotate": tr("{runs} annotated", runs=counted(runs)),
        "label": tr("{runs} labelled", runs=counted(runs)),
        "accept": tr("{runs} accepted", runs=counted(runs)),
    }[kind]


def removed(runs: int) -> str:
    """What ``history remove`` did."""
    return tr("{runs} removed", runs=counted(runs))


def compacted(swept: Swept) -> str:
    """What ``history compact`` did."""
    return tr(
        "{runs} in one file; files of killed processes removed: {removed}",
        runs=counted(swept.runs),
        removed=swept.removed,
    )


def _row(run: Mapping[str, Any], verdict: Verdict | None) -> tuple[str, ...]:
    model, devices = model_and_devices(run)
    labels = ", ".join(f"{pair['name']}={pair['value']}" for pair in run["labels"] or ())
    return (
        run["run_id"][:12],
        folded_to(run["release"], RELEASE),
        _text(run["begun_at"] or run["recorded_at"], "%Y-%m-%d"),
        folded_to(model, MODEL),
        folded_to(devices, DEVICES),
        folded_to(labels, LABELS),
        folded_to(ending_of(run), ENDING),
        _verdict(verdict),
        _text(run["steady_step_time_ms"], ",.1f"),
        _text(run["tokens_per_second_per_device"], ",.1f"),
    )


def _verdict(verdict: Verdict | None) -> str:
    """In a word: most runs are as those before them."""
    if verdict in (None, "insufficient data"):
        return "-"
    return tr("ok") if verdict == "no regression" else word("verdicts", verdict)


def _text(value: Any, how: str = "") -> str:
    """A value that an old store does not have is a dash."""
    return "-" if value is None else format(value, how)


def document(runs: pl.DataFrame, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """The whole document, the same in every language; ``verdicts`` are by run id."""
    rows = [row | {"verdict": verdicts.get(row["run_id"])} for row in run_documents(runs)]
    return {"schema_version": SCHEMA_VERSION, "runs": rows, "device_hours_by_ending": hours_by_ending(runs).to_dicts()}


def run_documents(runs: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON can hold them: clocks as text, NaN as null, pairs as objects by name."""
    floats = [name for name, dtype in runs.schema.items() if dtype == pl.Float64]
    finite = runs.with_columns(
        pl.when(pl.col(floats).is_finite()).then(pl.col(floats)), pl.col(pl.Datetime).dt.to_string("iso")
    )
    return [{key: _value(key, value, row) for key, value in row.items()} for row in finite.to_dicts()]


def event_documents(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The events of runs, the oldest first."""
    return [{**plain(event), "labels": dict(event.labels)} for event in events]


def _value(key: str, value: Any, run: Mapping[str, Any]) -> Any:
    if key == "ending":
        return plain(read_ending(run))
    if key == "acceptances":
        return plain(value or ())
    return {pair["name"]: _pair(pair) for pair in value} if isinstance(value, list) else value


def _pair(pair: dict[str, Any]) -> Any:
    """The value of a pair, or its value and origin, or its origin."""
    if "origin" not in pair:
        return pair["value"]
    value = {"value": pair["value"]} if "value" in pair else {}
    origin = pair["origin"]
    return {**value, "origin": origin_text(Origin(**origin)) if origin else None, "from": origin}
