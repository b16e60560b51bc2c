"""Codes to sentences, in every language: the only module that puts a finding into words.

``en.toml`` and ``zh.toml`` in this folder hold a table of words for each kind of code, the table of failures those of
failures. A template takes the fields of
its finding by name. After a colon comes a form of FORMS, the table in which a code is looked up, or a format spec of
``str.format``. A list is shown with commas between its parts, each in that form, or with a sign of JOINED.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from analysis.present.words.forms import FORMS
from logparse.failures.table import failure_words
from logparse.findings import WITHOUT, Note, Origin
from logparse.language import current_language, msg, tr, visible
from logparse.package_tables import read_table

if TYPE_CHECKING:
    from logparse.context.dialects import Framework

JOINED = {"spaced": " ", "product": " x ", "semicolon": msg("; "), "alternatives": msg("; or ")}


def say(note: Note) -> str:
    """``note`` as a sentence in the language in use."""
    return fill("notes", note.code, note.fields)


def clause(note: Note) -> str:
    """A warning in one clause of the first screen."""
    return fill("clauses", note.code, note.fields)


def short_cause(note: Note) -> str:
    """The cause of a printed rate that differs, in a few words; empty where only a sentence can say it."""
    return words(current_language())["causes"].get(note.code, "")


def sentences_of(notes: Iterable[Note]) -> str:
    """Findings that are parts of one sentence."""
    return tr("; ").join(map(say, notes))


def describe_origin(origin: Origin) -> str:
    """Where a value is from, in the language in use."""
    if origin.kind == "derived":
        return word("derivations", str(origin.rule))
    of_log = origin.kind == "log"
    if origin.kind == "config" and origin.line is not None:
        return fill("origins", "config line", {"file": origin.file, "line": origin.line})
    setting = " setting" if of_log and origin.rule else ""
    of_a_file = " of a file" if of_log and origin.file else ""
    if of_log and (origin.rule or "").startswith(WITHOUT):
        setting = " without"
    fields = {
        "line": origin.line,
        "file": origin.file,
        "name": PurePath(origin.file or "").name,
        "rule": origin.rule and origin.rule.removeprefix(WITHOUT),
    }
    return fill("origins", f"{origin.kind}{setting}{of_a_file}", fields)


def framework_text(framework: Framework) -> str:
    """Who printed a log, as far as that is known."""
    return " ".join(tr(part) for part in (framework.name, framework.version) if part) or tr("unknown framework")


def evidence_text(framework: Framework) -> str:
    """How it is known who printed a log."""
    return tr(" and ").join(map(say, framework.evidence))


def word(table: str, code: str) -> str:
    """What ``code`` of ``table`` is called, in the language in use."""
    return words(current_language())[table][code]


def fill(table: str, code: str, fields: Mapping[str, Any]) -> str:
    """The template of ``code`` with ``fields`` in it."""
    return visible(_Filler().vformat(word(table, code), (), fields))


@cache
def words(language: str) -> dict[str, dict[str, str]]:
    """Every table of words of a language."""
    return {**read_table(Path(__file__).parent / f"{language}.toml"), **failure_words(language)}


class _Filler(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        """One field: a list part by part, a finding in its words, a code in its table's, a number in its form."""
        if isinstance(value, Sequence) and not isinstance(value, str) and format_spec not in FORMS:
            sign, form = (tr(JOINED[format_spec]), "") if format_spec in JOINED else (tr(", "), format_spec)
            return sign.join(self.format_field(part, form) for part in value)
        if isinstance(value, Note):
            return say(value)
        if isinstance(value, Origin):
            return describe_origin(value)
        if format_spec in FORMS:
            return FORMS[format_spec](value)
        if format_spec in words("en"):
            return word(format_spec, value)
        text = str(super().format_field(value, "" if isinstance(value, datetime | None) else format_spec))
        # In English a blank parts a number from the percent sign.
        return f"{text[:-1].rstrip()} %" if text.endswith("%") and current_language() == "en" else text
