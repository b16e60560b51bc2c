"""The warnings of a run, ranked by what they do to the answer: a clause each on the first screen, whole with -v."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.flops import real_model_formula
from analysis.present.numbers import percent, signed_percent, three
from analysis.present.parts import Sentence
from analysis.present.places import places_of
from analysis.present.views.printed_rates import TFLOPS, TOKENS
from analysis.present.words import clause, say, short_cause
from analysis.run.checks.self_checks import broken_by
from analysis.run.run import Run
from logparse.findings import Note
from logparse.language import msg, tr

# By what they do to the answer: part of the log is unknown; it is of something else; it failed; figures are wrong,
# uncertain, missing; the rest.
RANKED = (
    *("format_drafted", "damage_not_located", "file_damaged", "steps_of_a_bar"),
    *(
        "model_contradicts_log",
        "runs_mixed",
        "formula_ignores_special_layers",
        "hw_is_another_device",
        "hw_for_cpu",
        "printed_above_peak",
        "printed_share_above_one",
        "printed_rate_unexplained",
    ),
    *("printed_mfu_by_another_peak", "printed_mfu_by_fallback", "printed_mfu_on_cpu"),
    *(
        "device_contradicts_log",
        "above_peak",
        "above_assumed_peak",
        "high_for_assumed_peak",
        "high_mfu",
        "fast_for_cpu",
        "parameters_differ",
        "clock_shorter_than_steps",
        "clock_longer_than_steps",
        "trainings_in_one_file",
    ),
    *("training_begun_again", "file_at_another_pace", "copy_ahead", "copy_behind"),
    *("ended_early_with_errors", "ended_with_errors", "error_after_end"),
    *(
        "batch_beyond_epoch",
        "no_row_counts",
        "no_step_time",
        "rate_lacks_sizes",
        "rate_of_resumed_run",
        "steps_rounded",
        "step_lines_broken",
        "lines_without_step",
        "printed_rate_unlike_clock",
        "step_lines_missing",
        "stamps_go_back",
        "clock_unknown",
        "clock_set_back",
    ),
    "clock_set_forward",
    "number_type_assumed",
    *("printed_rate_differs", "printed_share_differs", "consumed_samples_differ", "ramp_not_printed"),
    *("lengths_vary", "attention_within_documents", "experts_drop_tokens", "several_skus", "hfu_is_a_range"),
    "recompute_not_understood",
    *(
        "step_time_of_one_batch",
        "step_time_of_one_length",
        "step_time_of_some_devices",
        "pace_is_mixed",
        "pace_has_levels",
        "pace_has_levels_over_starts",
        "pauses_not_told",
    ),
    *("samples_rate_not_computed", "tokens_rate_not_computed", "layers_not_counted", "flops_rate_not_computed"),
    *("mfu_not_counted", "device_unknown", "device_not_listed", "no_peak_of_type", "number_type_unknown"),
)
# Of a missing figure the first screen names the flag in a row of its own.
NAMED_ELSEWHERE = {
    *("rate_lacks_sizes", "samples_rate_not_computed", "tokens_rate_not_computed", "flops_rate_not_computed"),
    *(
        "device_unknown",
        "device_not_listed",
        "no_peak_of_type",
        "number_type_unknown",
        "ended_early_with_errors",
        "ended_with_errors",
        "no_step_time",
    ),
    *("layers_not_counted", "mfu_not_counted"),
}
# The log's TFLOP/s are those of the real model where the two differ by less than this.
SAME_SHARE = 0.02
OF_MODEL = msg("the log prints {value} (FLOPs as in MFU)")
OF_EXECUTED = msg("the log prints {value} (FLOPs as in HFU)")
# Clauses on the first screen.
SHOWN = 2


def ranked_warnings(run: Run) -> list[Note]:
    """Every warning, the one that does most to the answer first."""
    return sorted((note for note in run.notes if note.level == "warning"), key=_rank)


def _rank(note: Note) -> int:
    return RANKED.index(note.code) if note.code in RANKED else len(RANKED)


def warning_sentences(run: Run) -> list[Sentence]:
    """Every warning whole, with its code, by which docs/warnings.md explains it."""
    return [_sentence(note, run) for note in ranked_warnings(run)]


def sentences_by_row(run: Run) -> tuple[list[Sentence], list[Sentence]]:
    """As ``warning_sentences``: those that the first screen counts, and those of which another row speaks."""
    notes_of_run = own_notes(run)
    others = [note for note in ranked_warnings(run) if note not in notes_of_run]
    return [_sentence(note, run) for note in notes_of_run], [_sentence(note, run) for note in others]


def _sentence(note: Note, run: Run) -> Sentence:
    mfu = run.analysis.rate("steady")["mfu"]
    if not mfu or _counts(note, run) != OF_MODEL:
        return note_sentence(note, run.log.sources)
    share = percent(mfu)
    text = tr("{text}; over the peak the log's value is the MFU, {share}", text=say(note), share=share)
    sentence = note_sentence(note, run.log.sources)
    return replace(sentence, text=tr("{text} [{code}]", text=text, code=note.code))


def printed_flops(run: Run) -> str:
    """How the first screen says what TFLOP/s the log prints, and what they count where that is known."""
    known = (counts for note in run.notes if (counts := _counts(note, run)))
    return next(known, msg("the log prints {value}"))


def _clause(note: Note, run: Run) -> str:
    if shares := _of_model(note, run):
        values = [(note.fields[name], share) for name, share in zip(("printed", "ours"), shares, strict=True)]
        printed, ours = (f"{three(value)} ({_from_model(share)})" for value, share in values)
        real = three(note.fields["ours"] / shares[1])
        return tr("TFLOP/s: real model {real}, log {printed}, ours {ours}", real=real, printed=printed, ours=ours)
    cause = short_cause(note.fields["cause"]) if "cause" in note.fields else ""
    return tr("{clause} ({cause})", clause=clause(note), cause=cause) if cause else clause(note)


def _from_model(share: float) -> str:
    """How far TFLOP/s are from those of the real model."""
    apart = round(share - 1, 2)
    return signed_percent(apart, 0) if apart else tr("equal")


def _of_model(note: Note, run: Run) -> tuple[float, float] | None:
    """The log's TFLOP/s and ours over those of the real model; None where a part of the work may be recomputation.

    None too where the attention may be within documents: the work of the real model is an upper bound.
    """
    cause = note.fields.get("cause")
    if isinstance(cause, Note) and cause.code == "counts_documents":
        return None
    shares = _over_model(note, run)
    return shares if shares and run.analysis.computation.executed_times() == (1.0, 1.0) else None


def _over_model(note: Note, run: Run) -> tuple[float, float] | None:
    """The log's TFLOP/s and ours over those of the real model, of a note that the two differ."""
    how, tokens = run.analysis.computation, run.analysis.rate("steady")[TOKENS]
    of_flops = note.code == "printed_rate_differs" and str(note.fields["figure"]).endswith(TFLOPS)
    terms = real_model_formula().terms_per_token(how.shape, how.seq_length) if how.seq_length else None
    if not of_flops or terms is None or not tokens:
        return None
    of_model = tokens * sum(terms.values()) / 1e12
    return note.fields["printed"] / of_model, note.fields["ours"] / of_model


