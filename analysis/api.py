"""The same as the command line, for notebooks and scripts: ``logparse.analyze("train.log", hw="910b3")``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from analysis.batch.analyze_runs import analyze_all_parts
from analysis.charts.of_run import RunCharts
from analysis.commands._named_sides import named_sides
from analysis.commands._output_folder import (
    DrawingOptions,
    write_results,
)
from analysis.compare.comparability import check_allowed
from analysis.compare.comparison import Comparison, Side
from analysis.compare.comparison import compare as compare_sides
from analysis.compare.side_of_runs import side_of_runs
from analysis.compare.threshold import given_threshold
from analysis.compare.verdict import guards_of
from analysis.files.outputs import (
    DEFAULT_TABLES,
    check_table_formats,
    chosen_formats,
    write_table,
)
from analysis.files.result_folder import ResultFolder
from analysis.files.run_tables import tables_of
from analysis.history.pseudonym_key import pseudonyms_of_answer
from analysis.present.as_json import plain
from analysis.present.html import html
from analysis.present.views import compare_json
from analysis.present.views.analyze import compose
from analysis.present.views.analyze_json import document
from analysis.present.views.compare import compose_comparison
from analysis.present.views.ending import ending_parts
from analysis.present.views.estimate import estimate_document, estimate_parts
from analysis.present.words import say, word
from analysis.project.argument_names import (
    JOB_TYPES,
    OPTION_TYPES,
    check_names,
    check_types,
    naming_arguments,
    with_arguments,
)
from analysis.project.choose_options import choose
from analysis.project.estimate_job import estimate_job
from analysis.project.given_facts import check_quantities
from analysis.run.anonymous import shown_error
from analysis.run.build import analyze_logs, analyze_parts
from analysis.run.checks.planned_job import PlannedJob
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.decode.read_run import diagnose_run
from logparse.errors import LogparseError, SeveralRunsError, UsageError, without_each
from logparse.failures.ending import Ending
from logparse.findings import Note
from logparse.inputs.run_discovery import named_runs
from logparse.language import tr

# Further arguments of compare.
COMPARING = ("threshold", "metrics", "allow", "history")
Whole = TypeVar("Whole")


class AnalyzedRun(Run):
    """A run with its outputs: what ``logparse.analyze`` returns. Figures and frames are those of ``Run``."""

    @property
    def warnings(self) -> list[str]:
        """What must be known to trust the figures, a sentence each, in English or the language in use."""
        return [say(note) for note in self.notes if note.level == "warning"]

    @cached_property
    def charts(self) -> RunCharts:
        """The charts as Altair charts: ``run.charts.time()``; ``run.charts.names`` lists those with data."""
        return RunCharts(self, partial(word, "reasons"), partial(word, "parts"))

    @naming_arguments()
    def to_dict(self) -> dict[str, Any]:
        """The JSON document of this run: an element of ``runs`` of ``logparse analyze --json``."""
        run: dict[str, Any] = document([self])["runs"][0]
        return run

    @naming_arguments()
    def write_report(
        self,
        folder: str | Path,
        *,
        force: bool = False,
        tables: str | Sequence[str] = DEFAULT_TABLES,
        chart_formats: str | Sequence[str] | None = None,
        theme: str | None = None,
        price: float | None = None,
    ) -> None:
        """Write report.html, charts/ and the tables into ``folder``, as ``logparse analyze -o`` does.

        Args:
            folder: A folder, which is made where it is missing, or the URL of one on an object store.
            force: Overwrite the files of an earlier report. Without it a folder that is not empty is refused.
            tables: Formats of the tables: parquet, csv, jsonl.
            chart_formats: Formats of the files in charts/: json, png, svg, html. By default json, and with the extra
                ``pictures`` also png and svg.
            theme: A Vega theme for the charts, such as "dark".
            price: Price of a device-hour, in any currency; the report shows the cost of each overhead.

        Raises:
            UsageError: The folder is not empty, or a format or a theme does not exist or needs a missing library.
            InputError: The folder cannot be written.
        """
        out, forms = _folder(folder), _table_formats(tables)
        charts = chosen_formats(None if chart_formats is None else _as_list(chart_formats), theme)
        out.check(force)
        drawing = DrawingOptions(charts, theme, quiet=True, tables=forms, price=price)
        write_results([self], out, drawing, force)

    @naming_arguments()
    def write_tables(
        self, folder: str | Path, *, force: bool = False, tables: str | Sequence[str] = DEFAULT_TABLES
    ) -> None:
        """Write the tables into ``folder``: those that ``logparse analyze -o`` writes, without report and charts.

        Args:
            folder: A folder, which is made where it is missing, or the URL of one on an object store.
            force: Overwrite earlier tables. Without it a folder that is not empty is refused.
            tables: Formats of the tables: parquet, csv, jsonl.

        Raises:
            UsageError: The folder is not empty, or a format does not exist.
            InputError: The folder cannot be written.
        """
        out, forms = _folder(folder), _table_formats(tables)
        out.check(force)
        with out.opened("tables", force) as opened:
            frames = tables_of([self])
            for name, frame in frames.items():
                for form in forms:
                    write_table(frame, opened / name, form)

    def _repr_html_(self) -> str:
        return html(compose(self))


class RunComparison(Comparison):
    """Two sides compared: what ``logparse.compare`` returns. ``verdict`` is None if they cannot be compared."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of the comparison, as ``logparse compare --json`` prints it."""
        return compare_json.document([self])

    def _repr_html_(self) -> str:
        return html(compose_comparison(self))


