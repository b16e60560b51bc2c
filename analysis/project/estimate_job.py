"""``logparse estimate`` from the command line and from Python: options as given to the estimate of a job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.estimate.job_inputs import Asked, all_given, find_machine, short_facts
from analysis.flops import find_formula, real_model_formula
from analysis.model.catalogue import find_model
from analysis.model.parameters import NO_DETAILS
from analysis.project.choose_options import choose_device, options_of
from analysis.project.given_facts import gather
from analysis.project.project_file import find_project_settings
from analysis.run.checks.planned_job import PlannedJob, estimate_planned


def estimate_job(
    quantities: Mapping[str, Any],
    short: Mapping[str, Any],
    model: str | None = None,
    hw: str | None = None,
    peak_tflops: float | None = None,
    memory_gb: float | None = None,
    formula: str | None = None,
    config: Path | None = None,
    tokens: float | None = None,
    utilisation: float | None = None,
    days: float | None = None,
    from_log: str | None = None,
) -> PlannedJob:
    """Estimate the job of ``quantities`` and of those with ``short`` names, such as tp; of a model, a log or both.

    Raises UsageError for a job that cannot be, InputError or NoStepLineError for a log that cannot be read.
    """
    inputs = gather(quantities, model, config)
    facts = all_given(short_facts(**short), inputs)
    standing = find_project_settings()
    model_name = model or inputs.options.get("model")
    by = formula or inputs.options.get("formula") or standing.get("formula")
    counted_by = find_formula(by) if by else real_model_formula()
    asked = Asked(counted_by, find_model(model_name).details if model_name else NO_DETAILS, tokens, utilisation, days)
    asked.check()
    machine = find_machine(*choose_device(hw, peak_tflops, (options_of(inputs), *standing.layers)), memory_gb)
    return estimate_planned(facts, asked, machine, model_name, from_log)
