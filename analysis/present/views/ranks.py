"""What people are shown of ranks that print times of their own: how far apart they are, and the slowest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from analysis.metrics import HEADLINE
from analysis.present.numbers import percent
from analysis.present.parts import Heading, Part, Sentence, Table
from analysis.run.ranks.rank_comparison import rank_names
from logparse.language import tr

# Ranks that are shown.
SLOWEST = 5


def slowest_ranks(ranks: pl.DataFrame) -> Iterator[Part]:
    """The slowest ranks, where ranks print times of their own."""
    if len(ranks):
        yield Heading(tr("ranks"))
        yield Sentence(spread_of_ranks(ranks))
        yield table_of_ranks(ranks)


def spread_of_ranks(ranks: pl.DataFrame) -> str:
    """How far apart ranks are, which come the slowest first."""
    median, times = HEADLINE[0].text, ranks["step_time_ms"]
    least, greatest = (median(float(time)) for time in (times[-1], times[0]))
    return tr("{n} ranks take {least} to {greatest} ms/step", n=f"{len(ranks):,}", least=least, greatest=greatest)


def table_of_ranks(ranks: pl.DataFrame) -> Table:
    """The slowest of them."""
    median = HEADLINE[0].text
    rows = [
        (name, _known(row["node"]), median(row["step_time_ms"]), median(row["step_time_p90_ms"]), *_shares(row))
        for name, row in zip(rank_names(ranks), ranks.head(SLOWEST).iter_rows(named=True), strict=False)
    ]
    heads = (tr("slowest ranks"), tr("node"), tr("ms/step"), "p90", tr("share slowest"), tr("share 2 % late"))
    return Table(heads, rows)


def _known(number: int | None) -> str:
    return "-" if number is None else str(number)


def _shares(row: dict[str, Any]) -> tuple[str, str]:
    """The share of the steps in which a rank is the slowest, and the share in which it is late."""
    return percent(row["slowest_share"]), percent(row["behind_share"])
