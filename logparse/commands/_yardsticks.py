"""A run beside what it should have been: its own plan, and what others published.

Comes in: an analysed run and what was read with it. Goes out: both comparisons. Nothing is computed or printed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from analysis.baselines import Baseline
from analysis.matches import Comparison, compare_run
from analysis.plan import Plan, plan_against
from analysis.run import Analysis
from logparse.run_context import RunContext


@dataclass(frozen=True)
class Yardsticks:
    """A run against its plan and against published rates."""

    plan: Plan
    published: Comparison

    @property
    def sentences(self) -> tuple[str, ...]:
        """Both in words."""
        return (*self.plan.sentences, *self.published.sentences)


def measure_against(
    analysis: Analysis,
    context: RunContext,
    records: Mapping[str, pl.DataFrame],
    rows: Sequence[Baseline],
    baseline: str | None = None,
) -> Yardsticks:
    """Compare a run with its plan and with ``rows``, or with the row called ``baseline`` alone.

    Raises UsageError where no row goes by that name, or it publishes no tokens/s/p.
    """
    how = analysis.computation
    rate = analysis.value("tokens_per_second_per_device")
    compared = compare_run(rate, how.shape, how.world_size, context.get("precision"), rows, baseline)
    return Yardsticks(plan_against(analysis, context, records), compared)


def yardstick_document(found: Yardsticks) -> dict[str, Any]:
    """``planned`` and ``published`` of a run's document; rows of published rates go by their names."""
    plan, compared = found.plan, found.published
    return {
        "planned": {
            "rows": [asdict(row) for row in plan.rows],
            "gap": [asdict(part) for part in plan.gap],
            "mfu_ceiling": plan.mfu_ceiling,
            "assumed": list(plan.assumed),
            "sentences": list(plan.sentences),
        },
        "published": {
            "matches": [
                {"name": match.row.name, "share": match.share, "sentence": match.sentence} for match in compared.matches
            ],
            "nearest": [row.name for row in compared.nearest],
            "sentences": list(compared.sentences),
        },
    }
