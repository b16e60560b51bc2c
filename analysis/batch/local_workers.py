"""Runs read by processes of this machine, each of which reads one run at a time.

Each process is a pool of its own: where one dies, it is known which run it read, and that run is read again.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from multiprocessing import active_children, get_context
from queue import SimpleQueue
from typing import Any, TypeVar

from analysis.batch.own_process import end_with_parent
from logparse.errors import InputError, LogparseError, NoStepLineError
from logparse.language import current_language, tr, use_language

# Errors of one log; the other runs are still read. Any other error would affect them too.
OF_ONE_LOG = (InputError, NoStepLineError)
# How many processes may die of one run. One that dies is often ended by a user or for want of memory.
ATTEMPTS = 3
# The variables that set how many threads polars starts, and which warnings Python prints.
THREADS, WARNINGS = "POLARS_MAX_THREADS", "PYTHONWARNINGS"

T = TypeVar("T")


def map_by_workers(
    read: Callable[..., T],
    runs: Sequence[tuple[str, Sequence[str]]],
    workers: int,
    cores: int,
    done: Callable[[int], object],
) -> Iterator[T | LogparseError]:
    """What ``read(logs, name=name)`` returns for each of ``runs``, in their order, read by so many ``workers``.

    ``read`` must be picklable. Each worker computes on ``cores``. ``done`` is called with the number of each run that
    is read, in any order. If all workers that read a run die, an InputError takes the place of its result.
    """
    waiting: deque[Future[Any]] = deque()
    with _environment(cores), _Workers(read, workers) as pool:
        for number, (name, logs) in enumerate(runs):
            waiting.append(pool.begin(name, logs, partial(done, number)))
            # Enough that no worker is idle, and few enough that few results wait.
            if len(waiting) > 2 * workers + 2:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class _Workers:
    """So many processes, and a thread for each that waits for its answers. They end with the block."""

    def __init__(self, read: Callable[..., Any], workers: int) -> None:
        self._start = (pickle.dumps(read), current_language())
        self._free: SimpleQueue[ProcessPoolExecutor | None] = SimpleQueue()
        for _ in range(workers):
            self._free.put(None)
        # A process inherits the signals that are blocked where it is started: Ctrl-C ends this process alone.
        blocked = (signal.SIG_BLOCK, {signal.SIGINT})
        self._threads = ThreadPoolExecutor(workers, initializer=signal.pthread_sigmask, initargs=blocked)
        self._others, self._stopped = set(active_children()), False

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        for process in set(active_children()) - self._others:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        while not self._free.empty():
            if (worker := self._free.get()) is not None:
                worker.shutdown()

    def begin(self, name: str, logs: Sequence[str], then: Callable[[], object]) -> Future[Any]:
        """Read a run when a process is free, and call ``then``. Both happen in the language of this thread."""
        return self._threads.submit(copy_context().run, self._read, name, list(logs), then)

    def _read(self, name: str, logs: list[str], then: Callable[[], object]) -> Any:
        worker = self._free.get()
        try:
            for _ in range(ATTEMPTS):
                worker = worker or self._started()
                try:
                    return worker.submit(_read_here, name, logs).result()
                except BrokenProcessPool:
                    worker.shutdown()
                    worker = None
                    if self._stopped:
                        raise
        finally:
            self._free.put(worker)
            then()
        problem = tr("all processes that read this log died, {n} of them", n=ATTEMPTS)
        return InputError(problem, where=logs[0], remedy=tr("check free memory; read this log alone, with --jobs 1"))

    def _started(self) -> ProcessPoolExecutor:
        # A process that is forked from one with threads may hang.
        return ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin, initargs=self._start)


@contextmanager
def _environment(cores: int) -> Iterator[None]:
    """What processes that begin within the block find: how many threads polars starts, unless the user says otherwise.

    Where a signal ends this process, the one that cleans up after it would print a warning.
    """
    before = {name: os.environ.get(name) for name in (THREADS, WARNINGS)}
    os.environ.setdefault(THREADS, str(cores))
    os.environ[WARNINGS] = ",".join(filter(None, (before[WARNINGS], "ignore:resource_tracker")))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


# In a worker.


def _begin(read: bytes, language: str) -> None:
    """Prepare a worker, which ends when the process that started it does."""
    end_with_parent()
    gc.set_threshold(200_000, 20, 50)
    use_language(language)
    global _read
    _read = pickle.loads(read)


_read: Callable[..., Any] | None = None


def _read_here(name: str, logs: list[str]) -> Any:
    if _read is None:
        raise RuntimeError("the worker has not begun")
    try:
        return _read(logs, name=name)
    except OF_ONE_LOG as error:
        return error
