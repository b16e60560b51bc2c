"""Break simulated runs while they are watched, by a clock that runs faster, and count what is found and how late.

Also what is found where nothing is wrong: in quiet simulated hours, and in logs of real runs, which are shown at their
own pace by their stamps. Chance is the same each time.

    nice -n 5 python benchmarks/watched_faults.py --faults 198            a table of faults; ten minutes of one core
    nice -n 5 python benchmarks/watched_faults.py --quiet-hours 300       alarms of runs without a fault
    nice -n 5 python benchmarks/watched_faults.py path/to/train.log ...   alarms of real logs, at 60 moments each

Each result is printed as it comes. Where a run was ended, --first N goes on from the fault, the run or the log N.
"""

import argparse
import gzip
import random
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import polars as pl
from helpers import SETTINGS, arguments_dump, megatron_line
from moments import Watching

from analysis.run.build import analyze_parts
from analysis.run.options import RunOptions
from analysis.watch.alarm_limits import DEFAULTS
from analysis.watch.alarm_state import News
from analysis.watch.refresh import Follower
from analysis.watch.watcher import Watcher
from logparse.errors import LogparseError

EPOCH = datetime(2026, 1, 5, 8)
EVERY = 2.0
CRASH = """Traceback (most recent call last):
  File "/app/pretrain_gpt.py", line 301, in <module>
    pretrain(train_valid_test_datasets_provider, model_provider)
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB
"""
GIB = 2**30


@dataclass
class Job:
    """A simulated run: ``lines`` with the seconds at which they are printed; ``step`` is the last one."""

    draw: random.Random
    seconds: float
    noise: float
    every: int
    save_every: int
    save_seconds: float
    log: list[tuple[float, str, str]] = field(default_factory=list)
    now: float = 0.0
    step: int = 0
    factor: float = 1.0
    loss: float | None = None
    memory: float | None = None
    source: str = "run_log"

    def say(self, text: str, source: str | None = None) -> None:
        """Print ``text`` now."""
        self.log.append((self.now, source or self.source, f"{text}\n"))

    def stamp(self) -> str:
        """The clock on a line."""
        return f"{EPOCH + timedelta(seconds=self.now):%Y-%m-%d %H:%M:%S}"

    def begin(self) -> None:
        """What a process prints before its first step."""
        self.say(arguments_dump(SETTINGS | {"train_iters": 100_000}).rstrip())
        self.now += self.draw.uniform(20, 400)

    def steps(self, n: int) -> None:
        """Make ``n`` steps, with a line for each interval, and the saves that are due."""
        for _ in range(n):
            self.step += 1
            noise = max(0.5, self.draw.gauss(1, self.noise))
            if self.draw.random() < 0.004:
                # A collection of garbage, a slow disk.
                noise *= self.draw.uniform(1.2, 2.5)
            self.now += self.seconds * self.factor * noise
            if self.step % self.every == 0:
                self.line(noise)
            if self.save_every and self.step % self.save_every == 0:
                self.save()

    def line(self, noise: float) -> None:
        """The line of the last step."""
        loss = 2 + 8 * (1 + self.step / 40) ** -0.5 + self.draw.gauss(0, 0.03) if self.loss is None else self.loss
        pairs = {"lm loss": f"{loss:.6E}", "grad norm": "nan" if loss != loss else "0.876"}
        ms = 1000 * self.seconds * self.factor * noise
        if self.memory is not None:
            pairs["max_memory_allocated(GB)"] = f"{self.memory / GIB:.2f}"
        self.say(megatron_line(self.step, ms, self.stamp(), pairs).replace("/     500", "/  100000"))

    def save(self, ends: bool = True) -> None:
        """Save a checkpoint; without its end it failed, and the run goes on."""
        self.say(f"saving checkpoint at iteration {self.step:7d} to ckpt in torch_dist format")
        self.now += self.save_seconds * self.draw.uniform(0.8, 1.3)
        if ends:
            self.say(f"  successfully saved checkpoint from iteration {self.step:7d} to ckpt [ t 1/2, p 1/1 ]")


def job_of(draw: random.Random) -> Job:
    """A run as they are: a step of 1 to 20 seconds, a line for each, a save now and then."""
    seconds = draw.choice((1.0, 3.0, 5.0, 12.0, 20.0))
    return Job(draw, seconds, draw.uniform(0.003, 0.02), 1, draw.choice((25, 40, 60)), draw.uniform(5, 60))


