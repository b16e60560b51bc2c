"""One kind of step line as a regex, learnt from a line by asking the rule (``pairs``).

A run prints one line a thousand times with other numbers. Each number on it is changed in several ways, and the rule
reads the changed lines: that shows which column a number fills and with which factor. The template is the words as they
are and a group for each number. It must read every changed line as the rule does, or not at all; a number that is read
otherwise gets a stricter pattern, and in the end is a word.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from math import isclose

import polars as pl
import polars.selectors as cs
import regex

from logparse.decode.regex_rule import find_heads, find_tails, read_values, split_pairs, spread
from logparse.decode.values import DTYPE, DURATIONS, can_be, parted_float, since_1970
from logparse.formats._base import BEFORE_STAMP, MULTIPLES, TIMESTAMP, YEARLESS, LogFormat
from logparse.inputs.stamps import moment
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, replace
from logparse.schema import TIME

# Numbers and time stamps; a sign is part of a number where no word or number is in front of it.
_TOKEN = lazy_regex(
    rf"(?P<clock>{TIMESTAMP}|(?<=^{BEFORE_STAMP}){YEARLESS})|(?P<sign>(?<![\w.\])])[-+](?!{TIMESTAMP}))?(?P<whole>[0-9]+(?P<parted>(?:,[0-9]{{3}})*))"
    r"(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][-+]?[0-9]+)?"
)
_STAMPED = rf"{TIMESTAMP}|^{BEFORE_STAMP}{YEARLESS}"
# One way through the regex for each text: the engine reads the groups of such a regex twice as fast.
_FRACTION, _EXPONENT = r"(?:\.[0-9]+)?", "(?:[eE][-+]?[0-9]+)?"
_ANY = f"[-+]?[0-9]+{_FRACTION}{_EXPONENT}"
_ANY_PARTED = f"[-+]?[0-9]+(?:,[0-9]{{3}})*{_FRACTION}{_EXPONENT}"
# Longer lines, and lines with more numbers, are left to the rule: their regex would be too large.
LONGEST, MOST_TOKENS = 4096, 128
# A time for trials, and the seconds of a day, an hour, a minute and a second.
_OTHER_TIME = datetime(2031, 5, 6, 7, 8, 9, 123456)
_UNITS = (86400.0, 3600.0, 60.0, 1.0)


@dataclass(frozen=True)
class Token:
    """A number or a time stamp of the line. ``column`` is what it fills, times ``scale``; None: nothing.

    The first of ``patterns`` says what may be in its place, the others are stricter; without any it is a word.
    ``layout`` is how to read a time stamp. ``spaced``: any blanks may be in front of it.
    """

    text: str
    patterns: tuple[str, ...]
    layout: str = ""
    spaced: bool = True
    column: str | None = None
    scale: float = 1.0


@dataclass(frozen=True)
class RuleRow:
    """What the rule reads on a line: the value of each column, and the labels."""

    row: Mapping[str, object]
    labels: Counter[str]


@dataclass(frozen=True)
class ChangedLine:
    """The ``text`` of a line with another ``token`` ``at`` a place, or other ``blanks`` in front of it.

    ``at`` is None for the line itself, and where all tokens are changed.
    """

    text: str
    at: int | None = None
    token: str = ""
    blanks: bool = False


@dataclass(frozen=True)
class LineTemplate:
    """The ``words`` of a line and the ``tokens`` between them; ``base`` is what the rule reads on it.

    ``explained``: nothing else of interest is on such a line.
    """

    words: tuple[str, ...]
    tokens: tuple[Token, ...]
    base: RuleRow
    explained: bool

    def read(self, lines: pl.DataFrame) -> pl.DataFrame:
        """The rows of those ``lines`` that fit, in the columns of the schema, numbers as floats."""
        # A damaged time stamp leaves numbers in which a whole one would not be seen.
        lines = lines if "timestamp" in self.filled else lines.filter(~pl.col("text").str.contains(_STAMPED))
        groups = pl.col("text").str.extract_groups(self.pattern).alias("groups")
        matches = lines.select("source", "line_number", "clock", groups).unnest("groups").filter(self._fits)
        return matches.with_columns(self._values).filter(self._possible).select(self._columns)

    @cached_property
    def pattern(self) -> str:
        """The regex of the whole line."""
        parts = []
        for at, (word, token) in enumerate(zip(self.words, self.tokens, strict=False)):
            bare = word.rstrip(" ") if token.spaced else word
            parts.append(regex.escape(bare, special_only=True) + (" +" if bare != word else ""))
            pattern = token.patterns[0] if token.patterns else regex.escape(token.text)
            parts.append(f"(?P<token_{at}>{pattern})" if token.column else f"(?:{pattern})")
        return f"^{''.join(parts)}{regex.escape(self.words[-1], special_only=True)}$"

    # Expressions are put together once, because for each block that would take a tenth of the time.

    @cached_property
    def filled(self) -> dict[str, list[int]]:
        """The tokens of each column."""
        filled = defaultdict(list)
        for at, token in enumerate(self.tokens):
            if token.column:
                filled[token.column].append(at)
        return filled

    @cached_property
    def _fits(self) -> pl.Expr:
        return pl.col(f"token_{next(iter(self.filled.values()))[0]}").is_not_null()

    @cached_property
    def _values(self) -> list[pl.Expr]:
        """The value of each column that has a token."""
        return [self._value(column, tokens).alias(column) for column, tokens in self.filled.items()]

    def _value(self, column: str, tokens: Sequence[int]) -> pl.Expr:
        numbers = []
        for text, token in ((pl.col(f"token_{at}"), self.tokens[at]) for at in tokens):
            if DTYPE[column] == TIME:
                return moment(text, token.layout) if token.layout else since_1970(text)
            number = parted_float(text) if "," in token.text else text.cast(pl.Float64, strict=False)
            numbers.append(number if token.scale == 1 else number * token.scale)
        return pl.sum_horizontal(numbers) if len(numbers) > 1 else numbers[0]

    @cached_property
    def _possible(self) -> pl.Expr:
        values = ((column, pl.col(column)) for column in self.filled)
        # A damaged time stamp is left to the rule, which reports it.
        fit = (value.is_not_null() if DTYPE[column] == TIME else can_be(column, value) for column, value in values)
        return pl.all_horizontal(pl.lit(value=True), *fit)

    @cached_property
    def _columns(self) -> list[pl.Expr]:
        # A line without a stamp has the clock that a collector put before it.
        clock = [] if "timestamp" in self.filled else [pl.col("clock").alias("timestamp")]
        same = {n: value for n, value in self.base.row.items() if n not in self.filled and n != "timestamp"}
        fixed = (pl.lit(v, TIME if DTYPE[name] == TIME else pl.Float64).alias(name) for name, v in same.items())
        return [pl.col("source", "line_number", *self.filled), *clock, *fixed]


def kind_of(text: str) -> str:
    """A regex of the lines with the words of this one, whatever their numbers and blanks."""
    words = (r"\ +".join(regex.escape(part, special_only=True) for part in regex.split(" +", w)) for w in _cut(text)[0])
    return f"^{'[-+0-9.,eE: /]+'.join(words)}$"


def learn_template(text: str, fmt: LogFormat, markers: Sequence[str]) -> LineTemplate | None:
    """The template of one line; None where the rule reads no plain row on it, or reads lines like it otherwise.

    ``markers`` are the words of interest on a line besides those of a step line.
    """
    words, matches = _cut(text)
    if len(matches) > MOST_TOKENS:
        return None
    trials = [ChangedLine(text), *_trials(words, matches)]
    texts = [trial.text for trial in trials]
    lines = pl.DataFrame({"source": "", "line_number": range(len(trials)), "text": texts, "clock": None})
    lines = lines.cast({"clock": TIME})
    answers = ask_rule(lines, fmt)
    if 0 not in answers:
        return None
    changed: dict[int | None, list[tuple[str, RuleRow]]] = defaultdict(list)
    for number, trial in enumerate(trials):
        if trial.token and number in answers:
            changed[trial.at].append((trial.token, answers[number]))
    tokens = tuple(_with_column(_token(token), changed[at], answers[0], fmt) for at, token in enumerate(matches))
    plain = _without_digits(text)
    explained = not any(_without_digits(marker) in plain for marker in markers)
    template = LineTemplate(words, tokens, answers[0], explained)
    if not template.filled or (answers[0].row["timestamp"] is not None and "timestamp" not in template.filled):
        return None
    return _as_the_rule(template, trials, lines, answers)


def ask_rule(lines: pl.DataFrame, fmt: LogFormat) -> dict[int, RuleRow]:
    """What the rule reads on those ``lines`` that hold one step line, all of whose values can be read."""
    marked = lines.filter(pl.col("text").str.contains_any(list(fmt.marker))).with_columns(complete=True)
    heads = find_heads(marked, fmt)
    pairs = read_values(split_pairs(heads, fmt), fmt)
    unclear = {*find_tails(heads, fmt)["line_number"], *pairs.filter("malformed")["line_number"]}
    count = Counter(heads["line_number"])
    labels: dict[int, Counter[str]] = defaultdict(Counter)
    for number, label in pairs["line_number", "label"].iter_rows():
        labels[number][label] += 1
    rows = _by_number(spread(heads, pairs.drop_nulls("column")))
    return {n: RuleRow(row, labels[n]) for n, row in rows.items() if count[n] == 1 and n not in unclear}


def _by_number(rows: pl.DataFrame) -> dict[int, dict[str, object]]:
    """The values of each line, by its number; times as whole numbers, since Python has no year 0."""
    plain = rows.drop("source").with_columns(cs.temporal().to_physical())
    return {row.pop("line_number"): row for row in plain.to_dicts()}


def _cut(text: str) -> tuple[tuple[str, ...], list[regex.Match[str]]]:
    """The words of a line, and the tokens between them."""
    matches = list(_TOKEN.finditer(text))
    ends = [0, *(place for token in matches for place in token.span()), len(text)]
    return tuple(text[begin:end] for begin, end in zip(ends[::2], ends[1::2], strict=True)), matches


def _token(match: regex.Match[str]) -> Token:
    text = match.group()
    own = regex.sub("[0-9]+", "[0-9]+", regex.escape(text, special_only=True))
    # The minutes and seconds of a duration have two digits.
    exact = regex.sub("[0-9]", "[0-9]", regex.escape(text, special_only=True))
    if match["clock"]:
        return Token(text, (exact,) if _layout(text) else (), _layout(text))
    if match["parted"]:
        return Token(text, (_ANY_PARTED, own))
    positive = regex.sub(r"\[0-9\]\+", "[1-9][0-9]*", own, count=1)
    return Token(text, (_ANY, f"[0-9]+{_FRACTION}", own, positive, exact))


def _layout(stamp: str) -> str:
    """How to read stamps that are written as this one; empty where a fraction of a second has an unusual length."""
    end = stamp.rindex(":") + 3
    seconds, point, digits = f"{_date_layout(stamp[: end - 8])}%H:%M:%S", stamp[end : end + 1], len(stamp) - end - 1
    if not point:
        return seconds
    return f"{seconds}{point}%{digits}f" if digits in (3, 6, 9) else ""


def _date_layout(date: str) -> str:
    """How to read a date and what separates it from the time."""
    if len(date) > len("07/05 "):
        if date[2] == "/":
            return f"%m/%d/%Y{date[10:]}"
        return f"%Y{date[4]}%m{date[7]}%d{date[10:]}"
    return regex.sub(r"^[0-9]{2}(\D?)[0-9]{2}", r"%m\1%d", date)


def _trials(words: Sequence[str], matches: Sequence[regex.Match[str]]) -> Iterator[ChangedLine]:
    """The line with each token changed in several ways, other blanks in front of it, or all tokens changed."""
    texts = [token.group() for token in matches]

    def line(changes: Mapping[int, str], at: int = -1, blanks: int = 0) -> str:
        fronts = [word.rstrip(" ") + " " * blanks if place == at else word for place, word in enumerate(words)]
        tokens = [changes.get(place, text) for place, text in enumerate(texts)]
        return "".join(part for pair in zip(fronts, [*tokens, ""], strict=True) for part in pair)

    for at, token in enumerate(matches):
        yield from (ChangedLine(line({at: text}), at, text) for text in _other_texts(token))
        if words[at].endswith(" "):
            yield from (ChangedLine(line({}, at, n), at, blanks=True) for n in (1, 2, len(words[at]) + 3))
    # Two numbers that are both changed may be read as what neither is by itself.
    for narrow, wide in (("11", "7"), ("8", "88")):
        short = {at: narrow if len(text) == 1 else wide for at, text in enumerate(texts) if len(text) < 3}
        yield ChangedLine(line(short))


def _other_texts(token: regex.Match[str]) -> Iterator[str]:
    """Other digits, more and fewer, zeros, another sign, another spelling."""
    if token["clock"]:
        layout = regex.sub("%[369]f", "%f000", _layout(token.group()))
        yield f"{_OTHER_TIME:{layout}}"[: len(token.group())] if layout else token.group()
        return
    sign, whole, fraction, exponent = (token[part] or "" for part in ("sign", "whole", "fraction", "exponent"))
    other, wide, narrow = regex.sub("[0-9]", _next_digit, whole), f"73{whole}", "7"
    if token["parted"]:
        wide, narrow = f"7,104,{whole[-3:]}", "7,104"
    yield f"{sign}{other}{regex.sub('[0-9]', _next_digit, fraction)}{exponent}"
    yield f"{sign}{wide}{fraction and fraction + '3'}{exponent}"
    yield f"{sign}{narrow}{fraction[:2]}{exponent}"
    yield f"{sign}0{regex.sub('[0-9]', '0', fraction)}{exponent}"
    yield f"{sign}0{whole}{fraction}{exponent}"
    yield token.group()[1:] if sign else f"-{token.group()}"
    yield from (f"{sign}{text}" for text in ("14", "7.0", "5.0e+00", "1.25e-03"))


def _next_digit(digit: regex.Match[str]) -> str:
    return "4567891234"[int(digit.group())]


def _with_column(token: Token, changed: Sequence[tuple[str, RuleRow]], base: RuleRow, fmt: LogFormat) -> Token:
    """``token`` with the column that it fills, by what the rule reads with other texts in its place."""
    columns = {c for _, answer in changed for c, value in answer.row.items() if not _same(value, base.row[c])}
    if len(columns) > 1 or not changed:
        return replace(token, patterns=())
    if not columns:
        return token
    column = columns.pop()
    if DTYPE[column] == TIME:
        return replace(token, column=column)
    scale = None if token.layout else _scale(column, [(token.text, base), *changed], fmt)
    return replace(token, patterns=()) if scale is None else replace(token, column=column, scale=scale)


def _scale(column: str, read: Sequence[tuple[str, RuleRow]], fmt: LogFormat) -> float | None:
    """By how much the value of ``column`` grows with the number; None where by no factor that a format may name."""
    values = [(float(text.replace(",", "")), answer.row[column]) for text, answer in read]
    (number, value), *others = [(n, v) for n, v in values if isinstance(v, float) and v == v] or [(0.0, 0.0)]
    factors = (1.0, *MULTIPLES.values(), *(_UNITS if column in DURATIONS else ()))
    named = {1.0, *(reading.scale for reading in fmt.labels.values() if reading.column == column)}
    scales = sorted({factor * scale for scale in named for factor in factors})
    return next(
        (s for s in scales if others and all(isclose(v - value, (n - number) * s, rel_tol=1e-6) for n, v in others)),
        None,
    )


def _as_the_rule(
    template: LineTemplate, trials: Sequence[ChangedLine], lines: pl.DataFrame, answers: Mapping[int, RuleRow]
) -> LineTemplate | None:
    """``template``, stricter until it reads each of the ``lines`` of the ``trials`` as the rule, or not at all."""
    tokens = list(template.tokens)
    while template.filled:
        read = _by_number(template.read(lines))
        wrong = [trials[number] for number, row in read.items() if not _agrees(row, answers.get(number), template.base)]
        if not wrong:
            return template if 0 in read else None
        # Stricter patterns of single tokens also leave out lines on which all are changed.
        places = {(trial.at, trial.blanks) for trial in wrong if trial.at is not None}
        if not places:
            return None
        for at, blanks in places:
            if not (tokens[at].spaced if blanks else tokens[at].patterns):
                return None
            stricter = replace(tokens[at], patterns=tokens[at].patterns[1:])
            tokens[at] = replace(tokens[at], spaced=False) if blanks else stricter
        template = replace(template, tokens=tuple(tokens))
    return None


def _agrees(row: Mapping[str, object], answer: RuleRow | None, base: RuleRow) -> bool:
    return (
        answer is not None
        and answer.labels == base.labels
        and row.keys() == answer.row.keys()
        and all(_same(row[column], value) for column, value in answer.row.items())
    )


def _same(one: object, other: object) -> bool:
    return one == other or (one != one and other != other)


def _without_digits(text: str) -> str:
    return regex.sub("[0-9]+", "0", text)
