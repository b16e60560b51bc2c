"""What a code means and what to do: of a warning by docs/warnings.md, of a failure by the table of failures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import regex

from analysis.present.parts import Heading, Part, Sentence, Sentences
from analysis.present.words import words
from logparse.errors import unknown_name
from logparse.failures.table import failure_words, rows
from logparse.language import current_language, msg, tr
from logparse.light_dataclass import dataclass

# The wheel holds the page in this folder.
_IN_WHEEL, _IN_REPOSITORY = Path(__file__).parent / "warnings.md", Path(__file__).parents[3] / "docs/warnings.md"
_SECTION_OR_ITEM = regex.compile(r"^## (?P<section>.+)|^- (?P<codes>`[^:]+`): (?P<text>.+(?:\n  .+)*)", regex.MULTILINE)
_LINK = regex.compile(r"\[([^\]]+)\]\([^)]*\)")


@dataclass(frozen=True)
class Explanation:
    """What ``code`` means. ``subject`` is the section of the warnings, or what fails; ``text`` says what to do."""

    code: str
    kind: str
    subject: str
    text: str


def explain(code: str) -> Explanation:
    """The explanation of ``code``. Raises UsageError for a code that no warning and no failure has."""
    asked = code.strip("`[] ").lower()
    known = {**_warnings(), **_failures(current_language())}
    if asked not in known and asked in words("en")["notes"]:
        text = tr("-v prints it to say how a figure was obtained: nothing has to be done")
        return Explanation(asked, "note", tr("a note of -v"), text)
    if asked not in known:
        remedy = tr("`logparse explain` lists all codes")
        raise unknown_name(msg("code"), code, known, remedy)
    return known[asked]


def every_code() -> list[str]:
    """Each code that has an explanation: warnings in the order of the page, then families and next steps."""
    return list({**_warnings(), **_failures(current_language())})


def explanation_parts(shown: Explanation) -> list[Part]:
    """The explanation for people."""
    kind = {"warning": tr("warning"), "failure": tr("failure"), "note": tr("note")}[shown.kind]
    title = tr("{kind} {code}: {subject}", kind=kind, code=shown.code, subject=shown.subject)
    return [Heading(title, "title"), Sentence(shown.text)]


def list_of_codes() -> list[Part]:
    """All codes by their subjects."""
    by_section: dict[str, list[str]] = {}
    for one in _warnings().values():
        by_section.setdefault(one.subject, []).append(one.code)
    by_section[tr("Failures")] = list(failure_words(current_language())["failure_names"])
    return [
        part
        for section, codes in by_section.items()
        for part in (Heading(section), Sentences([Sentence(", ".join(codes))]))
    ]


@cache
def _warnings() -> dict[str, Explanation]:
    """Each warning of the page, in its order."""
    page = _IN_WHEEL if _IN_WHEEL.exists() else _IN_REPOSITORY
    return {one.code: one for one in _items(page.read_text(encoding="utf-8"))}


def _items(page: str) -> Iterator[Explanation]:
    section = ""
    for match in _SECTION_OR_ITEM.finditer(page):
        section = match["section"] or section
        if match["codes"]:
            text = _LINK.sub(r"\1", " ".join(match["text"].split()))
            for code in regex.findall(r"`(\w+)`", match["codes"]):
                yield Explanation(code, "warning", section, text)


@cache
def _failures(language: str) -> dict[str, Explanation]:
    """Each family and next step of the table, in the language in use; a signature leads to the one of its failure."""
    table = failure_words(language)
    causes = {**table["failures_by_remedy"], **table["failures"]}
    steps = table["remedies"]
    named = {
        code: Explanation(code, "failure", causes.get(code, code), steps.get(code, tr("read the line of the cause")))
        for code in {**causes, **steps}
    }
    signatures = {row["id"]: named[row["remedy"]] for row in rows("signature") if row.get("remedy") in named}
    return {**named, **signatures}
