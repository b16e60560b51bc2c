"""``logparse analyze``: what a run achieved, from its log. Reads options, calls, prints."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import typer

from analysis.batch.analyze_runs import analyze_all_parts
from analysis.batch.shards import Shard, whole_of
from analysis.commands import _options as options
from analysis.commands._cluster_options import Engine, ShardOption, check_cluster_options
from analysis.commands._forms import Shortened
from analysis.commands._index_files import INDEX, PAGE
from analysis.commands._input_files import input_files
from analysis.commands._many_runs import Printer, RunSelection
from analysis.commands._output_folder import DrawingOptions, has_overlay, write_results
from analysis.commands._progress import reading_bar
from analysis.commands._run_flags import COMPUTING, READING, with_run_flags
from analysis.commands._shard_folder import ShardFolder
from analysis.files.outputs import DEFAULT_TABLES, chosen_formats
from analysis.files.result_folder import ResultFolder
from analysis.present.console import make_console
from analysis.present.views.compact import compact_runs
from analysis.present.views.fields import parse_fields, select_fields
from analysis.present.words import say
from analysis.project.project_file import find_project_settings
from analysis.published.baselines import Baseline, find_baseline, published, read_baselines
from analysis.run.checks.target_verdicts import exit_code, judge
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.errors import InputError, LogparseError, UsageError, without_each
from logparse.findings import info
from logparse.inputs.discovery import printable
from logparse.inputs.run_discovery import named_runs
from logparse.inputs.stores import is_url, shown
from logparse.language import current_language, tr, use_language
from logparse.masking import mask_text
from logparse.pseudonyms import Pseudonyms, change_of

Runs = Sequence[tuple[str, Sequence[str]]]
Outcome = tuple[list[Run], list[LogparseError]]
Work = Callable[[Runs], Outcome]


@with_run_flags(
    **COMPUTING,
    **READING,
    strict=options.Strict,
    utilisation=options.PlannedUtilisation,
    baseline=options.Baseline,
    require=options.Require,
)
def analyze(
    logs: options.Logs,
    how: RunOptions,
    out: options.Out = None,
    as_json: options.Json = False,
    compact: options.Compact = False,
    fields: options.Fields = None,
    as_markdown: options.Markdown = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    price: options.Price = None,
    no_color: options.NoColor = False,
    tables: options.Tables = "parquet",
    charts: options.Charts = True,
    chart_format: options.ChartFormats = None,
    theme: options.Theme = None,
    force: options.Force = False,
    baseline_file: options.BaselineFile = None,
    each: options.Each = False,
    split: options.Split = False,
    no_draft: options.NoDraft = False,
    anonymise: options.Anonymise = False,
    where: options.Where = None,
    sort: options.Sort = None,
    shard: ShardOption = None,
    engine: Engine = "local",
    lang: options.Language = None,
) -> None:
    """Analyze a run: step time, throughput, TFLOP/s, MFU, HFU and goodput.

    Several LOGs are files of one run; with --each every LOG is a run.

    Exit code: 0 done, 1 target missed, 2 wrong usage or unreadable input, 3 no step line found, 4 a required figure
    is unknown.
    """
    short = _short_form(compact, fields)
    as_json = as_json or short is not None
    if as_json and lang is None:
        # Scripts must find the same words on every machine.
        use_language("en")
    _check_output(as_json, as_markdown, quiet, verbose)
    check_cluster_options(each, engine, shard, ("--where", bool(where)), ("--sort", sort is not None))
    if anonymise:
        how = replace(how, pseudonyms=_pseudonyms(shard))
    asked = RunSelection.of(where or (), sort)
    # The history may grow between two shards.
    recorded = recorded_rows_of_project() if shard is None else ()
    rows = (() if baseline_file is None else read_baselines(baseline_file)) + recorded + published()
    if how.baseline is not None:
        find_baseline(rows, how.baseline)
    how = replace(how, published=rows, drafts=not no_draft)
    formats, written = _formats(charts, chart_format, theme), options.table_formats(tables)
    runs = named_runs(logs, each)
    work = partial(_analyze, how=how, engine=engine, quiet=quiet, split=split, each=each)
    drawing = DrawingOptions(formats, theme, quiet, written, command_as_given(logs, how.pseudonyms), price, asked.order)
    if shard is None:
        inputs = input_files((*logs, baseline_file))
        results, failed = _into_folder(out, runs, work, drawing, force, each, inputs)
    else:
        out = _folder_of(shard, out)
        # From Parquet merge puts the shards together.
        drawing = replace(drawing, tables=tuple(dict.fromkeys((*DEFAULT_TABLES, *written))), part=True)
        part = ShardFolder(out, shard, whole_of(runs, how, _drawn(drawing), shard.of))
        results, failed = _into_shard(part, shard.part(runs), work, drawing, force)
    printer = Printer(as_json, as_markdown, quiet, no_color, verbose, price, short)
    if each:
        printer.many(results, asked, failed)
    else:
        printer.parts_of_one(results)
    if out is not None and not (quiet or as_json):
        several = each or len(results) > 1
        for page in _pages(several and shard is None, formats is not None, len(results)):
            make_console(stderr=True, no_color=no_color).print(say(info("wrote", path=f"{out}/{page}")))
    for error in failed:
        typer.echo(f"logparse: {error}", err=True)
    if failed:
        raise typer.Exit(failed[0].exit_code)
    raise typer.Exit(exit_code(judgement.outcome for result in results for judgement in judge(result)))


def _short_form(compact: bool, fields: str | None) -> Shortened | None:
    """What makes the JSON short; None where all of it is printed. Raises UsageError for both, or an unknown field."""
    if compact and fields is not None:
        raise UsageError(tr("--compact and --fields exclude each other"), remedy=tr("give one of them"))
    if fields is None:
        return compact_runs if compact else None
    return partial(select_fields, paths=parse_fields(fields))


def _check_output(as_json: bool, as_markdown: bool, quiet: bool, verbose: bool) -> None:
    """Raises UsageError for forms of the output that exclude each other."""
    if as_json + as_markdown + quiet > 1:
        raise UsageError(tr("--json, --markdown and --quiet exclude each other"), remedy=tr("give one of them"))
    if quiet and verbose:
        raise UsageError(tr("--quiet and --verbose exclude each other"), remedy=tr("give one of them"))


def recorded_rows_of_project() -> tuple[Baseline, ...]:
    """Runs of the project's history; none, and a warning, where it cannot be read."""
    place = find_project_settings().get("history")
    if place is None:
        return ()
    from analysis.commands._release_options import teller
    from analysis.history.recorded_baselines import recorded_rows

    try:
        return recorded_rows(place, teller())
    except InputError as error:
        typer.echo(f"logparse: {error}", err=True)
        return ()


