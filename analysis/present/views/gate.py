"""The verdict of the gate for people and for the files of the gate."""

from __future__ import annotations

from analysis.compare.comparison import Comparison
from analysis.compare.gate_exports import Judged
from analysis.compare.verdict import Finding, Verdict
from analysis.present.markdown import markdown
from analysis.present.parts import Heading, Sentence
from analysis.present.views.compare import compose_comparison, failure_texts, sentence, title
from analysis.present.views.requirements import judgement_cases
from logparse.errors import LogparseError
from logparse.language import speaking, tr


def summary(comparison: Comparison) -> str:
    """The comparison as Markdown, in the language in use."""
    return markdown(compose_comparison(comparison))


def judged(comparison: Comparison, strict: bool, failing: frozenset[Verdict]) -> Judged:
    """``comparison`` with what its files say in words."""

    def text_of(finding: Finding) -> str:
        with speaking("en"):
            return title(comparison) if comparison.refused else sentence(finding)

    with speaking("en"):
        details, failures = summary(comparison), tuple(failure_texts(comparison))
    required = judgement_cases(comparison.tolerances)
    return Judged(comparison, strict, failing, summary(comparison), details, text_of, failures, required)


def no_verdict(error: LogparseError) -> str:
    """Why the gate compared nothing, as Markdown, in the language in use."""
    return markdown([Heading(tr("no verdict"), "title"), *(Sentence(line.strip()) for line in str(error).splitlines())])


def verdicts(comparison: Comparison) -> str:
    """The verdict on each metric, in one line."""
    return "; ".join(sentence(finding) for finding in comparison.decisive)
