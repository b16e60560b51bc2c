"""Read the text log of a large-model training run: ``logparse.analyze("train.log", hw="910b3")``.

``analyze`` reads one run, ``analyze_many`` each log as a run of its own, and ``compare`` compares two runs or releases.
``diagnose`` says why a run stopped, ``estimate`` what a job should need and give.

Also public: ``logparse.schema`` (columns and quantities), ``logparse.errors``, and ``analysis`` (frames to numbers and
charts).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logparse.memory import free_soon

if TYPE_CHECKING:
    from analysis.api import analyze, analyze_many, compare, diagnose, estimate

__all__ = ["__version__", "analyze", "analyze_many", "compare", "diagnose", "estimate"]

__version__ = "0.1.0"

free_soon()


def __getattr__(name: str) -> Any:
    """Import on demand, so that the command line's help need not wait for polars.

    Raises InputError if another package called ``analysis`` is imported in place of ours.
    """
    if name in __all__:
        from logparse.shadowed import check_analysis_package

        check_analysis_package()
        import analysis.api

        return getattr(analysis.api, name)
    raise AttributeError(f"module 'logparse' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is public, though it is not there until it is asked for."""
    return sorted((*__all__, "errors", "schema"))
