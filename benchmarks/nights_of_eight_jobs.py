"""Simulate the nights of eight jobs: how soon each rule finds a change, and how often it reports one without a change.

Each seed has eight quiet jobs and eight jobs with one true change each, sixty nights long. Steps have noise, and now
and then one of them has a pause. Half of the jobs save periodically. Neighbouring nights are correlated, one night of
each job runs on a slower node, and an upgrade changes numbers by less than a threshold. The gate is judged by
``verdicts_of_runs``, next to the rule "3 % above the median of 7 nights" and to Apache Otava if it is installed.

    python benchmarks/nights_of_eight_jobs.py [SEEDS [FIRST]]
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analysis.history.run_records import run_frame
from analysis.nightly.policy import Policy
from analysis.nightly.run_verdicts import verdicts_of_runs

SEEDS, NIGHTS, BEGINS, PER = 20, 60, 35, 90
# Earlier nights that a rule needs before it judges.
LEARNING = 5
NIGHT_SPREAD, CORRELATION, STEP_SPREAD = 0.002, 0.3, 0.01
# Chance of a pause in a step, and its mean length in steps.
PAUSE_RATE, PAUSE_STEPS = 0.002, 2.0
SAVE_EVERY, SAVE_STEPS, SAVE_SPREAD = 50, 3.0, 0.2
START_UP_S, START_UP_SPREAD = 15.0, 0.1
SLOWER_NODE, UPGRADE, UPGRADE_MEMORY = 0.015, 0.002, 0.003
MEMORY, MEMORY_SPREAD = 5e10, 0.001
TAIL_EVERY, DRIFT, NAN_STEPS = 25, 0.0005, 2
# Steps of a night and milliseconds of a step, by job.
JOBS = ((40, 5000), (60, 2500), (80, 9300), (100, 1200), (120, 600), (150, 3000), (200, 4500), (300, 800))
CHANGES = ("+1 %", "+2 %", "+3 %", "+5 %", "tail", "memory +8 %", "drift", "NaN", "crash")
# Night, counted from the first of the change, by which it must be found; drift by its night of +1.2 %.
WANTED = dict(zip(CHANGES, (3, 2, 2, 2, 2, 2, 24, 1, 1), strict=True))
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
class Job:
    """The nights of one job as rows of the history, and the change that begins on night BEGINS."""

    name: str
    rows: list[dict[str, Any]]
    change: str | None

    def values(self, metric: str) -> list[float]:
        """A metric by night."""
        return [row[metric] for row in self.rows]


def correlated(rng: np.random.Generator, spread: float, nights: int = NIGHTS) -> NDArray[np.float64]:
    """Noise of nights, each correlated with the one before."""
    noise = rng.normal(0, spread, nights)
    for at in range(1, nights):
        noise[at] = CORRELATION * noise[at - 1] + np.sqrt(1 - CORRELATION**2) * noise[at]
    return noise


def simulate_job(seed: int, place: int, change: str | None) -> Job:
    """Sixty nights of one job."""
    rng = np.random.default_rng([seed, place, len(change or "")])
    steps, ms = JOBS[place % len(JOBS)]
    level, memory = levels(rng, change)
    saves = steps // SAVE_EVERY if place % 2 == 0 else 0
    name = f"{place}-{change or 'quiet'}"
    rows = []
    for night in range(NIGHTS):
        holds = night >= BEGINS
        times = ms * np.exp(level[night] + rng.normal(0, STEP_SPREAD, steps))
        pauses = (rng.random(steps) < PAUSE_RATE) * rng.exponential(PAUSE_STEPS, steps) * ms
        if change == "tail" and holds:
            pauses[TAIL_EVERY - 1 :: TAIL_EVERY] += times[TAIL_EVERY - 1 :: TAIL_EVERY]
        saving = (SAVE_STEPS * ms * np.exp(rng.normal(0, SAVE_SPREAD, saves))).sum()
        start_up = 1000 * START_UP_S * np.exp(rng.normal(0, START_UP_SPREAD))
        health = {
            "nan_share": NAN_STEPS / steps if change == "NaN" and holds else 0.0,
            "crashed_at": steps // 2 if change == "crash" and night == BEGINS else None,
            "max_memory_allocated_bytes": memory[night],
        }
        rows.append(as_row(name, place, night, steps, health | measure(times, pauses, saving + start_up)))
    return Job(name, rows, change)


def levels(rng: np.random.Generator, change: str | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By night, the logarithm of the pace of a job, and its memory in bytes."""
    level = correlated(rng, NIGHT_SPREAD)
    level[rng.integers(LEARNING, BEGINS - 2)] += SLOWER_NODE
    upgrade = rng.integers(LEARNING, BEGINS - LEARNING)
    level[upgrade:] += UPGRADE
    memory = MEMORY * np.exp(rng.normal(0, MEMORY_SPREAD, NIGHTS))
    memory[upgrade:] *= 1 + UPGRADE_MEMORY
    if change == "drift":
        level[BEGINS:] += DRIFT * np.arange(1, NIGHTS - BEGINS + 1)
    elif change == "memory +8 %":
        memory[BEGINS:] *= 1.08
    elif change and change.startswith("+"):
        level[BEGINS:] += np.log1p(float(change[1]) / 100)
    return level, memory


