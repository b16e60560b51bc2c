"""How the pairs of a line are written: the separator of pairs, and the one between a label and its value.

Comes in: the text after the head. Goes out: the pattern of a pair, chosen by how many numbers it reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from logparse.draft.spellings import BARE_UNITS, bare_column, columns_of
from logparse.formats._base import NUMBER


@dataclass(frozen=True)
class PairLayout:
    """How pairs are written: their ``separator``, and the pattern of one pair."""

    separator: str
    pair: str


_ENDS = {"|": r"\|", ";": ";", ",": r",(?:\s|$)", " - ": r"\s-\s", "\t": r"\t", "  ": r"\s{2,}", " ": r"\s+"}
# Where a line has several of them.
_ENDS |= {"| ": r"(?:[|;]|,(?:\s|$))"}
_BETWEEN = {":": r"\s*:\s*", "=": r"\s*=\s*", " ": r" +"}
_NUMERIC = r"[-+]?[.\d][^|;=]*?|[nN]a[nN]|[-+]?[iI]nf"
_UNITS = "|".join(sorted({*BARE_UNITS, "ms", "s", "sec", "GiB", "GB", "MiB", "MB", "%"}, key=len, reverse=True))
_WORD = r"[A-Za-z_][\w./%()\[\]-]*"
RECORD = PairLayout("[,}]", r"""["']([^"':,{}]+)["']\s*:\s*["']?([^"',}]*)["']?\s*(?:,|\}|$)""")


def _layouts(bare: bool) -> Iterator[PairLayout]:
    for delimiter, end in _ENDS.items():
        for between, pattern in _BETWEEN.items():
            label, value = _label_pattern(delimiter, between), _value_pattern(delimiter, between)
            if bare:
                label, pattern, value = f"(?:{label})|", f"(?:{pattern})?", _NUMERIC
            # A remark in brackets may follow a value.
            closed = r"\s*" if delimiter == " " else r"\s*(?:\([^()]*\)\s*)?"
            yield PairLayout(
                end,
                rf"({label}){pattern}({value}){closed}(?:{end}|[\])}}]*\s*$)",
            )


def _label_pattern(delimiter: str, between: str) -> str:
    narrow = delimiter in (" ", "  ")
    if between == " ":
        return _WORD if narrow else rf"{_WORD}(?: {_WORD})*?"
    return r"[A-Za-z_][^\s:=|,;]*?" if narrow else r"[A-Za-z_][^:=|,;\t]*?"


def _value_pattern(delimiter: str, between: str) -> str:
    if between == " ":
        return _NUMERIC
    return rf"\S+?(?: ?(?:{_UNITS}))?" if delimiter == " " else ".*?"


def choose_layout(bodies: Sequence[str]) -> PairLayout | None:
    """The layout by which most numbers are read with a label of their own."""
    bodies = bodies[:60]
    bare = _has_bare_unit(bodies)
    scored = [(_score(layout, bodies), layout) for layout in (RECORD, *_layouts(bare=False))]
    scored += [(_score(layout, bodies) - 0.1, layout) for layout in _layouts(bare=True)] if bare else []
    best, layout = max(scored, key=lambda pair: pair[0])
    return layout if best > 0 else None


def _has_bare_unit(bodies: Sequence[str]) -> bool:
    units = "|".join(regex.escape(unit) for unit in sorted(BARE_UNITS, key=len, reverse=True))
    pattern = regex.compile(rf"(?:^|[|,;]|\s-\s|\s)\s*{NUMBER}\s*(?:{units})\s*(?:[|,;\])]|\s-|\s|$)")
    return sum(bool(pattern.search(body)) for body in bodies) > len(bodies) / 2


def _score(layout: PairLayout, bodies: Sequence[str]) -> float:
    """Numbers with a label of their own for each line, less what cannot be one."""
    pattern = regex.compile(layout.pair)
    pairs = [pair for body in bodies for pair in set(pattern.findall(body))]
    labels = Counter(label for label, _ in pairs)
    good = 0.0
    for label, value in pairs:
        numeric = regex.fullmatch(rf"{NUMBER}\s*[%A-Za-z/]{{0,12}}", value.strip())
        known = bool(columns_of(label)) or (not label and bool(bare_column(value)))
        frequent = labels[label] >= len(bodies) / 3
        good += (1.0 + known if numeric and frequent and (label or known) else -0.5) if value else 0.0
    return good / max(len(bodies), 1)