class Diagnosis(Ending):
    """How a run ended, and why: what ``logparse.diagnose`` returns."""

    def to_dict(self) -> dict[str, Any]:
        """The ``ending`` of the JSON that ``logparse diagnose --json`` prints."""
        found: dict[str, Any] = plain(self)
        return found

    def _repr_html_(self) -> str:
        return html(ending_parts(self))


class JobEstimate(PlannedJob):
    """What a job should need and give: what ``logparse.estimate`` returns."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of the estimate, as ``logparse estimate --json`` prints it."""
        return estimate_document(self)

    def _repr_html_(self) -> str:
        return html(estimate_parts(self))


# What a side of a comparison may be: a log, folder or selector; a run that is read already; or several of both.
SideLike = str | Path | Run | Sequence[str | Path | Run]


@naming_arguments()
def analyze(
    *logs: str | Path,
    hw: str | None = None,
    peak_tflops: float | None = None,
    peak_basis: str | None = None,
    model: str | None = None,
    formula: str | None = None,
    config: str | Path | None = None,
    log_format: str | Path | None = None,
    dialect: str | None = None,
    warmup: int | None = None,
    strict: bool = False,
    all_files: bool = False,
    anonymise: bool = False,
    jobs: int | None = None,
    require: str | Sequence[str] = (),
    **quantities: Any,
) -> AnalyzedRun:
    """Read ``logs`` as one run and compute its figures.

    Args:
        logs: Files of one run: logs, folders, globs, URLs, or "-" for standard input.
        hw: Device that MFU is measured against, such as "910b3" or "h100".
        peak_tflops: Peak of one device in TFLOP/s; wins over ``hw``.
        peak_basis: Peak of ``hw``: "matrix" (default) or "headline".
        model: A known model, such as "llama2-7b", for logs that do not print its shape.
        formula: FLOPs formula.
        config: TOML file with any of these arguments.
        log_format: Name of a format, or a TOML file with one.
        dialect: Framework and version that printed the log.
        warmup: Rows of each start to leave out; by default found from the data.
        strict: Raise for a torn step line, an unreadable value or an impossible result.
        all_files: Read every file to its end.
        anonymise: Pseudonyms for hosts, users, paths, runs and jobs, other ones in each call.
        jobs: Parts of the logs to read at once; by default one for each core.
        require: Targets such as "mfu>=0.45"; see ``analysis.run.checks.target_verdicts.judge``.
        quantities: What the log does not print, such as ``world_size=8``; see ``logparse.schema.QUANTITIES``.

    Returns:
        The run: figures such as ``run.mfu``, frames such as ``run.steps``, ``run.charts``, ``run.to_dict()``.

    Raises:
        UsageError: An argument is unknown or has an invalid value.
        InputError: A log cannot be read, or the logs are not one run, or a log contains several.
        NoStepLineError: No step line of a known format.
    """
    if not logs:
        raise UsageError(tr("no log is given"), remedy=tr("give a log or a folder of logs"))
    options = {
        "hw": hw,
        "peak_tflops": peak_tflops,
        "peak_basis": peak_basis,
        "model": model,
        "formula": formula,
        "config": config,
        "log_format": log_format,
        "dialect": dialect,
        "warmup": warmup,
        "strict": strict,
        "all_files": all_files,
        "anonymise": anonymise,
        "jobs": jobs,
        "require": require,
    }
    how, names = _options(options | quantities), [str(log) for log in logs]
    try:
        return _with_outputs(AnalyzedRun, _only_run(analyze_parts(names, how)))
    except LogparseError as error:
        raise shown_error(error, names, how) from None


