"""Is any damage of a history believed? Prints a table; exit code 1 where anything is wrong.

A history of ten runs with bundles, notes and a removed run is damaged 400 times, one file at a time: bits and bytes are
flipped, ends are cut off, blocks are zeroed, a file is empty, gone, or another of its kind. Each time runs and steps
are read. What is read must be as it was recorded, and what is missing must be named, without the advice to delete it.
Every tenth time `history list`, `gate` and `history compact` run too: they must end without a traceback, and once the
file is whole again nothing may be lost.

    python benchmarks/history_damage.py [TIMES]
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import polars as pl
from record_storm import PROGRAM, write_logs

from analysis.history.events import Event
from analysis.history.folder import DEAD_SECONDS, Folder
from analysis.history.record_run import Marks, RunOptions, record_logs
from analysis.history.store import History
from analysis.present.words import say
from logparse.errors import InputError
from logparse.findings import Note

RUNS, TIMES, OF_COMMANDS = 10, 400, 10
COMMANDS = (("history", "list"), ("gate",), ("history", "compact"))
# Exit codes of a gate: no regression, regression, wrong usage, insufficient data.
EXPECTED = (0, 1, 2, 4)


@dataclass
class Outcome:
    """What became of the damages, by table and kind; ``breaches`` are those that were believed or not named."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    breaches: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Content:
    """What a history has: rows, steps by run, and the ids of its events."""

    runs: pl.DataFrame
    steps: dict[str, pl.DataFrame]
    events: set[str]


def fill_history(place: Path) -> History:
    """Ten runs: six in bundles alone, one of them removed; two in a bundle and a file, two in files; four notes."""
    history = History(Folder(place / "h"))
    logs = write_logs(place, RUNS)
    records = [record_logs([str(log)], RunOptions(), Marks("r1")) for log in logs]
    for record in records[:6]:
        history.add(record)
    for _ in range(2):
        history.compact()
        age_files(place / "h")
    history.compact()
    history.remove([records[5].run_id])
    for record in records[6:8]:
        history.add(record)
    history.compact()
    for record in records[8:]:
        history.add(record)
    history.say([Event(record.run_id, "annotate", datetime(2026, 3, 1), "kim", "a note") for record in records[:4]])
    return history


def age_files(place: Path) -> None:
    """As if two days went by."""
    for path in place.rglob("*.parquet"):
        os.utime(path, (time.time() - 2 * DEAD_SECONDS,) * 2)


def read_all(history: History, run_ids: list[str]) -> Content:
    """All that can be read."""
    steps = {}
    for run_id in run_ids:
        try:
            steps[run_id] = history.steps(run_id)
        except InputError as error:
            history.warn(Note("steps", "warning", {"path": str(error)}))
    return Content(history.recorded_rows(heavy=True), steps, {event.id for event in history.events()})


def flip_bit(data: bytes, rng: random.Random) -> bytes:
    """One bit is another one."""
    at = rng.randrange(8 * len(data))
    return data[: at // 8] + bytes([data[at // 8] ^ 1 << at % 8]) + data[at // 8 + 1 :]


def flip_byte(data: bytes, rng: random.Random) -> bytes:
    """One byte is another one."""
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1 :]


def cut_off(data: bytes, rng: random.Random) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data))]


def zero_block(data: bytes, rng: random.Random) -> bytes:
    """A block was never written, as after a crash of the file system."""
    at = rng.randrange(len(data))
    zeroed = data[:at] + bytes(min(512, len(data) - at)) + data[at + 512 :]
    return zeroed if zeroed != data else flip_bit(data, rng)


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (flip_bit, flip_byte, cut_off, zero_block)


def damage_and_read(place: Path, number: int, whole: Content, outcome: Outcome) -> None:
    """Damage a file, read everything, and put the file back."""
    rng = random.Random(number)
    tables = ("summary", "steps", "bundles", "events", "removed")
    table = tables[number % len(tables)]
    path = rng.choice(sorted((place / "h" / table).rglob("*.parquet")))
    act = rng.choice(DAMAGES)
    data = path.read_bytes()
    path.write_bytes(act(data, rng))
    notes: list[Note] = []
    what = f"{number}: {act.__name__} of {path.relative_to(place)}"
    try:
        content = read_all(History(Folder(place / "h"), warn=notes.append), list(whole.steps))
        named = any(path.name in str(note.fields.get("path")) for note in notes)
        outcome.breaches += [f"{what}: {problem}" for problem in problems(content, whole, named)]
        outcome.breaches += [f"{what}: advises to delete" for note in notes if "delet" in text_of(note)]
        outcome.counts[table, "named" if named else "not needed"] += 1
    except Exception as error:
        outcome.breaches.append(f"{what}: {error!r}")
    if number % OF_COMMANDS:
        path.write_bytes(data)
        return
    outcome.breaches += [f"{what}: {problem}" for problem in run_commands(place)]
    path.write_bytes(data)
    content = read_all(History(Folder(place / "h")), list(whole.steps))
    outcome.breaches += [
        f"{what}, after it was restored: {problem}" for problem in problems(content, whole, named=False)
    ]
    shutil.rmtree(place / "h")
    shutil.copytree(place / "kept", place / "h")


def text_of(note: Note) -> str:
    """What a user reads."""
    return say(note) if note.code != "steps" else str(note.fields["path"])


def problems(content: Content, whole: Content, named: bool) -> Iterator[str]:
    """What was read and is not as it was recorded, or is missing and not named."""
    ids = content.runs["run_id"].to_list()
    if not content.runs.equals(whole.runs.filter(pl.col("run_id").is_in(ids))):
        yield "a row differs"
    yield from (f"steps of {i} differ" for i, steps in content.steps.items() if not steps.equals(whole.steps[i]))
    if not content.events <= whole.events:
        yield "an event differs"
    missing = len(ids) < len(whole.runs) or content.steps.keys() < whole.steps.keys() or content.events < whole.events
    if missing and not named:
        yield "something is missing and no note says so"


def run_commands(place: Path) -> Iterator[str]:
    """What commands do that they must not."""
    for command in COMMANDS:
        done = subprocess.run(
            [PROGRAM, *command, "--history", str(place / "h")], capture_output=True, text=True, check=False
        )
        if done.returncode not in EXPECTED or "Traceback" in done.stderr or "delete" in done.stderr:
            yield f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}"


def main() -> int:
    """Damage, read, repair, as often as asked."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else TIMES
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        history = fill_history(place)
        whole = read_all(history, history.recorded_rows()["run_id"].to_list())
        shutil.copytree(place / "h", place / "kept")
        for number in range(times):
            damage_and_read(place, number, whole, outcome)
    print("| table | damage | times |\n| --- | --- | ---: |")
    for (table, end), count in sorted(outcome.counts.items()):
        print(f"| {table} | {end} | {count} |")
    print(f"\n{len(outcome.breaches)} breaches", *outcome.breaches, sep="\n")
    return 1 if outcome.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
