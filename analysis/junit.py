"""JUnit XML as CI servers read it: testsuite and testcase with failure, error and skipped.

Comes in: cases. Goes out: text; nothing is written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

import regex

# What XML 1.0 cannot hold, not even escaped.
NOT_XML = regex.compile(r"[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")

Outcome = Literal["failure", "error", "skipped", "system-out"] | None


@dataclass(frozen=True)
class Case:
    """One test: what became of it, the ``kind`` of a failure or an error, and what is said; None says nothing."""

    classname: str
    name: str
    outcome: Outcome = None
    kind: str = ""
    said: str = ""


def junit_xml(suite: str, cases: Sequence[Case], details: str = "") -> str:
    """A suite of ``cases``; ``details`` go to the output of all."""
    totals = {"tests": str(len(cases))} | {
        name: str(sum(case.outcome == outcome for case in cases))
        for name, outcome in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    root = ElementTree.Element("testsuites", totals)
    below = ElementTree.SubElement(root, "testsuite", {"name": suite, **totals, "time": "0"})
    below.extend(map(_element, cases))
    if details:
        ElementTree.SubElement(below, "system-out").text = _plain(details)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _element(case: Case) -> ElementTree.Element:
    names = {"classname": _plain(case.classname), "name": _plain(case.name), "time": "0"}
    made, said = ElementTree.Element("testcase", names), _plain(case.said)
    if case.outcome == "system-out":
        ElementTree.SubElement(made, case.outcome).text = said
    elif case.outcome:
        kind = {"type": case.kind} if case.kind else {}
        ElementTree.SubElement(made, case.outcome, {"message": said, **kind}).text = said
    return made


def _plain(text: str) -> str:
    return NOT_XML.sub("?", text)
