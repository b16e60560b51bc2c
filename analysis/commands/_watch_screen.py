"""The screen of ``logparse watch``: it draws on the terminal of standard output, and reads keys from the terminal."""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from analysis.present.console import make_console
from analysis.present.parts import Part
from analysis.present.terminal import print_parts
from logparse.language import tr

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

QUIT, PAUSE, HELP = "q", "p", "?"
# Seconds after which a screen without a key looks for one again.
KEY_SECONDS = 0.2


class Screen:
    """Parts on the whole terminal, and the keys: ``q`` ends, ``p`` pauses, ``?`` shows the keys."""

    def __init__(self, live: Live, console: Console, keys: int | None) -> None:
        self._live, self._console, self._keys = live, console, keys
        self._parts: Sequence[Part] = ()
        self.paused = self._helping = False

    @property
    def room(self) -> int:
        """Lines of the terminal above its last one, which shows the keys."""
        return max(1, self._console.size.height - 1)

    def announce(self, text: str) -> None:
        """Show ``text`` alone, while no key is obeyed."""
        self._live.update(text, refresh=True)

    def show(self, parts: Sequence[Part]) -> None:
        """Draw ``parts``, unless the screen is paused."""
        if not self.paused:
            self._parts = parts
        self._draw()

    def wait(self, seconds: float) -> bool:
        """Wait, and obey keys meanwhile. False where the user wants to end."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            key = self._key(min(left, KEY_SECONDS))
            if key == QUIT:
                return False
            if key in (PAUSE, HELP):
                self.paused ^= key == PAUSE
                self._helping ^= key == HELP
                self._draw()
        return True

    def _key(self, seconds: float) -> str:
        if self._keys is None:
            time.sleep(seconds)
            return ""
        ready, _, _ = select.select([self._keys], [], [], seconds)
        return os.read(self._keys, 1).decode(errors="replace") if ready else ""

    def _draw(self) -> None:
        from rich.text import Text

        lines = drawn(self._parts, self._console.size.width, self._console.no_color)
        foot, room = self._foot(), self.room
        if len(lines) > room:
            foot = tr("{n} more lines; {keys}", n=len(lines) - room, keys=foot)
        shown = [*lines[:room], *[""] * (room - len(lines)), foot]
        self._live.update(Text.from_ansi("\n".join(shown), no_wrap=True, overflow="crop"), refresh=True)

    def _foot(self) -> str:
        if self._helping:
            return tr("q: end, the result stays; p: hold the screen; ?: hide this")
        keys = tr("q quit, p pause, ? help")
        return tr("PAUSED; {keys}", keys=keys) if self.paused else keys


def drawn(parts: Sequence[Part], width: int, no_color: bool = False) -> list[str]:
    """``parts`` as lines of the terminal, with their colours."""
    console = make_console(no_color=no_color)
    console.file, console.width = io.StringIO(), width
    console._force_terminal = True
    print_parts(console, parts)
    return console.file.getvalue().rstrip("\n").split("\n")


@contextlib.contextmanager
def screen(no_color: bool) -> Iterator[Screen]:
    """A screen of its own, which is given back at the end, and where a signal ends the command."""
    from rich.live import Live

    console = make_console(no_color=no_color)
    live = Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    with _keys() as keys, live, _stopped_by_sigterm(live.stop):
        yield Screen(live, console, keys)


@contextlib.contextmanager
def _keys() -> Iterator[int | None]:
    """The terminal, each key by itself; None where there is none to read from."""
    import termios
    import tty

    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        yield None
        return
    try:
        before = termios.tcgetattr(terminal)
        tty.setcbreak(terminal)
        try:
            yield terminal
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
    finally:
        os.close(terminal)


@contextlib.contextmanager
def _stopped_by_sigterm(stop: Callable[[], Any]) -> Iterator[None]:
    """Give the terminal back before SIGTERM ends the process."""
    before = signal.getsignal(signal.SIGTERM)

    def end(number: int, frame: Any) -> None:
        stop()
        signal.signal(number, before)
        if callable(before):
            before(number, frame)
        else:
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def has_screen() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()
