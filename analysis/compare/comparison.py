"""Two sides compared: comparable or not, the effect on each metric, the losses, and what changed.

Comes in: the runs of two sides. Goes out: a Comparison. Nothing is printed or written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite

import polars as pl

from analysis.compare.comparability import FIELDS, Change, Field, check_fields, fill_implied, list_changes, refusals
from analysis.compare.final_loss import final_losses
from analysis.compare.independent_records import KEYS, LENGTHS, Jobs, LeftOut, fill_from_job, find_jobs, sample_of
from analysis.compare.job_name import job_name
from analysis.compare.loss_targets import judge_losses
from analysis.compare.multiple_testing import hold_family
from analysis.compare.same_loss import SameLoss, compare_losses
from analysis.compare.verdict import WRONG, Finding, Verdict, doubt, judge, lose, worst_of
from analysis.compare.work_difference import Less, compared_work, explain, learns_less
from analysis.history.kept_endings import KEPT_ENDING, read_ending
from analysis.metrics import FINAL_LOSS, FROM_RUNS, JUDGED, Metric
from analysis.run.checks.target_verdicts import Judgement
from analysis.run.checks.targets import Requirement
from analysis.stats.noise import Noise, Outlier, noise_floor
from logparse.errors import InputError, UsageError
from logparse.failures.ending import Ending
from logparse.findings import Note, warn_caller, warning
from logparse.language import tr
from logparse.light_dataclass import dataclass, field, replace


@dataclass(frozen=True)
class Side:
    """The runs of one side, and how they were asked for.

    ``details`` are rows of some of them with all columns; ``steps`` gives the steps of a run by its id. ``warn`` gets
    a note on each run that is left out because its steps cannot be read.
    """

    asked: str
    runs: pl.DataFrame
    details: pl.DataFrame
    steps: Callable[[str], pl.DataFrame]
    warn: Callable[[Note], object] = field(default=warn_caller, compare=False)

    def readable_steps(self, run_ids: Iterable[str]) -> Iterator[tuple[str, pl.DataFrame]]:
        """Each of ``run_ids`` with its steps, without those that cannot be read."""
        for run_id in run_ids:
            try:
                yield run_id, self.steps(run_id)
            except InputError as error:
                self.warn(warning("steps_left_out", problem=error.problem, remedy=error.remedy))

    @property
    def releases(self) -> list[str]:
        """The releases its runs are of, where they are recorded."""
        return sorted(set(self.runs["release"].drop_nulls()))


@dataclass(frozen=True)
class LostLoss:
    """So many of all runs of a side end with losses that are not finite, the earliest from ``step`` on."""

    lost: int
    runs: int
    step: int


@dataclass(frozen=True)
class FailedRun:
    """A run of a side that failed, and how."""

    run_id: str
    name: str
    ending: Ending


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two sides.

    ``judged`` are the columns of the metrics that the verdict is on; the other findings are for information.
    Metrics that are not ``primary`` count only if something is wrong: too much noise makes no verdict worse.
    ``loss`` is None where nobody asked for the losses; ``tolerances`` are what is required of them. ``lost`` is of
    both sides, and so are the runs ``failed``, also those that do not count. ``noises`` are by the column of the
    metric. ``left_out`` are runs that do not count; ``unclear`` are names of pairs that may be one job.
    ``less_work`` are the kinds of work of which the candidate does less. ``threshold`` is as given, None where it
    follows from the noise of each metric. ``job`` is the name of the job.
    """

    baseline: Side
    candidate: Side
    fields: tuple[Field, ...]
    findings: tuple[Finding, ...]
    judged: tuple[str, ...]
    primary: tuple[str, ...]
    loss: SameLoss | None
    tolerances: tuple[Judgement, ...]
    lost: tuple[LostLoss | None, LostLoss | None]
    failed: tuple[tuple[FailedRun, ...], tuple[FailedRun, ...]]
    changes: tuple[Change, ...]
    noises: Mapping[str, Noise | None]
    threshold: float | None
    left_out: tuple[LeftOut, ...]
    unclear: tuple[tuple[str, str], ...]
    less_work: tuple[Less, ...]
    job: str

    @property
    def refused(self) -> list[Field]:
        """The fields that forbid a verdict."""
        return refusals(self.fields)

    @property
    def verdict(self) -> Verdict | None:
        """On all metrics that are judged; None where it is refused. Of half a run no speed is "no regression"."""
        if self.refused:
            return None
        return "crashed" if self.crashed else worst_of(f.verdict for f in self.decisive)

    @property
    def crashed(self) -> list[FailedRun]:
        """The candidate's runs that failed before their planned steps."""
        return [run for run in self.failed[1] if not run.ending.reached_plan]

    @property
    def asked_for(self) -> list[Finding]:
        """The findings on the primary metrics."""
        return [finding for finding in self.findings if finding.metric.column in self.primary]

    @property
    def decisive(self) -> list[Finding]:
        """The findings that the verdict follows from."""
        return [f for f in self.verdicts if f.metric.column in self.primary or f.verdict in WRONG]

    @property
    def verdicts(self) -> list[Finding]:
        """The findings on the metrics that are judged."""
        return [finding for finding in self.findings if finding.metric.column in self.judged]

    def outliers(self, finding: Finding) -> list[tuple[Outlier, str]]:
        """The runs that are far from all others of their side, each with its name."""
        sides = {"baseline": self.baseline, "candidate": self.candidate}
        return [(o, measured(sides[o.side].runs, finding.metric)["name"][o.place]) for o in finding.outliers]

    def worse_runs(self, finding: Finding) -> list[str]:
        """Names of the candidate's runs that are worse than all of the baseline."""
        return measured(self.candidate.runs, finding.metric)["name"].gather(list(finding.worse_runs)).to_list()


