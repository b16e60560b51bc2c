"""Two releases of many jobs for people, as JSON, and as the files of the gate."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.compare.comparison import Comparison
from analysis.compare.gate_exports import benchmark, cases, openmetrics, verdict_line
from analysis.compare.verdict import VERDICTS, Verdict, worst_of
from analysis.junit import junit_xml
from analysis.present.markdown import markdown
from analysis.present.numbers import signed_percent
from analysis.present.parts import Heading, Part, Sentence, Table
from analysis.present.views.compare import compose_comparison, is_untested
from analysis.present.views.compare_json import document as comparison_document
from analysis.present.views.gate import judged
from analysis.present.views.requirements import judgement_sentences, missed
from analysis.present.views.side_news import causes_text, finding_text, is_wrong
from analysis.present.words import word
from logparse.language import some, speaking, tr
from logparse.light_dataclass import dataclass, replace
from logparse.schema import SCHEMA_VERSION


@dataclass(frozen=True)
class ComparedJobs:
    """A comparison for each job that is on both sides, and the names of the jobs on one side alone."""

    comparisons: Sequence[Comparison]
    without_baseline: Sequence[str]
    without_candidate: Sequence[str]

    @property
    def verdict(self) -> Verdict | None:
        """The worst of all jobs; None where a job cannot be compared and no other is worse."""
        verdicts = [one.verdict for one in self.comparisons if one.verdict]
        worst = worst_of(verdicts) if verdicts else None
        return None if worst in GOOD and any(one.refused for one in self.comparisons) else worst


GOOD = ("no regression", "insufficient data", None)
# Jobs with a finding that a screen names with its cause.
MOST_FINDINGS = 8


def compose_jobs_of_sides(compared: ComparedJobs, details: bool = True) -> list[Part]:
    """The verdict on all, what each job with a finding has, a row for each job; with ``details`` these comparisons."""
    verdict = compared.verdict
    name = word("verdicts", verdict) if verdict else None
    head: list[Part] = [
        Heading(tr("verdict: {verdict}", verdict=name) if name else tr("no verdict"), "title"),
        *(
            sentence
            for one in compared.comparisons
            for sentence in judgement_sentences(missed(one.tolerances), one.job)
        ),
        Sentence(_counted(compared)),
        *_lone(compared),
        *_few_runs(compared),
    ]
    every = compared.comparisons
    if details:
        found = [one for one in every if not _is_good(one)]
        return [*head, *_table(every), *(part for one in found for part in compose_comparison(one))]
    wrong, rest = ([one for one in every if is_wrong(one) == wanted] for wanted in (True, False))
    hint = Sentence(tr("-v shows the whole comparison of each job with a finding"), "info")
    return [*head, *_findings(wrong[:MOST_FINDINGS]), *_table([*wrong[MOST_FINDINGS:], *rest]), hint]


def _findings(wrong: Sequence[Comparison]) -> Iterator[Sentence]:
    """What each job with a finding has, and the differences that may explain it."""
    for one in wrong:
        yield Sentence(finding_text(one), "warning", cut=2)
        if causes := causes_text(one):
            yield Sentence(causes, "info", cut=1)


def _table(comparisons: Sequence[Comparison]) -> Iterator[Table]:
    if comparisons:
        headings = (tr("job"), tr("verdict"), word("sides", "baseline"), word("sides", "candidate"), tr("change"))
        yield Table(headings, [_row(one) for one in comparisons], prose={1}, headed=True)


def _is_good(one: Comparison) -> bool:
    """Whether a job needs no more than its row."""
    return one.verdict in GOOD[:1] and not missed(one.tolerances)


def _counted(compared: ComparedJobs) -> str:
    counts = Counter(one.verdict for one in compared.comparisons)
    parts = [tr("{n} {verdict}", n=counts[v], verdict=word("verdicts", v)) for v in VERDICTS if counts[v]]
    if counts[None]:
        parts.append(tr("{n} not comparable", n=counts[None]))
    return tr("jobs: {n} ({parts})", n=len(compared.comparisons), parts=", ".join(parts))


def _few_runs(compared: ComparedJobs) -> Iterator[Sentence]:
    untested = sum(any(map(is_untested, one.asked_for)) for one in compared.comparisons)
    if untested:
        text = tr("jobs with too few runs for a test, where only the threshold decides: {n}", n=untested)
        yield Sentence(text, "warning")


def _lone(compared: ComparedJobs) -> Iterator[Sentence]:
    if compared.without_candidate:
        text = tr("not judged, without a candidate: {names}", names=some(compared.without_candidate))
        yield Sentence(text, "warning")
    if compared.without_baseline:
        text = tr("not judged, without a baseline: {names}", names=some(compared.without_baseline))
        yield Sentence(text, "warning")


def _row(one: Comparison) -> tuple[str, ...]:
    first = one.asked_for[0]
    verdict = word("verdicts", one.verdict) if one.verdict else tr("not comparable")
    effect = first.effect
    if effect is None:
        return one.job, verdict, "-", "-", "-"
    values = (first.metric.text(effect.baseline), first.metric.text(effect.candidate))
    return one.job, verdict, *values, signed_percent(effect.change)


def document(compared: ComparedJobs) -> dict[str, Any]:
    """The document, the same in every language."""
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": compared.verdict,
        "comparisons": [comparison_document([one]) for one in compared.comparisons],
        "without_baseline": list(compared.without_baseline),
        "without_candidate": list(compared.without_candidate),
    }


def texts(compared: ComparedJobs, strict: bool, failing: frozenset[Verdict]) -> Mapping[str, str | None]:
    """The texts of the files by their names. There is no otava.csv, which holds one series."""
    with speaking("en"):
        details = markdown(compose_jobs_of_sides(compared))
    each = [judged(one, strict, failing) for one in compared.comparisons]
    whole = [one for one in compared.comparisons if not one.refused]
    return {
        "junit.xml": junit_xml("logparse gate", [case for one in each for case in cases(one)], details),
        "summary.md": summary(compared),
        "verdict.txt": verdict_line(compared.verdict),
        "benchmark-smaller-is-better.json": _joined([benchmark(one, worse=1) for one in whole]),
        "benchmark-bigger-is-better.json": _joined([benchmark(one, worse=-1) for one in whole]),
        "openmetrics.txt": openmetrics(whole),
    }


def summary(compared: ComparedJobs) -> str:
    """The verdicts as Markdown, in the language in use."""
    return markdown(compose_jobs_of_sides(compared))


def _joined(lists: Sequence[str | None]) -> str | None:
    rows = [row for one in lists if one for row in json.loads(one)]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n" if rows else None


def with_name(comparison: Comparison, name: str) -> Comparison:
    """``comparison`` under the name that the policy, a label or its series gives the job."""
    return replace(comparison, job=name)
