"""The console all commands print on: plain words, no markup, so that nothing in a log can change what is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def make_console(stderr: bool = False, no_color: bool = False) -> Console:
    """A Rich console that leaves a closed pipe to the caller; Rich itself would end the process with exit code 1."""
    from rich.console import Console

    class QuietConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return QuietConsole(stderr=stderr, highlight=False, markup=False, emoji=False, no_color=no_color or None)
