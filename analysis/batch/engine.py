"""Where runs are read: in this process, by other processes of this machine, or by the workers of a Ray cluster.

Reading a run depends on its logs alone, so it may be done anywhere, and again where a worker died. Only this module
knows Ray.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

import logparse
from analysis.batch.local_workers import OF_ONE_LOG, map_by_workers
from analysis.batch.own_process import ProcessLostError, iterate_apart
from logparse.decode.read_run import Watch
from logparse.errors import InputError, LogparseError, UsageError, unknown_name
from logparse.extras import missing_extra
from logparse.language import current_language, msg, tr
from logparse.light_dataclass import dataclass

ENGINES = ("local", "ray")
# How often a run is retried after its worker or node died. The limit ends a run that kills every worker.
RETRIES = 10

T = TypeVar("T")


def no_progress(number: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class Readers:
    """Who reads runs: an engine, how many ``workers`` where it is local, and how many ``cores`` each of them uses.

    One worker is this process. It calls the ``watches`` of the runs. Workers call ``done`` with the number of each run
    that was read.
    """

    engine: str = "local"
    workers: int = 1
    cores: int = 1
    watches: Sequence[Watch | None] = ()
    done: Callable[[int], object] = no_progress


HERE = Readers()


def check_engine(engine: str) -> None:
    """Refuse an engine that does not exist. Raises UsageError."""
    if engine not in ENGINES:
        raise unknown_name(msg("engine"), engine, ENGINES, tr("use one of {names}", names=", ".join(ENGINES)))


def map_runs(
    read: Callable[..., T], runs: Sequence[tuple[str, Sequence[str]]], readers: Readers = HERE
) -> Iterator[T | LogparseError]:
    """What ``read(logs, name=name)`` returns for each of ``runs``, in their order.

    If the logs of a run cannot be read, the error takes the place of its result. In this process ``read`` also gets the
    watch of the run; for workers it must be picklable. Raises UsageError if Ray or its workers cannot be used.
    """
    if readers.engine == "ray" and runs:
        yield from _by_ray(read, runs, readers)
    elif readers.workers > 1:
        yield from map_by_workers(read, runs, readers.workers, readers.cores, readers.done)
    else:
        for number, ((name, logs), watch) in enumerate(zip_longest(runs, readers.watches)):
            try:
                yield read(logs, name=name, watch=watch)
            except OF_ONE_LOG as error:
                yield error
            readers.done(number)


def _by_ray(
    read: Callable[..., T], runs: Sequence[tuple[str, Sequence[str]]], readers: Readers
) -> Iterator[T | LogparseError]:
    if any("-" in logs for _, logs in runs):
        problem = tr("the workers of Ray cannot read the standard input of this process")
        raise UsageError(problem, remedy=tr("write it to a file that every node can read, or omit --engine"))
    sent = _imported().cloudpickle.dumps(read)
    try:
        # Where its cluster ends, Ray ends the process that asks it.
        for number, result in enumerate(iterate_apart(on_cluster, sent, runs, readers.cores)):
            readers.done(number)
            yield result
    except ProcessLostError as error:
        raise _lost() from error


def _lost() -> UsageError:
    remedy = tr("check the cluster with `ray status`, and run the command again")
    problem = tr("lost the connection to the Ray cluster")
    return UsageError(problem, where=os.environ.get("RAY_ADDRESS"), remedy=remedy)


def on_cluster(read: bytes, runs: Sequence[tuple[str, Sequence[str]]], cores: int) -> Iterator[Any]:
    """What the pickled ``read`` returns for each of ``runs`` on the workers of a Ray cluster, each with ``cores``."""
    with _cluster() as ray:
        task = ray.remote(num_cpus=cores, max_retries=RETRIES)(_task())
        sent = ray.put(read)
        where = {"folder": str(Path.cwd()), "language": current_language(), "version": logparse.__version__}
        # Enough that no worker is idle, and few enough that few results wait to be fetched.
        ahead = 2 * int(ray.cluster_resources().get("CPU", 1)) + 2
        waiting: deque[tuple[Sequence[str], Any]] = deque()
        for name, logs in runs:
            waiting.append((logs, task.remote(sent, list(logs), name, cores, **where)))
            if len(waiting) >= ahead:
                yield _fetched(ray, *waiting.popleft())
        while waiting:
            yield _fetched(ray, *waiting.popleft())


@contextmanager
def _cluster() -> Iterator[Any]:
    """Ray, connected within the block."""
    ray = _connected()
    try:
        yield ray
    finally:
        ray.shutdown()


def _connected() -> Any:
    """Ray, connected to the running cluster. Raises UsageError if Ray or a cluster is missing."""
    # Ray warns of a change that does not matter here: no task asks for an accelerator. And it would try an address
    # without a server for a quarter of an hour.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "1")
    if os.environ.get("RAY_ADDRESS", "").startswith(("127.", "localhost")):
        # Otherwise Ray takes another address of this machine, where a cluster of the loopback does not listen.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray = _imported()
    try:
        # RAY_ADDRESS beats "auto", which is the cluster that this machine is a node of.
        ray.init(address="auto", log_to_driver=False, logging_level=logging.CRITICAL)
    except (OSError, RuntimeError, ValueError) as error:
        problem = tr("cannot connect to a Ray cluster: {reason}", reason=str(error).partition("\n")[0])
        remedy = tr("run logparse on a node of the cluster, or set RAY_ADDRESS; `ray start --head` starts a cluster")
        raise UsageError(problem, where=os.environ.get("RAY_ADDRESS"), remedy=remedy) from error
    return ray


def _imported() -> Any:
    """The module of Ray. Raises UsageError if it is missing."""
    try:
        import ray
    except ImportError as error:
        raise missing_extra("--engine ray", "Ray", "ray") from error
    return ray


def _task() -> Callable[..., tuple[str, Any]]:
    """The function that a worker runs.

    Ray sends a nested function whole, so a worker without logparse can report that. A worker starts in a folder of its
    own, but logs are named relative to the folder of the command.
    """

    def task(
        read: bytes, logs: list[str], name: str, cores: int, folder: str, language: str, version: str
    ) -> tuple[str, Any]:
        import os
        import pickle
        import platform

        # There is a worker for each core; polars in each of them would start a thread for every core.
        os.environ.setdefault("POLARS_MAX_THREADS", str(cores))
        try:
            import logparse

            if logparse.__version__ != version:
                return "other", (platform.node(), logparse.__version__)
            from analysis.batch.local_workers import OF_ONE_LOG
            from logparse.errors import LogparseError
            from logparse.language import speaking
        except ImportError:
            return "missing", platform.node()
        try:
            os.chdir(folder)
        except OSError:
            return "elsewhere", platform.node()
        with speaking(language):
            try:
                return "read", pickle.loads(read)(logs, name=name)
            except LogparseError as error:
                return "read" if isinstance(error, OF_ONE_LOG) else "refused", error

    return task


def _fetched(ray: Any, logs: Sequence[str], reference: Any) -> Any:
    """The result of a worker for ``logs``. Raises UsageError if a worker cannot be used, or refuses every run."""
    try:
        state, answer = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        # Its class exists in this process alone.
        raise getattr(error, "cause", None) or error from None
    except ray.exceptions.LocalRayletDiedError:
        raise _lost() from None
    except ray.exceptions.RayError as error:
        problem = tr("all workers that read this log died: {reason}", reason=str(error).partition("\n")[0])
        return InputError(problem, where=logs[0], remedy=tr("read this log alone, without --engine; see the Ray logs"))
    if state == "read":
        return answer
    raise answer if state == "refused" else _unfit(state, answer)


def _unfit(state: str, answer: Any) -> UsageError:
    """The error for a worker that cannot be used, with its host and what is missing there."""
    if state == "elsewhere":
        problem = tr("a worker cannot access the folder {path}", path=Path.cwd())
        remedy = tr("start logparse in a folder that has the same path on every node")
        return UsageError(problem, where=answer, remedy=remedy)
    remedy = tr("install logparse {version} on every node of the cluster", version=logparse.__version__)
    if state == "missing":
        return UsageError(tr("a worker has no logparse"), where=answer, remedy=remedy)
    host, version = answer
    return UsageError(tr("a worker has logparse {version}", version=version), where=host, remedy=remedy)
