"""A generator that runs in a process of its own, for libraries that end the process they are in."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any

from logparse.language import current_language, use_language

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class ProcessLostError(Exception):
    """The process ended before its generator did."""


def iterate_apart(generator: Callable[..., Iterator[Any]], *arguments: Any) -> Iterator[Any]:
    """What ``generator(*arguments)`` yields and raises in a new process, which ends with this iterator.

    All of it must be picklable. What the process prints is dropped. Raises ProcessLostError.
    """
    context = get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(there, current_language(), generator, arguments), daemon=True)
    with _ctrl_c_blocked():
        process.start()
    there.close()
    try:
        while True:
            kind, value = _received(here)
            if kind == "end":
                # It leaves a cluster in order.
                process.join()
                return
            if kind == "raised":
                raise value
            yield value
    finally:
        process.kill()
        process.join()
        here.close()


def _received(connection: Connection) -> tuple[str, Any]:
    try:
        kind, value = connection.recv()
    except (EOFError, OSError) as error:
        raise ProcessLostError from error
    return kind, value


@contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """A process that begins within the block gets no Ctrl-C, as it inherits which signals are blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(
    connection: Connection, language: str, generator: Callable[..., Iterator[Any]], arguments: tuple[Any, ...]
) -> None:
    end_with_parent()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    use_language(language)
    try:
        for value in generator(*arguments):
            connection.send(("value", value))
    except Exception as error:
        connection.send(("raised", _picklable(error)))
    else:
        connection.send(("end", None))


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def end_with_parent() -> None:
    """Let this process end when the one that started it does."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
    os._exit(1)
