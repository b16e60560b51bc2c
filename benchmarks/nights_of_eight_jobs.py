"""Simulate the nights of eight jobs: how soon each rule finds a change, and how often it reports one without a change.

Each seed has eight quiet jobs a world, and jobs with one true change each, sixty nights long. Steps have noise, and now
and then one of them has a pause. Half of the jobs save periodically. Neighbouring nights are correlated, one night of
each job runs on a slower node, and an upgrade changes numbers by less than a threshold. WORLDS lists how clusters
differ in their noise.

Whole histories are judged by ``verdicts_of_runs``, next to the rule "3 % above the median of 7 nights" and to Apache
Otava if it is installed. The nights around a change are judged as the command ``gate`` does, and their screens counted.

    python benchmarks/nights_of_eight_jobs.py [SEEDS [FIRST [TABLE ...]]]
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from io import StringIO
from itertools import pairwise, product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console

from analysis.history.run_records import run_frame
from analysis.nightly.gate_jobs import judge_jobs
from analysis.nightly.job_facts import HistoryOfJobs
from analysis.nightly.job_verdict import JobVerdict
from analysis.nightly.policy import FAILING, Policy, read_policy
from analysis.nightly.run_verdicts import verdicts_of_runs
from analysis.present.terminal import print_parts
from analysis.present.views.jobs import compose_jobs
from analysis.stats.prediction import LEAST_CHANGE, OF_ONE_SIZE_CALM
from logparse.errors import InputError

SEEDS, NIGHTS, BEGINS, AGAIN, PER = 20, 60, 35, 47, 90
# Earlier nights that a rule needs before it judges; nights in which a change must be found, and columns of a screen.
LEARNING, BY_NIGHT, COLUMNS = 5, 3, 80
STEP_SPREAD, SAVE_EVERY, SAVE_STEPS, SAVE_SPREAD = 0.01, 50, 3.0, 0.2
START_UP_S, START_UP_SPREAD = 15.0, 0.1
# How far the mean of three nights is for a rule that knows which nights are accidents, in spreads.
FLOOR_FAR = (1.8, 2.0, 2.2, 2.4)
# Share of slow runs that are slow on the next night too.
SLOW_AGAIN = 0.2
SLOWER_NODE, UPGRADE, UPGRADE_MEMORY = 0.015, 0.002, 0.003
MEMORY, MEMORY_SPREAD = 5e10, 0.001
TAIL_EVERY, DRIFT, NAN_STEPS = 25, 0.0005, 2
# Steps of a night and milliseconds of a step, by job.
JOBS = ((40, 5000), (60, 2500), (80, 9300), (100, 1200), (120, 600), (150, 3000), (200, 4500), (300, 800))
CHANGES = ("+1 %", "+2 %", "+3 %", "+5 %", "tail", "memory +8 %", "drift", "NaN", "crash")
# Night, counted from the first of the change, by which it must be found; drift by its night of +1.2 %.
WANTED = dict(zip(CHANGES, (3, 3, 3, 3, 3, 3, 24, 1, 1), strict=True))
Floats = NDArray[np.float64]
Alarms = list[bool]
# Alarms of a rule by night for each job.
Rule = Callable[[Sequence["Job"]], list[Alarms]]
METRICS = {
    "steady_step_time_ms": 1,
    "with_stalls_step_time_ms": 1,
    "step_time_p95_ms": 1,
    "goodput": -1,
    "max_memory_allocated_bytes": 1,
}


@dataclass(frozen=True)
class World:
    """The noise of a cluster: the spread between nights, drawn by job from a range, and their correlation.

    ``pauses`` are the chance of one in a step and its mean length in steps. ``slow_runs`` is the chance of a run that
    is slower by 1 to 10 %; some are slow again on the next. ``together`` is how often all jobs are slow for
    one or two nights. A night has ``runs`` runs of a job, each on a node of its own where ``nodes`` says so.
    """

    spread: tuple[float, float] = (0.002, 0.002)
    correlation: float = 0.3
    pauses: tuple[float, float] = (0.002, 2.0)
    slow_runs: float = 0.0
    together: int = 0
    runs: int = 1
    nodes: bool = False


WORLDS = {
    "quiet": World(),
    "hiccups": World((0.003, 0.015), pauses=(0.004, 3.0), slow_runs=0.08),
    "noise of 3 % that lasts": World((0.03, 0.03), correlation=0.6),
    "nights slow together": World(together=6),
    "three runs a night": World(runs=3),
    "two nodes": World(runs=2, nodes=True),
    "noise of 0.3 %": World((0.003, 0.003)),
    "noise of 1 %": World((0.01, 0.01)),
}
# Changes of the nights that are judged as the gate does, each in its world.
JUDGED_AS_GATE = (
    ("noise of 0.3 %", "+1 %"),
    ("noise of 1 %", "+3 %"),
    ("noise of 0.3 %", "+3 % twice"),
    ("noise of 1 %", "+3 % twice"),
    ("three runs a night", "+3 %"),
    ("two nodes", "+4 % on one node"),
    ("quiet", "batch"),
)


@dataclass(frozen=True)
class Job:
    """The runs of one job as rows of the history, so many a night, and the change that begins on night BEGINS."""

    name: str
    rows: list[dict[str, Any]]
    change: str | None
    runs: int = 1

    def values(self, metric: str) -> list[float]:
        """A metric by run."""
        return [row[metric] for row in self.rows]


def correlated(rng: np.random.Generator, spread: float, correlation: float, runs: int) -> Floats:
    """Noise of runs, each correlated with the one before."""
    noise = rng.normal(0, spread, runs)
    for at in range(1, runs):
        noise[at] = correlation * noise[at - 1] + np.sqrt(1 - correlation**2) * noise[at]
    return noise


def simulate_job(seed: int, place: int, change: str | None, world: World = WORLDS["quiet"]) -> Job:
    """Sixty nights of one job."""
    rng = np.random.default_rng([seed, place, len(change or "")])
    steps, ms = JOBS[place % len(JOBS)]
    runs = NIGHTS * world.runs
    level, memory = levels(rng, change, world, shared_slowness(seed, world))
    saves = steps // SAVE_EVERY if place % 2 == 0 else 0
    name = f"{place}-{change or 'quiet'}"
    rows = []
    for at in range(runs):
        night = at // world.runs
        holds = night >= BEGINS
        times = ms * np.exp(level[at] + rng.normal(0, STEP_SPREAD, steps))
        rate, length = world.pauses
        pauses = (rng.random(steps) < rate) * rng.exponential(length, steps) * ms
        if change == "tail" and holds:
            pauses[TAIL_EVERY - 1 :: TAIL_EVERY] += times[TAIL_EVERY - 1 :: TAIL_EVERY]
        saving = (SAVE_STEPS * ms * np.exp(rng.normal(0, SAVE_SPREAD, saves))).sum()
        start_up = 1000 * START_UP_S * np.exp(rng.normal(0, START_UP_SPREAD))
        health = {
            "nan_share": NAN_STEPS / steps if change == "NaN" and holds else 0.0,
            "crashed_at": steps // 2 if change == "crash" and night == BEGINS else None,
            "max_memory_allocated_bytes": memory[at],
            "global_batch_size": 64 if change == "batch" and holds else 32,
        }
        if world.nodes:
            health["labels"] = [{"name": "node", "value": f"node-{at % world.runs}"}]
        rows.append(as_row(name, place, world, at, steps, health | measure(times, pauses, saving + start_up)))
    return Job(name, rows, change, world.runs)


def shared_slowness(seed: int, world: World) -> Floats:
    """How much slower all jobs are, by night: one or two nights in a row, by 2 to 8 %."""
    rng, slower = np.random.default_rng([seed, 1000]), np.zeros(NIGHTS)
    for _ in range(world.together):
        first = rng.integers(LEARNING, NIGHTS)
        slower[first : first + rng.integers(1, 3)] = rng.uniform(0.02, 0.08)
    return slower


def levels(rng: np.random.Generator, change: str | None, world: World, shared: Floats) -> tuple[Floats, Floats]:
    """By run, the logarithm of the pace of a job, and its memory in bytes."""
    runs = NIGHTS * world.runs
    nights = np.arange(runs) // world.runs
    unit = correlated(rng, 1.0, world.correlation, runs)
    slower_night, upgrade = rng.integers(LEARNING, BEGINS - 2), rng.integers(LEARNING, BEGINS - LEARNING)
    memory = MEMORY * np.exp(rng.normal(0, MEMORY_SPREAD, runs))
    level = unit * rng.uniform(*world.spread) + hiccups(rng, world.slow_runs, runs) + shared[nights]
    level += SLOWER_NODE * (nights == slower_night) + UPGRADE * (nights >= upgrade)
    memory[nights >= upgrade] *= 1 + UPGRADE_MEMORY
    since = nights - BEGINS + 1
    if change == "drift":
        level += DRIFT * np.maximum(since, 0)
    elif change == "memory +8 %":
        memory[since > 0] *= 1.08
    elif change and change.startswith("+"):
        more = np.log1p(float(change[1]) / 100)
        concerned = np.arange(runs) % world.runs == 0 if "node" in change else np.ones(runs, bool)
        level += more * (concerned & (since > 0))
        level += more * (nights >= AGAIN) * ("twice" in change)
    elif change == "batch":
        level += np.log(2) * (since > 0)
    return level, memory


def hiccups(rng: np.random.Generator, rate: float, runs: int) -> Floats:
    """How much slower each run is by accident."""
    slow = (rng.random(runs) < rate) * rng.uniform(0.01, 0.1, runs)
    again = np.append(0.0, slow[:-1]) * (rng.random(runs) < SLOW_AGAIN)
    return np.maximum(slow, again)


def measure(times: Floats, pauses: Floats, between: float) -> dict[str, float | None]:
    """The metrics of a run by the definitions of the analysis: a step 25 % slower than the others is a stall."""
    all_times = times + pauses
    stalls = all_times > 1.25 * np.median(all_times)
    counted = all_times[~stalls]
    useful = counted.sum() + stalls.sum() * np.median(counted)
    clock = float(np.floor((all_times.sum() + between) / 1000) * 1000)
    return {
        "steady_step_time_ms": float(np.median(counted)),
        "step_time_p95_ms": float(np.quantile(all_times, 0.95, method="lower")),
        "longest_stall_ms": float(max(all_times[stalls] - np.median(counted), default=0.0)),
        "longest_stall_step": int(all_times.argmax()) + 1 if stalls.any() else None,
        "with_stalls_step_time_ms": float(all_times.mean()),
        "wall_clock_step_time_ms": clock / len(times),
        "goodput": float(useful / clock),
    }


def as_row(name: str, place: int, world: World, at: int, steps: int, figures: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the history."""
    night, number = divmod(at, world.runs)
    when = datetime(2026, 3, 1, 20) + timedelta(days=night, hours=number)
    shape = {"num_layers": 32, "hidden_size": 4096 + 128 * place, "seq_length": 4096}
    return {
        **shape,
        "world_size": 8,
        "run_id": f"{name}-{at:03}",
        "begins": f"{name}{at}",
        "name": f"{name}-{at}",
        "skipped_share": 0.0,
        **dict.fromkeys(("recorded_at", "begun_at"), when),
        **{column: [] for column in ("landmarks", "labels", "versions", "settings")},
        **dict.fromkeys(("step_lines", "counted_rows", "with_stalls_steps", "wall_clock_steps"), steps),
        **figures,
    }


