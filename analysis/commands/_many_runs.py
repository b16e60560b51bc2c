"""What is printed of one run and of many, and which of many: ``--sort`` and ``--where``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import polars as pl
import typer

from analysis.batch.run_table import NUMBERS, check_order, choose_runs
from analysis.commands._forms import Shortened, print_long_json
from analysis.commands._output_folder import tables_of_all
from analysis.commands._run_results import RunResult, WantedOfRun
from analysis.metrics import BY_COLUMN
from analysis.present.console import make_console
from analysis.present.markdown import markdown
from analysis.present.parts import Heading, Part
from analysis.present.terminal import print_parts
from analysis.present.views.analyze_json import document_of, document_of_many
from analysis.present.views.requirements import judgement_lines, requirement_parts
from analysis.present.views.runs import compose_runs
from analysis.run.checks.limits import Condition, parse_condition
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

    ``each`` says that they are many. ``price`` is that of a device-hour; ``compact`` makes the JSON short.
    """

    each: bool
    as_json: bool
    as_markdown: bool
    quiet: bool
    no_color: bool
    verbose: bool
    price: float | None
    compact: Shortened | None = None

    @property
    def wanted(self) -> WantedOfRun:
        """What this prints of each run."""
        texts = not (self.as_json or self.quiet)
        return WantedOfRun(
            document=self.as_json,
            line=self.quiet,
            parts=texts and (self.verbose or not self.each),
            verbose=self.verbose,
            price=self.price,
        )

    def parts_of_one(self, results: Sequence[RunResult]) -> None:
        """Print a run, or each of those that one log holds."""
        if self.as_json or self.quiet:
            self._print(results, [])
            return
        self._print(results, [*self._parts(results), *_required(results)])

    def _parts(self, results: Sequence[RunResult]) -> Iterator[Sequence[Part]]:
        """The parts of each run; of several that one log holds each has a heading."""
        for n, result in enumerate(results, 1):
            line = f"{result.first_line:,}"
            heading = tr("run {n} of {of}, steps from line {line} on", n=n, of=len(results), line=line)
            yield [*([Heading(heading)] if len(results) > 1 else []), *result.output().parts]

    def many(self, results: Sequence[RunResult], asked: RunSelection, failed: Sequence[LogparseError]) -> None:
        """Print a table of those ``results`` that are asked for; the logs of ``failed`` could not be read."""
        everything, overheads = tables_of_all(results).values()
        shown = asked.of_runs(everything)
        by_name = {result.name: result for result in results}
        chosen = [by_name[name] for name in shown["run"]]
        if self.as_json or self.quiet:
            self._print(chosen, [], document_of_many(everything, shown))
            return
        table = compose_runs(shown, overheads, everything, [error.run for error in failed], self.price)
        whole = (result.output().parts for result in chosen) if self.verbose else ()
        self._print(chosen, chain([table], whole, _required(chosen)))

    def _print(
        self,
        results: Sequence[RunResult],
        parts: Iterable[Sequence[Part]],
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        if self.as_json:
            documents = (one.output().document for one in results)
            print_long_json(document_of([]) | dict(extra or {}), documents, self.compact)
        elif self.quiet:
            for result in results:
                typer.echo(visible("\n".join((result.line, *judgement_lines(result.judgements, result.name)))))
        elif self.as_markdown:
            typer.echo("\n".join(map(markdown, parts)))
        else:
            console = make_console(no_color=self.no_color)
            for composed in parts:
                print_parts(console, composed)


def _required(results: Sequence[RunResult]) -> list[list[Part]]:
    """What was required of ``results``: nothing, or a list of parts."""
    judgements = [(result.name if len(results) > 1 else "", result.judgements) for result in results]
    required = requirement_parts(judgements)
    return [required] if required else []
