"""What people are shown of a run: the answer, its origin, what was left out. Parts, without a word on how they look.

``_terminal`` and ``_markdown`` show the same parts.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from analysis.pipeline.analyze import RunResult
from analysis.run.window import COPY
from logparse.language import msg, tr


@dataclass(frozen=True)
class Line:
    """A sentence."""

    text: str
    kind: Literal["title", "heading", "plain", "warning", "info"] = "plain"


@dataclass(frozen=True)
class Grid:
    """A table. The first column holds names, the others numbers, the last one prose where ``prose`` says so."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    prose: bool = False


@dataclass(frozen=True)
class Trace:
    """A series in order, to be drawn as small as there is room."""

    name: str
    values: tuple[float, ...]
    unit: str

    @property
    def low(self) -> float:
        """The least value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The greatest value."""
        return max(self.values)


Part = Line | Grid | Trace

LABELS = {
    "elapsed_time_per_iteration_ms": (msg("time per iteration, ms"), 1.0, 1),
    "samples_per_second_per_device": (msg("samples/s/p"), 1.0, 4),
    "tokens_per_second_per_device": (msg("tokens/s/p"), 1.0, 1),
    "tflops_per_second_per_device": (msg("TFLOP/s/p"), 1.0, 2),
    "model_tflops_per_second_per_device": (msg("  of the model"), 1.0, 2),
    "hardware_tflops_per_second_per_device": (msg("  executed"), 1.0, 2),
    "mfu": (msg("MFU, %"), 100.0, 2),
    "hfu": (msg("HFU, %"), 100.0, 2),
}
# Rows that say nothing where they equal another one.
SAME_AS = {
    "model_tflops_per_second_per_device": "tflops_per_second_per_device",
    "hardware_tflops_per_second_per_device": "tflops_per_second_per_device",
}
# Parts of the account below this share are not shown.
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


def compose(result: RunResult) -> list[Part]:
    """All parts of one run, the answer first."""
    return [
        Line(_title(result), "title"),
        Line(_counts(result)),
        _rates(result),
        Line(_account(result)),
        *_trace(result),
        _metrics(result),
        Line(tr("against plan and published rates"), "heading"),
        *(Line(sentence) for sentence in result.yardsticks.sentences),
        Line(tr("computed with"), "heading"),
        _origins(result),
        *(Line(note.text, note.level) for note in result.notes),
    ]


def one_line(result: RunResult) -> str:
    """The answer alone, for scripts that read by eye; ``--json`` is for programs."""
    analysis = result.analysis
    shown = ("elapsed_time_per_iteration_ms", "tokens_per_second_per_device", "tflops_per_second_per_device", "mfu")
    values = [f"{tr(LABELS[name][0])} {_number(analysis.value(name), *LABELS[name][1:])}" for name in shown]
    if analysis.value(shown[0]) is None:
        values += [note.text for note in result.notes if note.level == "warning"][:1]
    return tr("{name}: {values}", name=result.log.name, values=tr("; ").join(values))


def _title(result: RunResult) -> str:
    framework = result.framework
    known = " ".join(tr(part) for part in (framework.name, framework.version) if part) or tr("unknown framework")
    return tr("{name}: {framework} ({evidence})", name=result.log.name, framework=known, evidence=framework.evidence)


def _counts(result: RunResult) -> str:
    steps = result.analysis.steps
    return tr(
        "{lines} step lines for {steps} steps, {counted} lines count; {left}",
        lines=result.log.coverage.step_lines,
        steps=int(steps.filter(~steps["copied"])["iterations"].sum()),
        counted=int(steps["counted"].sum()),
        left=tr("; ").join(_left_out(result)) or tr("none left out"),
    )


def _left_out(result: RunResult) -> Iterator[str]:
    coverage = result.log.coverage
    for reason, count in result.analysis.steps["excluded_reason"].drop_nulls().value_counts(sort=True).iter_rows():
        yield tr("{n} left out: {reason}", n=count, reason=tr(reason))
    if coverage.torn_lines:
        yield tr("{n} torn", n=coverage.torn_lines)
    if coverage.malformed_values:
        yield tr("{n} values not readable", n=coverage.malformed_values)
    for label, count in coverage.unread_labels.items():
        yield tr("label not read: {label} ({n})", label=label, n=count)