def compare(
    baseline: Side,
    candidate: Side,
    metrics: Sequence[Metric],
    threshold: float | None,
    allowed: Sequence[str] = (),
    others: pl.DataFrame | None = None,
    everything: bool = True,
    guards: Sequence[Metric] = (),
    tolerances: Sequence[Requirement] = (),
) -> Comparison:
    """Compare two sides, each of at least one run, and judge ``metrics``, and ``guards`` where both sides have them.

    ``threshold`` is the change that matters; where it is None, that beyond the noise of each metric does.
    ``others`` are further runs from which the noise is learnt. With ``everything`` all JUDGED are compared, and losses;
    these also where ``tolerances`` are required of them.
    Whether the sides may be compared is asked of all their runs, also of those that do not count.

    Raises UsageError where a run or a job is on both sides.
    """
    case = _case((baseline, candidate), others, threshold)
    runs = min(len(side.runs) for side in case.counted)
    guards = [metric for metric in guards if FROM_RUNS.get(metric.column, 0) <= runs]
    compared = dict.fromkeys((*metrics, *guards, *(JUDGED.values() if everything else ())))
    noises = {metric.column: case.noise(metric) for metric in compared}
    all_findings = [case.finding(metric, noises[metric.column], metric in guards) for metric in compared]
    judged = (*metrics, *_on_both_sides(all_findings, guards))
    findings = [f for f in _held(all_findings, judged[1:]) if everything or f.metric in judged]
    less = _less_work(case)
    old, new = case.counted
    loss = _same_loss(old, new) if everything or tolerances else None
    return Comparison(
        baseline=old,
        candidate=new,
        fields=case.fields(allowed),
        findings=tuple(explain(finding, less) for finding in findings),
        judged=_columns(judged),
        primary=_columns(metrics),
        loss=loss,
        tolerances=judge_losses(loss, tolerances) if loss else (),
        lost=case.lost,
        failed=(_failed(baseline.runs), _failed(candidate.runs)),
        changes=tuple(list_changes(old.details, new.details)),
        noises=noises,
        threshold=threshold,
        left_out=case.left_out,
        unclear=case.unclear,
        less_work=less,
        job=job_name(baseline.runs),
    )


