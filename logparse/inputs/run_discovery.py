"""Which runs are meant where each argument is one: a folder may hold the files of many jobs."""

from __future__ import annotations

import glob
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from logparse.errors import InputError
from logparse.inputs.discovery import find_sources, natural
from logparse.inputs.ranks import Place, place_of
from logparse.inputs.remote import listed
from logparse.inputs.run_names import run_names
from logparse.inputs.stores import is_url

# Files in a folder of runs that no training prints into.
NOT_LOGS = {".csv", ".css", ".html", ".json", ".jsonl", ".md", ".py", ".sh", ".svg", ".toml", ".xml", ".yaml", ".yml"}
# Files that are expected to be logs, whatever is in them.
LOG_NAMES = {".log", ".txt", ".out", ".err"}

Runs = list[tuple[str, list[str]]]


def named_runs(arguments: Sequence[str], each: bool) -> list[tuple[str, Sequence[str]]]:
    """The name of each run, and what to read for it: all ``arguments``, or ``each`` of them.

    With ``each``, every entry of a folder or a pattern is a run: a file, or a folder with all that is below it. Files
    whose names differ by rank alone are one run, whether a pattern, a folder or the arguments name them.
    """
    if not each:
        return [(run_names([arguments])[0], arguments)]
    runs = _ranks_together([run for argument in arguments for run in _runs_of(argument)])
    return list(zip(run_names([[called] for called, _ in runs]), (files for _, files in runs), strict=True))


def _ranks_together(runs: Runs) -> Runs:
    """The ``runs``, those of single files that differ by rank alone as one."""
    together: Runs = []
    jobs: dict[str, list[str]] = {}
    for called, files in runs:
        place = _rank_of(called) if files == [called] else None
        if place is None:
            together.append((called, files))
        elif place.job in jobs:
            jobs[place.job] += files
        else:
            jobs[place.job] = [*files]
            together.append((place.job, jobs[place.job]))
    return together


def _rank_of(path: str) -> Place | None:
    """The place of a file of a rank; None of others."""
    place = None if is_url(path) or Path(path).is_dir() else place_of(path)
    return place if place is not None and place.rank is not None else None


def _runs_of(argument: str) -> Runs:
    whole = [(argument, [argument])]
    try:
        if is_url(argument):
            inside = listed(argument)
            return whole if inside == [argument] else _runs_listed(inside) or whole
        if Path(argument).is_dir():
            return _runs_in(argument) or whole
        if any(sign in argument for sign in "*?[") and not Path(argument).exists():
            return _runs_matching(argument) or whole
    except (OSError, InputError):
        # Reading it says what is wrong, and does not stop the other runs.
        pass
    return whole


def _runs_listed(urls: Sequence[str]) -> Runs:
    """Runs of the files and folders of a bucket; the URL of a folder ends with a slash."""
    folders = [url for url in urls if url.endswith("/")]
    files = [url for url in urls if not url.endswith("/")]
    return [*_by_job(files, least=1), *((folder, [folder]) for folder in folders)]


def _runs_matching(pattern: str) -> Runs:
    paths = sorted(glob.glob(pattern, recursive=True), key=natural)  # noqa: PTH207
    files, folders = _files_and_folders(paths)
    return [*_by_job(files, least=1), *(run for folder in folders for run in _runs_of(folder))]


def _runs_in(folder: str) -> Runs:
    """Runs of the files below a folder; none where all are of one job."""
    paths = [str(source.path) for source in find_sources([folder])]
    if split_jobs(paths):
        return _by_job(paths)
    if _is_job(paths, folder):
        return []
    skip = len(PurePath(folder).parts)
    logs = sorted([*paths, *_binary_logs(folder, paths)], key=natural)
    inside = (PurePath(*path.parts[: skip + 1]) for path in map(PurePath, logs) if path.suffix not in NOT_LOGS)
    entries = list(dict.fromkeys(map(str, inside)))
    files, folders = _files_and_folders(entries)
    return [*_by_job(files, least=1), *((entry, [entry]) for entry in folders)]


def _files_and_folders(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    are_folders = [Path(path).is_dir() for path in paths]
    files = [path for path, is_folder in zip(paths, are_folders, strict=True) if not is_folder]
    return files, [path for path, is_folder in zip(paths, are_folders, strict=True) if is_folder]


def _binary_logs(folder: str, texts: Sequence[str]) -> list[str]:
    """The files in ``folder`` itself that are named as logs but are no ``texts``: reading them says so."""
    named = (path for path in Path(folder).iterdir() if path.suffix in LOG_NAMES and not path.name.startswith("."))
    of_text = set(texts)
    return [str(path) for path in named if str(path) not in of_text and path.is_file()]


def _by_job(paths: Sequence[str], least: int = 2) -> Runs:
    """The files of each job, where there are ``least`` or more; every other file is a run, unless it is no log."""
    jobs = split_jobs(paths, least) or [(path, [path]) for path in paths]
    return [(called, files) for called, files in jobs if files != [called] or PurePath(called).suffix not in NOT_LOGS]


def _is_job(paths: Sequence[str], folder: str) -> bool:
    """Whether all ``paths`` that may be logs are of one job, whose ranks lie in ``folder`` itself."""
    jobs = split_jobs([path for path in paths if PurePath(path).suffix not in NOT_LOGS], least=1)
    places = [place for path in paths if (place := place_of(path))]
    return len(jobs) == 1 and any(PurePath(place.folder) == PurePath(folder) for place in places)


def split_jobs(paths: Sequence[str], least: int = 2) -> Runs:
    """The files of each job, and a path as its name; none where the names show fewer than ``least`` jobs.

    A file whose name has no rank may belong to the one job in its folder, see ``_goes_with``.
    Node numbers show a job only if one node is 0: such a number may also be a count of nodes.
    """
    places = {path: place for path in paths if (place := place_of(path))}
    from_zero = {place.job for place in places.values() if place.rank is not None or place.node == 0}
    jobs: dict[str, list[str]] = {place.job: [] for place in places.values() if place.job in from_zero}
    if len(jobs) < least:
        return []
    of_folder = defaultdict(list)
    for path in paths:
        of_folder[str(PurePath(path).parent)].append(path)
    nearby = {folder: _job_of_all(files, places, jobs) for folder, files in of_folder.items()}
    for path in paths:
        place, job = places.get(path), nearby[str(PurePath(path).parent)]
        own = place.job if place and place.job in jobs else job if job and _goes_with(path, job) else path
        jobs.setdefault(own, []).append(path)
    return list(jobs.items())


def _job_of_all(files: Sequence[str], places: Mapping[str, Place], jobs: Mapping[str, object]) -> str | None:
    """The one job that the files of a folder belong to; None where most of them show no rank or several jobs."""
    ranks = [places[path].job for path in files if path in places and places[path].job in jobs]
    return ranks[0] if len(set(ranks)) == 1 and 2 * len(ranks) >= len(files) else None


def _goes_with(path: str, job: str) -> bool:
    """Whether a file without a rank may be a launcher's of ``job``: the job has its name, or none but its folder."""
    return PurePath(job) == PurePath(path).parent or PurePath(path).name.startswith(PurePath(job).name)
