"""Many runs analysed, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from analysis.batch.engine import HERE, Readers, map_runs
from analysis.run.anonymous import shown_error
from analysis.run.build import analyze_logs, analyze_parts
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.decode.reader import CORES
from logparse.errors import LogparseError
from logparse.inputs.discovery import size_of

Runs = Sequence[tuple[str, Sequence[str]]]
# What a run, a file and a megabyte take one core, and how long a worker takes to start, in seconds.
SECONDS_A_RUN, SECONDS_A_FILE, SECONDS_A_MEGABYTE, SECONDS_TO_START = 0.3, 0.01, 0.1, 0.7
# Workers must save so many times what it takes to start them.
WORTH = 4

T = TypeVar("T")


def analyze_all(runs: Runs, how: RunOptions, readers: Readers = HERE) -> Iterator[Run | LogparseError]:
    """What each of ``runs`` achieved, in their order; an error in place of one whose logs cannot be read.

    Raises as ``map_runs`` and ``analyze_run``.
    """
    return read_all(analyze_logs, runs, how, readers)


def analyze_all_parts(
    runs: Runs, how: RunOptions, readers: Readers = HERE, mixed_too: bool = False
) -> Iterator[Run | LogparseError]:
    """As ``analyze_all``, but several runs for a log that holds several, see ``analyze_parts``."""
    return each_part(read_all(partial(analyze_parts, mixed_too=mixed_too), runs, how, readers))


def read_all(
    read: Callable[..., T], runs: Runs, how: RunOptions, readers: Readers = HERE
) -> Iterator[T | LogparseError]:
    """What ``read(logs, how=how, name=name)`` returns for each of ``runs``, or the error, as it is shown."""
    if readers.workers > 1 or readers.engine != "local":
        how = replace(how, jobs=readers.cores)
    for (name, logs), one in zip(runs, map_runs(partial(read, how=how), runs, readers), strict=True):
        if isinstance(one, LogparseError):
            shown_error(one, logs, how)
            one.run = name if how.pseudonyms is None else how.pseudonyms.of("run", name)
        yield one


def each_part(results: Iterator[Sequence[T] | LogparseError]) -> Iterator[T | LogparseError]:
    """Each of the parts that a log has, and each error."""
    for result in results:
        if isinstance(result, LogparseError):
            yield result
        else:
            yield from result


def choose_readers(runs: Runs, how: RunOptions, engine: str) -> Readers:
    """Who reads ``runs``: on this machine a worker for each core, where they are worth their start.

    A cluster reads as many runs at once as it has cores, unless ``how`` gives each run several.
    """
    if engine != "local":
        return Readers(engine, cores=how.jobs or 1)
    cores = how.jobs or CORES
    workers = min(cores, len(runs))
    if workers < 2 or any("-" in logs for _, logs in runs) or _seconds(runs) < WORTH * SECONDS_TO_START:
        return HERE
    return Readers(engine, workers, max(1, cores // workers))


def _seconds(runs: Runs) -> float:
    """How long one core takes for ``runs``, roughly."""
    files = [file for _, files in runs for file in files]
    megabytes = sum(size_of(files) or 0 for _, files in runs) / 1e6
    return SECONDS_A_RUN * len(runs) + SECONDS_A_FILE * len(files) + SECONDS_A_MEGABYTE * megabytes