def frame(jobs: Sequence[Job]) -> pl.DataFrame:
    """The runs of all jobs as a history has them."""
    return run_frame([row for job in jobs for row in job.rows]).with_columns(release=pl.lit("r"))


def policy_of(jobs: Sequence[Job]) -> Policy:
    """The default policy without losses, which these runs do not have, by node where the runs name one."""
    table: dict[str, Any] = {"metrics": {"final_loss": "off"}}
    return read_policy(table | ({"block_by": "node"} if jobs[0].rows[0]["labels"] else {}))


def by_gate(jobs: Sequence[Job]) -> list[Alarms]:
    """The alarms of our gate."""
    runs = frame(jobs)
    verdicts = verdicts_of_runs(runs, runs["run_id"], policy_of(jobs), {})
    alarms = [[verdicts.get(row["run_id"]) in ("regression", "crashed") for row in job.rows] for job in jobs]
    return [
        [any(some[at : at + job.runs]) for at in range(0, len(some), job.runs)]
        for job, some in zip(jobs, alarms, strict=True)
    ]


def judge_nights(jobs: Sequence[Job], nights: Collection[int]) -> Iterator[tuple[int, list[JobVerdict]]]:
    """Each of ``nights`` as the command ``gate`` judges it by the runs until then."""
    runs, policy = frame(jobs), policy_of(jobs)
    history = HistoryOfJobs(lambda ids: runs.filter(pl.col("run_id").is_in(list(ids))), _without_steps)
    for night in nights:
        before = pl.col("begun_at") < datetime(2026, 3, 2, 12) + timedelta(days=night)
        yield night, judge_jobs(runs.filter(before), policy, history)


