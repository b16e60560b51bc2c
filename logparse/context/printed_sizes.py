"""Sizes that follow from what lines print: two paces of one line, such as a time and a rate, hold the work of a step.

Comes in: step rows, what is known of the run, settings. Goes out: batch, sequence length and number of devices where
one whole number alone fits the rounding of the rows, or the rows agree on one. A mean over other steps than those of
the other pace gives none. The rates of a whole run, and the samples and tokens consumed, give sizes too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import ceil
from typing import Any

import polars as pl
import regex

from logparse.context.relations import BATCH, LENGTH, OF_STEPS, PACES, SUMMARY, TIME, WORLD, Fact, Pace
from logparse.context.run_context import RunContext
from logparse.context.step_times import resolution
from logparse.findings import Note, Origin, info, warning
from logparse.formats._base import Covers
from logparse.light_dataclass import dataclass

# The rules by which a size follows.
CODES = {BATCH: "global_batch_of_rates", LENGTH: "seq_length_of_rates", WORLD: "world_size_of_rates"}
BATCH_OF_RATE, BATCH_OF_RUN = "global_batch_of_rate", "global_batch_of_rates_of_run"
BATCH_OF_CONSUMED, LENGTH_OF_CONSUMED = "global_batch_of_consumed_samples", "seq_length_of_consumed"
SAMPLES = "logged_samples_per_second"
# An unrelated number comes out whole, by accident, in so many cases at most.
MOST_ACCIDENTS = 0.01
# So many rows that leave so little together prove the number too, however coarse each is.
MANY_ROWS, NARROW = 10, 0.1
# Rows that agree without their rounding: so many at least, how far their median may be from a whole number, and the
# share of them that must be nearer to it than to another one.
FEWEST_ROWS, WHOLE, ROWS_NEAR, ONLY_ONE = 3, 5e-4, 0.8, 0.5
# Steps per second that are no mean of the steps which the other numbers of a line are of.
LONG_MEANS = ("start", "run")


@dataclass(frozen=True)
class _Answer:
    """A value of a size, by the rule ``code``. ``exact``: it alone fits the rounding of every row."""

    value: int
    code: str
    exact: bool = True


def sizes_of_lines(
    steps: pl.DataFrame, context: RunContext, settings: pl.DataFrame, covers: Covers | None = None
) -> tuple[dict[str, Fact], list[Note]]:
    """The unknown ones of CODES that ``steps`` give, with their rule as origin, and where two rules disagree.

    ``settings`` hold the rates of the whole run. ``covers``: what the steps per second are a mean of.
    """
    sizes, facts, notes = context.values(), dict[str, Fact](), list[Note]()
    paces = [p for p in PACES if steps[p.column].count() and (p.sizes or p.column == TIME or covers not in LONG_MEANS)]
    # The mean of samples of different lengths is no length.
    known = {*sizes, *([LENGTH] if sizes.get("variable_seq_lengths") or sizes.get("mixed_step") else [])}
    unknown = [name for name in CODES if name not in known and (name == WORLD or steps[name].is_null().all())]
    pending = [*unknown]
    while pending:
        name = pending.pop(0)
        answers = list(_answers(name, steps, paces, sizes, settings))
        answers = [answer for answer in answers if answer.exact] or answers
        if len({answer.value for answer in answers}) > 1:
            notes.append(_disagreement(name, answers))
            unknown.remove(name)
        elif answers:
            facts[name] = Fact(answers[0].value, Origin("derived", rule=answers[0].code))
            sizes[name] = answers[0].value
            # Another size can need it.
            pending = [size for size in unknown if size not in facts]
    return facts, notes


def _disagreement(name: str, answers: Sequence[_Answer]) -> Note:
    """Two of the ``answers`` with other values."""
    ways = {
        answer.value: info("known_quantity", name=name, value=answer.value, origin=Origin("derived", rule=answer.code))
        for answer in reversed(answers)
    }
    return warning("sizes_disagree", name=name, ways=list(ways.values())[:2])


def _answers(
    name: str, steps: pl.DataFrame, paces: Sequence[Pace], sizes: Mapping[str, Any], settings: pl.DataFrame
) -> Iterator[_Answer]:
    """What each way gives for the size ``name``."""
    yield from _batch_of_counts(steps) if name == BATCH else _length_of_counts(steps) if name == LENGTH else ()
    for first, second in combinations(paces, 2):
        if first.column != second.column:
            yield from _answer_of_paces(name, first, second, steps, sizes)
    if name == BATCH:
        yield from _batch_of_run(steps, settings)


def _answer_of_paces(
    name: str, first: Pace, second: Pace, steps: pl.DataFrame, sizes: Mapping[str, Any]
) -> Iterator[_Answer]:
    """The size ``name`` by two paces of each line, if it is their only unknown one."""
    powers = {size: second.sizes.get(size, 0) - first.sizes.get(size, 0) for size in (*first.sizes, *second.sizes)}
    power = powers.pop(name, 0)
    if not power:
        return
    ratio = _number(first) / _number(second)
    for size in [size for size, factor in powers.items() if factor]:
        column = _of_rows(size, steps, sizes)
        if column is None:
            return
        ratio *= column ** -powers[size]
    rounding = _rounding(steps[first.column]) + _rounding(steps[second.column])
    rows = steps.select(value=ratio**power, rounding=rounding).drop_nulls()
    rows = rows.filter(pl.col("value").is_finite() & (pl.col("value") > 0) & (pl.col("rounding") < 1))
    code = BATCH_OF_RATE if {first.column, second.column} == {TIME, SAMPLES} else CODES[name]
    if (exact := _only_whole(rows)) is not None:
        yield _Answer(exact, code)
    elif (agreed := _agreed(rows)) is not None:
        yield _Answer(agreed, code, exact=False)


def _number(pace: Pace) -> pl.Expr:
    """What the line prints, as steps per second or a multiple of them."""
    seconds = pl.col(pace.column) * pace.factor
    return 1 / seconds if pace.time else pl.col(pace.column)


def _of_rows(name: str, steps: pl.DataFrame, sizes: Mapping[str, Any]) -> pl.Expr | None:
    """A size of the run for each row: the line's own, else the known one; None where it is unknown."""
    known = pl.lit(sizes.get(name), pl.Float64)
    if name in steps.columns and steps[name].count():
        return pl.col(name).cast(pl.Float64).fill_null(known)
    return None if sizes.get(name) is None else known


