"""The calls of the traceback above an exception: where it was raised, and from which line of one's own code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import regex

from logparse.failures.line_kinds import LONGEST_REMEMBERED
from logparse.inputs.writers import read_prefixes, writer_of
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, replace
from logparse.masking import mask, mask_text

# Lines of a traceback that are read, and lines between two of its calls or the last one and its exception, at most.
LONGEST, NEAR = 100, 12
# Lines that are remembered.
MOST_REMEMBERED = 2**10
# Lines over which one call may be wrapped.
MOST_PARTS = 3
# Characters of a line of code, and blanks before it and before a call of a traceback, at least.
LONGEST_CODE, INDENT = 100, 3
# A call as Python prints it, and as rich does in a box.
_CALL = lazy_regex(
    r'^(?:> )?File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<name><?[\w.]+>?)'
    r"|^│ (?P<path>(?:/|[A-Z]:\\)?[^\s:│]+\.py):(?P<line>\d+) in (?P<name><?[\w.]+>?) +│$"
)
# What a text holds in which a call begins.
_OF_CALL = ("File", "│")
# The line of code of a call in the box.
_BOXED_CODE = lazy_regex(r"^│ ❱ *\d+ │ *(?P<code>.*?) *│$")
# Where a traceback begins, and what prints one of code that did not fail.
_BEGIN, _NO_FAILURE = "Traceback (most", lazy_regex(r"^Stack \(most|Traceback of forward")
# An exception; the name of one alone, or before its message.
_RAISED = lazy_regex(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b(?!\()")
_NAMED = lazy_regex(r"^[A-Za-z_][\w.]*(?::|$)")
# The number of a line in an editor, before what was copied from it.
_OF_EDITOR = lazy_regex(r"^\d{1,6} {3,}")
# What Python prints below a line of code, and a box at its sides.
_MARKS = lazy_regex(r"^[\s~^|│╰╯╭─…]*$|^\[Previous line repeated|^\.\.\.<\d+ lines>\.\.\.$")
# What is below a call without its code: marks, or an exception that another process tore.
_NO_CODE = lazy_regex(rf"{_MARKS.pattern}|\[Errno")
# A library: what Python or pip installed, Cython compiled or torch.compile wrote. Its path is shown from there on.
_LIBRARY = lazy_regex(
    r"^.*(?:[/\\](?:site-packages|dist-packages|[Ll]ib(?:64|32)?[/\\]python\d[\d.]*)[/\\]|\\[Ll]ib\\)|^(?=<)"
    r"|^.*(?=torchinductor_)|^(?=.*\.p[xy][idx]$)"
)
# A call that only passes on what it was called with.
_PASSES_ON = lazy_regex(r"\(\*args, \*\*kw(?:arg)?s\)$")
# A path of one's own code is shown by its last part, and of a package with that before it.
_LAST_PART = lazy_regex(r"(?:[^/\\]+[/\\](?=__init__\.py$))?[^/\\]+$")
# Code that is about secrets, and a text in it that may be one.
_OF_SECRETS = lazy_regex(r"(?i)key|token|secret|passw|pwd|login|auth|cred|connect")
_LITERAL = lazy_regex(r"""(?<=(['"]))(?=[^'"]*\d)[^'"]{8,}(?=\1)""")


@dataclass(frozen=True)
class Frame:
    """One call of a traceback: file, line number in it, function and line of code; ``own`` if it is of no library."""

    path: str
    line: int
    name: str
    code: str | None
    own: bool


def frames_above(texts: Sequence[str], raised: str, below: Sequence[str] = ()) -> tuple[Frame, ...]:
    """The call that led to an exception and the one that raised it, of the traceback right above it.

    ``texts`` are the lines before the exception ``raised``, ``below`` those after it; lines of other processes do not
    count. Calls of Python's own library count only without others. The first call is of one's own code, in another file
    than the second, else of another library; where there is none, the second is the only one. None where no traceback
    ends there, or where several processes without a prefix print theirs at once.
    """
    if not any(mark in text for text in texts[-LONGEST:] for mark in _OF_CALL):
        return ()
    writer = writer_of(raised)
    read = ((_line if len(text) <= LONGEST_REMEMBERED else _line_of)(text, writer) for text in texts[-LONGEST:])
    own = [line for line in read if line is not None]
    lines = _with_whole_calls(own)
    calls = list(_calls_upward(lines))
    if calls and _are_mixed(lines):
        near = [*texts[-LONGEST:], raised, *below[:LONGEST]]
        calls = [_with_sure_code(call, near) for call in calls] if _is_repeated(calls[0], near) else []
    if not calls:
        return ()
    calls = [call for call in calls if call.own or "/" in call.path] or calls
    last = calls[0]
    package = last.path.split("/")[0]
    ways = [call for call in calls if not _PASSES_ON.search(call.code or "")]
    if last.own:
        led = next((call for call in ways if call.own and call.path != last.path), last)
    else:
        of_user = next((call for call in calls if call.own), None)
        led = of_user or next((call for call in ways if call.path.split("/")[0] != package), last)
    return (last,) if led == last else (led, last)


@dataclass(frozen=True)
class _Text:
    """A line without its prefixes, and whether it is indented as code and calls are."""

    bare: str
    indented: bool


def _line_of(text: str, writer: tuple[object, ...]) -> _Text | None:
    """``text`` without its prefixes; None of another process than ``writer``."""
    line = read_prefixes(text)
    if writer_of(text, line) != writer:
        return None
    bare = line.bare
    lead = text[: len(text) - len(bare)]
    editor = _OF_EDITOR.match(bare)
    return _Text(bare.rstrip(), editor is not None or len(lead) - len(lead.rstrip()) >= INDENT)


# Lines are above many of the exceptions of one failure.
_line = lru_cache(MOST_REMEMBERED)(_line_of)


def _are_mixed(lines: Sequence[_Text]) -> bool:
    """Whether several tracebacks begin before the first exception above ends one."""
    begun = 0
    for line in reversed(lines):
        if _RAISED.match(line.bare):
            break
        begun += line.bare.startswith(_BEGIN)
    return begun > 1


def _is_repeated(call: Frame, texts: Sequence[str]) -> bool:
    """Whether several processes print this call."""
    place = f'", line {call.line}, in {call.name}'
    return sum(place in text and call.path.split("/")[-1] in text for text in texts) > 1


def _with_sure_code(call: Frame, texts: Sequence[str]) -> Frame:
    """``call`` without a line of code that only one process prints below it: it may be of another call."""
    place = f'", line {call.line}, in {call.name}'
    below = sum(place in text and (call.code or "") in code for text, code in pairwise(texts))
    return call if below > 1 else replace(call, code=None)


def _with_whole_calls(lines: Sequence[_Text]) -> list[_Text]:
    """``lines`` in which a call that rich wrapped over several lines is one."""
    whole: list[_Text] = []
    at = 0
    while at < len(lines):
        counts = range(2, MOST_PARTS + 1) if _begins(lines[at]) else ()
        n = next((n for n in counts if _CALL.match(_joined(lines, at, n))), 1)
        whole.append(lines[at] if n == 1 else _Text(_joined(lines, at, n), True))
        at += n
    return whole


def _begins(line: _Text) -> bool:
    """Whether a call begins on this line and does not end there."""
    return line.bare.startswith(("File", "> File")) and _CALL.match(line.bare) is None


def _joined(lines: Sequence[_Text], at: int, n: int) -> str:
    return " ".join(line.bare for line in lines[at : at + n])


def _calls_upward(lines: Sequence[_Text]) -> list[Frame]:
    """The calls of the traceback that ends with ``lines``, the innermost first; none of code that did not fail."""
    calls: list[Frame] = []
    last = len(lines)
    for at in range(len(lines) - 1, -1, -1):
        call = _CALL.match(lines[at].bare)
        if call is not None:
            calls.append(_frame(call, lines[at + 1 : last]))
            last = at
        elif last - at > NEAR or not _may_be_code(lines, at):
            return [] if _NO_FAILURE.search(lines[at].bare) else calls
    return calls


def _may_be_code(lines: Sequence[_Text], at: int) -> bool:
    """Whether a line of a traceback is code or marks; where blanks are lost, code is right below a call."""
    line = lines[at]
    if line.indented or line.bare.startswith("│") or _MARKS.match(line.bare):
        return not line.bare.startswith(_BEGIN)
    below = at > 0 and _CALL.match(lines[at - 1].bare) is not None
    return below and not _NAMED.match(line.bare)


def _frame(call: regex.Match[str], below: Sequence[_Text]) -> Frame:
    own = _LIBRARY.match(call["path"]) is None
    path = _LAST_PART.search(call["path"]) if own else None
    shown = path[0] if path else _LIBRARY.sub("", call["path"]).replace("\\", "/")
    return Frame(mask_text(shown), int(call["line"]), call["name"], _code(call, below), own)


def _code(call: regex.Match[str], below: Sequence[_Text]) -> str | None:
    """The line of code of a call, printed below it or, in a text without line breaks, after it."""
    if call[0].startswith("│"):
        boxed = (code for line in below if (code := _BOXED_CODE.match(line.bare)))
        return next((_shown(code["code"]) for code in boxed), None)
    texts = (call.string[call.end() :].strip(), *(line.bare for line in below[:1] if not line.bare.startswith(_BEGIN)))
    return next((_shown(_OF_EDITOR.sub("", text)) for text in texts if text and not _NO_CODE.match(text)), None)


def _shown(code: str) -> str:
    """``code`` without secrets: in a line that is about them, any text with a digit may be one."""
    if _OF_SECRETS.search(code):
        code = _LITERAL.sub(lambda match: mask(match[0]), code)
    return mask_text(code)[:LONGEST_CODE]
