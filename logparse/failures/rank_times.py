"""Times that a log prints of single ranks: one row for each number, with its rank, its kind and its interval.

Sources: Megatron-LM (megatron/core/utils.py of --log-straggler, megatron/core/timers.py), XTuner's step lines, NVIDIA's
resiliency extension (straggler reports).
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from logparse.inputs.blocks import TextBlock
from logparse.lazy_regex import lazy_regex

RANK_TIMES = pl.Schema(
    {
        "source": pl.String(),
        "line_number": pl.Int64(),
        "interval": pl.Int64(),
        # data, compute or step in ms; throughput; score, 1 for the fastest rank.
        "kind": pl.String(),
        # each: of this rank; max, min: the rank has the largest or the smallest of all; low: one of the lowest.
        "extreme": pl.String(),
        "rank": pl.Int64(),
        "value": pl.Float64(),
    }
)
# Literals without which a block has no line that names ranks.
_IN_LINE = (b"Rtt/Rnk: ", b"Etpt/Rnk: ", b"Ranks with ", b"Score=")
# Timers of Megatron, by what they measure. Other timers hold waiting for other ranks.
_KINDS = {"forward-compute": "compute", "backward-compute": "compute", "batch-generator": "data"}
_KINDS |= {"forward-backward": "step"}
_STRAGGLER = lazy_regex(r"\bM(?P<extreme>[nx])(?P<name>D?Rtt|Etpt)/Rnk: (?P<value>[\d.]+)(?:ms|TF)?/(?P<rank>\d+)")
_NAMES = {"Rtt": "compute", "DRtt": "data", "Etpt": "throughput"}
_LISTED = lazy_regex(r"(?P<end>Bottom|Top) +\d+ +Ranks with (?:lowest|highest) +Etpt(?:\(TF\))?: (?P<list>[\d./, ]+)")
_PAIR = lazy_regex(r"(?P<value>[\d.]+)/(?P<rank>\d+)")
_SCORE = lazy_regex(r"\bRank=(?P<rank>\d+) .*\bScore=(?P<value>[\d.]+)")
_TABLE = r"across ranks \(ms\):\s*$|^(?:\d+: )?\s*rank +\d+: [\d.]+\s*$|^(?:\d+: )?\s+[\w/-]+[ .]*:\s*$"
_TABLE_RANK = r"^(?:\d+: )?\s*rank +(\d+): ([\d.]+)\s*$"
_RANGE = (
    r"^(?:\d+: )?\s+(forward-compute|backward-compute|batch-generator|forward-backward)[ .]*: \(([\d.]+), ([\d.]+)\)"
)
_STEP = r"\bStep (\d+)/.*?\bdata_time: ([\d.]+) .*?\btime: ([\d.]+)"
_STEP_RANK = r"\[RANK (\d+)\]"
_MS = 1000


def find_rank_times(block: TextBlock) -> pl.DataFrame:
    """Every time of a rank in ``block``, in order: rows of RANK_TIMES. ``rank`` is null where the line has none."""
    text = block.text
    found = [pl.DataFrame(schema=RANK_TIMES)]
    # Each search takes a tenth of the time in which a block of timers is read.
    if any(mark in text for mark in _IN_LINE):
        found.append(pl.DataFrame(list(_in_line(block)), schema=RANK_TIMES, orient="row"))
    if b"across ranks (ms):" in text:
        found += [_tables(block), _ranges(block)]
    if b"data_time: " in text:
        found.append(_steps(block))
    return pl.concat(found)


def _in_line(block: TextBlock) -> Iterator[tuple[str, int, int, str, str, int, float]]:
    """Lines that name the ranks with the largest and the smallest values, and scores."""
    lines = block.matching(r"Rtt/Rnk: |Etpt/Rnk: |Ranks with (?:lowest|highest)|\bRank=\d+ .*Score=")
    for number, text in lines.select("line_number", "text").iter_rows():
        for kind, extreme, rank, value in _ranks_of(text):
            yield block.source, number, number, kind, extreme, rank, value


def _ranks_of(text: str) -> Iterator[tuple[str, str, int, float]]:
    for match in _STRAGGLER.finditer(text):
        extreme = "max" if match["extreme"] == "x" else "min"
        yield _NAMES[match["name"]], extreme, int(match["rank"]), float(match["value"])
    for match in _LISTED.finditer(text):
        extreme = "low" if match["end"] == "Bottom" else "high"
        for pair in _PAIR.finditer(match["list"]):
            yield "throughput", extreme, int(pair["rank"]), float(pair["value"])
    for match in _SCORE.finditer(text):
        yield "score", "each", int(match["rank"]), float(match["value"])


def _tables(block: TextBlock) -> pl.DataFrame:
    """Megatron's timers of each rank: a heading, the name of a timer, and a line for each rank."""
    if not block.texts.str.contains(_TABLE_RANK).any():
        return pl.DataFrame(schema=RANK_TIMES)
    lines = block.matching(_TABLE)
    text = pl.col("text")
    rank = text.str.extract(_TABLE_RANK, 1).cast(pl.Int64, strict=False)
    name = pl.when(rank.is_null()).then(text.str.extract(r"([\w/-]+)[ .]*:\s*$").fill_null(""))
    heading = pl.when(text.str.contains(r"across ranks \(ms\):\s*$")).then(pl.col("line_number"))
    rows = lines.with_columns(
        rank=rank,
        value=text.str.extract(_TABLE_RANK, 2).cast(pl.Float64, strict=False),
        name=name.forward_fill(),
        interval=heading.forward_fill(),
    )
    kind = pl.col("name").replace_strict(_KINDS, default=None, return_dtype=pl.String)
    whole = pl.col("rank").is_not_null() & pl.col("interval").is_not_null()
    return _rows(rows.filter(whole).with_columns(kind=kind, extreme=pl.lit("each")).drop_nulls("kind"))


def _ranges(block: TextBlock) -> pl.DataFrame:
    """Megatron's timers with the smallest and the largest of all ranks, which no line names."""
    lines = block.matching(_RANGE)
    kind = pl.col("text").str.extract(_RANGE, 1).replace_strict(_KINDS, default=None, return_dtype=pl.String)
    both = [
        _rows(
            lines.with_columns(
                kind=kind,
                extreme=pl.lit(extreme),
                rank=pl.lit(None, pl.Int64),
                interval=pl.col("line_number"),
                value=pl.col("text").str.extract(_RANGE, group).cast(pl.Float64, strict=False),
            )
        )
        for group, extreme in ((2, "min"), (3, "max"))
    ]
    return pl.concat(both)


def _steps(block: TextBlock) -> pl.DataFrame:
    """Step lines with the time that a rank waited for its batch, and that of the step after it, in seconds."""
    lines = block.matching(_STEP).with_columns(
        rank=pl.col("text").str.extract(_STEP_RANK).cast(pl.Int64, strict=False),
        interval=pl.col("text").str.extract(_STEP, 1).cast(pl.Int64, strict=False),
        extreme=pl.lit("each"),
    )
    kinds = [
        _rows(
            lines.with_columns(
                kind=pl.lit(kind), value=pl.col("text").str.extract(_STEP, group).cast(pl.Float64, strict=False) * _MS
            )
        )
        for group, kind in ((2, "data"), (3, "compute"))
    ]
    return pl.concat(kinds)


def _rows(lines: pl.DataFrame) -> pl.DataFrame:
    return lines.select(pl.col(name).cast(dtype) for name, dtype in RANK_TIMES.items()).filter(pl.col("value") >= 0)
