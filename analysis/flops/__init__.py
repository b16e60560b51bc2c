"""Named formulas for the floating-point operations of one training step.

Comes in: a model shape. Goes out: operations per trained token. To add a formula, write one file with a ``FORMULA``
and list it here.
"""

from __future__ import annotations

from analysis.flops import ascendspeed, megatron, palm, six_n
from analysis.flops._base import Formula, Recompute
from logparse.errors import unknown_name
from logparse.language import msg, tr

__all__ = ["Formula", "Recompute", "all_formulas", "find_formula"]

_FORMULAS = {f.name: f for f in (ascendspeed.FORMULA, megatron.FORMULA, six_n.FORMULA, palm.FORMULA)}


def all_formulas() -> dict[str, Formula]:
    """Every formula by name, in the order of the documentation."""
    return dict(_FORMULAS)


def find_formula(name: str) -> Formula:
    """The formula called ``name``.

    Raises:
        UsageError: there is no formula of that name.
    """
    try:
        return _FORMULAS[name]
    except KeyError:
        remedy = tr("use one of {names}", names=", ".join(_FORMULAS))
        raise unknown_name(msg("formula"), name, _FORMULAS, remedy) from None
