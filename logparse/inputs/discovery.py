"""What the user named to the files of a run: files, folders, patterns, URLs of these, standard input."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePath

import regex

from logparse.errors import InputError, reason_of
from logparse.inputs.remote import StoredObject, find_objects, names_folder
from logparse.inputs.sources import Source, is_binary
from logparse.inputs.stores import is_url, shown
from logparse.language import tr

# What is looked into side by side, since on an object store and NFS each takes its time on the way. Threads that need
# not wait, as for files of a disk, are in each other's way.
FILES_AT_ONCE, OBJECTS_AT_ONCE = 8, 32


def find_sources(arguments: Sequence[str]) -> list[Source]:
    """The files that ``arguments`` name: files, folders (all below), globs, URLs of these, ``-`` for standard input.

    Raises InputError for a name that leads to no file, UsageError for a URL that cannot be used.
    """
    sources: dict[object, Source] = {}
    for argument in arguments:
        for source in _objects(argument) if is_url(argument) else _files(argument):
            key = source.path.resolve() if isinstance(source.path, Path) else source.path
            sources.setdefault(key, source)
    return _with_unique_names(sources.values())


def printable(path: str | PurePath) -> str:
    """A path as text that any file can hold; control characters are escaped.

    A name is bytes. Those that the locale's encoding does not know are UTF-8 or are replaced.
    """
    text = str(path)
    with suppress(UnicodeEncodeError):
        text = text if text.isprintable() else os.fsencode(text).decode("utf-8", "replace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _with_unique_names(sources: Iterable[Source]) -> list[Source]:
    """Number sources with the same name, such as signed URLs that differ in their query only."""
    named: dict[str, Source] = {}
    for source in sources:
        numbered = (f"{source.name} ({n})" for n in itertools.count(2))
        source.name = source.name if source.name not in named else next(name for name in numbered if name not in named)
        named[source.name] = source
    return list(named.values())


def _objects(url: str) -> list[Source]:
    objects = find_objects(url)
    if not objects:
        raise InputError(
            tr("no such file: {path}", path=printable(shown(url))),
            remedy=tr("check the path; put quotes around a glob pattern"),
        )
    sources = [_source(one) for one in sorted(objects, key=lambda one: natural(one.key))]
    return _texts(sources, shown(url)) if names_folder(url, objects) else sources


def _files(argument: str) -> list[Source]:
    if argument == "-":
        return [Source("-", None)]
    path = Path(argument)
    try:
        if path.is_dir():
            return _texts([_source(p) for p in _files_below(path)], argument)
        if path.exists():
            return [_source(path)]
    except OSError as error:
        problem = tr("cannot read {path}: {reason}", path=printable(argument), reason=reason_of(error))
        raise InputError(problem, remedy=tr("check the path")) from error
    paths = sorted((Path(p) for p in glob.iglob(argument, recursive=True)), key=natural)  # noqa: PTH207
    files = [_source(p) for p in paths if p.is_file()]
    if not files:
        raise InputError(
            tr("no such file: {path}", path=printable(argument)),
            remedy=tr("check the path; put quotes around a glob pattern"),
        )
    return files


def _source(place: Path | StoredObject) -> Source:
    return Source(printable(place.name if isinstance(place, StoredObject) else place), place)


def _files_below(folder: Path) -> list[Path]:
    parts = (
        p for p in folder.rglob("*") if p.is_file() and not any(q.startswith(".") for q in p.relative_to(folder).parts)
    )
    return sorted(parts, key=natural)


def _texts(sources: Sequence[Source], folder: str) -> list[Source]:
    """Those of ``sources``, the files in ``folder``, that are text. Raises InputError where none is."""
    at_once = OBJECTS_AT_ONCE if is_url(folder) else FILES_AT_ONCE
    size = -(-len(sources) // at_once) or 1
    portions = [sources[i : i + size] for i in range(0, len(sources), size)]
    with ThreadPoolExecutor(at_once) as pool:
        texts = [text for portion_texts in pool.map(_those_of_text, portions) for text in portion_texts]
    if not texts:
        raise InputError(
            tr("no log in the folder {path}", path=printable(folder)),
            remedy=tr("pass the log file or the folder that contains it"),
        )
    return texts


def _those_of_text(sources: Sequence[Source]) -> list[Source]:
    return [source for source in sources if not is_binary(source)]


def natural(path: str | PurePath) -> list[tuple[int, int | str]]:
    """Sort key under which worker_2 comes before worker_10."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in regex.split(r"(\d+)", str(path)) if part]


def size_of(files: Sequence[str]) -> int | None:
    """Bytes of the ``files`` of a run; None where something else than files is named."""
    paths = [Path(file) for file in files]
    try:
        return sum(path.stat().st_size for path in paths) if all(path.is_file() for path in paths) else None
    except (OSError, ValueError):
        return None