def _only_whole(rows: pl.DataFrame) -> int | None:
    """The whole number that alone is within the rounding of every value of ``rows``, if it is no accident."""
    value, rounding = pl.col("value"), pl.col("rounding")
    ends = rows.unique().select(low=value * (1 - rounding), high=value * (1 + rounding))
    least, most = ends["low"].max(), ends["high"].min()
    if not isinstance(least, float) or not isinstance(most, float):
        return None
    accidents = (ends["high"] - ends["low"]).clip(upper_bound=1.0).product()
    proven = accidents <= MOST_ACCIDENTS or (len(ends) >= MANY_ROWS and most - least <= NARROW)
    return ceil(least) if proven and 1 <= ceil(least) <= most < ceil(least) + 1 else None


def _agreed(rows: pl.DataFrame) -> int | None:
    """The whole number that ``rows`` agree on, though not within their rounding; None where they do not."""
    middle, rounding = rows["value"].median(), rows["rounding"].median()
    if len(rows) < FEWEST_ROWS or not isinstance(middle, float) or not isinstance(rounding, float):
        return None
    size = round(middle)
    # A size of hundreds must be nearer to its whole number than half of one, and another one must not fit.
    if size < 1 or abs(middle - size) > max(min(WHOLE * size, 0.1), 2e-3) or rounding * size >= ONLY_ONE:
        return None
    near = ((rows["value"] - size).abs() < ONLY_ONE).mean()
    return size if isinstance(near, float) and near >= ROWS_NEAR else None


