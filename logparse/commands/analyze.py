"""``logparse analyze``: what a run achieved, from its log. Reads options, calls, prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysis.flops import Formula, find_formula
from analysis.identify import identify
from analysis.metrics import Later, before_changes, plan_computation
from analysis.outputs import check_folder, clear_stale, prepare_folder, write_charts, write_parquet
from analysis.peak import resolve_peak
from analysis.run import Note, analyze_steps
from analysis.window import WindowOptions
from logparse.commands._document import RunResult, document
from logparse.commands._given import with_quantity_flags
from logparse.commands._load import Loaded, gather, load
from logparse.commands._terminal import print_results
from logparse.decode import run_names
from logparse.run_context import Change
from logparse.schema import RECORD_COLUMNS

if TYPE_CHECKING:
    import polars as pl

MODEL_PANEL = "Model and device"
OUTPUT_PANEL = "Output"
# What a run writes into its folder; --force clears these, and nothing else, of an earlier run.
TABLES = ("steps", "summary", "segments", "rates", "account", *RECORD_COLUMNS)
OUTPUTS = (*(f"{name}.parquet" for name in TABLES), "charts")


@with_quantity_flags
def analyze(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...",
            help="Files of one run: logs, folders, quoted globs, or - for standard input; compressed or not.",
        ),
    ],
    given: dict[str, Any],
    hw: Annotated[
        str | None,
        typer.Option(
            "--hw",
            help="Device, such as 910b3 or h100: what MFU is measured against. See `logparse hardware`.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    peak_tflops: Annotated[
        float | None,
        typer.Option(
            "--peak-tflops", help="Peak of one device in TFLOP/s; wins over --hw.", rich_help_panel=MODEL_PANEL
        ),
    ] = None,
    peak_basis: Annotated[
        str,
        typer.Option(
            "--peak-basis",
            help="matrix (what a matrix product can reach) or headline (the vendor's sheet).",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = "matrix",
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Shape of a known model, such as llama2-7b, for logs that do not print it.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    formula: Annotated[
        str | None,
        typer.Option(
            "--formula",
            help="How FLOPs are counted: ascendspeed (default), megatron (the model as built), 6n, palm.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", help="TOML file with any of these flags, such as: world_size = 8", rich_help_panel=MODEL_PANEL
        ),
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Read the log as megatron, mindformers, mindformers-pynative or mindspore.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(
            "--dialect", help="Take the log as printed by this framework and version.", rich_help_panel=MODEL_PANEL
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="Folder for steps.parquet, summary.parquet and charts/.", rich_help_panel=OUTPUT_PANEL
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of a table.", rich_help_panel=OUTPUT_PANEL)
    ] = False,
    charts: Annotated[
        bool,
        typer.Option("--charts/--no-charts", help="Draw charts into the folder of -o.", rich_help_panel=OUTPUT_PANEL),
    ] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files in the folder of -o.", rich_help_panel=OUTPUT_PANEL)
    ] = False,
    warmup: Annotated[
        int | None,
        typer.Option("--warmup", min=0, help="Rows of each start to leave out, instead of finding them from the data."),
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="Every LOG is a run of its own, not a part of one run.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at a torn step line or a value that cannot be read.")
    ] = False,
) -> None:
    """Say what a training run achieved: time per iteration, samples/s/p, tokens/s/p, TFLOP/s per device, MFU and HFU.

    Several LOGs are one run (in a multi-node job the arguments are in the first rank's file and the step lines in the
    last one's). Every number comes with the origin of its inputs; what cannot be computed is named, with the flag that
    would give it.

    Exit code 0 done, 2 wrong usage or unreadable input, 3 no step line found.
    """
    beside = gather(given, model, config)
    hw = hw or beside.options.get("hw")
    peak_tflops = beside.options.get("peak_tflops") if peak_tflops is None else peak_tflops
    if out is not None:
        check_folder(out, force)
    chosen = find_formula(formula or beside.options.get("formula") or "ascendspeed")
    runs = [[log] for log in logs] if each else [logs]
    names = run_names(runs)
    loaded = [load(run, beside, log_format, strict, name, dialect) for run, name in zip(runs, names, strict=True)]
    results = [_analyze(run, chosen, (hw, peak_tflops, peak_basis), warmup) for run in loaded]
    if out is not None:
        _write(results, out, charts)
    if as_json:
        typer.echo(json.dumps(document(results), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print_results(results, out)


def _analyze(
    run: Loaded, formula: Formula, peak_options: tuple[str | None, float | None, str], warmup: int | None
) -> RunResult:
    log, meaning, context = run.log, run.meaning, run.context
    hw, peak_tflops, basis = peak_options
    window = WindowOptions(warmup, meaning.profiling_steps, meaning.time_holds_pauses, meaning.times_are_shared)
    peak, said = resolve_peak(hw, context.get("precision"), peak_tflops, basis)
    later = [_later(change, formula, peak_options) for change in run.changes]
    result = analyze_steps(meaning.steps, log.starts, log.records, context, formula, peak, window, later)
    found = identify(before_changes(result.steps, later), context)
    told = (*meaning.notes, *([found.sentence] if found.logged is not None else []))
    changed = dict.fromkeys(note for change in run.changes for note in change.context.notes)
    warnings = (*log.notes, *context.notes, *changed, *said)
    notes = (*result.notes, *(Note("warning", t) for t in warnings), *(Note("info", t) for t in told))
    return RunResult(log, meaning.framework, context, result, notes)


def _later(change: Change, formula: Formula, peak_options: tuple[str | None, float | None, str]) -> Later:
    hw, peak_tflops, basis = peak_options
    peak, _ = resolve_peak(hw, change.context.get("precision"), peak_tflops, basis)
    return Later(change.source, change.line_number, plan_computation(change.context, formula, peak))


def _write(results: list[RunResult], out: Path, charts: bool) -> None:
    prepare_folder(out)
    written = [write_parquet(frame, out / f"{name}.parquet") for name, frame in _frames(results).items()]
    for result in results if charts else ():
        folder = out / "charts" / result.log.name if len(results) > 1 else out / "charts"
        written += _write_charts(result, folder)
    clear_stale(out, OUTPUTS, written)


def _frames(results: list[RunResult]) -> dict[str, pl.DataFrame]:
    import polars as pl

    steps = pl.concat(r.analysis.steps for r in results)
    summary = pl.concat(r.analysis.summary for r in results)
    records = {name: pl.concat(r.log.records[name] for r in results) for name in RECORD_COLUMNS}
    tables = {n: pl.concat(getattr(r.analysis, n) for r in results) for n in ("segments", "rates", "account")}
    return (
        {"steps": steps, "summary": summary} | tables | {name: frame for name, frame in records.items() if len(frame)}
    )


def _write_charts(result: RunResult, folder: Path) -> list[Path]:
    from analysis.charts import run_charts

    how = result.analysis.computation
    peak = how.peak.peak_tflops_per_second if how.peak else None
    return write_charts(run_charts(result.analysis.steps, peak, how.formula.name), folder)