def _without_steps(_: str) -> pl.DataFrame:
    raise InputError("simulated runs have no steps")


def by_median(jobs: Sequence[Job]) -> list[Alarms]:
    """The alarms of "3 % worse than the median of 7 nights", on any metric."""
    return [_any_metric(job, _beyond_median) for job in jobs]


def _any_metric(job: Job, alarms: Callable[[list[float]], Alarms]) -> Alarms:
    logs = ([sign * float(np.log(value)) for value in job.values(metric)] for metric, sign in METRICS.items())
    return [any(night) for night in zip(*map(alarms, logs), strict=True)]


def _beyond_median(logs: list[float]) -> Alarms:
    judged = range(LEARNING, len(logs))
    late = [logs[at] > np.median(logs[max(0, at - 7) : at]) + np.log(1.03) for at in judged]
    return [False] * LEARNING + [bool(alarm) for alarm in late]


def by_otava(jobs: Sequence[Job]) -> list[Alarms]:
    """The alarms of Otava: a change to the worse at one of the last seven nights."""
    return [_any_metric(job, _changed) for job in jobs]


def _changed(logs: list[float]) -> Alarms:
    from otava.analysis import compute_change_points  # type: ignore[import-not-found]

    alarms = [False] * LEARNING
    for end in range(LEARNING + 1, len(logs) + 1):
        series = np.exp(logs[:end])
        points = [int(point.index) for point in compute_change_points(series.tolist())[0]]
        ends = [*points, end][1:]
        worse = [series[at:to].mean() > series[:at][-7:].mean() for at, to in zip(points, ends, strict=True)]
        alarms.append(any(up and at >= end - 7 for at, up in zip(points, worse, strict=True)))
    return alarms


