"""The lines that show how a run ended: the signatures of the table of failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import regex

from logparse.failures.general import general_words, words_for
from logparse.failures.line_kinds import blurred, kind_of, names_digit
from logparse.failures.table import rows
from logparse.light_dataclass import dataclass, replace

# What a line of each role is worth, the most informative first; the other roles are never quoted.
JUDGED = ("root", "explains", "finding", "consequence", "error", "frame")
# How sure a cause is, by its role alone.
GRADES = {"root": "established", "explains": "hypothesis", "finding": "unknown", "consequence": "hypothesis"}
GRADES |= {"end": "established"}
# Numbers of the signals that launchers name, on Linux: Python prints ``Signals.SIGHUP``.
_SIGNALS = {
    "SIGHUP": 1,
    "SIGINT": 2,
    "SIGQUIT": 3,
    "SIGILL": 4,
    "SIGABRT": 6,
    "SIGBUS": 7,
    "SIGKILL": 9,
    "SIGUSR1": 10,
    "SIGSEGV": 11,
    "SIGUSR2": 12,
    "SIGTERM": 15,
}
# A shell adds this to the number of a signal, and torchrun prints its negative.
_SHELL = 128


@dataclass(frozen=True)
class Signature:
    """One kind of line; ``rules/README.md`` explains each field."""

    id: str
    family: str
    remedy: str
    sample: tuple[str, ...]
    role: str = "root"
    marks: tuple[str, ...] = ()
    pattern: str = ""
    grade: str = ""
    collect: str = ""
    state: str = ""
    unless: str = ""
    find: str = ""
    traits: tuple[str, ...] = ()
    general: bool = False

    @cached_property
    def compiled(self) -> regex.Pattern[str]:
        """The pattern, or any of the marks."""
        return regex.compile(self.pattern or "|".join(map(regex.escape, self.marks)))

    @cached_property
    def blurred(self) -> Signature:
        """What fits the kind of each line that this signature fits; itself where it names no digit."""
        pattern, find = blurred(self.pattern), blurred(self.find)
        if (pattern, find) == (self.pattern, self.find) and not names_digit("".join(self.marks)):
            return self
        return replace(self, marks=tuple(map(kind_of, self.marks)), pattern=pattern, find=find)

    def may_fit(self, text: str) -> bool:
        """Whether ``text`` holds what each text has that the pattern fits."""
        return any(mark in text for mark in self.marks) or bool(self.find and regex.search(self.find, text))

    def search(self, text: str) -> regex.Match[str] | None:
        """What the pattern finds in ``text``."""
        return self.compiled.search(text) if self.may_fit(text) else None


@dataclass(frozen=True)
class Meaning:
    """What a line says of the run's end: that of its signature, or that of the exit code that it prints."""

    signature: str
    family: str
    role: str
    grade: str
    remedy: str
    collect: str
    state: str
    unless: str
    general: bool
    traits: tuple[str, ...]


# The fields of a signature that its meaning has too.
_SHARED = ("family", "role", "grade", "remedy", "collect", "state", "unless", "general", "traits")


def meaning_of(signature: Signature, code: int | None, messages: Sequence[str] = ()) -> Meaning:
    """The meaning of a line with ``signature`` that prints the exit code ``code``, or says one of ``messages``."""
    plain = Meaning(signature.id, *(getattr(signature, name) for name in _SHARED))
    if signature.general:
        return by_words(plain, *messages)
    by_code = _exit_codes().get(str(code)) if signature.role == "finding" else None
    return plain if by_code is None else replace(plain, **by_code)


def by_words(plain: Meaning, *messages: str) -> Meaning:
    """``plain`` with what words in general use say of ``messages``, the narrowest; a line only logged stays one."""
    known = [entry for message in messages if (entry := words_for(message)) is not None]
    found = min(known, key=general_words().index, default=None)
    if found is None:
        return plain
    logged = plain.role == "error"
    role, grade = ("error", "hypothesis") if logged else (found.role, found.grade)
    if found.family == "exception":
        role, grade = plain.role, plain.grade
    return replace(plain, family=found.family, role=role, grade=grade, remedy=found.remedy)


def exit_code(code: str | None, signal: str | None) -> int | None:
    """An exit code as Python prints it: that of a process that a signal ended is the signal's negative number."""
    if signal is not None:
        known = int(signal) if signal.isdigit() else _SIGNALS.get(signal)
        return None if known is None else -known
    if code is None:
        return None
    number = int(code)
    return _SHELL - number if _SHELL < number < _SHELL + 32 else number


@cache
def signatures() -> tuple[Signature, ...]:
    """All signatures, in the order in which they count."""
    return tuple(Signature(**{"grade": _grade_of(row), **row}) for row in rows("signature"))


def _grade_of(row: Mapping[str, Any]) -> str:
    return GRADES.get(row.get("role", "root"), "unknown")


# Remedies of last lines that no signature knows: a log that ends inside a traceback, or whose values are not finite.
TORN_TRACEBACK, LOST_VALUES, NEVER_FINITE = "torn_traceback", "lost_values", "never_finite"
# That of an exception of the code that reads the data.
DATA_CODE = "data_code"


@cache
def _exit_codes() -> Mapping[str, Mapping[str, Any]]:
    """What a finding with an exit code means: a shell adds 128 to the number of a signal."""
    return {row.pop("code"): {"role": "root"} | row for row in rows("exit")}
