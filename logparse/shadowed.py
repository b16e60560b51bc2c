"""The check that the package ``analysis`` is ours, for the command line and for ``logparse.analyze``."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from logparse.errors import InputError
from logparse.language import tr


def check_analysis_package() -> None:
    """Stop where another ``analysis`` folder shadows ours, as happens next to Megatron with PYTHONPATH set.

    Raises InputError with the place of the other one.
    """
    ours = Path(__file__).resolve().parent.parent / "analysis" / "__init__.py"
    theirs = _imported()
    if theirs != ours:
        raise InputError(
            tr("another package called 'analysis' is imported in place of logparse's"),
            where=str(theirs or tr("a folder without __init__.py on the import path")),
            remedy=_remedy(theirs),
        )


def _remedy(theirs: Path | None) -> str:
    """What lets ours be found: the variable is named only where it leads to the other package."""
    entries = [Path(entry or ".").resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if theirs is not None and any(theirs.is_relative_to(entry) for entry in entries):
        return tr("unset PYTHONPATH, or start logparse from another folder")
    return tr("start logparse from another folder")


def _imported() -> Path | None:
    """The file that ``import analysis`` runs, or has run; None for a folder without one."""
    imported = sys.modules.get("analysis")
    if imported is not None:
        origin = getattr(imported, "__file__", None)
    else:
        spec = find_spec("analysis")
        origin = spec.origin if spec else None
    return Path(origin).resolve() if origin else None
