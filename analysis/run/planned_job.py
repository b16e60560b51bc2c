"""From what is asked of a planned job to its estimate: facts of the user and of a log, the job, its notes.

Comes in: facts as given and the options that are none. Goes out: the estimate. Nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Mapping

from analysis.estimate.job import Estimate, estimate
from analysis.estimate.job_inputs import Asked, Machine, assumption_notes, merge_facts, mtp_notes, plan_job
from analysis.run.measured_job import Measured, measure
from logparse.context.run_context import Fact
from logparse.light_dataclass import dataclass, replace


@dataclass(frozen=True)
class PlannedJob:
    """An estimate and its facts; ``name`` is that of the model, or of the log that gave them, None without."""

    name: str | None
    result: Estimate
    facts: Mapping[str, Fact]


def estimate_planned(
    given: Mapping[str, Fact], asked: Asked, machine: Machine, model: str | None, log: str | None
) -> PlannedJob:
    """Estimate the job of the facts ``given``, of ``model``, and of the ``log`` of a run.

    Raises UsageError for a job that cannot be, InputError or NoStepLineError for a log that cannot be read.
    """
    measured = measure(log, asked.formula, machine, given) if log else Measured()
    facts = merge_facts(given, measured.facts)
    job = plan_job(facts, asked, machine, measured.utilisation)
    result = estimate(job)
    notes = (
        *machine.notes(job.training),
        *measured.notes(facts, given, asked.utilisation),
        *assumption_notes(facts, result),
        *mtp_notes(model, facts),
        *result.notes,
    )
    return PlannedJob(model or log, replace(result, notes=notes), facts)
