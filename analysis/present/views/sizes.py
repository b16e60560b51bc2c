"""Batches, sequence lengths and numbers of devices of one run: a line of the first screen for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.present.numbers import step_time, three
from analysis.present.parts import ScreenRow
from analysis.present.views.printed_rates import PRINTED_RATES
from analysis.run.rates.sizes import BATCH, CODES, DEVICES, LENGTH, SAMPLES, TIME, TOKENS
from analysis.run.run import Run
from logparse.language import msg, tr

TEXTS = {
    BATCH: msg("at a batch of {n}"),
    LENGTH: msg("at a sequence length of {n}"),
    DEVICES: msg("on {n} devices"),
}
# A ramp has many sizes; those that ran longest are shown.
LINES_SHOWN = 4


def size_shown(run: Run) -> list[str]:
    """The size that the steady rate is of; empty where sizes do not differ."""
    sizes = run.analysis.sizes
    return _names(run, sizes.row(0, named=True)) if len(sizes) else []


def _names(run: Run, size: Mapping[str, Any]) -> list[str]:
    codes = {note.code for note in run.notes}
    return [tr(text, n=f"{size[name]:,}") for name, text in TEXTS.items() if CODES[name][0] in codes]


def rows_of_sizes(run: Run) -> list[ScreenRow]:
    """The time and the rate of each other size, the longest run first."""
    others = list(run.analysis.sizes[1:].iter_rows(named=True))
    rows = [ScreenRow("", step_time(size[TIME]), [*_names(run, size), *_rate(size)]) for size in others[:LINES_SHOWN]]
    if more := len(others) - len(rows):
        rows.append(ScreenRow("", "", [tr("sizes that ran shorter: {n}", n=more)]))
    return rows


def _rate(size: Mapping[str, Any]) -> list[str]:
    """The throughput of a size per device; where devices or batch are unknown, how many steps it is of."""
    for name, text in ((TOKENS, msg("{n} tokens/s/p")), (SAMPLES, msg("{n} samples/s/p"))):
        if size[name] is not None:
            return [tr(text, n=three(size[name]))]
    if size[BATCH]:
        return [tr(PRINTED_RATES["samples_per_second"], n=three(size[BATCH] * 1000 / size[TIME]))]
    return []
