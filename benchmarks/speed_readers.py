"""Ways to get the step lines of a log as typed columns. Prints the number of rows and two sums, which must be equal.

python benchmarks/speed_readers.py READER KIND LOG
"""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

Row = dict[str, Any]
# What the regexes call as the columns are called; the others are floats.
TYPES: dict[str, Any] = {
    **dict.fromkeys(("step", "train_steps", "epoch", "epochs"), int),
    **dict.fromkeys(("timer", "overflow"), str),
    "timestamp": datetime.fromisoformat,
}
PROBE = 2**16
HEAD = re.compile(r"iteration\s+(\d+)/\s*(\d+)")
STAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?")
MS = "elapsed_time_per_iteration_ms"


@dataclass(frozen=True)
class Line:
    """A kind of line: what it holds, and the regex whose groups are its columns."""

    marker: str
    regex: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(re.compile(self.regex).groupindex)


MEGATRON = Line(
    "elapsed time per iteration",
    r"^ \[(?P<timestamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+)\] iteration\s+(?P<step>\d+)/\s*(?P<train_steps>\d+) \| "
    r"consumed samples:\s*(?P<consumed_samples>\d+) \| elapsed time per iteration \(ms\): "
    rf"(?P<{MS}>[\d.]+) \| throughput per GPU \(TFLOP/s/GPU\): (?P<throughput>[\d.]+) \| "
    r"learning rate: (?P<learning_rate>[\dE.+-]+) \| global batch size:\s*(?P<global_batch_size>\d+) \| "
    r"lm loss: (?P<lm_loss>[\dE.+-]+) \| loss scale: (?P<loss_scale>[\d.]+) \| grad norm: (?P<grad_norm>[\d.]+) \| "
    r"number of skipped iterations:\s*(?P<skipped>\d+) \| number of nan iterations:\s*(?P<nan>\d+) \|",
)
# Behind a progress bar; where it can, a regex begins with the line, which makes DuckDB twice as fast.
BEHIND = Line(MEGATRON.marker, MEGATRON.regex.removeprefix("^"))
TIMER = Line(" ..", r"^    (?P<timer>[\w/-]+) \.+: \((?P<shortest>[\d.]+), (?P<longest>[\d.]+)\)")
MINDFORMERS = Line(
    "per_step_time",
    r"^(?P<timestamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) - \S+ - INFO - \{ "
    r"Epoch:\[\s*(?P<epoch>\d+)/\s*(?P<epochs>\d+)\], step:\[\s*(?P<step>\d+)/\s*(?P<train_steps>\d+)\], "
    rf"loss: (?P<loss>[\d.]+), per_step_time: (?P<{MS}>\d+)ms, lr: (?P<learning_rate>[\de.+-]+), "
    r"overflow cond: (?P<overflow>\w+), loss_scale: (?P<loss_scale>[\d.]+), global_norm: \[(?P<grad_norm>[\d.]+)\], "
    r"train_throughput_per_npu: (?P<throughput>[\d.]+)T",
)
BAR = Line("samples/s/p", r"(?P<samples_per_second>[\d.]+) samples/s/p")
# The lines of each kind of log, that of the step first.
LINES: dict[str, tuple[Line, ...]] = {
    "dense": (MEGATRON,),
    "sparse": (MEGATRON,),
    "tqdm": (BEHIND,),
    "timers": (MEGATRON, TIMER),
    "MindFormers": (MINDFORMERS, BAR),
}


def ours(_kind: str, log: str) -> Iterator[float]:
    """Logparse, to frames; also the bytes of the frame of steps."""
    from logparse.read.parse import read_run

    steps = read_run([log]).steps
    yield from (len(steps), float(steps["step"].sum()), float(steps[MS].sum()), steps.estimated_size())


def loop(kind: str, log: str) -> Iterator[float]:
    """The script that people write: each line in turn, those of Megatron cut at their bars and colons."""
    readers = tuple((line.marker, cut if line in (MEGATRON, BEHIND) else by_regex(line)) for line in LINES[kind])
    return looped(readers, log)


def regex_loop(kind: str, log: str) -> Iterator[float]:
    """The same with one regex that knows all labels and their order."""
    return looped(tuple((line.marker, by_regex(line)) for line in LINES[kind]), log)


