"""Step lines to rows, for one format: block by block, then joined.

Comes in: lines, of which those with one of the format's markers count. Goes out: one row per step line, and the
account of what could not be read. Settings are not read here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

import polars as pl
import regex

from logparse.decode.fast_path import Templates, without
from logparse.decode.multiline_records import NO_PAIRS, find_pair_lines, of_rows, with_pair_lines
from logparse.decode.rechunk import in_one_piece
from logparse.decode.regex_rule import find_heads, find_tails, read_values, split_pairs, spread, widen
from logparse.decode.related_lines import (
    banner_lines,
    find_companions,
    join_companions,
    malformed_companions,
    no_companions,
    read_companions,
)
from logparse.decode.slow_patterns import SECONDS, stopped_by_name
from logparse.decode.step_numbers import with_step
from logparse.decode.values import DTYPE, collected, group_names, whole, with_others
from logparse.formats._base import TIMESTAMP, LogFormat
from logparse.light_dataclass import dataclass, field, replace
from logparse.schema import DECODED_COLUMNS, TIME, conform

_NO_ROW = pl.DataFrame(schema={"source": pl.String, "line_number": pl.Int64, "timestamp": pl.Datetime})
# The label of a damaged time stamp.
STAMP = "timestamp"
_NO_STEP = conform(_NO_ROW, DECODED_COLUMNS)
_NO_TAIL = pl.DataFrame(
    schema={"row": pl.UInt32, "label": pl.String, "column": pl.String, "number": pl.Float64, "repeated": pl.Boolean}
)


@dataclass(frozen=True)
class Malformed:
    """One value that could not be read."""

    source: str
    line_number: int
    label: str
    text: str


@dataclass(frozen=True)
class StepLines:
    """What the step lines of one format hold. ``labels`` counts every label; ``unread`` the unknown ones.

    ``stepless``: lines that have all but a step; where records have no step line at all, their values, of so many
    ``records``. ``broken``: source and number of the lines with a step that end early.
    """

    steps: pl.DataFrame
    torn: int = 0
    stepless: int = 0
    records: int = 0
    broken: tuple[tuple[str, int], ...] = ()
    labels: dict[str, int] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)
    malformed: tuple[Malformed, ...] = ()


@dataclass(frozen=True)
class StepBlock:
    """What one block of lines gives one format.

    ``rows`` are the heads in order of the lines, and ``row`` of another frame is the index of one; ``tails`` are read
    pairs that count only where most lines of the log end so; ``companions`` are the lines of each companion, of which
    those are ``malformed_related`` that could not be read; ``pairs`` are those of pair lines.
    """

    rows: pl.DataFrame
    tails: pl.DataFrame
    companions: tuple[pl.DataFrame, ...]
    labels: Counter[str]
    malformed: tuple[Malformed, ...]
    malformed_related: tuple[Malformed, ...] = ()
    pairs: pl.DataFrame = field(default_factory=lambda: NO_PAIRS)

    @property
    def holds_any(self) -> bool:
        """Whether there is a head or a line that completes one."""
        return bool(len(self.rows) or len(self.pairs) or any(map(len, self.companions)))

    def compact(self, source: str) -> StepBlock:
        """The same, all of the file ``source``, in as little memory as it will take in the end.

        Its name is kept once, and so is the null of a column without a value.
        """
        nulls = self.rows.null_count().row(0, named=True)
        typed = [
            (pl.col(name) if n < len(self.rows) else pl.lit(None).alias(name)).cast(DTYPE[name])
            for name, n in nulls.items()
            if name in DTYPE and name != "source"
        ]
        return replace(self, rows=self.rows.with_columns(*typed, source=pl.lit(source)))


def no_steps(fmt: LogFormat) -> StepBlock:
    """What a block without a step line or a companion gives."""
    return StepBlock(_NO_ROW, _NO_TAIL, tuple(map(no_companions, fmt.companions)), Counter(), ())


def decode_steps(lines: pl.DataFrame, fmt: LogFormat) -> StepLines:
    """Decode ``lines`` (source, line_number, text, complete, perhaps clock) with ``fmt``, by its patterns alone.

    A step line without its step or one of the format's required columns is torn: counted, not kept.
    """
    clocked = lines if "clock" in lines.columns else lines.with_columns(clock=pl.lit(None, TIME))
    return join_blocks([decode_block(clocked, fmt)[0]], fmt)


def decode_block(
    lines: pl.DataFrame, fmt: LogFormat, templates: Templates | None = None
) -> tuple[StepBlock, pl.DataFrame]:
    """Decode a block of ``lines`` of one file, and give those back that may hold more than a step line.

    What fits one of ``templates`` is read the fast way, the rest by the rule.
    """
    marked = lines.filter(pl.col("text").str.contains_any(list(fmt.marker)))
    fitted = templates.read(marked) if templates else None
    if fitted is None:
        return _by_patterns(marked, lines, fmt), lines
    others = without(lines, fitted.explained)
    read = replace(no_steps(fmt), rows=fitted.rows, labels=fitted.labels)
    return merge([read], _by_patterns(fitted.left, others, fmt)), without(lines, fitted.explained)


def _by_patterns(marked: pl.DataFrame, others: pl.DataFrame, fmt: LogFormat) -> StepBlock:
    """Decode the lines ``marked``, and the companions and pair lines among ``others``."""
    related = _related(others, fmt)
    if marked.is_empty():
        return related
    heads = find_heads(marked, fmt)
    # Words of one trainer are on lines of another: to go on with no line takes as long as with a hundred.
    if heads.is_empty():
        return related
    pairs, tails = (read_values(texts, fmt) for texts in (split_pairs(heads, fmt), find_tails(heads, fmt)))
    known = pairs.filter(pairs["column"].is_not_null())
    return replace(
        related,
        rows=spread(heads, known),
        tails=_repeated(tails, known) if len(tails) else _NO_TAIL,
        labels=_count(pairs),
        # By line, so that the order does not depend on where a log is cut into blocks.
        malformed=tuple(sorted((*_damaged_stamps(heads), *_malformed(known)), key=lambda bad: bad.line_number)),
    )


def _damaged_stamps(heads: pl.DataFrame) -> Iterator[Malformed]:
    """The time stamps before ``heads`` that are no time, such as one of the year 0."""
    unstamped = heads.lazy().filter(pl.col("timestamp").is_null() & pl.col("before").is_not_null())
    stamps = unstamped.select("source", "line_number", stamp=pl.col("before").str.extract(f"({TIMESTAMP})"))
    invalid = collected(stamps.drop_nulls("stamp"))
    return (Malformed(source, at, STAMP, text) for source, at, text in invalid.iter_rows())


def _repeated(tails: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """``tails`` with ``repeated``, null where no ``known`` pair of the line fills the same column."""
    before = known.select("row", "column", repeated=True).unique()
    return tails.join(before, on=("row", "column"), how="left", maintain_order="left")


def _related(lines: pl.DataFrame, fmt: LogFormat) -> StepBlock:
    """The companions and pair lines. Most formats have none, so that one search excludes them all."""
    nothing = replace(no_steps(fmt), pairs=find_pair_lines(lines, fmt))
    markers = [companion.marker for companion in fmt.companions]
    marked = lines.filter(pl.col("text").str.contains_any(markers)) if markers else lines.clear()
    if marked.is_empty():
        return nothing
    texts = [find_companions(marked, companion) for companion in fmt.companions]
    read = [
        read_companions(rows, companion) if len(rows) else no_companions(companion)
        for rows, companion in zip(texts, fmt.companions, strict=True)
    ]
    lost = chain.from_iterable(map(malformed_companions, texts, read))
    malformed = sorted((Malformed(*bad) for bad in lost), key=lambda bad: bad.line_number)
    return replace(nothing, companions=tuple(read), malformed_related=tuple(malformed))


def merge(read: Sequence[StepBlock], rest: StepBlock) -> StepBlock:
    """Put what was ``read`` of lines by templates among the ``rest``, rows in order of the lines."""
    every = [*read, rest]
    rows, tails = _merged_rows([block.rows for block in read if len(block.rows)], rest)
    return replace(
        rest,
        rows=rows,
        tails=tails,
        companions=_joined_companions(every),
        labels=_summed_labels(every),
        pairs=pl.concat(block.pairs for block in every),
    )


def _merged_rows(read: Sequence[pl.DataFrame], rest: StepBlock) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows, and the tails of ``rest``, which know their rows by their places."""
    if not read:
        return rest.rows, rest.tails
    if rest.rows.is_empty():
        return _in_order(pl.concat(read, how="diagonal")), rest.tails
    both = _in_order(pl.concat([*read, rest.rows.with_row_index("of rest")], how="diagonal"))
    places = both.with_row_index("row").select("row", "of rest").drop_nulls()
    tails = rest.tails.rename({"row": "of rest"}).join(places, on="of rest", how="inner", maintain_order="left")
    return both.drop("of rest"), tails.drop("of rest")


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    return rows if rows["line_number"].is_sorted() else rows.sort("line_number", maintain_order=True)


