"""What could not be computed, and every flag that would give it, in one row."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.model.shape import ModelShape
from analysis.present.words import word
from analysis.run.run import Run
from logparse.findings import Note
from logparse.language import tr
from logparse.schema import flag_of

# Findings that hold the names of what is unknown.
UNKNOWN = (
    "samples_rate_not_computed",
    "tokens_rate_not_computed",
    "flops_rate_not_computed",
    "mfu_not_computed",
)
# Sizes that a named model gives together.
OF_MODEL = frozenset(ModelShape.__dataclass_fields__) - {"lora", "adapter_parameters"} | {"vocab_size"}


def missing_clauses(run: Run) -> list[str]:
    """The figures that are missing, and each flag to pass for them; empty where nothing is."""
    figures, flags = list(dict.fromkeys(_figures(run))), list(dict.fromkeys(_flags(run)))
    if not figures:
        return []
    if data := _data_without_tokens(run):
        return [*_of_samples(run), tr("tokens/s, TFLOP/s, MFU: not computed for {data}", data=word("data", data))]
    names = tr(", ").join(figures)
    return [tr("{figures}: pass", figures=names), *flags] if flags else [names]


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


def _figures(run: Run) -> Iterator[str]:
    """What the first screen would show."""
    rate = run.analysis.rate("all_steps")
    if rate["step_time_ms"] is None:
        yield tr("step time")
    if rate["tokens_per_second_per_device"] is None:
        yield tr("throughput")
    if rate["tflops_per_second_per_device"] is None:
        yield tr("TFLOP/s")
    if rate["mfu"] is None:
        yield tr("MFU")
    elif run.analysis.computation.executed_times() is None:
        yield tr("HFU")


def _flags(run: Run) -> Iterator[str]:
    """The flags, without repeating those that a model gives together."""
    notes = {note.code: note for note in run.notes}
    if sizes := notes.get("rate_lacks_sizes"):
        yield from sizes.fields["flags"]
    names = [name for code in UNKNOWN if code in notes for name in _unknown(notes[code])]
    yield from (flag for name in names if name not in OF_MODEL and (flag := flag_of(name)))
    if any(name in OF_MODEL for name in names):
        yield "--model"
    if run.analysis.computation.peak is None:
        yield "--peak-tflops" if "no_peak_of_type" in notes else "--hw"
    if "hfu_not_computed" in notes:
        yield "--recompute"


def _unknown(note: Note) -> list[str]:
    names: list[str] = note.fields["unknown"].fields["names"]
    return names
