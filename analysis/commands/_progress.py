"""A bar on standard error while a large log is read, for people only."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from analysis.screens.console import make_console
from logparse.language import tr
from logparse.read.parse import Watch

if TYPE_CHECKING:
    from rich.progress import Progress

# Work that is done sooner needs no bar.
PATIENCE_SECONDS = 1.0


@contextmanager
def reading_bar(quiet: bool = False) -> Iterator[Watch | None]:
    """What to call with the bytes read and their total (None: unknown); None where nobody would see a bar."""
    console = make_console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with_bar = Progress(*columns, console=console, transient=True)
    try:
        yield _watch(with_bar)
    finally:
        with_bar.stop()


def _watch(bar: Progress) -> Watch:
    begin = time.monotonic()
    task = bar.add_task(tr("reading"), total=None)

    def watch(done: int, total: int | None) -> None:
        if time.monotonic() - begin > PATIENCE_SECONDS:
            bar.start()
        bar.update(task, completed=done, total=total)

    return watch