def measure(times: NDArray[np.float64], pauses: NDArray[np.float64], between: float) -> dict[str, float | None]:
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


def as_row(name: str, place: int, night: int, steps: int, figures: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the history."""
    when = datetime(2026, 3, 1, 20) + timedelta(days=night)
    shape = {"num_layers": 32, "hidden_size": 4096 + 128 * place, "global_batch_size": 32, "seq_length": 4096}
    return {
        **shape,
        "world_size": 8,
        "run_id": f"{name}-{night:03}",
        "begins": f"{name}{night}",
        "name": f"{name}-{night}",
        "skipped_share": 0.0,
        **dict.fromkeys(("recorded_at", "begun_at"), when),
        **{column: [] for column in ("landmarks", "labels", "versions", "settings")},
        **dict.fromkeys(("step_lines", "counted_rows", "with_stalls_steps", "wall_clock_steps"), steps),
        **figures,
    }


def by_gate(jobs: Sequence[Job], policy: Policy | None = None) -> list[Alarms]:
    """The alarms of our gate."""
    runs = run_frame([row for job in jobs for row in job.rows]).with_columns(release=pl.lit("r"))
    verdicts = verdicts_of_runs(runs, runs["run_id"], policy or Policy(), {})
    return [[verdicts.get(row["run_id"]) in ("regression", "crashed") for row in job.rows] for job in jobs]


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


def main() -> None:
    """Print both tables."""
    seeds, first = (int(text) for text in (sys.argv[1:] + [SEEDS, 0][len(sys.argv) - 1 :]))
    rules: dict[str, Rule] = {"gate": by_gate, "median of 7, 3 %": by_median}
    if find_spec("otava"):
        rules["Otava"] = by_otava
    found: dict[tuple[str, str], list[int | None]] = defaultdict(list)
    forgotten: dict[str, int] = defaultdict(int)
    false: dict[str, NDArray[np.int64]] = {name: np.zeros(2, np.int64) for name in rules}
    for seed in range(first, first + seeds):
        quiet = [simulate_job(seed, place, None) for place in range(len(JOBS))]
        changed = [simulate_job(seed, seed + place, change) for place, change in enumerate(CHANGES)]
        for name, rule in rules.items():
            false[name] += count_false(rule(quiet))
            for job, alarms in zip(changed, rule(changed), strict=True):
                found[name, str(job.change)].append(nights_to(alarms))
                forgotten[name] += forgets(job, alarms)
    nights = seeds * (NIGHTS - LEARNING)
    print_table(
        ("rule", f"false alarms per job and {PER} nights", "nights with any of 8 jobs", "alarms that end too early"),
        (
            [name, f"{begun / nights / len(JOBS) * PER:.2f}", f"{red / nights:.1%}", str(forgotten[name])]
            for name, (begun, red) in false.items()
        ),
    )
    print_table(
        ("change", "wanted by night", *(f"{name}: median night, in time" for name in rules)),
        ([change, str(WANTED[change]), *(cell(change, found[name, change]) for name in rules)] for change in CHANGES),
    )


def cell(change: str, nights: Sequence[int | None]) -> str:
    """The median night of the first alarm, and the share in time."""
    middle = float(np.median([night or NIGHTS for night in nights]))
    in_time = np.mean([(night or NIGHTS) <= WANTED[change] for night in nights])
    return f"{'never' if middle >= NIGHTS else f'{middle:g}'}, {in_time:.0%}"


if __name__ == "__main__":
    main()
