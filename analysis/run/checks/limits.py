"""A number of a run against a limit: ``mfu<0.3``, ``goodput >= 90%``. The grammar, and nothing of what it is asked for.

Comes in: text. Goes out: a Condition. Which names there are is the caller's to say.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection

from logparse.errors import UsageError, unknown_name, use_one_of
from logparse.language import msg, tr
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
# The script of index.html reads the same.
FORM = lazy_regex(r"\s*([\w/.-]+)\s*(>=|<=|>|<)\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*(%?)\s*")


@dataclass(frozen=True)
class Condition:
    """What is called ``name`` must compare so with ``limit``. A limit in percent was divided by 100."""

    name: str
    comparison: str
    limit: float

    def holds(self, value: float | None) -> bool | None:
        """Whether ``value`` does; None where it is unknown. NaN does not."""
        return None if value is None else COMPARISONS[self.comparison](value, self.limit)


def parse_condition(text: str, flag: str, names: Collection[str]) -> Condition:
    """The condition that ``text`` says, given with ``flag``, of one of ``names``, whatever its case.

    Raises UsageError for text that says none, and for another name.
    """
    match = FORM.fullmatch(text)
    if not match:
        problem = tr("{name} is {value!r}", name=flag, value=text)
        remedy = tr("write a name, >=, <=, > or <, and a number, in quotes: {flag} 'mfu<0.3'", flag=flag)
        raise UsageError(problem, remedy=remedy)
    name, comparison, number, percent = match.groups()
    if name.lower() not in names:
        raise unknown_name(msg("column"), name, names, use_one_of(names, "logparse analyze --help-all"))
    return Condition(name.lower(), comparison, float(number) / (100 if percent else 1))
