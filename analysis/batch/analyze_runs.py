"""Many runs analysed, here or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from analysis.batch.engine import map_runs
from analysis.run.anonymous import shown_error
from analysis.run.build import analyze_logs, analyze_parts
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
    how, cores = _on_cores(how, engine)
    done = map_runs(partial(analyze_logs, how=how), runs, engine, watches, cores)
    for (_, logs), one in zip(runs, done, strict=True):
        yield shown_error(one, logs, how) if isinstance(one, LogparseError) else one


def analyze_all_parts(
    runs: Sequence[tuple[str, Sequence[str]]],
    how: RunOptions,
    engine: str = "local",
    watches: Sequence[Watch | None] = (),
    split: bool = False,
) -> Iterator[Run | LogparseError]:
    """As ``analyze_all``, but several runs for a log that holds several, see ``analyze_parts``."""
    how, cores = _on_cores(how, engine)
    all_done = map_runs(partial(analyze_parts, how=how, mixed_too=split), runs, engine, watches, cores)
    for (name, logs), done in zip(runs, all_done, strict=True):
        if isinstance(done, LogparseError):
            shown_error(done, logs, how)
            done.run = name if how.pseudonyms is None else how.pseudonyms.of("run", name)
            yield done
        else:
            yield from done


def _on_cores(how: RunOptions, engine: str) -> tuple[RunOptions, int]:
    """Here every core reads a run; a cluster reads as many runs at once as it has cores."""
    cores = how.jobs or 1
    return (replace(how, jobs=cores) if engine != "local" else how), cores
