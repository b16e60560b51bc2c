"""Does a history stay whole while recorders are killed? Prints a table; exit code 1 where anything is wrong.

Commands: 8 workers start `logparse record` 100 times each on one history. Every fourth process is killed with SIGKILL,
and every tenth log is recorded by two workers at the same moment. Writers: 8 workers start processes that do nothing
but History.add, and kill each within some ten runs, so that many die between the two files of a run, or while they copy
summaries into bundles. All the while a process reads and `logparse history compact` runs; half of these are killed too.
The same logs are recorded in peace before, to compare with.

    python benchmarks/record_storm.py [RECORDS]
"""

import itertools
import json
import multiprocessing
import random
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Barrier

import polars as pl

from analysis.history import store as history_store
from analysis.history.folder import UNFINISHED, Folder
from analysis.history.record_run import Marks, RunOptions, record_logs
from analysis.history.run_records import RunRecord
from analysis.history.store import History, _key
from analysis.history.summary_files import parquet_of

LOG = Path(__file__).parent.parent / "fixtures/releases/8.0.RC1-1.log"
PRINTED, STEPS = "iteration (ms): 20095.1 ", 20
PROGRAM = str(Path(sys.executable).with_name("logparse"))
RELEASES = ("CANN 8.0.RC1", "CANN 8.0.RC2", "CANN 8.0.RC3")
WORKERS, RECORDS = 8, 100
# Every so many processes one is killed; every so many logs two workers record the same one.
KILLED, SHARED = 4, 10
# A writer is killed within this time, in which it adds some ten runs.
WRITER_SECONDS = 1.0
# From a run's steps to its end a busy machine takes about this long, and so often it is looked whether they are there.
WRITING_SECONDS, POLL_SECONDS = 0.02, 0.0005
# A record under these workers takes seconds; whoever takes this long hangs.
HANGS_SECONDS = 600
# Every second compaction is killed within this time, which is about what it takes.
COMPACTING_SECONDS = 2.0
# So few summaries a writer leaves in files of their own.
MOST_LOOSE = 20
PLANTED = "planted"

# A damaged file is left out with a warning; here there must be none. Every process imports this module.
warnings.simplefilter("error")
SPAWN = multiprocessing.get_context("spawn")
Recording = subprocess.Popen[str]
# The record that must be found under an id; None where no such run was recorded.
Expected = Callable[[str], RunRecord | None]


@dataclass
class Storm:
    """What is known of one storm. Workers add to it while it goes on; ``exits`` are the processes' exit codes."""

    store: Path
    exits: list[int] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    breaches: list[str] = field(default_factory=list)
    compactions: int = 0
    rounds: int = 0
    seconds: float = 0

    def ids(self, table: str) -> set[str]:
        """Of which runs ``table`` has a file, by the files' names."""
        return {path.name.partition(".")[0] for path in self.files(table)}

    def files(self, table: str) -> list[Path]:
        """Every file below ``table``."""
        return [path for path in (self.store / table).rglob("*") if path.is_file()]

    def strays(self) -> list[Path]:
        """Files that no reader has any business with: unfinished ones, and steps without a summary."""
        runs = self.ids("summary")
        return self.files(UNFINISHED) + [
            path for path in self.files("steps") if path.name.partition(".")[0] not in runs
        ]


