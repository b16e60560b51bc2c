"""Findings as data: what must be read with the numbers, and where each value is from. Codes and fields, no sentence.

``analysis.present.words`` puts them into words, in every language.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Literal

from logparse.light_dataclass import dataclass, field

Level = Literal["info", "warning"]


@dataclass(frozen=True)
class Note:
    """One thing that must be read with the numbers: a code, and the values of this case.

    A field holds a number, a text of the log, a name, a code of another table of words, an Origin, another Note, or a
    list of these; never a sentence.
    """

    code: str
    level: Level = "warning"
    fields: Mapping[str, Any] = field(default_factory=dict)


def warning(code: str, /, **fields: Any) -> Note:
    """A Note that changes how far a number can be trusted."""
    return Note(code, "warning", fields)


def info(code: str, /, **fields: Any) -> Note:
    """A Note that explains a number."""
    return Note(code, "info", fields)


def warn_caller(note: Note) -> None:
    """Warn a caller from Python, where no screen puts ``note`` into words."""
    warnings.warn(f"{note.code}: {dict(note.fields)}", stacklevel=3)


OriginKind = Literal[
    "log", "step lines", "flag", "environment", "model", "config", "derived", "assumed", "appearance", "not set", "text"
]


# Before the name of a setting whose absence gives the value, in the ``rule`` of an Origin.
WITHOUT = "without "


@dataclass(frozen=True)
class Origin:
    """Where a value is from.

    ``log``: the line ``line`` of ``file`` (None: of the run's only file), with the setting ``rule`` where the value is
    not the text itself. ``step lines``: every step line prints it. ``flag``: ``rule`` is the flag.
    ``environment``: ``rule`` is the variable. ``model``: the catalogue's model ``rule``. ``config``: the file ``file``,
    and its line where somebody looked for it. ``derived``: by the derivation ``rule``. ``assumed``: no source gives
    it. ``appearance``: how the log looks. ``not set``: no setting gives it. ``text``: words of an old history that
    are no longer defined; ``rule`` holds them.
    """

    kind: OriginKind
    file: str | None = None
    line: int | None = None
    rule: str | None = None

    def __str__(self) -> str:
        """What errors name it by, the same in every language."""
        if self.kind == "log":
            return f"{PurePath(self.file).name}:{self.line}" if self.file else f"line {self.line}"
        return {"flag": self.rule, "environment": self.rule, "model": f"--model {self.rule}", "config": self.file}.get(
            self.kind
        ) or self.kind


def flag(name: str) -> Origin:
    """The origin of what a flag of the command line gives."""
    return Origin("flag", rule=name)
