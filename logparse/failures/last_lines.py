"""The last lines of a log that shows no failure: values that are lost, or a traceback without its exception."""

from __future__ import annotations

from itertools import takewhile

from logparse.failures.scan import BAR_END
from logparse.inputs.blocks import TextBlock
from logparse.inputs.writers import read_prefixes
from logparse.lazy_regex import lazy_regex

# A loss or the norm of gradients, as trainers print it: "lm loss: 2.1E+00 |", "'grad_norm': nan,", "loss = inf".
_VALUE = lazy_regex(
    r"(?i)\b(?P<name>(?:lm |[a-z]{1,12}_)?loss|grad(?:ient)?[_ ]?norm)['\"]?(?:\s*[:=]\s*|\s)['\"(]?"
    r"(?P<value>[-+]?(?:nan|inf(?:inity)?\b|\d+(?:\.\d*)?(?:e[-+]?\d+)?))"
)
# "audio_emb: nan=True", "x contains NaN"; in a pattern that polars reads too.
_IS_NAN = r"(?i)\bnan\b['\"]? ?[=:] ?true\b|\b(?:is|has|contains) nan\b"
_EVALUATIONS = ("eval", "val", "test")
_LOST = lazy_regex(r"(?i)[-+]?(?:nan|inf)")
# A loss scale after so many overflows that every gradient is multiplied by 0, or by next to nothing.
_NO_SCALE = lazy_regex(
    r"(?i)OVERFLOW!.{0,80}reducing to 0(?![.\d])|overflow.{0,80}loss scale to:? (?:0\.000\d+|[\d.]+e-\d+)"
)
# The last lines of a log, in which a logged error is a failure, and a traceback is looked for.
LAST_LINES = 30
# Python's lines above an exception, and an exception.
_TRACEBACK, _FRAME = "Traceback (most", lazy_regex(r'\bFile(?: ".*|"?)$|^(?:\S+ ?)?\s{4,}\S')
# An evaluation begins, or is at one of its batches.
_EVALUATES = lazy_regex(
    r"(?i)^\W*(?:running )?(?:evaluat(?:ing|ion)|validat(?:ing|ion)|testing)\b"
    r"(?!.*(?:\d\.\d|done|complete|finish|took))"
)
_COUNTED = lazy_regex(r"(?<![\d.])(?P<done>\d{1,7})\s*/\s*(?P<of>\d{1,7})(?![\d.])")
# A line that says something, and one of a traceback or of the code below a warning.
_SAYS = lazy_regex(r"\p{L}{3}|\d%")
_IS_CODE = lazy_regex(r'Traceback \(|\bFile "|\bwarn(?:ings\.warn)?\(|^(?:\S+ |\([^)]*\) ?)?\s{4}\S')
_RAISED = lazy_regex(r"(?:^|[\])>:] ?)(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b")


def last_lost(tail: TextBlock, evaluated: bool = False) -> tuple[int, str] | None:
    """Line and text from which on the values of ``tail`` are not finite, and no chance of a scaled loss.

    Losses of evaluations count only if ``evaluated``: data that are too few for a batch have none.

    One norm that is not finite is a step that a loss scaler skips; a loss that is not finite or 0 with it, two
    such lines in a row, or a loss scale of 0 are not.
    """
    rows = tail.matching(r"(?i)loss|norm").select("line_number", "text").rows()
    if rows and _NO_SCALE.search(rows[-1][1]):
        return rows[-1]
    printed = ((number, text, values) for number, text in reversed(rows) if (values := _values(text, evaluated)))
    lost = list(takewhile(lambda row: _is_lost(row[2]), printed))
    losses = [value for name, value in lost[0][2] if "loss" in name] if lost else []
    if len(lost) < 2 and not any(_LOST.match(value) or float(value) == 0 for value in losses):
        return None
    return lost[-1][:2]


def never_finite(tail: TextBlock) -> bool:
    """Whether none of the losses and norms of ``tail`` is finite, but for a loss of 0."""
    texts = tail.matching(r"(?i)loss|norm")["text"]
    printed = [value for text in texts for _, value in _values(text, evaluated=False)]
    return bool(printed) and all(_LOST.match(value) or float(value) == 0 for value in printed)


def first_nan(tail: TextBlock, line: int) -> tuple[int, str] | None:
    """Number and text of the first line of ``tail``, before ``line``, that says of anything that it is NaN."""
    rows = tail.matching(_IS_NAN).select("line_number", "text").rows()
    return next((row for row in rows if row[0] < line), None)


def last_printed(tail: TextBlock) -> tuple[int, str] | None:
    """Number and text of the last line of ``tail`` that is not empty, of one with bars what was drawn last."""
    texts = tail.texts.tail(LAST_LINES).to_list()
    at = max((at for at, text in enumerate(texts) if text.strip()), default=None)
    if at is None:
        return None
    return tail.first + tail.count - len(texts) + at, texts[at].rstrip("\r ").rsplit("\r", 1)[-1].strip()


def open_evaluation(tail: TextBlock, after: int) -> tuple[int, str] | None:
    """Number and text of the last line of ``tail``, if it is of an evaluation that began below line ``after``."""
    last = last_printed(tail)
    if last is None or last[0] <= after:
        return None
    own = tail.texts.tail(min(LAST_LINES, tail.first + tail.count - 1 - after)).to_list()
    if not any(_EVALUATES.search(read_prefixes(text).bare) for text in own):
        return None
    counted = _COUNTED.search(last[1])
    if counted is not None:
        return last if int(counted["done"]) < int(counted["of"]) else None
    return last if _EVALUATES.search(read_prefixes(last[1]).bare) else None


def printed_before(tail: TextBlock, line: int) -> tuple[int, str] | None:
    """Number and text of what ``tail`` prints last before ``line``, or on it as a bar.

    Lines of code and of tables say nothing.
    """
    at = line - tail.first
    if not 0 <= at < tail.count:
        return None
    drawn = max((end.end() for end in BAR_END.finditer(tail.texts[at])), default=0)
    texts = [tail.texts[at][:drawn], *reversed(tail.texts[max(0, at - LAST_LINES) : at].to_list())]
    shown = ((line - n, text) for n, text in enumerate(texts) if _SAYS.search(text) and not _IS_CODE.search(text))
    return next(((number, text.rstrip("\r ").rsplit("\r", 1)[-1].strip()) for number, text in shown), None)


def torn_traceback(tail: TextBlock) -> tuple[int, str] | None:
    """Line and text where the last traceback of ``tail`` begins, if the log ends before its exception."""
    texts = tail.texts.tail(LAST_LINES).to_list()
    while texts and not texts[-1].strip():
        texts.pop()
    at = max((at for at, text in enumerate(texts) if _TRACEBACK in text), default=None)
    if at is None or not (_TRACEBACK in texts[-1] or _FRAME.search(texts[-1])) or any(map(_RAISED.search, texts[at:])):
        return None
    return tail.first + tail.count - min(LAST_LINES, tail.count) + at, texts[at]


def _values(text: str, evaluated: bool) -> list[tuple[str, str]]:
    found = ((match["name"].lower(), match["value"]) for match in _VALUE.finditer(text))
    return [(name, value) for name, value in found if evaluated or not name.startswith(_EVALUATIONS)]


def _is_lost(values: list[tuple[str, str]]) -> bool:
    return any(_LOST.match(value) for _, value in values)
