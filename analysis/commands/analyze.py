"""``logparse analyze``: what a run achieved, from its log. Reads options, calls, prints."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import typer

from analysis.batch.analyze_runs import Runs, choose_readers, each_part, read_all
from analysis.batch.shards import Shard, whole_of
from analysis.commands import _options as options
from analysis.commands._cluster_options import Engine, ShardOption, check_cluster_options
from analysis.commands._forms import Shortened
from analysis.commands._index_files import INDEX, PAGE
from analysis.commands._input_files import input_files
from analysis.commands._many_runs import Printer, RunSelection
from analysis.commands._output_folder import DrawingOptions, ResultFiles, has_overlay
from analysis.commands._progress import reading_bar
from analysis.commands._run_flags import COMPUTING, READING, with_run_flags
from analysis.commands._run_results import OutputStore, RunResult, WantedOfRun, read_results
from analysis.commands._shard_folder import ShardFolder, write_documents
from analysis.files.outputs import DEFAULT_TABLES, chosen_formats
from analysis.files.result_folder import ResultFolder
from analysis.present.console import make_console
from analysis.present.views.compact import compact_runs
from analysis.present.views.fields import parse_fields, select_fields
from analysis.present.words import say
from analysis.project.project_file import find_project_settings
from analysis.published.baselines import Baseline, find_baseline, published, read_baselines
from analysis.run.checks.target_verdicts import exit_code
from analysis.run.options import RunOptions
from logparse.errors import InputError, LogparseError, UsageError, without_each
from logparse.findings import info
from logparse.inputs.discovery import printable
from logparse.inputs.run_discovery import named_runs
from logparse.inputs.stores import is_url, shown
from logparse.language import current_language, tr, use_language
from logparse.light_dataclass import dataclass, replace
from logparse.masking import mask_text
from logparse.pseudonyms import Pseudonyms, change_of

Outcome = tuple[list[RunResult], list[LogparseError]]


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
    charts: options.Charts = None,
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
    written = options.table_formats(tables)
    given_formats = _formats(charts, chart_format, theme)
    runs = named_runs(logs, each)
    formats = given_formats if _are_drawn(charts, chart_format, theme, len(runs)) else None
    printer = Printer(each, as_json, as_markdown, quiet, no_color, verbose, price, short)
    drawing = DrawingOptions(formats, theme, quiet, written, command_as_given(logs, how.pseudonyms), price, asked.order)
    with OutputStore() as store:
        reader = RunReader(how, engine, quiet, split, each, printer.wanted, store)
        if shard is None:
            inputs = input_files((*logs, baseline_file))
            results, failed = _into_folder(out, runs, reader, drawing, force, inputs)
        else:
            out = _folder_of(shard, out)
            # From Parquet merge puts the shards together.
            drawing = replace(drawing, tables=tuple(dict.fromkeys((*DEFAULT_TABLES, *written))), part=True)
            part = ShardFolder(out, shard, whole_of(runs, how, _drawn(drawing), shard.of))
            results, failed = _into_shard(part, shard.part(runs), reader, drawing, force)
        if each:
            printer.many(results, asked, failed)
        else:
            printer.parts_of_one(results)
    if out is not None and not (quiet or as_json):
        _name_pages(out, each or len(results) > 1, shard is None, formats, given_formats, len(results), no_color)
    for error in failed:
        typer.echo(f"logparse: {error}", err=True)
    if failed:
        raise typer.Exit(failed[0].exit_code)
    raise typer.Exit(exit_code(judgement.outcome for result in results for judgement in result.judgements))


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


def _formats(charts: bool | None, chart_format: str | None, theme: str | None) -> Sequence[str] | None:
    """The forms of the charts; None where none are to be drawn. Raises UsageError for one that does not exist."""
    formats = chosen_formats(None if chart_format is None else chart_format.split(","), theme)
    return None if charts is False else formats


def _are_drawn(charts: bool | None, chart_format: str | None, theme: str | None, runs: int) -> bool:
    """Whether charts and pages are drawn: of many ``runs`` only where an option asks for them."""
    return bool(charts) or chart_format is not None or theme is not None or runs <= options.MOST_DRAWN


def _name_pages(
    out: ResultFolder,
    several: bool,
    whole: bool,
    formats: Sequence[str] | None,
    given_formats: Sequence[str] | None,
    runs: int,
    no_color: bool,
) -> None:
    """Name the pages that were written, the folder where there is none, and the option that draws those of many."""
    console = make_console(stderr=True, no_color=no_color)
    page = [PAGE] if formats is not None and (has_overlay(runs) or not several) else []
    for name in [INDEX, *page] if several and whole else page or [""]:
        console.print(say(info("wrote", path=f"{out}/{name}")))
    if formats is None and given_formats is not None:
        console.print(tr("no charts and pages of so many runs; add --charts to draw them"))


def _drawn(drawing: DrawingOptions) -> dict[str, str]:
    """On what the pictures of a shard depend."""
    if drawing.formats is None:
        return {}
    return {"chart_format": ",".join(drawing.formats), "theme": drawing.theme or "", "lang": current_language()}


def _folder_of(shard: Shard, out: ResultFolder | None) -> ResultFolder:
    if out is None:
        raise UsageError(tr("--shard requires -o"), remedy=tr("add -o DIR, with the same folder for all shards"))
    return out.below(shard.folder)


@dataclass(frozen=True)
class RunReader:
    """How runs are read and what is ``wanted`` of them; their output is kept in ``store``."""

    how: RunOptions
    engine: str
    quiet: bool
    split: bool
    each: bool
    wanted: WantedOfRun
    store: OutputStore

    def results(self, runs: Runs, open_files: Callable[[], ResultFiles | None]) -> Outcome:
        """Analyze every run, by its name; one that cannot be read does not stop the others.

        The tables go to the files that ``open_files`` opens when the first run has been read.
        """
        results: list[RunResult] = []
        failed: list[LogparseError] = []
        files: ResultFiles | None = None
        for one in self._each_result(runs):
            if isinstance(one, LogparseError):
                failed.append(one)
                continue
            files = files or open_files()
            if files is not None:
                files.add(one)
            results.append(self.store.keep(one))
        if self.each:
            without_each(failed)
        return results, failed

    def _each_result(self, runs: Runs) -> Iterator[RunResult | LogparseError]:
        read = partial(read_results, wanted=self.wanted, split=self.split)
        readers = choose_readers(runs, self.how, self.engine)
        with reading_bar(self.quiet, [files for _, files in runs]) as progress:
            readers = replace(readers, watches=progress.watches, done=progress.done)
            yield from each_part(read_all(read, runs, self.how, readers))


def _into_folder(
    out: ResultFolder | None, runs: Runs, reader: RunReader, drawing: DrawingOptions, force: bool, inputs: Sequence[str]
) -> Outcome:
    """Read ``runs`` by ``reader``, and keep what it gives in ``out``; raises where no run can be read."""
    if out is None:
        results, failed = reader.results(runs, lambda: None)
        if not results:
            raise failed[0]
        return results, failed
    out.check(force, drawing.sure, inputs)
    drawing.prepare()
    reader = replace(reader, wanted=drawing.wanted(reader.wanted))
    opened: list[ResultFiles] = []
    with ExitStack() as stack:

        def open_files() -> ResultFiles:
            folder = stack.enter_context(out.opened("analyze", force))
            opened.append(stack.enter_context(ResultFiles.open(folder, drawing)))
            return opened[0]

        results, failed = reader.results(runs, open_files)
        if not results:
            raise failed[0]
        several = reader.each or len(results) > 1
        texts = [str(error) for error in failed] if several else None
        opened[0].finish(results, texts, apart=len(results) > 1)
    return results, failed


def _into_shard(part: ShardFolder, runs: Runs, reader: RunReader, drawing: DrawingOptions, force: bool) -> Outcome:
    """The same for one shard, which is kept, with what was wrong, though no run of it can be read."""
    if not force:
        part.check()
    drawing.prepare()
    reader = replace(reader, wanted=replace(drawing.wanted(reader.wanted), document=True))
    with part.opened() as path, ResultFiles.open(path, drawing) as files:
        results, failed = reader.results(runs, lambda: files)
        tables = files.finish(results, [str(error) for error in failed], apart=True)
        write_documents(path, results)
    part.write_account(results, failed, tables)
    if failed and not results:
        raise failed[0]
    return results, failed


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
    return options.project_pseudonyms()


def _kept(words: Sequence[str]) -> Iterator[str]:
    left = iter(words)
    for word in left:
        name, sign, value = word.partition("=")
        if name in PLACED:
            if not sign:
                next(left, None)
        elif word not in ALONE and not (word.startswith("-o") and not word.startswith("--")):
            yield f"{name}={shown(value)}" if is_url(value) else shown(word)
