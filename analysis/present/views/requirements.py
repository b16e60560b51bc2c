"""Whether runs are what was required: lines for people, objects for the JSON document, and files for CI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.junit import Case, Outcome, junit_xml
from analysis.present.findings_json import note_document
from analysis.present.markdown import markdown
from analysis.present.parts import Heading, Part, Sentence, Sentences, Table
from analysis.present.words import say_all, word
from analysis.run.run import Run
from analysis.run.target_verdicts import Judgement, judge
from logparse.language import speaking, tr

# What requirement_files may write.
FILES = ("junit.xml", "requirements.md")
OUTCOMES: dict[str, Outcome] = {"fail": "failure", "unknown": "error"}


def requirement_parts(runs: Sequence[Run]) -> list[Part]:
    """A line for each requirement; with the name of the run where there are several. Nothing where none is required."""
    lines = [line for run in runs for line in required_sentences(run, run.name if len(runs) > 1 else "")]
    return [Heading(tr("required"), "title"), Sentences(lines)] if lines else []


def required_sentences(run: Run, name: str = "") -> list[Sentence]:
    """One for each requirement, with a ``name`` where there are several runs."""
    return [
        Sentence(_named(name, judgement), "info" if judgement.outcome == "pass" else "warning")
        for judgement in judge(run)
    ]


def requirement_lines(run: Run) -> list[str]:
    """One line each, with the name of the run."""
    return [_named(run.name, judgement) for judgement in judge(run)]


def _named(name: str, judgement: Judgement) -> str:
    return _said_of(name, sentence(judgement))


def _said_of(name: str, said: str) -> str:
    return tr("{name}: {values}", name=name, values=said) if name else said


def sentence(judgement: Judgement) -> str:
    """The outcome, what was required, what the run has."""
    asked, value = judgement.requirement, judgement.value
    said = tr("{outcome}: {requirement}", outcome=word("requirements", judgement.outcome), requirement=asked)
    if value is not None:
        said = tr("{said}, found {value}", said=said, value=asked.shown(value))
    why = say_all(judgement.findings)
    return tr("{said} ({why})", said=said, why=why) if why else said


def missed_requirements(runs: Sequence[Mapping[str, Any]]) -> list[Part]:
    """What ``runs`` of the JSON document are not though it was required; in English, as the document has it."""
    missed = [(run["name"], found) for run in runs for found in run["requirements"] if found["outcome"] != "pass"]
    return [Sentence(_said_of(name, found["sentence"]), "warning") for name, found in missed]


def requirement_documents(run: Run) -> list[dict[str, Any]]:
    """``requirements`` of a run's document, the same in every language."""
    with speaking("en"):
        return [_document(judgement) for judgement in judge(run)]


def _document(judgement: Judgement) -> dict[str, Any]:
    asked = judgement.requirement
    return {
        "require": asked.text,
        "figure": asked.figure.name,
        "comparison": asked.comparison,
        "limit": asked.limit,
        "value": judgement.value,
        "outcome": judgement.outcome,
        "sentence": sentence(judgement),
        "findings": [note_document(note) for note in judgement.findings],
    }


def requirement_files(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Files for CI, by their names, of ``runs`` of the JSON document; none where nothing is required of them."""
    found = [(run["name"], judged) for run in runs for judged in run["requirements"]]
    if not found:
        return {}
    cases = [
        Case(
            f"logparse.{name}",
            judged["require"],
            outcome := OUTCOMES.get(judged["outcome"]),
            judged["outcome"] if outcome else "",
            judged["sentence"],
        )
        for name, judged in found
    ]
    return {"junit.xml": junit_xml("logparse analyze", cases), "requirements.md": markdown([_table(found)])}


def _table(found: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    headings = (tr("run"), tr("required"), tr("value"), tr("outcome"), tr("why"))
    return Table(headings, tuple(tuple(_cells(name, judged)) for name, judged in found), prose={0, 1, 3, 4})


def _cells(name: str, judged: Mapping[str, Any]) -> Iterator[str]:
    yield name
    yield judged["require"]
    yield "-" if judged["value"] is None else f"{judged['value']:.6g}"
    yield word("requirements", judged["outcome"])
    yield "; ".join(note["text"] for note in judged["findings"])
