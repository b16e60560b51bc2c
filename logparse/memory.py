"""Return free memory to the system at once: otherwise the memory in use for a log of gigabytes is not visible."""

from __future__ import annotations

import os


def free_soon() -> None:
    """Let polars, where it is not imported yet, keep what it frees for a tenth of a second instead of one and a half.

    That is how often its allocator looks at what is older than the time named here. It also need not begin each piece
    at another place of a page, which takes a page of each. What the user says of it in the environment stays.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:10,muzzy_decay_ms:0,cache_oblivious:false")


def give_back() -> None:
    """Give back what Python and numpy have freed, where the C library knows how (glibc)."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
