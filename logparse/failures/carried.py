"""A traceback on one line: in the message of another exception, or as a list of Python with a string for each part."""

from __future__ import annotations

from collections.abc import Sequence

from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

# Its line breaks are escaped, and its exception is last.
_ESCAPED = lazy_regex(
    r"\\nTraceback \(most recent call last\):(?P<frames>.*)"
    r"\\n(?P<last>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b: ?.*?)(?:\\n)*['\"]?\)?\s*$"
)
# The list, and a string in it.
_LIST = lazy_regex(r"\[(?=['\"]Traceback \(most recent call last\):(?:\\n)?['\"])")
_STRING = lazy_regex(r"'(?P<text>(?:[^'\\]|\\.)*)'|\"(?P<text>(?:[^\"\\]|\\.)*)\"")
# What a string of such a list begins with that is no exception.
_NO_EXCEPTION = ("Traceback", " ", "\n")


@dataclass(frozen=True)
class Carried:
    """The lines of a traceback above its exception, the exception with its message, and what is before the list."""

    frames: Sequence[str]
    raised: str
    before: str | None = None


def carried_by(printed: str) -> Carried | None:
    """The traceback on a line; None where it has none."""
    begin = _LIST.search(printed)
    if begin is not None:
        return _listed(printed, begin.start())
    escaped = _ESCAPED.search(printed)
    return Carried(escaped["frames"].split("\\n"), escaped["last"].replace("\\'", "'")) if escaped else None


def _listed(printed: str, begin: int) -> Carried | None:
    parts = [_unescaped(string["text"]) for string in _STRING.finditer(printed, begin)]
    at = max((at for at, part in enumerate(parts) if not part.startswith(_NO_EXCEPTION)), default=None)
    if at is None:
        return None
    frames = [line for part in parts[:at] for line in part.splitlines()]
    return Carried(frames, parts[at].strip().split("\n")[0], printed[:begin])


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"')
