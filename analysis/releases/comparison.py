"""Two sides beside each other: comparable or not, the effect on each metric, the losses, and what changed.

Comes in: the runs of two sides. Goes out: a Comparison. Nothing is printed or written here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from analysis.releases.comparable import FIELDS, Change, Field, check_fields, list_changes, refusals
from analysis.releases.selection import drop_beginnings
from analysis.releases.verdict import (
    FEWEST_ROWS,
    METRICS,
    Finding,
    Metric,
    Noise,
    Verdict,
    judge,
    noise_floor,
    worst_of,
)
from logparse.errors import UsageError
from logparse.language import msg, tr


@dataclass(frozen=True)
class Side:
    """The runs of one side, and how they were asked for.

    ``told`` are rows of some of them with all columns; ``steps`` gives the steps of a run by its id.
    """

    asked: str
    runs: pl.DataFrame
    told: pl.DataFrame
    steps: Callable[[str], pl.DataFrame]

    @property
    def releases(self) -> list[str]:
        """The releases its runs are of, where they are recorded."""
        return sorted(set(self.runs["release"].drop_nulls()))


@dataclass(frozen=True)
class LossAgreement:
    """Relative difference of the losses, median over the runs of a side, at the steps that both sides did."""

    steps: int
    largest: float
    largest_at: int
    final: float
    final_at: int


@dataclass(frozen=True)
class Comparison:
    """All that is to be said of two sides.

    ``judged`` are the columns of the metrics that the verdict is on; the other findings stand beside them. ``left_out``
    names runs that are no evidence, with the reason.
    """

    baseline: Side
    candidate: Side
    fields: tuple[Field, ...]
    findings: tuple[Finding, ...]
    judged: tuple[str, ...]
    losses: LossAgreement | None
    changes: tuple[Change, ...]
    noise: Noise | None
    threshold: float
    left_out: tuple[tuple[str, str], ...]

    @property
    def refused(self) -> list[Field]:
        """The differences that forbid a verdict."""
        return refusals(self.fields)

    @property
    def verdict(self) -> Verdict | None:
        """On all metrics that are judged; None where it is refused."""
        return None if self.refused else worst_of(f.verdict for f in self.verdicts)

    @property
    def verdicts(self) -> list[Finding]:
        """The findings on the metrics that are judged."""
        return [finding for finding in self.findings if finding.metric.column in self.judged]


def compare(
    baseline: Side,
    candidate: Side,
    metrics: Sequence[Metric],
    threshold: float,
    allowed: Sequence[str] = (),
    others: pl.DataFrame | None = None,
    beside: bool = True,
) -> Comparison:
    """Compare two sides, each of at least one run, and judge ``metrics``.

    ``others`` are further runs from which the noise is learnt; with ``beside`` all METRICS are shown and the losses.

    Raises UsageError where a run is on both sides.
    """
    _refuse_overlap(baseline, candidate)
    sides, left_out = zip(*(_evidence(side) for side in (baseline, candidate)), strict=True)
    old, new = sides
    judged = tuple(metric.column for metric in metrics)
    shown = list(dict.fromkeys((*metrics, *(METRICS.values() if beside else ()))))
    return Comparison(
        baseline=old,
        candidate=new,
        fields=tuple(check_fields(old.runs, new.runs, allowed)),
        findings=tuple(judge(m, _values(old.runs, m), _values(new.runs, m), threshold) for m in shown),
        judged=judged,
        losses=agree_on_losses(old, new) if beside else None,
        changes=tuple(list_changes(old.told, new.told)),
        noise=_noise(old, new, metrics[0], others),
        threshold=threshold,
        left_out=(*left_out[0], *left_out[1]),
    )


def _refuse_overlap(baseline: Side, candidate: Side) -> None:
    both = baseline.runs.filter(pl.col("run_id").is_in(candidate.runs["run_id"].to_list()))
    if len(both):
        raise UsageError(
            tr("{n} runs are on both sides, such as {name}", n=len(both), name=both["name"][0]),
            where=tr("{first} and {second}", first=baseline.asked, second=candidate.asked),
            remedy=tr("give two sides that have no run in common"),
        )


def _evidence(side: Side) -> tuple[Side, list[tuple[str, str]]]:
    """The side without records of one job twice, and without runs of too few rows."""
    runs, twice = drop_beginnings(side.runs)
    enough = runs.filter(pl.col("counted_rows") >= FEWEST_ROWS)
    short = runs.filter(pl.col("counted_rows") < FEWEST_ROWS)["name"].to_list()
    left_out = [(name, msg("begins as a longer one")) for name in twice] + [
        (name, msg("too few rows count")) for name in short
    ]
    return replace(side, runs=enough), left_out


def _values(runs: pl.DataFrame, metric: Metric) -> list[float]:
    """One positive number per run that has one."""
    column = runs[metric.column]
    return [float(v) for v in column.filter(column.is_finite() & (column > 0)).drop_nulls()]


def _noise(old: Side, new: Side, metric: Metric, others: pl.DataFrame | None) -> Noise | None:
    """From both sides and, where they are known, all releases whose runs could be compared with the baseline's."""
    named = [old.runs.with_columns(group=pl.lit("baseline")), new.runs.with_columns(group=pl.lit("candidate"))]
    if others is not None:
        ids = [*old.runs["run_id"], *new.runs["run_id"]]
        alike = pl.all_horizontal(pl.col(n).is_in(old.runs[n].unique().to_list(), nulls_equal=True) for n in FIELDS)
        named.append(others.filter(alike & ~pl.col("run_id").is_in(ids)).with_columns(group=pl.col("release")))
    runs = pl.concat([frame.select("group", metric.column, "counted_rows") for frame in named])
    usable = runs.filter(pl.col("counted_rows") >= FEWEST_ROWS)
    return noise_floor(_values(group, metric) for group in usable.partition_by("group"))


def agree_on_losses(baseline: Side, candidate: Side) -> LossAgreement | None:
    """How far the losses of the two sides are apart at equal steps; None where they have no step in common."""
    old, new = (_losses(side) for side in (baseline, candidate))
    both = old.join(new, on="step", suffix="_new").sort("step").filter(pl.col("loss") != 0)
    if both.is_empty():
        return None
    apart = both.with_columns(apart=(pl.col("loss_new") / pl.col("loss") - 1).abs())
    at = apart.row(int(apart["apart"].arg_max() or 0), named=True)
    last = apart.row(-1, named=True)
    return LossAgreement(len(apart), at["apart"], at["step"], last["apart"], last["step"])


def _losses(side: Side) -> pl.DataFrame:
    """Step and median loss over the runs; of a step that was done again the last loss."""
    frames = [
        side.steps(run_id)
        .filter(~pl.col("copied").fill_null(False) & pl.col("loss").is_finite())
        .select("step", "loss")
        .unique("step", keep="last")
        for run_id in side.told["run_id"]
    ]
    none = pl.DataFrame(schema={"step": pl.Int64, "loss": pl.Float64})
    return pl.concat([none, *frames]).drop_nulls().group_by("step").agg(pl.col("loss").median())
