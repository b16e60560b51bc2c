"""A log of an unknown format, read by a format that is drafted from its lines, where these look like step lines.

Comes in: what the user named. Goes out: a ParsedLog with a warning, or the refusal of ``read_run``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import polars as pl

from logparse.decode.read_run import ParsedLog
from logparse.draft.draft import TIMES, Draft, draft_format
from logparse.draft.families import may_hold_step
from logparse.errors import LogparseError
from logparse.findings import warning
from logparse.formats._base import LogFormat
from logparse.formats._user import make_format
from logparse.inputs.blocks import BLOCK_BYTES, read_blocks
from logparse.inputs.discovery import find_sources
from logparse.inputs.sources import Source

NAME, FRAMEWORK = "drafted", "unknown framework"
# Lines of a log that are looked at, and the share of the step lines that a draft must read to be used unasked.
MOST_LINES, SHARE = 20_000, 0.9
# A line that looks like a step line has a loss with a number; one of an evaluation is none.
_LOSS = r"""(?i)loss["']?\s{0,4}[:=]?\s{0,4}[-+]?(?:[0-9]|nan|inf)|[0-9]\s{0,4}loss\b"""
_OTHER = r"(?i)\b(?:val|eval|valid|validation|test|dev)(?:\b|_)"


def read_drafted(arguments: Sequence[str], refusal: LogparseError, read: Callable[[LogFormat], ParsedLog]) -> ParsedLog:
    """The log as ``read`` reads it by a drafted format. Raises ``refusal`` where the draft is not sure enough."""
    sources = find_sources(arguments)
    looks = set(_like_steps(sources))
    draft = _draft(sources) if looks else None
    if draft is None or not _is_sure(draft):
        raise refusal
    try:
        log = read(replace(make_format(draft.table, NAME), framework=FRAMEWORK))
    except LogparseError as error:
        raise refusal from error
    of, n = _share(log, looks, records=draft.pair_lines is not None)
    if n < SHARE * of or not _is_timed(log.steps):
        raise refusal
    fields = {"n": n, "of": of, "line": draft.line_number, "columns": sorted(draft.columns)}
    return replace(log, notes=(warning("format_drafted", **fields), *log.notes))


def _draft(sources: Sequence[Source]) -> Draft | None:
    try:
        return draft_format(sources, MOST_LINES)[0]
    except LogparseError:
        return None


def _is_sure(draft: Draft) -> bool:
    """Whether its step is one, and a time has a unit. A number that restarts may be a step within an epoch."""
    return draft.timed and not {"epochs", "starts_again", "no_time", "two_counters"} & set(draft.doubts)


def _is_timed(steps: pl.DataFrame) -> bool:
    """Whether the rows have a time: most of them, since one in several units may be read on some lines only.

    A rate that is rounded to 0 gives none.
    """
    known = (*(pl.col(name) > 0 for name in sorted(TIMES)), pl.col("timestamp").is_not_null())
    return bool(len(steps)) and max(steps.select(each.fill_null(value=False).mean() for each in known).row(0)) >= 1 / 2


def _share(log: ParsedLog, looks: set[tuple[str, int]], records: bool) -> tuple[int, int]:
    """How many lines look like step lines, and how many of them were read; of ``records`` all first lines count."""
    if records:
        return log.coverage.step_lines + log.coverage.torn_lines, log.coverage.step_lines
    read = set(log.steps.select("source", "line_number").iter_rows())
    return len(looks), len(looks & read)


def _like_steps(sources: Sequence[Source]) -> Iterator[tuple[str, int]]:
    """The lines with a loss and a number that may be a step: source and line number."""
    text = pl.col("text")
    left = MOST_LINES
    for source in sources:
        for block in read_blocks(source, BLOCK_BYTES):
            lines = block.bare(block.lines.head(left))
            like = lines.filter(text.str.contains(_LOSS) & ~text.str.contains(_OTHER))
            texts = like.select("line_number", "text").iter_rows()
            yield from ((source.name, number) for number, line in texts if may_hold_step(line))
            left -= len(lines)
            if left <= 0:
                return
