"""The files of the gate: a verdict in the formats of other tools. Only summary.md depends on the language.

Comes in: a Judged. Goes out: text; nothing is written here. To add one, write its function, and its row in OUTPUTS.

JUnit XML: see ``analysis.junit``.
github-action-benchmark: the list of its tool customSmallerIsBetter.
Apache Otava 0.8.0: CSV with time, attributes, metrics, as its docs/CSV.md says.
OpenMetrics 1.0: names end in the unit, ``# EOF`` at the end.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from analysis.compare.comparison import Comparison
from analysis.compare.verdict import VERDICTS, Finding, Verdict, insufficient
from analysis.junit import Case, Outcome, junit_xml
from analysis.spreadsheet import harmless
from analysis.stats.noise import Noise
from logparse.light_dataclass import dataclass, replace

OUTCOMES: dict[str, Outcome] = {
    "insufficient data": "skipped",
    "suspicious": "system-out",
    "less work": "system-out",
}


@dataclass(frozen=True)
class Judged:
    """A comparison as the gate judged it, and what the screens say of it; ``failing`` are the verdicts that fail it.

    ``summary`` is Markdown for people, in the language in use; ``details`` is the same in English, and so is what
    ``sentence`` says of a finding, and ``failures`` of the runs that failed. ``required`` are the test cases of what is
    required of the losses, without a class name.
    """

    comparison: Comparison
    strict: bool
    failing: frozenset[Verdict]
    summary: str
    details: str
    sentence: Callable[[Finding], str]
    failures: Sequence[str] = ()
    required: Sequence[Case] = ()


def junit(judged: Judged) -> str:
    """One test case per metric, in the class of the job, and one for runs that failed; the details go to all.

    Of sides that cannot be compared only those of the metrics that were asked for.

    A verdict that fails the gate fails it; sides that cannot be compared are an error, and with ``strict`` too little
    data is, which else skips it.
    """
    return junit_xml(f"logparse gate: {judged.comparison.job}", cases(judged), judged.details)


def cases(judged: Judged) -> list[Case]:
    """The test cases of ``junit``."""
    findings = judged.comparison.asked_for if judged.comparison.refused else judged.comparison.verdicts
    cases = [_case(judged, finding) for finding in findings]
    if judged.failures:
        crashed = judged.comparison.verdict == "crashed" and "crashed" in judged.failing
        outcome: Outcome = "failure" if crashed else "system-out"
        kind = "crashed" if crashed else ""
        cases.append(Case(_classname(judged), "ending", outcome, kind, "\n".join(judged.failures)))
    return [*cases, *(replace(case, classname=_classname(judged)) for case in judged.required)]


def junit_of_error(message: str) -> str:
    """One test case that is an error, for a gate that compared nothing; ``message`` is what the user saw."""
    return junit_xml("logparse gate", [Case("logparse.gate", "verdict", "error", "no verdict", message)])


def _case(judged: Judged, finding: Finding) -> Case:
    """A test case that ends as the exit code of the gate has it."""
    fails = finding.verdict in judged.failing
    outcome: Outcome = "failure" if fails else OUTCOMES.get(finding.verdict)
    refused = bool(judged.comparison.refused)
    if refused or (judged.strict and not fails and insufficient(finding) and finding in judged.comparison.decisive):
        outcome = "error"
    kind = "incomparable" if refused else finding.verdict
    message = judged.sentence(finding)
    return Case(
        _classname(judged), finding.metric.column, outcome, kind if outcome in ("failure", "error") else "", message
    )


def _classname(judged: Judged) -> str:
    return f"logparse.gate.{one_word(judged.comparison.job)}"


def one_word(name: str) -> str:
    """``name`` as the last part of a class name: CI servers read the part before the last dot as the package."""
    return name.replace(".", "_")


def benchmark(comparison: Comparison, worse: int) -> str | None:
    """The candidate's medians for github-action-benchmark; with ``worse`` 1 the metrics where smaller is better.

    None where there is none, because the action stops at an empty list.
    """
    rows = [
        {
            "name": f"{finding.metric.column} ({comparison.job})",
            "unit": finding.metric.unit,
            "value": finding.effect.candidate,
            "range": _range(comparison.noises[finding.metric.column]),
            "extra": f"{comparison.candidate.asked}: {finding.verdict}, {finding.effect.change:+.2%}",
        }
        for finding in comparison.verdicts
        if finding.effect and finding.metric.worse == worse
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n" if rows else None


def _range(noise: Noise | None) -> str:
    return f"± {noise.spread:.2%}" if noise else ""


def otava_csv(comparison: Comparison) -> str:
    """One row per run in the order of time, for ``otava analyze``: attributes run and release, then the metrics.

    A metric that some run does not have is left out, because Otava stops at an empty cell. A clock in a log names no
    zone; Otava requires one, so the file says UTC.
    """
    both = pl.concat(side.runs for side in (comparison.baseline, comparison.candidate))
    metrics = [f.metric.column for f in comparison.verdicts if not both[f.metric.column].has_nulls()]
    runs = both.select("run_id", "name", "release", when(), *metrics)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["time", "run", "release", *metrics])
    for run_id, name, release, clock, *values in runs.sort("when", "run_id").iter_rows():
        stamp = f"{clock:%Y-%m-%dT%H:%M:%S}+00:00"
        writer.writerow([stamp, harmless(f"{name}-{run_id[:8]}"), harmless(release or ""), *values])
    return out.getvalue()


def when() -> pl.Expr:
    """When a run was: by its own clock, else when it was recorded."""
    return pl.coalesce("begun_at", "recorded_at").alias("when")


def openmetrics(comparisons: Sequence[Comparison]) -> str:
    """Gauges of the change and of both sides, and the verdict as a state set.

    The label is ``training_job``, because scrapers give ``job`` themselves.
    """
    labelled = [(_labels(comparison, f), f) for comparison in comparisons for f in comparison.verdicts]
    value = [
        sample("logparse_median", labels | {"unit": f.metric.unit, "side": side}, number)
        for labels, f in labelled
        if f.effect
        for side, number in (("baseline", f.effect.baseline), ("candidate", f.effect.candidate))
    ]
    change = [sample("logparse_change_ratio", labels, f.effect.change) for labels, f in labelled if f.effect]
    states = [
        sample("logparse_verdict", labels | {"logparse_verdict": v}, float(f.verdict == v))
        for labels, f in labelled
        for v in VERDICTS
    ]
    lines = [
        *family("logparse_median", "gauge", value, text="Median over the runs of a side."),
        *family("logparse_change_ratio", "gauge", change, "ratio", text="Candidate over baseline, minus one."),
        *family("logparse_verdict", "stateset", states, text="The verdict on each metric."),
        "# EOF",
    ]
    return "\n".join(lines) + "\n"


def _labels(comparison: Comparison, finding: Finding) -> dict[str, str]:
    return {"training_job": comparison.job, "metric": finding.metric.column}


def family(name: str, kind: str, samples: Sequence[str], unit: str | None = None, *, text: str) -> list[str]:
    """A family of OpenMetrics, in lines; none without ``samples``."""
    head = [f"# TYPE {name} {kind}", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {text}"]
    return [*head, *samples] if samples else []


def sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """A line of OpenMetrics."""
    written = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{written}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def verdict_line(verdict: Verdict | None) -> str | None:
    """The verdict of the whole gate alone, for a script; None where there is none."""
    return f"{verdict}\n" if verdict else None


@dataclass(frozen=True)
class Output:
    """A file of the gate. ``text`` is None where there is nothing to write.

    With ``needs_verdict`` it is written only for sides that can be compared; others have no number.
    """

    name: str
    text: Callable[[Judged], str | None]
    needs_verdict: bool = True


OUTPUTS = (
    Output("junit.xml", junit, needs_verdict=False),
    Output("summary.md", lambda judged: judged.summary, needs_verdict=False),
    Output("verdict.txt", lambda judged: verdict_line(judged.comparison.verdict)),
    Output("benchmark-smaller-is-better.json", lambda judged: benchmark(judged.comparison, worse=1)),
    Output("benchmark-bigger-is-better.json", lambda judged: benchmark(judged.comparison, worse=-1)),
    Output("otava.csv", lambda judged: otava_csv(judged.comparison)),
    Output("openmetrics.txt", lambda judged: openmetrics([judged.comparison])),
)
