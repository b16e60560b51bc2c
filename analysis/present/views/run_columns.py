"""The columns of the table of runs, and the values that all runs share, which are printed once above it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from analysis.batch.peers import TOKENS
from analysis.hardware.devices import BY_HAND
from analysis.metrics import BY_COLUMN
from analysis.present.metric_names import named
from analysis.present.numbers import percent
from analysis.present.parts import Sentence
from analysis.present.views.ending import ending_word
from analysis.present.words import word
from analysis.present.words.forms import big, devices
from logparse.language import tr
from logparse.light_dataclass import dataclass, replace

Row = Mapping[str, Any]
UNKNOWN = "-"
WALL_CLOCK, WITH_STALLS = f"wall_clock_{TOKENS}", f"with_stalls_{TOKENS}"
# The columns that a narrow terminal leaves out, the first of them first.
SPARE = (WALL_CLOCK, "hfu", "device", "world_size", WITH_STALLS, "model", "largest_overhead_ratio", "steps")
ENDING = "ending_state"


@dataclass(frozen=True)
class Shown:
    """A column of the table of runs: ``column`` of the frame, its heading over at most two lines, the text of a row.

    Where it is the same for all runs, ``shared`` is its text above the table.
    """

    column: str
    heading: str
    text: Callable[[Row], str]
    prose: bool = False
    shared: Callable[[Row], str] | None = None


def shown_columns() -> tuple[Shown, ...]:
    """The columns of the table of runs after the run's name, in the language in use."""
    tokens = named(BY_COLUMN[TOKENS])
    return (
        Shown("model", tr("model"), _model, prose=True, shared=_model),
        Shown("device", tr("device"), _device, prose=True, shared=_peak_of),
        Shown("world_size", tr("devices"), _devices, shared=lambda row: devices(_devices(row))),
        Shown(ENDING, tr("ending"), ending_of, prose=True, shared=ending_of),
        Shown("steps", tr("steps"), _steps, shared=lambda row: tr("{n} steps", n=_steps(row))),
        figure(WALL_CLOCK, f"{tokens}\n{word('rates', 'wall_clock')}"),
        figure(WITH_STALLS, f"{tokens}\n{word('rates', 'with_stalls')}"),
        figure(TOKENS, f"{tokens}\n{word('rates', 'steady')}"),
        figure("mfu", _in_two_lines("mfu")),
        figure("hfu", _in_two_lines("hfu")),
        Shown("largest_overhead_ratio", tr("largest overhead"), overhead_of, prose=True),
        figure("goodput", _in_two_lines("goodput")),
        Shown("warnings", "!", lambda row: f"{row['warnings'] or ''}", shared=_warnings),
    )


def figure(column: str, heading: str) -> Shown:
    """A metric of the registry, in as few digits as distinguish runs."""
    metric = BY_COLUMN[column.removeprefix("with_stalls_").removeprefix("wall_clock_")]
    short = replace(metric, digits=max(0, metric.digits - 1))
    return Shown(column, heading, lambda row: short.text(row[column]))


def _in_two_lines(column: str) -> str:
    return "\n".join(named(BY_COLUMN[column]).split(" ", 1))


def _steps(row: Row) -> str:
    return f"{row['steps']:,}"


def ending_of(row: Row) -> str:
    """How a run ended, and what failed."""
    has_ended = row["ending_state"] not in (None, "unknown")
    return ending_word(row["ending_state"], row["ending_family"]) if has_ended else UNKNOWN


def _warnings(row: Row) -> str:
    return tr("1 warning each") if row["warnings"] == 1 else tr("{n} warnings each", n=row["warnings"])


def _model(row: Row) -> str:
    return row["model"] or (UNKNOWN if row["parameters"] is None else big(row["parameters"]))


def _device(row: Row) -> str:
    if row["device"] == BY_HAND:
        return f"{row['peak_tflops_per_second']:g} TFLOP/s"
    return tr(row["device"]) if row["device"] else UNKNOWN


def _peak_of(row: Row) -> str:
    """Not that all runs are on it: --hw is the same for all, and a log may name another device."""
    return _device(row) if row["device"] == BY_HAND else tr("peak of {device}", device=_device(row))


def _devices(row: Row) -> str:
    return UNKNOWN if row["world_size"] is None else f"{row['world_size']:,}"


def overhead_of(row: Row) -> str:
    """What cost most, and its share of the time."""
    if row["largest_overhead"] is None:
        return UNKNOWN
    return f"{percent(row['largest_overhead_ratio'])} {word('overheads', row['largest_overhead'])}"


def shared_columns(runs: pl.DataFrame, columns: Sequence[Shown]) -> tuple[list[Sentence], list[Shown]]:
    """A sentence with the values that all ``runs`` share, and the other columns; those without a value are left out."""
    rows = runs.to_dicts()
    texts = {column: {column.text(row) for row in rows} for column in columns}
    filled = [column for column in columns if texts[column] - {UNKNOWN, ""}]
    shared = {
        column: column.shared(rows[0]) for column in filled if column.shared and len(rows) > 1 == len(texts[column])
    }
    sentences = [Sentence(tr("all runs: {words}", words=tr(", ").join(shared.values())))] if shared else []
    return sentences, [column for column in filled if column not in shared]
