"""What a format reads of a log and what not, line by line: for who writes one.

Comes in: a format and sources. Goes out: the lines that look like step lines, read or with the reason why not, and
the labels in neither list. By the patterns of the format alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

import polars as pl

from logparse.decode.regex_rule import find_heads, split_pairs
from logparse.decode.step_lines import Malformed, StepBlock, decode_block, join_blocks
from logparse.draft.words_and_units import columns_of
from logparse.formats._base import LogFormat
from logparse.inputs.blocks import BLOCK_BYTES, read_blocks
from logparse.inputs.sources import Source
from logparse.masked_frames import hide, secret_words

Reason = Literal["no_head", "no_marker", "no_pair", "lacks", "malformed"]
# Lines that are shown of each kind, and labels that are near.
MOST_SHOWN, MOST_NEAR = 3, 3
# The fewest characters of a match that show where a pattern goes wrong.
LEAST_MATCHED = 3
_PLACE = ("run", "source", "line_number")


@dataclass(frozen=True)
class UnreadLine:
    """A line that looks like a step line and was not read. ``details`` depend on the reason.

    ``no_head``: the part of the head pattern that matches, the text it matches and the text after it. ``lacks``: the
    missing columns. ``malformed``: label and value. Other reasons have none.
    """

    source: str
    line_number: int
    text: str
    reason: Reason
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReadLine:
    """A line that was read, and the columns that it fills."""

    source: str
    line_number: int
    text: str
    row: dict[str, Any]


@dataclass(frozen=True)
class UnknownLabel:
    """A label in neither list: on ``n`` lines, with a ``value``; ``near`` are known labels, then columns."""

    label: str
    n: int
    value: str
    near: tuple[str, ...]


@dataclass(frozen=True)
class KnownLabel:
    """A label of the format: its column, the number of lines with it, and its first number in the column's unit."""

    label: str
    column: str
    n: int
    value: str | None


@dataclass(frozen=True)
class FormatCheck:
    """The account of one format and one log."""

    lines: int
    read: int
    unread: Counter[Reason]
    first_read: list[ReadLine]
    examples: list[UnreadLine]
    labels: list[KnownLabel]
    unknown: list[UnknownLabel]

    @property
    def complete(self) -> bool:
        """Whether every line that looks like a step line was read, and there is one, and no label is unknown."""
        return bool(self.read) and not self.unread and not self.unknown


@dataclass
class _Kept:
    """What is kept of the blocks."""

    lines: int = 0
    blocks: list[StepBlock] = field(default_factory=list)
    unread: Counter[Reason] = field(default_factory=Counter)
    shown: list[UnreadLine] = field(default_factory=list)
    texts: list[tuple[str, int, str]] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()

    def refuse(self, lines: pl.DataFrame, reason: Reason) -> None:
        """Count ``lines`` as not read."""
        if len(lines):
            self.unread[reason] += len(lines)
            for source, number, text in lines.head(MOST_SHOWN).select("source", "line_number", "text").iter_rows():
                self.show(UnreadLine(source, number, text, reason))

    def show(self, line: UnreadLine) -> None:
        """Keep ``line``, if it is one of the first of its kind."""
        if sum(other.reason == line.reason for other in self.shown) < MOST_SHOWN:
            self.shown.append(line)


def check_format(fmt: LogFormat, sources: Sequence[Source]) -> FormatCheck:
    """Read ``sources`` with ``fmt``. Raises InputError for a file that cannot be read."""
    kept = _Kept()
    for source in sources:
        for block in read_blocks(source, BLOCK_BYTES):
            kept.lines += block.count
            _read_block(block.bare(block.lines), fmt, kept)
    return _account(fmt, kept)


def _read_block(lines: pl.DataFrame, fmt: LogFormat, kept: _Kept) -> None:
    kept.secrets |= secret_words(lines)
    text = pl.col("text")
    marked = text.str.contains_any(list(fmt.marker))
    headed = text.str.contains(fmt.head)
    kept.refuse(lines.filter(marked & ~headed & text.str.contains("[0-9]")), "no_head")
    kept.refuse(_with_known_label(lines.filter(headed & ~marked), fmt), "no_marker")
    block = decode_block(lines, fmt)[0]
    if block.rows.is_empty():
        return
    source = lines["source"][0]
    heads = find_heads(lines.filter(marked & headed), fmt)
    pairs = split_pairs(heads, fmt)
    for label, value in pairs.unique("label", keep="first", maintain_order=True).select("label", "text").iter_rows():
        kept.values.setdefault(label, value)
    if fmt.pair:
        bare = heads.join(pairs, on="row", how="anti")
        kept.refuse(bare.filter(pl.col("body").fill_null("").str.contains("[0-9]")), "no_pair")
    kept.blocks.append(block.compact(source))
    for number, shown in lines.filter(marked & headed).head(MOST_SHOWN).select("line_number", "text").iter_rows():
        if len(kept.texts) < MOST_SHOWN:
            kept.texts.append((source, number, shown))