# A fault: what it makes of the job after its history, and the alarms that may report it. It returns the second at
# which it begins, and by when it must be found.
Fault = Callable[[Job], tuple[float, float]]


def hang(job: Job) -> tuple[float, float]:
    """No line comes any more."""
    begin = job.now
    late = max(4 * job.seconds, 3 * EVERY)
    job.now += 2 * late + job.save_seconds * 4
    return begin, begin + late


def slow(share: float, within: int) -> Fault:
    """Steps take longer by ``share``, and that must be seen ``within`` so many of them."""

    def fault(job: Job) -> tuple[float, float]:
        begin, job.factor = job.now, 1 + share
        job.steps(within)
        end = job.now
        job.steps(10)
        return begin, end + EVERY

    return fault


def nan(job: Job) -> tuple[float, float]:
    """The loss is NaN."""
    begin, job.loss = job.now, float("nan")
    job.steps(1)
    end = job.now
    job.steps(3)
    return begin, end + EVERY


def spike(job: Job) -> tuple[float, float]:
    """The loss is three times as high for a while."""
    begin, job.loss = job.now, 9.5
    job.steps(3)
    return begin, job.now + EVERY


def restart_loop(job: Job) -> tuple[float, float]:
    """The process dies three steps after its checkpoint, and begins again, three times."""
    begin, saved = job.now, job.step
    end = 0.0
    for n in range(3):
        job.steps(3)
        job.say(CRASH.rstrip())
        job.now += 30
        job.step = saved
        job.say(arguments_dump(SETTINGS | {"train_iters": 100_000}).rstrip())
        job.say(f"  successfully loaded checkpoint from ckpt [ t 1/2, p 1/1 ] at iteration {saved}")
        end = job.now if n == 1 else end
        job.now += 60
    return begin, end + EVERY


def full_memory(job: Job) -> tuple[float, float]:
    """The allocated memory grows by 200 MB each step; it must be seen before it is full."""
    begin = job.now
    free = 64e9 - float(job.memory or 0)
    for _ in range(int(free / 2e8)):
        job.memory = float(job.memory or 0) + 2e8
        job.steps(1)
    return begin, job.now


