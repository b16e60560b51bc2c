"""Which runs are meant where each argument is one: a folder may hold the files of many jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePath

from logparse.errors import InputError
from logparse.ranks import place_of
from logparse.read.named import find_sources
from logparse.read.parse import run_names


def named_runs(arguments: Sequence[str], each: bool) -> list[tuple[str, Sequence[str]]]:
    """The name of each run, and what to read for it: all ``arguments``, or ``each`` of them.

    A folder that is one of ``each`` is as many runs as the names of the files below it tell jobs.
    """
    if not each:
        return [(run_names([arguments])[0], arguments)]
    runs = [run for argument in arguments for run in _jobs_below(argument)]
    return list(zip(run_names([[called] for called, _ in runs]), (files for _, files in runs), strict=True))


def _jobs_below(argument: str) -> list[tuple[str, list[str]]]:
    whole = [(argument, [argument])]
    try:
        if not Path(argument).is_dir():
            return whole
        return split_jobs([str(source.path) for source in find_sources([argument])]) or whole
    except (OSError, InputError):
        # Reading it says what is wrong, and does not stop the other runs.
        return whole


def split_jobs(paths: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The files of each job, and a path to call it by; none where the names do not tell several.

    A file that tells no rank is of the job in its folder, where there is one such job only; else it is one of its own.
    A node tells a job where one is called 0: such a number may also be how many there were.
    """
    places = {path: place for path in paths if (place := place_of(path))}
    from_zero = {place.job for place in places.values() if place.rank is not None or place.node == 0}
    jobs: dict[str, list[str]] = {place.job: [] for place in places.values() if place.job in from_zero}
    if len(jobs) < 2:
        return []
    folders = defaultdict(set)
    for place in places.values():
        folders[place.folder].add(place.job)
    for path in paths:
        place = places.get(path)
        beside = folders[str(PurePath(path).parent)] & jobs.keys()
        own = place.job if place and place.job in jobs else min(beside) if len(beside) == 1 else path
        jobs.setdefault(own, []).append(path)
    return list(jobs.items())