def storm_of_commands(storm: Storm, logs: list[Path], steps: dict[Path, str]) -> None:
    """Record ``logs``; ``steps`` says where the steps of each will lie."""
    together = [Barrier(2) for _ in range(WORKERS // 2)]
    took: list[float] = []

    def work(worker: int) -> None:
        rng, killed = random.Random(worker), 0
        for turn, log in enumerate(share_of(logs, worker, together[worker // 2])):
            begin, chosen = time.perf_counter(), killed * KILLED < turn
            process = start_record(log, storm.store)
            if chosen:
                kill_record(process, storm.store / steps[log], statistics.median(took[-3 * WORKERS :]), rng)
            killed += note_end(storm, process) < 0
            if not chosen:
                took.append(time.perf_counter() - begin)

    run_workers(work)


def share_of(logs: list[Path], worker: int, together: Barrier) -> Iterator[Path]:
    """A worker's own logs; of those that are shared, two workers get that of the first at the same moment."""
    own, first = logs[worker::WORKERS], logs[worker - worker % 2 :: WORKERS]
    for turn, log in enumerate(own):
        if turn % SHARED == SHARED - 1:
            together.wait(HANGS_SECONDS)
            yield first[turn]
        else:
            yield log


def start_record(log: Path, store: Path) -> Recording:
    """The program as a user starts it."""
    command = [PROGRAM, "record", str(log), "--history", str(store), "--release", release_of(log), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_record(process: Recording, steps: Path, usual: float, rng: random.Random) -> None:
    """Half of them at any moment of the ``usual`` time, s; half once their ``steps`` lie there, so in the writing."""
    if rng.random() < 0.5:
        time.sleep(rng.random() * usual)
    else:
        while not steps.exists() and process.poll() is None:
            time.sleep(POLL_SECONDS)
        time.sleep(rng.uniform(0, WRITING_SECONDS))
    process.kill()


def note_end(storm: Storm, process: Recording) -> int:
    """The exit code. What a process printed is its acknowledgement, even if it was killed thereafter."""
    told, trouble = process.communicate(timeout=HANGS_SECONDS)
    if told or process.returncode == 0:
        storm.acknowledged.add(json.loads(told)["runs"][0]["run_id"])
    if process.returncode > 0 or trouble:
        storm.breaches.append(f"record: exit code {process.returncode}\n{trouble}")
    storm.exits.append(process.returncode)
    return process.returncode


def storm_of_writers(storm: Storm, base: RunRecord, rounds: int) -> None:
    """Each worker starts one writer after the other and kills it."""

    def work(worker: int) -> None:
        rng = random.Random(worker)
        for number in range(rounds):
            ours, theirs = SPAWN.Pipe(duplex=False)
            writer = SPAWN.Process(target=write_on_and_on, args=(storm.store, base, worker, number, theirs))
            writer.start()
            theirs.close()
            storm.acknowledged.update(kill_in_the_writing(writer, ours, rng.uniform(0, WRITER_SECONDS)))
            storm.exits.append(writer.exitcode or 0)
            if writer.exitcode != -9:
                storm.breaches.append(f"writer {worker}: exit code {writer.exitcode}")

    run_workers(work)


def kill_in_the_writing(writer: BaseProcess, told: Connection, after: float) -> list[str]:
    """Kill ``writer`` so many seconds after its beginning; the ids that it acknowledged."""
    ids = received(told)
    next(ids, None)
    time.sleep(after)
    writer.kill()
    writer.join()
    return list(ids)


def received(told: Connection) -> Iterator[str]:
    """All that is sent until the sender is dead."""
    while True:
        try:
            yield told.recv()
        except EOFError:
            return


def write_on_and_on(store: Path, base: RunRecord, worker: int, number: int, told: Connection) -> None:
    """Keep one run after the other and tell of each; every second is the neighbour's too."""
    history = History(Folder(store))
    history_store.MOST_LOOSE = MOST_LOOSE
    # What is imported at the first writing takes longer than the writing.
    parquet_of(base.summary)
    told.send("ready")
    for turn in itertools.count():
        owner = worker - worker % 2 if turn % 2 else worker
        record = numbered(base, sha256(f"{owner} {number} {turn}".encode()).hexdigest()[:32])
        history.add(record)
        told.send(record.run_id)
        history.bundle_if_many()


def numbered(base: RunRecord, run_id: str) -> RunRecord:
    """``base`` under another id, which says its release."""
    release = RELEASES[int(run_id, 16) % len(RELEASES)]
    return RunRecord(release, base.summary.with_columns(run_id=pl.lit(run_id)), base.steps)


def run_workers(work: Callable[[int], None]) -> None:
    """Run ``work`` for every worker at once; raises what one of them raises."""
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(work, range(WORKERS)))


@contextmanager
def watched(storm: Storm, compact: Callable[[Path], object], pause: float) -> Iterator[None]:
    """Read and compact for as long as the storm lasts, with ``pause`` s before each compaction; a torn file lies by."""
    (storm.store / UNFINISHED).mkdir(parents=True)
    (storm.store / UNFINISHED / PLANTED).write_bytes(b"PAR1")
    stop, (ours, theirs) = SPAWN.Event(), SPAWN.Pipe(duplex=False)
    reader = SPAWN.Process(target=read_on_and_on, args=(storm.store, stop, theirs))
    begin = time.perf_counter()
    with ThreadPoolExecutor(1) as pool:
        reader.start()
        theirs.close()
        compacting = pool.submit(compact_on_and_on, storm, stop, pause, compact)
        try:
            yield
        finally:
            stop.set()
            storm.rounds, failures = ours.recv()
            reader.join()
            compacting.result()
    storm.seconds = time.perf_counter() - begin
    storm.breaches += failures


def read_on_and_on(store: Path, stop: Event, told: Connection) -> None:
    """Read until told to stop, then send the number of rounds and what failed in them."""
    rng, seen, failures, rounds = random.Random(0), set[str](), list[str](), 0
    while not stop.is_set():
        try:
            seen = read_once(store, seen, rng)
        except Exception:
            failures.append(f"reader, round {rounds}: {traceback.format_exc()}")
        rounds += 1
    told.send((rounds, failures))


def read_once(store: Path, seen: set[str], rng: random.Random) -> set[str]:
    """The ids of all runs, as logparse and any other reader see them; raises where one ``seen`` before is gone."""
    history = History(Folder(store))
    ids = history.runs()["run_id"].to_list()
    if not ids:
        return seen
    plain = pl.scan_parquet(store / "summary", hive_schema={"release": pl.String}).collect()["run_id"].to_list()
    if not seen <= set(ids) <= set(plain):
        raise AssertionError("a run is gone")
    if len(set(ids)) < len(ids) or len(set(plain)) < len(plain):
        raise AssertionError("a run is there twice")
    if history.steps(rng.choice(ids))["step"].to_list() != list(range(1, STEPS + 1)):
        raise AssertionError("steps are not whole")
    return set(ids)


def compact_on_and_on(storm: Storm, stop: Event, pause: float, compact: Callable[[Path], object]) -> None:
    """Compact until told to stop."""
    while not stop.wait(pause):
        try:
            compact(storm.store)
        except Exception:
            storm.breaches.append(f"compaction {storm.compactions}: {traceback.format_exc()}")
        storm.compactions += 1


def compact_by_command(store: Path) -> None:
    """Compact, or be killed in it. Raises RuntimeError where the command failed, or reported a damaged file."""
    command = [PROGRAM, "history", "compact", "--history", str(store)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rng = random.Random(process.pid)
    if rng.random() < 0.5:
        time.sleep(rng.uniform(0, COMPACTING_SECONDS))
        process.kill()
    _, trouble = process.communicate(timeout=HANGS_SECONDS)
    if process.returncode > 0 or trouble:
        raise RuntimeError(f"exit code {process.returncode}\n{trouble}")


def compact_in_process(store: Path) -> None:
    """Compact as often as possible: it looks at files that vanish under its eyes."""
    History(Folder(store)).compact()


def find_breaches(storm: Storm, expected: Expected) -> Iterator[str]:
    """Everything in the store that is not as it must be."""
    yield from (f"{path} is a stray file and was read" for path in storm.strays() if was_read(path))
    files = itertools.chain.from_iterable(storm.files(table) for table in ("summary", "steps", "bundles"))
    yield from (f"{path} is no whole Parquet" for path in files if is_torn(path))
    try:
        found = read_all(storm.store)
    except Exception as error:
        yield f"the history cannot be read: {error}"
        return
    yield from (f"run {run_id} was acknowledged and is gone" for run_id in storm.acknowledged - set(found))
    yield from (f"run {run_id} is not as recorded" for run_id in found if not alike(found[run_id], expected(run_id)))
    if len(storm.files("summary")) != len(found):
        yield f"{len(storm.files('summary'))} summaries of {len(found)} runs"


def was_read(path: Path) -> bool:
    """Linux notes the first reading after a change, unless the file system is mounted with noatime."""
    return path.stat().st_atime_ns > path.stat().st_mtime_ns


def reading_is_noted(folder: Path) -> bool:
    """Whether ``was_read`` tells anything here."""
    path = folder / "noted"
    path.write_bytes(b"PAR1")
    time.sleep(0.1)
    return not was_read(path) and bool(path.read_bytes()) and was_read(path)


def is_torn(path: Path) -> bool:
    """Whether a reader of Parquet refuses it."""
    try:
        pl.read_parquet(path, hive_partitioning=False)
    except pl.exceptions.PolarsError:
        return True
    return False


def read_all(store: Path) -> dict[str, RunRecord]:
    """Every run by its id."""
    history = History(Folder(store))
    runs = history.recorded_rows(heavy=True)
    rows = zip(runs["run_id"], runs["release"], runs.drop("release").iter_slices(1), strict=True)
    return {run_id: RunRecord(release, row, history.steps(run_id)) for run_id, release, row in rows}


def alike(found: RunRecord, expected: RunRecord | None) -> bool:
    """Equal but for the time of recording."""
    if expected is None or found.release != expected.release:
        return False
    one, other = (record.summary.drop("recorded_at") for record in (found, expected))
    return one.equals(other) and found.steps.equals(expected.steps)


def write_logs(folder: Path, count: int) -> list[Path]:
    """Logs that differ in the first time they print."""
    text = LOG.read_text()
    logs = [folder / f"{number}.log" for number in range(count)]
    for number, log in enumerate(logs):
        log.write_text(text.replace(PRINTED, f"iteration (ms): {20000 + number / 10:.1f} "))
    return logs


def release_of(log: Path) -> str:
    """Each release has a third of the logs."""
    return RELEASES[int(log.stem) % len(RELEASES)]


def record_all(logs: list[Path], store: Path) -> None:
    """Record every log, with nobody in the way."""
    for release in RELEASES:
        some = [str(log) for log in logs if release_of(log) == release]
        command = [PROGRAM, "record", "--each", *some, "--history", str(store), "--release", release]
        subprocess.run(command, capture_output=True, check=True)


def figures(storm: Storm) -> dict[str, int]:
    """What the storm was and what it left."""
    whole, steps = storm.ids("summary"), storm.ids("steps")
    return {
        "processes": len(storm.exits),
        "killed with SIGKILL": sum(code < 0 for code in storm.exits),
        "unfinished files they left": len(storm.files(UNFINISHED)) - 1,
        "steps without a summary they left": len(steps - whole),
        "whole runs they did not acknowledge": len(whole - storm.acknowledged),
        "acknowledged runs": len(storm.acknowledged),
        "rounds of the reader": storm.rounds,
        "compactions": storm.compactions,
        "time, s": round(storm.seconds),
    }


def try_commands(storm: Storm, records: int) -> dict[str, int]:
    """The figures of the storm, before all its logs are recorded once more."""
    logs = write_logs(storm.store.parent, WORKERS * records)
    calm = storm.store.with_name("calm")
    record_all(logs, calm)
    expected = read_all(calm)
    ids = {record.summary["name"].item(): run_id for run_id, record in expected.items()}
    steps = {log: _key("steps", release_of(log), ids[log.stem]) for log in logs}
    with watched(storm, compact_by_command, pause=5):
        storm_of_commands(storm, logs, steps)
    told = figures(storm)
    storm.breaches += find_breaches(storm, expected.get)
    record_all(logs, storm.store)
    storm.breaches += find_breaches(storm, expected.get)
    if storm.ids("summary") != set(expected) or len(expected) != len(logs):
        storm.breaches.append(f"{len(logs)} logs recorded again are {len(storm.ids('summary'))} runs")
    return told


def try_writers(storm: Storm, rounds: int) -> dict[str, int]:
    """The figures of the storm."""
    base = record_logs([str(LOG)], RunOptions(), Marks(RELEASES[0]))
    with watched(storm, compact_in_process, pause=0):
        storm_of_writers(storm, base, rounds)
    told = figures(storm)
    storm.breaches += find_breaches(storm, lambda run_id: numbered(base, run_id))
    if not told["steps without a summary they left"]:
        storm.breaches.append("no writer was killed between the two files of a run, so nothing was tried")
    return told


def main() -> int:
    """Both storms, one after the other."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    with tempfile.TemporaryDirectory() as place:
        if not reading_is_noted(Path(place)):
            print("this file system does not note when a file is read: whether a stray one was is not known")
        storms = Storm(Path(place, "commands")), Storm(Path(place, "writers"))
        told = try_commands(storms[0], records), try_writers(storms[1], records // 2)
    print("| | commands | writers |\n| --- | ---: | ---: |")
    for name in told[0]:
        print(f"| {name} | {told[0][name]:,} | {told[1][name]:,} |")
    breaches = [breach for storm in storms for breach in storm.breaches]
    print(f"\n{len(breaches)} breaches", *breaches, sep="\n")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
