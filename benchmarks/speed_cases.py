"""What speed.py runs, and what must come out of it."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from speed_logs import FILES, KINDS, log_of_size, log_of_ten, rank_files
from speed_measure import MIB, Case, Results
from speed_readers import LINES

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
SMALL = FIXTURES / "megatron/core-v0.12-llama2-7b/run.log"
PROGRAM = str(Path(sys.executable).with_name("logparse"))
READ, ANALYZE, GREP = "logparse, to frames", "logparse analyze --json", "grep -c"
LOOP, REGEX_LOOP, DUCKDB, POLARS = "plain loop", "plain loop, regex", "DuckDB regexp_extract", "polars extract_groups"
READERS = {READ: "ours", LOOP: "loop", REGEX_LOOP: "regex_loop", DUCKDB: "duckdb", POLARS: "polars"}
START, RANKS = "start-up", f"{FILES:,} rank files"
PASS, TYPER, IMPORT_POLARS = "python -c pass", "python -c 'import typer'", "python -c 'import polars'"
HELP, VERSION, TABLE = "logparse --help", "logparse --version", "logparse analyze, 34 kB log"
REPORT, EACH = "logparse analyze -o, 5 MB log", "logparse analyze --each, a corpus"
ONE_RANK, PROBES = "logparse analyze --json, the one with steps", "head and tail of each"
# The logs of the issue that set the target: 96 of them in a minute.
SECONDS_PER_LOG = 60 / 96


@dataclass(frozen=True)
class Batch:
    """Readers that are measured in turn on one log of ``mib`` MiB; once, and the log deleted, where it is ``large``."""

    log: str
    kind: str
    mib: int
    readers: tuple[str, ...]
    large: bool = False


EVERY = (READ, ANALYZE, LOOP, REGEX_LOOP, DUCKDB, POLARS, GREP)
FULL = tuple(Batch(kind, kind, 200, EVERY) for kind in KINDS)
QUICK = (Batch("dense", "dense", 96, (READ, ANALYZE, LOOP)), Batch("sparse", "sparse", 200, (READ, GREP)))
QUICK_STARTS = (PASS, IMPORT_POLARS, TABLE)
LARGE = tuple(Batch(f"{kind}, 10 GB", kind, 10**10 // MIB, (READ, GREP), large=True) for kind in ("sparse", "dense"))


def reading(folder: Path, batch: Batch) -> list[Case]:
    """The cases of a batch, whose log is written; those of what is not installed are left out."""
    log, ten = log_of_size(folder, batch.kind, batch.mib), log_of_ten(folder, batch.kind)
    names = (name for name in batch.readers if name != DUCKDB or find_spec("duckdb"))
    return [Case(batch.log, name, reader(name, batch.kind, log), reader(name, batch.kind, ten)) for name in names]


def reader(name: str, kind: str, log: Path) -> tuple[str, ...]:
    """The command of a reader of one log."""
    if name == ANALYZE:
        return (PROGRAM, "analyze", "--json", str(log))
    if name == GREP:
        return ("grep", "-c", LINES[kind][0].marker, str(log))
    return (sys.executable, str(ROOT / "benchmarks/speed_readers.py"), READERS.get(name, name), kind, str(log))


def starting(folder: Path, corpus: Path | None) -> list[Case]:
    """What takes long before, or beside, the reading of a log."""
    python = (sys.executable, "-c")
    report = ("analyze", str(log_of_size(folder, "dense", 5)), "-o", str(folder / "report"), "--force", "--quiet")
    logs = sorted(str(log) for log in (corpus or FIXTURES).rglob("*.log"))
    commands: dict[str, tuple[str, ...]] = {
        PASS: (*python, "pass"),
        TYPER: (*python, "import typer"),
        IMPORT_POLARS: (*python, "import polars"),
        HELP: (PROGRAM, "--help"),
        VERSION: (PROGRAM, "--version"),
        TABLE: (PROGRAM, "analyze", str(SMALL)),
        REPORT: (PROGRAM, *report),
        EACH: (PROGRAM, "analyze", "--each", *logs),
    }
    # Of a corpus, some logs may be without step lines.
    return [Case(START, name, command, fails=name == EACH, once=name == EACH) for name, command in commands.items()]


def ranking(folder: Path, mib: int) -> list[Case]:
    """Many files of which one has step lines."""
    ranks, ten = rank_files(folder, mib), reader(ANALYZE, "dense", log_of_ten(folder, "dense"))
    one = log_of_size(folder, "dense", mib)
    return [
        Case(RANKS, ANALYZE, reader(ANALYZE, "dense", ranks), ten),
        Case(RANKS, ONE_RANK, reader(ANALYZE, "dense", one), ten),
        Case(RANKS, PROBES, reader("probes", "dense", ranks), (sys.executable, "-c", "pass")),
    ]


@dataclass(frozen=True)
class Target:
    """A figure of the cases on ``log`` that shall be ``least`` or more, or else ``most`` or less.

    ``processor`` is the same figure by processor time, where one is worth as much; ``peer`` whom it is measured beside.
    ``held`` is what is asked of a landing in place of half the target, where that is not met yet (docs/performance.md).
    """

    log: str
    text: str
    unit: str
    value: Callable[[Results], float]
    least: float | None = None
    most: float | None = None
    processor: Callable[[Results], float] | None = None
    peer: str | None = None
    held: float | None = None

    def share(self, results: Results) -> float:
        """How much of the target is reached; 1 and more is all of it. Raises KeyError where it was not measured."""
        return self._share(self.value(results))

    def is_missed(self, results: Results) -> bool:
        """Whether not even half of it is reached, or what is held, by the clock and the processor.

        False where it was not measured.
        """
        try:
            values = [value(results) for value in (self.value, self.processor) if value]
        except KeyError:
            return False
        if self.held is None:
            return max(map(self._share, values)) < 0.5
        return max(values) < self.held if self.least else min(values) > self.held

    def is_broken(self, results: Results) -> bool:
        """Whether it is missed though the peer had a core; else neither time says what it were on a quiet machine."""
        return self.is_missed(results) and (self.peer is None or results[self.log, self.peer].had_a_core)

    def _share(self, value: float) -> float:
        return value / self.least if self.least else (self.most or 0.0) / value


def beside(
    log: str,
    reader: str,
    peer: str,
    least: float | None = None,
    most: float | None = None,
    held: float | None = None,
) -> Target:
    """Of ``peer``'s time, start-up taken off, so many times as much or as little."""
    slow, fast = (peer, reader) if least else (reader, peer)
    unit = "times as fast" if least else "times as long"
    return Target(
        log,
        f"{reader}, against {'the ' * (peer == LOOP)}{peer}",
        unit,
        lambda results: results[log, slow].net / results[log, fast].net,
        least,
        most,
        lambda results: results[log, slow].cpu / results[log, fast].cpu,
        peer,
        held,
    )


