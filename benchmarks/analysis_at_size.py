"""How long the analysis of a long run takes once its log is read, stage by stage, and its screens.

Steps resemble their neighbours (AR(1), 0.7, 1 %) or are all alike; every 500th stalls; two restarts go back 50 steps;
in the third run the pace shifts by 4 %. The same numbers each time.

    python benchmarks/analysis_at_size.py [ROWS]
"""

import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
from release_logs import LINE, SETTINGS
from rich.console import Console

from analysis.present.terminal import print_parts
from analysis.present.views.analyze import compose
from analysis.present.views.analyze_json import document
from analysis.run import analyze_steps as run
from analysis.run import build
from analysis.run.load import load
from analysis.run.options import RunOptions

ROWS = 600_000
MS, STALL_MS, EVERY, LOST = 5000.0, 3000.0, 500, 50
STEP_SPREAD, RESEMBLANCE = 0.01, 0.7
KINDS = ("noisy", "exact", "shifting")
STAGES: dict[ModuleType, tuple[str, ...]] = {
    run: (
        *(
            "of_one_clock",
            "number_starts",
            "find_pauses",
            "trace_starts",
            "select_rows",
            "by_settings",
            "break_down_time",
        ),
        *("summarize", "list_segments", "name_rates", "describe_damage", "describe_copies", "describe_batches"),
        *("describe_run", "describe_pace", "count_goodput", "compare_ranks", "mend_clock", "read_clock"),
    ),
    build: ("analyze_steps", "identify", "describe_warm_up", "describe_clock", "measure_against"),
}


def step_times(rng: np.random.Generator, rows: int, kind: str) -> np.ndarray:
    """Ms of each row of a run of ``rows``, warm-up apart."""
    drift = np.zeros(rows)
    if kind != "exact":
        noise = rng.normal(0, STEP_SPREAD * np.sqrt(1 - RESEMBLANCE**2), rows)
        for at in range(1, rows):
            drift[at] = RESEMBLANCE * drift[at - 1] + noise[at]
    shift = np.where(np.arange(rows) > 0.6 * rows, 1.04, 1.0) if kind == "shifting" else 1.0
    stalls = np.where(np.arange(rows) % EVERY == EVERY - 1, STALL_MS, 0.0)
    return MS * shift * np.exp(drift) + stalls


def write_log(path: Path, rows: int, kind: str) -> None:
    """One run: settings, and three processes whose step lines are ``rows`` in all."""
    rng = np.random.default_rng(KINDS.index(kind))
    times, clock, step = step_times(rng, rows, kind), datetime(2026, 3, 1), 0
    starts = {0: 0, rows // 3: LOST, 2 * rows // 3: LOST}
    with path.open("w", encoding="utf-8") as log:
        for at, ms in enumerate(times.tolist()):
            if at in starts:
                step -= starts[at]
                clock += timedelta(minutes=5)
                log.writelines(f"{line}\n" for line in head(step, clock))
                ms *= 6
            step, clock = step + 1, clock + timedelta(milliseconds=ms)
            figures = {"ms": ms, "tflops": 960_000 / ms, "loss": 2 + 1000 / (step + 100), "norm": 1.0}
            log.write(LINE.format(clock=clock, step=step, steps=rows, consumed=32 * step, **figures) + "\n")


def head(step: int, clock: datetime) -> Iterator[str]:
    """What a process prints before its first step line."""
    yield "-" * 24 + " arguments " + "-" * 24
    yield from (f"  {name} {'.' * (48 - len(name))} {SETTINGS[name]}" for name in sorted(SETTINGS))
    yield "-" * 20 + " end of arguments " + "-" * 21
    if step:
        yield f"  successfully loaded checkpoint from ckpt [ t 0, p 0 ] at iteration {step}"
    yield f"[before the start of training step] datetime: {clock:%Y-%m-%d %H:%M:%S} "


@contextmanager
def timing() -> Iterator[dict[str, tuple[float, float]]]:
    """Wall and CPU seconds of each of STAGES, by name."""
    spent: dict[str, tuple[float, float]] = {}
    with ExitStack() as patches:
        for module, names in STAGES.items():
            for name in names:
                patches.enter_context(patch.object(module, name, timed(name, getattr(module, name), spent)))
        yield spent


def timed(name: str, stage: Callable[..., Any], spent: dict[str, tuple[float, float]]) -> Callable[..., Any]:
    """``stage``, which adds what it took to ``spent``. Notes that come one by one are made at once."""

    @wraps(stage)
    def wrapped(*arguments: Any, **others: Any) -> Any:
        begin = time.perf_counter(), time.process_time()
        result = stage(*arguments, **others)
        result = list(result) if isinstance(result, Iterator) else result
        wall, cpu = spent.get(name, (0.0, 0.0))
        spent[name] = wall + time.perf_counter() - begin[0], cpu + time.process_time() - begin[1]
        return result

    return wrapped


def measure(log: Path, kind: str) -> None:
    """Read ``log``, then print a table of what follows."""
    how = RunOptions()
    with timing() as spent:
        loaded = timed("read", load, spent)([str(log)], how)
        result = timed("after reading", build.analyze_run, spent)(loaded, how)
        timed("analyze --json", lambda: json.dumps(document([result]), allow_nan=False), spent)()
        console = Console(file=io.StringIO(), width=120)
        timed("table", lambda: print_parts(console, compose(result)), spent)()
    print(f"\n{kind}: {len(result.steps):,} rows, {int(result.steps['counted'].sum()):,} count\n")
    print(f"| {'stage':<18} | {'wall s':>8} | {'CPU s':>8} |\n| {'-' * 18} | {'-' * 7}: | {'-' * 7}: |")
    for name, (wall, cpu) in sorted(spent.items(), key=lambda item: -item[1][0]):
        print(f"| {name:<18} | {wall:8.3f} | {cpu:8.3f} |", flush=True)


def main() -> None:
    """Write, read and compute each kind of run."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            log = Path(folder) / f"{kind}.log"
            write_log(log, rows, kind)
            measure(log, kind)


if __name__ == "__main__":
    main()
