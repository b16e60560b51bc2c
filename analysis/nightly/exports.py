"""The files of a gate of all jobs in the formats of other tools. Only summary.md depends on the language.

Comes in: a JudgedJobs. Goes out: text; nothing is written here. Formats: see ``analysis.compare.gate_exports``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from analysis.compare.gate_exports import OUTCOMES, family, one_word, sample, verdict_line
from analysis.compare.independent_records import LeftOut
from analysis.compare.verdict import VERDICTS, Verdict
from analysis.junit import Case, Outcome, junit_xml
from analysis.nightly.job_verdict import JobVerdict, verdict_of
from analysis.nightly.metric_verdict import MetricNight
from logparse.light_dataclass import dataclass, field, replace


@dataclass(frozen=True)
class JudgedJobs:
    """All jobs as the gate judged them, and what the screens say of them; ``failing`` are the verdicts that fail it.

    With ``only_new`` they fail it on their first night alone.

    ``summary`` is Markdown for people, in the language in use; ``details`` is the same in English, and so is what
    ``sentence`` says of a metric of a job, ``refusal`` of a job without a verdict, ``failure`` of a run that failed.
    ``required`` are the test cases of what is required of the losses, by the name of the job, without a class name.
    ``suspicious`` is the outcome of a suspicious metric.
    """

    jobs: Sequence[JobVerdict]
    strict: bool
    failing: frozenset[Verdict]
    only_new: bool
    summary: str
    details: str
    sentence: Callable[[JobVerdict, MetricNight], str]
    refusal: Callable[[JobVerdict], str]
    failure: Callable[[LeftOut], str]
    suspicious: Outcome = "system-out"
    required: Mapping[str, Sequence[Case]] = field(default_factory=dict)


def junit(judged: JudgedJobs) -> str:
    """One test case per job and metric, in the class of the job, which ends as the exit code of the gate has it."""
    cases = [case for job in judged.jobs for case in _cases(judged, job)]
    return junit_xml("logparse gate", cases, judged.details)


def _cases(judged: JudgedJobs, job: JobVerdict) -> list[Case]:
    name = f"logparse.gate.{one_word(job.name)}"
    if job.refused:
        return [Case(name, "verdict", "error", "incomparable", judged.refusal(job))]
    if job.is_idle:
        outcome: Outcome = "error" if judged.strict else "skipped"
        kind = "insufficient data" if judged.strict else ""
        return [Case(name, "verdict", outcome, kind, judged.refusal(job))]
    crash = [Case(name, "verdict", "failure", "crashed", judged.failure(job.failed))] if job.failed else []
    return [
        *crash,
        *(_case(judged, job, metric, name) for metric in job.metrics),
        *(replace(case, classname=name) for case in judged.required.get(job.name, ())),
    ]


def _case(judged: JudgedJobs, job: JobVerdict, metric: MetricNight, name: str) -> Case:
    fails = metric.verdict in judged.failing and (
        not judged.only_new or metric.metric in {one.metric for one in job.new_metrics}
    )
    shown = judged.suspicious if metric.verdict == "suspicious" else OUTCOMES.get(metric.verdict)
    outcome: Outcome = "failure" if fails else shown
    if judged.strict and metric.verdict == job.verdict == "insufficient data":
        outcome = "error"
    kind = metric.verdict if outcome in ("failure", "error") else ""
    return Case(name, metric.metric.column, outcome, kind, judged.sentence(job, metric))


def openmetrics(judged: JudgedJobs) -> str:
    """Gauges of the last value of each metric and of what was expected, and the verdict as a state set."""
    labelled = [(_labels(job, metric), metric) for job in judged.jobs for metric in job.metrics]
    values = [sample("logparse_value", labels, m.value) for labels, m in labelled if m.value is not None]
    expected = [
        sample("logparse_expected", labels | {"bound": bound}, number)
        for labels, m in labelled
        if m.night
        for bound, number in (("level", m.night.level), ("low", m.night.low), ("high", m.night.high))
        if number is not None
    ]
    states = [
        sample("logparse_verdict", {**labels, "logparse_verdict": verdict}, float(m.verdict == verdict))
        for labels, m in labelled
        for verdict in VERDICTS
    ]
    lines = [
        *family("logparse_value", "gauge", values, text="The metric of the newest run of a job."),
        *family("logparse_expected", "gauge", expected, text="Where the runs before have it, and from where to where."),
        *family("logparse_verdict", "stateset", states, text="The verdict on each metric."),
        "# EOF",
    ]
    return "\n".join(lines) + "\n"


def _labels(job: JobVerdict, metric: MetricNight) -> dict[str, str]:
    return {"training_job": job.name, "metric": metric.metric.column, "unit": metric.metric.unit}


def benchmark(judged: JudgedJobs, worse: int) -> str | None:
    """The newest values for github-action-benchmark; with ``worse`` 1 the metrics where smaller is better."""
    rows = [
        {
            "name": f"{metric.metric.column} ({job.name})",
            "unit": metric.metric.unit,
            "value": metric.value,
            "extra": f"{job.newest['run_id'][:12]}: {metric.verdict}",
        }
        for job in judged.jobs
        for metric in job.metrics
        if metric.value is not None and metric.metric.worse == worse
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n" if rows else None


# The files of a gate of all jobs by name. There is no otava.csv, which holds one series.
JOB_OUTPUTS: Mapping[str, Callable[[JudgedJobs], str | None]] = {
    "junit.xml": junit,
    "summary.md": lambda judged: judged.summary,
    "verdict.txt": lambda judged: verdict_line(verdict_of(judged.jobs)),
    "benchmark-smaller-is-better.json": lambda judged: benchmark(judged, worse=1),
    "benchmark-bigger-is-better.json": lambda judged: benchmark(judged, worse=-1),
    "openmetrics.txt": openmetrics,
}
