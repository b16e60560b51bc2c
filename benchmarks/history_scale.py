"""How long `trend` and `gate` take over a history of 20,000 runs, before and after `record` writes bundles.

The runs are made from one recorded log: 400 releases, four jobs, 0.5 % spread, each with its 150 settings and steps.

    python benchmarks/history_scale.py [RUNS]
"""

import os
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from analysis.history.folder import Folder
from analysis.history.record_run import Marks, RunOptions, record_logs
from analysis.history.store import History, _key
from analysis.history.summary_files import parquet_of

LOG = Path(__file__).parent.parent / "fixtures/megatron/core-v0.12-llama2-7b/run.log"
PROGRAM = str(Path(sys.executable).with_name("logparse"))
RELEASES, JOBS = 400, 4
BASELINE, CANDIDATE = "release=nightly 0100,seq_length=4096", "release=nightly 0300,seq_length=4096"


def fill(history: History, runs: int) -> None:
    """Write ``runs`` summaries, each with an id and a time of its own."""
    record = record_logs([str(LOG)], RunOptions(), Marks("first"))
    row, steps = record.summary, parquet_of(record.steps)
    rng = np.random.default_rng(0)
    for number in range(runs):
        release, job = f"nightly {number * RELEASES // runs:04}", number % JOBS
        run_id = f"{number:032x}"
        ms = 5000 * np.exp(rng.normal(0, 0.005)) * (1.05 if number > runs / 2 else 1.0)
        given = {
            "run_id": run_id,
            "begins": run_id,
            "landmarks": [{"name": str(step), "value": f"- {number}.{step} {ms}"} for step in range(24)],
            "recorded_at": datetime(2026, 1, 1) + timedelta(hours=2 * number),
            "begun_at": datetime(2026, 1, 1) + timedelta(hours=2 * number),
            "steady_step_time_ms": ms,
            "seq_length": 4096 * 2**job,
        }
        one = row.with_columns(pl.lit(value).cast(row.schema[name]).alias(name) for name, value in given.items())
        history.storage.put(_key("steps", release, run_id), steps)
        history.storage.put(_key("summary", release, run_id), parquet_of(one))


def timed(*arguments: str) -> None:
    """Print the CPU time and memory of a command, the start of the program included."""
    process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    cpu, mib = used.ru_utime + used.ru_stime, used.ru_maxrss // 1024
    print(
        f"{cpu:6.2f} s  {mib:4} MiB  exit {os.waitstatus_to_exitcode(status)}  logparse {' '.join(arguments)}",
        flush=True,
    )


def main() -> None:
    """Fill, ask, record, ask again."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as place:
        fill(History(Folder(Path(place))), runs)
        asked = (
            ["trend", "--history", place],
            ["trend", "--history", place, "--select", "seq_length=4096"],
            ["gate", "--history", place, "--baseline", BASELINE, "--candidate", CANDIDATE],
            ["gate", "--history", place],
        )
        for arguments in (*asked, ["record", str(LOG), "--release", "last", "--history", place], *asked):
            timed(*arguments)


if __name__ == "__main__":
    main()