def join_blocks(blocks: Sequence[StepBlock], fmt: LogFormat) -> StepLines:
    """The step lines of a whole log, from its ``blocks`` in order."""
    if not blocks:
        return StepLines(_NO_STEP)
    log, pairs = _as_one_block(blocks), [block.pairs for block in blocks]
    # They would hold what is to be given back.
    del blocks
    rows = in_one_piece(log.rows)
    log = replace(log, rows=rows, pairs=of_rows(pairs, rows) if fmt.pair_lines else NO_PAIRS)
    for stage in (_with_tails, _with_pair_lines, _with_companions, _with_steps, _drawn_once):
        log = stage(log, fmt)
    # A damaged number may be larger than any step.
    a_step = pl.col("step").cast(pl.Int64, strict=False).is_not_null()
    whole = pl.all_horizontal(a_step, *(pl.col(name).is_not_null() for name in fmt.required))
    torn = log.rows.select((~whole).sum()).item()
    labels = dict(sorted(log.labels.items(), key=lambda count: (-count[1], count[0])))
    broken = log.rows.filter(a_step & ~whole).select("source", "line_number").rows() if torn else ()
    # A filter takes the place of the rows again.
    return StepLines(
        steps=conform(log.rows.filter(whole) if torn else log.rows, DECODED_COLUMNS, strict=False),
        torn=torn,
        stepless=_stepless(log.rows, pairs, fmt) if torn or fmt.pair_lines else 0,
        records=_records(pairs) if fmt.pair_lines and log.rows.is_empty() else 0,
        broken=tuple(broken),
        labels=labels,
        unread=_unread(labels, fmt),
        malformed=(*log.malformed, *log.malformed_related),
    )


