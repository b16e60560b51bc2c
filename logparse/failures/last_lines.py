"""The last lines of a log that shows no failure: values that are lost, or a traceback without its exception."""

from __future__ import annotations

from itertools import takewhile

import regex

from logparse.inputs.blocks import TextBlock

# A loss or the norm of gradients, as trainers print it: "lm loss: 2.1E+00 |", "'grad_norm': nan,", "loss = inf".
_VALUE = regex.compile(
    r"(?i)\b(?P<name>(?:lm |train_)?loss|grad(?:ient)?[_ ]?norm)['\"]?(?:\s*[:=]\s*|\s)['\"(]?"
    r"(?P<value>[-+]?(?:nan|inf(?:inity)?\b|\d[\d.]*(?:e[-+]?\d+)?))"
)
_LOST = regex.compile(r"(?i)[-+]?(?:nan|inf)")
# DeepSpeed's loss scale after so many overflows that every gradient is multiplied by 0.
_NO_SCALE = regex.compile(r"OVERFLOW!.{0,80}reducing to 0(?![.\d])")
# Python's lines above an exception, and lines of the end of a log in which one is looked for.
_TRACEBACK, _FRAME = "Traceback (most", regex.compile(r'\bFile(?: ".*|"?)$|^(?:\S+ ?)?\s{4,}\S')
LAST_LINES = 30


def last_lost(tail: TextBlock) -> tuple[int, str] | None:
    """Line and text from which on the values of ``tail`` are not finite, and no chance of a scaled loss.

    One norm that is not finite is a step that a loss scaler skips; a loss that is not finite or 0 with it, two
    such lines in a row, or a loss scale of 0 are not.
    """
    rows = list(tail.matching(r"(?i)loss|norm").select("line_number", "text").iter_rows())
    if rows and _NO_SCALE.search(rows[-1][1]):
        return rows[-1]
    printed = [(number, text, values) for number, text in rows if (values := _values(text))]
    if not printed or not _is_lost(printed[-1][2]):
        return None
    lost = list(takewhile(lambda row: _is_lost(row[2]), reversed(printed)))
    losses = [value for name, value in printed[-1][2] if "loss" in name]
    if len(lost) == 1 and not any(_LOST.match(value) or float(value) == 0 for value in losses):
        return None
    return lost[-1][0], lost[-1][1]


def torn_traceback(tail: TextBlock) -> tuple[int, str] | None:
    """Line and text where the last traceback of ``tail`` begins, if the log ends before its exception."""
    texts = tail.texts.tail(LAST_LINES).to_list()
    while texts and not texts[-1].strip():
        texts.pop()
    begins = [at for at, text in enumerate(texts) if _TRACEBACK in text]
    if not begins or not (_TRACEBACK in texts[-1] or _FRAME.search(texts[-1])):
        return None
    at = begins[-1]
    return tail.first + tail.count - min(LAST_LINES, tail.count) + at, texts[at]


def _values(text: str) -> list[tuple[str, str]]:
    return [(match["name"].lower(), match["value"]) for match in _VALUE.finditer(text)]


def _is_lost(values: list[tuple[str, str]]) -> bool:
    return any(_LOST.match(value) for _, value in values)
