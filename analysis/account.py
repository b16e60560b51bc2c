"""Three named rates and where the time went.

Comes in: rows marked by ``window``, events, pauses. Goes out: frames ``rates`` and ``account``. A step is useful
when its update was made and kept: not skipped, not NaN, not done again after a restart, not another rank's copy.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.intervals import block_interval
from analysis.pauses import Pauses
from analysis.window import COPY, HOLDS_EVALUATION, HOLDS_SAVE, NAN, NO_TIME, REPLAYED, SKIPPED, STALL, WARM_UP
from logparse.schema import ACCOUNT_COLUMNS, RATE_COLUMNS, conform

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COVERS = {
    "steady": "median over the rows that count",
    "delivered": "useful steps over the time of their rows and of skipped ones; warm-up and replay left out, stalls in",
    "all steps": "useful steps over the time of all step lines, warm-up and replay in",
    "all-in": "useful steps over the clock, from the first line with a time stamp to the last",
}
USEFUL = "useful steps at the steady pace"

# Work per step by which the per-device rates scale; each column is a rate, so work is rate times time.
SCALED = (
    "tokens_per_second_per_device",
    "tflops_per_second_per_device",
    "logged_tflops_per_second_per_device",
    "mfu",
    "hfu",
)


@dataclass(frozen=True)
class Tally:
    """Rows with their time and useful steps. ``time_ms`` and ``useful`` are totals of a row over its iterations."""

    rows: pl.DataFrame

    @classmethod
    def of(cls, steps: pl.DataFrame) -> Tally:
        """Tally the rows that have a time and are no copies."""
        lost = pl.col("skipped_iterations").fill_null(0) + pl.col("nan_iterations").fill_null(0)
        kept = (
            pl.col("iterations") - pl.max_horizontal(lost, pl.col("overflow").fill_null(False).cast(pl.Int64))
        ).clip(0)
        rows = steps.filter(~pl.col("excluded_reason").is_in([COPY, NO_TIME]).fill_null(False))
        return cls(
            rows.with_columns(
                time_ms=pl.col("step_time_ms") * pl.col("iterations"),
                useful=pl.when("replayed").then(0).otherwise(kept),
            )
        )

    def without(self, *reasons: str) -> pl.DataFrame:
        """The rows with none of these reasons."""
        return self.rows.filter(~pl.col("excluded_reason").is_in(reasons).fill_null(False))


def name_rates(steps: pl.DataFrame, wall_seconds: float | None) -> pl.DataFrame:
    """Steady, delivered, all steps, all-in: ms per useful step with its 95 % interval, and the rates that follow."""
    tally = Tally.of(steps)
    counted = steps.filter("counted")
    delivered, everything = tally.without(WARM_UP, REPLAYED), tally.rows
    steady = {
        "step_time_ms": counted.select(pl.col("step_time_ms").median()).item(),
        "interval": block_interval(_matrix(counted, "step_time_ms"), _median),
        "steps": counted["iterations"].sum(),
        **{name: counted.select(pl.col(name).median()).item() for name in SCALED},
    }
    useful = int(everything["useful"].sum())
    wall_ms = wall_seconds * 1000 if wall_seconds else None
    rows = [
        _row("steady", steady),
        _row("delivered", _over(delivered, float(delivered["time_ms"].sum()), int(delivered["useful"].sum()))),
        _row("all steps", _over(everything, float(everything["time_ms"].sum()), useful)),
        _row("all-in", _over(everything, wall_ms, useful, interval=False)),
    ]
    frame = pl.DataFrame(
        rows, schema_overrides={c.name: c.dtype for c in RATE_COLUMNS if c.name != "run"}, infer_schema_length=None
    )
    return conform(frame.with_columns(run=pl.lit(steps["run"].first())), RATE_COLUMNS)


def _over(rows: pl.DataFrame, time_ms: float | None, useful: int, interval: bool = True) -> dict[str, Any]:
    """Rates of the useful work of ``rows`` over ``time_ms``."""
    if not time_ms or not useful:
        return {"steps": useful}
    share = pl.when(pl.col("iterations") > 0).then(pl.col("useful") / pl.col("iterations")).otherwise(0)
    work = {name: rows.select((pl.col(name) * pl.col("time_ms") * share).sum()).item() for name in SCALED}
    known = {name: value / time_ms for name, value in work.items() if rows[name].is_not_null().any()}
    bounds = block_interval(_matrix(rows, "time_ms", "useful"), _ratio) if interval else None
    return {"step_time_ms": time_ms / useful, "interval": bounds, "steps": useful, **known}


def _row(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    low, high = figures.pop("interval", None) or (None, None)
    empty = dict.fromkeys(("step_time_ms", *SCALED))
    return {
        "rate": name,
        **empty,
        **figures,
        "step_time_low_ms": low,
        "step_time_high_ms": high,
        "covers": COVERS[name],
    }


def _matrix(rows: pl.DataFrame, *columns: str) -> NDArray[np.float64]:
    import numpy as np

    table = np.array(rows.select(columns).drop_nulls().rows(), np.float64)
    matrix: NDArray[np.float64] = np.reshape(table, (-1, len(columns)))
    return matrix


def _median(drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    return np.asarray(np.median(drawn[:, :, 0], axis=1))


def _ratio(drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    time, useful = drawn[:, :, 0].sum(axis=1), drawn[:, :, 1].sum(axis=1)
    ratio: NDArray[np.float64] = time[useful > 0] / useful[useful > 0]
    return ratio


def wall_clock(steps: pl.DataFrame, events: pl.DataFrame) -> float | None:
    """Seconds from the first time stamp to the last; a step line counts from the beginning of its first step.

    None where step lines carry no time stamp.
    """
    stamped = steps.drop_nulls("timestamp")
    if len(stamped) < 2:
        return None
    held = pl.col("step_time_ms") * pl.col("iterations")
    known = pl.when(pl.col("excluded_reason").eq_missing(NO_TIME)).then(None).otherwise(held).fill_null(0)
    begin = stamped.select(pl.col("timestamp") - pl.duration(milliseconds=known)).to_series().min()
    stamps: list[Any] = [begin, stamped["timestamp"].max(), *events["timestamp"].drop_nulls()]
    seconds: float = (max(stamps) - min(stamps)).total_seconds()
    return seconds


def account_time(steps: pl.DataFrame, events: pl.DataFrame, pauses: Pauses) -> pl.DataFrame:
    """Where the time went, in seconds and as a share of the clock (of the step lines where there is no clock)."""
    tally = Tally.of(steps)
    wall = wall_clock(steps, events)
    parts = _inside(tally)
    if wall is not None:
        parts |= _outside(tally.rows, events, pauses)
    in_lines = float(tally.rows["time_ms"].sum()) / 1000
    total = wall if wall is not None else in_lines
    parts["not explained"] = total - sum(parts.values())
    rows = [
        {"part": part, "seconds": seconds, "share": seconds / total if total else None}
        for part, seconds in parts.items()
    ]
    frame = pl.DataFrame(rows, schema={"part": pl.String, "seconds": pl.Float64, "share": pl.Float64}, orient="row")
    return conform(frame.with_columns(run=pl.lit(steps["run"].first())), ACCOUNT_COLUMNS)


def _inside(tally: Tally) -> dict[str, float]:
    """What the step lines hold. Useful work is priced at the steady pace; what is above it has a reason."""
    rows = tally.rows.with_columns(samples=pl.col("global_batch_size").fill_null(1))
    pace = rows.filter("counted").select((pl.col("step_time_ms") / pl.col("samples")).median()).item()
    if pace is None:
        return {}
    fair = pl.col("samples") * pace * pl.col("useful")
    reason = pl.col("excluded_reason")

    def excess(*reasons: str) -> float:
        return (
            float(rows.filter(reason.is_in(reasons).fill_null(False)).select((pl.col("time_ms") - fair).sum()).item())
            / 1000
        )

    parts = {
        USEFUL: float(rows.select(fair.sum()).item()) / 1000,
        "warm-up": excess(WARM_UP),
        "replayed steps": excess(REPLAYED),
        "checkpoint saves": excess(HOLDS_SAVE),
        "evaluation": excess(HOLDS_EVALUATION),
        "stalls": excess(STALL),
        "skipped updates and NaN": excess(SKIPPED, NAN),
        "variation of settled steps": float(rows.filter("counted").select((pl.col("time_ms") - fair).sum()).item())
        / 1000,
    }
    return {part: seconds for part, seconds in parts.items() if abs(seconds) > 1e-9}


def _outside(rows: pl.DataFrame, events: pl.DataFrame, pauses: Pauses) -> dict[str, float]:
    """What lies between the step lines by their time stamps."""
    parts = {
        "start-up": 0.0,
        "restart gaps": 0.0,
        "checkpoint saves (between lines)": 0.0,
        "evaluation (between lines)": 0.0,
    }
    previous_end = None
    for _, start in rows.drop_nulls("timestamp").group_by("segment", maintain_order=True):
        first = start.row(0, named=True)
        began = first["timestamp"] - pl.Series([first["time_ms"] * 1000]).cast(pl.Duration("us"))[0]
        known = min(_process_begin(events, first, previous_end) or began, began)
        parts["start-up"] += (began - known).total_seconds()
        if previous_end is not None:
            parts["restart gaps"] += max(0.0, (known - previous_end).total_seconds())
        for part, seconds in _gaps(start, pauses).items():
            parts[part] += seconds
        previous_end = start["timestamp"].max()
    return {part: seconds for part, seconds in parts.items() if seconds}


def _process_begin(events: pl.DataFrame, first: dict[str, Any], after: Any) -> Any:
    """The earliest stamped event of the process that printed ``first``."""
    mine = events.filter(
        (pl.col("timestamp") <= first["timestamp"]) & pl.col("kind").is_in(["process starts", "training starts"])
    )
    if after is not None:
        mine = mine.filter(pl.col("timestamp") >= after)
    return mine["timestamp"].min()


def _gaps(start: pl.DataFrame, pauses: Pauses) -> dict[str, float]:
    """Gaps between rows that hold a save or an evaluation line, beyond the rows' own time."""
    gaps = start.select(
        after=pl.col("step").shift(1),
        to="step",
        seconds=pl.col("timestamp").diff().dt.total_microseconds() / 1e6 - pl.col("time_ms") / 1000,
    ).drop_nulls()
    found = {"checkpoint saves (between lines)": 0.0, "evaluation (between lines)": 0.0}
    for after, to, seconds in gaps.iter_rows():
        if _holds(pauses.evaluated, after, to):
            found["evaluation (between lines)"] += max(0.0, seconds)
        elif _holds(pauses.saved, after, to):
            found["checkpoint saves (between lines)"] += max(0.0, seconds)
    return found


def _holds(pauses: tuple[int, ...], after: int, to: int) -> bool:
    """Whether a pause lies between the rows of two steps."""
    at = bisect_left(pauses, after)
    return at < len(pauses) and pauses[at] < to
