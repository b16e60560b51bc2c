"""What is free goes back to the system at once: of a log of gigabytes nothing else tells how much memory is needed."""

from __future__ import annotations

import os


def free_soon() -> None:
    """Let polars, where it is not imported yet, keep what it frees for a tenth of a second instead of one and a half.

    What the user says of it in the environment stays.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:100,muzzy_decay_ms:0")


def give_back() -> None:
    """Give back what Python and numpy have freed, where the C library knows how (glibc)."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
