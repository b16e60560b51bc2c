"""Named formulas for the floating-point operations of one training step.

Comes in: a model shape. Goes out: operations per trained token. Every module of this folder whose name does not start
with an underscore holds one ``FORMULA``; docs/formulas.md says how to add one.
"""

from __future__ import annotations

import copyreg
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache

from analysis.flops._formula import CORE, Formula, Ignorable
from analysis.flops._recomputation import (
    ELEMENTWISE,
    EVERYTHING,
    NOTHING,
    PRODUCTS,
    WORDS,
    Recomputation,
    Recompute,
    Recomputed,
)
from logparse.errors import unknown_name, use_one_of
from logparse.language import msg

__all__ = [
    "CORE",
    "ELEMENTWISE",
    "EVERYTHING",
    "NOTHING",
    "PRODUCTS",
    "WORDS",
    "Formula",
    "Ignorable",
    "Recomputation",
    "Recompute",
    "Recomputed",
    "all_formulas",
    "default_formula",
    "find_formula",
    "real_model_formula",
]


@cache
def all_formulas() -> Mapping[str, Formula]:
    """Every formula by name: the default, the one that counts the model as built, the others by name."""
    modules = [m.name for m in pkgutil.iter_modules(__path__) if not (m.ispkg or m.name.startswith("_"))]
    formulas: list[Formula] = [importlib.import_module(f"{__name__}.{name}").FORMULA for name in modules]
    return {f.name: f for f in sorted(formulas, key=lambda f: (not f.default, not f.real_model, f.name))}


def default_formula() -> Formula:
    """The formula for what a run achieved, where none is asked for."""
    return next(f for f in all_formulas().values() if f.default)


def real_model_formula() -> Formula:
    """The formula that counts every matrix product the model has, and of the attention the causal half."""
    return next(f for f in all_formulas().values() if f.real_model)


def find_formula(name: str) -> Formula:
    """The formula called ``name``.

    Raises:
        UsageError: there is no formula of that name.
    """
    formulas = all_formulas()
    if name not in formulas:
        raise unknown_name(msg("formula"), name, formulas, use_one_of(formulas, "logparse analyze --help-all"))
    return formulas[name]


def _by_name(formula: Formula) -> tuple[Callable[[str], Formula], tuple[str]]:
    return find_formula, (formula.name,)


# Another process has the same formulas, and their functions cannot be sent.
copyreg.pickle(Formula, _by_name)
