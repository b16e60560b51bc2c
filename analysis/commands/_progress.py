"""Bars on standard error while large logs are read and many charts drawn, for people only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.present.console import make_console
from logparse.decode.read_run import Amount, Watch
from logparse.language import tr

if TYPE_CHECKING:
    from rich.progress import Progress

# Work that is done sooner needs no bar.
PATIENCE_SECONDS = 1.0


@contextmanager
def reading_bar(quiet: bool, runs: Sequence[Sequence[str]]) -> Iterator[list[Watch | None]]:
    """The watch of each of ``runs``, which are read one after the other; None where no bar is shown."""
    with _bar(quiet, tr("reading"), "DownloadColumn", "TransferSpeedColumn") as show:
        yield [None] * len(runs) if show is None else _watches(show, runs)


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


def _watches(show: Show, runs: Sequence[Sequence[str]]) -> list[Watch | None]:
    """A watch for each run. Its amounts include what earlier runs have read and what later runs hold."""
    read = [Amount(0, _size(files), 0, len(files)) for files in runs]

    def watch_of(number: int) -> Watch:
        def watch(amount: Amount) -> None:
            read[number] = amount
            # A run that is done, or could not be read, will give no more than it gave.
            amounts = [Amount(a.read, a.read, a.files, a.files) for a in read[:number]] + read[number:]
            total = None if any(a.total is None for a in amounts) else sum(a.total or 0 for a in amounts)
            files, of = sum(a.files for a in amounts), sum(a.of for a in amounts)
            text = tr("reading") if of == 1 else tr("reading, {files} of {of} files", files=files, of=of)
            show(completed=sum(a.read for a in amounts), total=total, description=text)

        return watch

    return [watch_of(number) for number in range(len(runs))]


def _size(files: Sequence[str]) -> int | None:
    """Bytes of a run that is not yet read; None where something else than files is named."""
    paths = [Path(file) for file in files]
    try:
        return sum(path.stat().st_size for path in paths) if all(path.is_file() for path in paths) else None
    except (OSError, ValueError):
        return None