def _only_run(runs: Sequence[Run]) -> Run:
    """The run of a log. Raises SeveralRunsError where the command would show several: no figure is of all together."""
    if len(runs) == 1:
        return runs[0]
    raise SeveralRunsError(
        tr("the log contains {n} separate runs", n=len(runs)),
        where=", ".join(dict.fromkeys(source for run in runs for source in run.log.sources)),
        remedy=tr("add --each to analyze every run"),
    )


@naming_arguments()
def analyze_many(paths: str | Path | Sequence[str | Path], **given: Any) -> list[AnalyzedRun]:
    """Read each of ``paths`` as a run of its own, as ``logparse analyze --each`` does.

    A log that holds several trainings, one after the other, gives a run for each.

    A run that cannot be read gives a warning and is left out.

    Args:
        paths: Logs, folders or globs; every entry of a folder or a glob is a run.
        given: The arguments of ``analyze``, the same for all runs.

    Raises:
        UsageError: An argument is unknown or has an invalid value.
        InputError, NoStepLineError: No run can be read; the error of the first.
    """
    runs = named_runs([str(path) for path in _as_list(paths)], each=True)
    done = list(analyze_all_parts(runs, _options(given)))
    failed = [one for one in done if isinstance(one, LogparseError)]
    without_each(failed)
    if failed and len(failed) == len(done):
        raise failed[0]
    for error in failed:
        warnings.warn(with_arguments(str(error)), stacklevel=3)
    return [_with_outputs(AnalyzedRun, one) for one in done if isinstance(one, Run)]


@naming_arguments()
def compare(
    baseline: SideLike,
    candidate: SideLike,
    *,
    threshold: str | None = None,
    metrics: str | Sequence[str] = (),
    allow: str | Sequence[str] = (),
    history: str | Path | None = None,
    **given: Any,
) -> RunComparison:
    """Compare a candidate with a baseline, as ``logparse compare`` does.

    A side is a log, a folder of logs (each entry is a run), a selector of the history such as "release=2.1", a run that
    ``analyze`` returned, or a list of logs and runs, of which each is a run.

    Args:
        baseline: The side to compare with.
        candidate: The side that is judged.
        threshold: The change that matters, such as "1%"; by default what is beyond the noise between runs.
        metrics: Names of the metrics that are judged; by default the step time and others that guard it.
        allow: Fields that may differ though they should be equal, such as "micro_batch_size"; "unknown" is every field
            that is not in the logs.
        history: Folder of recorded runs.
        given: The arguments of ``analyze``, for logs that are read here.

    Returns:
        The comparison. Its ``verdict`` is None if the sides cannot be compared; ``refused`` has the fields.

    Raises:
        UsageError: An argument is invalid, a side has no run, or a run is on both sides.
        InputError, NoStepLineError: A log cannot be read.
    """
    how = _options(given, COMPARING)
    chosen, guards = guards_of(_as_list(metrics))
    allowed, limit = check_allowed(_as_list(allow)), given_threshold(threshold)
    place = None if history is None else str(history)
    (old, others), (new, more) = (_side(side, place, how) for side in (baseline, candidate))
    known = more if others is None else others
    return _with_outputs(RunComparison, compare_sides(old, new, chosen, limit, allowed, known, guards=guards))


@naming_arguments()
def diagnose(*logs: str | Path) -> Diagnosis:
    """Show why the run stopped whose files are ``logs``, as ``logparse diagnose`` does; any text log is read.

    Args:
        logs: Files of one run: logs, folders, globs, URLs, or "-" for standard input.

    Returns:
        The ending: ``state``, ``family``, ``line``, ``text``, ``rank``, ``remedy``; ``to_dict()`` is its JSON.

    Raises:
        InputError: A log cannot be read, or the logs are not one run.
        NoStepLineError: The log is empty.
    """
    if not logs:
        raise UsageError(tr("no log is given"), remedy=tr("give a log or a folder of logs"))
    return _with_outputs(Diagnosis, diagnose_run([str(log) for log in logs]))


