"""Charts to pictures and pages of their own, side by side in processes that do nothing else.

The library that draws keeps Python's lock while it works, and takes half a second to start. This file is also what
such a process runs, so that it imports nothing of ours.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from queue import SimpleQueue
from typing import Any, cast

# Each holds some 100 MB; a run has about ten charts.
MOST_PROCESSES = 4
# A character of Unicode's private area, which no log holds on purpose.
PLACEHOLDER = "\ue000"
# A mark of less opacity cannot be seen.
LEAST_SEEN = 0.002
Pictures = dict[str, bytes]


def draw(spec: dict[str, Any], formats: Sequence[str], theme: str | None) -> Pictures:
    """A chart of Vega-Lite in each of ``formats``: json, png, svg, html. Raises ValueError for what is no chart."""
    import vl_convert

    how = cast("Any", theme)
    text = json.dumps(spec, ensure_ascii=False)
    # A picture of points is drawn once and serves both forms.
    svg = cache(lambda: str(vl_convert.vegalite_to_svg(json.dumps(_seen(spec)), theme=how)))
    make: dict[str, Callable[[], bytes]] = {
        "json": text.encode,
        "png": lambda: bytes(vl_convert.svg_to_png(svg(), scale=2)),
        "svg": lambda: svg().encode(),
        "html": lambda: _page(text, how).encode(),
    }
    return {name: make[name]() for name in formats}


def _seen(spec: dict[str, Any]) -> dict[str, Any]:
    """``spec`` without the layers that are there for a pointer only."""
    if "layer" not in spec:
        return spec
    return spec | {"layer": [layer for layer in spec["layer"] if not _for_pointer(layer.get("mark"))]}


def _for_pointer(mark: Any) -> bool:
    return isinstance(mark, dict) and mark.get("opacity", 1) < LEAST_SEEN


def _page(spec: str, theme: Any) -> str:
    """A chart's page; every ``<`` of the spec is escaped, so that no text of a log can end the script around it."""
    import vl_convert

    page = vl_convert.vegalite_to_html(spec.replace("<", PLACEHOLDER), bundle=True, theme=theme)
    return page.replace(PLACEHOLDER, "\\u003c")


class DrawingProcess:
    """A process that draws one chart after the other, and ends with this one."""

    def __init__(self) -> None:
        # In a session of its own it gets no Ctrl-C. -P: this folder has modules with common names.
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        atexit.register(self._end)

    def draw(self, *order: Any) -> Pictures | None:
        """As ``draw``; None where it could not. Raises OSError or EOFError where the process is gone."""
        sent, received = self._process.stdin, self._process.stdout
        assert sent is not None
        assert received is not None
        pickle.dump(order, sent)
        sent.flush()
        return cast("Pictures | None", pickle.load(received))

    def _end(self) -> None:
        self._process.kill()
        with contextlib.suppress(OSError):
            self._process.communicate()


class DrawingPool:
    """Processes that draw, and the charts that wait for one."""

    def __init__(self) -> None:
        count = min(os.cpu_count() or 1, MOST_PROCESSES)
        self._free: SimpleQueue[DrawingProcess | None] = SimpleQueue()
        self._pool = ThreadPoolExecutor(count)
        for _ in range(count):
            with contextlib.suppress(OSError):
                self._free.put(DrawingProcess())
        if self._free.empty():
            self._free.put(None)

    def begin(self, spec: dict[str, Any], formats: Sequence[str], theme: str | None) -> Future[Pictures]:
        """Draw when a process is free."""
        return self._pool.submit(self._draw, spec, formats, theme)

    def _draw(self, *order: Any) -> Pictures:
        process = self._free.get()
        try:
            return (process and process.draw(*order)) or draw(*order)
        except (OSError, EOFError):
            process = None
            return draw(*order)
        finally:
            self._free.put(process)


@cache
def drawing_pool() -> DrawingPool:
    """The one of this process; its processes start when it is first asked for."""
    return DrawingPool()


def _work() -> None:
    """Draw what comes in until nothing does."""
    import vl_convert

    # What a library prints must not get among the pictures.
    with os.fdopen(os.dup(1), "wb") as out, contextlib.suppress(EOFError):
        os.dup2(2, 1)
        vl_convert.vegalite_to_svg({"data": {"values": []}, "mark": "point"})
        while True:
            order = pickle.load(sys.stdin.buffer)
            try:
                made: Pictures | None = draw(*order)
            except Exception:
                # Whoever asked draws it again, and meets the error.
                made = None
            pickle.dump(made, out)
            out.flush()


if __name__ == "__main__":
    _work()