@dataclass(frozen=True)
class _Case:
    """What two sides are judged by; of each pair the baseline is first.

    ``asked`` are the sides as they were given; ``counted`` hold only the runs that count. ``losses`` are the final
    losses of these by run. ``comparable`` are groups of runs from which the noise is learnt.
    """

    asked: tuple[Side, Side]
    counted: tuple[Side, Side]
    jobs: Jobs
    left_out: tuple[LeftOut, ...]
    losses: Mapping[str, float | None]
    comparable: Sequence[pl.DataFrame]
    threshold: float | None

    @property
    def lost(self) -> tuple[LostLoss | None, LostLoss | None]:
        """The losses that end without being finite, among all runs of each side."""
        return _lost(self.asked[0].runs), _lost(self.asked[1].runs)

    @property
    def unclear(self) -> tuple[tuple[str, str], ...]:
        """Names of the pairs of runs that may be one job."""
        names = dict(pl.concat(side.runs.select("run_id", "name") for side in self.asked).iter_rows())
        return tuple((names[a], names[b]) for a, b in self.jobs.unclear if a in names and b in names)

    def fields(self, allowed: Sequence[str]) -> tuple[Field, ...]:
        """The fields of comparability over all runs, also those that do not count."""
        baseline, candidate = (fill_from_job(side.runs, self.jobs) for side in self.asked)
        return tuple(check_fields(baseline, candidate, allowed))

    def noise(self, metric: Metric) -> Noise | None:
        """The noise of ``metric``; None where the comparable runs are too few to estimate it."""
        return noise_floor(values_of(runs, metric) for runs in self.comparable)

    def finding(self, metric: Metric, noise: Noise | None, guard: bool) -> Finding:
        """The finding on ``metric``, doubted where the candidate's runs lose their losses more often.

        A ``guard`` is doubted for its own values alone.
        """
        finding = self.finding_of_values(metric, noise)
        if not guard:
            shares = [side.lost / side.runs if side else 0 for side in self.lost]
            finding = doubt(finding, "loss_lost") if shares[1] > shares[0] else finding
        return lose(finding, self._without_loss()) if metric == FINAL_LOSS else finding

    def finding_of_values(self, metric: Metric, noise: Noise | None) -> Finding:
        """The finding on ``metric`` from the values of the runs that count alone."""
        old, new = (side.runs for side in self.counted)
        finding = judge(metric, values_of(old, metric), values_of(new, metric), self.threshold, noise)
        if finding.effect:
            finding = replace(finding, effect=finding.effect.shifted(-metric.offset))
        return doubt(finding, "no_rows") if old.is_empty() or new.is_empty() else finding

    def _without_loss(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The runs of each side that end without a loss, and those that print any, each job once."""
        same = {run.run_id for run in self.left_out if run.reason == "same_job"}
        baseline, candidate = (_lost_their_loss(side, self.losses, same) for side in self.asked)
        return baseline, candidate


def _case(asked: tuple[Side, Side], others: pl.DataFrame | None, threshold: float | None) -> _Case:
    """The case of two sides and further runs. Raises UsageError where a run or a job is on both sides."""
    every_run = all_runs([side.runs for side in asked], others)
    jobs = find_jobs(every_run)
    _refuse_overlap(*asked, jobs)
    samples = [sample_of(side.runs, jobs) for side in asked]
    counting = [_counting(side, sample.runs) for side, sample in zip(asked, samples, strict=True)]
    losses = _final_losses(counting)
    old, new = (replace(side, runs=_with_losses(side.runs, losses)) for side in counting)
    left_out = tuple(run for sample in samples for run in sample.left_out)
    comparable = _comparable(_with_losses(sample_of(every_run, jobs).runs, losses), asked[0].runs)
    return _Case(asked, (old, new), jobs, left_out, losses, comparable, threshold)


def _on_both_sides(findings: Sequence[Finding], metrics: Sequence[Metric]) -> list[Metric]:
    """Those of ``metrics`` that both sides have, by the ``findings`` on them."""
    return [f.metric for f in findings if f.metric in metrics and (f.effect or f.p_lost is not None)]


def _columns(metrics: Sequence[Metric]) -> tuple[str, ...]:
    return tuple(metric.column for metric in metrics)


def _held(findings: Sequence[Finding], metrics: Sequence[Metric]) -> list[Finding]:
    """``findings``, those on ``metrics`` held together."""
    held = {finding.metric: finding for finding in hold_family([f for f in findings if f.metric in metrics])}
    return [held.get(finding.metric, finding) for finding in findings]


def _less_work(case: _Case) -> tuple[Less, ...]:
    """The kinds of work of which a step of the candidate does less, and whether it learns less."""
    old, new = ((side.details, side.readable_steps(side.details["run_id"])) for side in case.counted)
    learnt = learns_less(case.finding_of_values(FINAL_LOSS, case.noise(FINAL_LOSS)))
    return (*compared_work(old, new), *([learnt] if learnt else []))


def all_runs(asked: Sequence[pl.DataFrame], others: pl.DataFrame | None) -> pl.DataFrame:
    """The runs of both sides and further ones, each once; ``side`` is 0, 1 or null."""
    columns = dict.fromkeys((*KEYS, "release", *LENGTHS, *FIELDS, *JUDGED))
    frames = [*asked, *([others] if others is not None else [])]
    sides = (pl.lit(i if i < len(asked) else None, pl.Int64).alias("side") for i in range(len(frames)))
    placed = [runs.select(*columns, side) for runs, side in zip(frames, sides, strict=True)]
    return pl.concat(placed).unique("run_id", keep="first", maintain_order=True)


def _refuse_overlap(baseline: Side, candidate: Side, jobs: Jobs) -> None:
    theirs = candidate.runs.select(jobs.named()).to_series().to_list()
    both = baseline.runs.filter(jobs.named().is_in(theirs))
    if len(both):
        raise UsageError(
            tr("{n} runs are on both sides, fully or partly, for example {name}", n=len(both), name=both["name"][0]),
            where=tr("{first} and {second}", first=baseline.asked, second=candidate.asked),
            remedy=tr("give two sides without common runs"),
        )


def _counting(side: Side, runs: pl.DataFrame) -> Side:
    """The side with the runs that count, and their details if there are any."""
    details = side.details.filter(pl.col("run_id").is_in(runs["run_id"].to_list()))
    return replace(side, runs=runs, details=details if len(details) else side.details)


def _final_losses(sides: Sequence[Side]) -> dict[str, float | None]:
    """The final losses by run, of the runs of ``sides`` that count and whose settings are known."""
    counted = [side.details.filter(pl.col("run_id").is_in(side.runs["run_id"].to_list()))["run_id"] for side in sides]
    read = zip(sides, counted, strict=True)
    return final_losses(run for side, run_ids in read for run in side.readable_steps(run_ids))


def _with_losses(runs: pl.DataFrame, losses: Mapping[str, float | None]) -> pl.DataFrame:
    """``runs`` with their losses at equal steps; the last one of each run is no loss to compare."""
    return runs.with_columns(final_loss=pl.col("run_id").replace_strict(losses, default=None, return_dtype=pl.Float64))


def _lost_their_loss(side: Side, losses: Mapping[str, float | None], same: set[str]) -> tuple[int, int]:
    """Runs that end without a loss, of those that print any; without those that are the ``same`` job as another.

    One whose loss is never finite has no row that counts, so all that were asked for are looked at.
    """
    printed = pl.col("final_loss").is_not_null() | pl.col("loss_lost_at").is_not_null()
    asked = side.runs.filter(~pl.col("run_id").is_in(list(same)) & (printed | pl.col("run_id").is_in(list(losses))))
    without = [run_id for run_id in asked["run_id"] if losses.get(run_id, 0.0) is None]
    lost = asked.filter(pl.col("loss_lost_at").is_not_null() | pl.col("run_id").is_in(without))
    return len(lost), len(asked)


def measured(runs: pl.DataFrame, metric: Metric) -> pl.DataFrame:
    """Those that have a number of ``metric`` that can be compared: positive, with its offset."""
    value = pl.col(metric.column)
    return runs.filter(value.is_finite() & (value + metric.offset > 0))


def values_of(runs: pl.DataFrame, metric: Metric) -> list[float]:
    """The numbers of ``metric`` that can be compared, with its offset."""
    shifted = (value + metric.offset for value in runs[metric.column].to_list() if value is not None)
    return [value for value in shifted if isfinite(value) and value > 0]


def _lost(runs: pl.DataFrame) -> LostLoss | None:
    lost = runs["loss_lost_at"].drop_nulls()
    return LostLoss(len(lost), len(runs), int(lost.min())) if len(lost) else None  # type: ignore[arg-type]


def _failed(runs: pl.DataFrame) -> tuple[FailedRun, ...]:
    rows = runs.filter(pl.col("crashed_at").is_not_null()).select("run_id", "name", *KEPT_ENDING)
    return tuple(FailedRun(row["run_id"], row["name"], read_ending(row)) for row in rows.iter_rows(named=True))


def _comparable(runs: pl.DataFrame, asked: pl.DataFrame) -> list[pl.DataFrame]:
    """The groups that show the noise: each release of a side, and of other runs comparable with the baseline's.

    Releases of a side with one run each, such as nightly builds, are one group.
    """
    known, baseline = fill_implied(runs), fill_implied(asked)
    equal = pl.all_horizontal(pl.col(n).is_in(baseline[n].unique().to_list(), nulls_equal=True) for n in FIELDS)
    several = pl.col("side").is_null() | (pl.len().over("side", "release") > 1)
    groups = known.filter(equal | pl.col("side").is_not_null()).with_columns(group=pl.when(several).then("release"))
    return groups.partition_by("side", "group")


@dataclass(frozen=True)
class ComparedLosses:
    """The losses of two sides alone, each of all its runs; the same run may be on both."""

    baseline: Side
    candidate: Side
    loss: SameLoss
    tolerances: tuple[Judgement, ...]

    @property
    def job(self) -> str:
        """The name of the job."""
        return job_name(self.baseline.runs)


def compare_losses_alone(baseline: Side, candidate: Side, tolerances: Sequence[Requirement] = ()) -> ComparedLosses:
    """Compare the losses of two sides, whatever their devices and layouts."""
    loss = _same_loss(baseline, candidate)
    return ComparedLosses(baseline, candidate, loss, judge_losses(loss, tolerances))


def _same_loss(baseline: Side, candidate: Side) -> SameLoss:
    """How far the losses of the runs of both sides are apart, of those whose settings are known."""
    old, new = ([steps for _, steps in s.readable_steps(s.details["run_id"])] for s in (baseline, candidate))
    return compare_losses(old, new)
