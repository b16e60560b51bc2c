"""The last values of a log that shows no failure: a run may go on for days after its loss is no longer a number."""

from __future__ import annotations

import regex

from logparse.inputs.blocks import TextBlock

# A loss or the norm of gradients, as trainers print it: "lm loss: 2.1E+00 |", "'grad_norm': nan,", "loss = inf".
_VALUE = regex.compile(
    r"(?i)\b(?P<name>(?:lm |train_)?loss|grad(?:ient)?[_ ]?norm)['\"]?\s*[:=]\s*['\"(]?"
    r"(?P<value>[-+]?(?:nan|inf(?:inity)?\b|\d[\d.]*(?:e[-+]?\d+)?))"
)
_LOST = regex.compile(r"(?i)[-+]?(?:nan|inf)")


def last_lost(tail: TextBlock) -> tuple[int, str] | None:
    """Line and text of the last values of ``tail``, where they are not finite and no chance of a scaled loss.

    One norm that is not finite is a step that a loss scaler skips; a loss that is not finite or 0 with it, or two
    such lines in a row, are not.
    """
    rows = tail.matching(r"(?i)loss|norm").select("line_number", "text").tail(8).iter_rows()
    printed = [(number, text, values) for number, text in rows if (values := _values(text))]
    if not printed or not _is_lost(printed[-1][2]):
        return None
    again = len(printed) > 1 and _is_lost(printed[-2][2])
    losses = [value for name, value in printed[-1][2] if "loss" in name]
    if not again and not any(_LOST.match(value) or float(value) == 0 for value in losses):
        return None
    return printed[-1][0], printed[-1][1]


def _values(text: str) -> list[tuple[str, str]]:
    return [(match["name"].lower(), match["value"]) for match in _VALUE.finditer(text)]


def _is_lost(values: list[tuple[str, str]]) -> bool:
    return any(_LOST.match(value) for _, value in values)