def count_false(alarms: Sequence[Alarms]) -> tuple[int, int]:
    """Alarms that begin on any job, and nights on which any job has one."""
    begun = sum(now and not before for job in alarms for before, now in pairwise(job))
    return begun, sum(any(night) for night in zip(*alarms, strict=True))


def nights_to(alarms: Alarms) -> int | None:
    """The night of the first alarm since the change, counted from 1."""
    return next((night for night, alarm in enumerate(alarms[BEGINS:], start=1) if alarm), None)


def forgets(job: Job, alarms: Alarms) -> bool:
    """Whether a change that was found is no alarm on a later night, although it lasts."""
    first = nights_to(alarms)
    return job.change != "crash" and first is not None and not all(alarms[BEGINS + first - 1 :])


def print_table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    """Print a table of Markdown."""
    print(f"\n| {' | '.join(head)} |\n| --- |{' ---: |' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def rules() -> dict[str, Rule]:
    """The rules that judge the quiet cluster."""
    known: dict[str, Rule] = {"gate": by_gate, "median of 7, 3 %": by_median}
    return known | ({"Otava": by_otava} if find_spec("otava") else {})


def print_false_alarms(seeds: Sequence[int]) -> None:
    """False alarms of the gate in each world, and of other rules in the quiet one."""
    cases = [(name, world, "gate", by_gate) for name, world in WORLDS.items()]
    cases += [("quiet", WORLDS["quiet"], name, rule) for name, rule in rules().items() if name != "gate"]
    nights = len(seeds) * (NIGHTS - LEARNING)

    def rates() -> Iterator[Sequence[str]]:
        for name, world, rule_name, rule in cases:
            quiet = ([simulate_job(seed, place, None, world) for place in range(len(JOBS))] for seed in seeds)
            begun, red = np.sum([count_false(rule(jobs)) for jobs in quiet], axis=0)
            yield [name, rule_name, f"{begun / nights / len(JOBS) * PER:.2f}", f"{red / nights:.1%}"]

    print_table(("world", "rule", f"false alarms per job and {PER} nights", "nights with any of 8 jobs"), rates())


def print_found(seeds: Sequence[int]) -> None:
    """When each rule finds a change in the quiet world."""
    found: dict[tuple[str, str], list[int | None]] = defaultdict(list)
    forgotten: dict[str, int] = defaultdict(int)
    for seed in seeds:
        changed = [simulate_job(seed, seed + place, change) for place, change in enumerate(CHANGES)]
        for name, rule in rules().items():
            for job, alarms in zip(changed, rule(changed), strict=True):
                found[name, str(job.change)].append(nights_to(alarms))
                forgotten[name] += forgets(job, alarms)
    print_table(
        ("change", "wanted by night", *(f"{name}: median night, in time" for name in rules())),
        ([change, str(WANTED[change]), *(cell(change, found[name, change]) for name in rules())] for change in CHANGES),
    )
    print(f"\nAlarms that end although the change lasts: {dict(forgotten)}")


def cell(change: str, nights: Sequence[int | None]) -> str:
    """The median night of the first alarm, and the share in time."""
    middle = float(np.median([night or NIGHTS for night in nights]))
    in_time = np.mean([(night or NIGHTS) <= WANTED[change] for night in nights])
    return f"{'never' if middle >= NIGHTS else f'{middle:g}'}, {in_time:.0%}"


def print_news(seeds: Sequence[int]) -> None:
    """The share of changes that the command ``gate`` tells as it should, and its longest screen."""
    right: dict[tuple[str, str, int], list[bool]] = defaultdict(list)
    for seed in seeds:
        for at, (world, change) in enumerate(JUDGED_AS_GATE):
            job = simulate_job(seed, seed + at, change, WORLDS[world])
            for first in (BEGINS, AGAIN) if "twice" in change else (BEGINS,):
                verdicts = [jobs for _, jobs in judge_nights([job], range(first, first + BY_NIGHT))]
                right[change, world, first].append(is_quiet(verdicts) if change == "batch" else is_told(verdicts))
    print_table(
        ("change", "world", "step", f"new by night {BY_NIGHT}; batch: no alarm"),
        (
            [change, world, "second" if at == AGAIN else "first", f"{np.mean(r):.0%}"]
            for (change, world, at), r in right.items()
        ),
    )
    print(f"\nLongest screen of eight jobs: {max(map(longest_screen, seeds))} lines at {COLUMNS} columns")


def print_floor(seeds: Sequence[int]) -> None:
    """What a rule reports that knows which nights are accidents, by the spreads that a mean of three nights is away."""

    def rates() -> Iterator[Sequence[str]]:
        for (name, change), far in product(JUDGED_AS_GATE[:2], FLOOR_FAR):
            world = WORLDS[name]
            quiet = [_three_away(simulate_job(seed, seed, None, world), world, far) for seed in seeds]
            changed = [_three_away(simulate_job(seed, seed, change, world), world, far) for seed in seeds]
            begun = sum(count_false([alarms])[0] for alarms in quiet) / len(seeds) / (NIGHTS - LEARNING) * PER
            found = np.mean([any(alarms[BEGINS : BEGINS + BY_NIGHT]) for alarms in changed])
            yield [name, f"{far:g}", f"{begun:.2f}", change, f"{found:.0%}"]

    print_table(("world", "spreads", f"false alarms per job and {PER} nights", "change", "reported"), rates())


def _three_away(job: Job, world: World, far: float) -> Alarms:
    """Nights that end three of one size, whose mean is ``far`` above the 30 before, without those that are off."""
    logs = np.log(job.values("steady_step_time_ms"))
    alarms = [False] * NIGHTS
    for end in range(LEARNING + BY_NIGHT, NIGHTS + 1):
        before, last = logs[max(0, end - BY_NIGHT - 30) : end - BY_NIGHT], logs[end - BY_NIGHT : end]
        near = before[np.abs(before - np.median(before)) < 3 * world.spread[0]]
        spread = near.std(ddof=1)
        same = np.abs(last - np.median(last)) <= OF_ONE_SIZE_CALM * spread
        alarms[end - 1] = bool(same.all() and last.mean() - near.mean() > max(far * spread, LEAST_CHANGE))
    return alarms


def is_told(nights: Sequence[Sequence[JobVerdict]]) -> bool:
    """Whether a night of the change shows it as new."""
    return any(job.news == "new" for jobs in nights for job in jobs)


def is_quiet(nights: Sequence[Sequence[JobVerdict]]) -> bool:
    """Whether no night fails the gate or misses a job."""
    return not any(
        job.missing or job.refused or job.verdict in FAILING["regression"] for jobs in nights for job in jobs
    )


def longest_screen(seed: int) -> int:
    """The most lines that the gate prints of eight jobs with one change each, on the nights of their changes."""
    changes = ("+3 % twice", "+5 %", "tail", "memory +8 %", "NaN", "crash", "batch", "+1 %")
    jobs = [simulate_job(seed, place, change, WORLDS["hiccups"]) for place, change in enumerate(changes)]
    nights = [BEGINS, BEGINS + 1, BEGINS + 4, AGAIN + 1]
    return max(lines_of(verdicts) for _, verdicts in judge_nights(jobs, nights))


def lines_of(verdicts: Sequence[JobVerdict]) -> int:
    """The lines of the screen of a gate."""
    screen = StringIO()
    print_parts(Console(file=screen, width=COLUMNS), compose_jobs(verdicts, details=False))
    return screen.getvalue().count("\n")


TABLES: dict[str, Callable[[Sequence[int]], None]] = {
    "false": print_false_alarms,
    "found": print_found,
    "news": print_news,
    "floor": print_floor,
}


def main() -> None:
    """Print the tables, or those that are named."""
    numbers = [int(text) for text in sys.argv[1:] if text.isdigit()]
    seeds, first = [*numbers, *(SEEDS, 0)[len(numbers) :]]
    for name in [text for text in sys.argv[1:] if text in TABLES] or TABLES:
        TABLES[name](range(first, first + seeds))


if __name__ == "__main__":
    main()
