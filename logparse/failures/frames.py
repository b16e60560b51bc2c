"""The calls of the traceback above an exception: where it was raised, and from which line of one's own code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from logparse.failures.prefixes import read_prefixes
from logparse.masking import mask_text

# Lines of a traceback that are read, and lines between its last call and its exception, at most.
LONGEST, NEAR = 100, 12
# Lines over which one call may be wrapped.
MOST_PARTS = 3
# Characters of a line of code.
LONGEST_CODE = 100
# A call as Python prints it, and as rich does in a box.
_CALL = regex.compile(
    r'^(?:> )?File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<name><?[\w.]+>?)'
    r"|^│ (?P<path>(?:/|[A-Z]:\\)?[^\s:│]+\.py):(?P<line>\d+) in (?P<name><?[\w.]+>?) +│$"
)
# The line of code of a call in the box.
_BOXED_CODE = regex.compile(r"^│ ❱ *\d+ │ *(?P<code>.*?) *│$")
# Where the traceback of another exception begins or ends.
_ANOTHER = regex.compile(
    r"^(?:Traceback \(most|╭─+ *Traceback|During handling of|The above exception was)"
    r"|^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b(?!\()"
)
# The number of a line in an editor, before what was copied from it.
_OF_EDITOR = regex.compile(r"^\d{1,6} {3,}")
# What Python prints below a line of code, and a box at its sides.
_MARKS = regex.compile(r"^[\s~^|│╰╯─…]*$|^\[Previous line repeated")
# A library: what Python or pip installed, Cython compiled or torch.compile wrote. Its path is shown from there on.
_LIBRARY = regex.compile(
    r"^.*[/\\](?:site-packages|dist-packages|[Ll]ib(?:64|32)?[/\\]python\d[\d.]*|Lib)[/\\]|^<"
    r"|^.*(?=torchinductor_)|^(?=.*\.p[xy][idx]$)"
)
# A call that only passes on what it was called with.
_PASSES_ON = regex.compile(r"\(\*args, \*\*kw(?:arg)?s\)$")
# A path of one's own code is shown by its last part, and of a package with that before it.
_LAST_PART = regex.compile(r"(?:[^/\\]+[/\\](?=__init__\.py$))?[^/\\]+$")


@dataclass(frozen=True)
class Frame:
    """One call of a traceback: file, line number in it, function and line of code; ``own`` if it is of no library."""

    path: str
    line: int
    name: str
    code: str | None
    own: bool


def frames_above(texts: Sequence[str], rank: int | None = None) -> tuple[Frame, ...]:
    """The call that led to an exception and the one that raised it, of the traceback above it.

    ``texts`` are the lines before the exception; those of other ranks than ``rank`` do not count. Calls of Python's own
    library count only without others. The first call is of one's own code, else of another library than the second;
    where the two are the same, or only one is known, it is the only one. None where no traceback ends there.
    """
    lines = [line for text in texts[-LONGEST:] if (line := _bare(text, rank)) is not None]
    calls = list(_calls_upward(_with_whole_calls(lines)))
    calls = [call for call in calls if call.own or "/" in call.path] or calls
    if not calls:
        return ()
    raised = calls[0]
    package = raised.path.split("/")[0]
    own = next((call for call in calls if call.own), None)
    others = (call for call in calls if call.path.split("/")[0] != package and not _PASSES_ON.search(call.code or ""))
    led = own or next(others, raised)
    return (raised,) if led == raised else (led, raised)


def _bare(text: str, rank: int | None) -> str | None:
    """``text`` without its prefixes; None of another rank."""
    line = read_prefixes(text)
    return None if rank is not None and line.rank not in (None, rank) else line.bare.rstrip()


def _with_whole_calls(lines: Sequence[str]) -> list[str]:
    """``lines`` in which a call that rich wrapped over several lines is one."""
    whole: list[str] = []
    at = 0
    while at < len(lines):
        n = next((n for n in range(2, MOST_PARTS + 1) if _begins(lines[at]) and _CALL.match(_joined(lines, at, n))), 1)
        whole.append(_joined(lines, at, n))
        at += n
    return whole


def _begins(line: str) -> bool:
    """Whether a call begins on this line and does not end there."""
    return line.startswith(("File", "> File")) and _CALL.match(line) is None


def _joined(lines: Sequence[str], at: int, n: int) -> str:
    return " ".join(lines[at : at + n])


def _calls_upward(lines: Sequence[str]) -> Iterator[Frame]:
    """The calls of the last traceback in ``lines``, the innermost first."""
    seen = False
    for at in range(len(lines) - 1, -1, -1):
        call = _CALL.match(lines[at])
        if call is not None:
            seen = True
            yield _frame(call, lines[at + 1 :])
        elif _ANOTHER.match(lines[at]) or (not seen and len(lines) - at > NEAR):
            return


def _frame(call: regex.Match[str], below: Sequence[str]) -> Frame:
    own = _LIBRARY.match(call["path"]) is None
    path = _LAST_PART.search(call["path"]) if own else None
    shown = path[0] if path else _LIBRARY.sub("", call["path"])
    return Frame(mask_text(shown), int(call["line"]), call["name"], _code(call, below), own)


def _code(call: regex.Match[str], below: Sequence[str]) -> str | None:
    """The line of code of a call, printed below it or, in a text without line breaks, after it."""
    boxed = call[0].startswith("│")
    rest = call.string[call.end() :].strip()
    if not boxed and rest:
        return mask_text(rest)[:LONGEST_CODE]
    for text in below:
        if _CALL.match(text) or _ANOTHER.match(text):
            return None
        if boxed and (code := _BOXED_CODE.match(text)):
            return mask_text(code["code"])[:LONGEST_CODE]
        if not boxed:
            return None if _MARKS.match(text) else mask_text(_OF_EDITOR.sub("", text))[:LONGEST_CODE]
    return None
