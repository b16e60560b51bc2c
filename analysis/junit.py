"""JUnit XML as CI servers read it: testsuite and testcase with failure, error and skipped.

It keeps to the schema of Jenkins' xUnit plugin (junit-10.xsd), and where an older one has less, to that: the root
counts no skipped tests, and what is skipped says why in its message alone.

Comes in: cases. Goes out: text; nothing is written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from xml.etree import ElementTree

from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

# What XML 1.0 cannot hold, not even escaped.
NOT_XML = lazy_regex(r"[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")

Outcome = Literal["failure", "error", "skipped", "system-out"] | None


@dataclass(frozen=True)
class Case:
    """One test: its outcome (None: passed), the ``kind`` of a failure or an error, and the ``message``."""

    classname: str
    name: str
    outcome: Outcome = None
    kind: str = ""
    message: str = ""


def junit_xml(suite: str, cases: Sequence[Case], details: str = "") -> str:
    """A suite of ``cases``; ``details`` go to the output of all."""
    totals = {"name": _plain(suite), "tests": str(len(cases)), "time": "0"}
    totals |= {"failures": _count(cases, "failure"), "errors": _count(cases, "error")}
    root = ElementTree.Element("testsuites", totals)
    below = ElementTree.SubElement(root, "testsuite", {**totals, "skipped": _count(cases, "skipped")})
    below.extend(map(_element, cases))
    if details:
        ElementTree.SubElement(below, "system-out").text = _plain(details)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _count(cases: Sequence[Case], outcome: Outcome) -> str:
    return str(sum(case.outcome == outcome for case in cases))


def _element(case: Case) -> ElementTree.Element:
    names = {"classname": _plain(case.classname), "name": _plain(case.name), "time": "0"}
    element, message = ElementTree.Element("testcase", names), _plain(case.message)
    if case.outcome == "system-out":
        ElementTree.SubElement(element, case.outcome).text = message
    elif case.outcome:
        kind = {"type": case.kind} if case.kind else {}
        result = ElementTree.SubElement(element, case.outcome, {"message": message, **kind})
        result.text = None if case.outcome == "skipped" else message
    return element


def _plain(text: str) -> str:
    return NOT_XML.sub("?", text)
