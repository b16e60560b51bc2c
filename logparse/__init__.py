"""Read the text log of a large-model training run: ``logparse.analyze("train.log", hw="910b3")``.

Public beside it: ``logparse.schema`` (columns and quantities), ``logparse.errors``, and ``analysis`` (frames to numbers
and charts).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logparse.api import analyze

__all__ = ["analyze"]


def __getattr__(name: str) -> Any:
    """Import on demand, so that the command line's help need not wait for polars."""
    if name != "analyze":
        raise AttributeError(f"module 'logparse' has no attribute {name!r}")
    from logparse.api import analyze

    return analyze
