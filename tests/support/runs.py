"""Runs whose truth is known: logs made to measure, rows made by hand, and the whole way from a log to its numbers."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
from helpers import megatron_line

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.result import Analysis
from analysis.run.rows.warm_up import WarmUpRule
from analysis.run.tables import COMPUTED_COLUMNS, STEP_COLUMNS
from logparse.schema import DECODED_COLUMNS, EVENT_COLUMNS, conform

BEGIN = datetime(2026, 3, 1, 8)
WORLD = "using world size: 8, data-parallel size: 8, tensor-model-parallel size: 1, pipeline-model-parallel size: 1 "
THROUGHPUT = "throughput per GPU (TFLOP/s/GPU)"


def started(first: int, clock: datetime) -> list[str]:
    """What a process prints before its first step line."""
    loaded = f"  successfully loaded checkpoint from ckpt [ t 0, p 0 ] at iteration {first - 1}"
    begun = f"[before the start of training step] datetime: {clock:%Y-%m-%d %H:%M:%S} "
    return [*([loaded] if first > 1 else []), begun]


def stamped_log(
    starts: Iterable[tuple[int, int]], time_of: Callable[[int, int], float], tflops: float = 150.0, usual: float = 7000
) -> list[str]:
    """Lines of a run of ``starts`` (first and last step); ``time_of`` a step and its place in the start is ms.

    ``tflops`` is printed for a step of the ``usual`` time, other steps in proportion. Stamps lie at the ends of steps.
    """
    lines, clock = [WORLD], BEGIN
    for first, last in starts:
        lines += started(first, clock)
        for step in range(first, last + 1):
            ms = time_of(step, step - first)
            clock += timedelta(milliseconds=ms)
            pairs: dict[str, str | None] = {THROUGHPUT: f"{tflops * usual / ms:.1f}"}
            lines.append(megatron_line(step, ms, f"{clock:%Y-%m-%d %H:%M:%S}", pairs))
    return lines


def acceptance_time(step: int, place: int) -> float:
    """7 s; the first two steps of a start take longer, and every 25th saves for 9 s."""
    return {0: 61_000.0, 1: 11_000.0}.get(place, 7000.0) + (9000.0 if step % 25 == 0 else 0.0)


def acceptance_log() -> bytes:
    """200 steps of 7 s; a crash after step 60 and a restart from 50; one line in colour behind bytes that are no text.

    Worked by hand in docs/numbers.md.
    """
    lines = [line.encode() for line in stamped_log([(1, 60), (51, 200)], acceptance_time)]
    odd = next(i for i, line in enumerate(lines) if b"iteration       70/" in line)
    lines[odd] = b"\xff\xfe\x1b[32m" + lines[odd] + b"\x1b[0m"
    return b"\n".join(lines) + b"\n"


def analyze_files(*paths: Path, warm_up: int | None = None) -> Analysis:
    """The whole way from files to numbers, as the command goes it."""
    return analyze_logs([str(path) for path in paths], RunOptions(warm_up=WarmUpRule(warm_up))).analysis


def analyze_text(folder: Path, *texts: str | bytes, warm_up: int | None = None) -> Analysis:
    """Numbers of a run whose files hold ``texts``."""
    paths = [folder / f"part{number}.log" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return analyze_files(*paths, warm_up=warm_up)


def rate_of(result: Analysis, name: str, column: str = "step_time_ms") -> float | None:
    """One cell of the rates."""
    found: float | None = result.rates.row(by_predicate=pl.col("rate") == name, named=True)[column]
    return found


def parts_of(time_breakdown: pl.DataFrame) -> dict[str, float]:
    """Seconds of each part of the account."""
    return dict(time_breakdown.select("part", "seconds").iter_rows())


def rows(steps: list[int], source: str = "a.log", **columns: list[object]) -> pl.DataFrame:
    """One row per step on the lines 10, 20, 30 ... of ``source``, one second each unless ``columns`` say otherwise."""
    lines = [10 * (i + 1) for i in range(len(steps))]
    base = {"run": ["r"] * len(steps), "source": [source] * len(steps), "line_number": lines, "step": steps}
    frame = pl.DataFrame(base | {"step_time_ms": [1000.0] * len(steps)} | columns, strict=False)
    return conform(frame, (*DECODED_COLUMNS, COMPUTED_COLUMNS[0]))


def as_computed(steps: pl.DataFrame) -> pl.DataFrame:
    """Marked rows with all columns of the schema, as the stages after the window get them."""
    return conform(steps, STEP_COLUMNS)


def no_starts() -> pl.DataFrame:
    return pl.DataFrame(schema={"source": pl.String, "line_number": pl.Int64})


def events(*found: tuple[int, str, int | None, datetime | None], source: str = "a.log") -> pl.DataFrame:
    """Events (line number, kind, step, clock) of one file."""
    named = [
        {"source": source, "line_number": n, "kind": kind, "step": step, "timestamp": clock}
        for n, kind, step, clock in found
    ]
    schema = {c.name: c.dtype for c in EVENT_COLUMNS}
    return (
        pl.DataFrame(named, schema_overrides=schema).pipe(conform, EVENT_COLUMNS)
        if named
        else pl.DataFrame(schema=schema)
    )
