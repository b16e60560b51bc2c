"""How tools that keep lines spell the time before each: a row for each spelling, with a sample.

A row with ``is_read``: programs print it too, and the rules read it within a line. One with a ``zone`` is of a tool;
another is of the program's logger unless plain lines follow it.
"""

from __future__ import annotations

from functools import cached_property

import polars as pl
import regex

from logparse.light_dataclass import dataclass
from logparse.schema import NO_DAY, NO_YEAR

_CLOCK, _PART = r"\d{1,2}:\d\d:\d\d", r"(?:[.,]\d+)?"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?"
# What may be after a stamp and before the line: of containerd the stream, and a tag for a part of a line.
_AFTER = r"(?: (?:stdout|stderr) [FP](?: |$)|[\]:,|]?(?:[ \t]|$))"
# No training ran before the first of these years, or runs after the second; stamps are as of no zone.
FIRST, LAST = 1970, 2199


@dataclass(frozen=True)
class Stamp:
    """One spelling: its ``pattern``, how chrono reads it, and a ``sample``. ``layout`` is empty for seconds since 1970.

    ``spelled`` are replacements that bring the text into the layout.
    """

    pattern: str
    layout: str
    sample: str
    zone: str = ""
    spelled: tuple[tuple[str, str], ...] = ()
    is_read: bool = False

    @cached_property
    def compiled(self) -> regex.Pattern[str]:
        """What is before a line."""
        return regex.compile(self.anchored)

    @property
    def anchored(self) -> str:
        """The pattern of what is before a line, for polars too; its group is the stamp."""
        return rf"^\[?({self.pattern}){self.zone}{_AFTER}"

    @property
    def may_be_of_logger(self) -> bool:
        """Whether programs print it too, before what their loggers add: without a zone, perhaps without a day."""
        return (self.is_read and not self.zone) or ("%d" not in self.layout and bool(self.layout))

    def read(self, text: pl.Expr) -> pl.Expr:
        """The time before each text; null where there is none."""
        stamp = text.str.extract(self.anchored, 1)
        if not self.layout:
            return (stamp.cast(pl.Float64, strict=False) * 1e6).cast(pl.Int64).cast(pl.Datetime("us"))
        for pattern, replacement in (*self.spelled, (r",(\d+)$", ".$1")):
            stamp = stamp.str.replace_all(pattern, replacement)
        return moment(stamp, self.layout)


def moment(stamp: pl.Expr, layout: str) -> pl.Expr:
    """The time that a stamp is, as of no zone; null for a day or an hour that does not exist, or a year of no training.

    A stamp without a year is of NO_YEAR, and one without a day of the first day of NO_DAY.
    """
    if "%Y" in layout or "%y" in layout:
        time = _parsed(stamp, layout)
        return pl.when(time.dt.year().is_between(FIRST, LAST)).then(time)
    date, of_date = (f"{NO_YEAR} ", "%Y ") if "%d" in layout else (f"{NO_DAY}-01-01 ", "%Y-%m-%d ")
    return _parsed(pl.concat_str(pl.lit(date), stamp), of_date + layout)


def _parsed(stamp: pl.Expr, layout: str) -> pl.Expr:
    return stamp.str.to_datetime(layout, time_unit="us", strict=False, cache=False)


_ISO = rf"\d{{4}}-\d\d-\d\dT{_CLOCK}{_PART}"
_BLANKS = (r" +", " ")
STAMPS = (
    Stamp(rf"\d{{4}}-\d\d-\d\d {_CLOCK} [AaPp][Mm]", "%Y-%m-%d %I:%M:%S %p", "2026-03-01 08:00:30 PM"),
    Stamp(_ISO, "%Y-%m-%dT%H:%M:%S%.f", "2026-03-01T20:00:30.123Z", zone=r"(?:Z|[+-]\d\d:?\d\d)", is_read=True),
    Stamp(_ISO, "%Y-%m-%dT%H:%M:%S%.f", "2026-03-01T20:00:30.123", is_read=True),
    Stamp(rf"\d{{4}}-\d\d-\d\d {_CLOCK}{_PART}", "%Y-%m-%d %H:%M:%S%.f", "2026-03-01 20:00:30,123", is_read=True),
    Stamp(rf"\d{{4}}/\d\d/\d\d {_CLOCK}{_PART}", "%Y/%m/%d %H:%M:%S%.f", "2026/03/01 20:00:30", is_read=True),
    Stamp(
        r"\d{4}-\d\d-\d\d[-_ T]\d\d[-:_]\d\d[-:_]\d\d" + _PART,
        "%Y-%m-%d-%H-%M-%S%.f",
        "2026-03-01-20-00-30",
        spelled=((r"[-_ T:]", "-"),),
    ),
    Stamp(
        rf"\d{{1,2}}/\d{{1,2}}/\d{{4}},? {_CLOCK} [AaPp][Mm]",
        "%m/%d/%Y %I:%M:%S %p",
        "03/01/2026 12:00:30 AM",
        spelled=((",", ""),),
    ),
    Stamp(rf"\d\d/\d\d/\d{{4}},? {_CLOCK}{_PART}", "%m/%d/%Y %H:%M:%S%.f", "03/01/2026 20:00:30", is_read=True),
    Stamp(rf"\d\d\.\d\d\.\d{{4}},? {_CLOCK}{_PART}", "%d.%m.%Y %H:%M:%S%.f", "01.03.2026 20:00:30"),
    Stamp(
        r"\d{4} ?年 ?\d{1,2} ?月 ?\d{1,2} ?日 ?(?:星期.|周.)? ?\d{1,2} ?[时時点:] ?\d\d ?[分:] ?\d\d(?: ?秒)?" + _PART,
        "%Y-%m-%d-%H-%M-%S%.f",
        "2026年03月01日 20时00分30秒",
        spelled=((r"星期.|周.|秒", ""), (r"[年月日时時点分: ]+", "-"), (r"-$", "")),
    ),
    Stamp(
        rf"{_DAY} [A-Z][a-z]{{2}} +\d{{1,2}} {_CLOCK}(?: [A-Z]{{2,5}})? \d{{4}}",
        "%b %d %H:%M:%S %Y",
        "Sun Mar  1 20:00:30 CST 2026",
        spelled=((rf"^{_DAY} ", ""), (r" [A-Z]{2,5} ", " "), _BLANKS),
    ),
    Stamp(
        rf"(?:{_DAY} )?\d{{1,2}}[ /-][A-Z][a-z]{{2}}[ /-]\d{{4}}[ :]{_CLOCK}(?: [+-]\d{{4}}| [A-Z]{{3}})?",
        "%d %b %Y %H:%M:%S",
        "Sun, 01 Mar 2026 20:00:30",
        spelled=((rf"^{_DAY} ", ""), (r" (?:[+-]\d{4}|[A-Z]{3})$", ""), (r"[/-]", " "), (r"(\d{4}):", "$1 ")),
    ),
    Stamp(rf"[A-Z][a-z]{{2}} +\d{{1,2}} {_CLOCK}{_PART}", "%b %d %H:%M:%S%.f", "Mar  1 20:00:30", spelled=(_BLANKS,)),
    Stamp(r"1[3-9]\d{8}(?:\.\d+)?", "", "1772395230.123456"),
    Stamp(_CLOCK + " [AaPp][Mm]", "%I:%M:%S %p", "08:00:30 PM"),
    Stamp(_CLOCK + _PART, "%H:%M:%S%.f", "20:00:30"),
    Stamp(r"\d{8}T\d{6}" + _PART, "%Y%m%dT%H%M%S%.f", "20260301T200030"),
)