def _with_known_label(lines: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """Those of ``lines`` that hold a label of the format, as a step line does and few others do."""
    if not fmt.pair:
        return lines
    heads = find_heads(lines, fmt)
    known = split_pairs(heads, fmt).filter(pl.col("label").is_in(list(fmt.labels)))
    return lines.join(known, on="line_number", how="semi")


def _account(fmt: LogFormat, kept: _Kept) -> FormatCheck:
    decoded = join_blocks(kept.blocks, fmt)
    _refuse_torn(kept, decoded.steps, fmt)
    _refuse_malformed(kept, decoded.malformed)
    examples = [_hidden(_explained(line, fmt), kept.secrets) for line in kept.shown]
    texts = [(source, number, hide(text, kept.secrets)) for source, number, text in kept.texts]
    unknown = {
        hide(label, kept.secrets): (n, hide(kept.values.get(label, ""), kept.secrets))
        for label, n in decoded.unread.items()
    }
    return FormatCheck(
        kept.lines,
        len(decoded.steps) - sum(kept.unread[reason] for reason in ("no_pair", "malformed")),
        kept.unread,
        list(_read_lines(texts, decoded.steps)),
        examples,
        list(_known(fmt, decoded.labels, decoded.steps)),
        [_unknown(label, n, value, fmt) for label, (n, value) in unknown.items()],
    )


def _refuse_torn(kept: _Kept, steps: pl.DataFrame, fmt: LogFormat) -> None:
    """Count lines whose head matched but which are missing a required column."""
    for block in kept.blocks:
        torn = block.rows.join(steps, on=("source", "line_number"), how="anti")
        if torn.is_empty():
            continue
        kept.unread["lacks"] += len(torn)
        missing = tuple(c for c in ("step", *fmt.required) if c not in torn.columns or torn[c][0] is None)
        source, number = torn.select("source", "line_number").row(0)
        text = next((t for s, n, t in kept.texts if (s, n) == (source, number)), "")
        kept.show(UnreadLine(source, number, text, "lacks", tuple(dict.fromkeys(missing))))


def _refuse_malformed(kept: _Kept, malformed: Sequence[Malformed]) -> None:
    lines = {(bad.source, bad.line_number) for bad in malformed}
    if lines:
        kept.unread["malformed"] += len(lines)
    for bad in {(bad.label, bad.source): bad for bad in reversed(malformed)}.values():
        kept.show(UnreadLine(bad.source, bad.line_number, "", "malformed", (bad.label, bad.text)))


def _hidden(line: UnreadLine, secrets: frozenset[str]) -> UnreadLine:
    """``line`` without secrets."""
    return replace(line, text=hide(line.text, secrets), details=tuple(hide(detail, secrets) for detail in line.details))


def _explained(line: UnreadLine, fmt: LogFormat) -> UnreadLine:
    """``line`` with what its reason is about, where that takes another look at its text."""
    if line.reason == "no_head":
        return UnreadLine(line.source, line.line_number, line.text, line.reason, _matched(line.text, fmt.head))
    return line


def _matched(text: str, head: str) -> tuple[str, str, str]:
    """The longest beginning of the pattern ``head`` that matches, what it matches in ``text``, and the text after."""
    for end in range(len(head) - 1, LEAST_MATCHED, -1):
        try:
            matched = pl.select(pl.lit(text).str.extract(f"(?s)({head[:end]})(.*)", 1)).item()
        except pl.exceptions.PolarsError:
            continue
        if matched and len(matched) >= LEAST_MATCHED:
            rest = text[text.find(matched) + len(matched) :]
            return head[:end], matched, rest
    return "", "", text


def _read_lines(texts: Sequence[tuple[str, int, str]], steps: pl.DataFrame) -> Iterator[ReadLine]:
    for source, number, text in texts:
        rows = steps.filter((pl.col("source") == source) & (pl.col("line_number") == number))
        for row in rows.iter_rows(named=True):
            yield ReadLine(source, number, text, {c: v for c, v in row.items() if v is not None and c not in _PLACE})


def _known(fmt: LogFormat, labels: dict[str, int], steps: pl.DataFrame) -> Iterator[KnownLabel]:
    for label, reading in fmt.labels.items():
        values = steps[reading.column].drop_nulls()
        value = str(values[0]) if len(values) and labels.get(label) else None
        yield KnownLabel(label, reading.column, labels.get(label, 0), value)


def _unknown(label: str, n: int, value: str, fmt: LogFormat) -> UnknownLabel:
    labels = get_close_matches(label, [*fmt.labels, *fmt.ignored], n=MOST_NEAR, cutoff=0.6)
    return UnknownLabel(label, n, value, tuple(dict.fromkeys((*labels, *columns_of(label)))))
