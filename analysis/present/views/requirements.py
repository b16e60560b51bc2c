"""Whether runs are what was required: lines for people, objects for the JSON document, and files for CI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.present.as_json import note_document, pick
from analysis.present.markdown import markdown
from analysis.present.parts import Heading, Part, Sentence, Sentences, Table
from analysis.present.words import sentences_of, word
from analysis.run.checks.target_verdicts import Judgement, judge
from analysis.run.run import Run
from logparse.language import speaking, tr

if TYPE_CHECKING:
    from analysis.junit import Case, Outcome

# What requirement_files may write.
FILES = ("junit.xml", "requirements.md")
OUTCOMES: dict[str, Outcome] = {"fail": "failure", "unknown": "error"}


def requirement_parts(runs: Iterable[tuple[str, Iterable[Judgement]]]) -> list[Part]:
    """A line for each judgement of ``runs``, after the name of the run if it has one."""
    lines = [line for name, judgements in runs for line in judgement_sentences(judgements, name)]
    return [Heading(tr("required"), "title"), Sentences(lines)] if lines else []


def required_sentences(run: Run) -> list[Sentence]:
    """One for each requirement."""
    return judgement_sentences(judge(run))


def missed(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Those of ``judgements`` that are not met, or unknown."""
    return [judgement for judgement in judgements if judgement.outcome != "pass"]


def judgement_sentences(judgements: Iterable[Judgement], name: str = "") -> list[Sentence]:
    """One for each of ``judgements``, with the ``name`` of what is judged."""
    return [Sentence(_named(name, one), "info" if one.outcome == "pass" else "warning") for one in judgements]


def judgement_lines(judgements: Iterable[Judgement], name: str) -> list[str]:
    """One line each, with the name of the run."""
    return [_named(name, judgement) for judgement in judgements]


def _named(name: str, judgement: Judgement) -> str:
    return _with_name(name, sentence(judgement))


def _with_name(name: str, text: str) -> str:
    return tr("{name}: {values}", name=name, values=text) if name else text


def sentence(judgement: Judgement) -> str:
    """The outcome, what was required, what the run has."""
    asked, value = judgement.requirement, judgement.value
    text = tr("{outcome}: {requirement}", outcome=word("requirements", judgement.outcome), requirement=asked)
    if value is not None:
        text = tr("{said}, found {value}", said=text, value=asked.shown(value))
    why = sentences_of(judgement.findings)
    return tr("{said} ({why})", said=text, why=why) if why else text


def missed_requirements(runs: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The requirements that ``runs`` of the JSON document do not meet; in English, as in the document."""
    missed = [(run["name"], judged) for run in runs for judged in run["requirements"] if judged["outcome"] != "pass"]
    return [Sentence(_with_name(name, judged["sentence"]), "warning") for name, judged in missed]


def requirement_documents(run: Run) -> list[dict[str, Any]]:
    """``requirements`` of a run's document, the same in every language."""
    return judgement_documents(judge(run))


def judgement_documents(judgements: Iterable[Judgement]) -> list[dict[str, Any]]:
    """``requirements`` of a document, the same in every language."""
    with speaking("en"):
        return [_document(judgement) for judgement in judgements]


def _document(judgement: Judgement) -> dict[str, Any]:
    asked = judgement.requirement
    return pick(
        judgement,
        "require figure comparison limit value outcome sentence findings",
        require=asked.text,
        figure=asked.figure.name,
        comparison=asked.comparison,
        limit=asked.limit,
        sentence=sentence(judgement),
        findings=[note_document(note) for note in judgement.findings],
    )


def requirement_files(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Files for CI, by their names, of ``runs`` of the JSON document; none where nothing is required of them."""
    results = [(run["name"], judged) for run in runs for judged in run["requirements"]]
    if not results:
        return {}
    from analysis.junit import junit_xml

    cases = [_case(f"logparse.{name}", judged) for name, judged in results]
    return {"junit.xml": junit_xml("logparse analyze", cases), "requirements.md": markdown([_table(results)])}


def judgement_cases(judgements: Iterable[Judgement]) -> list[Case]:
    """A test case of JUnit for each of ``judgements``, without a class name."""
    return [_case("", judged) for judged in judgement_documents(judgements)]


def _case(classname: str, judged: Mapping[str, Any]) -> Case:
    from analysis.junit import Case

    outcome = OUTCOMES.get(judged["outcome"])
    kind = judged["outcome"] if outcome else ""
    return Case(classname, judged["require"], outcome, kind, judged["sentence"])


def _table(results: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    headings = (tr("run"), tr("required"), tr("value"), tr("outcome"), tr("reason"))
    return Table(headings, tuple(tuple(_cells(name, judged)) for name, judged in results), prose={0, 1, 3, 4})


def _cells(name: str, judged: Mapping[str, Any]) -> Iterator[str]:
    yield name
    yield judged["require"]
    yield "-" if judged["value"] is None else f"{judged['value']:.6g}"
    yield word("requirements", judged["outcome"])
    yield "; ".join(note["text"] for note in judged["findings"])