def _counts(note: Note, run: Run) -> str | None:
    """What the log's TFLOP/s count where they differ from ours by that alone: the FLOPs of the real model."""
    shares = _over_model(note, run)
    if shares is None:
        return None
    of_printed, _ = shares
    if abs(of_printed - 1) < SAME_SHARE:
        return OF_MODEL
    times = run.analysis.computation.executed_times()
    executed = times is not None and times[0] == times[1] and abs(of_printed / times[0] - 1) < SAME_SHARE
    return OF_EXECUTED if executed else None


def note_sentence(note: Note, sources: Sequence[str]) -> Sentence:
    """A note as a sentence with its code."""
    text = tr("{text} [{code}]", text=say(note), code=note.code)
    return Sentence(text, note.level, places=places_of(note, sources))


def _of_no_rate(note: Note, run: Run) -> bool:
    """Whether a note on the rates is of a run without a rate, or of one mean, of which another row says so."""
    one_mean = any(other.code == "time_by_rate_of_run" for other in run.notes)
    return note.code == "no_row_counts" and (one_mean or not note.fields["instead"])


def _of_no_peak(note: Note, run: Run) -> bool:
    """Whether a note on the peak is of a run of which no share of it is shown."""
    printed = TFLOPS in run.printed and run.analysis.computation.peak is not None
    shown = run.device_mfu is not None or _is_shown(run, "mfu", "peak_utilization") or printed
    return note.code in ("number_type_assumed", "other_peak_figures") and not shown


def _of_doubtful_peak(note: Note, run: Run) -> bool:
    """Whether a note that the number type is assumed is of a run of which another one doubts that type."""
    doubted = any(other.code in ("above_assumed_peak", "high_for_assumed_peak") for other in run.notes)
    return note.code == "number_type_assumed" and doubted


def _of_shown_peak(note: Note, run: Run) -> bool:
    """Whether a note on the peak of the log's MFU is of a run whose row of MFU names that peak."""
    return note.code == "printed_mfu_by_another_peak" and not _is_shown(run, "mfu")


def _of_no_flops(note: Note, run: Run) -> bool:
    """Whether a note on what the formula ignores is of a run whose TFLOP/s are unknown."""
    return note.code.startswith("formula_ignores_") and not _is_shown(run, TFLOPS)


def _of_no_tokens(note: Note, run: Run) -> bool:
    """Whether a note on the length of samples is of a run of which no count of tokens is shown."""
    return note.code == "lengths_vary" and not _is_shown(run, TOKENS)


def _of_known_flops(note: Note, run: Run) -> bool:
    """Whether a note on the log's TFLOP/s is of FLOPs that the row of TFLOP/s names."""
    return _counts(note, run) is not None


def _is_shown(run: Run, *figures: str) -> bool:
    """Whether one of ``figures`` is known of the steady rate, or of that of all steps."""
    rates = [run.analysis.rate(name) for name in ("steady", "all_steps")]
    return any(rate[figure] is not None for rate in rates for figure in figures)


def own_notes(run: Run) -> list[Note]:
    """The warnings of which no other row of the first screen speaks, ranked."""
    shown_elsewhere = NAMED_ELSEWHERE | broken_by(run.checks)
    ranked = (note for note in ranked_warnings(run) if note.code not in shown_elsewhere)
    unseen = (_of_no_rate, _of_no_peak, _of_shown_peak, _of_no_flops, _of_no_tokens, _of_doubtful_peak, _of_known_flops)
    return [note for note in ranked if not any(is_of(note, run) for is_of in unseen)]


def own_warnings(run: Run) -> list[str]:
    """A clause for each warning of ``own_notes``."""
    return list(dict.fromkeys(_clause(note, run) for note in own_notes(run)))


def warning_clauses(run: Run) -> list[str]:
    """The first warnings in a clause each, after their number; empty where there is none to show."""
    texts = own_warnings(run)
    shown = texts[:SHOWN]
    if not shown:
        return []
    more = len(texts) - len(shown)
    shown[0] = tr("{n}: {clause}", n=len(texts), clause=shown[0])
    return [*shown, tr("{n} more with -v", n=more) if more else tr("see -v")]
