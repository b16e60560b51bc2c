"""What could not be computed, and every flag that would give it, in one row."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.model.shape import ModelShape
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
    """The figures that are missing, and the flags to pass for them; empty where nothing is."""
    figures, flags = list(dict.fromkeys(_figures(run))), list(dict.fromkeys(_flags(run)))
    if not figures:
        return []
    names = tr(", ").join(figures)
    return [tr("{figures}: pass {flags}", figures=names, flags=" ".join(flags))] if flags else [names]


def _figures(run: Run) -> Iterator[str]:
    """What the first screen would show."""
    known = (rate for name in ("all_steps", "steady") if (rate := run.analysis.rate(name))["step_time_ms"] is not None)
    rate = next(known, run.analysis.rate("all_steps"))
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
