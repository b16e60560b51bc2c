"""How the pairs of a line are written: the separator of pairs, and the one between a label and its value.

Comes in: the text after the head. Goes out: the pattern of a pair, chosen by how many numbers it reads. polars applies
the patterns, as the reader does, in a time proportional to the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import polars as pl
import regex

from logparse.decode.regex_rule import label_and_value
from logparse.decode.values import group_names
from logparse.draft.words_and_units import BARE_UNITS, VALUE, columns_of, unit_columns
from logparse.formats._base import NUMBER, UNIT_GROUPS
from logparse.light_dataclass import dataclass, replace


@dataclass(frozen=True)
class PairLayout:
    """How pairs are written: their ``separator``, and the pattern of one pair."""

    separator: str
    pair: str

    @property
    def has_units(self) -> bool:
        """Whether it reads numbers without a label by their units."""
        return set(UNIT_GROUPS) <= set(group_names(self.pair))


@dataclass(frozen=True)
class Pair:
    """A label and the text of its value on line ``row``. ``after`` is the label before a unit, None for a label."""

    row: int
    label: str
    value: str
    after: str | None = None


# Lines from which a layout is chosen.
MOST_BODIES = 24
_ENDS = {"|": r"\|", ";": ";", ",": r",(?:\s|$)", " - ": r"\s-\s", "\t": r"\t", "  ": r"\s{2,}", " ": r"\s+"}
# Where a line has several of them.
_ENDS |= {"| ": r"(?:[|;]|,(?:\s|$))"}
# Last, since a comma without a blank may part thousands.
_ENDS |= {", ": ","}
_BETWEEN = {":": r"\s*:\s*", "=": r"\s*=\s*", " ": r" +", "": ""}
_NUMERIC = r"[-+]?[.\d][^|;=()]*?|[nN]a[nN]|[-+]?[iI]nf"
_UNITS = sorted(
    {*BARE_UNITS, "ms", "s", "sec", "min", "GiB", "GB", "MiB", "MB", "%"}, key=lambda unit: (-len(unit), unit)
)
_AFTER_VALUE = rf"(?: ?(?:{'|'.join(_UNITS)}))?"
_WORD = r"[A-Za-z_][\w./%()\[\]-]*"
# A unit without a label, and at most two words after it: ``ms``, ``% bf16 MFU``, ``/gpu``, ``s run``.
_UNIT = r"(?:%|/?[A-Za-z][\w/%]*)(?: [A-Za-z][\w/]*){0,2}"
_ABSENT = ("n/a", "none", "null")
RECORD = PairLayout("[,}]", r"""["']([^"':,{}]+)["']\s*:\s*["']?([^"',}]*)["']?\s*(?:,|\}|$)""")


def _layouts(units: bool, parted: bool) -> Iterator[PairLayout]:
    """The layouts; with ``units`` they read numbers without a label, with ``parted`` those in brackets too."""
    for delimiter, end in _ENDS.items():
        for between, pattern in _BETWEEN.items():
            label, value = _label_pattern(delimiter, between), _value_pattern(delimiter, between)
            # A remark in brackets may follow a value.
            remark = r"\s*" if parted else r"\s*(?:\([^()]*\)\s*)?"
            closed = r"[\])},]*:?" if delimiter == " " else remark
            if units:
                ends = rf"(?:{end}|[\])}}]*\s*$|\s*[()\]])" if parted else rf"(?:{end}|[\])}}]*\s*$|\])"
                named = rf"(?P<label>{label}){pattern}(?P<value>{value}){closed}"
                # A colon after it would make it the label of the next number.
                number = rf"(?P<number>{NUMBER}) ?(?P<unit>{_UNIT}){closed.removesuffix(':?')}"
                yield PairLayout(end, rf"(?:{named}|{number}){ends}")
            else:
                yield PairLayout(end, rf"({label}){pattern}({value}){closed}(?:{end}|[\])}}]*\s*$)")
    if not units:
        # Labels of several words between blanks: ``iter time (s): 0.09 samples/sec: 173``.
        yield PairLayout(
            r"\s+", rf"({_label_pattern(',', ':')})\s*:\s*({_value_pattern(' ', ':')})(?:\s+|[\])}}]*\s*$)"
        )


def _label_pattern(delimiter: str, between: str) -> str:
    narrow = delimiter in (" ", "  ")
    if between == "":
        return "[A-Za-z_]+"
    if between == " ":
        return _WORD if narrow else rf"{_WORD}(?: {_WORD})*?"
    return r"[A-Za-z_][^\s:=|,;]*?" if narrow else r"[A-Za-z_][^:=|,;\t]*?"


def _value_pattern(delimiter: str, between: str) -> str:
    if between in (" ", ""):
        return rf"(?:{_NUMERIC}){_AFTER_VALUE}" if delimiter == " " else _NUMERIC
    return rf"\S+?{_AFTER_VALUE}" if delimiter == " " else ".*?"


def choose_layout(bodies: Sequence[str]) -> PairLayout | None:
    """The layout by which most numbers are read with a label of their own."""
    if not bodies:
        return None
    bodies = bodies[:: -(-len(bodies) // MOST_BODIES)]
    scored = [(_score(layout, bodies), layout) for layout in (RECORD, *_layouts(units=False, parted=False))]
    if _has_bare_unit(bodies):
        layouts = _layouts(units=True, parted=any(regex.search(r"\d\(\d", body) for body in bodies))
        scored += [(_score(layout, bodies) - 0.1, layout) for layout in layouts]
    best, layout = max(scored, key=lambda pair: pair[0])
    return _with_units_of(layout, bodies) if best > 0 else None


def _with_units_of(layout: PairLayout, bodies: Sequence[str]) -> PairLayout:
    """``layout`` without the units that ``bodies`` do not hold."""
    own = [unit for unit in _UNITS if any(regex.search(rf"\d ?{regex.escape(unit)}(?!\w)", body) for body in bodies)]
    return replace(layout, pair=layout.pair.replace(_AFTER_VALUE, rf"(?: ?(?:{'|'.join(own)}))?" if own else ""))


def _has_bare_unit(bodies: Sequence[str]) -> bool:
    """Whether more than half of ``bodies`` have a number with a unit after a separator, a blank or a bracket."""
    pattern = rf"(?:^|[|,;(]|\s-\s|\s)\s*{NUMBER} ?(?:{_UNIT})\s*(?:[|,;\])]|\s-|\s|$)"
    return 2 * int(pl.Series(bodies, dtype=pl.String).str.contains(pattern).sum()) > len(bodies)


def read_pairs(layout: PairLayout, bodies: Sequence[str]) -> list[Pair]:
    """The pairs of ``bodies`` in their order, as the reader of a format splits them."""
    rows = pl.DataFrame({"body": bodies}, schema={"body": pl.String}).with_row_index("row")
    found = rows.with_columns(pl.col("body").str.extract_all(layout.pair)).explode("body").drop_nulls("body")
    label, value = label_and_value(layout.pair)
    groups = pl.col("body").str.extract_groups(layout.pair)
    unit = groups.struct.field("unit") if layout.has_units else pl.lit(None, pl.String)
    pairs, before = [], ""
    for row, name, text, is_unit in found.select("row", label, value.alias("value"), unit.is_not_null()).iter_rows():
        name = " ".join((name or "").split())
        pairs.append(Pair(row, name, (text or "").strip(" []"), before if is_unit else None))
        before = before if is_unit else name
    return pairs


def _score(layout: PairLayout, bodies: Sequence[str]) -> float:
    """Numbers with a label of their own for each line, less what cannot be one."""
    pairs = list(dict.fromkeys(read_pairs(layout, bodies)))
    labels = Counter(pair.label for pair in pairs)
    good = 0.0
    for pair in pairs:
        if pair.after is not None:
            # Any word may follow a number: only those with a meaning count.
            good += 2.0 * bool(unit_columns(pair.label, pair.after))
        elif pair.value and pair.value.lower() not in _ABSENT:
            numeric = VALUE.fullmatch(pair.value.strip()[:60])
            frequent = labels[pair.label] >= len(bodies) / 3
            good += 1.0 + bool(columns_of(pair.label)) if numeric and frequent and pair.label else -0.5
    return good / max(len(bodies), 1)
