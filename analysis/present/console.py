"""The console all commands print on: plain words, no markup, so that nothing in a log can change what is shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from logparse.language import current_language, tr, visible

if TYPE_CHECKING:
    from rich.console import Console


# A narrower column is as good as none.
LEAST_WIDTH = 20
_HAN = r"\u3400-\u9fff"
_OPENS, _CLOSES = "（“", "，。：；、）”"
# The units of which lines are made: words, and Han characters with the signs that belong to them.
_TOKEN = re.compile(rf"\s+|[{_OPENS}]*(?:[{_HAN}]|[^\s{_HAN}{_OPENS}{_CLOSES}]+)?[{_CLOSES}]*")


def wrap(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` columns; a Han character takes two, and a line may end after it."""
    from rich.cells import cell_len

    lines = [""]
    for token in filter(None, _TOKEN.findall(text)):
        if lines[-1] and cell_len(lines[-1] + token.rstrip()) > width:
            lines.append("")
        lines[-1] += token if lines[-1] else token.lstrip()
    return [line.rstrip() for line in lines]


def folded_to(text: str, width: int) -> str:
    """``text`` in lines of at most ``width`` columns; words that are longer than a line are parted."""
    from rich.cells import chop_cells

    return "\n".join(piece for line in wrap(text or "-", width) for piece in chop_cells(line, width))


def fold(text: str, width: int) -> str:
    """``text`` in lines of at most ``width`` columns. Rich breaks lines only at spaces, and Chinese text has few."""
    return text if current_language() == "en" else "\n".join(wrap(text, width))


def cut(text: str, width: int, most: int) -> str:
    """At most so many lines of ``text``, with a sign where there is more."""
    lines = wrap(text, width)
    if len(lines) <= most:
        return "\n".join(lines)
    *whole, last = wrap(text, width)[:most]
    return "\n".join([*whole, wrap(last, width - 2)[0] + " …"])


def fill(clauses: Sequence[str], separator: str, width: int) -> list[str]:
    """``clauses`` in lines of at most ``width`` columns, each on one line unless it is longer than that."""
    from rich.cells import cell_len

    separator = tr(separator)
    lines: list[str] = []
    for at, clause in enumerate(clauses):
        joined = f"{lines[-1]}{separator}{clause}" if lines else clause
        if lines and cell_len(joined + separator.rstrip()) <= width:
            lines[-1] = joined
            continue
        if lines:
            lines[-1] += separator.rstrip()
        ends = 0 if at == len(clauses) - 1 else cell_len(separator.rstrip())
        lines += wrap(clause, max(width - ends, LEAST_WIDTH))
    return lines


def make_console(stderr: bool = False, no_color: bool = False) -> Console:
    """A Rich console that leaves a closed pipe to the caller; Rich itself would end the process with exit code 1."""
    from rich.console import Console
    from rich.text import Text

    class QuietConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def render_str(self, text: str, **how: Any) -> Text:
            # No text of ours commands the terminal; styles are added later.
            return super().render_str(visible(text), **how)

    return QuietConsole(stderr=stderr, highlight=False, markup=False, emoji=False, no_color=no_color or None)
