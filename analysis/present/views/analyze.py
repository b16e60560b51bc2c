"""What people are shown of a run: the first screen, and with -v all that led to it, in a fixed order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from analysis.metrics import HEADLINE, OF_ROWS, RATED, Metric
from analysis.model.shape import working_layers
from analysis.present.metric_names import cell_of, counting, headed
from analysis.present.numbers import percent
from analysis.present.parts import Heading, Part, Sentence, Sentences, Sparkline, Table
from analysis.present.views.expectations import plan_sentences, published_sentences
from analysis.present.views.first_screen import first_screen
from analysis.present.views.overheads import overheads_tables
from analysis.present.views.ranks import slowest_ranks
from analysis.present.views.warnings import note_sentence, sentences_by_row
from analysis.present.words import describe_origin, evidence_text, framework_text, say, word
from analysis.run.rates.throughput import Computation
from analysis.run.rows.exclusion_reasons import COPY
from analysis.run.run import Run
from logparse.findings import Note
from logparse.language import tr

# Parts of the time breakdown below this share are not shown.
LEAST_SHARE = 0.0005

# Notes that give the origin of step times that no line prints.
TIME_ORIGINS = (
    *(
        f"time_by_{rate}"
        for rate in ("rate", "recent_rate", "rate_of_run", "rate_since_start", "lone_rate", "finer_rate")
    ),
    *("time_by_stamps", "time_by_runtime"),
)

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


def compose(result: Run, details: bool = False, price: float | None = None) -> list[Part]:
    """The first screen; with ``details`` all that led to it. ``price`` is that of a device-hour."""
    return [*first_screen(result), *(_details(result, price) if details else _costs(result, price))]


def _costs(run: Run, price: float | None) -> Iterator[Part]:
    """With a price, what each overhead cost."""
    if price is not None:
        yield from overheads_tables(run, price, advised=False)


def _details(run: Run, price: float | None) -> Iterator[Part]:
    """What led to the answer, each part under its heading."""
    own, of_rows = sentences_by_row(run)
    sections: tuple[tuple[str, Iterable[Part]], ...] = (
        (tr("warnings"), [Sentences(own)]),
        (tr("why rows are missing or doubtful"), [Sentences(of_rows)]),
        (tr("rates"), [rates_table(run), _metrics(run)]),
        (tr("time"), [Sentence(_time_breakdown(run)), *overheads_tables(run, price, advised=False), *trace(run)]),
        (tr("ranks"), slowest_ranks(run.ranks)),
        (tr("plan"), [_sentences(() if run.short else plan_sentences(run.expectations.plan))]),
        (tr("published rates"), [_sentences(published_sentences(run.expectations.published))]),
        (tr("inputs"), [Sentence(_title(run)), Sentence(_counts(run)), _origins(run)]),
        (tr("notes"), [list_notes((n for n in run.notes if n.level != "warning"), run.log.sources)]),
    )
    for heading, parts in sections:
        filled = [part for part in parts if part != Sentences([])]
        if filled:
            yield Heading(heading)
            yield from filled


def _sentences(texts: Iterable[str]) -> Sentences:
    return Sentences([Sentence(text) for text in texts])


def trace(run: Run) -> Iterator[Sparkline]:
    """The time of each step, where there is more than one."""
    time, shown = pl.col("step_time_ms"), pl.col("excluded_reason").ne_missing(COPY)
    times = run.steps.select(time.filter(shown & time.is_finite())).to_series()
    if len(times) > 1:
        yield Sparkline(tr("step time over the run"), tuple(times.to_list()), tr("ms"))


def list_notes(notes: Iterable[Note], sources: Sequence[str] = ()) -> Sentences:
    """What must be read with the numbers, in its order; ``sources`` are the files of the run."""
    return Sentences([note_sentence(note, sources) for note in notes])


def _title(result: Run) -> str:
    framework, evidence = framework_text(result.framework), evidence_text(result.framework)
    return tr("{name}: {framework} ({evidence})", name=result.log.name, framework=framework, evidence=evidence)


def _counts(result: Run) -> str:
    steps = result.analysis.steps
    return tr(
        "{lines} step lines for {steps} steps, {counted} counted; {left}",
        lines=result.log.coverage.step_lines,
        steps=int(steps.filter(~steps["copied"])["iterations"].sum()),
        counted=int(steps["counted"].sum()),
        left=tr("; ").join(_left_out(result)) or tr("none excluded"),
    )


def _left_out(result: Run) -> Iterator[str]:
    coverage = result.log.coverage
    for reason, count in Counter(result.analysis.steps["excluded_reason"].drop_nulls()).most_common():
        yield tr("{n} excluded: {reason}", n=count, reason=word("reasons", reason))
    if coverage.torn_lines:
        yield tr("{n} truncated", n=coverage.torn_lines)
    if coverage.malformed_values:
        yield tr("{n} unreadable values", n=coverage.malformed_values)
    for label, count in coverage.unread_labels.items():
        yield tr("unrecognized label: {label} ({n})", label=label, n=count)


def _time_breakdown(result: Run) -> str:
    time_breakdown = result.analysis.time_breakdown
    parts = time_breakdown.sort("seconds", descending=True).select("part", "share").iter_rows()
    shares = tr(", ").join(
        f"{word('parts', part)} {percent(share)}" for part, share in parts if abs(share) >= LEAST_SHARE
    )
    if not shares:
        return tr("time breakdown: unknown, no counted rows")
    return tr(
        "time breakdown of {seconds} s: {shares}", seconds=f"{time_breakdown['seconds'].sum():,.0f}", shares=shares
    )


def _metrics(result: Run) -> Table:
    rows = []
    summary = {row["metric"]: row for row in result.analysis.summary.iter_rows(named=True)}
    for metric in OF_ROWS:
        row = summary[metric.column]
        numbers = [metric.text(row[statistic]) for statistic in ("median", "mean", "p10", "p90")]
        rows.append((counting(metric, result.analysis), *numbers, str(row["n"])))
        rows += _printed(result, metric)
    return Table(("", tr("median"), tr("mean"), "p10", "p90", "n"), tuple(rows))


def _printed(result: Run, metric: Metric) -> list[tuple[str, ...]]:
    """The framework's own figure, under ours."""
    printed = result.printed.get(metric.column)
    return [(tr("  printed by the log"), metric.text(printed.median), "", "", "", str(printed.n))] if printed else []