def _rounding(printed: pl.Series) -> pl.Series:
    """The share of each number that its rounding leaves open. Where none has more than three digits, as in 14.2K, their
    trailing zeros are rounded.
    """
    third = 10.0 ** ((printed.log(10) + 1e-9).floor() - 2)
    short = ((printed / third).round(6) % 1 == 0).all()
    unit = resolution(printed)
    return (third.clip(lower_bound=unit) if short else unit) / 2 / printed


def _batch_of_counts(steps: pl.DataFrame) -> Iterator[_Answer]:
    """The batch by the samples consumed from one line to another."""
    step, samples = (pl.col(name).diff() for name in ("step", "consumed_samples"))
    each = steps.drop_nulls("consumed_samples").select(value=samples / step, rounding=pl.lit(0.0))
    if size := _agreed(each.filter(pl.col("value").is_finite() & (pl.col("value") > 0))):
        yield _Answer(size, BATCH_OF_CONSUMED)


def _length_of_counts(steps: pl.DataFrame) -> Iterator[_Answer]:
    """The length by the tokens and samples consumed so far; counts of samples below 1 / MOST_ACCIDENTS prove none."""
    tokens, samples = steps.select("consumed_tokens", "consumed_samples").drop_nulls().get_columns()
    if not len(tokens) or (tokens % 1000 == 0).all() or int(samples.min() or 0) * MOST_ACCIDENTS < 1:  # type: ignore[arg-type]
        return
    lengths = (tokens / samples).unique()
    if len(lengths) == 1 and lengths[0].is_integer():
        yield _Answer(int(lengths[0]), LENGTH_OF_CONSUMED)


def _batch_of_run(steps: pl.DataFrame, settings: pl.DataFrame) -> Iterator[_Answer]:
    """Samples of a step by the rates that a line prints of the whole run, if all such lines give the same."""
    rates = settings.filter(pl.col("name").is_in([SAMPLES, OF_STEPS, "train_runtime"]) & (pl.col("kind") == SUMMARY))
    sizes = {
        _batch_of_summary(dict(printed.select("name", "value").iter_rows()), steps.filter(source=source))
        for (source, _), printed in rates.group_by("source", "line_number")
    }
    if len(sizes) == 1 and (size := sizes.pop()):
        yield _Answer(size, BATCH_OF_RUN)


def _batch_of_summary(printed: Mapping[str, str], steps: pl.DataFrame) -> int | None:
    """The only batch that the rates of a run allow.

    They count the samples that there are: an epoch has up to one step more or fewer than whole batches of them.
    """
    (samples, of_samples), (rate, of_rate) = (_read(printed.get(name, "")) for name in (SAMPLES, OF_STEPS))
    most: dict[str, Any] = steps.select(pl.col("step", "train_steps", "epoch", "epochs").max()).row(0, named=True)
    planned = most["train_steps"] or most["step"] or 0
    epochs = max(1, ceil(most["epochs"] or most["epoch"] or 1))
    if not (samples > 0 and rate > 0 and planned > epochs):
        return None
    seconds, of_seconds = _read(printed.get("train_runtime", ""))
    # A slow step has a rate of one digit, such as 0.1; the time of the run is finer.
    if seconds > 0 and abs(planned / seconds - rate) <= of_rate:
        rate, of_rate = planned / seconds, planned / seconds * of_seconds / seconds
    low = (samples - of_samples) / (rate + of_rate) / (1 + epochs / planned)
    high = (samples + of_samples) / (rate - of_rate) / (1 - epochs / planned)
    size = ceil(low)
    return size if 1 <= size <= high < size + 1 else None


def _read(printed: str) -> tuple[float, float]:
    """A printed number, and half the unit of its last decimal; 0 where it is none."""
    if not regex.fullmatch(r"\d+(?:\.\d+)?", printed):
        return 0.0, 0.0
    return float(printed), 0.5 * 10.0 ** -len(printed.partition(".")[2])
