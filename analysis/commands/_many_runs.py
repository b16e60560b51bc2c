"""What is printed of one run and of many, and which of many: ``--sort`` and ``--where``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import typer

from analysis.batch.run_table import NUMBERS, check_order, choose_runs, overheads_table, runs_table
from analysis.commands._forms import Shortened, print_json
from analysis.metrics import BY_COLUMN
from analysis.present.console import make_console
from analysis.present.markdown import markdown
from analysis.present.parts import Heading, Part
from analysis.present.terminal import print_parts
from analysis.present.views.analyze import compose
from analysis.present.views.analyze_json import document, document_of_many
from analysis.present.views.first_screen import quiet_line
from analysis.present.views.requirements import requirement_lines, requirement_parts
from analysis.present.views.runs import compose_runs
from analysis.run.checks.limits import Condition, parse_condition
from analysis.run.run import Run
from logparse.errors import LogparseError, UsageError
from logparse.language import tr, visible
from logparse.light_dataclass import dataclass

# Columns of the table of runs that are shares and no metrics.
SHARES = frozenset(("largest_overhead_ratio",))


@dataclass(frozen=True)
class RunSelection:
    """Which of many runs are shown, and in which order."""

    where: tuple[Condition, ...] = ()
    order: str | None = None

    @classmethod
    def of(cls, where: Sequence[str], order: str | None) -> RunSelection:
        """What the flags say. Raises UsageError for a condition that is none, or a column that does not exist."""
        if order is not None:
            check_order(order)
        return cls(tuple(_parse_where(text) for text in where), order)

    def of_runs(self, runs: pl.DataFrame) -> pl.DataFrame:
        """The rows of ``runs`` that are shown."""
        return choose_runs(runs, self.where, self.order)


def _parse_where(text: str) -> Condition:
    """The condition of ``--where``. Raises UsageError for a share above 1, which is a number in percent."""
    condition = parse_condition(text, "--where", NUMBERS)
    metric = BY_COLUMN.get(condition.name)
    is_share = metric.most == 1 if metric is not None else condition.name in SHARES
    if is_share and condition.limit > 1:
        problem = tr("{name} is {value!r}", name="--where", value=text)
        percent = tr("{name} is a ratio from 0 to 1: write 0.30 or 30%", name=condition.name)
        raise UsageError(problem, remedy=percent)
    return condition


@dataclass(frozen=True)
class Printer:
    """How results are printed: many as one table and, where it is ``verbose``, all of each; or in one of three ways.

    ``price`` is that of a device-hour; ``compact`` makes the JSON short.
    """

    as_json: bool
    as_markdown: bool
    quiet: bool
    no_color: bool
    verbose: bool
    price: float | None
    compact: Shortened | None = None

    def parts_of_one(self, results: Sequence[Run]) -> None:
        """Print a run, or each of those that one log holds."""
        if self.as_json or self.quiet:
            self._print(results, [])
            return
        required = requirement_parts(results)
        self._print(results, [*self._parts(results), *([required] if required else [])])

    def _parts(self, results: Sequence[Run]) -> Iterator[list[Part]]:
        """The parts of each run; of several that one log holds each has a heading."""
        for n, run in enumerate(results, 1):
            line = f"{run.steps['line_number'][0]:,}"
            heading = tr("run {n} of {of}, steps from line {line} on", n=n, of=len(results), line=line)
            yield [*([Heading(heading)] if len(results) > 1 else []), *self._compose(run)]

    def many(self, results: Sequence[Run], asked: RunSelection, failed: Sequence[LogparseError]) -> None:
        """Print a table of those ``results`` that are asked for; the logs of ``failed`` could not be read."""
        everything = runs_table(results)
        shown = asked.of_runs(everything)
        by_name = {run.name: run for run in results}
        chosen = [by_name[name] for name in shown["run"]]
        # Of runs that nobody sees nothing is composed.
        if self.as_json or self.quiet:
            self._print(chosen, [], document_of_many(everything, shown))
            return
        required = requirement_parts(chosen)
        table = compose_runs(shown, overheads_table(results), everything, [error.run for error in failed], self.price)
        whole = map(self._compose, chosen) if self.verbose else ()
        self._print(chosen, [table, *whole, *([required] if required else [])])

    def _compose(self, result: Run) -> list[Part]:
        return compose(result, self.verbose, self.price)

    def _print(
        self, results: Sequence[Run], parts: Sequence[Sequence[Part]], extra: Mapping[str, Any] | None = None
    ) -> None:
        if self.as_json:
            whole = document(list(results), self.price) | dict(extra or {})
            print_json(whole, compact=self.compact)
        elif self.quiet:
            for result in results:
                typer.echo(visible("\n".join((quiet_line(result), *requirement_lines(result)))))
        elif self.as_markdown:
            typer.echo("\n".join(map(markdown, parts)))
        else:
            console = make_console(no_color=self.no_color)
            for composed in parts:
                print_parts(console, composed)
