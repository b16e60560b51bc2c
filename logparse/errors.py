"""Every error a user can meet. Each says the problem, where it is, and what to try, without secrets.

LogparseError
├── UsageError          exit 2: flags that contradict each other, a name nobody knows
├── InputError          exit 2: a file that is missing, unreadable or not a log
│   ├── SeveralRunsError  exit 2: files that are not one run
│   └── StrictError       exit 2: damage or an impossible figure, with --strict
├── NoStepLineError     exit 3: text without one line of a known format
└── InsufficientDataError  exit 4: too little data for a verdict
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, ClassVar

from logparse.language import msg, tr, visible

# What the system says most often where a file cannot be read or written.
REASONS = (
    msg("No such file or directory"),
    msg("Permission denied"),
    msg("Is a directory"),
    msg("Not a directory"),
    msg("File exists"),
    msg("File name too long"),
    msg("No space left on device"),
    msg("Read-only file system"),
    msg("Input/output error"),
)


class LogparseError(Exception):
    """Base of all expected errors; caught once, at the top of the command line."""

    exit_code: ClassVar[int] = 2

    def __init__(self, problem: str, *, where: str | None = None, remedy: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = where
        self.remedy = remedy
        self.detail = ""  # one more line, which who prints the error may set
        self.run = ""  # the name of the run, set where many are read

    def __str__(self) -> str:
        lines = [self.problem, f"  {self.detail}"] if self.detail else [self.problem]
        if self.where:
            lines.append(tr("  where: {place}", place=self.where))
        if self.remedy:
            lines.append(tr("  try:   {remedy}", remedy=self.remedy))
        # Most commands print no error, and help none.
        from logparse.masking import mask_text

        return visible(mask_text("\n".join(lines)))


class UsageError(LogparseError):
    """The command was called with something it cannot use."""


class InputError(LogparseError):
    """A file cannot be read as a log."""


class SeveralRunsError(InputError):
    """Files that are read as one run are of several."""


class StrictError(InputError):
    """--strict allows no damaged line and no impossible figure."""


def without_each(errors: Iterable[LogparseError]) -> None:
    """Let ``errors`` of runs that --each made not advise --each."""
    for error in errors:
        if isinstance(error, SeveralRunsError):
            error.remedy = tr("name only files of one run; for a folder of several runs, pass that folder itself")


class NoStepLineError(LogparseError):
    """The text was read, and no line of it is a step line of a known format; its ``ending`` may be known."""

    exit_code = 3
    # An Ending, whose type is in a room above this one.
    ending: Any = None


class InsufficientDataError(LogparseError):
    """There is too little data for the verdict that was asked for."""

    exit_code = 4


def reason_of(error: OSError) -> str:
    """What the system says of a file that cannot be read or written."""
    return tr(error.strerror or str(error))


# A longer list of names is no help in an error: the command that lists them is named instead.
MOST_NAMES = 5


def use_one_of(names: Iterable[str], command: str) -> str:
    """A remedy: all ``names`` where they are few, else the ``command`` that lists them."""
    listed = list(names)
    if len(listed) <= MOST_NAMES:
        return tr("use one of {names}", names=", ".join(listed))
    return tr("`{command}` lists all {n}", command=command, n=len(listed))


def unknown_name(kind: str, name: str, known: Iterable[str], remedy: str, of: str | None = None) -> UsageError:
    """Make the error for a name that is in no table, with its nearest neighbours in the remedy.

    ``kind`` is a marked message, ``remedy`` in the language in use. The neighbours are those of ``of``,
    where that is not the ``name``.
    """
    spelled = {k.lower(): k for k in known}
    near = [spelled[k] for k in difflib.get_close_matches((of or name).lower(), spelled, n=4, cutoff=0.5)]
    hint = tr("did you mean {names}? ", names=", ".join(near)) if near else ""
    return UsageError(tr("unknown {kind} {name!r}", kind=tr(kind), name=name), remedy=hint + remedy)
