"""Forms in which a field of a template is shown where a number format does not do. All take a value, all give text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from pathlib import PurePath
from typing import Any

from analysis.metrics import IMPOSSIBLE
from analysis.present.numbers import percent, step_time
from logparse.findings import Note
from logparse.language import current_language, msg, some, tr
from logparse.schema import NO_DAY, is_dated

# A shorter time is none to a reader.
LEAST_SECONDS = 0.001
# By seconds of a unit and of the next smaller one.
SPANS = (
    (86_400, 3_600, msg("{n} d {rest} h")),
    (3_600, 60, msg("{n} h {rest} min")),
    (60, 1, msg("{n} min {rest} s")),
)
BIG = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
# Days have nine digits at most.
MOST_SECONDS = 86_400 * 999_999_999
# What is rounded to nothing in a tenth of a percent.
NO_SHARE = 0.0005


def _first(count: int) -> Callable[[Sequence[Any]], str]:
    """The first ``count`` of a list, with a sign that there are more."""
    return lambda values: ", ".join(map(str, values[:count])) + (" ..." if len(values) > count else "")


def counted(runs: int) -> str:
    """So many runs."""
    return tr("1 run") if runs == 1 else tr("{n} runs", n=runs)


def ranges(numbers: Sequence[int]) -> str:
    """Whole numbers that grow, those that follow each other as a range: 3, 7-9."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return some([f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs])


def span(seconds: float) -> str:
    """A time as people say it: in the largest unit that it fills, and in the next."""
    if LEAST_SECONDS < seconds < 1:
        return tr("{n} s", n=f"{seconds:.2g}")
    whole = round(seconds)
    for unit, smaller, text in SPANS:
        if whole >= unit:
            # Rounded to the smaller unit first, so that none is full.
            n, rest = divmod(round(whole / smaller), unit // smaller)
            return tr(text, n=f"{n:,}", rest=rest)
    return tr("{n} s", n=whole)


def minute(time: datetime) -> str:
    """A time to the minute; without a year or a day where the log prints none."""
    return time.strftime(f"{_day_layout(time)}%H:%M")


def second(time: datetime) -> str:
    """A time to the second; without a year or a day where the log prints none."""
    return time.strftime(f"{_day_layout(time)}%H:%M:%S")


def _day_layout(time: datetime) -> str:
    if is_dated(time):
        return "%Y-%m-%d "
    return "" if time.year >= NO_DAY else "%m-%d "


def devices(number: str) -> str:
    """How many devices, as they are counted."""
    return tr("1 device") if number == "1" else tr("{n} devices", n=number)


def big(number: float) -> str:
    """A count to three digits: 7.86 M."""
    for size, sign in BIG:
        if number >= 0.9995 * size:
            value = number / size
            return f"{value:.{max(0, 3 - len(str(int(value))))}f} {sign}"
    return f"{number:,.0f}"


def _clock_span(seconds: float) -> str:
    """A difference of clocks, as hours, minutes and seconds."""
    return str(timedelta(seconds=min(round(abs(seconds)), MOST_SECONDS)))


def _rate(value: float) -> str:
    """Five digits, and all those before the point."""
    return f"{value:,.0f}" if value >= 10_000 else f"{value:,.5g}"


def _printed_formula(name: str) -> str:
    """A printed formula by its title and its id."""
    from analysis.flops.printed import PRINTED_FORMULAS

    return tr("{title} ({id})", title=tr(PRINTED_FORMULAS[name].title), id=name)


def _printed_formulas(names: Sequence[str]) -> str:
    return reduce(lambda first, other: tr("{first}, {other}", first=first, other=other), map(_printed_formula, names))


def range_of(ends: Sequence[Any]) -> str:
    """The first and the last of ``ends``, or the one that they are."""
    return f"{ends[0]}" if ends[0] == ends[-1] else tr("{low} to {high}", low=ends[0], high=ends[-1])


def ordinal(number: int) -> str:
    """A place in a row: 1st, 22nd, 63rd, 11th; in Chinese the number itself."""
    if current_language() != "en":
        return str(number)
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def of_peak(share: float, digits: int = 1) -> str:
    """A share of the peak in percent; marked where no device gives it."""
    return percent(share, digits) + (IMPOSSIBLE if not -NO_SHARE <= share <= 1 else "")


def _course(levels: Sequence[Note]) -> str:
    """The step times of two levels, of more the least and the greatest; empty where there are more than are named."""
    if "ms" not in levels[-1].fields:
        return ""
    times = [level.fields["ms"] for level in levels]
    if len(levels) == 2:
        return tr(": {before}, then {after}", before=step_time(times[0]), after=step_time(times[1]))
    return tr(": {low} to {high}", low=step_time(min(times)), high=step_time(max(times)))


# Texts of formats, devices and published rows that are shown in the language in use, by the form "said" or ``tr``.
TRANSLATED = (
    msg("rollouts"),
    msg("preference training"),
    msg("encoder models"),
    msg("vision encoders"),
    msg("loss"),
    msg("gradient norm"),
    msg("full recomputation"),
    msg("reference system, full recomputation"),
    msg("Ascend 910B (A2; SKU unknown)"),
    msg("Ascend 910C die (A3; SKU unknown)"),
)


def _translated(texts: str | Sequence[str]) -> str:
    """A text, or several, in the language in use."""
    return tr(texts) if isinstance(texts, str) else tr(", ").join(map(tr, texts))


FORMS: Mapping[str, Callable[[Any], str]] = {
    "first3": _first(3),
    "first5": _first(5),
    "some": some,
    "ranges": ranges,
    "rows": lambda n: tr("1 row") if n == 1 else tr("{n} rows", n=f"{n:,}"),
    "spans": lambda spans: tr(", ").join(tr("{low} to {high}", low=f"{a:,}", high=f"{b:,}") for a, b in spans),
    "span": span,
    "clock": _clock_span,
    "minute": minute,
    "upper": str.upper,
    "rate": _rate,
    "printed_formula": _printed_formula,
    "printed_formulas": _printed_formulas,
    "of_peak": of_peak,
    "of_peak2": lambda share: of_peak(share, 2),
    "peak_of": lambda device: tr(" ({name})", name=device) if device else "",
    "course": _course,
    # What is computed where no step has settled; nothing where no update was kept.
    "covers_all": lambda rates: tr(": the rate covers all step lines") if rates else "",
    "big": big,
    "gb": lambda size: f"{size / 1e9:,.2f}",
    "gib": lambda size: f"{size / 2**30:,.1f}",
    "runs": counted,
    "said": _translated,
    "range": range_of,
    "ordinal": ordinal,
    "step_time": step_time,
    "name": lambda path: PurePath(path).name,
}
