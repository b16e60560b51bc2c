"""Each worker of the suite stays on a core of its own, while there are any; processes that it starts may run on all.

To hand work to a thread of polars on another core takes a virtual machine three times as long as on the same one, and
tests ask polars a million times.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def stay_on_one() -> None:
    """Where this is a worker, keep it to the core of its number; what is more than cores goes anywhere."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", f"gw{len(CORES)}").removeprefix("gw"))
    if number < len(CORES):
        # It counts the cores when it is imported; blocks are read by as many threads as without this.
        import logparse.decode.reader  # noqa: F401

        os.sched_setaffinity(0, {CORES[number]})


@contextmanager
def on_all() -> Iterator[None]:
    """What is started meanwhile may run on every core."""
    if not CORES:
        yield
        return
    kept = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES)
    try:
        yield
    finally:
        os.sched_setaffinity(0, kept)
