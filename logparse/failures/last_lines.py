"""The last lines of a log that shows no failure: values that are lost, or a traceback without its exception."""

from __future__ import annotations

from itertools import takewhile

from logparse.failures.scan import BAR_END
from logparse.inputs.blocks import TextBlock
from logparse.lazy_regex import lazy_regex

# A loss or the norm of gradients, as trainers print it: "lm loss: 2.1E+00 |", "'grad_norm': nan,", "loss = inf".
_VALUE = lazy_regex(
    r"(?i)\b(?P<name>(?:lm |[a-z]{1,12}_)?loss|grad(?:ient)?[_ ]?norm)['\"]?(?:\s*[:=]\s*|\s)['\"(]?"
    r"(?P<value>[-+]?(?:nan|inf(?:inity)?\b|\d[\d.]*(?:e[-+]?\d+)?))"
)
# "audio_emb: nan=True", "x contains NaN"; in a pattern that polars reads too.
_IS_NAN = r"(?i)\bnan\b['\"]? ?[=:] ?true\b|\b(?:is|has|contains) nan\b"
_EVALUATIONS = ("eval", "val", "test")
# "Evaluating iter 1/10": a count of batches or samples of an evaluation.
_EVALUATED = lazy_regex(r"(?i)\b(?:eval|valid|test)[a-z]*\b[^/]{0,40}?\b(?P<done>\d+) ?/ ?(?P<of>\d+)\b")
_LOST = lazy_regex(r"(?i)[-+]?(?:nan|inf)")
# A loss scale after so many overflows that every gradient is multiplied by 0, or by next to nothing.
_NO_SCALE = lazy_regex(
    r"(?i)OVERFLOW!.{0,80}reducing to 0(?![.\d])|overflow.{0,80}loss scale to:? (?:0\.000\d+|[\d.]+e-\d+)"
)
# The last lines of a log, in which a logged error is a failure, and a traceback is looked for.
LAST_LINES = 30
# Python's lines above an exception, and an exception.
_TRACEBACK, _FRAME = "Traceback (most", lazy_regex(r'\bFile(?: ".*|"?)$|^(?:\S+ ?)?\s{4,}\S')
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
    """Whether none of the losses and norms of ``tail`` is finite."""
    texts = tail.matching(r"(?i)loss|norm")["text"]
    printed = [values for text in texts if (values := _values(text, evaluated=False))]
    return bool(printed) and all(map(_is_lost, printed))


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


def stops_in_evaluation(tail: TextBlock) -> bool:
    """Whether the last line of ``tail`` counts an evaluation that is not done."""
    last = last_printed(tail)
    return last is not None and is_within_evaluation(last[1])


def is_within_evaluation(text: str) -> bool:
    """Whether a line counts an evaluation that is not done."""
    count = _EVALUATED.search(text)
    return count is not None and int(count["done"]) < int(count["of"])


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