def failed_save(job: Job) -> tuple[float, float]:
    """A save begins and does not end; the steps go on."""
    every = job.save_every
    job.steps(every - job.step % every - 1)
    job.save_every = 0
    job.steps(1)
    begin = job.now
    job.save(ends=False)
    job.steps(every // 2 + 1)
    end = job.now
    job.steps(3)
    return begin, end + EVERY


def crash(job: Job) -> tuple[float, float]:
    """The process dies."""
    begin = job.now
    job.say(CRASH.rstrip())
    job.now += 3 * EVERY
    return begin, begin + EVERY


def lost_rank(job: Job) -> tuple[float, float]:
    """One of two ranks that print stops; found within five lines of the other."""
    begin = job.now
    job.save_every = 0
    job.steps(6)
    return begin, job.now + EVERY


FAULTS: dict[str, tuple[Fault, tuple[str, ...]]] = {
    "hang": (hang, ("hang",)),
    "slow 10 %": (slow(0.10, 60), ("slow",)),
    "slow 20 %": (slow(0.20, 20), ("slow",)),
    "slow 50 %": (slow(0.50, 10), ("slow",)),
    "NaN": (nan, ("nan",)),
    "spike": (spike, ("spike",)),
    "restart loop": (restart_loop, ("restarts",)),
    "full memory": (full_memory, ("memory",)),
    "failed save": (failed_save, ("save_late",)),
    "crash": (crash, ("ending",)),
    "lost rank": (lost_rank, ("rank",)),
}


@dataclass(frozen=True)
class Found:
    """What was found of one fault: seconds after it began, None where nothing; and earlier alarms of another kind."""

    late: float | None
    in_time: bool
    others: tuple[str, ...]
    steps: float


def play(name: str, seed: int) -> Found:
    """Break one run and watch it."""
    draw = random.Random(f"{name} {seed}")
    job = job_of(draw)
    if name == "full memory":
        job.memory = 5.4e10
    job.begin()
    job.steps(draw.randrange(130, 260))
    if job.step % job.save_every == 0:
        # A hang in the place of a save is one only after the time of a save.
        job.steps(1)
    if name == "lost rank":
        job.log += [(at, "rank1_log", text) for at, _, text in job.log]
        job.log = [(at, "rank0_log" if source == "run_log" else source, text) for at, source, text in job.log]
        job.source = "rank0_log"
    seen = len(job.log)
    fault, codes = FAULTS[name]
    begin, limit = fault(job)
    with tempfile.TemporaryDirectory() as folder:
        # Published rates say nothing of a simulated step.
        how = RunOptions(jobs=1, hw="Ascend910B3", published=())
        news: list[tuple[float, News]] = []
        for at, several in shown(Watching(Path(folder), how=how), job, seen, begin):
            news += [(at, one) for one in several if one.kind == "begins"]
            if any(one.alarm.code in codes for one in several):
                break
    first = next((at for at, one in news if one.alarm.code in codes), None)
    others = tuple(one.alarm.code for _, one in news if one.alarm.code not in codes)
    late = None if first is None else first - begin
    return Found(late, first is not None and first <= limit, others, (late or 0) / (job.seconds * job.factor))


def shown(watching: Watching, job: Job, seen: int, begin: float) -> Iterator[tuple[float, Sequence[News]]]:
    """What is new at each moment: before the fault at the last lines, then at the refresh after each line."""
    lines = sorted(job.log, key=lambda line: line[0])
    times = sorted({at for at, _, _ in lines if at > begin - 4 * job.seconds})
    # After the first lines of a fault not at each: it takes a while to read a log.
    times = times[:12] + times[12 :: max(1, len(times) // 20)]
    moments = {at + draw for at in times for draw in (EVERY * job.draw.random(),)}
    # Between lines, where none may come.
    moments |= {begin + EVERY * n for n in range(int((job.now - begin) / EVERY) + 1)} if len(job.log) == seen else set()
    shown_lines = -1
    for at in sorted(moments):
        texts: dict[str, str] = defaultdict(str)
        n = 0
        for time, source, text in lines:
            if time <= at:
                texts[source] += text
                n += 1
        yield at, watching.look(at, **(texts if n != shown_lines else {}))
        shown_lines = n


def break_runs(first: int, number: int, only: str | None) -> int:
    """Print the faults from ``first`` to ``number``, and a table of them; 1 where one was not found in time."""
    names = [only] if only else list(FAULTS)
    results: dict[str, list[Found]] = defaultdict(list)
    for n in range(first, number):
        name = names[n % len(names)]
        results[name].append(play(name, n))
        print(f"{name} {n}: {results[name][-1]}", flush=True)
    print(f"{'fault':14} {'runs':>5} {'found':>6} {'in time':>8} {'median late':>12} {'most steps':>11}  other alarms")
    for name, found in results.items():
        late = [one.late for one in found if one.late is not None]
        others = Counter(code for one in found for code in one.others)
        in_time, steps = sum(one.in_time for one in found), max(one.steps for one in found)
        middle = f"{statistics.median(late):.1f} s" if late else "-"
        print(f"{name:14} {len(found):5} {len(late):6} {in_time:8} {middle:>12} {steps:11.1f}  {dict(others) or '-'}")
    return int(any(not one.in_time for found in results.values() for one in found))


class Growing:
    """A file that is watched while it grows, by a clock that runs faster."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "run.log"
        self.watcher = Watcher(lambda: [("run", [str(self.path)])], _follower, DEFAULTS)

    def look(self, at: float, new: str) -> list[News]:
        """What is new ``at`` that time, with so much more text."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(new)
        return self.watcher.look(at)[1]


def _follower(name: str, logs: Sequence[str]) -> Follower:
    return Follower(logs, RunOptions(jobs=1), name=name, block_bytes=2**16)


def quiet_hours(first: int, hours: float, length: float, looks: int) -> int:
    """Watch runs of ``length`` hours without a fault, from the run ``first`` on; 1 where an alarm began."""
    alarms: Counter[str] = Counter()
    runs = max(1, round(hours / length))
    for seed in range(first, runs):
        draw = random.Random(f"quiet {seed}")
        job = Job(draw, draw.choice((3.0, 6.0)), draw.uniform(0.003, 0.03), 10, draw.choice((0, 500, 800)), 60.0)
        job.begin()
        while job.now < 3600 * length:
            job.steps(10)
        with tempfile.TemporaryDirectory() as folder:
            watching, done = Growing(Path(folder)), 0
            for at in (job.now * (n + 1) / looks for n in range(looks)):
                new = [line for line in job.log[done:] if line[0] <= at]
                done += len(new)
                news = watching.look(at, "".join(line[2] for line in new))
                alarms.update(one.alarm.code for one in news if one.kind == "begins")
        print(f"quiet run {seed}, to hour {(seed + 1) * length:,.0f}: alarms {dict(alarms) or 'none'}", flush=True)
    hours = (runs - first) * length
    print(f"{hours:,.0f} quiet hours, {looks} moments each {length:g} h: alarms {dict(alarms) or 'none'}")
    return int(bool(alarms))


def replay(path: Path, looks: int) -> tuple[float, list[tuple[int, News]]] | None:
    """Hours of a real log by its stamps, and what is new at its moments; None of a log without a clock."""
    try:
        runs = analyze_parts([str(path)], RunOptions(jobs=1))
    except LogparseError:
        return None
    steps = pl.concat(run.steps.select("timestamp", "line_number", "copied") for run in runs)
    steps = steps.drop_nulls("timestamp").filter(~pl.col("copied")).sort("line_number")
    if len(steps) < 10 or not (stamps := steps["timestamp"]).is_sorted() or stamps[0] == stamps[-1]:
        return None
    lines = read_text(path).splitlines(keepends=True)
    numbers = steps["line_number"].to_list()
    seconds = [(stamp - stamps[0]).total_seconds() for stamp in stamps]
    chosen = sorted({round(n * (len(numbers) - 1) / (looks - 1)) for n in range(looks)})
    news: list[tuple[int, News]] = []
    with tempfile.TemporaryDirectory() as folder:
        watching, shown_lines = Growing(Path(folder)), 0
        for at in chosen[1:]:
            # At a line, and just before the next one with all that was printed until then; the clock is that of lines.
            for time, end in ((max(0.0, seconds[at - 1]), numbers[at - 1]), (seconds[at], numbers[at] - 1)):
                news += [(numbers[at], one) for one in watching.look(time, "".join(lines[shown_lines:end]))]
                shown_lines = max(shown_lines, end)
        news += [(numbers[-1], one) for one in watching.look(seconds[-1], "".join(lines[shown_lines:]))]
    return seconds[-1] / 3600, news


def read_text(path: Path) -> str:
    """The text of a log."""
    data = path.read_bytes()
    plain = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return plain.decode("utf-8", "replace")


def replay_all(first: int, paths: list[Path], looks: int) -> int:
    """Print the alarms of real logs, from the log ``first`` on."""
    hours, shown_logs, alarms = 0.0, 0, 0
    for n, path in enumerate(paths[first:], first):
        print(f"{path}: log {n}, so far {shown_logs} with a clock, {hours:,.1f} run-hours, {alarms} alarms", flush=True)
        result = replay(path, looks)
        if result is None:
            continue
        hours, shown_logs = hours + result[0], shown_logs + 1
        for line, one in result[1]:
            if one.kind == "begins":
                alarms += 1
                print(f"{path}:{line}: {one.alarm.code} {dict(one.alarm.fields)}", flush=True)
    print(f"{shown_logs} logs of {len(paths[first:])} with a clock, {hours:,.0f} run-hours: {alarms} alarms")
    return int(bool(alarms))


def main() -> int:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*", type=Path)
    parser.add_argument("--faults", type=int, default=0)
    parser.add_argument("--only", choices=FAULTS)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="go on from here")
    parser.add_argument("--quiet-hours", type=float, default=0.0)
    parser.add_argument("--length", type=float, default=12.0, help="hours of a quiet run")
    parser.add_argument("--looks", type=int, default=60, help="moments of a log")
    given = parser.parse_args()
    codes = [replay_all(given.first, given.logs, given.looks)] if given.logs else []
    codes += [break_runs(given.first, given.faults, given.only)] if given.faults else []
    codes += [quiet_hours(given.first, given.quiet_hours, given.length, given.looks)] if given.quiet_hours else []
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
