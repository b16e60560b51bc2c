"""Read the text log of a large-model training run: ``logparse.analyze("train.log", hw="910b3")``.

Also public: ``logparse.schema`` (columns and quantities), ``logparse.errors``, and ``analysis`` (frames to numbers and
charts).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logparse.memory import free_soon

if TYPE_CHECKING:
    from analysis.api import analyze

__all__ = ["__version__", "analyze"]

__version__ = "0.1.0"

free_soon()


def __getattr__(name: str) -> Any:
    """Import on demand, so that the command line's help need not wait for polars."""
    if name == "analyze":
        from analysis.api import analyze

        return analyze
    raise AttributeError(f"module 'logparse' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names too, which are not there until they are asked for."""
    return sorted({*globals(), *__all__})
