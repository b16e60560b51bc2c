"""The rules of a project for its jobs: the table ``[gate]`` of ``logparse.toml``.

Comes in: the table as parsed from TOML. Goes out: a Policy. Keys of ``gate`` apply to every job, keys of a job to that
job alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any, Literal

from analysis.compare.loss_targets import gather_tolerances, join_tolerances
from analysis.compare.threshold import NOISE, least_change, parse_threshold
from analysis.compare.verdict import Verdict, find_metric
from analysis.history.selector import parse_selector
from analysis.junit import Outcome
from analysis.metrics import GUARDED
from analysis.nightly.run_links import is_template
from analysis.run.checks.targets import Requirement
from analysis.stats.prediction import CONFIRM, FEWEST, KEPT
from logparse.errors import UsageError, unknown_name
from logparse.language import msg, tr
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, field, replace

TABLE = "gate"
# By what is asked for, the verdicts that fail the gate.
FAILING: dict[str, frozenset[Verdict]] = {
    "regression": frozenset({"crashed", "regression"}),
    "less work": frozenset({"crashed", "regression", "less work"}),
    "suspicious": frozenset({"crashed", "regression", "less work", "suspicious"}),
    "new": frozenset({"crashed", "regression"}),
}
# What is asked for where an open regression must not fail the gate again.
NEW = "new"
LAST, SINCE = lazy_regex(r"last (\d+)"), lazy_regex(r"since (\S+)")
# A threshold that is none: the metric is not judged.
LEFT_OUT = "off"
# How JUnit shows a suspicious metric: as passed, with its text, or as skipped.
SUSPICIOUS: tuple[Literal["system-out", "skipped"], ...] = ("system-out", "skipped")
# An address of a run.
EXAMPLE = "https://ci.example.com/{build}"
Kind = Literal["last", "since", "same release", "best", "selected"]


@dataclass(frozen=True)
class BaselineRule:
    """The runs that give the expectation for the newest run.

    These are the ``last`` so many, those ``since`` a day, of the ``same release`` as it, of the ``best`` release, or
    those ``selected``.
    """

    kind: Kind
    text: str
    runs: int = KEPT
    day: date | None = None


@dataclass(frozen=True)
class JobRule:
    """What holds of one job. ``select`` names its runs, None all; ``metrics`` are the least changes that matter.

    ``confirm`` nights in a row make a regression. ``block_by`` is a label, such as ``node``, of which runs of one value
    are compared with each other. A run with fewer step lines than ``min_steps`` failed. ``of_series`` says that
    nobody named the job: its runs are a comparable series. ``tolerances`` are
    required of the losses.
    """

    name: str | None = None
    select: str | None = None
    baseline: BaselineRule = field(default_factory=lambda: BaselineRule("last", f"last {KEPT}"))
    confirm: int = CONFIRM
    metrics: Mapping[str, float] = field(default_factory=lambda: {name: least_change(name) for name in GUARDED})
    block_by: str | None = None
    owners: tuple[str, ...] = ()
    min_steps: int = 0
    of_series: bool = False
    tolerances: tuple[Requirement, ...] = ()


@dataclass(frozen=True)
class Policy:
    """What applies to all jobs; with ``only_new`` only what is new tonight fails the gate. ``run_url`` is the
    template of the address of a run, ``junit_suspicious`` the outcome of a suspicious metric in JUnit.

    Every comparable series of runs that none of ``jobs`` selects is a job by ``rest``.
    """

    jobs: tuple[JobRule, ...] = ()
    rest: JobRule = field(default_factory=JobRule)
    failing: frozenset[Verdict] = FAILING["regression"]
    only_new: bool = False
    run_url: str | None = None
    junit_suspicious: Outcome = "system-out"

    def rule_of(self, job: str) -> JobRule:
        """The rule of the job of that name."""
        return next((rule for rule in self.jobs if rule.name == job), self.rest)


# Keys of the table, and of the table of a job.
OF_ALL, OF_JOBS = ("jobs", "fail_on", "run_url", "junit_suspicious"), ("select", "owners")
OF_BOTH = ("baseline", "confirm", "threshold", "metrics", "block_by", "min_steps", "require")


def read_policy(table: Mapping[str, Any]) -> Policy:
    """The policy of a table ``[gate]``. Raises UsageError, with the key, for what nobody knows or what is wrong."""
    rest = _rule(JobRule(), table, TABLE, OF_ALL)
    jobs = _table(table, "jobs", TABLE)
    rules = (replace(_job(rest, name, jobs, f"{TABLE}.jobs"), name=name) for name in jobs)
    fail_on = table.get("fail_on", "regression")
    if fail_on not in FAILING:
        raise _wrong(f"{TABLE}.fail_on", fail_on, tr("use one of {names}", names=", ".join(FAILING)))
    shown = table.get("junit_suspicious", SUSPICIOUS[0])
    if shown not in SUSPICIOUS:
        raise _wrong(f"{TABLE}.junit_suspicious", shown, tr("use one of {names}", names=", ".join(SUSPICIOUS)))
    return Policy(tuple(rules), rest, FAILING[fail_on], fail_on == NEW, _run_url(table), shown)


def _run_url(table: Mapping[str, Any]) -> str | None:
    """The template of the address of a run. Raises UsageError for what is none."""
    if "run_url" not in table:
        return None
    text = _text(table["run_url"], f"{TABLE}.run_url")
    if not is_template(text):
        remedy = tr("give an address with a column, version or label in braces, such as {example}", example=EXAMPLE)
        raise _wrong(f"{TABLE}.run_url", text, remedy)
    return text


def _job(rest: JobRule, name: str, jobs: Mapping[str, Any], where: str) -> JobRule:
    place = f"{where}.{name}"
    table = _table(jobs, name, where)
    rule = _rule(rest, table, place, OF_JOBS)
    select, owners = table.get("select"), table.get("owners", [])
    if select is not None:
        parse_selector(_text(select, f"{place}.select"))
    if not isinstance(owners, list) or not all(isinstance(owner, str) for owner in owners):
        raise _wrong(f"{place}.owners", owners, tr('give a list, such as ["ann", "bob"]'))
    return replace(rule, select=select, owners=tuple(owners))


def _rule(rule: JobRule, table: Mapping[str, Any], where: str, more: Sequence[str]) -> JobRule:
    """``rule`` with what ``table`` says otherwise."""
    _check_keys(table, (*OF_BOTH, *more), where)
    if "baseline" in table:
        place = f"{where}.baseline"
        rule = replace(rule, baseline=parse_baseline(_text(table["baseline"], place), place))
    if "confirm" in table:
        nights = _count(table["confirm"], f"{where}.confirm")
        rule = replace(rule, confirm=nights)
    if "block_by" in table:
        rule = replace(rule, block_by=_text(table["block_by"], f"{where}.block_by"))
    if "min_steps" in table:
        rule = replace(rule, min_steps=_count(table["min_steps"], f"{where}.min_steps"))
    if "require" in table:
        given = gather_tolerances([(_texts(table["require"], f"{where}.require"), where)])
        rule = replace(rule, tolerances=join_tolerances(given, rule.tolerances))
    if "threshold" in table:
        least = {name: _least(table["threshold"], f"{where}.threshold", name) for name in rule.metrics}
        rule = replace(rule, metrics=least)
    return replace(rule, metrics=_metrics(rule.metrics, _table(table, "metrics", where), f"{where}.metrics"))


def _metrics(known: Mapping[str, float], table: Mapping[str, Any], where: str) -> dict[str, float]:
    """The least change of each metric that is judged, with what ``table`` adds, changes or leaves out."""
    for name in table:
        find_metric(name)
    given = {name: _least(value, f"{where}.{name}", name) for name, value in table.items() if value != LEFT_OUT}
    left = {name: least for name, least in known.items() if table.get(name) != LEFT_OUT}
    if not left | given:
        raise _wrong(where, dict(table), tr("keep at least one metric to judge"))
    return left | given


def parse_baseline(text: str, where: str = "--baseline") -> BaselineRule:
    """``last 30``, ``since 2026-03-01``, ``same release``, ``best``, or a selector. Raises UsageError for others."""
    if text in ("best", "same release"):
        return BaselineRule("best" if text == "best" else "same release", text)
    if match := LAST.fullmatch(text):
        if int(match[1]) < FEWEST:
            raise _wrong(where, text, tr("at least {n} runs are needed to estimate the noise", n=FEWEST))
        return BaselineRule("last", text, int(match[1]))
    if match := SINCE.fullmatch(text):
        try:
            return BaselineRule("since", text, day=date.fromisoformat(match[1]))
        except ValueError as error:
            raise _wrong(where, text, tr("write a date, such as since 2026-03-01")) from error
    try:
        parse_selector(text)
    except UsageError as error:
        remedy = tr("give last 30, since 2026-03-01, same release, best, or key=value such as release=CANN 8.0.RC1")
        raise _wrong(where, text, remedy) from error
    return BaselineRule("selected", text)


def _least(value: Any, where: str, metric: str) -> float:
    if value == NOISE:
        return least_change(metric)
    try:
        return parse_threshold(_text(value, where))
    except UsageError as error:
        raise _wrong(where, value, tr('write a percentage such as "2%", or "{noise}"', noise=NOISE)) from error


def _count(value: Any, where: str) -> int:
    if type(value) is not int or value < 1:
        raise _wrong(where, value, tr("give a whole number, 1 or more"))
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(where, value, tr("give text"))
    return value


def _texts(value: Any, where: str) -> list[str]:
    if not isinstance(value, list):
        raise _wrong(where, value, tr('give a list, such as ["loss_mre<=0.02"]'))
    return [_text(text, where) for text in value]


def _table(table: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise _wrong(f"{where}.{key}", value, tr("write it as a table: [{name}]", name=f"{where}.{key}"))
    return value


def _check_keys(table: Mapping[str, Any], known: Collection[str], where: str) -> None:
    for key in table:
        if key not in known:
            remedy = tr("keys of [{table}]: {names}", table=where, names=", ".join(known))
            raise unknown_name(msg("key"), key, known, remedy)


def _wrong(where: str, value: Any, remedy: str) -> UsageError:
    return UsageError(tr("{name} is {value!r}", name=where, value=value), remedy=remedy)
