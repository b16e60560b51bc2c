"""Runs that are analysed once, and charts that are drawn once, for tests of what is done with them."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from analysis.files.pictures import DrawingPool, Pictures
from analysis.run import build, load
from analysis.run.load import Loaded
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.decode.read_run import ParsedLog
from logparse.formats._base import LogFormat
from logparse.language import current_language

_read: dict[tuple[object, ...], ParsedLog] = {}
_loaded: dict[tuple[object, ...], Loaded] = {}
_analysed: dict[tuple[object, ...], Run] = {}
_drawn: dict[tuple[object, ...], Future[Pictures]] = {}
_rows: dict[int, tuple[object, str]] = {}


@contextmanager
def analysed_once() -> Iterator[None]:
    """While this lasts, logs of the same names and bytes are read once, and analysed once with the same options.

    The same chart is drawn once.
    """
    again = patch.multiple(build, load=_once_loaded(build.load), analyze_run=_once_analysed(build.analyze_run))
    again_read = patch.object(load, "read_run", _once_read(load.read_run))
    with again_read, again, patch.object(DrawingPool, "begin", _once_drawn(DrawingPool.begin)):
        yield


def _once_read(read_run: Callable[..., ParsedLog]) -> Callable[..., ParsedLog]:
    def once(
        logs: Sequence[str], log_format: str | LogFormat | None, strict: bool, name: str | None, *how: Any
    ) -> ParsedLog:
        watch, jobs, all_files = how
        drafted = log_format is not None and not isinstance(log_format, str)
        if watch is not None or drafted or (content := _content(logs)) is None:
            return read_run(logs, log_format, strict, name, *how)
        key = (*content, log_format, strict, name, jobs, all_files, current_language())
        if key not in _read:
            _read[key] = read_run(logs, log_format, strict, name, *how)
        return _read[key]

    return once


def _content(logs: Sequence[str]) -> tuple[object, ...] | None:
    """The names of the logs and their bytes; None for what stands nowhere as bytes."""
    return (*logs, *(Path(log).read_bytes() for log in logs)) if all(Path(log).is_file() for log in logs) else None


def _once_loaded(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
    def once(logs: Sequence[str], how: RunOptions, name: str | None = None, watch: Any = None) -> Loaded:
        # What tells how far it is, is read each time.
        if watch is not None or (content := _content(logs)) is None:
            return load(logs, how, name, watch)
        key = (*content, name, _said(how), current_language())
        if key not in _loaded:
            _loaded[key] = load(logs, how, name)
        return _loaded[key]

    return once


def _once_analysed(analyze_run: Callable[..., Run]) -> Callable[..., Run]:
    def once(run: Loaded, how: RunOptions) -> Run:
        if not any(run is known for known in _loaded.values()):
            return analyze_run(run, how)
        # A run that is kept here shares its number with no other.
        key = (id(run), _said(how), current_language())
        if key not in _analysed:
            _analysed[key] = analyze_run(run, how)
        return _analysed[key]

    return once


def _once_drawn(begin: Callable[..., Future[Pictures]]) -> Callable[..., Future[Pictures]]:
    def once(pool: DrawingPool, spec: dict[str, Any], formats: Sequence[str], theme: str | None) -> Future[Pictures]:
        key = (json.dumps(spec), *formats, theme)
        if key not in _drawn:
            _drawn[key] = begin(pool, spec, formats, theme)
        return _drawn[key]

    return once


def _said(how: RunOptions) -> tuple[str, str]:
    """All of the options; one that does not say what it is could be taken for another.

    To say hundreds of published rows, nearly always the same, takes as long as to read a log.
    """
    text, rows = repr(replace(how, published=())), how.published
    assert " object at 0x" not in text
    if id(rows) not in _rows:
        # Rows that are kept here share their number with no others.
        _rows[id(rows)] = (rows, repr(rows))
    return text, _rows[id(rows)][1]


def forget() -> None:
    """Let go of all that is kept here."""
    for kept in (_read, _loaded, _analysed, _drawn, _rows):
        kept.clear()
