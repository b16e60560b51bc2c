"""What could not be computed, and every flag that would give it, in one row.

A figure that the log prints is named as the computed one. A figure that no flag gives has a clause with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.flops import real_model_formula
from analysis.hardware.devices import BY_HAND, is_cpu
from analysis.model.catalogue import catalogued, models_of, named_in
from analysis.model.shape import ModelShape
from analysis.present.views.printed_rates import PRINTED_RATES, TFLOPS, TOKENS
from analysis.present.views.throughput import throughput_of_all
from analysis.present.words import word
from analysis.run.checks.self_checks import RATES, is_withheld
from analysis.run.load import contradicted
from analysis.run.notes import FAST_FOR_CPU
from analysis.run.run import Run
from logparse.findings import Note
from logparse.language import msg, tr
from logparse.schema import QUANTITY, flag_of

# Findings that hold the names of what is unknown.
UNKNOWN = (
    "samples_rate_not_computed",
    "tokens_rate_not_computed",
    "flops_rate_not_computed",
    "mfu_not_computed",
)
# Findings of work that no formula counts: no flag gives these figures.
NOT_COUNTED = ("layers_not_counted", "mfu_not_counted")
# Findings that no name of a device mends, only its peak.
NO_PEAK = ("no_peak_of_type", "device_not_listed")
# Settings of a model that a log may not print though it prints its sizes.
SETTINGS = {
    "num_query_groups": msg("KV heads"),
    "gated_linear_unit": msg("MLP gate"),
    "ffn_hidden_size": msg("FFN width"),
    "num_attention_heads": msg("attention heads"),
    "padded_vocab_size": msg("vocabulary size"),
    "untie_embeddings_and_output_weights": msg("tied embeddings"),
}
# So many are named with their flags, so many by their flags alone; more are a model to name.
MOST_NAMED, MOST_FLAGS = 2, 3
# So many of the flags of a model that no name gives fit on the screen.
MOST_OF_MODEL = 6
SIZES = ("num_layers", "hidden_size")
RECOMPUTE, ITS_VALUES = "--recompute", "none|selective|full"
# Of so many flags the values fit too.
FEW_FLAGS = 2
# Sizes that a named model gives together.
OF_MODEL = frozenset(ModelShape.__dataclass_fields__) - {"lora", "adapter_parameters"} | {"vocab_size"}


def missing_clauses(run: Run) -> list[str]:
    """The figures that are missing, and each flag to pass for them; empty where nothing is."""
    notes = {note.code: note for note in run.notes}
    figures = list(dict.fromkeys(_figures(run)))
    if not figures:
        return []
    if is_withheld(run.checks, RATES):
        return [tr("{figures}: withheld, see the first line", figures=tr(", ").join(figures))]
    if data := _data_without_tokens(run):
        return [*_of_samples(run), tr("tokens/s, TFLOP/s, MFU: not computed for {data}", data=word("data", data))]
    if _known_rate(run)["step_time_ms"] is None and "rate_lacks_sizes" not in notes:
        return [_no_time(run)]
    without_mfu = _on_cpu(run) or any(code in notes for code in NOT_COUNTED)
    uncounted = [tr("MFU"), tr("computed MFU"), tr("HFU")] if without_mfu else []
    if "layers_not_counted" in notes:
        uncounted = [tr("TFLOP/s"), *uncounted]
    given = [figure for figure in figures if figure not in uncounted]
    clauses = _with_flags(run, given) if given else []
    if never := [figure for figure in figures if figure in uncounted]:
        clauses = [*clauses[:-1], *(tr("{clause};", clause=clause) for clause in clauses[-1:])]
        clauses.append(_never(tr(", ").join(never), notes))
    return clauses


def _on_cpu(run: Run) -> bool:
    """Whether the log names a CPU that may be one, and no peak is given to divide by."""
    doubted = any(note.code == FAST_FOR_CPU for note in run.notes)
    return run.analysis.computation.peak is None and is_cpu(run.context.get("device_name")) and not doubted


def _never(figures: str, notes: Mapping[str, Note]) -> str:
    """The ``figures`` that no flag gives, and why."""
    layers = next((notes[code].fields["layers"] for code in NOT_COUNTED if code in notes), None)
    if layers is None:
        return tr("{figures}: not computed on a CPU", figures=figures)
    return tr("{figures}: no formula counts {layers}", figures=figures, layers=tr(layers))


def _no_time(run: Run) -> str:
    """That no rate is possible, and what the log has instead of the time of a step."""
    if len(run.records["timers"]):
        return tr("all rates: the log prints only phases of a step, not its time")
    if run.has_times:
        return tr("all rates: no step was useful, see the warnings")
    return tr("step time is not in the log: no rate can be computed")


def _with_flags(run: Run, figures: Sequence[str]) -> list[str]:
    """The ``figures``, and each flag to pass for them."""
    flags = list(dict.fromkeys(_flags(run)))
    if RECOMPUTE not in flags:
        return _passing(run, figures, flags)
    # Of all figures HFU alone needs it.
    flag = f"{RECOMPUTE} {ITS_VALUES}" if len(flags) <= FEW_FLAGS else RECOMPUTE
    without_hfu = [figure for figure in figures if figure != tr("HFU")]
    if not without_hfu:
        return _passing(run, figures, [*flags[:-1], flag])
    *clauses, last = _passing(run, without_hfu, [other for other in flags if other != RECOMPUTE])
    if len(clauses) > FEW_FLAGS:
        # The flags of MFU are enough to look up; the row of HFU then asks for its own.
        return [*clauses, last]
    return [*clauses, tr("{clause};", clause=last), tr("HFU also {flag}", flag=flag)]


def _passing(run: Run, figures: Sequence[str], flags: Sequence[str]) -> list[str]:
    """The ``figures``, why they are missing where one reason is all, and the ``flags`` to pass for them."""
    names = tr(", ").join(figures)
    if 0 < len(settings := _settings(run)) <= MOST_NAMED:
        named = tr(", ").join(tr(SETTINGS[name]) for name in settings)
        return [tr("{figures}: {names} not in the log: pass", figures=names, names=named), *flags]
    no_peak = next((note.fields for note in run.notes if note.code == "no_peak_of_type"), None)
    if no_peak and flags in (["--dtype"], ["--peak-tflops"]):
        reason = msg("{figures}: no {dtype} peak of {device} is known:")
        assumed = msg("pass --dtype or --peak-tflops")
        either = assumed if flags == ["--dtype"] else msg("pass --peak-tflops or another --dtype")
        return [tr(reason, figures=names, device=no_peak["device"], dtype=no_peak["dtype"]), tr(either)]
    if flags == ["--dtype"]:
        return [tr("{figures}: number type not in the log: pass --dtype", figures=names)]
    if flags == ["--peak-tflops"]:
        return [tr("{figures}: no peak of this device is known: pass --peak-tflops", figures=names)]
    return [tr("{figures}: pass", figures=names), *flags] if flags else [names]


def _settings(run: Run) -> list[str]:
    """The settings that are all that is unknown of a model whose sizes are known; empty where more is, or too many."""
    unknown = _unknown_names(run)
    return (
        unknown if _has_sizes(run) and len(unknown) <= MOST_FLAGS and all(name in SETTINGS for name in unknown) else []
    )


def _data_without_tokens(run: Run) -> str | None:
    """What the run trains on, where that has no tokens."""
    return next((note.fields["data"] for note in run.notes if note.code == "no_tokens"), None)


def _of_samples(run: Run) -> list[str]:
    """What is missing of the step time and of the samples per second, with the flags that give it."""
    rate, notes = run.analysis.rate("all_steps"), {note.code: note for note in run.notes}
    if rate["samples_per_second_per_device"] is not None:
        return []
    sizes = notes["rate_lacks_sizes"].fields["flags"] if "rate_lacks_sizes" in notes else []
    names = _unknown(notes["samples_rate_not_computed"]) if "samples_rate_not_computed" in notes else []
    flags = dict.fromkeys([*sizes, *filter(None, map(flag_of, names))])
    figure = tr("step time") if rate["step_time_ms"] is None else tr("samples/s/p")
    return [tr("{figures}: pass {flags};", figures=figure, flags=" ".join(flags))] if flags else []


def _known_rate(run: Run) -> Mapping[str, Any]:
    """The rate of all steps; where none counts, the steady one."""
    timed_rates = (
        rate for name in ("all_steps", "steady") if (rate := run.analysis.rate(name))["step_time_ms"] is not None
    )
    return next(timed_rates, run.analysis.rate("all_steps"))


def _figures(run: Run) -> Iterator[str]:
    """What the first screen would show."""
    rate = _known_rate(run)
    printed = run.printed
    if rate["step_time_ms"] is None:
        yield tr("step time")
    if run.generates:
        # Answers have any length: of those no flag gives the tokens.
        if rate["samples_per_second_per_device"] is None and not any(name in printed for name in PRINTED_RATES):
            yield tr("throughput")
    elif rate[TOKENS] is None:
        shown = rate["samples_per_second_per_device"] is not None or any(name in printed for name in PRINTED_RATES)
        shown = shown or throughput_of_all(run, rate) is not None
        computed = tr("computed tokens/s/p") if TOKENS in printed else tr("tokens/s/p")
        yield computed if shown else tr("throughput")
    if rate[TFLOPS] is None:
        yield tr("computed TFLOP/s") if TFLOPS in printed else tr("TFLOP/s")
    if rate["mfu"] is None:
        yield tr("computed MFU") if "mfu" in printed else tr("MFU")
    elif run.analysis.computation.executed_times() is None:
        yield tr("HFU")


def _flags(run: Run) -> Iterator[str]:
    """The flags, without repeating those that a model gives together."""
    notes = {note.code: note for note in run.notes}
    if sizes := notes.get("rate_lacks_sizes"):
        yield from sizes.fields["flags"]
    names = _unknown_names(run)
    if run.generates:
        names = [name for name in names if name != "seq_length"]
    yield from (flag for name in names if name not in OF_MODEL and (flag := flag_of(name)))
    if any(name in OF_MODEL for name in names):
        yield from _flags_of_model(run)
    counted = not _on_cpu(run) and not any(code in notes for code in NOT_COUNTED)
    if run.analysis.computation.peak is None and counted:
        yield _flag_of_peak(run, notes)
    if counted and _has_assumed_type(run):
        yield "--dtype"
    if "hfu_not_computed" in notes and counted:
        yield RECOMPUTE


def _has_assumed_type(run: Run) -> bool:
    """Whether an MFU that is missing would be of a number type that nothing gives."""
    peak = run.analysis.computation.peak
    no_type = run.context.get("precision") is None and _known_rate(run)["mfu"] is None
    return no_type and not (peak and peak.name == BY_HAND) and not any(note.code in NO_PEAK for note in run.notes)


def _flag_of_peak(run: Run, notes: Mapping[str, Note]) -> str:
    """The flag that gives a peak: the number type where only that is missing."""
    if "number_type_unknown" in notes or ("no_peak_of_type" in notes and run.context.get("precision") is None):
        return "--dtype"
    return "--peak-tflops" if notes.keys() & NO_PEAK and FAST_FOR_CPU not in notes else "--hw"


def _flags_of_model(run: Run) -> list[str]:
    """The flag with the name of the model, if the catalogue has it with the sizes of the log; else those of settings.

    A model of the catalogue that happens to be named would give the settings of another one.
    """
    names = run.title.models or [run.title.printed_model or ""]
    model = (catalogued(names[0]) or named_in(names[0])) if len(names) == 1 else None
    if model and not contradicted(model.quantities(), run.context.values()):
        return [f"--model {names[0] if catalogued(names[0]) else model.name}"]
    if _has_own_sizes(run):
        names = [name for name in _unknown_names(run) if name in OF_MODEL]
        return list(dict.fromkeys(_flag_of_setting(name) or "--config" for name in names))[:MOST_OF_MODEL]
    flags = [_flag_of_setting(name) for name in _settings(run)]
    return [flag for flag in flags if flag] if flags and all(flags) else ["--model"]


def _has_own_sizes(run: Run) -> bool:
    """Whether the user describes the model by flags, or no model of the catalogue has the sizes that are known."""
    origins = [run.context.origin(name) for name in sorted(run.context.given & OF_MODEL)]
    if any(origin and origin.kind == "flag" for origin in origins):
        return True
    return _has_sizes(run) and not models_of(run.analysis.computation.shape)


def _has_sizes(run: Run) -> bool:
    """Whether the layers and the width of the model are known."""
    return all(getattr(run.analysis.computation.shape, name) is not None for name in SIZES)


def _flag_of_setting(name: str) -> str | None:
    """The flag that gives a setting of a model; None where only a config file can."""
    flag = flag_of(name)
    is_switch = flag is not None and QUANTITY[name].kind == "bool"
    return f"{flag}/--no-{flag[2:]}" if flag is not None and is_switch else flag


def _unknown_names(run: Run) -> list[str]:
    """What figures need and nothing gives; not the size of a head, which follows from the number of heads."""
    notes = {note.code: note for note in run.notes}
    names = [name for code in UNKNOWN if code in notes for name in _unknown(notes[code])]
    names = list(dict.fromkeys([*names, *(_sizes_for_mfu(run) if _has_sizes(run) else ())]))
    return [name for name in names if name != "kv_channels" or "num_attention_heads" not in names]


def _sizes_for_mfu(run: Run) -> tuple[str, ...]:
    """The unknown sizes of the model that MFU needs, also where throughput is unknown as well."""
    formula, shape = real_model_formula(), run.analysis.computation.shape
    return () if _on_cpu(run) or formula.not_counted(shape) else formula.missing(shape)


def _unknown(note: Note) -> list[str]:
    names: list[str] = note.fields["unknown"].fields["names"]
    return names
