"""Whether a run is what was required of it: pass, fail, or unknown with the reason.

Comes in: a Run that knows its requirements. Goes out: a Judgement for each. A value that cannot be is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal

from analysis.run.checks.targets import COMPLETED, STEPS, TAILS, RequiredFigure, Requirement, figures
from analysis.run.rows.exclusion_reasons import OF_THE_RUN
from analysis.run.run import Run
from analysis.run.summary import finite_median, largest_memory, last_finite, quantile_of_steps, share_of_steps
from logparse.errors import InsufficientDataError
from logparse.findings import Note, info
from logparse.light_dataclass import dataclass

Outcome = Literal["pass", "fail", "unknown"]
# Exit codes by outcome; of several outcomes the first in this order counts.
EXIT_CODES: dict[Outcome, int] = {"fail": 1, "unknown": InsufficientDataError.exit_code}
# Notes that say why a rate is unknown, and what it must need for that, nearest cause first.
WHY_NO_RATE = (
    ("no_row_counts", None),
    ("rate_lacks_sizes", None),
    ("rate_of_resumed_run", None),
    ("no_step_time", None),
    ("samples_rate_not_computed", "world_size"),
    ("samples_not_computed", "world_size"),
    ("tokens_rate_not_computed", "seq_length"),
    ("no_tokens", "seq_length"),
    ("layers_not_counted", "num_layers"),
    ("flops_rate_not_computed", "num_layers"),
    ("mfu_not_computed", "the shape"),
    ("mfu_not_counted", "the shape"),
    ("layers_not_counted", "the shape"),
    ("flops_rate_not_computed", "the shape"),
    ("device_unknown", "peak"),
    ("device_not_listed", "peak"),
    ("no_peak_of_type", "peak"),
    ("number_type_unknown", "peak"),
    ("hfu_not_computed", "recompute"),
    ("hfu_is_a_range", "recompute"),
    ("recompute_not_understood", "recompute"),
    ("printed_rate_unexplained", None),
    ("counted_updates_skipped", None),
)
WHY_NO_GOODPUT = (
    *("no_row_counts", "no_step_time", "time_by_rate_of_run", "trainings_in_one_file", "runs_mixed"),
    "printed_rate_unexplained",
)
WHY_NO_CLOCK = ("wall_clock_not_computed", "clock_unknown", "clock_shorter_than_steps", "clock_longer_than_steps")


@dataclass(frozen=True)
class Judgement:
    """One requirement and the run's ``value``, None where that is unknown; ``findings`` are parts of one sentence.

    They say why it is unknown, of which published row a share is, and that goodput knows of the step lines alone.
    """

    requirement: Requirement
    value: float | None
    findings: tuple[Note, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Whether the run is what was required."""
        if self.value is None:
            return "unknown"
        return "pass" if self.requirement.met_by(self.value) else "fail"


def exit_code(outcomes: Iterable[str]) -> int:
    """The exit code of all ``outcomes``: 0 where all pass, 1 where one fails, else 4."""
    present = set(outcomes)
    return next((code for outcome, code in EXIT_CODES.items() if outcome in present), 0)


def judge(run: Run) -> tuple[Judgement, ...]:
    """Hold ``run`` against each of its requirements."""
    return tuple(_judge(run, requirement) for requirement in run.requirements)


def _judge(run: Run, requirement: Requirement) -> Judgement:
    figure = requirement.figure
    if figure.name == "baseline":
        return _against_baseline(run, requirement)
    if figure.name == "planned":
        return _against_plan(run, requirement)
    value = _value(run, figure)
    if value is None or not math.isfinite(value):
        return Judgement(requirement, None, (_why_unknown(run, figure),))
    if figure.metric and figure.metric.impossible(value):
        return Judgement(requirement, None, (info("figure_impossible"),))
    of_lines = [note for note in run.notes if figure.column == "goodput" and note.code in WHY_NO_CLOCK]
    of_log = [info("figure_of_log")] if _is_printed(run, figure) else []
    return Judgement(requirement, value, (*of_lines, *of_log))


