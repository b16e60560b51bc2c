"""Many runs analysed, here or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from analysis.batch.engine import map_runs
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.decode.read_run import Watch
from logparse.errors import LogparseError


def analyze_all(
    runs: Sequence[tuple[str, Sequence[str]]],
    how: RunOptions,
    engine: str = "local",
    watches: Sequence[Watch | None] = (),
) -> Iterator[Run | LogparseError]:
    """What each of ``runs`` achieved, in their order; an error in place of one whose logs cannot be read.

    Raises as ``map_runs`` and ``analyze_run``.
    """
    # Here every core reads a run; a cluster reads as many runs at once as it has cores.
    cores = how.jobs or 1
    how = replace(how, jobs=cores) if engine != "local" else how
    return map_runs(partial(analyze_logs, how=how), runs, engine, watches, cores)
