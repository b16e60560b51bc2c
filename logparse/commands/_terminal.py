"""Results as a table for people: the answer, what it was computed with, what was left out. Computes nothing."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from logparse.commands._console import make_console
from logparse.commands._document import RunResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

LABELS = {
    "elapsed_time_per_iteration_ms": ("time per iteration, ms", 1.0, 1),
    "samples_per_second_per_device": ("samples/s/p", 1.0, 4),
    "tokens_per_second_per_device": ("tokens/s/p", 1.0, 1),
    "tflops_per_second_per_device": ("TFLOP/s/p", 1.0, 2),
    "model_tflops_per_second_per_device": ("  of the model", 1.0, 2),
    "hardware_tflops_per_second_per_device": ("  executed", 1.0, 2),
    "mfu": ("MFU, %", 100.0, 2),
    "hfu": ("HFU, %", 100.0, 2),
}
# Parts of the account below this share are not shown on the screen.
LEAST_SHARE = 0.0005

SHOWN_FACTS = (
    "world_size",
    "global_batch_size",
    "seq_length",
    "num_layers",
    "hidden_size",
    "padded_vocab_size",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "data_parallel_size",
    "precision",
    "recompute",
)


def print_results(results: list[RunResult], out: Path | None) -> None:
    """Print every run on stdout and, on stderr, where the files are."""
    console = make_console()
    for result in results:
        _print_run(console, result)
    if out is not None:
        make_console(stderr=True).print(f"wrote {out}/")


def _print_run(console: Console, result: RunResult) -> None:
    coverage, steps = result.log.coverage, result.analysis.steps
    framework = (
        " ".join(part for part in (result.framework.name, result.framework.version) if part) or "unknown framework"
    )
    console.print(f"{result.log.name}: {framework} ({result.framework.evidence})", style="bold")
    stood_for = int(steps.filter(~steps["copied"])["iterations"].sum())
    counted = int(steps["counted"].sum())
    console.print(f"{coverage.step_lines} step lines for {stood_for} steps, {counted} lines count; {_left_out(result)}")
    console.print()
    console.print(_rates_table(result))
    console.print(_account_line(result))
    console.print()
    console.print(_metrics_table(result))
    console.print("\ncomputed with")
    console.print(_how_table(result))
    for note in result.notes:
        console.print(
            ("! " if note.level == "warning" else "- ") + note.text,
            style="yellow" if note.level == "warning" else "dim",
        )
    console.print()


def _left_out(result: RunResult) -> str:
    coverage = result.log.coverage
    reasons = result.analysis.steps["excluded_reason"].drop_nulls().value_counts(sort=True)
    parts = [f"{n} left out: {reason}" for reason, n in reasons.iter_rows()]
    parts += [f"{coverage.torn_lines} torn"] if coverage.torn_lines else []
    parts += [f"{coverage.malformed_values} values not readable"] if coverage.malformed_values else []
    parts += [f"label not read: {label} ({n})" for label, n in coverage.unread_labels.items()]
    return "; ".join(parts) or "none left out"


def _rates_table(result: RunResult) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("", no_wrap=True)
    for heading in ("ms/step", "95 % interval", "tokens/s/p", "TFLOP/s/p", "MFU %", "HFU %", "steps"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in result.analysis.rates.iter_rows(named=True):
        table.add_row(
            row["rate"],
            _number(row["step_time_ms"], 1.0, 1),
            _interval(row["step_time_low_ms"], row["step_time_high_ms"]),
            _number(row["tokens_per_second_per_device"], 1.0, 1),
            _number(row["tflops_per_second_per_device"], 1.0, 2),
            _number(row["mfu"], 100.0, 2),
            _number(row["hfu"], 100.0, 2),
            f"{row['steps']:,}",
        )
    return table


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "-"
    digits = 0 if low >= 1000 else 1
    return f"{low:,.{digits}f} to {high:,.{digits}f}"


def _account_line(result: RunResult) -> str:
    parts = result.analysis.account.sort("seconds", descending=True)
    shares = ", ".join(
        f"{part} {share:.1%}" for part, share in parts.select("part", "share").iter_rows() if abs(share) >= LEAST_SHARE
    )
    total = result.analysis.account["seconds"].sum()
    return f"where {total:,.0f} s went: {shares}" if shares else "where the time went: unknown, no row counts"


def _metrics_table(result: RunResult) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("", no_wrap=True)
    for heading in ("median", "mean", "p10", "p90", "n"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in result.analysis.summary.iter_rows(named=True):
        label, scale, digits = LABELS[row["metric"]]
        numbers = [_number(row[k], scale, digits) for k in ("median", "mean", "p10", "p90")]
        table.add_row(label, *numbers, str(row["n"]))
    logged = result.analysis.steps.filter("counted")["logged_tflops_per_second_per_device"].drop_nulls()
    if len(logged):
        table.add_row("  printed by the log", _number(statistics.median(logged), 1.0, 2), "", "", "", str(len(logged)))
    return table


def _number(value: float | None, scale: float, digits: int) -> str:
    return "-" if value is None else f"{value * scale:,.{digits}f}"


def _how_table(result: RunResult) -> Table:
    from rich.table import Table

    how = result.analysis.computation
    table = Table(box=None, pad_edge=False, padding=(0, 2), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(ratio=1, style="dim")
    for name in SHOWN_FACTS:
        fact = result.context.facts.get(name)
        table.add_row(name, str(fact.value) if fact else "-", fact.origin if fact else "not found")
    evidence = result.context.origin("recompute") or "no setting tells of recompute"
    counted = f"c = {how.recompute_factor}: {evidence}" if how.formula.name == "ascendspeed" else how.formula.title
    table.add_row("formula", how.formula.name, counted)
    if peak := how.peak:
        origin = f"{peak.name}, {peak.dtype}, {peak.basis}, confidence {peak.confidence}; sources: logparse hardware"
        table.add_row("peak", f"{peak.peak_tflops_per_second:g}", origin)
    return table
