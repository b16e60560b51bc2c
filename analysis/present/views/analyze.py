"""What people are shown of a run: the answer, its origin, what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from analysis.metrics import BY_COLUMN, HEADLINE, OF_ROWS
from analysis.present.metric_names import cell_of, counting, headed, rated_of
from analysis.present.parts import Heading, Part, Sentence, Sentences, Table
from analysis.present.places import places_of
from analysis.present.views.answer import list_answer
from analysis.present.views.expectations import expectation_sentences
from analysis.present.views.ranks import slowest_ranks
from analysis.present.views.reached import LOGGED, median_logged
from analysis.present.words import describe_origin, evidence_text, framework_text, say, word
from analysis.run.run import Run
from analysis.run.throughput import Computation
from logparse.findings import Note
from logparse.language import tr

# Rows that are not shown where they equal another one.
SAME_AS = {
    "model_tflops_per_second_per_device": "tflops_per_second_per_device",
    "hardware_tflops_per_second_per_device": "tflops_per_second_per_device",
    "mfu_as_built": "mfu",
}
# Under which metric the framework's own is shown.
LOGGED_BELOW = "tflops_per_second_per_device"
# Parts of the account below this share are not shown.
LEAST_SHARE = 0.0005

# Notes that give the origin of step times that no line prints.
TIME_ORIGINS = ("time_by_rate", "time_by_recent_rate", "time_by_stamps", "time_by_runtime")

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
    """The answer; with ``details`` all that led to it. ``price`` is that of a device-hour."""
    if not details:
        return list_answer(result, price=price)
    return [
        *list_answer(result, whole=True, price=price),
        Sentence(_title(result)),
        Sentence(_counts(result)),
        _rates(result),
        Sentence(_account(result)),
        _metrics(result),
        *slowest_ranks(result.ranks),
        Heading(tr("against plan and published rates")),
        list_expectations(result),
        Heading(tr("computed with")),
        _origins(result),
        list_notes((note for note in result.notes if note.level != "warning"), result.log.sources),
    ]


def list_expectations(run: Run) -> Sentences:
    """The run against its plan and against published rates."""
    return Sentences([Sentence(text) for text in expectation_sentences(run.expectations)])


def list_notes(notes: Iterable[Note], sources: Sequence[str] = ()) -> Sentences:
    """What must be read with the numbers, in its order; ``sources`` are the files of the run."""
    return Sentences([Sentence(say(note), note.level, places=places_of(note, sources)) for note in notes])


def _title(result: Run) -> str:
    framework, evidence = framework_text(result.framework), evidence_text(result.framework)
    return tr("{name}: {framework} ({evidence})", name=result.log.name, framework=framework, evidence=evidence)


def _counts(result: Run) -> str:
    steps = result.analysis.steps
    return tr(
        "{lines} step lines for {steps} steps, {counted} lines count; {left}",
        lines=result.log.coverage.step_lines,
        steps=int(steps.filter(~steps["copied"])["iterations"].sum()),
        counted=int(steps["counted"].sum()),
        left=tr("; ").join(_left_out(result)) or tr("none left out"),
    )


def _left_out(result: Run) -> Iterator[str]:
    coverage = result.log.coverage
    for reason, count in Counter(result.analysis.steps["excluded_reason"].drop_nulls()).most_common():
        yield tr("{n} left out: {reason}", n=count, reason=word("reasons", reason))
    if coverage.torn_lines:
        yield tr("{n} torn", n=coverage.torn_lines)
    if coverage.malformed_values:
        yield tr("{n} values not readable", n=coverage.malformed_values)
    for label, count in coverage.unread_labels.items():
        yield tr("label not read: {label} ({n})", label=label, n=count)


def _rates(result: Run) -> Table:
    shown = rated_of(result.analysis)
    headings = (
        "",
        tr("ms/step"),
        tr("95 % interval"),
        *(headed(metric, result.analysis) for metric in shown),
        tr("steps"),
    )
    rows = tuple(
        (
            word("rates", row["rate"]),
            HEADLINE[0].text(row["step_time_ms"]),
            _interval(row["step_time_low_ms"], row["step_time_high_ms"]),
            *(cell_of(metric, row, result.analysis) for metric in shown),
            f"{row['steps']:,}",
        )
        for row in result.analysis.rates.iter_rows(named=True)
    )
    return Table(headings, rows)


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "-"
    digits = 0 if low >= 1000 else 1
    return tr("{low} to {high}", low=f"{low:,.{digits}f}", high=f"{high:,.{digits}f}")


def _account(result: Run) -> str:
    account = result.analysis.account
    parts = account.sort("seconds", descending=True).select("part", "share").iter_rows()
    shares = tr(", ").join(f"{word('parts', part)} {share:.1%}" for part, share in parts if abs(share) >= LEAST_SHARE)
    if not shares:
        return tr("where the time went: unknown, no row counts")
    return tr("where {seconds} s went: {shares}", seconds=f"{account['seconds'].sum():,.0f}", shares=shares)


def _metrics(result: Run) -> Table:
    rows = []
    summary = {row["metric"]: row for row in result.analysis.summary.iter_rows(named=True)}
    for metric in OF_ROWS:
        row = summary[metric.column]
        if metric.column not in SAME_AS or row["median"] != summary[SAME_AS[metric.column]]["median"]:
            numbers = [metric.text(row[statistic]) for statistic in ("median", "mean", "p10", "p90")]
            rows.append((counting(metric, result.analysis), *numbers, str(row["n"])))
        if metric.column == LOGGED_BELOW:
            rows += _logged(result)
    return Table(("", tr("median"), tr("mean"), "p10", "p90", "n"), tuple(rows))


def _logged(result: Run) -> list[tuple[str, ...]]:
    """The framework's own TFLOP/s, under ours."""
    logged = median_logged(result)
    if logged is None:
        return []
    n = int((result.steps["counted"] & result.steps[LOGGED].is_not_null()).sum())
    return [(tr("  printed by the log"), BY_COLUMN[LOGGED_BELOW].text(logged), "", "", "", str(n))]


def _origins(result: Run) -> Table:
    how, context = result.analysis.computation, result.context
    rows = [
        (name, str(fact.value), describe_origin(fact.origin))
        if (fact := context.facts.get(name))
        else (name, "-", tr("not found"))
        for name in (*SHOWN_FACTS, *(("recomputed_layers",) if _in_part(result) else ()))
    ]
    recompute = context.origin("recompute")
    evidence = describe_origin(recompute) if recompute else tr("no setting tells of recompute")
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
    return layers is not None and layers != result.context.get("num_layers")


def _factor(how: Computation) -> str:
    """Passes that are counted, and how many there can be where a setting of the recomputation is not understood."""
    recomputed = how.recomputed
    if recomputed is None or recomputed.known:
        return f"{how.recompute_factor:.4g}"
    low, high = (f"{3 + end.layers:.4g}" for end in (recomputed.least, recomputed.most))
    return tr("{counted} ({low} to {high})", counted=f"{how.recompute_factor:.4g}", low=low, high=high)