def _unknown_fact(name: str, run: Run) -> str:
    """Why a fact is unknown: DeepSpeed calls the number of data-parallel ranks its world size."""
    replicas = run.context.facts.get("data_parallel_size")
    if name == "world_size" and replicas is not None and replicas.origin.kind == "log":
        return tr("the log has the data-parallel ranks alone")
    return tr("not in the log")


def _origins(result: Run) -> Table:
    how, context = result.analysis.computation, result.context
    rows = [
        (name, str(fact.value), describe_origin(fact.origin))
        if (fact := context.facts.get(name))
        else (name, "-", _unknown_fact(name, result))
        for name in (*SHOWN_FACTS, *(("recomputed_layers",) if _in_part(result) else ()))
    ]
    recompute = context.origin("recompute")
    evidence = describe_origin(recompute) if recompute else tr("recomputation is not in the log")
    factor = tr("c = {factor}: {evidence}", factor=_factor(how), evidence=evidence)
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
    if time_origin := next((note for note in result.notes if note.code in TIME_ORIGINS), None):
        time = HEADLINE[0].text(result.value(HEADLINE[0].column))
        rows.append(("step_time_ms", time, say(time_origin)))
    return Table((tr("quantity"), tr("value"), tr("origin")), tuple(rows), prose={2})


def _in_part(result: Run) -> bool:
    """Whether not all layers are recomputed whole though some may be."""
    layers = result.context.get("recomputed_layers")
    return layers is not None and layers != working_layers(result.context.values())


def _factor(how: Computation) -> str:
    """Passes that are counted, and how many there can be where a setting of the recomputation is not understood."""
    recomputed = how.recomputed
    if recomputed is None or recomputed.known:
        return f"{how.recompute_factor:.4g}"
    low, high = (f"{3 + end.layers:.4g}" for end in (recomputed.least, recomputed.most))
    return tr("{counted} ({low} to {high})", counted=f"{how.recompute_factor:.4g}", low=low, high=high)


TIME = HEADLINE[0]
# Digits after the point at most.
MOST_DIGITS = 4


def rates_table(run: Run) -> Table:
    """One row for each named rate. A short run has no intervals."""
    heads = ("", tr("ms/step"), tr("95 % interval"), *(headed(metric, run.analysis) for metric in RATED), tr("steps"))
    rows = [
        (
            word("rates", row["rate"]),
            TIME.text(row["step_time_ms"]),
            "-" if run.short else interval_text(row["step_time_low_ms"], row["step_time_high_ms"]),
            *(cell_of(metric, row, run.analysis) for metric in RATED),
            "-" if row["steps"] is None else f"{row['steps']:,}",
        )
        for row in run.rates.iter_rows(named=True)
    ]
    return Table(heads, rows)


def interval_text(low: float | None, high: float | None) -> str:
    """The two ends in ms, with so many digits that they differ; a hyphen where they are unknown or equal."""
    if low is None or high is None or low == high:
        return "-"
    digits = 0 if low >= 1000 else 1
    while f"{low:,.{digits}f}" == f"{high:,.{digits}f}" and digits < MOST_DIGITS:
        digits += 1
    return tr("{low} to {high}", low=f"{low:,.{digits}f}", high=f"{high:,.{digits}f}")
