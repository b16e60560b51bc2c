"""``logparse compare``: the first side and others next to it. Reads options, calls, prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated

import typer

from analysis.commands import _options as options
from analysis.commands._forms import Form
from analysis.commands._index_files import PAGE
from analysis.commands._input_files import input_files
from analysis.commands._named_sides import named_sides
from analysis.commands._release_options import Allow, HistoryDir, Metrics, Threshold, Tolerances, teller
from analysis.commands._run_flags import COMPUTING, READING, with_run_flags
from analysis.compare.comparability import check_allowed
from analysis.compare.comparison import ComparedLosses, Comparison, compare_losses_alone
from analysis.compare.comparison import compare as compare_sides
from analysis.compare.loss_targets import gather_tolerances
from analysis.compare.refusal import refuse_incomparable
from analysis.compare.threshold import given_threshold
from analysis.compare.verdict import guards_of
from analysis.files.outputs import write_page
from analysis.files.result_folder import ResultFolder
from analysis.present.views.compact import compact_comparisons
from analysis.present.views.compare import compose_comparison
from analysis.present.views.compare_json import document
from analysis.present.views.same_loss import compose_same_loss
from analysis.present.views.same_loss import document as loss_document
from analysis.run.checks.target_verdicts import exit_code
from analysis.run.options import RunOptions
from logparse.errors import UsageError
from logparse.findings import Note, info
from logparse.language import tr

Baseline = Annotated[
    str,
    typer.Argument(
        metavar="A",
        help="Baseline: a log, a folder or pattern of runs, a run id, or key=value.",
    ),
]
Candidates = Annotated[list[str], typer.Argument(metavar="B...", help="Candidates, in the same form.")]

Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Show p-values and how they were computed.")]
Loss = Annotated[bool, typer.Option("--loss", help="Compare the losses alone, of any devices and layouts.")]
Out = Annotated[
    ResultFolder | None,
    options.result_folder(help="Folder for report.html with the comparison and charts of both sides."),
]


@with_run_flags(**COMPUTING, **READING)
def compare(
    baseline: Baseline,
    candidates: Candidates,
    how: RunOptions,
    history: HistoryDir = None,
    threshold: Threshold = None,
    metric: Metrics = None,
    allow: Allow = None,
    loss: Loss = False,
    require: Tolerances = None,
    out: Out = None,
    force: options.Force = False,
    as_json: options.Json = False,
    compact: options.Compact = False,
    as_markdown: options.Markdown = False,
    verbose: Verbose = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Compare runs or groups of runs, and list what changed between them.

    Use three or more runs per side to prove a difference.

    Exit code: 0 done, 1 target missed, 2 wrong usage or not comparable, 3 no step line found, 4 a required figure
    is unknown.
    """
    short = compact_comparisons if compact else None
    form = Form(as_json or compact, as_markdown, no_color, compact=short)
    if loss:
        _refuse({"--threshold": threshold, "--metric": metric, "--allow": allow})
    if out is not None:
        out.check(force, [PAGE], input_files((baseline, *candidates)))
    chosen, guards = guards_of(metric)
    allowed, limit = check_allowed(allow or []), given_threshold(threshold)
    tolerances, report = gather_tolerances([(require or (), None)]), teller()
    sides = named_sides((baseline, *candidates), history, how, report)
    first, *others = sides.sides
    compare_with = partial(compare_sides, first, guards=guards, tolerances=tolerances)
    # The page has all of a comparison, also of the losses.
    wanted = others if out is not None or not loss else []
    results = [compare_with(other, chosen, limit, allowed, sides.others) for other in wanted]
    losses = [compare_losses_alone(first, other, tolerances) for other in others] if loss else []
    if out is not None:
        _write(results, out, force, report, verbose)
    if loss:
        print_losses(losses, form)
    else:
        print_comparisons(results, form, verbose)
        for result in results:
            refuse_incomparable(result)
    raise typer.Exit(exit_code(judgement.outcome for one in losses or results for judgement in one.tolerances))


def _refuse(given: Mapping[str, object]) -> None:
    """Raises UsageError for a flag that the comparison of losses would drop."""
    names = [name for name, value in given.items() if value]
    if names:
        problem = tr("--loss cannot be combined with {names}", names=", ".join(names))
        raise UsageError(problem, remedy=tr("give one of them"))


def print_comparisons(results: Sequence[Comparison], form: Form, details: bool = False) -> None:
    """Print comparisons in the ``form`` that is asked for; ``details`` adds the p-values."""
    for result in results[:1] if form.as_json else results:
        form.print(lambda: document(results), partial(compose_comparison, result, details))


def print_losses(results: Sequence[ComparedLosses], form: Form) -> None:
    """Print how the losses compare, in the ``form`` that is asked for."""
    for result in results[:1] if form.as_json else results:
        form.print(lambda: loss_document(results), partial(compose_same_loss, result))


def _write(
    results: Sequence[Comparison], out: ResultFolder, force: bool, report: Callable[[Note], object], details: bool
) -> None:
    """A page for each candidate; those that an earlier run left and this one does not write are deleted."""
    from analysis.report.comparison_page import comparison_page

    names = [f"report-{number}.html" if number > 1 else PAGE for number in range(1, len(results) + 1)]
    with out.opened("compare", force) as folder:
        for name, result in zip(names, results, strict=True):
            write_page(comparison_page(result, details), folder / name)
    for name in names:
        report(info("wrote", path=f"{out}/{name}"))
