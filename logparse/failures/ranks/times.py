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
# Timers of Megatron, by what they measure. Other timers hold waiting for other ranks.
_KINDS = {"forward-compute": "compute", "backward-compute": "compute", "batch-generator": "data"}
_KINDS |= {"forward-backward": "step"}
# Literals without which a line has no time of a rank, but for the lines of a table below the first of them.
_TABLES = "across ranks (ms):"
RANK_MARKS = (_TABLES, "Rtt/Rnk: ", "Etpt/Rnk: ", "Ranks with ", "Score=", "data_time: ", *_KINDS)
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


def find_rank_times(block: TextBlock, marked: pl.DataFrame) -> pl.DataFrame:
    """Every time of a rank in ``block``, in order: rows of RANK_TIMES. ``rank`` is null where the line has none.

    The lines ``marked`` are those that hold one of RANK_MARKS.
    """
    found = [pl.DataFrame(list(_in_line(marked)), schema=RANK_TIMES, orient="row")]
    if marked["text"].str.contains(_TABLES, literal=True).any():
        found += [_tables(block), _ranges(marked)]
    return pl.concat([*found, _steps(marked)])


def _matching(lines: pl.DataFrame, pattern: str) -> pl.DataFrame:
    return lines.filter(pl.col("text").str.contains(pattern))


def _in_line(marked: pl.DataFrame) -> Iterator[tuple[str, int, int, str, str, int, float]]:
    """Lines that name the ranks with the largest and the smallest values, and scores."""
    lines = _matching(marked, r"Rtt/Rnk: |Etpt/Rnk: |Ranks with (?:lowest|highest)|\bRank=\d+ .*Score=")
    for source, number, text in lines["source", "line_number", "text"].iter_rows():
        for kind, extreme, rank, value in _ranks_of(text):
            yield source, number, number, kind, extreme, rank, value


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
    # Patterns that begin with a word search ten times as fast.
    if not block.texts.str.contains(r"rank +\d+: ").any():
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


def _ranges(marked: pl.DataFrame) -> pl.DataFrame:
    """Megatron's timers with the smallest and the largest of all ranks, which no line names."""
    groups = pl.col("text").str.extract_groups(_RANGE).struct.rename_fields(["name", "min", "max"])
    lines = _matching(marked, _RANGE).with_columns(groups=groups, interval="line_number").unnest("groups")
    kind = pl.col("name").replace_strict(_KINDS, default=None, return_dtype=pl.String)
    whole = lines.with_columns(kind=kind, rank=pl.lit(None, pl.Int64))
    both = [
        _rows(whole.with_columns(extreme=pl.lit(extreme), value=pl.col(extreme).cast(pl.Float64, strict=False)))
        for extreme in ("min", "max")
    ]
    return pl.concat(both)


def _steps(marked: pl.DataFrame) -> pl.DataFrame:
    """Step lines with the time that a rank waited for its batch, and that of the step after it, in seconds."""
    lines = _matching(marked, _STEP).with_columns(
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