def _value(run: Run, figure: RequiredFigure) -> float | None:
    """The figure in the unit of its metric's column."""
    if figure.rate is not None:
        row = run.analysis.rate(figure.rate)
        value: float | None = row[figure.column]
        return run.shown(figure.column) if _is_printed(run, figure) else value
    of_run = _of_run(run)
    return of_run[figure.column]() if figure.column in of_run else run.value(figure.column)


def _is_printed(run: Run, figure: RequiredFigure) -> bool:
    """Whether the figure is the one that the log prints, as on the first screen, because ours is unknown."""
    if (
        figure.rate != "steady"
        or figure.name != figure.column
        or run.analysis.rate("steady")[figure.column] is not None
    ):
        return False
    return run.shown(figure.column) is not None


def _of_run(run: Run) -> dict[str, Callable[[], float | None]]:
    """The figures of the whole run by their names."""
    steps, analysis = run.steps, run.analysis
    memory = largest_memory(steps, run.records["memory"])
    return {
        "goodput": lambda: analysis.goodput,
        "final_loss": lambda: last_finite(steps["loss"]),
        "grad_norm": lambda: finite_median(steps.filter("counted")["grad_norm"]),
        "time_to_train_seconds": lambda: analysis.time_to_train_seconds,
        "skipped_share": lambda: share_of_steps(steps, "skipped_iterations"),
        "nan_share": lambda: share_of_steps(steps, "nan_iterations"),
        COMPLETED: lambda: is_completed(run),
        STEPS: lambda: _steps_done(run),
        **{name: partial(quantile_of_steps, steps, quantile) for name, quantile in TAILS.items()},
        **{name: partial(dict.get, memory, name) for name in memory},
    }


def is_completed(run: Run) -> bool | None:
    """Whether the run did all planned steps; None where the log does not show how many, and no crash."""
    if run.crashed_at is not None:
        return False
    last, planned = run.steps["step"].max(), run.steps["train_steps"].drop_nulls()
    return last >= planned[-1] if isinstance(last, int) and len(planned) else None


def _steps_done(run: Run) -> int:
    """The steps of the log, each once."""
    rows = run.steps.filter(OF_THE_RUN).unique("step", keep="last")
    return int(rows["iterations"].fill_null(1).sum())


def _why_unknown(run: Run, figure: RequiredFigure) -> Note:
    """The note of the run that says why; else that the figure is not in the log."""
    notes = {note.code: note for note in run.notes}
    return next((notes[code] for code in causes_of_unknown(figure) if code in notes), info("figure_not_in_log"))


def causes_of_unknown(figure: RequiredFigure) -> list[str]:
    """The codes of notes that say why ``figure`` is unknown where a run has one of them, nearest cause first."""
    metric = figure.metric
    if figure.column == "goodput":
        return [*WHY_NO_GOODPUT, *WHY_NO_CLOCK]
    of_rows = metric is not None and (figure.rate or metric.row_column)
    causes = [code for code, need in WHY_NO_RATE if metric and of_rows and (need is None or need in metric.needs)]
    return [*(WHY_NO_CLOCK if figure.rate == "wall_clock" else ()), *causes]


def _against_baseline(run: Run, requirement: Requirement) -> Judgement:
    """Compare with the row of --baseline, else with the most similar published one: ``gate`` judges by a history."""
    compared = run.expectations.published
    if matches := [match for match in compared.matches if compared.chosen or not match.row.recorded]:
        best = matches[0]
        return Judgement(requirement, best.share, best.findings)
    return Judgement(requirement, None, compared.findings or (info("no_row_is_alike"),))


def _against_plan(run: Run, requirement: Requirement) -> Judgement:
    """Delivered share of the peak, recomputation counted, over the planned one."""
    row = next((row for row in run.expectations.plan.rows if row.name == "utilisation"), None)
    hfu = figures()["with_stalls_hfu"]
    if row is None or row.measured is None:
        return Judgement(requirement, None, (_why_unknown(run, hfu),))
    if row.planned is None or row.planned_to is not None:
        return Judgement(requirement, None, (info("no_plan_given"),))
    if hfu.metric and hfu.metric.impossible(row.measured):
        return Judgement(requirement, None, (info("figure_impossible"),))
    return Judgement(requirement, row.measured / row.planned, row.findings)