def _rates(result: RunResult) -> Grid:
    headings = ("", tr("ms/step"), tr("95 % interval"), "tokens/s/p", "TFLOP/s/p", "MFU %", "HFU %", tr("steps"))
    rows = tuple(
        (
            tr(row["rate"]),
            _number(row["step_time_ms"], 1.0, 1),
            _interval(row["step_time_low_ms"], row["step_time_high_ms"]),
            _number(row["tokens_per_second_per_device"], 1.0, 1),
            _number(row["tflops_per_second_per_device"], 1.0, 2),
            _number(row["mfu"], 100.0, 2),
            _number(row["hfu"], 100.0, 2),
            f"{row['steps']:,}",
        )
        for row in result.analysis.rates.iter_rows(named=True)
    )
    return Grid(headings, rows)


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "-"
    digits = 0 if low >= 1000 else 1
    return tr("{low} to {high}", low=f"{low:,.{digits}f}", high=f"{high:,.{digits}f}")


def _account(result: RunResult) -> str:
    account = result.analysis.account
    parts = account.sort("seconds", descending=True).select("part", "share").iter_rows()
    shares = tr(", ").join(f"{tr(part)} {share:.1%}" for part, share in parts if abs(share) >= LEAST_SHARE)
    if not shares:
        return tr("where the time went: unknown, no row counts")
    return tr("where {seconds} s went: {shares}", seconds=f"{account['seconds'].sum():,.0f}", shares=shares)


def _trace(result: RunResult) -> Iterator[Trace]:
    rows = result.analysis.steps.filter(pl.col("excluded_reason").ne_missing(COPY) & pl.col("step_time_ms").is_finite())
    if len(rows) > 1:
        yield Trace(tr("time of each step"), tuple(rows["step_time_ms"]), "ms")


def _metrics(result: RunResult) -> Grid:
    rows = []
    summary = {row["metric"]: row for row in result.analysis.summary.iter_rows(named=True)}
    for metric, row in summary.items():
        if metric not in SAME_AS or row["median"] != summary[SAME_AS[metric]]["median"]:
            label, scale, digits = LABELS[metric]
            numbers = [_number(row[k], scale, digits) for k in ("median", "mean", "p10", "p90")]
            rows.append((tr(label), *numbers, str(row["n"])))
        if metric == "tflops_per_second_per_device":
            rows += _logged(result)
    return Grid(("", tr("median"), tr("mean"), "p10", "p90", "n"), tuple(rows))


def _logged(result: RunResult) -> list[tuple[str, ...]]:
    """The framework's own TFLOP/s, under ours."""
    logged = result.analysis.steps.filter("counted")["logged_tflops_per_second_per_device"].drop_nulls()
    median = _number(statistics.median(logged), 1.0, 2) if len(logged) else ""
    return [(tr("  printed by the log"), median, "", "", "", str(len(logged)))] if median else []


def _number(value: float | None, scale: float, digits: int) -> str:
    return "-" if value is None else f"{value * scale:,.{digits}f}"


def _origins(result: RunResult) -> Grid:
    how, context = result.analysis.computation, result.context
    rows = [
        (name, str(fact.value), fact.origin) if (fact := context.facts.get(name)) else (name, "-", tr("not found"))
        for name in SHOWN_FACTS
    ]
    evidence = context.origin("recompute") or tr("no setting tells of recompute")
    factor = tr("c = {factor}: {evidence}", factor=how.recompute_factor, evidence=evidence)
    counted = factor if how.formula.quotes_recompute else tr(how.formula.title)
    rows.append((tr("formula"), how.formula.name, counted))
    if peak := how.peak:
        origin = tr(
            "{name}, {dtype}, {basis}, confidence {confidence}; sources: logparse hardware",
            name=tr(peak.name),
            dtype=tr(peak.dtype),
            basis=tr(peak.basis),
            confidence=tr(peak.confidence),
        )
        rows.append((tr("peak"), f"{peak.peak_tflops_per_second:g}", origin))
    return Grid((tr("quantity"), tr("value"), tr("origin")), tuple(rows), prose=True)