@naming_arguments()
def estimate(
    *,
    model: str | None = None,
    hw: str | None = None,
    peak_tflops: float | None = None,
    memory_gb: float | None = None,
    formula: str | None = None,
    config: str | Path | None = None,
    tokens: float | None = None,
    utilisation: float | None = None,
    days: float | None = None,
    from_log: str | Path | None = None,
    **quantities: Any,
) -> JobEstimate:
    """Estimate what a job should need and give, as ``logparse estimate`` does.

    Args:
        model: A known model, such as "llama2-13b".
        hw: Device, such as "910b3" or "h100".
        peak_tflops: Peak of one device in TFLOP/s; wins over ``hw``.
        memory_gb: Memory of one device in GB; wins over ``hw``.
        formula: FLOPs formula; by default that of the real model.
        config: TOML file with any arguments of ``analyze``.
        tokens: Tokens to train on.
        utilisation: Share of the peak that is reached, such as 0.4.
        days: A deadline; the number of devices follows.
        from_log: A log that gives model, layout, batch and utilization.
        quantities: The job: ``devices``, ``tp``, ``pp``, ``dp``, ``cp``, ``ep``, ``vpp``, ``zero``,
            ``sequence_parallel``, ``flash_attention``, ``dropout``, ``network_gbits``, or quantities of
            ``logparse.schema.QUANTITIES``.

    Returns:
        The estimate: ``result`` has layouts and figures, ``to_dict()`` is its JSON.

    Raises:
        UsageError: An argument is unknown, or the job cannot be.
        InputError, NoStepLineError: The log cannot be read.
    """
    job = {"memory_gb": memory_gb, "tokens": tokens, "utilisation": utilisation, "days": days, "from_log": from_log}
    options = {"model": model, "hw": hw, "peak_tflops": peak_tflops, "formula": formula, "config": config}
    check_names(quantities, JOB_TYPES)
    short = {name: value for name, value in quantities.items() if name in JOB_TYPES}
    check_types(options | job | short)
    sizes = check_quantities({name: value for name, value in quantities.items() if name not in short})
    file, log = None if config is None else Path(config), None if from_log is None else str(from_log)
    machine, how_long = (model, hw, peak_tflops, memory_gb), (tokens, utilisation, days)
    return _with_outputs(JobEstimate, estimate_job(sizes, short, *machine, formula, file, *how_long, log))


def _with_outputs(kind: Callable[..., Whole], found: Run | Comparison | Ending | PlannedJob) -> Whole:
    """``found`` as its ``kind`` with outputs, which has the same fields."""
    return kind(**{field.name: getattr(found, field.name) for field in fields(found)})


def _side(asked: SideLike, history: str | None, how: RunOptions) -> tuple[Side, Any]:
    """The runs of one side, and all runs of the history where that was opened."""
    if isinstance(asked, str | Path):
        named = named_sides((str(asked),), history, how, _warn)
        return named.sides[0], named.others
    several = [asked] if isinstance(asked, Run) else list(asked)
    if not several:
        raise UsageError(tr("a side is empty"), remedy=tr("give a log, a folder of logs, or a run"))
    runs = [one if isinstance(one, Run) else analyze_logs([str(one)], how) for one in several]
    return side_of_runs(runs, _warn), None


def _warn(note: Note) -> None:
    warnings.warn(with_arguments(say(note)), stacklevel=2)


def _options(given: Mapping[str, Any], more: Sequence[str] = ()) -> RunOptions:
    """The options that arguments of ``analyze`` give. Raises UsageError for one that is unknown or invalid."""
    check_names(given, more)
    options: dict[str, Any] = {name: value for name, value in given.items() if name in OPTION_TYPES}
    check_types(options)
    quantities = check_quantities({name: value for name, value in given.items() if name not in OPTION_TYPES})
    read_as: dict[str, Callable[[Any], Any]] = {"config": Path, "log_format": str, "require": _as_list}
    known = {name: read_as.get(name, lambda same: same)(v) for name, v in options.items() if v is not None}
    if known.pop("anonymise", False):
        known["pseudonyms"] = pseudonyms_of_answer(None)
    return choose(quantities, **known)


def _folder(folder: str | Path) -> ResultFolder:
    """Raises UsageError for an empty name, which would be the current folder."""
    if not str(folder).strip():
        raise UsageError(tr("the folder has no name"), remedy=tr("give a folder"))
    return ResultFolder(str(folder))


def _table_formats(tables: str | Sequence[str]) -> list[str]:
    forms = list(dict.fromkeys(_as_list(tables)))
    check_table_formats(forms)
    return forms


def _as_list(given: Any) -> list[Any]:
    """One value or several as a list."""
    return [given] if isinstance(given, str | Path) else list(given)