def looped(readers: tuple[tuple[str, Callable[[str], Row | None]], ...], log: str) -> Iterator[float]:
    """Rows of each kind of line, from the first reader whose marker is in it."""
    rows: dict[str, list[Row]] = {marker: [] for marker, _ in readers}
    with Path(log).open(encoding="utf-8") as lines:
        for line in lines:
            for marker, read in readers:
                if marker in line:
                    row = read(line)
                    if row is not None:
                        rows[marker].append(row)
                    break
    steps = rows[readers[0][0]]
    yield from (len(steps), sum(row["step"] for row in steps), sum(row[MS] for row in steps))


def cut(line: str) -> Row:
    """A step line of Megatron, whatever its labels are."""
    parts = line.split("|")
    found, clock = HEAD.search(parts[0]), STAMP.search(parts[0])
    row: Row = {"step": int(found[1]), "train_steps": int(found[2])} if found else {}
    if clock:
        row["timestamp"] = datetime.fromisoformat(clock[0])
    for part in parts[1:]:
        label, colon, value = part.partition(":")
        if colon:
            row[label.strip()] = float(value)
    row[MS] = row.pop("elapsed time per iteration (ms)")
    return row


def by_regex(line: Line) -> Callable[[str], Row | None]:
    """How a line becomes a row by its regex."""
    regex = re.compile(line.regex)
    casts = [(name, TYPES.get(name, float)) for name in line.columns]

    def read(text: str) -> Row | None:
        found = regex.search(text)
        return found and {name: cast(value) for (name, cast), value in zip(casts, found.groups(), strict=True)}

    return read


def polars(kind: str, log: str) -> Iterator[float]:
    """One ``extract_groups`` for each kind of line, on all cores, to frames."""
    import polars as pl

    text = pl.col("line")
    casts = {int: pl.Int64, float: pl.Float64, str: pl.String}

    def cast(name: str) -> pl.Expr:
        if name == "timestamp":
            return pl.col(name).str.replace(",", ".", literal=True).str.to_datetime("%Y-%m-%d %H:%M:%S%.f")
        return pl.col(name).cast(casts[TYPES.get(name, float)])

    def read(line: Line) -> pl.DataFrame:
        found = pl.scan_lines(log).filter(text.str.contains(line.marker, literal=True))
        groups = found.select(text.str.extract_groups(line.regex).alias("groups")).unnest("groups")
        return groups.select(map(cast, line.columns)).collect()

    steps, *_ = [read(line) for line in LINES[kind]]
    yield from (len(steps), float(steps["step"].sum()), float(steps[MS].sum()))


def duckdb(kind: str, log: str) -> Iterator[float]:
    """One ``regexp_extract`` for each kind of line, on all cores, to tables."""
    import duckdb

    casts = {int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}
    database = duckdb.connect()

    def cast(name: str) -> str:
        if name == "timestamp":
            return "replace(found.timestamp, ',', '.')::TIMESTAMP AS timestamp"
        return f"found.{name}::{casts[TYPES.get(name, float)]} AS {name}"

    def read(line: Line) -> duckdb.DuckDBPyRelation:
        file = (
            f"read_csv('{log}', columns = {{'line': 'VARCHAR'}}, auto_detect = false, header = false, "
            "delim = '\x01', quote = '', escape = '', strict_mode = false)"
        )
        found = (
            f"SELECT regexp_extract(line, '{line.regex}', {list(line.columns)}) AS found FROM {file} "
            f"WHERE contains(line, '{line.marker}')"
        )
        database.execute(
            f"CREATE TABLE {line.columns[0]} AS SELECT {', '.join(map(cast, line.columns))} FROM ({found})"
        )
        return database.table(line.columns[0])

    steps, *_ = [read(line) for line in LINES[kind]]
    yield from steps.aggregate(f"count(*), sum(step), sum({MS})").fetchall()[0]


def probes(_kind: str, folder: str) -> Iterator[float]:
    """The head and the tail of every file of a folder."""
    size = 0
    for path in sorted(Path(folder).iterdir()):
        with path.open("rb") as file:
            size += len(file.read(PROBE))
            file.seek(-PROBE, 2)
            size += len(file.read(PROBE))
    yield size


READERS = {read.__name__: read for read in (ours, loop, regex_loop, polars, duckdb, probes)}

if __name__ == "__main__":
    print(*(f"{number:.0f}" for number in READERS[sys.argv[1]](*sys.argv[2:4])))