def _formats(charts: bool, chart_format: str | None, theme: str | None) -> Sequence[str] | None:
    """The forms of the charts; None where none are to be drawn. Raises UsageError for one that does not exist."""
    formats = chosen_formats(None if chart_format is None else chart_format.split(","), theme)
    return formats if charts else None


def _pages(each: bool, drawn: bool, runs: int) -> list[str]:
    """The pages to name where results were written; the folder itself where there is none."""
    page = [PAGE] if drawn and (has_overlay(runs) or not each) else []
    return [INDEX, *page] if each else page or [""]


def _drawn(drawing: DrawingOptions) -> dict[str, str]:
    """On what the pictures of a shard depend."""
    if drawing.formats is None:
        return {}
    return {"chart_format": ",".join(drawing.formats), "theme": drawing.theme or "", "lang": current_language()}


def _folder_of(shard: Shard, out: ResultFolder | None) -> ResultFolder:
    if out is None:
        raise UsageError(tr("--shard requires -o"), remedy=tr("add -o DIR, with the same folder for all shards"))
    return out.below(shard.folder)


def _into_folder(
    out: ResultFolder | None,
    runs: Runs,
    work: Work,
    drawing: DrawingOptions,
    force: bool,
    each: bool,
    inputs: Sequence[str],
) -> Outcome:
    """Do ``work`` and keep what it gives; raises where no run can be read."""
    if out is not None:
        out.check(force, drawing.sure, inputs)
        drawing.prepare()
    results, failed = work(runs)
    if not results:
        raise failed[0]
    if out is not None:
        several = each or len(results) > 1
        write_results(results, out, drawing, force, [str(error) for error in failed] if several else None)
    return results, failed


def _into_shard(part: ShardFolder, runs: Runs, work: Work, drawing: DrawingOptions, force: bool) -> Outcome:
    """The same for one shard, which is kept, with what was wrong, though no run of it can be read."""
    if not force:
        part.check()
    drawing.prepare()
    results, failed = work(runs)
    part.write(results, failed, drawing)
    if failed and not results:
        raise failed[0]
    return results, failed


def _analyze(runs: Runs, how: RunOptions, engine: str, quiet: bool, split: bool, each: bool) -> Outcome:
    """Analyze every run, by its name; one that cannot be read does not stop the others."""
    with reading_bar(quiet, [files for _, files in runs]) as watches:
        done = list(analyze_all_parts(runs, how, engine, watches, split))
    failed = [error for error in done if isinstance(error, LogparseError)]
    if each:
        without_each(failed)
    return [run for run in done if isinstance(run, Run)], failed


# Options of where a result goes and who computes it: those with a value, and those without one.
PLACED = ("-o", "--out", "--engine", "--shard", "--fields")
ALONE = ("--force", "-q", "--quiet", "-v", "--verbose", "--json", "--compact", "--markdown", "--no-color")


def command_as_given(logs: Sequence[str] = (), pseudonyms: Pseudonyms | None = None) -> str:
    """The command line in use, without secrets; URLs lose the parts that may hold one. With ``pseudonyms`` of paths."""
    words = [printable(word) for word in _kept(sys.argv[1:])]
    shown_words = words if pseudonyms is None else map(change_of({}, logs, "", pseudonyms), words)
    return mask_text(shlex.join(["logparse", *shown_words]))


def _pseudonyms(shard: Shard | None) -> Pseudonyms:
    """Those of the project's history, or new ones. Raises UsageError for a shard, as each would have others."""
    if shard is not None:
        problem = tr("--anonymise and --shard exclude each other")
        raise UsageError(problem, remedy=tr("record the runs with --anonymise, or analyze them without --shard"))
    from analysis.history.pseudonym_key import pseudonyms_of_answer

    place = find_project_settings().get("history")
    return pseudonyms_of_answer(None if place is None else str(place))


def _kept(words: Sequence[str]) -> Iterator[str]:
    left = iter(words)
    for word in left:
        name, sign, value = word.partition("=")
        if name in PLACED:
            if not sign:
                next(left, None)
        elif word not in ALONE and not (word.startswith("-o") and not word.startswith("--")):
            yield f"{name}={shown(value)}" if is_url(value) else shown(word)
