"""Runs for the tests of releases: logs made to measure, and histories that hold them."""

from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from helpers import SETTINGS, arguments_dump, megatron_line

from analysis.history.folder import Folder
from analysis.history.record_run import Marks, keep
from analysis.history.run_records import RunRecord
from analysis.history.store import History
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.run import Run
from analysis.run.tables import STEP_COLUMNS
from logparse.schema import conform

FIGURES = {"lm loss": "{loss:.6E}"}


def write_run(
    path: Path, seed: int, ms: float = 1000.0, steps: int = 20, spread: float = 0.004, **settings: object
) -> Path:
    """A log whose steps take ``ms``, give or take 0.3 % by step and ``spread`` by run."""
    rng = np.random.default_rng(seed)
    pace = ms * np.exp(rng.normal(0, spread))
    times = pace * np.exp(rng.normal(0, 0.003, steps))
    # A day of its own: runs of one hour with the same losses would be one job.
    begun = datetime(2026, 2, 2, 10) + timedelta(days=seed)
    batch = int(str(settings.get("global_batch_size", SETTINGS["global_batch_size"])))
    lines = [
        megatron_line(step, time, f"{begun + timedelta(minutes=step)}", _pairs(step, batch))
        for step, time in enumerate(times, start=1)
    ]
    path.write_text(arguments_dump(SETTINGS | settings) + "\n".join(lines) + "\n")
    return path


def _pairs(step: int, batch: int) -> dict[str, str]:
    samples = {"consumed samples": f"{step * batch:12d}", "global batch size": f"{batch:5d}"}
    return {"lm loss": f"{3 + 1 / step:.6E}", **samples}


def as_steps(**columns: object) -> pl.DataFrame:
    """The steps of a run as history has them, of which only ``columns`` are known."""
    return conform(pl.DataFrame(columns), STEP_COLUMNS)


def record(path: Path, release: str = "r1", **labels: str) -> RunRecord:
    """The record of a log; one that was analysed before under that name is not analysed again."""
    return keep(_analyzed(path.name, path.read_bytes()), Marks(release, labels))


@cache
def _analyzed(name: str, content: bytes) -> Run:
    with TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        return analyze_logs([f"{folder}/{name}"], RunOptions())


def fill(folder: Path, releases: dict[str, tuple[float, int, dict[str, object]]]) -> History:
    """A history in ``folder``/h; of each release its step time in ms, its number of runs, and its settings."""
    history = History(Folder(folder / "h"))
    for place, (release, (ms, runs, settings)) in enumerate(releases.items()):
        for number in range(runs):
            log = write_run(folder / f"{release.replace('/', '-')}-{number}.log", 100 * place + number, ms, **settings)
            history.add(record(log, release))
    return history
