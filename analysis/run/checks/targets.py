"""What a run must reach: ``mfu>=0.45``, as a flag or a config file says it.

Comes in: text. Goes out: a Requirement. Whether a run meets it is decided in ``target_verdicts``.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from analysis.metrics import BY_COLUMN, HEALTH, METRICS, RATED, RATES, Metric
from analysis.run.checks.limits import COMPARISONS, FORM
from logparse.errors import UsageError, unknown_name, use_one_of
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass

# Shares of the published rate that the run is compared with, and of the planned share of the peak.
SHARES = ("baseline", "planned")
# Whether the run did all planned steps, how many it did, and high quantiles of the step time by their names.
COMPLETED, STEPS = "completed", "steps"
TAILS = {"step_time_p95_ms": 0.95, "step_time_p99_ms": 0.99}


@dataclass(frozen=True)
class RequiredFigure:
    """What can be required: a number of a run. ``column`` is that of the frame of rates where ``rate`` names one.

    ``metric`` is None of a share of a published rate or of a plan.
    """

    name: str
    column: str
    metric: Metric | None = None
    rate: str | None = None


@dataclass(frozen=True)
class Requirement:
    """``figure`` must compare so with ``limit``, in the unit of its metric's column. As text it is what was given."""

    text: str
    figure: RequiredFigure
    comparison: str
    limit: float

    def __str__(self) -> str:
        return self.text

    def met_by(self, value: float) -> bool:
        """Whether ``value`` is what is required."""
        return COMPARISONS[self.comparison](value, self.limit)

    def shown(self, value: float) -> str:
        """``value`` in six digits, or in as many as it takes to see on which side of the limit it is."""
        short = f"{value:.6g}"
        return short if self.met_by(float(short)) == self.met_by(value) else repr(value)


@cache
def figures() -> dict[str, RequiredFigure]:
    """Every figure by its name: metrics, steady where they are rates, and of other rates with their names before."""
    of_runs = (*METRICS, *HEALTH)
    plain = {m.column: RequiredFigure(m.column, m.column, m, "steady" if m in RATED else None) for m in of_runs}
    for rate in RATES:
        time = f"{rate}_step_time_ms"
        plain[time] = RequiredFigure(time, "step_time_ms", BY_COLUMN[time], rate)
        plain |= {name: RequiredFigure(name, m.column, m, rate) for m in RATED for name in (f"{rate}_{m.column}",)}
    return plain | {name: RequiredFigure(name, name) for name in (*SHARES, COMPLETED, STEPS, *TAILS)}


def _figure_named(name: str) -> RequiredFigure:
    return figures()[name]


def _by_name(figure: RequiredFigure) -> tuple[Callable[[str], RequiredFigure], tuple[str]]:
    return _figure_named, (figure.name,)


# Another process has the same figures, and the functions of their metrics cannot be sent.
copyreg.pickle(RequiredFigure, _by_name)


def parse_requirement(
    text: str, where: str | None = None, known: Mapping[str, RequiredFigure] | None = None
) -> Requirement:
    """The requirement that ``text`` says, of a figure of a run or of those ``known``; ``where`` is its file.

    Raises UsageError for what is none, for a figure that does not exist and for a limit that it cannot reach.
    """
    match = FORM.fullmatch(f"{COMPLETED}>=1" if text.strip().lower() == COMPLETED else text)
    if not match:
        problem = tr("{name} is {value!r}", name="--require", value=text)
        remedy = tr("write a figure, >=, <=, > or <, and a number, in quotes: --require 'mfu>=0.45'")
        raise UsageError(problem, where=where, remedy=remedy)
    name, comparison, number, percent = match.groups()
    help_all = f"logparse {'analyze' if known is None else 'compare'} --help-all"
    known = figures() if known is None else known
    if name.lower() not in known:
        raise unknown_name(msg("figure"), name, known, use_one_of(known, help_all))
    figure = known[name.lower()]
    requirement = Requirement(text.strip(), figure, comparison, float(number) / (100 if percent else 1))
    _check_limit(requirement, percent, where)
    return requirement


def _check_limit(requirement: Requirement, percent: str, where: str | None) -> None:
    """A share is from 0 to 1, and only of a share there are percent: who writes otherwise means another number."""
    metric, name = requirement.figure.metric, requirement.figure.name
    problem = tr("{name} is {value!r}", name="--require", value=requirement.text)
    if percent and metric is not None and metric.unit != "ratio":
        raise UsageError(problem, where=where, remedy=tr("give {name} in {unit}", name=name, unit=metric.unit))
    if metric is not None and metric.most is not None and requirement.limit > metric.most:
        remedy = tr("{name} is a share from 0 to 1: write 0.45, or 45%", name=name)
        raise UsageError(problem, where=where, remedy=remedy)


def gather_requirements(
    layers: Iterable[tuple[Sequence[str], str | None]], known: Mapping[str, RequiredFigure] | None = None
) -> tuple[Requirement, ...]:
    """What flags and files require, each with the file it is from, strongest first.

    Of one figure the strongest speaks alone. Raises as ``parse_requirement``.
    """
    gathered: list[Requirement] = []
    for texts, where in layers:
        figure_names = {requirement.figure.name for requirement in gathered}
        parsed = [parse_requirement(text, where, known) for text in texts]
        gathered += [requirement for requirement in parsed if requirement.figure.name not in figure_names]
    return tuple(gathered)