def _stepless(rows: pl.DataFrame, pairs: Sequence[pl.DataFrame], fmt: LogFormat) -> int:
    """How many lines have the required columns except the step; without any line, how many values records have."""
    if rows.is_empty():
        return sum(len(block) - block["column"].null_count() for block in pairs)
    others = (pl.col(name).is_not_null() for name in fmt.required if name != "step")
    return len(rows.filter(pl.col("step").is_null(), *others))


def _records(pairs: Sequence[pl.DataFrame]) -> int:
    """How many records ``pairs`` are of: each prints a label once."""
    labels = pl.concat([pl.Series("label", [], pl.String), *(block["label"].cast(pl.String) for block in pairs)])
    return int(labels.unique_counts().max() or 0)  # type: ignore[arg-type]


def _as_one_block(blocks: Sequence[StepBlock]) -> StepBlock:
    """``blocks`` as a block of the whole log, without their pairs, which know their rows once these are in one piece.

    The rows are a frame of its own, since their columns are taken out of it.
    """
    filled = [block.rows.clone() for block in blocks if len(block.rows)]
    return StepBlock(
        rows=pl.concat(filled or [_NO_ROW], how="diagonal_relaxed"),
        tails=_joined_tails(blocks),
        companions=_joined_companions(blocks),
        labels=_summed_labels(blocks),
        malformed=tuple(bad for block in blocks for bad in block.malformed),
        malformed_related=tuple(bad for block in blocks for bad in block.malformed_related),
    )


def _joined_companions(blocks: Sequence[StepBlock]) -> tuple[pl.DataFrame, ...]:
    return tuple(pl.concat(lines) for lines in zip(*(block.companions for block in blocks), strict=True))


def _summed_labels(blocks: Sequence[StepBlock]) -> Counter[str]:
    return sum((block.labels for block in blocks), Counter[str]())


def _joined_tails(blocks: Sequence[StepBlock]) -> pl.DataFrame:
    """The tails of all blocks, with the rows of the whole log that they are of."""
    before = accumulate((len(block.rows) for block in blocks), initial=0)
    tails = [(block.tails, n) for block, n in zip(blocks, before, strict=False) if len(block.tails)]
    return pl.concat([block_tails.with_columns(pl.col("row") + n) for block_tails, n in tails] or [_NO_TAIL])


def _with_tails(log: StepBlock, _: LogFormat) -> StepBlock:
    """Fill columns from the tails that no other pair of the line fills, where most lines have a tail.

    Otherwise a pair without a separator means a line that was cut off, and digits may be lost.
    """
    if len(log.tails) <= len(log.rows) / 2:
        return log
    filled = with_others(log.rows, widen(log.tails.filter(pl.col("repeated").is_null())), "tail")
    return _with_read(log, filled, log.tails, _malformed(log.tails))