def over(reader: str, base: str) -> Callable[[Results], float]:
    """By how many milliseconds is ``reader`` slower to start?"""
    return lambda results: 1000 * (results[START, reader].wall - results[START, base].wall)


def ranks_over_one(results: Results) -> float:
    """How many times as long as the one file with steps and the probes?"""
    return results[RANKS, ANALYZE].net / (results[RANKS, ONE_RANK].net + results[RANKS, PROBES].net)


def beside_frame(results: Results) -> float:
    """MiB held at most, less those of the frame of steps."""
    figures = results["dense, 10 GB", READ]
    return (figures.peak - float(figures.printed[3])) / MIB


def targets(logs: int) -> Iterator[Target]:
    """All of them; ``logs`` are in the corpus."""
    yield beside("dense", READ, LOOP, least=5)
    yield beside("dense", ANALYZE, LOOP, least=4, held=1.5)
    yield beside("dense", READ, DUCKDB, least=3)
    yield beside("sparse", READ, GREP, most=4, held=24)
    yield Target(START, f"{HELP}, over {PASS}", "ms", over(HELP, PASS), most=100)
    yield Target(START, f"{VERSION}, over {PASS}", "ms", over(VERSION, PASS), most=100)
    yield beside(START, TABLE, IMPORT_POLARS, most=2.5, held=7)
    yield Target(START, REPORT, "s", lambda results: results[START, REPORT].wall, most=3)
    each = SECONDS_PER_LOG * logs
    yield Target(START, f"{EACH} of {logs} logs", "s", lambda results: results[START, EACH].wall, most=each)
    yield Target(RANKS, f"{ANALYZE}, against one and the probes", "times as long", ranks_over_one, most=1.3)
    large = ("sparse, 10 GB", READ)
    yield Target(large[0], f"peak of {READ}", "MiB", lambda results: results[large].peak / MIB, most=600)
    yield Target("dense, 10 GB", f"peak of {READ}, less the frame", "MiB", beside_frame, most=400)
