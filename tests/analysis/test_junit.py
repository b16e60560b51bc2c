"""JUnit XML is as Jenkins reads it. The rules are those of its xUnit plugin's junit-10.xsd, the strictest of two where
an older schema has less."""

from xml.etree import ElementTree

import pytest

from analysis.junit import Case, junit_xml

# By element: attributes that it must have, those that it may have beside, and the elements within it.
RULES = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"message"}, set()),
    "system-out": (set(), set(), set()),
}
WITH_TEXT = {"failure", "error", "system-out", "system-err"}
COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def breaches(text):
    """What of a document is against the rules."""
    root = ElementTree.fromstring(text)
    found = [] if root.tag == "testsuites" else [root.tag]
    for element in root.iter():
        must, may, within = RULES[element.tag]
        found += [f"{element.tag}@{name}" for name in must - set(element.attrib)]
        found += [f"{element.tag}@{name}" for name in set(element.attrib) - must - may]
        found += [f"{element.tag}/{child.tag}" for child in element if child.tag not in within]
        found += [f"{element.tag} text"] * bool((element.text or "").strip() and element.tag not in WITH_TEXT)
        found += _wrong_counts(element) if "tests" in element.attrib else []
    return found


def _wrong_counts(element):
    cases = list(element.iter("testcase"))
    yield from ["tests"] * (int(element.get("tests")) != len(cases))
    for name, tag in COUNTED.items():
        if name in element.attrib and int(element.get(name)) != sum(case.find(tag) is not None for case in cases):
            yield name


CASES = [
    Case("a.b", "passed"),
    Case("a.b", "noted", "system-out", message="suspicious"),
    Case("a.b", "skipped", "skipped", message="too few runs"),
    Case("a.b", "failed", "failure", "regression", "slower"),
    Case("a.b", "error", "error", "incomparable", "another model"),
]


@pytest.mark.parametrize("cases", [[], CASES], ids=["none", "one of each"])
def test_jenkins_takes_it(cases):
    assert breaches(junit_xml("suite", cases, "details")) == []


def test_the_rules_find_what_is_wrong():
    wrong = '<testsuites skipped="1"><testsuite name="a" tests="2" failures="0" errors="0"><testcase><failure/>'
    found = breaches(f"{wrong}</testcase></testsuite></testsuites>")
    assert set(found) == {"testsuites@skipped", "testcase@name", "tests", "failures"}


def test_control_characters_are_in_no_name():
    assert ElementTree.fromstring(junit_xml("a\x08", [])).get("name") == "a?"