def _with_pair_lines(log: StepBlock, fmt: LogFormat) -> StepBlock:
    """Fill columns from the pair lines after a step line."""
    if not fmt.pair_lines:
        return log
    malformed = sorted(_malformed(log.pairs), key=lambda bad: bad.line_number)
    return _with_read(log, with_pair_lines(log.rows, log.pairs), log.pairs, malformed)


def _with_read(log: StepBlock, rows: pl.DataFrame, pairs: pl.DataFrame, malformed: Sequence[Malformed]) -> StepBlock:
    """``log`` with the ``rows`` that ``pairs`` filled, and these counted."""
    return replace(log, rows=rows, labels=log.labels + _count(pairs), malformed=(*log.malformed, *malformed))


def _with_companions(log: StepBlock, fmt: LogFormat) -> StepBlock:
    """Fill columns from the companions. Columns that the format knows and no line prints are null."""
    columns = [*(r.column for r in fmt.labels.values()), *fmt.required, *_of_companions(fmt)]
    null, present = pl.lit(None, pl.Float64), set(log.rows.columns)
    rows = log.rows.with_columns(null.alias(c) for c in dict.fromkeys(columns) if c not in present)
    for lines, companion in zip(banner_lines(log.companions, fmt.companions, rows), fmt.companions, strict=False):
        # Joining none to the rows of a large log takes a fifteenth of its time.
        if len(lines):
            rows = join_companions(rows, lines, companion)
    return replace(log, rows=rows)


def _of_companions(fmt: LogFormat) -> list[str]:
    """The columns that companions of a format fill."""
    return [name for companion in fmt.companions for name in group_names(companion.pattern) if name != "part"]


def _with_steps(log: StepBlock, fmt: LogFormat) -> StepBlock:
    """Count the steps from the start of training."""
    # A number on the step line that is no step is none of another kind either.
    names = {*group_names(fmt.head)}
    rows = with_step(log.rows, not {"step", "epoch"} & names, fmt.first_epoch, on_line="step" in names)
    if rows["step"].dtype.is_float():
        rows = rows.with_columns(step=whole(pl.col("step")))
    if fmt.counted:
        rows = rows.with_columns(step=pl.int_range(1, pl.len() + 1).over("source"))
    return replace(log, rows=rows)


def _drawn_once(log: StepBlock, fmt: LogFormat) -> StepBlock:
    """Leave out the rows of a bar that was drawn again at the same step, and those of bars of other work."""
    if fmt.longest_plan:
        log = replace(log, rows=_of_longest_plan(log.rows))
    if not fmt.redrawn:
        return log
    again = (pl.struct("source", "step") == pl.struct("source", "step").shift(1)) & pl.col("step").is_not_null()
    rows = log.rows.with_columns(_again=again.fill_null(value=False))
    # What a companion gave to a line that is left out is of the first line of its step.
    given = [name for name in _of_companions(fmt) if name in rows.columns]
    rows = rows.with_columns(pl.col(given).backward_fill().over((~pl.col("_again")).cum_sum())) if given else rows
    return replace(log, rows=rows.filter(~pl.col("_again")).drop("_again"))


def _of_longest_plan(rows: pl.DataFrame) -> pl.DataFrame:
    """The ``rows`` whose planned steps are on the lines that are farthest apart; where two are, the first of them."""
    if rows.is_empty():
        return rows
    line, plan = pl.col("line_number").cast(pl.Int64), pl.col("train_steps")
    spans = rows.group_by("source", "train_steps", maintain_order=True).agg(span=line.max() - line.min())
    longest = spans.sort("span", descending=True, maintain_order=True).unique("source", keep="first")
    kept = longest.select("source", longest="train_steps")
    joined = rows.join(kept, on="source", how="left", maintain_order="left")
    return joined.filter(plan.eq_missing(pl.col("longest"))).drop("longest")


def _count(pairs: pl.DataFrame) -> Counter[str]:
    return Counter(dict(pairs.group_by("label").len().iter_rows()))


def _unread(labels: dict[str, int], fmt: LogFormat) -> dict[str, int]:
    """The labels that the format neither reads nor leaves out."""
    ignored = regex.compile("|".join(fmt.ignored_patterns) or "(?!)")
    known = fmt.ignored | fmt.labels.keys()
    with stopped_by_name(fmt.name):
        others = ((name, n) for name, n in labels.items() if name not in known)
        return {name: n for name, n in others if not ignored.fullmatch(name, timeout=SECONDS)}


def _malformed(pairs: pl.DataFrame) -> tuple[Malformed, ...]:
    bad = pairs[["source", "line_number", "label", "text"]].filter(pairs["malformed"])
    return tuple(Malformed(*row) for row in bad.iter_rows())
