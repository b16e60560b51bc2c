"""Which recorded runs are meant: ``release=CANN 8.0.RC2,device=910b3,nightly=yes``.

Comes in: the runs of a history and a selector. Goes out: the runs it names. Several conditions must all hold; see
``conditions`` for keys and values.
"""

from __future__ import annotations

import polars as pl

from analysis.history.conditions import CLOCK, holds
from analysis.history.selector import RunCondition, Selector, parse_selector, parse_selector_of_old
from logparse.errors import UsageError
from logparse.findings import Note, info
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

# Nobody can type these into a selector, and half a surrogate no file can hold.
UNTYPED = lazy_regex(r"[\p{Cc}\p{Cs}]")


@dataclass(frozen=True)
class Evidence:
    """The runs that were asked for and count, and those that were asked for and are excluded."""

    runs: pl.DataFrame
    excluded: pl.DataFrame

    @property
    def notes(self) -> list[Note]:
        """How many are excluded, and why."""
        reasons = self.excluded.select("run_id", "excluded").iter_rows()
        names = [f"{run_id[:12]} ({reason})" for run_id, reason in reasons]
        return [info("runs_excluded", n=len(names), names=names)] if names else []


def select_runs(runs: pl.DataFrame, selector: str | Selector) -> pl.DataFrame:
    """The rows of ``runs`` that the selector names, in their order, also those that are excluded; none where none fits.

    Raises UsageError where it is no selector, has a key that no run knows, or a value that its key cannot have.
    """
    meant = _meant(runs, selector)
    return _newest(_fitting(runs, meant), meant.last)


def select_evidence(runs: pl.DataFrame, selector: str | Selector | None = None) -> Evidence:
    """As ``select_runs``, or all where it is None, without runs that are excluded unless their ids are named.

    With ``last`` the excluded runs are those that are not older than the oldest run that counts.
    """
    meant = _meant(runs, Selector("", ()) if selector is None else selector)
    fitting = _fitting(runs, meant)
    if meant.names_runs:
        return Evidence(_newest(fitting, meant.last), fitting.clear())
    counting, excluded = (fitting.filter(pl.col("excluded").is_null() == none) for none in (True, False))
    chosen = _newest(counting, meant.last)
    if meant.last is not None and len(chosen):
        excluded = excluded.filter(pl.lit(chosen.select(CLOCK.min()).item()) <= CLOCK)
    return Evidence(chosen, excluded)


def _meant(runs: pl.DataFrame, selector: str | Selector) -> Selector:
    """What a text may also mean: a value that looks like a further condition, where a run has it."""
    if isinstance(selector, Selector):
        return selector
    then = parse_selector_of_old(selector)
    if then is not None and all(_has_value(runs, key, value) for key, value in then.equalities.items()):
        return then
    return parse_selector(selector)


def _has_value(runs: pl.DataFrame, key: str, value: str) -> bool:
    asked = Selector("", (RunCondition(key, "=", (value,)),))
    try:
        return not _fitting(runs, asked).is_empty()
    except UsageError:
        return False


def _fitting(runs: pl.DataFrame, selector: Selector) -> pl.DataFrame:
    return runs.filter(*(_placed(runs, selector, condition) for condition in selector.conditions))


def _newest(runs: pl.DataFrame, last: int | None) -> pl.DataFrame:
    if last is None:
        return runs
    newest = runs.sort(CLOCK, "run_id", nulls_last=False).tail(last)
    return runs.filter(pl.col("run_id").is_in(newest["run_id"].to_list()))


def _placed(runs: pl.DataFrame, selector: Selector, condition: RunCondition) -> pl.Expr:
    try:
        return holds(runs, condition)
    except UsageError as error:
        raise UsageError(error.problem, where=selector.place(condition), remedy=error.remedy) from error
