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
from importlib.util import find_spec
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
    """A chart of Vega-Lite in each of ``formats``: png, svg, html. Raises ValueError for what is no chart."""
    import vl_convert

    how = cast("Any", theme)
    text = json.dumps(spec, ensure_ascii=False)
    # A picture of points is drawn once and serves both forms.
    svg = cache(lambda: str(vl_convert.vegalite_to_svg(json.dumps(_seen(spec)), theme=how)))
    make: dict[str, Callable[[], bytes]] = {
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


def is_installed() -> bool:
    """Whether the library that draws is there: the extra ``pictures`` installs it."""
    return find_spec("vl_convert") is not None


# A process that another one killed is no sign that none can draw.
ATTEMPTS = 2


class NoPictureError(Exception):
    """A chart could not be drawn because the process that draws cannot run here."""


class DrawingProcess:
    """A process that draws one chart after the other, and ends with this one."""

    def __init__(self) -> None:
        # In a session of its own it gets no Ctrl-C. -P: this folder has modules with common names.
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # What the library prints as it dies is of no use to a user.
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        atexit.register(self.end)

    def ask(self, *order: Any) -> Any:
        """The answer to ``order``. Raises OSError or EOFError where the process is gone."""
        sent, received = self._process.stdin, self._process.stdout
        if sent is None or received is None:
            raise EOFError
        try:
            pickle.dump(order, sent)
            sent.flush()
            return pickle.load(received)
        except (ValueError, pickle.UnpicklingError) as error:
            # It was ended meanwhile, or in the middle of an answer.
            raise EOFError from error

    def end(self) -> None:
        """End it, whatever it is doing."""
        atexit.unregister(self.end)
        self._process.kill()
        with contextlib.suppress(OSError, ValueError):
            self._process.communicate()


class DrawingPool:
    """Processes that draw, and the charts that wait for one.

    Nothing is drawn in this process: where memory is limited, the library that draws ends the process it is in.
    ``missing`` counts what could not be drawn.
    """

    def __init__(self) -> None:
        count = min(os.cpu_count() or 1, MOST_PROCESSES)
        self._free: SimpleQueue[DrawingProcess | None] = SimpleQueue()
        self._pool = ThreadPoolExecutor(count)
        # Whether a process ever answered. Where none can, none is started again.
        self._proven, self._hopeless = False, False
        self.missing = 0
        self._running: set[DrawingProcess] = set()
        for _ in range(count):
            self._free.put(self._started())

    def begin(self, spec: dict[str, Any], formats: Sequence[str], theme: str | None) -> Future[Pictures]:
        """Draw when a process is free. The result raises NoPictureError where no process can, ValueError for what is
        no chart.
        """
        return self._submit("draw", spec, formats, theme)

    def call(self, name: str, *arguments: Any) -> Any:
        """What the function ``name`` of this file returns. Raises as the result of ``begin``."""
        return self._submit(name, *arguments).result()

    def _submit(self, *order: Any) -> Future[Any]:
        try:
            return self._pool.submit(self._ask, *order)
        except RuntimeError:
            # No thread can be started, or the pool has stopped.
            self.missing += 1
            failed: Future[Any] = Future()
            failed.set_exception(NoPictureError())
            return failed

    def stop(self) -> None:
        """Begin nothing more, and end the processes."""
        self._hopeless = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in list(self._running):
            process.end()

    def _started(self) -> DrawingProcess | None:
        if not is_installed():
            return None
        try:
            process = DrawingProcess()
        except OSError:
            return None
        self._running.add(process)
        return process

    def _ask(self, *order: Any) -> Any:
        process = self._free.get()
        try:
            for _ in range(ATTEMPTS):
                if process is None and not self._hopeless:
                    process = self._started()
                if process is None:
                    break
                try:
                    made, answer = process.ask(*order)
                except (OSError, EOFError):
                    process.end()
                    self._running.discard(process)
                    process = None
                    continue
                self._proven = True
                if not made:
                    raise ValueError(answer)
                return answer
            self._hopeless = self._hopeless or not self._proven
            self.missing += 1
            raise NoPictureError
        finally:
            self._free.put(process)


@cache
def drawing_pool() -> DrawingPool:
    """The one of this process; its processes start when it is first asked for."""
    return DrawingPool()


def stop() -> None:
    """End the processes of the pool, where there is one."""
    if drawing_pool.cache_info().currsize:
        drawing_pool().stop()
        drawing_pool.cache_clear()


def take_missing() -> int:
    """How many pictures could not be made since this was last asked."""
    if not drawing_pool.cache_info().currsize:
        return 0
    pool = drawing_pool()
    missing, pool.missing = pool.missing, 0
    return missing


def themes() -> list[str]:
    """The names of the themes of charts."""
    import vl_convert

    return sorted(vl_convert.get_themes())


CALLS: dict[str, Callable[..., Any]] = {"draw": draw, "themes": themes}


def _work() -> None:
    """Answer what comes in until nothing does: True and the answer, or False and what was wrong."""
    import vl_convert

    # What a library prints must not get among the pictures.
    with os.fdopen(os.dup(1), "wb") as out, contextlib.suppress(EOFError, BrokenPipeError):
        os.dup2(2, 1)
        vl_convert.vegalite_to_svg({"data": {"values": []}, "mark": "point"})
        while True:
            name, *arguments = pickle.load(sys.stdin.buffer)
            try:
                answer = (True, CALLS[name](*arguments))
            except Exception as error:
                answer = (False, str(error))
            pickle.dump(answer, out)
            out.flush()


if __name__ == "__main__":
    _work()
