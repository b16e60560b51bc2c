"""Bars on standard error while large logs are read and many charts drawn, for people only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.present.console import make_console
from logparse.decode.read_run import Amount, Watch
from logparse.inputs.discovery import size_of
from logparse.language import tr

if TYPE_CHECKING:
    from rich.progress import Progress

# Work that is done sooner needs no bar.
PATIENCE_SECONDS = 1.0


@contextmanager
def reading_bar(quiet: bool, runs: Sequence[Sequence[str]]) -> Iterator[ReadingProgress]:
    """Shows how much of ``runs`` has been read, and how long the rest will take."""
    sizes = [size_of(files) for files in runs]
    by_bytes = None not in sizes
    columns = ("DownloadColumn", "TransferSpeedColumn") if by_bytes else ("TaskProgressColumn",)
    with _bar(quiet, tr("reading"), *columns, "TimeRemainingColumn") as show:
        # Where the sizes are not known before, every run counts the same.
        yield ReadingProgress(show, [size or 0 for size in sizes] if by_bytes or len(runs) == 1 else [1] * len(runs))


@contextmanager
def drawing_bar(quiet: bool, total: int) -> Iterator[Callable[[], object]]:
    """What to call after each of ``total`` charts and pages."""
    with _bar(quiet, tr("drawing"), "MofNCompleteColumn") as show:
        yield (lambda: None) if show is None else (lambda: show(total=total, advance=1))


Show = Callable[..., None]


@contextmanager
def _bar(quiet: bool, text: str, *columns: str) -> Iterator[Show | None]:
    """A function that updates the fields of a bar, which appears when the work takes long; None without a terminal.

    ``columns`` are the names of Rich's columns after the text and the bar.
    """
    if quiet or not (console := make_console(stderr=True)).is_terminal:
        yield None
        return
    from rich import progress

    rest = (getattr(progress, name)() for name in ("BarColumn", *columns))
    bar = progress.Progress(progress.TextColumn("{task.description}"), *rest, console=console, transient=True)
    try:
        yield _patient(bar, text)
    finally:
        bar.stop()


def _patient(bar: Progress, text: str) -> Show:
    begin, task = time.monotonic(), bar.add_task(text, total=None)

    def show(**fields: Any) -> None:
        if time.monotonic() - begin > PATIENCE_SECONDS:
            bar.start()
        bar.update(task, **fields)

    return show


class ReadingProgress:
    """How much of many runs has been read: a ``watch`` for each that is read here, and ``done`` for each that is read.

    ``weights`` are the bytes of the runs, or shares of the work. A run alone may learn its bytes while it is read.
    """

    def __init__(self, show: Show | None, weights: Sequence[int]) -> None:
        self._show, self._weights = show, weights
        self._total, self._read, self._runs = sum(weights), 0, 0

    @property
    def watches(self) -> list[Watch | None]:
        """The watch of each run; None where no bar is shown."""
        return [None if self._show is None else partial(self._watch, number) for number in range(len(self._weights))]

    def done(self, number: int) -> None:
        """Count the run ``number``, whatever was read of it."""
        self._read += self._weights[number]
        self._runs += 1
        if self._show is not None and len(self._weights) > 1:
            self._show(completed=self._read, total=self._total, description=self._text())

    def _watch(self, number: int, amount: Amount) -> None:
        if self._show is None:
            return
        if len(self._weights) == 1:
            text = tr("reading") if amount.of == 1 else _of_files(amount.files, amount.of)
            self._show(completed=amount.read, total=amount.total, description=text)
            return
        share = min(amount.read / amount.total, 1.0) if amount.total else 0.0
        completed = self._read + share * self._weights[number]
        self._show(completed=completed, total=self._total, description=self._text())

    def _text(self) -> str:
        return tr("reading, {n} of {of} runs", n=self._runs, of=len(self._weights))


def _of_files(files: int, of: int) -> str:
    return tr("reading, {files} of {of} files", files=files, of=of)
